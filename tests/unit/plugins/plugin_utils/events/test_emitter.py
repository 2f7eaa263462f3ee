# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The content of an event."""

from __future__ import annotations

from typing import Any

from ansible_collections.clouddb.control.plugins.plugin_utils._events.changes import Change
from ansible_collections.clouddb.control.plugins.plugin_utils._events.emitter import event_of

RUN = "{{ lookup('ansible.builtin.pipe', 'id') }}"


def event(project_id: str = "p-1", project: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    operation = {"id": "op-1", "project_id": project_id, "status": "failed", **fields}
    return event_of(Change(operation, None), {"id": project_id, **(project or {})})


def test_texts_hold_no_templates() -> None:
    emitted = event(error=RUN, extra=[{"k": RUN + "{%{#{{{"}], project={"name": "$ANSIBLE_VAULT;1.1"})["clouddb"]
    assert emitted["operation"]["error"] == "{ { lookup('ansible.builtin.pipe', 'id') }}"
    assert emitted["operation"]["extra"] == [{"k": "{ { lookup('ansible.builtin.pipe', 'id') }}{ %{ #{ { { "}]
    assert emitted["project"]["name"] == "$ ANSIBLE_VAULT;1.1"


def test_two_texts_in_a_row_are_no_template() -> None:
    emitted = event(action="{", error="{ 1 }}")["clouddb"]["operation"]
    assert emitted["action"] + emitted["error"] == "{ { 1 }}"


def test_texts_are_displayable() -> None:
    emitted = event(error="\x1b[31mred\n\u202e", project={"name": "x" * 30_000})["clouddb"]
    assert emitted["operation"]["error"] == r"\x1b[31mred\n\u202e"
    assert len(emitted["project"]["name"]) == 20_000


def test_one_operation_id_in_two_projects_is_two_events() -> None:
    ids = [event(project_id)["meta"]["uuid"] for project_id in ("p-1", "p-2", "p-1")]
    assert ids[0] == ids[2] != ids[1]


def test_other_statuses_and_times_are_other_events() -> None:
    ids = {event(status=status, updated_at=time)["meta"]["uuid"] for status in "ab" for time in ("a b", "c", None)}
    assert len(ids) == 6


def test_an_event_is_a_copy() -> None:
    labels = [{"a": 1}]
    emitted = event(labels=labels)
    emitted["clouddb"]["operation"]["labels"][0]["a"] = 2
    assert labels == [{"a": 1}]
