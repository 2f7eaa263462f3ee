# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A sandbox behind a bad wire, and a clock in a hurry."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.inventory import projects
from ansible_collections.clouddb.control.plugins.module_utils import _module as module_run
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.tests.unit.plugins.faults.hasty_clock import HastyClock
from ansible_collections.clouddb.control.tests.unit.plugins.faults.wire import Wire, wire_to
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox, running_sandbox


@pytest.fixture
def seed() -> dict[str, Any]:
    """What the account holds; test files replace it."""
    return {}


@pytest.fixture
def sandbox(tmp_path_factory: pytest.TempPathFactory, seed: dict[str, Any]) -> Iterator[Sandbox]:
    with running_sandbox(tmp_path_factory.mktemp("sandbox"), **seed) as running:
        yield running


@pytest.fixture
def wire(sandbox: Sandbox) -> Iterator[Wire]:
    with wire_to(sandbox.base_url) as carrying:
        yield carrying


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> HastyClock:
    """Lets every module and the inventory plugin go by a clock whose pauses take no time."""
    hasty = HastyClock()
    for user in (module_run, projects):
        monkeypatch.setattr(user, "Client", partial(Client, clock=hasty.clock))
    return hasty
