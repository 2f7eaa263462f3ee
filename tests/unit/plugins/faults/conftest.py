# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A sandbox behind a proxy that injects errors, and a clock whose pauses take no time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.inventory import projects
from ansible_collections.clouddb.control.plugins.module_utils import _module
from ansible_collections.clouddb.control.plugins.module_utils._http.attempt import Attempt
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.module_utils._operations import wait
from ansible_collections.clouddb.control.tests.unit.plugins.faults.faulty_proxy import FaultyProxy, faulty_proxy
from ansible_collections.clouddb.control.tests.unit.plugins.faults.hostile_network import are_namespaces_permitted
from ansible_collections.clouddb.control.tests.unit.plugins.faults.instant_clock import InstantClock
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox, running_sandbox

# A skipped test counts as failed, and a container may not be allowed to build networks.
collect_ignore = [] if are_namespaces_permitted() else ["test_hostile_network.py"]


@pytest.fixture(autouse=True)
def time_for_the_last_poll(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fake clock is stopped, so LAST_POLL_SECONDS is real time; make it long enough."""
    monkeypatch.setattr(wait, "LAST_POLL_SECONDS", 60.0)


@pytest.fixture
def is_soak(request: pytest.FixtureRequest) -> bool:
    """Whether to test every case (--hypothesis-profile=soak), which takes long."""
    return bool(request.config.getoption("--hypothesis-profile", None) == "soak")


@pytest.fixture
def seed() -> dict[str, Any]:
    """The content of the account; test files override it."""
    return {}


@pytest.fixture
def sandbox(tmp_path_factory: pytest.TempPathFactory, seed: dict[str, Any]) -> Iterator[Sandbox]:
    with running_sandbox(tmp_path_factory.mktemp("sandbox"), **seed) as running:
        yield running


@pytest.fixture
def proxy(sandbox: Sandbox) -> Iterator[FaultyProxy]:
    with faulty_proxy(sandbox.base_url) as running:
        yield running


@pytest.fixture
def proxy_timeouts(proxy: FaultyProxy, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an attempt's time pass when the proxy says so, so that C(api_timeout) can be long enough for any machine."""
    join = Attempt.join

    def join_or_time_out(attempt: Attempt, timeout: float | None = None) -> None:
        until = time.monotonic() + (timeout or 0)
        while attempt.is_alive() and not proxy.timed_out.is_set() and time.monotonic() < until:
            join(attempt, 0.01)
        proxy.timed_out.clear()

    monkeypatch.setattr(Attempt, "join", join_or_time_out)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> InstantClock:
    """The clock of every module and of the inventory plugin."""
    instant = InstantClock()
    for file in (_module, projects):
        monkeypatch.setattr(file, "Client", partial(Client, clock=instant.clock))
    return instant
