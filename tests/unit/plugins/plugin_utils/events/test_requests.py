# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which requests the event source sends, in which second, and when it saves its state, on a clock that does not really sleep."""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._http.errors import StatusError
from ansible_collections.clouddb.control.plugins.plugin_utils._events import follower
from ansible_collections.clouddb.control.plugins.plugin_utils._events.follower import PROJECT_LIST
from ansible_collections.clouddb.control.plugins.plugin_utils._events.rate_limit import PacedClient
from ansible_collections.clouddb.control.tests.unit.support.simulated_operations import (
    EVER,
    LIST,
    Account,
    call,
    polls_in_parallel,
)


def test_list_pauses_for_three_times_as_long_as_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    account = Account(*map(str, range(19)))
    # No project is polled.
    monkeypatch.setattr(follower, "is_selected", lambda *_arguments: False)
    account.follow(170, requests_per_minute=60, page_size=1)
    assert account.moments(LIST)[:45] == pytest.approx([*range(20), *range(76, 96), *range(152, 157)], abs=0.01)


@pytest.mark.parametrize("clock_is_set_at", [50, EVER])
@pytest.mark.parametrize("clock_ahead", [timedelta(0), timedelta(hours=1), timedelta(hours=-1)])
def test_operations_are_new_since_the_start_if_it_is_during_an_outage(
    caplog: pytest.LogCaptureFixture, clock_ahead: timedelta, clock_is_set_at: float
) -> None:
    account = Account("a")
    account.fault = lambda moment, path: 503 if moment < 100 else None
    for moment in (-1, 0, 50):
        account.start("a", moment, seconds=0)
    emitted = account.follow(200, clock_ahead=clock_ahead, clock_is_set_at=clock_is_set_at)
    assert emitted == ["a-0 finished", "a-50 finished"]
    assert caplog.messages == [
        "Polling failed. It is retried until it succeeds. It failed.",
        "Polling succeeds again, after 121 s.",
    ]


def test_deleted_project_is_polled_until_two_lists_lack_it() -> None:
    account = Account("a", "b")
    account.hidden["b"] = (100, EVER)
    account.follow(300)
    assert list(map(round, account.moments("b"))) == [0, 30, 60, 90, 120, 150]


def test_response_that_takes_long_delays_neither_its_events_nor_other_projects() -> None:
    account = Account("a", "b")

    async def in_thread(function: Any, name: str) -> Any:
        if name == "a" and account.clock.elapsed < 100:
            while account.clock.elapsed < 70:
                await asyncio.sleep(0)
            account.start("a", 70, seconds=0)
        return await call(function, name)

    with polls_in_parallel(account):
        account.follow(95, in_thread=in_thread)
    assert list(map(round, account.moments("b"))) == [0, 30, 60, 90]
    assert [round(moment) for moment, _event in account.emitted] == [90]


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

    account.follow(60, in_thread=in_thread)
    assert started == ["a", "b", "c", "d"]


def test_retry_after_applies_to_all_requests() -> None:
    account = Account("p")
    account.fault = lambda moment, path: (429, 20.0) if len(account.sent) == 3 else None
    client = PacedClient(account.client().connection, account.clock.clock, 600)
    with account.serving():
        for _request in range(2):
            client.get("projects")
        with pytest.raises(StatusError):
            client.get("projects")
        client.get("projects", "p", "operations")
    assert [moment for moment, _path in account.sent] == pytest.approx([0, 0.1, 0.2, 20.2])


def test_first_round_begins_with_the_latest_updated_projects() -> None:
    account = Account(*(f"p{number}" for number in range(1000)))
    for number, project in enumerate(("p7", "p700", "p70")):
        account.projects[project]["updated_at"] = f"2026-11-21T08:00:0{number}Z"
    account.follow(120, requests_per_minute=600)
    assert account.polled()[:3] == ["p70", "p700", "p7"]
    assert len(set(account.polled())) == 1000


def test_restart_begins_with_unfinished_operations(tmp_path: Path) -> None:
    account = Account(*(f"p{number}" for number in range(50)))
    state_file = str(tmp_path / "state.json")
    account.start("p30", 50, seconds=600)
    account.follow(200, state_file=state_file)
    account.sent.clear()
    account.follow(10, state_file=state_file)
    assert account.polled()[0] == "p30"


@pytest.mark.parametrize(("has_hints", "longest"), [(True, 45), (False, 130)])
def test_first_operation_of_an_idle_project(has_hints: bool, longest: float) -> None:
    """With hints, the project list shows which project has changed."""
    account = Account(*(f"p{number}" for number in range(200)), has_hints=has_hints)
    # It is polled just before that, and a round takes 100 s.
    account.start("p100", 470, seconds=20)
    account.follow(600, requests_per_minute=120)
    assert account.delays("p100")[0] <= longest


def test_updated_at_that_always_changes_is_no_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    """Busy projects would be delayed by all the others."""
    account = Account(*(f"p{number}" for number in range(250)))
    ticks = itertools.count()
    monkeypatch.setattr(account, "_project", lambda each: {**account.projects[each], "updated_at": str(next(ticks))})
    for number in range(20):
        account.start("p0", 10 + 30 * number)
    account.follow(600, requests_per_minute=150)
    assert max(account.delays("p0")[20:]) < 10


def test_state_is_saved_when_idle_or_once_a_second(tmp_path: Path) -> None:
    account = Account("a", "b")
    for moment in (12, 13, 14):
        for project in "ab":
            account.start(project, moment, seconds=0)
    replace, saved = os.replace, []

    def noting(source: str, path: str) -> None:
        saved.append(round(account.clock.elapsed, 1))
        replace(source, path)

    with mock.patch.object(os, "replace", noting):
        account.follow(60, state_file=str(tmp_path / "state.json"))
    assert set(map(round, saved)) == {0, 30, 60}
    assert len(saved) <= 8


def test_warnings_about_the_arguments_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    Account("a").follow(60, project_ids=["a", "y", "x"], actions=["delete_timeline"], statuses=["deferred"])
    messages = [
        "actions: 'delete_timeline' is unknown to this collection, and may never occur. Known values are "
        "apply_config, apply_storage_config, check_availability, create_branch, create_timeline, delete_tenant, start_compute, "
        "suspend_compute.",
        "statuses: 'deferred' is unknown to this collection, and may never occur. Known values are cancelled, "
        "cancelling, error, failed, finished, running, scheduling, skipped, "
        "unsuccessful.",
        "project_ids: The account has no project x, y at present.",
    ]
    assert caplog.record_tuples == [("clouddb.control.operations", logging.WARNING, message) for message in messages]
