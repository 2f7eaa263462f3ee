# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What tasks show with -v and -vvv, with a real ansible-playbook: their requests, and why they do not run in a fork."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
import yaml
from ansible import constants
from ansible.plugins.action.normal import ActionModule as NormalAction

from ansible_collections.clouddb.control.plugins.module_utils._http.transport import TRACE
from ansible_collections.clouddb.control.plugins.plugin_utils._fork import ForkAction
from ansible_collections.clouddb.control.tests.unit.support.playbook import REASON, Playbook
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox

REQUEST = re.compile(r"^<(\w+)> clouddb\.control: (\S+ \S+ \S+) \d+\.\d{3} s [0-9a-f-]{36}$", re.MULTILINE)
WRONG_KEY = "a-wrong-key-0123456789"
PROJECTS = "clouddb.control.project_info"


@pytest.fixture
def seed() -> dict[str, Any]:
    return {"projects": [{"id": "wispy-lake-12345678", "name": "shop"}]}


@pytest.fixture
def playbook(tmp_path: Path, sandbox: Sandbox) -> Playbook:
    return Playbook(tmp_path / "run", sandbox)


# Each task, its requests, and how it runs.
SEARCH = {"path": "projects", "query": {"limit": 5, "org_id": "org-1", "search": "shop"}}
LOOP = {PROJECTS: {"project_id": "{{ item }}"}, "loop": ["wispy-lake-12345678", "no-such-12345678"]}
LIST = ["GET /projects?limit=400 200", "GET /projects?limit=400&cursor=******** 200"]
TASKS: dict[str, tuple[dict[str, Any], list[str], str]] = {
    "list": ({PROJECTS: {}}, LIST, "fork"),
    "failed": ({PROJECTS: {"api_key": WRONG_KEY}}, ["GET /projects?limit=400 401"], "failed in a fork"),
    "loop": (LOOP, ["GET /projects/wispy-lake-12345678 200", "GET /projects/no-such-12345678 404"], "fork"),
    "query": (
        {"clouddb.control.api_request": SEARCH},
        ["GET /projects?limit=5&org_id=org-1&search=******** 404"],
        "failed in a fork",
    ),
    "wait": ({"clouddb.control.operation_wait": {"operations": []}}, [], "fork"),
    "no_log": ({PROJECTS: {}, "no_log": True}, [], "fork"),
    "async": ({PROJECTS: {}, "async": 30, "poll": 1}, [], "The task has async."),
}
NOT_LOCAL = "The connection is not local."


def play(host: str, names: Iterable[str]) -> dict[str, Any]:
    tasks = [{"name": f"{name} {host}", **TASKS[name][0]} for name in names]
    return {"hosts": host, "gather_facts": False, "ignore_errors": True, "tasks": tasks}


def test_each_request_of_a_task_is_shown(playbook: Playbook, sandbox: Sandbox, is_soak: bool) -> None:
    playbook.hosts["other"] = {**playbook.hosts["own"], "ansible_connection": "other"}
    playbook.hosts["own"]["ansible_async_dir"] = playbook.hosts["other"]["ansible_async_dir"] = str(playbook.folder)
    hosts = {"own": [*TASKS], "other": [*TASKS]} if is_soak else {"own": [*TASKS][:-1], "other": ["list"]}
    ran = playbook.run(yaml.safe_dump([play(host, names) for host, names in hosts.items()]), "-vvv")
    output = ran.stdout + ran.stderr
    shown = [(host, request) for host, names in hosts.items() for name in names for request in TASKS[name][1]]
    assert (ran.status, REQUEST.findall(ran.stdout)) == (0, shown), output
    ways = {f"{name} {host}": TASKS[name][2] if host == "own" else NOT_LOCAL for host in hosts for name in hosts[host]}
    assert ran.ways() == ways, output
    assert "_clouddb" not in ran.stdout + str(ran.results)
    assert not [result for result in ran.results if result[0].startswith("async") and result[1] != "ok"]
    assert not {sandbox.api_key, WRONG_KEY} & set(re.findall(r"[\w-]{20,}", output))


@pytest.mark.soak
def test_why_a_task_does_not_run_in_a_fork_is_said_once_a_play(playbook: Playbook) -> None:
    python = {"environment": {"PYTHONWARNINGS": "ignore"}}
    tasks: list[dict[str, Any]] = [
        {"name": "environment", "clouddb.control.operation_wait": {}, "loop": ["first", "second"], **python},
        {"name": "variable", PROJECTS: {}, "vars": {"clouddb_fork": False}},
        {"name": "executable", PROJECTS: {}, "vars": {"ansible_shell_executable": "/bin/dash"}},
        {"name": "connection", PROJECTS: {}, "vars": {"ansible_connection": "other"}},
    ]
    each = {"hosts": "own", "gather_facts": False, "ignore_errors": True, "tasks": tasks}
    ran = playbook.run(yaml.safe_dump([each] * 2), "-v")
    reasons = ["Python reads a variable of environment when it starts.", "The shell is not /bin/sh."]
    assert ran.status == 0
    assert re.findall(f"^{REASON}(.*)$", ran.stdout, re.MULTILINE) == reasons * 2, ran.stdout + ran.stderr


class Display:
    """Ansible's display with C(verbosity); C(shown) are the texts that it has got, with the least verbosity that shows them."""

    def __init__(self, verbosity: int) -> None:
        self.verbosity = verbosity
        self.shown: list[tuple[int, str]] = []

    def v(self, text: str) -> None:
        self.shown.append((1, text))

    def vvv(self, text: str, host: str | None = None) -> None:
        self.shown.append((3, text))


def action(verbosity: int = 0, **task: Any) -> tuple[ForkAction, list[tuple[int, str]]]:
    """The action of a task that is not run, and what it shows."""
    play = SimpleNamespace(_uuid="play-1")
    task = {"async_val": 0, "no_log": False, "get_play": lambda: play, "get_path": str, **task}
    plugin = ForkAction(SimpleNamespace(**task), mock.Mock(), mock.Mock(), mock.Mock(), mock.Mock(), mock.Mock())
    plugin._display = display = Display(verbosity)
    return plugin, display.shown


@pytest.mark.parametrize(
    ("task", "is_asked"),
    [
        ({"verbosity": 3}, True),
        ({"verbosity": 2}, False),
        ({"verbosity": 3, "async_val": 30}, False),
        ({"verbosity": 3, "no_log": True}, False),
    ],
    ids=str,
)
def test_when_a_module_is_asked_for_its_requests(task: dict[str, Any], is_asked: bool) -> None:
    options = {"name": "shop"}
    with mock.patch.object(NormalAction, "_configure_module") as configure:
        action(**task)[0]._configure_module("project_info", options, {})
    assert configure.call_args.args[1] == {"name": "shop", **({TRACE: True} if is_asked else {})}
    assert options == {"name": "shop"}


def test_what_a_host_returns_is_displayed_on_one_line() -> None:
    plugin, shown = action(3)
    result = {"changed": False, TRACE: ["GET /x\x1b[2J\n" + "x" * 1000 + " the id"]}
    with mock.patch.object(NormalAction, "run", return_value=result):
        assert plugin.run() == {"changed": False}
    assert shown[-1] == (3, "clouddb.control: GET /x\\x1b[2J\\n" + "x" * 1000 + " the id")


@pytest.mark.parametrize(
    ("verbosity", "at"), [(0, [3, 3]), (1, [1, 3, 3]), (2, [1, 3, 3]), (3, [3, 3])], ids=["", "-v", "-vv", "-vvv"]
)
def test_a_reason_is_shown_once_unless_it_is_shown_for_each_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verbosity: int, at: list[int]
) -> None:
    monkeypatch.setattr(constants, "DEFAULT_LOCAL_TMP", str(tmp_path))
    plugin, shown = action(verbosity)
    plugin._be_ordinary("The task has become.")
    plugin._be_ordinary("The task has become.")
    assert shown == [(least, f"{REASON}The task has become.") for least in at]
    assert len([*tmp_path.iterdir()]) == (1 in at)


def test_a_reason_is_shown_again_in_another_play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "DEFAULT_LOCAL_TMP", str(tmp_path))
    plugin, shown = action(1)
    for play in ("play-1", "play-2"):
        plugin._task.get_play()._uuid = play
        plugin._be_ordinary("The task has become.")
    assert [least for least, _text in shown] == [1, 3, 1, 3]


def test_a_task_runs_without_a_directory_for_what_was_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "DEFAULT_LOCAL_TMP", str(tmp_path / "missing"))
    plugin, shown = action(1)
    plugin._be_ordinary("The task has become.")
    assert [least for least, _text in shown] == [3]
