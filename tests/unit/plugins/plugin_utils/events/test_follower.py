# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which changes become events, when the event source stops, and how it ends. In properties/test_events.py, it stops and crashes at random."""

from __future__ import annotations

import asyncio
import json
import logging
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._http.errors import NotFound, Unauthorized
from ansible_collections.clouddb.control.plugins.plugin_utils._events.follower import Follower, in_thread
from ansible_collections.clouddb.control.plugins.plugin_utils._events.options import source_options
from ansible_collections.clouddb.control.tests.unit.plugins.plugin_utils.events.conftest import LIST, Account
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import FakeClock
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox
from ansible_collections.clouddb.control.tests.unit.support.simulated_operations import EventList

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


def test_event_of_a_change_since_the_first_poll(
    sandbox: Sandbox, clock: FakeClock, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The first poll emits none. The key is in no event, file or log."""
    caplog.set_level(logging.DEBUG)
    sandbox.fault("status", status=503, body={"message": f"who is {sandbox.api_key}?"}, skip=3)
    events, state_file = EventList(clock), tmp_path / "state.json"

    async def sleep(pause: float) -> None:
        clock.sleep(pause)
        if clock.elapsed > 90:
            raise asyncio.CancelledError

    connection = {"base_url": sandbox.base_url, "api_key": sandbox.api_key}
    options = source_options({**connection, "state_file": str(state_file)})
    with suppress(asyncio.CancelledError):
        asyncio.run(Follower(options, events, clock=clock.clock, sleep=sleep).run())
    [(_moment, event)] = events
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

    class Queue(EventList):
        """The rules take only the first event, and the second one fills the queue."""

        async def put(self, event: dict[str, Any], /) -> None:
            if len(self) == 2:
                raise asyncio.CancelledError
            await super().put(event)

        def empty(self) -> bool:
            return len(self) < 2

    account.emitted = Queue(account.clock)
    for moment in (10, 11, 12):
        account.start("p1", moment, seconds=0)
    state_file = str(tmp_path / "state.json")
    assert account.follow(40, state_file=state_file) == ["p1-10 finished", "p1-11 finished"]
    account.emitted = EventList(account.clock)
    assert account.follow(40, state_file=state_file) == ["p1-11 finished", "p1-12 finished"]


def test_failing_project_does_not_delay_the_others(account: Account, caplog: pytest.LogCaptureFixture) -> None:
    account.error = lambda moment, path: 503 if path == f"{LIST}/p0/operations" else None
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
    account.error = lambda moment, path: status if moment >= since else None
    with pytest.raises(error):
        account.follow(300)
    assert account.clock.elapsed <= since + 30


def test_unexpected_error_in_a_thread_is_raised() -> None:
    def fail(name: str) -> Any:
        raise LookupError(name)

    with pytest.raises(LookupError, match="^p1$"):
        asyncio.run(in_thread(fail, "p1"))
