# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A sandbox with two projects, a client of it, and a clock for main()."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils import _module
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.module_utils._http.connection import Connection
from ansible_collections.clouddb.control.plugins.module_utils._operations import wait, waiting
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import FakeClock
from ansible_collections.clouddb.control.tests.unit.support.resource_task import SHOP
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox


@pytest.fixture(autouse=True)
def time_for_the_last_poll(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fake clock is stopped, so LAST_POLL_SECONDS is real time; make it long enough."""
    monkeypatch.setattr(wait, "LAST_POLL_SECONDS", 60.0)
    monkeypatch.setattr(waiting, "LAST_POLL_SECONDS", 60.0)


@pytest.fixture
def seed() -> dict[str, Any]:
    return {"projects": [{"id": SHOP, "name": "shop"}, {"id": "red-moon-34567890", "name": "blog"}]}


@pytest.fixture
def client(sandbox: Sandbox, clock: FakeClock) -> Client:
    return Client(Connection(sandbox.base_url, sandbox.api_key), clock.clock)


@pytest.fixture
def no_delays(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    """The clock of every main(); its pauses take no time."""
    fake = FakeClock()
    monkeypatch.setattr(_module, "Client", partial(Client, clock=fake.clock))
    return fake
