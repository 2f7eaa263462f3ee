# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A proxy before the sandbox that injects errors, and a clock whose pauses take no time."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.inventory import projects
from ansible_collections.clouddb.control.plugins.module_utils import _module
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.module_utils._operations import wait
from ansible_collections.clouddb.control.tests.unit.plugins.faults.faulty_proxy import FaultyProxy
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import FakeClock
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox
from ansible_collections.clouddb.control.tests.unit.support.scripted_client import time_out_when_hanging
from ansible_collections.clouddb.control.tests.unit.support.scripted_service import scripted_service


@pytest.fixture(autouse=True)
def time_for_the_last_poll(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fake clock is stopped, so LAST_POLL_SECONDS is real time; make it long enough."""
    monkeypatch.setattr(wait, "LAST_POLL_SECONDS", 60.0)


@pytest.fixture
def proxy(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultyProxy]:
    """The proxy; an attempt's time passes when its reply hangs, so that C(api_timeout) can be long enough for any machine."""
    connect = socket.socket.connect

    def connecting(sock: socket.socket, address: Any) -> None:
        if address == running.address and running.refuses():
            raise ConnectionRefusedError(111, "Connection refused")
        connect(sock, address)

    with scripted_service(service_class=FaultyProxy) as running:
        running.application, running.responses = sandbox.application, []
        time_out_when_hanging(monkeypatch, running)
        monkeypatch.setattr(socket.socket, "connect", connecting)
        yield running


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    """The clock of every module and of the inventory plugin."""
    fake = FakeClock()
    for file in (_module, projects):
        monkeypatch.setattr(file, "Client", partial(Client, clock=fake.clock))
    return fake
