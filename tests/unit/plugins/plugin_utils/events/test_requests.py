# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which requests the event source sends, in which second, and when it saves its state, on a clock that does not really sleep."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import StatusError
from ansible_collections.clouddb.control.plugins.module_utils._untrusted import is_id
from ansible_collections.clouddb.control.plugins.plugin_utils._events.follower import PROJECT_LIST
from ansible_collections.clouddb.control.plugins.plugin_utils._events.state_file import StateFile
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


def test_projects_and_their_list_are_polled_every_max_interval() -> None:
    account = Account("a", "b")
    assert account.follow(60) == []
    a, b = f"{LIST}/a/operations", f"{LIST}/b/operations"
    assert [path for _moment, path in account.sent] == [LIST, LIST, a, b, LIST, a, b, LIST]
    assert account.seconds(LIST) == [0, 0, 30, 30]
    assert account.seconds("a") == account.seconds("b") == [0, 30]


@pytest.mark.parametrize(
    "project_ids, moments", [(["a"], [0, 1, 2, 30, 40, 50, 70, 80]), (["nobody"], [0, 1, 2, 30, 31, 32, 60, 61, 62])]
)
def test_list_takes_a_tenth_of_the_requests_unless_no_project_is_polled(
    project_ids: list[str], moments: list[float]
) -> None:
    account = Account("a", "b")
    account.follow(85, requests_per_minute=60, page_size=1, project_ids=project_ids)
    assert account.moments(LIST) == pytest.approx(moments, abs=0.001)


def test_one_poll_at_a_time_is_sent_during_an_outage_of_the_list_and_projects_in_turn() -> None:
    account = Account("a", "b", "c")
    account.fails = lambda moment, path: 100 < moment < 300
    account.follow(340)
    assert account.seconds(LIST)[8:] == [120, 128, 139, 161, 203, 263, 323, 323]
    assert [account.seconds(name)[4:] for name in "abc"] == [[120, 150, 293, 323], [120, 178, 323], [120, 233, 323]]


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


@pytest.mark.parametrize("hours", [-1, 0, 1])
@pytest.mark.parametrize("runs", [1, 2, 3])
def test_start_during_an_outage_with_a_clock_that_differs(tmp_path: Path, hours: int, runs: int) -> None:
    account = Account("a")
    account.fails = lambda moment, path: moment < 100
    for moment in (-1, 0, 50, 99):
        account.start("a", moment, seconds=0)
    events: list[str] = []
    for _run in range(runs):
        events += account.follow(
            200 / runs, state_file=str(tmp_path / f"{hours}-{runs}.json"), clock_ahead=timedelta(hours=hours)
        )
    assert events == ["a-0 finished", "a-50 finished", "a-99 finished"]


def test_list_whose_second_page_is_rejected_begins_anew() -> None:
    account = Account("a", "b")
    account.error_status = 404
    account.fails = lambda moment, path: len(account.sent) == 2
    account.follow(20, page_size=1)
    assert account.seconds(LIST) == [0, 0, 8, 8, 8]
    assert account.seconds("a") == [8]


def test_page_that_fails_is_fetched_after_pauses_that_grow_to_max_interval() -> None:
    account = Account("a")
    account.fails = lambda moment, path: path == LIST and 10 < moment < 200
    account.follow(250)
    assert account.seconds(LIST) == [0, 0, 30, 38, 49, 66, 91, 121, 151, 181, 211, 211, 241, 241]


# The change of second 40 is detected in second 100, which counts if its moment is unknown, or in the future.
@pytest.mark.parametrize(
    "updated_at, moments",
    [
        ("2026-11-21T08:00:40+00:00", [335, 340, 415, 508.75, 608.75]),
        ("2026-11-21T09:00:00+00:00", [395, 400, 475, 568.75, 668.75]),
        (None, [395, 400, 475, 568.75, 668.75]),
    ],
)
def test_interval_after_a_change_grows_with_the_time_since_then(updated_at: str | None, moments: list[float]) -> None:
    account = Account("a")
    account.start("a", 40.0, seconds=0.0)
    operation = account._operation

    def changed(project_id: str, each: SimulatedOperation) -> dict[str, Any]:
        return {**operation(project_id, each), "updated_at": updated_at}

    with mock.patch.object(account, "_operation", changed):
        account.follow(700, max_interval=100)
    assert account.moments("a")[-5:] == pytest.approx(moments, abs=0.1)


def test_deleted_project_is_polled_until_two_lists_lack_it() -> None:
    account = Account("a", "b")
    account.hidden = lambda moment: ("b",) if moment >= 100 else ()
    account.follow(300)
    assert account.seconds("b") == [0, 30, 60, 90, 120, 120, 150, 150]


def test_operations_of_a_project_that_is_listed_later_are_new_since_a_minute_before_the_third_to_last_list() -> None:
    account = Account("a", "b")
    account.hidden = lambda moment: ("b",) if moment < 200 else ()
    for moment in (0, 59, 60, 61, 179):
        account.start("b", moment, seconds=0.0)
    assert account.follow(250) == [f"b-{moment} finished" for moment in (60, 61, 179)]


@pytest.mark.parametrize("lacking", [1, 2])
@pytest.mark.parametrize("restarts", [False, True])
def test_new_project_that_the_next_lists_lack(tmp_path: Path, lacking: int, restarts: bool) -> None:
    account = Account("a", "b")
    account.hidden = lambda moment: ("b",) if moment < 300 * lacking + 10 else ()
    account.start("b", 20)
    state_file = str(tmp_path / f"{lacking}-{restarts}.json")
    events = account.follow(250, max_interval=300, state_file=state_file) if restarts else []
    assert events + account.follow(2000, max_interval=300, state_file=state_file) == ["b-20 finished"]


def test_project_that_the_service_cannot_list_is_followed_if_it_is_selected() -> None:
    account = Account("a", "b", "c")
    account.hidden = lambda moment: ("b", "c")
    account.unavailable = ["b", "c"]
    account.start("b", -1000)
    account.start("b", 45)
    assert account.follow(100, project_ids=["a", "b"]) == ["b-45 finished"]
    assert account.seconds("c") == []


@pytest.mark.parametrize("actions, has_fetched", [([], True), (["create_branch"], True), (["start_compute"], False)])
def test_unfinished_operations_with_other_actions_are_not_followed(actions: list[str], has_fetched: bool) -> None:
    account = Account("a")
    account.start("a", -1000, seconds=9999)
    for number in range(60):
        account.start("a", -900 + number, seconds=0, action="apply_config")
    account.follow(60, actions=actions or None)
    assert any(path.endswith("/a--1000") for _moment, path in account.sent) is has_fetched
    assert sorted(set(account.seconds("a")))[:4] == ([0, 5, 10, 15] if has_fetched else [0, 30])


def test_project_that_is_created_later_is_polled_before_idle_ones() -> None:
    account = Account(*(f"p{number}" for number in range(1000)))
    account.hidden = lambda moment: ("p999",) if moment < 240 else ()
    account.follow(400, requests_per_minute=600)
    # The list is complete after its fourth page of second 246.
    assert account.seconds("p999")[0] == 248


def test_project_that_the_first_list_after_a_restart_lacks_is_not_forgotten(tmp_path: Path) -> None:
    account = Account("a", "b")
    state_file = str(tmp_path / "state.json")
    account.start("b", 20, seconds=0)
    assert account.follow(40, state_file=state_file) == ["b-20 finished"]
    account.hidden = lambda moment: ("b",) if moment < 60 else ()
    account.sent.clear()
    assert account.follow(60, state_file=state_file, project_ids=["b"]) == []
    assert account.sent[0][1] == LIST
    assert account.seconds("a") == []


def test_name_of_the_project_list_is_no_project_id() -> None:
    assert not is_id(PROJECT_LIST)


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
    started: list[str] = []

    async def in_thread(function: Any, name: str) -> Any:
        if name == PROJECT_LIST:
            return await call(function, name)
        started.append(name)
        if len(started) == 4:
            raise asyncio.CancelledError
        return await asyncio.Event().wait()

    follow(Account(*"abcdef"), 60, EventList(Account().clock), in_thread=in_thread)
    assert started == ["a", "b", "c", "d"]


def test_state_is_saved_when_idle_or_once_a_second(tmp_path: Path) -> None:
    account = Account("a", "b")
    for number in range(3):
        account.start("a", 12 + number, seconds=0)
        account.start("b", 12 + number, seconds=0)
    saved: list[float] = []
    write = StateFile.write

    def note(file: StateFile, content: dict[str, Any]) -> None:
        saved.append(round(account.clock.elapsed, 1))
        write(file, content)

    with mock.patch.object(StateFile, "write", note):
        account.follow(60, state_file=str(tmp_path / "state.json"))
    assert saved == [0, 0, 30, 30, 60]


def test_state_that_cannot_be_saved_is_saved_every_second(tmp_path: Path) -> None:
    account = Account("a")
    attempts: list[float] = []

    def fail(file: StateFile, content: dict[str, Any]) -> None:
        attempts.append(round(account.clock.elapsed, 1))
        if len(attempts) > 1:
            raise OSError(28, "No space left on device")

    with mock.patch.object(StateFile, "write", fail):
        account.follow(31, state_file=str(tmp_path / "state.json"))
    assert list(map(round, attempts[:30])) == [0, *range(29)]
    assert account.seconds("a") == [0, 30]


def test_state_of_version_1_0_0_is_usable(tmp_path: Path) -> None:
    account = Account("a")
    file = tmp_path / "state.json"
    account.follow(10, state_file=str(file))
    state = json.loads(file.read_text())
    del state["listed"]
    file.write_text(json.dumps(state))
    account.start("a", 15, seconds=0)
    assert account.follow(60, state_file=str(file)) == ["a-15 finished"]


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
