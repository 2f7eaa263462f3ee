# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which changes become events, when the event source stops, and how it ends. In properties/test_events.py, it stops and crashes at random."""

from __future__ import annotations

import asyncio
import json
import logging
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import InvalidOption
from ansible_collections.clouddb.control.plugins.module_utils._http.errors import NotFound, Unauthorized
from ansible_collections.clouddb.control.plugins.plugin_utils._events.follower import Follower, in_thread
from ansible_collections.clouddb.control.plugins.plugin_utils._events.options import source_options
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import EPOCH, FakeClock
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox
from ansible_collections.clouddb.control.tests.unit.support.simulated_operations import LIST, Account

PAST = "old-river-11223344"


@pytest.fixture
def account() -> Account:
    return Account("p0", "p1")


@pytest.fixture
def seed() -> dict[str, Any]:
    past = [
        {"action": "start_compute", "status": "failed", "age": "2h"},
        {"action": "apply_config", "age": "30m", "timeline": [[0, "scheduling"], [5, "running"], [1830, "finished"]]},
    ]
    return {"projects": [{"id": PAST, "compute": False, "operations": past}]}


@pytest.fixture
def sandbox(served_sandbox: Sandbox) -> Sandbox:
    return served_sandbox


def test_event_of_a_change_since_the_first_poll(
    sandbox: Sandbox, clock: FakeClock, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The first poll emits none. The key is in no event, file or log."""
    caplog.set_level(logging.DEBUG)
    sandbox.fault("status", status=503, body={"message": f"who is {sandbox.api_key}?"}, skip=3)
    put, state_file = AsyncMock(), tmp_path / "state.json"

    async def sleep(pause: float) -> None:
        clock.sleep(pause)
        if clock.elapsed > 90:
            raise asyncio.CancelledError

    connection = {"base_url": sandbox.base_url, "api_key": sandbox.api_key}
    options = source_options({**connection, "state_file": str(state_file)})
    with suppress(asyncio.CancelledError):
        asyncio.run(Follower(options, SimpleNamespace(put=put), clock=clock.clock, sleep=sleep).run())
    [[event]] = [call.args for call in put.await_args_list]
    assert event["clouddb"] == {
        "operation": sandbox.api("GET", f"/projects/{PAST}/operations")["operations"][0],
        "previous_status": "running",
        "project": sandbox.api("GET", "/projects")["projects"][0],
        "seconds": 1830,
    }
    assert list(event["meta"]) == ["uuid"]
    assert " 503 " in caplog.text
    for text in (json.dumps(event), state_file.read_text(), caplog.text):
        assert sandbox.api_key not in text


def test_backfill_emits_existing_operations(account: Account) -> None:
    account.start("p1", -7200)
    account.start("p1", -1800)
    assert account.follow(3, backfill="1h") == ["p1--1800 finished"]
    assert account.follow(3, backfill="3h")[1:] == ["p1--7200 finished", "p1--1800 finished"]


def test_events_are_filtered_by_project_action_and_status(account: Account) -> None:
    for project in account.projects:
        account.start(project, 10, seconds=30)
    assert account.follow(100, project_ids=["p1"], actions=["create_branch"], statuses=["finished"]) == [
        "p1-10 finished"
    ]
    account.start("p1", 110)
    assert len(account.follow(100, actions=["apply_config"])) == 1


def test_undelivered_event_is_emitted_after_a_restart(account: Account, tmp_path: Path) -> None:
    """As when a rulebook ends: the source is cancelled after the rules have stopped taking events."""

    class Queue:
        """The rules take only the first event, and the second one fills the queue."""

        async def put(self, event: dict[str, Any], /) -> None:
            if len(account.emitted) == 2:
                raise asyncio.CancelledError
            await account.put(event)

        def empty(self) -> bool:
            return len(account.emitted) < 2

    account.queue = Queue()
    for moment in (10, 11, 12):
        account.start("p1", moment, seconds=0)
    state_file = str(tmp_path / "state.json")
    assert account.follow(40, state_file=state_file) == ["p1-10 finished", "p1-11 finished"]
    account.queue, account.emitted = account, []
    assert account.follow(40, state_file=state_file) == ["p1-11 finished", "p1-12 finished"]


def test_failing_project_does_not_delay_the_others(account: Account, caplog: pytest.LogCaptureFixture) -> None:
    account.fault = lambda moment, path: 503 if path == f"{LIST}/p0/operations" else None
    account.start("p1", 100, seconds=0)
    assert account.follow(150) == ["p1-100 finished"]
    assert account.delays("p1")[0] <= 30
    assert len(caplog.messages) == 1


@pytest.mark.parametrize(
    ("status", "since", "error"), [(401, 0, Unauthorized), (401, 70, Unauthorized), (404, 0, NotFound)]
)
def test_error_that_retrying_cannot_fix_ends_the_source(
    account: Account, status: int, since: float, error: type[Exception]
) -> None:
    account.fault = lambda moment, path: status if moment >= since else None
    with pytest.raises(error):
        account.follow(300)
    assert account.clock.elapsed <= since + (50 if status == 401 else 30)


def refused(account: Account, times: int, gap: float = 5) -> list[float]:
    """Have the service refuse the key this number of times, at least C(gap) seconds apart; the moments."""
    refusals: list[float] = []

    def refuse(moment: float, path: str) -> int | None:
        if moment < 70 or len(refusals) == times or (refusals and moment - refusals[-1] < gap):
            return None
        refusals.append(moment)
        return 401

    account.fault = refuse
    return refusals


def test_two_refusals_of_the_key_are_retried(account: Account) -> None:
    refusals = refused(account, 2)
    account.start("p1", 100, seconds=0)
    assert account.follow(1300, max_interval="10m") == ["p1-100 finished"]
    assert refusals[1] - refusals[0] == pytest.approx(10, abs=0.1)


def test_three_refusals_within_a_minute_end_the_source(account: Account) -> None:
    """Even if polls are rarer."""
    refusals = refused(account, 3)
    with pytest.raises(Unauthorized):
        account.follow(1300, max_interval="10m")
    assert refusals[2] - refusals[0] == pytest.approx(20, abs=0.1)


def test_rare_refusals_do_not_end_the_source(account: Account) -> None:
    refusals = refused(account, 6, gap=35)
    account.follow(600)
    assert len(refusals) == 6


def test_projects_selected_by_their_ids_are_not_listed(account: Account) -> None:
    """A key that is limited to a project may not list projects."""
    account.fault = lambda moment, path: 404 if path == LIST else None
    account.start("p1", 10, seconds=30)
    assert account.follow(100, project_ids=["p1", "no-such"]) == ["p1-10 running", "p1-10 finished"]
    assert LIST not in {path for _moment, path in account.sent}
    account.fault = lambda moment, path: None
    with pytest.raises(NotFound):
        account.follow(100, project_ids=["no-such"])


@pytest.mark.parametrize("status", [403, 503])
def test_a_project_that_cannot_be_fetched_by_its_id_does_not_stop_the_others(account: Account, status: int) -> None:
    account.fault = lambda moment, path: status if path == f"{LIST}/p0" else None
    for project in account.projects:
        account.start(project, 10, seconds=0)
    assert sorted(account.follow(100, project_ids=["p0", "p1"])) == ["p0-10 finished", "p1-10 finished"]


def test_a_source_whose_only_project_was_deleted_starts_again(account: Account, tmp_path: Path) -> None:
    args = {"state_file": str(tmp_path / "state.json"), "project_ids": ["p1"]}
    account.start("p1", 10, seconds=0)
    account.follow(50, **args)
    del account.projects["p1"], account.operations["p1"]
    assert account.follow(50, **args) == ["p1-10 finished"]


def test_the_order_of_a_selection_does_not_matter(account: Account, tmp_path: Path) -> None:
    for project_ids in (["p0", "p1"], ["p1", "p0", "p1"]):
        account.follow(5, state_file=str(tmp_path / "state.json"), project_ids=project_ids)
    with pytest.raises(InvalidOption, match="is about other project_ids, actions or statuses"):
        account.follow(5, state_file=str(tmp_path / "state.json"), project_ids=["p0"])
    with pytest.raises(InvalidOption):
        account.follow(5, state_file=str(tmp_path / "state.json"))


def test_one_missing_operation_is_not_forgotten(account: Account) -> None:
    """An operation older than those that are remembered."""
    account.start("p1", 5, seconds=200)
    for number in range(130):
        account.start("p1", 20 + number / 10, seconds=1)
    account.fault = lambda moment, path: 404 if path.endswith("/p1-5") and 60 < moment < 64 else None
    events = account.follow(400)
    assert [each for each in events if each.startswith("p1-5 ")] == ["p1-5 running", "p1-5 finished"]


def test_a_replica_that_lags_behind_repeats_no_event(account: Account) -> None:
    """List and operation of it, for one poll."""
    account.start("p1", 5, seconds=200)
    operations = account.operations["p1"]

    def lag(moment: float, _path: str) -> None:
        account.operations["p1"] = [] if 60 < moment < 65 else operations

    account.fault = lag
    assert account.follow(400) == ["p1-5 running", "p1-5 finished"]


@pytest.mark.parametrize("wrong", range(1, 9))
@pytest.mark.parametrize("hours", [24, -24])
def test_one_wrong_date_moves_no_boundary(account: Account, wrong: int, hours: int) -> None:
    def before_request(moment: float, _path: str) -> None:
        account.date_ahead = timedelta(hours=hours if len(account.sent) == wrong else 0)
        if moment > 100 and "new" not in account.projects:
            account.add_project("new")
            account.start("new", moment, seconds=0)

    account.fault = before_request
    [event] = account.follow(300)
    assert event.startswith("new-")


def test_a_saved_boundary_in_the_future_is_cut(account: Account, tmp_path: Path) -> None:
    state_file = tmp_path / "state.json"
    account.follow(10, state_file=str(state_file))
    saved = json.loads(state_file.read_text())
    saved["new_since"] = (EPOCH + timedelta(days=1)).isoformat()
    state_file.write_text(json.dumps(saved))
    account.follow(1, state_file=str(state_file))
    account.add_project("new")
    account.start("new", 11, seconds=0)
    assert account.follow(100, state_file=str(state_file)) == ["new-11 finished"]


def test_unexpected_error_in_a_thread_is_raised() -> None:
    def fail(name: str) -> Any:
        raise LookupError(name)

    with pytest.raises(LookupError, match="^p1$"):
        asyncio.run(in_thread(fail, "p1"))


def test_a_wrong_first_date_does_not_shorten_the_backfill(account: Account) -> None:
    """The clock of the machine disagrees, so a second response is asked for."""

    def before_request(_moment: float, _path: str) -> None:
        account.date_ahead = timedelta(days=1 if len(account.sent) == 1 else 0)

    account.fault = before_request
    account.start("p1", -1800)
    assert account.follow(30, backfill="1h", project_ids=["p1"]) == ["p1--1800 finished"]
