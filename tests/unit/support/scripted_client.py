# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A client of a scripted service, with a clock whose pauses take no time."""

from __future__ import annotations

import time
from typing import Any, Callable, NamedTuple

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._http.attempt import Attempt
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.module_utils._http.connection import Connection
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import FakeClock
from ansible_collections.clouddb.control.tests.unit.support.scripted_service import (
    Reply,
    Request,
    ScriptedService,
    reply,
)

API_KEY = "secret-of-the-client-0123456789abcdef"

# A request of each method.
METHODS: dict[str, Callable[[Client], Any]] = {
    "GET": lambda client: client.get("api_keys"),
    "POST": lambda client: client.post("api_keys", body={"key_name": "ci"}),
    "DELETE": lambda client: client.delete("api_keys", 7),
}
each_method = pytest.mark.parametrize("method", METHODS)


class Scripted(NamedTuple):
    """A service that follows a script, a client of it and the client's clock."""

    service: ScriptedService
    client: Client
    clock: FakeClock

    @property
    def requests(self) -> list[Request]:
        return self.service.requests

    @property
    def targets(self) -> list[str]:
        """The targets of the requests in order, without the base path and still encoded."""
        return [request.target.replace("/api/v2", "", 1) for request in self.requests]


# serve(*script, **options): options are those of a Connection, and tls.
Serve = Callable[..., Scripted]


def scripted(service: ScriptedService, **options: Any) -> Scripted:
    """A client of this service; C(options) are those of a Connection."""
    clock = FakeClock()
    connection = Connection(**{"base_url": service.base_url, "api_key": API_KEY, **options})
    return Scripted(service, Client(connection, clock.clock), clock)


def page(field: str, items: list[dict[str, Any]], cursor: str | None = None, **headers: Any) -> Reply:
    """One page of a paged list; without a cursor it has no pagination."""
    return reply({field: items, **({"pagination": {"cursor": cursor}} if cursor else {})}, **headers)


def time_out_when(monkeypatch: pytest.MonkeyPatch, is_time_up: Callable[[], bool]) -> None:
    """Let C(api_timeout) of each attempt pass as soon as C(is_time_up), and not before, also on a busy machine."""
    join = Attempt.join

    def join_until(attempt: Attempt, timeout: float | None = None) -> None:
        until = time.monotonic() + (timeout or 0)
        while attempt.is_alive() and not is_time_up() and time.monotonic() < until:
            join(attempt, 0.01)

    monkeypatch.setattr(Attempt, "join", join_until)


def time_out_when_hanging(monkeypatch: pytest.MonkeyPatch, service: ScriptedService) -> None:
    """Let C(api_timeout) of an attempt pass as soon as the service's reply hangs."""

    # Each hanging reply counts once.
    time_out_when(monkeypatch, lambda: service.hanging.is_set() and not service.hanging.clear())
