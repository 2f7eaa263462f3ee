# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes as events: from the first poll on, each one once, over restarts, outages and rate limits."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import InvalidOption, NotFound, Unauthorized
from ansible_collections.clouddb.control.plugins.plugin_utils._events import emitter
from ansible_collections.clouddb.control.plugins.plugin_utils._events.changes import Change
from ansible_collections.clouddb.control.plugins.plugin_utils._events.state_file import StateFile
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
    events = source.run(400, steps, actions=["create_branch"])
    assert events == [
        "create_branch None > scheduling",
        "create_branch scheduling > running",
        "create_branch running > failed",
        "create_branch failed > running",
        "create_branch running > finished",
    ]
    assert len({event["meta"]["uuid"] for event in source.events}) == 5


def test_repeated_status_is_another_event(source: EventSource) -> None:
    steps = {50.0: lambda: branch(source, (0, "running"), (30, "failed"), (60, "running"), (90, "failed"))}
    events = source.run(200, steps, actions=["create_branch"])
    assert events.count("create_branch running > failed") == 2
    assert len({event["meta"]["uuid"] for event in source.events}) == len(events) == 4


def test_event_is_a_copy() -> None:
    operation = {"id": "a", "status": "running", "labels": {"stage": "live"}}
    event = emitter.event_of(Change(operation, None), project := {"id": SHOP, "owner": {"name": "x"}})
    event["clouddb"]["operation"]["labels"].clear()
    event["clouddb"]["project"]["owner"].clear()
    assert (operation["labels"], project["owner"]) == ({"stage": "live"}, {"name": "x"})


def test_operation_that_ends_between_two_polls_is_emitted(source: EventSource) -> None:
    assert "create_branch None > failed" in source.run(
        60, {11.0: lambda: branch(source, (0, "running"), (1, "failed"))}
    )


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


def test_project_missing_from_an_incomplete_list_is_still_followed(source: EventSource) -> None:
    steps = {
        10.0: lambda: branch(source, (0, "finished"), project=MAIL),
        50.0: lambda: source.sandbox.fault("unavailable_projects", ids=[MAIL], path="/projects", times=2),
        51.0: lambda: branch(source, (0, "finished"), project=MAIL, name="c"),
    }
    assert source.run(300, steps, project_ids=[MAIL]) == ["create_branch None > finished"] * 2


def test_unknown_project_ids_are_logged_once(source: EventSource, caplog: pytest.LogCaptureFixture) -> None:
    source.run(100, project_ids=[SHOP, "nobody"])
    assert caplog.messages == ["project_ids: The account has no project nobody at present."]


class TestUnlistedOperation:
    @pytest.fixture
    def seed(self) -> dict[str, Any]:
        slow = {"action": "create_branch", "age": "3h", "timeline": [[0, "running"], [3 * 3600 + 400, "failed"]]}
        newer = [{"action": "apply_config", "age": f"{minutes}m"} for minutes in range(1, 131)]
        return {"projects": [{"id": SHOP, "name": "shop", "compute": False, "operations": [slow, *newer]}]}

    def test_unfinished_operation_is_followed_beyond_the_first_page(self, source: EventSource) -> None:
        assert source.run(600) == ["create_branch running > failed"]
        by_id = [request for request in source.sandbox.sent() if "/operations/" in request]
        assert by_id and len(source.sandbox.sent()) < 3 * len(by_id) + 100
        polls = [request for request in source.sandbox.sent() if request != "GET /projects"]
        assert polls[-1] == f"GET /projects/{SHOP}/operations"

    def test_deleted_operation_is_forgotten(self, source: EventSource) -> None:
        source.sandbox.fault("status", status=404, path="/projects/*/operations/*")
        assert source.run(600) == []


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


def test_projects_created_and_deleted_while_stopped_are_emitted(source: EventSource) -> None:
    state: dict[str, Any] = {"state_file": str(source.state_file)}
    source.run(60, **state)
    source.sandbox.advance(3600)
    source.sandbox.api("POST", "/projects", {"project": {"name": "new"}})
    source.sandbox.api("DELETE", f"/projects/{MAIL}")
    source.sandbox.advance(100)
    assert {"create_timeline None > finished", "delete_tenant None > finished"} <= set(source.run(60, **state))
    assert MAIL not in json.loads(source.state_file.read_text())["projects"]


def test_crash_repeats_events_with_the_same_uuid(source: EventSource, monkeypatch: pytest.MonkeyPatch) -> None:
    state: dict[str, Any] = {"state_file": str(source.state_file), "actions": ["create_branch"]}
    source.run(20, **state)
    with monkeypatch.context() as crash:
        crash.setattr(StateFile, "write", lambda self, state: None)
        source.run(60, {1.0: lambda: branches(source, 3)}, **state)
    events = [event["meta"]["uuid"] for event in source.events]
    source.run(20, **state)
    assert [event["meta"]["uuid"] for event in source.events[len(events) :]] == events


def test_event_that_was_not_put_is_emitted_after_a_restart(
    source: EventSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    state: dict[str, Any] = {"state_file": str(source.state_file), "actions": ["create_branch"]}
    source.run(20, **state)
    branches(source, 80)
    delivered: list[str] = []

    async def put(event: dict[str, Any], /) -> None:
        if len(delivered) == 5:
            raise asyncio.CancelledError
        delivered.append(event["meta"]["uuid"])

    with monkeypatch.context() as busy:
        busy.setattr(source, "put", put)
        source.run(20, **state)
    source.run(20, **state)
    delivered += [event["meta"]["uuid"] for event in source.events]
    assert len(delivered) == len(set(delivered)) == 80


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


def test_feedback_is_awaited_with_a_timeout(
    source: EventSource, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(emitter, "RULES_TIMEOUT", 0.01)

    async def main() -> None:
        feedback: asyncio.Queue[Any] = asyncio.Queue()
        # The first is confirmed after a stray one, the second never.
        original = source.put

        async def put(event: dict[str, Any], /) -> None:
            await original(event)
            if len(source.events) == 1:
                await feedback.put({"meta": {"uuid": "stray"}})
                await feedback.put(event)

        monkeypatch.setattr(source, "put", put)
        steps = {10.0: lambda: branches(source, 2)}
        await source.follower(40, steps, feedback=feedback, actions=["create_branch"]).run()

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())
    assert len(source.events) == 2
    message = "The rules have not confirmed an event within 0.01 s. The event source continues without."
    assert caplog.record_tuples == [("clouddb.control.operations", logging.WARNING, message)]


def test_event_that_was_not_confirmed_is_emitted_after_a_restart(source: EventSource) -> None:
    state: dict[str, Any] = {"state_file": str(source.state_file), "actions": ["create_branch"]}
    source.run(20, **state)
    branches(source, 3)

    async def main() -> list[str]:
        queue: asyncio.Queue[Any] = asyncio.Queue(1)
        feedback: asyncio.Queue[Any] = asyncio.Queue()
        running = asyncio.create_task(source.follower(40, {}, queue, feedback, **state).run())
        event = await queue.get()
        await feedback.put(event)
        while not queue.full():
            await asyncio.sleep(0.01)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        return [event["meta"]["uuid"]]

    confirmed = asyncio.run(main())
    source.run(20, **state)
    uuids = confirmed + [event["meta"]["uuid"] for event in source.events]
    assert len(uuids) == len(set(uuids)) == 3


@pytest.mark.parametrize("content", ["[]", "{}", "{", '{"projects": [], "listed_at": null, "base_url": ""}'])
def test_other_file_is_refused_and_kept(source: EventSource, content: str) -> None:
    source.state_file.write_text(content)
    with pytest.raises(InvalidOption, match="^state_file: "):
        source.run(1, state_file=str(source.state_file))
    assert source.state_file.read_text() == content


def test_state_of_another_service_is_refused(source: EventSource) -> None:
    source.state_file.write_text(
        json.dumps({"base_url": "https://other.example.com", "listed_at": None, "projects": {}})
    )
    with pytest.raises(InvalidOption, match="about another base_url, https://other.example.com"):
        source.run(1, state_file=str(source.state_file))


def test_state_file_that_cannot_be_written_fails_before_any_request(source: EventSource) -> None:
    with pytest.raises(InvalidOption, match="^state_file: .* can't be written: No such file or directory"):
        source.run(1, state_file=str(source.state_file.parent / "no" / "state.json"))
    assert source.sandbox.sent() == []


def test_folder_that_is_gone_for_two_seconds(source: EventSource, caplog: pytest.LogCaptureFixture) -> None:
    """Its state is saved as soon as it is back, also between two polls."""
    folder = source.state_file.parent / "state"
    folder.mkdir()
    away = folder.with_name("away")
    file = folder / "state.json"
    state: dict[str, Any] = {"state_file": str(file), "actions": ["create_branch"], "interval": 30, "max_interval": 30}
    saved: list[str] = []

    def put_back() -> None:
        away.rename(folder)
        saved.append(file.read_text())

    def remove() -> None:
        branches(source, 2)
        folder.rename(away)

    events = source.run(70, {29.0: remove, 35.0: put_back, 38.0: lambda: saved.append(file.read_text())}, **state)
    assert events == ["create_branch None > finished"] * 2
    assert saved[0] != saved[1]
    assert [message.split(":")[0].split(",")[0] for message in caplog.messages] == [
        f"The state can't be saved to {file}",
        "The state is saved again",
    ]
    assert source.run(70, **state) == []


def test_end_without_the_folder_repeats_events_and_misses_none(
    source: EventSource, caplog: pytest.LogCaptureFixture
) -> None:
    folder = source.state_file.parent / "state"
    folder.mkdir()
    away = folder.with_name("away")
    state: dict[str, Any] = {"state_file": str(folder / "state.json"), "actions": ["create_branch"]}

    def remove() -> None:
        folder.rename(away)
        branches(source, 2)

    assert source.run(60, {20.0: remove}, **state) == ["create_branch None > finished"] * 2
    assert caplog.messages[-1].startswith("The state can't be saved to ")
    with pytest.raises(InvalidOption, match="^state_file: .* can't be written: No such file or directory"):
        source.run(1, **state)
    branch(source, (0, "finished"), name="while it was down")
    away.rename(folder)
    assert source.run(60, **state) == ["create_branch None > finished"] * 3
    uuids = [event["meta"]["uuid"] for event in source.events]
    assert sorted(uuids[:2]) == sorted(set(uuids[:2]) & set(uuids[2:]))
    assert len(set(uuids)) == 3


# Errors, intervals and rate limits


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


def test_outage_at_the_start_is_retried(source: EventSource) -> None:
    source.sandbox.fault("reset", times=5, method="GET")
    assert source.run(100, {60.0: lambda: branch(source, (0, "failed"))}, actions=["create_branch"]) == [
        "create_branch None > failed"
    ]


def test_failing_project_does_not_delay_the_others(source: EventSource, caplog: pytest.LogCaptureFixture) -> None:
    source.sandbox.fault("malformed", path=f"/projects/{MAIL}/operations", times=None)
    events = source.run(600, {200.0: lambda: branch(source, (0, "failed"))}, actions=["create_branch"])
    assert events == ["create_branch None > failed"]
    assert len(caplog.messages) == 1


def test_retry_after_is_honored(source: EventSource) -> None:
    source.sandbox.fault("status", status=429, retry_after="55", skip=1)
    began = source.clock.elapsed
    source.run(50)
    assert source.clock.elapsed - began == 50
    # Up to four polls run at the same time.
    assert len(source.sandbox.sent()) <= 1 + 4


@pytest.mark.parametrize("skip", [0, 7])
def test_refused_key_fails(source: EventSource, skip: int) -> None:
    source.sandbox.fault("status", status=401, times=None, skip=skip)
    with pytest.raises(Unauthorized, match="Check api_key or CLOUDDB_API_KEY"):
        source.run(100)


def test_base_url_without_the_api_fails(source: EventSource) -> None:
    with pytest.raises(NotFound):
        source.run(100, base_url=source.sandbox.base_url + "/nowhere")


def test_interval_grows_without_changes(source: EventSource) -> None:
    source.run(600, interval=5, max_interval=60)
    polls = [request for request in source.sandbox.sent() if MAIL in request]
    assert 600 / 60 <= len(polls) <= 600 / 60 + 8


class TestManyProjects:
    @pytest.fixture
    def seed(self) -> dict[str, Any]:
        return {"generate": {"projects": 30, "operations_per_project": 20}}

    def test_requests_per_minute_is_not_exceeded(self, source: EventSource) -> None:
        source.run(60, requests_per_minute=30)
        assert source.clock.elapsed / 2 - 2 <= len(source.sandbox.sent()) <= source.clock.elapsed / 2 + 1

    def test_each_project_takes_one_request(self, source: EventSource) -> None:
        source.run(
            50,
            {15.0: lambda: source.sandbox.control("DELETE", "/requests")},
            page_size=400,
            requests_per_minute=10_000,
        )
        polls = [request for request in source.sandbox.sent() if request.endswith("/operations")]
        assert len(polls) == len(set(polls)) == 30


def test_key_is_in_no_event_file_or_log(source: EventSource, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    source.sandbox.fault("status", status=503, body={"message": f"who is {source.sandbox.api_key}?"}, skip=3)
    source.run(100, {10.0: lambda: branches(source, 2)}, state_file=str(source.state_file))
    assert [summary(event) for event in source.events]
    for text in (json.dumps(source.events), source.state_file.read_text(), caplog.text):
        assert source.sandbox.api_key not in text
    assert source.state_file.stat().st_mode & 0o777 == 0o600
