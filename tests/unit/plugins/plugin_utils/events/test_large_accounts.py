# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The event source with more projects than it can poll every max_interval, on a clock that does not really sleep."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import StatusError
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.plugin_utils._events.options import source_options
from ansible_collections.clouddb.control.plugins.plugin_utils._events.rate_limit import RateLimitedClient
from ansible_collections.clouddb.control.tests.unit.support.simulated_operations import (
    CONNECTION,
    EventList,
    SimulatedOperation,
    SimulatedOperations,
    follow,
)

NUMBER = 1000


def account_with(
    number: int, has_hints: bool = False, before_request: Callable[[str], None] = lambda path: None
) -> SimulatedOperations:
    account = SimulatedOperations(before_request, has_hints)
    for project in range(number):
        account.add_project(f"p{project}")
        account.add_operation(
            f"p{project}", SimulatedOperation(f"o{project}", "create_timeline", [(-100_000, "finished")])
        )
    return account


def polled(account: SimulatedOperations) -> list[str]:
    """The projects in the order in which they were polled."""
    return [path.split("/")[2] for path in account.paths if path.endswith("/operations")]


def start(account: SimulatedOperations, project: str, moment: float, seconds: float = 20.0) -> None:
    """Start an operation that takes C(seconds)."""
    statuses = [(moment, "running"), (moment + seconds, "finished")]
    account.add_operation(project, SimulatedOperation(f"{project}-{moment:g}", "create_branch", statuses))


def delays(account: SimulatedOperations, events: EventList, project: str) -> list[float]:
    """The seconds from each change to its event."""
    statuses = {
        (operation.id, status): moment
        for operation in account.operations[project]
        for moment, status in operation.statuses
    }
    found = [(moment, event["clouddb"]["operation"]) for moment, event in events]
    return [moment - statuses[each["id"], each["status"]] for moment, each in found if each["project_id"] == project]


def test_first_round_begins_with_the_latest_updated_projects() -> None:
    account = account_with(NUMBER)
    for number, project in enumerate(("p7", "p700", "p70")):
        account.projects[project]["updated_at"] = f"2026-11-21T08:00:0{number}Z"
    follow(account, 120, EventList(account.clock))
    order = polled(account)
    assert order[:3] == ["p70", "p700", "p7"]
    assert len(set(order)) == NUMBER


def test_restart_begins_with_unfinished_operations(tmp_path: Path) -> None:
    account = account_with(50)
    state_file = str(tmp_path / "state.json")
    start(account, "p30", 50.0, seconds=600)
    events = EventList(account.clock)
    follow(account, 200, events, state_file=state_file)
    account.paths.clear()
    follow(account, 10, events, state_file=state_file)
    assert polled(account)[0] == "p30"


@pytest.mark.parametrize(("has_hints", "shortest", "longest"), [(True, 0, 45), (False, 0, 130)])
def test_first_operation_of_an_idle_project(has_hints: bool, shortest: float, longest: float) -> None:
    """With hints, the project list shows which project has changed."""
    account = account_with(NUMBER, has_hints)
    # It is polled just before that, and a round takes 100 s.
    start(account, "p500", 460.0)
    events = EventList(account.clock)
    follow(account, 600, events)
    first, *_others = delays(account, events, "p500")
    assert shortest <= first <= longest


def test_retry_after_applies_to_all_requests() -> None:
    account = account_with(40)
    sent: list[float] = []

    def before_request(path: str) -> None:
        sent.append(account.clock.elapsed)
        if len(sent) == 20:
            error = StatusError("too many requests", "GET", path, 1, "request", 429, {})
            error.retry_after = 20.0
            raise error

    account._before_request = before_request
    client = RateLimitedClient(source_options({**CONNECTION}, {}).connection, account.clock.clock, 600)
    with mock.patch.object(Client, "get", lambda self, *segments, query=None: account.get(segments, query)):
        for _attempt in range(19):
            client.get("projects")
        with pytest.raises(StatusError):
            client.get("projects")
        client.get("projects")
    assert sent[20] - sent[19] >= 20


def test_project_that_is_deleted_during_a_poll_is_polled_again() -> None:
    account = account_with(4)
    events = EventList(account.clock)
    is_deleted = asyncio.Event()
    asyncio_wait = asyncio.wait

    async def in_thread(function: Callable[[str], Any], name: str) -> Any:
        result = function(name)
        if name == "p1" and account.clock.elapsed >= 60 and "p1" in account.projects:
            # The response arrives after the next list.
            start(account, "p1", account.clock.elapsed + 0.1, seconds=3.0)
            del account.projects["p1"]
            await is_deleted.wait()
        elif name == "" and result is not None and "p1" not in account.projects:
            asyncio.get_running_loop().call_later(0.05, is_deleted.set)
        return result

    async def wait(polls: Any, timeout: float | None = None, **options: Any) -> Any:
        ended, running = await asyncio_wait(polls, timeout=0.1, **options)
        if not ended and timeout:
            account.clock.elapsed += timeout
        return ended, running

    with mock.patch.object(asyncio, "wait", wait):
        follow(account, 300, events, in_thread=in_thread)
    assert [event["clouddb"]["operation"]["status"] for _moment, event in events] == ["finished"]


def test_busy_projects_are_detected_within_ten_seconds() -> None:
    """They have an operation every five minutes."""
    account = account_with(NUMBER)
    for project in ("p1", "p400", "p999"):
        for number in range(10):
            start(account, project, 150.0 + number * 290)
    events = EventList(account.clock)
    follow(account, 3200.0, events)
    for project in ("p1", "p400", "p999"):
        later = delays(account, events, project)[3:]
        assert len(later) > 10
        assert max(later) < 10


def test_updated_at_that_always_changes_is_no_hint() -> None:
    account = account_with(10)
    ticks = itertools.count()
    with mock.patch.object(
        SimulatedOperations,
        "_project",
        lambda self, project_id: {**self.projects[project_id], "updated_at": str(next(ticks))},
    ):
        follow(account, 600, EventList(account.clock))
    # One hint each, besides a poll every 30 seconds.
    assert 10 * 20 <= len(polled(account)) <= 10 * 22
