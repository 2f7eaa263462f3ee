# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lines that the action plugin shows; that it runs the module rightly is shown by its integration target."""

from __future__ import annotations

from typing import Any

from ansible_collections.clouddb.control.plugins.action.operation_wait import heartbeat_line, progress_lines
from ansible_collections.clouddb.control.plugins.module_utils.looking import DONE


def operation(name: str, status: str | None, **fields: Any) -> dict[str, Any]:
    return {"id": f"{name}-0123456789", "project_id": "proj-1", "action": "create_branch", "status": status, **fields}


def test_each_change_is_a_line_that_counts_what_is_done() -> None:
    operations = [operation("a", "finished"), operation("b", "finished"), operation("c", "running")]
    changes = [
        operation("c", "running", previous_status="scheduling", elapsed=2.2),
        operation("b", "finished", previous_status="running", elapsed=11.9),
    ]

    assert progress_lines(operations, changes) == [
        "clouddb: proj-1 create_branch c-012345 scheduling → running (2 s) · 1 of 3 done",
        "clouddb: proj-1 create_branch b-012345 running → finished (12 s) · 2 of 3 done",
    ]


def test_no_change_is_no_line() -> None:
    assert not progress_lines([operation("a", "running")], [])


def test_a_heartbeat_names_what_is_waited_for() -> None:
    operations = [operation("a", "finished"), operation("b", None), operation("c", "running")]

    assert heartbeat_line(operations, 60.4) == "clouddb: waiting for 2 of 3 operations (60 s), among them proj-1 create_branch b-012345 not seen yet"
    assert heartbeat_line([], 60.4) == "clouddb: waiting for 0 of 0 operations (60 s)"


def test_the_plugin_and_the_module_agree_on_what_is_done() -> None:
    from ansible_collections.clouddb.control.plugins.action import operation_wait

    assert set(operation_wait.DONE) == DONE
