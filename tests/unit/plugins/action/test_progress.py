# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The action plugins that show progress, with a fake module. The integration target operation_wait runs the real one."""

from __future__ import annotations

import copy
import os
import select
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, BinaryIO
from unittest import mock

import pytest
from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.action import ActionBase

from ansible_collections.clouddb.control.plugins.action import operation_wait
from ansible_collections.clouddb.control.plugins.plugin_utils import _progress
from ansible_collections.clouddb.control.plugins.plugin_utils._progress import (
    heartbeat_line,
    progress_lines,
    show,
)

BASE_RUN = ActionBase.run
# What Ansible returns for a module that was killed, or whose connection broke.
NO_RESULT = {"failed": True, "module_stdout": "", "module_stderr": "", "msg": "MODULE FAILURE", "rc": -13}


def operation(name: str, status: str | None, **fields: Any) -> dict[str, Any]:
    return {"id": f"{name}-0123456789", "project_id": "proj-1", "action": "create_branch", "status": status, **fields}


def test_each_status_change_is_a_line_that_counts_what_is_done() -> None:
    operations = [operation("a", "finished"), operation("b", "finished"), operation("c", "running")]
    changes = [
        operation("c", "running", previous_status="scheduling", elapsed=2.2),
        operation("b", "finished", previous_status="running", elapsed=11.9),
    ]

    assert progress_lines(operations, changes) == [
        "clouddb: proj-1 create_branch c-012345 scheduling → running (2 s) · 1 of 3 done",
        "clouddb: proj-1 create_branch b-012345 running → finished (12 s) · 2 of 3 done",
    ]


def test_a_heartbeat_names_an_operation_that_is_waited_for() -> None:
    operations = [operation("a", "finished"), operation("b", None), operation("c", "running")]

    assert (
        heartbeat_line(operations, 60.4)
        == "clouddb: waiting for 2 of 3 operations (60 s), including proj-1 create_branch b-012345 not polled yet"
    )
    assert (
        heartbeat_line(operations[2:], 60.4)
        == "clouddb: waiting for 1 of 1 operation (60 s), including proj-1 create_branch c-012345 running"
    )
    # A resource may not be in the requested state yet when its operations have succeeded.
    for done in ([], operations[:1]):
        assert heartbeat_line(done, 60.4) == "clouddb: waiting for the service (60 s)"


class Task:
    """A task with the plugin, on a fake clock: each run of the module takes C(seconds) and has the next outcome."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        *outcomes: Any,
        seconds: float = 60.0,
        **task: Any,
    ):
        self._seconds = seconds
        self.now = 0.0
        self.calls: list[dict[str, Any]] = []
        self.shown: list[str] = []
        self._outcomes = list(outcomes)
        self._task = SimpleNamespace(
            **{"args": {"project_id": "proj-1"}, "async_val": 0, "check_mode": False, "no_log": False, **task}
        )
        monkeypatch.setattr(_progress.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(_progress.time, "sleep", self._pass)
        monkeypatch.setattr(_progress, "show", self.shown.append)

    def run(self, **task_vars: Any) -> dict[str, Any]:
        templar = SimpleNamespace(template=lambda value: False if value == "{{ false }}" else value)
        plugin = operation_wait.ActionModule(self._task, mock.Mock(), mock.Mock(), mock.Mock(), templar, mock.Mock())
        with (
            mock.patch.object(plugin, "_execute_module", self._module),
            mock.patch.object(ActionBase, "run", autospec=True) as base_run,
        ):
            base_run.side_effect = lambda plugin, tmp, task_vars: BASE_RUN(plugin, None, task_vars)
            result: dict[str, Any] = plugin.run("tmp", task_vars)
        base_run.assert_called_once_with(plugin, "tmp", task_vars)
        return result

    def _pass(self, seconds: float) -> None:
        self.now += seconds

    def _module(
        self, module_args: dict[str, Any] | None = None, task_vars: Any = None, wrap_async: Any = 0
    ) -> dict[str, Any]:
        self.calls.append({"args": module_args, "async": wrap_async, "variables": task_vars})
        self._pass(self._seconds)
        outcome = self._outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return copy.deepcopy(dict(outcome))


STATE = {"remaining": 240.0, "anything": [1]}
PENDING = {"operations": [operation("a", "running")], "elapsed": 120, "_state": STATE, "_changes": []}
CHANGED = {
    **PENDING,
    "_changes": [operation("a", "running", previous_status="scheduling", elapsed=1)],
    "invocation": {"module_args": {"x": 1}},
}
FINISHED = {
    "operations": [operation("a", "finished")],
    "elapsed": 1,
    "_changes": [operation("a", "finished", previous_status="running", elapsed=2)],
    "invocation": {"module_args": {"x": 1}},
}
RESULT = {"operations": FINISHED["operations"], "elapsed": 1, "invocation": {"module_args": {"x": 1}}}


def test_each_run_resumes_from_the_state_of_the_previous_one(monkeypatch: pytest.MonkeyPatch) -> None:
    later_state = {**STATE, "anything": [2]}
    task = Task(monkeypatch, CHANGED, {**PENDING, "_state": later_state}, FINISHED)

    assert task.run() == RESULT
    assert [call["args"] for call in task.calls] == [
        {"project_id": "proj-1", "_stop_when": {"min_seconds": 2.0, "max_seconds": 60.0}},
        {"project_id": "proj-1", "_stop_when": {"min_seconds": 3.0, "max_seconds": 60.0}, "_state": STATE},
        {"project_id": "proj-1", "_stop_when": {"min_seconds": 4.5, "max_seconds": 60.0}, "_state": later_state},
    ]
    assert task.shown == [
        "clouddb: proj-1 create_branch a-012345 scheduling → running (1 s) · 0 of 1 done",
        "clouddb: waiting for 1 of 1 operation (120 s), including proj-1 create_branch a-012345 running",
        "clouddb: proj-1 create_branch a-012345 running → finished (2 s) · 1 of 1 done",
    ]


def test_a_minute_of_silence_is_a_heartbeat_unless_the_wait_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    heartbeat = "clouddb: waiting for 1 of 1 operation (120 s), including proj-1 create_branch a-012345 running"
    change = "clouddb: proj-1 create_branch a-012345 scheduling → running (1 s) · 0 of 1 done"
    over = {"operations": FINISHED["operations"], "elapsed": 1}
    task = Task(monkeypatch, PENDING, PENDING, CHANGED, PENDING, PENDING, PENDING, over, seconds=30)
    shown: list[tuple[float, str]] = []
    monkeypatch.setattr(_progress, "show", lambda line: shown.append((task.now, line)))
    task.run()
    assert shown == [(60.0, heartbeat), (90.0, change), (150.0, heartbeat)]


@pytest.mark.parametrize("task", [{}, {"async_val": 30}, {"check_mode": True}], ids=str)
def test_a_task_whose_options_may_be_secret_is_not_logged_on_the_target(
    monkeypatch: pytest.MonkeyPatch, task: dict[str, Any]
) -> None:
    request = Task(monkeypatch, FINISHED, **task)
    request.run(colour="blue")
    assert [call["variables"] for call in request.calls] == [{"colour": "blue", "ansible_no_target_syslog": True}]


def test_the_result_has_what_the_first_run_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    first = {**PENDING, "changed": True, "json": {"branch": {}}, "warnings": ["lost"]}
    request = Task(monkeypatch, first, {**FINISHED, "warnings": ["lost", "odd"]})
    assert request.run() == {**RESULT, "changed": True, "json": {"branch": {}}, "warnings": ["lost", "odd"]}
    # At the end, the service may turn out to have ignored the change.
    assert Task(monkeypatch, first, {**FINISHED, "changed": False}).run()["changed"] is False


def test_a_request_is_not_sent_twice_to_an_unreachable_host(monkeypatch: pytest.MonkeyPatch) -> None:
    locked = {**PENDING, "_state": {**STATE, "is_sent": False}}
    request = Task(monkeypatch, locked, AnsibleConnectionFailure("lost"), seconds=0)
    with pytest.raises(AnsibleConnectionFailure):
        request.run()
    assert len(request.calls) == 2


@pytest.mark.parametrize(
    ("task", "task_vars"),
    [
        ({"async_val": 30}, {}),
        ({"check_mode": True}, {}),
        ({"no_log": True}, {}),
        ({"args": {"progress": "no"}}, {}),
        ({}, {"clouddb_progress": False}),
        ({}, {"clouddb_progress": "{{ false }}"}),
    ],
    ids=["async", "check mode", "no_log", "option", "variable", "template"],
)
def test_without_progress_the_module_runs_once(
    monkeypatch: pytest.MonkeyPatch, task: dict[str, Any], task_vars: dict[str, Any]
) -> None:
    quiet = Task(monkeypatch, {"operations": []}, **task)
    assert quiet.run(**task_vars) == {"operations": []}
    [call] = quiet.calls
    assert (call["args"], call["async"]) == (None, task.get("async_val", 0))
    assert not quiet.shown


@pytest.mark.parametrize("lost", [AnsibleConnectionFailure("lost"), NO_RESULT])
def test_a_run_that_was_lost_is_repeated(monkeypatch: pytest.MonkeyPatch, lost: Any) -> None:
    task = Task(monkeypatch, PENDING, lost, FINISHED)
    assert task.run() == RESULT
    assert [call["args"].get("_state") for call in task.calls] == [None, STATE, STATE]


def test_a_host_that_stays_unreachable_fails_the_task_at_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second run ends after 20 s, with 40 s until the deadline. Attempts end after 30 s, 45 s and 60 s."""
    last_state = {**PENDING, "_state": {"remaining": 40.0}}
    task = Task(monkeypatch, PENDING, last_state, *[AnsibleConnectionFailure("lost")] * 20, seconds=10)
    with pytest.raises(AnsibleConnectionFailure):
        task.run()
    assert (task.now, len(task.calls)) == (60, 5)
    assert Task(monkeypatch, PENDING, *[NO_RESULT] * 20, seconds=10).run()["rc"] == -13


@pytest.mark.parametrize("callback", ["json", "ansible.posix.jsonl"])
def test_no_progress_in_output_for_programs(monkeypatch: pytest.MonkeyPatch, callback: str) -> None:
    monkeypatch.setattr(_progress.constants, "DEFAULT_STDOUT_CALLBACK", callback)
    task = Task(monkeypatch, FINISHED, args={"progress": True})
    task.run()
    assert (len(task.calls), task.shown) == (1, [])


@pytest.fixture
def stderr(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """The reader and the writer of a pipe in place of standard error. A write that would block fails."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    monkeypatch.setattr(_progress, "STDERR", writer)
    with open(reader, "rb") as read_end, open(writer, "wb", buffering=0) as write_end:
        yield read_end, write_end


def test_a_line_is_in_standard_error_and_in_the_log(
    stderr: tuple[BinaryIO, BinaryIO], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    show("100% → finished")
    assert stderr[0].readline().decode() == "100% → finished\n"
    assert [(record.name, record.getMessage()) for record in caplog.records] == [("ansible", "100% → finished")]


def test_a_reader_that_has_stopped_reading_does_not_block_the_wait(stderr: tuple[BinaryIO, BinaryIO]) -> None:
    reader, writer = stderr
    while writer.write(b"x" * select.PIPE_BUF):
        pass
    show("late")
    reader.read(select.PIPE_BUF)
    show("later")
    writer.close()
    assert reader.read().endswith(b"xlater\n")


def test_a_closed_output_does_not_fail_the_wait(
    monkeypatch: pytest.MonkeyPatch, stderr: tuple[BinaryIO, BinaryIO]
) -> None:
    task = Task(monkeypatch, CHANGED, FINISHED)
    monkeypatch.setattr(_progress, "show", show)
    stderr[0].close()
    with pytest.raises(BrokenPipeError):
        show("nobody reads this")
    assert task.run() == RESULT


@pytest.mark.parametrize("field", ["action", "status"])
def test_values_of_the_service_cannot_control_the_terminal(monkeypatch: pytest.MonkeyPatch, field: str) -> None:
    change = {**operation("a", "running", previous_status="scheduling", elapsed=1), field: "x\x1b[2J\ny"}
    task = Task(monkeypatch, {**PENDING, "_changes": [change]}, FINISHED)
    task.run()
    assert len(task.shown) == 2
    assert all(line.isprintable() for line in task.shown)
