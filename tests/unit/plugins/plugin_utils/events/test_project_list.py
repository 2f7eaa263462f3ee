# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The event source follows the right projects, whatever happens to single lists of projects, on a clock that does not really sleep."""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import NotFound
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
            items = [item for item in items if item["id"] != project]
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


def test_deleted_project_without_operations_is_forgotten() -> None:
    account = account_with(3)
    with hide(account, "p1", 100, 9999):
        follow(account, 2000, EventList(account.clock))
    assert polls(account, "p1") <= 2 + 160 / 30


@pytest.mark.parametrize("moment", range(30, 120, 10))
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
