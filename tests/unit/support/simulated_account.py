# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An account with API keys in memory, for tests with thousands of requests, and clients of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, cast

from ansible_collections.clouddb.control.plugins.module_utils._clock import Clock, Deadline
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.module_utils._http.connection import Connection
from ansible_collections.clouddb.control.plugins.module_utils._http.errors import (
    NotFound,
    StatusError,
    Unauthorized,
    Unreachable,
)
from ansible_collections.clouddb.control.plugins.module_utils._http.message import Request
from ansible_collections.clouddb.control.plugins.module_utils._http.response import Response
from ansible_collections.clouddb.control.plugins.module_utils._secrets import Masker
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import EPOCH, FakeClock

ADMIN_SECRET = "secret-of-the-administrator"
# How a request can fail: it never arrives, the service rejects it without saying whether it acted, or its response is lost.
FAULTS = ("refused", "error", "lost")


class SimulatedAccount:
    """Active keys by id, each with its secret; every request takes a millisecond."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.keys: dict[int, dict[str, Any]] = {}
        self.secrets: dict[int, str] = {}
        # The requests that were sent so far, each as its method, and the id for DELETE.
        self.sent: list[str] = []
        # Called before each request; returns how it fails, None if it does not.
        self.before_request: Callable[[], str | None] | None = None
        # How the service changes the names of keys.
        self.stored_name: Callable[[str], str] = str
        self._ids = 0
        self.create("administrator", ADMIN_SECRET)

    def client(self, secret: str = ADMIN_SECRET) -> Client:
        return cast(Client, SimulatedClient(self, secret))

    def create(self, name: str, secret: str | None = None) -> tuple[int, str]:
        """The id and the secret of a new key."""
        self._ids += 1
        self.secrets[self._ids] = secret or f"secret-{self._ids}"
        self.keys[self._ids] = {
            "id": self._ids,
            "name": self.stored_name(name),
            "created_at": self.now(),
            "last_used_at": None,
            "last_used_from_addr": "",
        }
        return self._ids, self.secrets[self._ids]

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

    def plan(self, *actions: Callable[[], object] | str | None) -> None:
        """Let something happen before the next requests, or let them fail so; nothing for None."""
        remaining = iter(actions)

        def before() -> str | None:
            action = next(remaining, None)
            if callable(action):
                action()
                return None
            return action

        self.before_request = before

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
        raise Unauthorized("unauthorized", Request("GET", "/api_keys", "request"), 1, 401)

    def now(self) -> str:
        return (EPOCH + timedelta(seconds=self.clock.elapsed)).isoformat()


class SimulatedClient:
    """What the code under test uses of a Client."""

    knows_service_time = True

    def __init__(self, account: SimulatedAccount, secret: str):
        self.account = account
        self.connection = Connection("https://control.example.com/api/v2", secret)
        self.masker = Masker(secret)
        self.clock: Clock = account.clock.clock

    def with_secrets(self) -> SimulatedClient:
        return self

    def with_api_key(self, secret: str) -> SimulatedClient:
        return SimulatedClient(self.account, secret)

    def with_deadline(self, deadline: Deadline) -> SimulatedClient:
        return self

    def service_now(self) -> datetime:
        return self.clock.utcnow()

    def get(self, *segments: str | int) -> Response:
        assert segments == ("api_keys",)
        return self._send("GET", lambda: [dict(key) for key in self.account.keys.values()])

    def post(self, *segments: str | int, body: Mapping[str, Any]) -> Response:
        assert segments == ("api_keys",)

        def create() -> dict[str, Any]:
            key_id, secret = self.account.create(body["key_name"])
            return {"id": key_id, "key": secret}

        return self._send("POST", create)

    def delete(self, *segments: str | int) -> Response:
        path, key_id = segments
        assert path == "api_keys"

        def revoke() -> dict[str, Any]:
            key = self.account.keys.pop(int(key_id), None)
            if key is None:
                raise NotFound("not found", Request("DELETE", f"/api_keys/{key_id}", "request"), 1, 404)
            return {**key, "revoked": True}

        return self._send("DELETE", revoke, f" {key_id}")

    def _send(self, method: str, act: Callable[[], Any], key_id: str = "") -> Response:
        """The response to a request. Raises Unauthorized, what C(act) raises, and the error of a planned fault."""
        request = (Request(method, "/api_keys", "request"), 1)
        self.account.sent.append(method + key_id)
        fault = self.account.before_request() if self.account.before_request else None
        if fault == "refused":
            raise Unreachable("not sent", *request, may_have_acted=False, transient=True)
        if fault == "error":
            raise StatusError("internal error", *request, 500)
        self.account.use(self.connection.api_key)
        json = act()
        if fault == "lost":
            raise Unreachable("response lost", *request, may_have_acted=True, transient=True)
        return Response(json, *request)
