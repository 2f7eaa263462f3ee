# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes as events: from the first look on, each one once, over restarts, outages and rate limits."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import InvalidOption, NotFound, Unauthorized
from ansible_collections.clouddb.control.plugins.plugin_utils._events import follower as change_source
from ansible_collections.clouddb.control.plugins.plugin_utils._events.changes import Change
from ansible_collections.clouddb.control.plugins.plugin_utils._events.state_file import StateFile
from ansible_collections.clouddb.control.tests.unit.plugins.plugin_utils.events.conftest import Follow, tell

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


def branch(follow: Follow, *timeline: tuple[float, str], project: str = SHOP, name: str = "b") -> None:
    """Start a create_branch operation that goes this way."""
    follow.sandbox.plan(*timeline, action="create_branch")
    follow.sandbox.api("POST", f"/projects/{project}/branches", {"branch": {"name": name}, "endpoints": []})


def branches(follow: Follow, number: int) -> None:
    """That many operations, one a second, all ended at once."""
    for each in range(number):
        branch(follow, (0, "finished"), name=f"b{each}")
        follow.sandbox.advance(1)


# What is told


def test_the_past_is_not_told_but_what_comes_of_it_is(follow: Follow) -> None:
    assert follow.run(60) == ["apply_config running > finished"]


def test_an_event_has_the_operation_its_project_and_the_status_before(follow: Follow) -> None:
    follow.run(60)
    (event,) = follow.events
    operation = follow.sandbox.api("GET", f"/projects/{PAST}/operations/{event['clouddb']['operation']['id']}")[
        "operation"
    ]
    project = next(project for project in follow.sandbox.api("GET", "/projects")["projects"] if project["id"] == PAST)
    assert event["clouddb"] == {
        "operation": operation,
        "previous_status": "running",
        "project": project,
        "seconds": 1830,
    }
    assert list(event["meta"]) == ["uuid"]


def test_each_status_of_a_new_operation_is_told_once(follow: Follow) -> None:
    steps = {
        50.0: lambda: branch(
            follow, (0, "scheduling"), (30, "running"), (60, "failed"), (120, "running"), (180, "finished")
        )
    }
    told = follow.run(400, steps, actions=["create_branch"])
    assert told == [
        "create_branch None > scheduling",
        "create_branch scheduling > running",
        "create_branch running > failed",
        "create_branch failed > running",
        "create_branch running > finished",
    ]
    assert len({event["meta"]["uuid"] for event in follow.events}) == 5


def test_the_same_step_at_another_time_is_another_event(follow: Follow) -> None:
    steps = {50.0: lambda: branch(follow, (0, "running"), (30, "failed"), (60, "running"), (90, "failed"))}
    told = follow.run(200, steps, actions=["create_branch"])
    assert told.count("create_branch running > failed") == 2
    assert len({event["meta"]["uuid"] for event in follow.events}) == len(told) == 4


def test_what_a_filter_does_to_an_event_stays_in_the_event() -> None:
    operation = {"id": "a", "status": "running", "labels": {"stage": "live"}}
    event = change_source.event_of(Change(operation, None), project := {"id": SHOP, "owner": {"name": "x"}})
    event["clouddb"]["operation"]["labels"].clear()
    event["clouddb"]["project"]["owner"].clear()
    assert (operation["labels"], project["owner"]) == ({"stage": "live"}, {"name": "x"})


def test_an_operation_that_came_and_ended_between_two_looks_is_told(follow: Follow) -> None:
    assert "create_branch None > failed" in follow.run(
        60, {11.0: lambda: branch(follow, (0, "running"), (1, "failed"))}
    )


def test_several_changes_between_two_looks_are_one(follow: Follow) -> None:
    steps = {11.0: lambda: branch(follow, (0, "scheduling"), (20, "running"), (21, "failed"), (22, "finished"))}
    told = follow.run(100, steps, interval=10, actions=["create_branch"])
    assert told[0] == "create_branch None > scheduling"
    assert told[-1].endswith("> finished")
    assert len(told) < 4


def test_backfill_tells_of_the_past(follow: Follow) -> None:
    assert follow.run(3, backfill="1h") == ["apply_config None > running"]
    assert follow.run(3, backfill="3h") == ["start_compute None > failed", "apply_config None > running"]


def test_more_new_operations_than_a_page_has_are_all_told_in_order(follow: Follow) -> None:
    follow.run(60, {11.0: lambda: branches(follow, 120)}, actions=["create_branch"])
    created = [event["clouddb"]["operation"]["created_at"] for event in follow.events]
    assert len(created) == 120
    assert created == sorted(created)


def test_only_wanted_projects_actions_and_statuses_are_told(follow: Follow) -> None:
    def work() -> None:
        branch(follow, (0, "running"), (30, "failed"))
        branch(follow, (0, "running"), (30, "failed"), project=MAIL)

    assert follow.run(100, {10.0: work}, project_ids=[MAIL], statuses=["failed"]) == ["create_branch running > failed"]
    assert follow.events[0]["clouddb"]["project"]["name"] == "mail"
    assert follow.run(100, {10.0: lambda: branch(follow, (0, "running"), name="c")}, actions=["apply_config"]) == []


def test_projects_come_and_go(follow: Follow, caplog: pytest.LogCaptureFixture) -> None:
    def create() -> None:
        follow.sandbox.api("POST", "/projects", {"project": {"name": "new"}})

    told = follow.run(200, {20.0: create, 100.0: lambda: follow.sandbox.api("DELETE", f"/projects/{MAIL}")})
    assert {line for line in told if "create_timeline" in line or "delete_tenant" in line} >= {
        "create_timeline None > finished"
    }
    assert told[-1] == "delete_tenant running > finished" or told[-1] == "delete_tenant None > finished"
    sent = len(follow.sandbox.sent())
    follow.run(100)
    assert not any(MAIL in request for request in follow.sandbox.sent()[sent:])
    assert caplog.messages == []


def test_a_project_that_the_list_leaves_out_for_a_while_is_not_told_again(follow: Follow) -> None:
    steps = {
        10.0: lambda: branch(follow, (0, "finished"), project=MAIL),
        50.0: lambda: follow.sandbox.fault("unavailable_projects", ids=[MAIL], path="/projects", times=2),
        51.0: lambda: branch(follow, (0, "finished"), project=MAIL, name="c"),
    }
    assert follow.run(300, steps, project_ids=[MAIL]) == ["create_branch None > finished"] * 2


def test_unknown_project_ids_are_said_once(follow: Follow, caplog: pytest.LogCaptureFixture) -> None:
    follow.run(100, project_ids=[SHOP, "nobody"])
    assert caplog.messages == ["project_ids: the account has no project nobody at present"]


class TestPushedOut:
    @pytest.fixture
    def seed(self) -> dict[str, Any]:
        slow = {"action": "create_branch", "age": "3h", "timeline": [[0, "running"], [3 * 3600 + 400, "failed"]]}
        newer = [{"action": "apply_config", "age": f"{minutes}m"} for minutes in range(1, 131)]
        return {"projects": [{"id": SHOP, "name": "shop", "compute": False, "operations": [slow, *newer]}]}

    def test_an_unfinished_operation_is_followed_when_newer_ones_have_pushed_it_out(self, follow: Follow) -> None:
        assert follow.run(600) == ["create_branch running > failed"]
        by_id = [request for request in follow.sandbox.sent() if "/operations/" in request]
        assert by_id and len(follow.sandbox.sent()) < 3 * len(by_id) + 100
        assert follow.sandbox.sent()[-1] == f"GET /projects/{SHOP}/operations"

    def test_an_operation_that_the_service_has_forgotten_is_let_go(self, follow: Follow) -> None:
        follow.sandbox.fault("status", status=404, path="/projects/*/operations/*")
        assert follow.run(600) == []


# Restarts


def test_a_restart_loses_and_repeats_nothing(follow: Follow) -> None:
    state: dict[str, Any] = {"state_file": str(follow.state_file), "actions": ["create_branch"]}
    first = follow.run(60, {10.0: lambda: branch(follow, (0, "running"), (100, "failed"))}, **state)
    follow.sandbox.advance(100)
    branches(follow, 70)
    second = follow.run(60, **state)
    assert first == ["create_branch None > running"]
    assert sorted(second) == ["create_branch None > finished"] * 70 + ["create_branch running > failed"]
    assert follow.run(60, **state) == []


def test_projects_that_came_and_went_meanwhile_are_told(follow: Follow) -> None:
    state: dict[str, Any] = {"state_file": str(follow.state_file)}
    follow.run(60, **state)
    follow.sandbox.advance(3600)
    follow.sandbox.api("POST", "/projects", {"project": {"name": "new"}})
    follow.sandbox.api("DELETE", f"/projects/{MAIL}")
    follow.sandbox.advance(100)
    assert {"create_timeline None > finished", "delete_tenant None > finished"} <= set(follow.run(60, **state))
    assert MAIL not in json.loads(follow.state_file.read_text())["projects"]


def test_after_a_crash_events_may_come_again_but_none_is_lost(follow: Follow, monkeypatch: pytest.MonkeyPatch) -> None:
    state: dict[str, Any] = {"state_file": str(follow.state_file), "actions": ["create_branch"]}
    follow.run(20, **state)
    with monkeypatch.context() as crash:
        crash.setattr(StateFile, "write", lambda self, state: None)
        follow.run(60, {1.0: lambda: branches(follow, 3)}, **state)
    told = [event["meta"]["uuid"] for event in follow.events]
    follow.run(20, **state)
    assert [event["meta"]["uuid"] for event in follow.events[len(told) :]] == told


def test_an_event_that_nobody_took_is_told_after_the_restart(follow: Follow, monkeypatch: pytest.MonkeyPatch) -> None:
    state: dict[str, Any] = {"state_file": str(follow.state_file), "actions": ["create_branch"]}
    follow.run(20, **state)
    branches(follow, 80)
    taken: list[str] = []

    async def put(event: dict[str, Any], /) -> None:
        if len(taken) == 5:
            raise asyncio.CancelledError
        taken.append(event["meta"]["uuid"])

    with monkeypatch.context() as busy:
        busy.setattr(follow, "put", put)
        follow.run(20, **state)
    follow.run(20, **state)
    taken += [event["meta"]["uuid"] for event in follow.events]
    assert len(taken) == len(set(taken)) == 80


def test_an_event_that_is_left_in_the_queue_is_told_after_the_restart(follow: Follow) -> None:
    """As when a rulebook ends: the source is cancelled after the rules have stopped to take events."""
    state: dict[str, Any] = {"state_file": str(follow.state_file), "actions": ["create_branch"]}
    follow.run(20, **state)
    branches(follow, 3)

    async def main() -> list[str]:
        queue: asyncio.Queue[Any] = asyncio.Queue(1)
        source = follow.source(40, {}, **state)
        source._queue = queue
        running = asyncio.create_task(source.run())
        taken = [(await queue.get())["meta"]["uuid"]]
        while not queue.full():
            await asyncio.sleep(0.01)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        return taken

    taken = asyncio.run(main())
    follow.run(20, **state)
    taken += [event["meta"]["uuid"] for event in follow.events]
    assert len(taken) == len(set(taken)) == 3


def test_with_feedback_only_confirmed_events_count_as_told(
    follow: Follow, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(change_source, "PATIENCE", 0.01)

    async def main() -> None:
        feedback: asyncio.Queue[Any] = asyncio.Queue()
        source = follow.source(40, {10.0: lambda: branches(follow, 2)}, actions=["create_branch"])
        source._feedback = feedback
        # The first is confirmed after a stray one, the second never.
        original = follow.put

        async def put(event: dict[str, Any], /) -> None:
            await original(event)
            if len(follow.events) == 1:
                await feedback.put({"meta": {"uuid": "stray"}})
                await feedback.put(event)

        monkeypatch.setattr(follow, "put", put)
        await source.run()

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())
    assert len(follow.events) == 2
    assert caplog.messages == ["the rules have not confirmed an event within 0.01 s; going on without"]


@pytest.mark.parametrize("content", ["[]", "{}", "{", '{"projects": [], "listed_at": null, "base_url": ""}'])
def test_a_file_with_something_else_is_refused_and_kept(follow: Follow, content: str) -> None:
    follow.state_file.write_text(content)
    with pytest.raises(InvalidOption, match="^state_file: "):
        follow.run(1, state_file=str(follow.state_file))
    assert follow.state_file.read_text() == content


def test_the_state_of_another_service_is_refused(follow: Follow) -> None:
    follow.state_file.write_text(
        json.dumps({"base_url": "https://other.example.com", "listed_at": None, "projects": {}})
    )
    with pytest.raises(InvalidOption, match="about another base_url, https://other.example.com"):
        follow.run(1, state_file=str(follow.state_file))


def test_a_state_file_that_cannot_be_written_ends_it_at_once(follow: Follow) -> None:
    with pytest.raises(InvalidOption, match="^state_file: .* can't be written: No such file or directory"):
        follow.run(1, state_file=str(follow.state_file.parent / "no" / "state.json"))
    assert follow.sandbox.sent() == []


# Faults and economy


def test_an_outage_is_outlasted_and_said_once(follow: Follow, caplog: pytest.LogCaptureFixture) -> None:
    def outage() -> None:
        branch(follow, (0, "running"), (30, "failed"))
        follow.sandbox.fault("status", status=503, times=None)

    steps = {10.0: outage, 3610.0: lambda: follow.sandbox.control("DELETE", "/faults")}
    told = follow.run(3700, steps, actions=["create_branch"])
    assert told == ["create_branch None > failed"]
    first, last = caplog.messages
    assert first.startswith("the service answered 503") and first.endswith(
        "; trying again, with pauses that grow to 30 s"
    )
    assert last.startswith("the service answers again, after 36")
    assert len(follow.sandbox.sent()) < 3600 / 30 + 60


def test_an_outage_at_the_start_is_outlasted_too(follow: Follow) -> None:
    follow.sandbox.fault("reset", times=5, method="GET")
    assert follow.run(100, {60.0: lambda: branch(follow, (0, "failed"))}, actions=["create_branch"]) == [
        "create_branch None > failed"
    ]


def test_one_broken_project_does_not_hold_up_the_others(follow: Follow, caplog: pytest.LogCaptureFixture) -> None:
    follow.sandbox.fault("malformed", path=f"/projects/{MAIL}/operations", times=None)
    told = follow.run(600, {200.0: lambda: branch(follow, (0, "failed"))}, actions=["create_branch"])
    assert told == ["create_branch None > failed"]
    assert len(caplog.messages) == 1


def test_retry_after_is_honoured(follow: Follow) -> None:
    follow.sandbox.fault("status", status=429, retry_after="55", skip=1)
    began = follow.clock.elapsed
    follow.run(50)
    assert follow.clock.elapsed - began == 50
    # Up to four looks are under way at once.
    assert len(follow.sandbox.sent()) <= 1 + 4


@pytest.mark.parametrize("skip", [0, 7])
def test_a_refused_key_ends_it(follow: Follow, skip: int) -> None:
    follow.sandbox.fault("status", status=401, times=None, skip=skip)
    with pytest.raises(Unauthorized, match="check api_key or CLOUDDB_API_KEY"):
        follow.run(100)


def test_a_wrong_address_ends_it(follow: Follow) -> None:
    with pytest.raises(NotFound):
        follow.run(100, base_url=follow.sandbox.base_url + "/nowhere")


def test_looks_become_rare_when_nothing_changes(follow: Follow) -> None:
    follow.run(600, interval=5, max_interval=60)
    looks = [request for request in follow.sandbox.sent() if MAIL in request]
    assert 600 / 60 <= len(looks) <= 600 / 60 + 8


class TestManyProjects:
    @pytest.fixture
    def seed(self) -> dict[str, Any]:
        return {"generate": {"projects": 30, "operations_per_project": 20}}

    def test_requests_are_spaced(self, follow: Follow) -> None:
        follow.run(60, requests_per_minute=30)
        assert follow.clock.elapsed / 2 - 2 <= len(follow.sandbox.sent()) <= follow.clock.elapsed / 2 + 1

    def test_a_round_is_one_request_for_each_project(self, follow: Follow) -> None:
        follow.run(
            8, {4.0: lambda: follow.sandbox.control("DELETE", "/requests")}, page_size=400, requests_per_minute=10_000
        )
        looks = [request for request in follow.sandbox.sent() if request.endswith("/operations")]
        assert len(looks) == len(set(looks)) == 30


def test_the_key_is_nowhere(follow: Follow, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    follow.sandbox.fault("status", status=503, body={"message": f"who is {follow.sandbox.api_key}?"}, skip=3)
    follow.run(100, {10.0: lambda: branches(follow, 2)}, state_file=str(follow.state_file))
    assert [tell(event) for event in follow.events]
    for text in (json.dumps(follow.events), follow.state_file.read_text(), caplog.text):
        assert follow.sandbox.api_key not in text
    assert follow.state_file.stat().st_mode & 0o777 == 0o600
