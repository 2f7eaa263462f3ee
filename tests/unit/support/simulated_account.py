# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An account with API keys in memory, for tests with thousands of requests, and clients of it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any

from ansible_collections.clouddb.control.plugins.module_utils._http import errors
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client, path_of
from ansible_collections.clouddb.control.plugins.module_utils._http.connection import Connection
from ansible_collections.clouddb.control.plugins.module_utils._http.message import Request
from ansible_collections.clouddb.control.plugins.module_utils._http.response import Response
from ansible_collections.clouddb.control.plugins.module_utils._secrets import Masker
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import EPOCH, FakeClock

ADMIN_SECRET = "secret-1"


class SimulatedAccount:
    """Active keys by id, each with its secret; every request takes a millisecond. The first key is that of the administrator."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.keys: dict[int, dict[str, Any]] = {}
        self.secrets: dict[int, str] = {}
        # The requests that were sent so far, each as its method, and the id for DELETE.
        self.sent: list[str] = []
        self.planned: Iterator[Any] = iter(())
        self._client = SimulatedClient(self)
        self.create("administrator")

    def client(self, secret: str = ADMIN_SECRET) -> Client:
        return self._client.with_api_key(secret)

    def create(self, name: str) -> tuple[int, str]:
        """The id and the secret of a new key."""
        key_id = len(self.secrets) + 1
        self.secrets[key_id] = f"secret-{key_id}"
        unused = {"last_used_at": None, "last_used_from_addr": ""}
        self.keys[key_id] = {"id": key_id, "name": name, "created_at": self.now(), **unused}
        return key_id, self.secrets[key_id]

    def add(self, name: str = "deploy", number: int = 1, seconds: float = 1.0, is_used: bool = False) -> list[int]:
        """The ids of new keys of this name, each created this time after the one before."""
        added = []
        for _key in range(number):
            self.clock.elapsed += seconds
            key_id, secret = self.create(name)
            added.append(key_id)
            if is_used:
                self.use(secret)
        return added

    def plan(self, *actions: Callable[[], Any] | str | None) -> None:
        """Let something happen before the next requests, or let them fail so; nothing for None. It may return how a request fails."""
        self.planned = iter(actions)

    @property
    def active(self) -> list[int]:
        """The keys other than the one of the administrator."""
        return list(self.keys)[1:]

    def is_active(self, secret: str | None) -> bool:
        return any(self.secrets[key_id] == secret for key_id in self.keys)

    def use(self, secret: str) -> None:
        """Use the key with this secret, if it is active. Raises Unauthorized otherwise."""
        self.clock.elapsed += 0.001
        for key_id, key in self.keys.items():
            if self.secrets[key_id] == secret:
                key["last_used_at"] = self.now()
                return
        raise errors.Unauthorized("unauthorized", Request("GET", "/api_keys", "request"), 1, 401)

    def now(self) -> str:
        return (EPOCH + timedelta(seconds=self.clock.elapsed)).isoformat()


class SimulatedClient(Client):
    """A client of the account, without HTTP."""

    def __init__(self, account: SimulatedAccount):
        super().__init__(Connection("https://control.example.com/api/v2", ADMIN_SECRET), account.clock.clock)
        self.account = account
        self._service_ahead.append(timedelta(0))

    def with_api_key(self, api_key: str) -> Client:
        client = copy.copy(self)
        client.connection, client.masker = self.connection._replace(api_key=api_key), Masker(api_key)
        return client

    def request(self, method: str, segments: Sequence[str | int], *_others: Any, **options: Any) -> Response:
        """The response. Raises Unauthorized, NotFound, and the error of a planned fault."""
        sent = Request(method, path_of(segments), "request"), 1
        assert segments[0] == "api_keys"
        self.account.sent.append(" ".join([method, *map(str, segments[1:])]))
        planned = next(self.account.planned, None)
        fault = planned() if callable(planned) else planned
        if fault == "refused":
            raise errors.Unreachable("not sent", *sent, may_have_acted=False, transient=True)
        if fault == "error":
            raise errors.StatusError("internal error", *sent, 500)
        self.account.use(self.connection.api_key)
        json: Any
        if method == "GET":
            json = [dict(key) for key in self.account.keys.values()]
        elif method == "POST":
            key_id, secret = self.account.create(options["body"]["key_name"])
            json = {"id": key_id, "key": secret}
        elif key := self.account.keys.pop(int(segments[1]), None):
            json = {**key, "revoked": True}
        else:
            raise errors.NotFound("not found", *sent, 404)
        if fault == "lost":
            raise errors.Unreachable("response lost", *sent, may_have_acted=True, transient=True)
        return Response(json, *sent)
