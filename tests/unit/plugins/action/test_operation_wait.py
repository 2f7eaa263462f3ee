# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The action plugin, with a stand-in for the module; its integration target has the real one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from ansible.errors import AnsibleConnectionFailure

from ansible_collections.clouddb.control.plugins.action import operation_wait
from ansible_collections.clouddb.control.plugins.action.operation_wait import (
    ActionModule,
    heartbeat_line,
    progress_lines,
)


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

    assert (
        heartbeat_line(operations, 60.4)
        == "clouddb: waiting for 2 of 3 operations (60 s), among them proj-1 create_branch b-012345 not seen yet"
    )
    assert heartbeat_line([], 60.4) == "clouddb: waiting for 0 of 0 operations (60 s)"


class Watch:
    """The plugin in a task, on a clock that sleeping moves: each run of the module takes a minute and comes to the next outcome."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *outcomes: Any, **task: Any):
        self.now = 0.0
        self.calls: list[dict[str, Any]] = []
        self.shown: list[str] = []
        self._outcomes = list(outcomes)
        self._task = SimpleNamespace(
            **{"args": {"project_id": "proj-1"}, "async_val": 0, "check_mode": False, "no_log": False, **task}
        )
        monkeypatch.setattr(operation_wait.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(operation_wait.time, "sleep", self._pass)
        monkeypatch.setattr(operation_wait.display, "display", self.shown.append)

    def run(self, **task_vars: Any) -> dict[str, Any]:
        templar = SimpleNamespace(template=lambda value: value)
        plugin = ActionModule(self._task, mock.Mock(), mock.Mock(), mock.Mock(), templar, mock.Mock())
        with (
            mock.patch.object(plugin, "_execute_module", self._module),
            mock.patch("ansible.plugins.action.ActionBase.run", return_value={}),
        ):
            result: dict[str, Any] = plugin.run(task_vars=task_vars)
        return result

    def _pass(self, seconds: float) -> None:
        self.now += seconds

    def _module(
        self, module_args: dict[str, Any] | None = None, task_vars: Any = None, wrap_async: Any = 0
    ) -> dict[str, Any]:
        self.calls.append({"args": module_args, "async": wrap_async, "variables": task_vars})
        self._pass(60)
        outcome = self._outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return dict(outcome)


PENDING = {"operations": [operation("a", "running")], "_left": {"state": 1}, "_changes": []}
CHANGED = {
    **PENDING,
    "_changes": [operation("a", "running", previous_status="scheduling", elapsed=1)],
    "invocation": {"module_args": {"_part": {}, "x": 1}},
}
ENDED = {
    "operations": [operation("a", "finished")],
    "elapsed": 1,
    "_changes": [operation("a", "finished", previous_status="running", elapsed=2)],
}


def test_parts_go_on_where_the_last_one_left(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = Watch(monkeypatch, CHANGED, PENDING, ENDED)

    assert watch.run() == {"operations": ENDED["operations"], "elapsed": 1}
    parts = [call["args"]["_part"] for call in watch.calls]
    assert [part["left"] for part in parts] == [None, {"state": 1}, {"state": 1}]
    assert [part["elapsed"] for part in parts] == [0, 60, 120]
    assert parts[0]["at_least"] < parts[1]["at_least"] < parts[2]["at_least"]
    assert watch.shown == [
        "clouddb: proj-1 create_branch a-012345 scheduling → running (1 s) · 0 of 1 done",
        "clouddb: waiting for 1 of 1 operations (120 s), among them proj-1 create_branch a-012345 running",
        "clouddb: proj-1 create_branch a-012345 running → finished (2 s) · 1 of 1 done",
    ]


def test_only_the_first_part_is_logged_on_the_target(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = Watch(monkeypatch, PENDING, PENDING, ENDED)

    watch.run(colour="blue")
    unlogged = {"colour": "blue", "ansible_no_target_syslog": True}
    assert [call["variables"] for call in watch.calls] == [{"colour": "blue"}, unlogged, unlogged]


def test_the_module_s_failure_is_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = {"failed": True, "msg": "timeout: must be a number", "failure": {"kind": "invalid_option"}}
    assert Watch(monkeypatch, failed).run() == failed


@pytest.mark.parametrize(
    ("task", "task_vars"),
    [
        ({"async_val": 30}, {}),
        ({"check_mode": True}, {}),
        ({"no_log": True}, {}),
        ({"args": {"progress": "no"}}, {}),
        ({}, {"clouddb_progress": False}),
    ],
    ids=["async", "check mode", "no_log", "option", "variable"],
)
def test_where_nothing_is_to_be_shown_the_module_waits_by_itself(
    monkeypatch: pytest.MonkeyPatch, task: dict[str, Any], task_vars: dict[str, Any]
) -> None:
    watch = Watch(monkeypatch, {"operations": []}, **task)
    assert watch.run(**task_vars) == {"operations": []}
    [call] = watch.calls
    assert (call["args"], call["async"]) == (None, task.get("async_val", 0))
    assert not watch.shown


def test_the_option_wins_over_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = Watch(monkeypatch, ENDED, args={"progress": True})
    watch.run(clouddb_progress=False)
    assert len(watch.shown) == 1


def test_a_host_that_is_lost_for_a_moment_does_not_end_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = Watch(monkeypatch, PENDING, AnsibleConnectionFailure("lost"), ENDED)
    assert watch.run()["operations"] == ENDED["operations"]
    assert watch.calls[2]["args"]["_part"]["left"] == {"state": 1}


@pytest.mark.parametrize(
    "outcomes",
    [[AnsibleConnectionFailure("lost")], [PENDING, *[AnsibleConnectionFailure("lost")] * 20]],
    ids=["at the start", "until the deadline"],
)
def test_a_host_that_stays_lost_does(monkeypatch: pytest.MonkeyPatch, outcomes: list[Any]) -> None:
    with pytest.raises(AnsibleConnectionFailure):
        Watch(monkeypatch, *outcomes).run()


def test_a_wait_ends_right_when_nothing_can_be_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(line: str) -> None:
        raise BrokenPipeError

    watch = Watch(monkeypatch, CHANGED, ENDED)
    monkeypatch.setattr(operation_wait.display, "display", broken)
    assert watch.run() == {"operations": ENDED["operations"], "elapsed": 1}


def test_what_the_service_sends_can_not_write_elsewhere_on_the_screen() -> None:
    line = heartbeat_line([{**operation("a", "running"), "action": "x\x1b[2J\ny"}], 60)
    assert line.isprintable()
