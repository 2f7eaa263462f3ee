# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The event source follows the right projects, whatever happens to single lists of projects, on a clock that does not really sleep."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import (
    NotFound,
    StatusError,
)
from ansible_collections.clouddb.control.tests.unit.support.simulated_operations import (
    EventList,
    SimulatedOperation,
    SimulatedOperations,
    follow,
)


def account_with(number: int) -> SimulatedOperations:
    account = SimulatedOperations()
    for project in range(number):
        account.add_project(f"p{project}")
    return account


def start(account: SimulatedOperations, project: str, moment: float, seconds: float = 5.0) -> None:
    """Start an operation that takes C(seconds)."""
    statuses = [(moment, "running"), (moment + seconds, "finished")]
    account.add_operation(project, SimulatedOperation(f"{project}-{moment:g}", "create_branch", statuses))


def statuses(events: EventList) -> list[str]:
    return [event["clouddb"]["operation"]["status"] for _moment, event in events]


def polls(account: SimulatedOperations, project: str) -> int:
    return account.paths.count(f"/projects/{project}/operations")


def hide(account: SimulatedOperations, project: str, since: float, until: float) -> Any:
    """The project list lacks this project for some time."""
    page = SimulatedOperations._page

    def incomplete(self: SimulatedOperations, path: str, field: str, items: Any, *arguments: Any) -> Any:
        if field == "projects" and since < account.clock.elapsed < until:
            items = [item for item in items if item != project]
        return page(self, path, field, items, *arguments)

    return mock.patch.object(SimulatedOperations, "_page", incomplete)


@pytest.mark.parametrize("since", [75, 105])
def test_project_that_a_single_list_lacks_is_not_forgotten(since: float) -> None:
    account = account_with(3)
    start(account, "p1", 70.0, seconds=20.0)
    events = EventList(account.clock)
    with hide(account, "p1", since, since + 30):
        follow(account, 600, events)
    assert statuses(events) == ["finished"]


@pytest.mark.parametrize("ends", [1.0, 300.0])
def test_deleted_project_is_followed_until_its_operations_have_ended(ends: float) -> None:
    account = account_with(3)
    start(account, "p1", 70.0, seconds=ends)
    events = EventList(account.clock)
    with hide(account, "p1", 70, 9999):
        follow(account, 600, events)
        assert statuses(events)[-1] == "finished"
        sent = len(account.paths)
        follow(account, 600, events)
    assert "/projects/p1/operations" not in account.paths[sent:]


@pytest.mark.parametrize("moment", [40, 90])
def test_single_404_does_not_forget_a_listed_project(moment: int) -> None:
    account = account_with(3)
    start(account, "p1", 20.0)
    failed: list[str] = []

    def before_request(path: str) -> None:
        if path == "/projects/p1/operations" and account.clock.elapsed >= moment and not failed:
            failed.append(path)
            raise NotFound("not found", "GET", path, 1, "request", 404, {})

    account._before_request = before_request
    events = EventList(account.clock)
    follow(account, 600, events)
    assert failed
    assert statuses(events)[-1] == "finished"
    assert len(statuses(events)) == len(set(statuses(events)))


def test_project_with_unfinished_operations_that_is_gone_is_forgotten() -> None:
    account = account_with(3)
    start(account, "p1", 50.0, seconds=100_000.0)
    refused: list[float] = []

    def before_request(path: str) -> None:
        if path == "/projects/p1/operations" and account.clock.elapsed >= 100:
            refused.append(account.clock.elapsed)
            raise NotFound("not found", "GET", path, 1, "request", 404, {})

    account._before_request = before_request
    with hide(account, "p1", 100, 9999):
        follow(account, 2000, EventList(account.clock))
    assert refused and max(refused) < 200


@pytest.mark.parametrize("absence", [60, 600])
@pytest.mark.parametrize("restarts", [False, True])
def test_events_of_a_project_that_comes_back_are_not_repeated(tmp_path: Path, absence: float, restarts: bool) -> None:
    account = account_with(3)
    for name, moment in [("first", 91.0), ("second", 115.0), ("absent", 120.0 + absence / 2)]:
        statuses = [(moment, "running"), (moment + 10, "finished")]
        account.add_operation("p1", SimulatedOperation(name, "create_branch", statuses))
    state_file = str(tmp_path / f"{absence}-{restarts}.json")
    events = EventList(account.clock)
    with hide(account, "p1", 119, 119 + absence):
        for _run in range(2 if restarts else 1):
            follow(account, (absence + 2000) / (2 if restarts else 1), events, state_file=state_file)
    found = [
        (event["clouddb"]["operation"]["id"], event["clouddb"]["operation"]["status"]) for _moment, event in events
    ]
    assert len(set(found)) == len(found), found
    assert {name for name, status in found if status == "finished"} == {"first", "second", "absent"}, found


# Before the first list


def refuse(path: str, refused: str) -> None:
    if path == refused:
        raise status_error(503)


def test_projects_in_the_state_are_followed_before_they_are_listed(tmp_path: Path) -> None:
    account = account_with(50)
    state_file = str(tmp_path / "state.json")
    follow(account, 60, EventList(account.clock), state_file=state_file)
    account._before_request = lambda path: refuse(path, "/projects")
    start(account, "p1", 70.0)
    events = EventList(account.clock)
    follow(account, 120, events, state_file=state_file, page_size=10)
    assert statuses(events)[-1] == "finished"
    assert events[0][1]["clouddb"]["project"]["name"] == "p1"


@pytest.mark.parametrize("backfill", [0, 3600])
def test_restart_before_the_first_list_loses_nothing(tmp_path: Path, backfill: int) -> None:
    account = account_with(20)
    state_file = str(tmp_path / "state.json")
    start(account, "p0", -1000.0)
    start(account, "p2", -1.0)
    account._before_request = lambda path: refuse(path, "/projects" if len(account.paths) else "nothing")
    events = EventList(account.clock)
    follow(account, 10, events, state_file=state_file, page_size=10, backfill=backfill)
    start(account, "p1", 5.0)
    account.clock.elapsed += 100
    follow(account, 10, events, state_file=state_file, page_size=10)
    assert events == []
    account._before_request = lambda path: None
    follow(account, 100, events, state_file=state_file, page_size=10)
    projects = {event["clouddb"]["operation"]["project_id"] for _moment, event in events}
    assert projects == ({"p0", "p1", "p2"} if backfill else {"p1"})


# Pages that fail


def status_error(status: int) -> StatusError:
    return StatusError("It failed.", "GET", "/projects", 1, "request", status, {})


@pytest.mark.parametrize("failures, has_events", [(2, True), (3, False)])
def test_page_after_the_first_is_attempted_three_times(failures: int, has_events: bool) -> None:
    account = account_with(5)
    start(account, "p4", 10.0)
    sent: list[str] = []

    def before_request(path: str) -> None:
        sent.append(path)
        if path == "/projects" and 3 <= sent.count(path) < 3 + failures:
            raise status_error(503)

    account._before_request = before_request
    events = EventList(account.clock)
    follow(account, 3, events, page_size=1)
    assert (account.paths.count("/projects") == 6) is has_events
    assert (polls(account, "p4") > 0) is has_events


def test_list_that_always_fails_does_not_delay_projects_after_an_outage() -> None:
    account = account_with(100)
    start(account, "p50", 500.0)

    def before_request(path: str) -> None:
        if (path == "/projects" and account.clock.elapsed > 100) or 100 < account.clock.elapsed < 500:
            raise status_error(503)

    account._before_request = before_request
    events = EventList(account.clock)
    follow(account, 700, events)
    assert statuses(events) == ["finished"]
    assert events[0][0] < 600
