# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A sandbox for each test, a clock that also advances the sandbox's clock, and a client that uses both."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils import _module
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.module_utils._http.connection import Connection
from ansible_collections.clouddb.control.plugins.module_utils._operations import wait
from ansible_collections.clouddb.control.plugins.module_utils._resources import engine
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import FakeClock
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox, running_sandbox


@pytest.fixture(autouse=True)
def time_for_the_last_poll(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fake clock is stopped, so LAST_POLL_SECONDS is real time; make it long enough."""
    monkeypatch.setattr(wait, "LAST_POLL_SECONDS", 60.0)
    monkeypatch.setattr(engine, "LAST_POLL_SECONDS", 60.0)


@pytest.fixture
def seed() -> dict[str, Any]:
    """The content of the account; test files override it."""
    return {}


@pytest.fixture
def sandbox(tmp_path_factory: pytest.TempPathFactory, seed: dict[str, Any]) -> Iterator[Sandbox]:
    with running_sandbox(tmp_path_factory.mktemp("sandbox"), **seed) as running:
        yield running


@pytest.fixture
def clock(sandbox: Sandbox) -> FakeClock:
    """A clock whose pauses take no time and advance the sandbox's clock."""
    return FakeClock(on_sleep=sandbox.advance)


@pytest.fixture
def client(sandbox: Sandbox, clock: FakeClock) -> Client:
    return Client(Connection(sandbox.base_url, sandbox.api_key), clock.clock)


@pytest.fixture
def no_delays(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    """The clock of every main(); its pauses take no time."""
    fake = FakeClock()
    monkeypatch.setattr(_module, "Client", partial(Client, clock=fake.clock))
    return fake
