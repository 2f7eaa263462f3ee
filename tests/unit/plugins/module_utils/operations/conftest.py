# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fake clock, a client, and a simulated service."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.clouddb.control.tests.unit.plugins.module_utils.operations.simulated_service import (
    Service,
    ServiceClient,
)
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def client(clock: FakeClock) -> ServiceClient:
    return ServiceClient(clock)


@pytest.fixture
def service_of(clock: FakeClock, client: ServiceClient) -> Callable[..., Service]:
    """Create a service that the client is connected to."""

    def make(status: Callable[[str, float], str], **details: Any) -> Service:
        client.service = Service(clock, status, **details)
        return client.service

    return make
