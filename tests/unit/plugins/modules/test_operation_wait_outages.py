# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""operation_wait against the sandbox with a service that is down, and with incorrect clocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._clock import Clock
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.module_utils._http.connection import Connection
from ansible_collections.clouddb.control.plugins.module_utils._operations.wait_failure import WaitFailed
from ansible_collections.clouddb.control.plugins.modules import operation_wait
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import FakeClock
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox

SHOP = "wispy-lake-12345678"
SECONDS_DOWN = 60.0
PROJECTS, OPERATIONS = 20, 25
DEFAULTS = {
    "operations": None,
    "project_id": None,
    "operation_id": None,
    "lookback": 86400.0,
    "timeout": 300.0,
    "interval": 5.0,
}


def task(client: Client, **options: Any) -> dict[str, Any]:
    return operation_wait.run({**DEFAULTS, "failed_grace": 0.0, "workers": 4, **options}, client, False)


def statuses(result: dict[str, Any]) -> Counter[str]:
    return Counter(operation["status"] for operation in result["operations"])


def operation_seed(name: str, *timeline: tuple[float, str], age: float = 0) -> dict[str, Any]:
    return {"id": name, "action": "start_compute", "age": float(age), "timeline": [(0, "scheduling"), *timeline]}


@pytest.fixture
def seed() -> dict[str, Any]:
    return {
        "projects": [
            {"id": SHOP, "compute": False, "operations": [operation_seed("slow", (90, "running"), (100, "finished"))]}
        ]
    }


AN_OPERATION = {"project_id": SHOP, "operation_id": ["slow"]}
A_PROJECT = {"project_id": SHOP}


@pytest.mark.parametrize(
    ("fault", "options"),
    [
        ({"kind": "status", "status": 503}, A_PROJECT),
        ({"kind": "status", "status": 502, "body": "<html>", "skip": 2}, AN_OPERATION),
        ({"kind": "truncate"}, A_PROJECT),
    ],
    ids=["503", "502 after a while", "truncated"],
)
def test_an_outage_of_a_minute_is_retried(sandbox: Sandbox, fault: dict[str, Any], options: dict[str, Any]) -> None:
    def sleep(seconds: float) -> None:
        sandbox.advance(seconds)
        if clock.elapsed >= SECONDS_DOWN:
            sandbox.control("DELETE", "/faults")

    clock = FakeClock(on_sleep=sleep)
    sandbox.fault(**fault, times=None)

    result = task(Client(Connection(sandbox.base_url, sandbox.api_key), clock.clock), **options)

    assert statuses(result) == {"finished": 1}
    assert 100 <= clock.elapsed <= 105
    unsuccessful = [
        request for request in sandbox.requests() if request["status"] != 200 or fault["kind"] == "truncate"
    ]
    assert 10 < len(unsuccessful) < 40


FAILING = {
    "projects": [
        {
            "id": SHOP,
            "compute": False,
            "operations": [operation_seed("before", (30, "failed"), age=90), operation_seed("during", (0.1, "failed"))],
        }
    ]
}


@pytest.mark.parametrize("seed", [FAILING], ids=["two that fail"])
@pytest.mark.parametrize("failed_polls", [1, 6], ids=["one failed poll", "several failed polls"])
def test_operations_that_failed_before_the_first_list_but_after_the_call_are_reported(
    sandbox: Sandbox, failed_polls: int
) -> None:
    sandbox.fault("status", status=502, times=failed_polls)
    clock = FakeClock(on_sleep=sandbox.advance)
    with pytest.raises(WaitFailed, match="1 of 1 operation failed") as error:
        task(Client(Connection(sandbox.base_url, sandbox.api_key), clock.clock), project_id=SHOP)
    # The other one had failed before the call.
    assert error.value.result["failed_ids"] == ["during"]


OLD_AND_YOUNG = {
    "projects": [
        {
            "id": SHOP,
            "compute": False,
            "operations": [
                operation_seed("old", (10_000, "finished"), age=7200),
                operation_seed("young", (110, "finished"), age=100),
            ],
        }
    ]
}


def shifted_clock(clock: FakeClock, hours: Callable[[], float]) -> Clock:
    """The same clock on a machine whose time of day is wrong."""
    return clock.clock._replace(utcnow=lambda: clock.clock.utcnow() + timedelta(hours=hours()))


@pytest.mark.parametrize("hours", [-30, 7])
@pytest.mark.parametrize("seed", [OLD_AND_YOUNG], ids=["old and young"])
def test_setting_the_clock_during_the_wait_has_no_effect(sandbox: Sandbox, clock: FakeClock, hours: float) -> None:
    client = Client(
        Connection(sandbox.base_url, sandbox.api_key),
        shifted_clock(clock, lambda: hours if len(clock.pauses) > 2 else -hours),
    )
    result = task(client, project_id=SHOP, lookback=3600.0)
    assert statuses(result) == {"finished": 1}
    assert result["elapsed"] == pytest.approx(clock.elapsed, abs=0.001)
    assert 10 <= clock.elapsed <= 15
