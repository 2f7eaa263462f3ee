# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What tasks show with -v and -vvv, with a real ansible-playbook: their requests, and why they do not run in a fork."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.clouddb.control.tests.unit.support.playbook import Playbook, Ran
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox

REASON = "clouddb.control: The module runs in a process that Ansible starts. "
REQUEST = re.compile(r"^<(\w+)> clouddb\.control: (\S+ \S+ \S+) \d+\.\d{3} s [0-9a-f-]{36}$", re.MULTILINE)
WRONG_KEY = "a-wrong-key-0123456789"
PROJECTS = "clouddb.control.project_info"


@pytest.fixture
def seed() -> dict[str, Any]:
    return {"projects": [{"id": "wispy-lake-12345678", "name": "shop"}]}


@pytest.fixture
def playbook(tmp_path: Path, sandbox: Sandbox) -> Playbook:
    return Playbook(tmp_path / "run", sandbox)


def run(playbook: Playbook, verbosity: str, *tasks: dict[str, Any], **play: Any) -> Ran:
    """Run a play with these tasks."""
    plays = [{"hosts": "own", "gather_facts": False, "ignore_errors": True, **play, "tasks": list(tasks)}]
    ran = playbook.run(yaml.safe_dump(plays), verbosity)
    assert ran.status == 0, ran.stdout + ran.stderr
    return ran


@pytest.mark.parametrize("is_fork", [True, False], ids=["fork", "ordinary"])
def test_each_request_of_a_task_is_shown(playbook: Playbook, sandbox: Sandbox, is_fork: bool) -> None:
    search = {"path": "projects", "query": {"limit": 5, "org_id": "org-1", "search": "shop"}}
    ran = run(
        playbook,
        "-vvv",
        {"name": "list", PROJECTS: {}},
        {"name": "failed", PROJECTS: {"api_key": WRONG_KEY}},
        {"name": "loop", PROJECTS: {"project_id": "{{ item }}"}, "loop": ["wispy-lake-12345678", "no-such-12345678"]},
        {"name": "query", "clouddb.control.api_request": search},
        {"name": "wait", "clouddb.control.operation_wait": {"operations": []}},
        {"name": "no_log", PROJECTS: {}, "no_log": True},
        {"name": "async", PROJECTS: {}, "async": 30, "poll": 1},
        vars={"clouddb_fork": is_fork, "ansible_async_dir": str(playbook.folder / "async")},
    )
    assert REQUEST.findall(ran.stdout) == [
        ("own", "GET /projects?limit=400 200"),
        ("own", "GET /projects?limit=400&cursor=******** 200"),
        ("own", "GET /projects?limit=400 401"),
        ("own", "GET /projects/wispy-lake-12345678 200"),
        ("own", "GET /projects/no-such-12345678 404"),
        ("own", "GET /projects?limit=5&org_id=org-1&search=******** 404"),
    ], ran.stdout + ran.stderr
    assert "_clouddb" not in ran.stdout + str(ran.results)
    assert [event for name, event, _result in ran.results if name == "async"] == ["ok"]
    assert not {sandbox.api_key, WRONG_KEY} & set(re.findall(r"[\w-]{20,}", ran.stdout + ran.stderr))


def test_why_a_task_does_not_run_in_a_fork_is_said_once_a_play(playbook: Playbook) -> None:
    python = {"environment": {"PYTHONWARNINGS": "ignore"}}
    tasks = [
        {"name": "environment", PROJECTS: {"name": "{{ item }}"}, "loop": ["shop", "blog"], **python},
        {"name": "again", PROJECTS: {}, **python},
        {"name": "variable", PROJECTS: {}, "vars": {"clouddb_fork": False}},
        {"name": "executable", PROJECTS: {}, "vars": {"ansible_shell_executable": "/bin/dash"}},
    ]
    ran = run(playbook, "-v", *tasks)
    assert re.findall(f"^{REASON}(.*)$", ran.stdout, re.MULTILINE) == [
        "Python reads a variable of environment when it starts.",
        "The shell is not /bin/sh.",
    ], ran.stdout + ran.stderr
