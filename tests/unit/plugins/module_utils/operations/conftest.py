# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fake clock, a client, and a simulated service."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._clock import Deadline
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.module_utils._http.connection import Connection
from ansible_collections.clouddb.control.tests.unit.plugins.module_utils.operations.simulated_service import (
    API_TIMEOUT,
    Service,
)
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def client(clock: FakeClock) -> Client:
    return Client(Connection("https://control.example.com/api/v2", "bearer-key", api_timeout=API_TIMEOUT), clock.clock)


@pytest.fixture
def service_of(clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Service]:
    """Create a service that every client is connected to."""

    def make(status: Callable[[str, float], str], **details: Any) -> Service:
        service = Service(clock, status, **details)

        def with_deadline(client: Client, deadline: Deadline, retries: bool = False) -> Client:
            service.remaining = deadline.remaining
            return client

        monkeypatch.setattr(Client, "get", lambda client, *segments, query=None: service.get(*segments, query=query))
        monkeypatch.setattr(Client, "with_deadline", with_deadline)
        return service

    return make
