# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The action plugins that show progress, with a fake module. The integration target operation_wait runs the real one."""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO, Callable
from unittest import mock

import pytest
from ansible.plugins.action import ActionBase

from ansible_collections.clouddb.control.plugins.action import operation_wait
from ansible_collections.clouddb.control.plugins.module_utils._operations.progress import VARIABLE
from ansible_collections.clouddb.control.plugins.plugin_utils import _progress
from ansible_collections.clouddb.control.plugins.plugin_utils._progress import show

SECONDS = 10.0


class Task:
    """A task with the plugin. C(shown) has the lines that it has shown, C(environments) those of its modules."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, write: Callable[[BinaryIO], None] | None = None, **task: Any
    ) -> None:
        self.shown: list[str] = []
        self.has_shown = threading.Event()
        self.environments: list[Any] = []
        self.variables: list[Any] = []
        self._write = write
        self.task = SimpleNamespace(
            get_path=str, **{"args": {}, "action": "operation_wait", "environment": [{"COLOUR": "blue"}], **task}
        )
        for name in ("async_val", "check_mode", "no_log"):
            vars(self.task).setdefault(name, False)
        monkeypatch.setattr(_progress, "show", self._show)

    def run(self, transport: str = "local", **task_vars: Any) -> dict[str, Any]:
        templar = SimpleNamespace(template=lambda value: False if value == "{{ false }}" else value)
        connection = mock.Mock(transport=transport)
        plugin = operation_wait.ActionModule(self.task, connection, mock.Mock(), mock.Mock(), templar, mock.Mock())
        with (
            mock.patch.object(plugin, "_execute_module", self._module),
            mock.patch.object(plugin, "_remove_tmp_path"),
            mock.patch.object(ActionBase, "run", return_value={}),
        ):
            return dict(plugin.run(None, task_vars))

    def _show(self, line: str) -> None:
        self.shown.append(line)
        self.has_shown.set()

    def _module(self, task_vars: Any, wrap_async: Any) -> dict[str, Any]:
        self.environments.append(self.task.environment)
        self.variables.append(task_vars)
        if self._write:
            with open(self.task.environment[-1][VARIABLE], "wb", buffering=0) as pipe:
                self._write(pipe)
        return {"operations": []}


def test_lines_are_shown_while_the_module_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def write(pipe: BinaryIO) -> None:
        pipe.write("100% → finished\n".encode())
        assert task.has_shown.wait(SECONDS)
        pipe.write(b"the last one")  # a killed module does not end its line

    task = Task(monkeypatch, write)
    assert task.run() == {"operations": []}
    assert task.shown == ["100% → finished", "the last one"]
    [[given, added]] = task.environments
    assert (given, added.keys(), task.task.environment) == ({"COLOUR": "blue"}, {VARIABLE}, [given])
    assert not os.path.exists(os.path.dirname(added[VARIABLE]))


@pytest.mark.parametrize("task", [{}, {"async_val": 30}, {"check_mode": True}], ids=str)
def test_a_task_whose_options_may_be_secret_is_not_logged_on_the_target(
    monkeypatch: pytest.MonkeyPatch, task: dict[str, Any]
) -> None:
    request = Task(monkeypatch, **task)
    request.run(colour="blue")
    assert request.variables == [{"colour": "blue", "ansible_no_target_syslog": True}]


@pytest.mark.parametrize(
    ("task", "task_vars"),
    [
        ({"async_val": 30}, {}),
        ({"check_mode": True}, {}),
        ({"no_log": True}, {}),
        ({"args": {"progress": "no"}}, {}),
        ({}, {"clouddb_progress": False}),
        ({}, {"clouddb_progress": "{{ false }}"}),
        ({}, {"transport": "ssh"}),
    ],
    ids=["async", "check mode", "no_log", "option", "variable", "template", "another machine"],
)
def test_when_no_progress_is_shown(
    monkeypatch: pytest.MonkeyPatch, task: dict[str, Any], task_vars: dict[str, Any]
) -> None:
    quiet = Task(monkeypatch, **task)
    assert quiet.run(**task_vars) == {"operations": []}
    assert quiet.environments == [[{"COLOUR": "blue"}]]


@pytest.mark.parametrize("callback", ["json", "ansible.posix.jsonl"])
def test_no_progress_in_output_for_programs(monkeypatch: pytest.MonkeyPatch, callback: str) -> None:
    monkeypatch.setattr(_progress.constants, "DEFAULT_STDOUT_CALLBACK", callback)
    task = Task(monkeypatch, args={"progress": True})
    task.run()
    assert task.environments == [[{"COLOUR": "blue"}]]


def test_without_a_directory_for_the_pipe_nothing_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_progress.constants, "DEFAULT_LOCAL_TMP", str(tmp_path / "missing"))
    task = Task(monkeypatch, lambda pipe: None)
    assert task.run() == {"operations": []}
    assert task.environments[0][-1] == {VARIABLE: os.devnull}


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


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_closed_output_does_not_fail_the_wait(
    monkeypatch: pytest.MonkeyPatch, stderr: tuple[BinaryIO, BinaryIO]
) -> None:
    task = Task(monkeypatch, lambda pipe: pipe.write(b"one\ntwo\n") and None)
    monkeypatch.setattr(_progress, "show", show)
    stderr[0].close()
    with pytest.raises(BrokenPipeError):
        show("nobody reads this")
    assert task.run() == {"operations": []}
