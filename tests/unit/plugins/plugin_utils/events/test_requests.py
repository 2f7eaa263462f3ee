# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which requests the event source sends, in which second, and when it saves its state, on a clock that does not really sleep."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import StatusError
from ansible_collections.clouddb.control.plugins.plugin_utils._events.checkpoint import Checkpoint
from ansible_collections.clouddb.control.plugins.plugin_utils._events.follower import PROJECT_LIST
from ansible_collections.clouddb.control.tests.unit.support.simulated_operations import (
    EventList,
    SimulatedOperation,
    SimulatedOperations,
    call,
    follow,
)

LIST = "/projects"


class Account(SimulatedOperations):
    """An account with these projects; C(sent) are the requests, each with its moment."""

    def __init__(self, *projects: str) -> None:
        super().__init__(self._note)
        self.sent: list[tuple[float, str]] = []
        # Whether the requests of this second fail, and the projects that the list lacks then.
        self.fails: Callable[[float, str], bool] = lambda moment, path: False
        self.error_status = 503
        self.hidden: Callable[[float], tuple[str, ...]] = lambda moment: ()
        self.unavailable: list[str] = []
        for project in projects:
            self.add_project(project)

    def start(self, project: str, moment: float, seconds: float = 5.0, action: str = "create_branch") -> None:
        """Start an operation that takes C(seconds)."""
        statuses = [(moment, "running"), (moment + seconds, "finished")]
        self.add_operation(project, SimulatedOperation(f"{project}-{moment:g}", action, statuses))

    def follow(self, seconds: float, requests_per_minute: int = 60_000, **args: Any) -> list[str]:
        """Run the event source for C(seconds); the events, each as C(OPERATION STATUS)."""
        events = EventList(self.clock)
        follow(self, seconds, events, requests_per_minute=requests_per_minute, **args)
        operations = [event["clouddb"]["operation"] for _moment, event in events]
        return [f"{operation['id']} {operation['status']}" for operation in operations]

    def moments(self, name: str) -> list[float]:
        """When the operations of a project were listed, or with LIST the projects."""
        path = LIST if name == LIST else f"{LIST}/{name}/operations"
        return [moment for moment, sent in self.sent if sent == path]

    def seconds(self, name: str) -> list[int]:
        return list(map(round, self.moments(name)))

    def _note(self, path: str) -> None:
        self.sent.append((self.clock.elapsed, path))
        if self.fails(self.clock.elapsed, path):
            raise StatusError("It failed.", "GET", path, 1, "request", self.error_status, {})

    def _page(self, path: str, field: str, items: Any, *arguments: Any) -> Any:
        if path == LIST:
            items = [item for item in items if item not in self.hidden(self.clock.elapsed)]
        response = super()._page(path, field, items, *arguments)
        if path == LIST:
            response.json["unavailable_project_ids"] = self.unavailable
        return response


def test_list_pauses_for_three_times_as_long_as_it_takes() -> None:
    account = Account(*map(str, range(19)))
    account.follow(170, requests_per_minute=60, page_size=1, project_ids=["nobody"])
    assert account.moments(LIST)[:45] == pytest.approx([*range(20), *range(76, 96), *range(152, 157)], abs=0.01)


def test_operations_are_new_since_the_start_if_it_is_during_an_outage(caplog: pytest.LogCaptureFixture) -> None:
    account = Account("a")
    account.fails = lambda moment, path: moment < 100
    for moment in (-1, 0, 50):
        account.start("a", moment, seconds=0)
    assert account.follow(200) == ["a-0 finished", "a-50 finished"]
    assert caplog.messages == [
        "Polling failed. It is retried until it succeeds. It failed.",
        "Polling succeeds again, after 121 s.",
    ]


# The change of second 40 is detected in second 100, which counts if its moment is unknown, or in the future.
def test_deleted_project_is_polled_until_two_lists_lack_it() -> None:
    account = Account("a", "b")
    account.hidden = lambda moment: ("b",) if moment >= 100 else ()
    account.follow(300)
    assert account.seconds("b") == [0, 30, 60, 90, 120, 150]


def test_operations_of_a_project_that_is_listed_later_are_new_since_five_minutes_before_the_previous_list() -> None:
    account = Account("a", "b")
    account.hidden = lambda moment: ("b",) if moment < 700 else ()
    for moment in (0, 389, 391, 699):
        account.start("b", moment, seconds=0.0)
    assert account.follow(750) == [f"b-{moment} finished" for moment in (391, 699)]


def test_response_that_takes_long_delays_neither_its_events_nor_other_projects() -> None:
    account = Account("a", "b")
    events = EventList(account.clock)
    asyncio_wait = asyncio.wait

    async def in_thread(function: Any, name: str) -> Any:
        if name == "a" and account.clock.elapsed < 100:
            while account.clock.elapsed < 70:
                await asyncio.sleep(0)
            account.start("a", 70, seconds=0)
        return await call(function, name)

    async def wait(polls: Any, timeout: float | None = None, **options: Any) -> Any:
        ended, running = await asyncio_wait(polls, timeout=0.001, **options)
        if not ended:
            assert timeout is not None
            account.clock.elapsed += timeout
        return ended, running

    with mock.patch.object(asyncio, "wait", wait):
        follow(account, 95, events, in_thread=in_thread, requests_per_minute=60_000)
    assert account.seconds("b") == [0, 30, 60, 90]
    assert [round(moment) for moment, _event in events] == [90]


def test_four_polls_run_at_the_same_time() -> None:
    account = Account(*"abcdef")
    started: list[str] = []

    async def in_thread(function: Any, name: str) -> Any:
        if name == PROJECT_LIST:
            return await call(function, name)
        started.append(name)
        account.clock.elapsed += 1
        if len(started) == 4:
            raise asyncio.CancelledError
        return await asyncio.Event().wait()

    follow(account, 60, EventList(account.clock), in_thread=in_thread)
    assert started == ["a", "b", "c", "d"]


def test_state_is_saved_when_idle_or_once_a_second(tmp_path: Path) -> None:
    account = Account("a", "b")
    for number in range(3):
        account.start("a", 12 + number, seconds=0)
        account.start("b", 12 + number, seconds=0)
    saved: list[float] = []

    def note(checkpoint: Checkpoint, content: Any) -> None:
        saved.append(round(account.clock.elapsed, 1))

    with mock.patch.object(Checkpoint, "_write", note):
        account.follow(60, state_file=str(tmp_path / "state.json"))
    assert set(map(round, saved)) == {0, 30, 60}
    assert len(saved) <= 8


def test_warnings_about_the_arguments_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    Account("a").follow(60, project_ids=["a", "y", "x"], actions=["create_brnach"], statuses=["faild"])
    messages = [
        "actions: 'create_brnach' is unknown to this collection, and may never occur. Known values are "
        "apply_config, apply_storage_config, check_availability, create_branch, create_timeline, delete_tenant, start_compute, "
        "suspend_compute.",
        "statuses: 'faild' is unknown to this collection, and may never occur. Known values are cancelled, "
        "cancelling, error, failed, finished, running, scheduling, skipped.",
        "project_ids: The account has no project x, y at present.",
    ]
    assert caplog.record_tuples == [("clouddb.control.operations", logging.WARNING, message) for message in messages]
