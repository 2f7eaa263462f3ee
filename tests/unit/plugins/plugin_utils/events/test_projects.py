# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The event source follows the right projects, whatever happens to single lists of projects, on a clock that does not really sleep."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.clouddb.control.tests.unit.support.simulated_operations import (
    EVER,
    LIST,
    Account,
    polls_in_parallel,
)


@pytest.fixture
def account() -> Account:
    return Account("p0", "p1", "p2")


@pytest.mark.parametrize("ends", [1.0, 300.0])
def test_deleted_project_is_followed_until_its_operations_have_ended(account: Account, ends: float) -> None:
    account.start("p1", 70, seconds=ends)
    account.hidden["p1"] = (70, EVER)
    assert account.follow(600)[-1] == "p1-70 finished"
    sent = len(account.sent)
    account.follow(600)
    assert "/projects/p1/operations" not in [path for _moment, path in account.sent[sent:]]


@pytest.mark.parametrize("moment", [40, 90])
def test_single_404_does_not_forget_a_listed_project(account: Account, moment: float) -> None:
    account.start("p1", 20)

    def fault(_moment: float, path: str) -> int | None:
        is_first = sum(polled_at >= moment for polled_at in account.moments("p1")) == 1
        return 404 if path == "/projects/p1/operations" and is_first else None

    account.fault = fault
    events = account.follow(600)
    assert max(account.moments("p1")) >= moment
    assert events[-1] == "p1-20 finished"
    assert len(events) == len(set(events))


def test_project_with_unfinished_operations_that_is_gone_is_forgotten(account: Account) -> None:
    account.start("p1", 50, seconds=100_000)
    account.fault = lambda moment, path: 404 if path == "/projects/p1/operations" and moment >= 100 else None
    account.hidden["p1"] = (100, EVER)
    account.follow(2000)
    assert 100 <= max(account.moments("p1")) < 200


def test_operations_of_a_new_project_are_new_since_five_minutes_before_the_previous_list(account: Account) -> None:
    account.hidden["p1"] = (-1, 700)
    for moment in (0, 389, 391, 699):
        account.start("p1", moment, seconds=0)
    assert account.follow(750) == ["p1-391 finished", "p1-699 finished"]


def test_project_that_is_deleted_during_a_poll_is_polled_again(account: Account) -> None:
    is_deleted = asyncio.Event()

    async def in_thread(function: Callable[[str], Any], name: str) -> Any:
        result = function(name)
        if name == "p1" and account.clock.elapsed >= 60 and "p1" in account.projects:
            # The response arrives after the next lists.
            account.start("p1", account.clock.elapsed + 0.1, seconds=3)
            del account.projects["p1"]
            await is_deleted.wait()
        elif name == "" and account.clock.elapsed >= 120:
            asyncio.get_running_loop().call_later(0.005, is_deleted.set)
        return result

    with polls_in_parallel(account):
        assert [event.split()[1] for event in account.follow(300, in_thread=in_thread)] == ["finished"]


# Before the first list


def test_projects_in_the_state_are_followed_before_they_are_listed(account: Account, tmp_path: Path) -> None:
    state_file = str(tmp_path / "state.json")
    account.follow(60, state_file=state_file)
    account.fault = lambda moment, path: 503 if path == LIST else None
    account.start("p1", 70)
    assert account.follow(120, state_file=state_file)[-1] == "p1-70 finished"
    assert account.emitted[0][1]["clouddb"]["project"]["name"] == "p1"


@pytest.mark.parametrize("backfill", [0, 3600])
@pytest.mark.parametrize("clock_ahead", [timedelta(hours=-2), timedelta(hours=2)])
def test_restart_before_the_first_list_loses_nothing(
    account: Account, tmp_path: Path, backfill: int, clock_ahead: timedelta
) -> None:
    args: dict[str, Any] = {"state_file": str(tmp_path / "state.json"), "clock_ahead": clock_ahead}
    account.start("p0", -1000)
    account.start("p2", -1)
    account.start("p1", 5)
    account.fault = lambda moment, path: 503 if moment < 120 else None
    assert account.follow(10, backfill=backfill, **args) == []
    account.clock.elapsed += 100
    events = account.follow(100, **args)
    assert {event[:2] for event in events} == ({"p0", "p1", "p2"} if backfill else {"p1"})


# Pages that fail


@pytest.mark.parametrize("failures, is_complete", [(2, True), (3, False)])
def test_page_after_the_first_is_attempted_three_times(account: Account, failures: int, is_complete: bool) -> None:
    account.fault = lambda moment, path: 503 if 3 <= len(account.sent) < 3 + failures else None
    account.follow(3, page_size=1)
    assert (account.polled() != []) is is_complete


def test_list_that_always_fails_does_not_delay_projects_after_an_outage() -> None:
    account = Account(*(f"p{number}" for number in range(100)))
    account.start("p50", 500)
    account.fault = lambda moment, path: 503 if moment > 100 and (path == LIST or moment < 500) else None
    assert account.follow(700, requests_per_minute=600) == ["p50-500 finished"]
    assert account.emitted[0][0] < 600
