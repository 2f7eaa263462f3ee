# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes as events: from the first poll on, each one once, over restarts, outages and rate limits."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._http.errors import NotFound, Unauthorized
from ansible_collections.clouddb.control.tests.unit.plugins.plugin_utils.events.conftest import EventSource, summary

SHOP = "wispy-lake-12345678"
MAIL = "calm-hill-87654321"
PAST = "old-river-11223344"


@pytest.fixture
def seed() -> dict[str, Any]:
    past = [
        {"action": "start_compute", "status": "failed", "age": "2h"},
        {"action": "apply_config", "age": "30m", "timeline": [[0, "scheduling"], [5, "running"], [1830, "finished"]]},
    ]
    return {
        "projects": [
            {"id": SHOP, "name": "shop", "compute": False},
            {"id": MAIL, "name": "mail", "compute": False},
            {"id": PAST, "name": "past", "compute": False, "operations": past},
        ]
    }


def branch(source: EventSource, *timeline: tuple[float, str], project: str = SHOP, name: str = "b") -> None:
    """Start a create_branch operation with these statuses, by seconds from its start."""
    source.sandbox.plan(*timeline, action="create_branch")
    source.sandbox.api("POST", f"/projects/{project}/branches", {"branch": {"name": name}, "endpoints": []})


def branches(source: EventSource, number: int) -> None:
    """Start operations that finish at once."""
    source.sandbox.plan((0, "finished"), action="create_branch", times=number)
    for each in range(number):
        source.sandbox.api("POST", f"/projects/{SHOP}/branches", {"branch": {"name": f"b{each}"}, "endpoints": []})
    source.sandbox.advance(number)


# Events


def test_first_poll_emits_no_events_but_unfinished_operations_are_followed(source: EventSource) -> None:
    assert source.run(60) == ["apply_config running > finished"]


def test_event_has_operation_project_and_previous_status(source: EventSource) -> None:
    source.run(60)
    (event,) = source.events
    operation = source.sandbox.api("GET", f"/projects/{PAST}/operations/{event['clouddb']['operation']['id']}")[
        "operation"
    ]
    project = next(project for project in source.sandbox.api("GET", "/projects")["projects"] if project["id"] == PAST)
    assert event["clouddb"] == {
        "operation": operation,
        "previous_status": "running",
        "project": project,
        "seconds": 1830,
    }
    assert list(event["meta"]) == ["uuid"]


def test_each_status_is_emitted_once(source: EventSource) -> None:
    steps = {
        50.0: lambda: branch(
            source, (0, "scheduling"), (30, "running"), (60, "failed"), (120, "running"), (180, "finished")
        )
    }
    events = source.run(250, steps, actions=["create_branch"], project_ids=[SHOP])
    assert events == [
        "create_branch None > scheduling",
        "create_branch scheduling > running",
        "create_branch running > failed",
        "create_branch failed > running",
        "create_branch running > finished",
    ]
    assert len({event["meta"]["uuid"] for event in source.events}) == 5


def test_changes_between_two_polls_are_one_event(source: EventSource) -> None:
    steps = {11.0: lambda: branch(source, (0, "scheduling"), (20, "running"), (21, "failed"), (22, "finished"))}
    events = source.run(100, steps, interval=10, actions=["create_branch"])
    assert events[0] == "create_branch None > scheduling"
    assert events[-1].endswith("> finished")
    assert len(events) < 4


def test_backfill_emits_existing_operations(source: EventSource) -> None:
    assert source.run(3, backfill="1h") == ["apply_config None > running"]
    assert source.run(3, backfill="3h") == ["start_compute None > failed", "apply_config None > running"]


def test_more_than_a_page_of_operations_is_emitted_in_order(source: EventSource) -> None:
    source.run(60, {11.0: lambda: branches(source, 120)}, actions=["create_branch"])
    created = [event["clouddb"]["operation"]["created_at"] for event in source.events]
    assert len(created) == 120
    assert created == sorted(created)


def test_events_are_filtered_by_project_action_and_status(source: EventSource) -> None:
    def work() -> None:
        branch(source, (0, "running"), (30, "failed"))
        branch(source, (0, "running"), (30, "failed"), project=MAIL)

    assert source.run(100, {10.0: work}, project_ids=[MAIL], statuses=["failed"]) == ["create_branch running > failed"]
    assert source.events[0]["clouddb"]["project"]["name"] == "mail"
    assert source.run(100, {10.0: lambda: branch(source, (0, "running"), name="c")}, actions=["apply_config"]) == []


@pytest.mark.soak
def test_created_and_deleted_projects(source: EventSource, caplog: pytest.LogCaptureFixture) -> None:
    def create() -> None:
        source.sandbox.api("POST", "/projects", {"project": {"name": "new"}})

    events = source.run(200, {20.0: create, 100.0: lambda: source.sandbox.api("DELETE", f"/projects/{MAIL}")})
    assert {line for line in events if "create_timeline" in line or "delete_tenant" in line} >= {
        "create_timeline None > finished"
    }
    assert events[-1] == "delete_tenant running > finished" or events[-1] == "delete_tenant None > finished"
    sent = len(source.sandbox.sent())
    source.run(100)
    assert not any(MAIL in request for request in source.sandbox.sent()[sent:])
    assert caplog.messages == []


class TestUnlistedOperation:
    @pytest.fixture
    def seed(self) -> dict[str, Any]:
        slow = {"action": "create_branch", "age": "3h", "timeline": [[0, "running"], [3 * 3600 + 400, "failed"]]}
        newer = [{"action": "apply_config", "age": f"{minutes}m"} for minutes in range(1, 131)]
        return {"projects": [{"id": SHOP, "name": "shop", "compute": False, "operations": [slow, *newer]}]}

    @pytest.mark.soak
    def test_unfinished_operation_is_followed_beyond_the_first_page(self, source: EventSource) -> None:
        assert source.run(600) == ["create_branch running > failed"]
        by_id = [request for request in source.sandbox.sent() if "/operations/" in request]
        assert by_id and len(source.sandbox.sent()) < 3 * len(by_id) + 100
        polls = [request for request in source.sandbox.sent() if request != "GET /projects"]
        assert polls[-1] == f"GET /projects/{SHOP}/operations"


# Restarts


def test_restart_neither_misses_nor_repeats_events(source: EventSource) -> None:
    state: dict[str, Any] = {"state_file": str(source.state_file), "actions": ["create_branch"]}
    first = source.run(60, {10.0: lambda: branch(source, (0, "running"), (100, "failed"))}, **state)
    source.sandbox.advance(100)
    branches(source, 70)
    second = source.run(60, **state)
    assert first == ["create_branch None > running"]
    assert sorted(second) == ["create_branch None > finished"] * 70 + ["create_branch running > failed"]
    assert source.run(60, **state) == []


def test_crash_repeats_events_with_the_same_uuid(source: EventSource) -> None:
    state: dict[str, Any] = {"state_file": str(source.state_file), "actions": ["create_branch"]}
    source.run(20, **state)
    saved = source.state_file.read_bytes()
    source.run(60, {1.0: lambda: branches(source, 3)}, **state)
    source.state_file.write_bytes(saved)
    events = [event["meta"]["uuid"] for event in source.events]
    source.run(20, **state)
    assert [event["meta"]["uuid"] for event in source.events[len(events) :]] == events


def test_undelivered_event_is_emitted_after_a_restart(source: EventSource) -> None:
    """As when a rulebook ends: the source is cancelled after the rules have stopped taking events."""
    state: dict[str, Any] = {"state_file": str(source.state_file), "actions": ["create_branch"]}
    source.run(20, **state)
    branches(source, 3)

    async def main() -> list[str]:
        queue: asyncio.Queue[Any] = asyncio.Queue(1)
        running = asyncio.create_task(source.follower(40, {}, queue, **state).run())
        delivered = [(await queue.get())["meta"]["uuid"]]
        while not queue.full():
            await asyncio.sleep(0.01)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        return delivered

    delivered = asyncio.run(main())
    source.run(20, **state)
    delivered += [event["meta"]["uuid"] for event in source.events]
    assert len(delivered) == len(set(delivered)) == 3


# Errors, intervals and rate limits


@pytest.mark.soak
def test_outage_is_retried_and_logged_once(source: EventSource, caplog: pytest.LogCaptureFixture) -> None:
    def outage() -> None:
        branch(source, (0, "running"), (30, "failed"))
        source.sandbox.fault("status", status=503, times=None)

    steps = {10.0: outage, 3610.0: lambda: source.sandbox.control("DELETE", "/faults")}
    events = source.run(3700, steps, actions=["create_branch"])
    assert events == ["create_branch None > failed"]
    first, last = caplog.messages
    assert first.startswith("Polling failed. It is retried until it succeeds. ") and " 503 " in first
    assert re.match("Polling succeeds again, after 3[56][0-9][0-9] s.", last)
    assert len(source.sandbox.sent()) < 3600 / 30 + 60


def test_failing_project_does_not_delay_the_others(source: EventSource, caplog: pytest.LogCaptureFixture) -> None:
    source.sandbox.fault("malformed", path=f"/projects/{MAIL}/operations", times=None)
    events = source.run(150, {100.0: lambda: branch(source, (0, "failed"))}, actions=["create_branch"])
    assert events == ["create_branch None > failed"]
    assert len(caplog.messages) == 1


@pytest.mark.parametrize("skip", [0, 7])
def test_refused_key_fails(source: EventSource, skip: int) -> None:
    source.sandbox.fault("status", status=401, times=None, skip=skip)
    with pytest.raises(Unauthorized, match="Check api_key or CLOUDDB_API_KEY"):
        source.run(100)


def test_base_url_without_the_api_fails(source: EventSource) -> None:
    with pytest.raises(NotFound):
        source.run(100, base_url=source.sandbox.base_url + "/nowhere")


class TestManyProjects:
    @pytest.fixture
    def seed(self) -> dict[str, Any]:
        return {"generate": {"projects": 30, "operations_per_project": 20}}

    def test_requests_per_minute_is_not_exceeded(self, source: EventSource) -> None:
        source.run(60, requests_per_minute=30)
        assert source.clock.elapsed / 2 - 2 <= len(source.sandbox.sent()) <= source.clock.elapsed / 2 + 1


def test_key_is_in_no_event_file_or_log(source: EventSource, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    source.sandbox.fault("status", status=503, body={"message": f"who is {source.sandbox.api_key}?"}, skip=3)
    source.run(100, {10.0: lambda: branches(source, 2)}, state_file=str(source.state_file))
    assert [summary(event) for event in source.events]
    for text in (json.dumps(source.events), source.state_file.read_text(), caplog.text):
        assert source.sandbox.api_key not in text
    assert source.state_file.stat().st_mode & 0o777 == 0o600
