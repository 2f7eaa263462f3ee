# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The content of an event."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.plugin_utils._events import emitter
from ansible_collections.clouddb.control.plugins.plugin_utils._events.changes import Change, SeenOperation
from ansible_collections.clouddb.control.plugins.plugin_utils._events.emitter import event_of

RUN = "{{ lookup('ansible.builtin.pipe', 'id') }}"


def event(project_id: str = "p-1", project: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    operation = {"id": "op-1", "project_id": project_id, "status": "failed", **fields}
    return event_of(Change(operation, None), {"id": project_id, **(project or {})})


def test_an_event_has_the_same_uuid_in_later_versions() -> None:
    times = {"created_at": "2026-11-21T08:00:00Z", "updated_at": "2026-11-21T08:01:30Z"}
    operation = {"id": "op-1", "status": "failed", "action": "create_branch", **times}
    assert event_of(
        Change(operation, SeenOperation("running", times["created_at"], 2)), {"id": "p-1", "name": "shop"}
    ) == {
        "clouddb": {
            "operation": operation,
            "previous_status": "running",
            "project": {"id": "p-1", "name": "shop"},
            "seconds": 90.0,
        },
        "meta": {"uuid": "cd01c7bf-6131-56fe-85d5-066074e17212"},
    }


@pytest.mark.parametrize(
    "times", [{}, {"created_at": None, "updated_at": "2026-11-21"}, {"created_at": "x", "updated_at": "y"}]
)
def test_seconds_of_an_operation_without_times(times: dict[str, Any]) -> None:
    assert event(**times)["clouddb"]["seconds"] is None


def test_texts_hold_no_templates() -> None:
    emitted = event(error=RUN, extra=[{"k": RUN + "{%{#{{{"}], project={"name": "$ANSIBLE_VAULT;1.1"})["clouddb"]
    assert emitted["operation"]["error"] == "{ { lookup('ansible.builtin.pipe', 'id') }}"
    assert emitted["operation"]["extra"] == [{"k": "{ { lookup('ansible.builtin.pipe', 'id') }}{ %{ #{ { { "}]
    assert emitted["project"]["name"] == "$ ANSIBLE_VAULT;1.1"


def test_texts_are_displayable() -> None:
    emitted = event(error="\x1b[31mred\n\u202e", project={"name": "x" * 30_000})["clouddb"]
    assert emitted["operation"]["error"] == r"\x1b[31mred\n\u202e"
    assert len(emitted["project"]["name"]) == 20_000


def test_other_projects_statuses_and_changes_are_other_events_but_not_other_times() -> None:
    uuids = [
        event_of(
            Change(
                {"id": "op-1", "status": status, "updated_at": time}, number and SeenOperation("x", "created", number)
            ),
            {"id": project_id},
        )["meta"]["uuid"]
        for project_id in ("p-1", "p-2")
        for status in "ab"
        for number in (None, 1, 2)
        for time in ("a", "b")
    ]
    assert len({*uuids}) == 12
    assert uuids[::2] == uuids[1::2]


def test_an_event_is_a_copy() -> None:
    labels = [{"a": 1}]
    emitted = event(labels=labels)
    emitted["clouddb"]["operation"]["labels"][0]["a"] = 2
    assert labels == [{"a": 1}]


def full_queue() -> asyncio.Queue[Any]:
    queue = asyncio.Queue[Any]()
    queue.put_nowait({})
    return queue


def test_an_event_is_delivered_once_it_is_received(monkeypatch: pytest.MonkeyPatch) -> None:
    full = full_queue()
    pauses: list[float] = []

    async def receive(pause: float) -> None:
        pauses.append(pause)
        full.get_nowait()

    async def main() -> None:
        queues: list[Any] = [full, SimpleNamespace(queue=full)]
        for queue in queues:
            assert not emitter.is_delivered(queue)
            await emitter.wait_until_delivered(queue)
            assert emitter.is_delivered(queue)
            full.put_nowait({})

    monkeypatch.setattr(asyncio, "sleep", receive)
    asyncio.run(main())
    assert pauses == [0.02, 0.02]
    without_empty: Any = SimpleNamespace(put=None)
    assert emitter.is_delivered(without_empty)


def test_the_rules_have_a_minute_to_receive_an_event(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    async def sleep(pause: float) -> None:
        pauses.append(pause)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    monkeypatch.setattr(emitter, "time", SimpleNamespace(monotonic=lambda: sum(pauses)))
    asyncio.run(emitter.wait_until_delivered(full_queue()))
    assert sum(pauses) == pytest.approx(60, abs=0.1)
