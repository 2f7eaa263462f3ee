# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs playbooks of one play on this machine and measures how long their tasks take."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from ansible_collections.clouddb.control.tests.benchmark.processes import Usage, usage_of

Task = dict[str, Any]


class TaskTime(NamedTuple):
    """Start and end of a task in seconds since the epoch, and the strings and numbers of its result."""

    name: str
    started: float
    ended: float
    result: dict[str, Any]

    @property
    def seconds(self) -> float:
        return self.ended - self.started


class PlaybookRun(NamedTuple):
    """The tasks of a playbook, in order, and the resource usage of ansible-playbook."""

    tasks: list[TaskTime]
    usage: Usage


def run_playbook(tasks: list[Task], variables: dict[str, Any], **environment: str) -> PlaybookRun:
    """Run tasks with ansible-playbook. If one fails, raise RuntimeError with the output of ansible-playbook."""
    with tempfile.TemporaryDirectory() as folder:
        playbook, times = Path(folder) / "playbook.json", Path(folder) / "times"
        play = {
            "hosts": "localhost",
            "gather_facts": False,
            "vars": {**variables, "ansible_python_interpreter": "{{ ansible_playbook_python }}"},
            "tasks": tasks,
        }
        playbook.write_text(json.dumps([play]), encoding="utf-8")
        env = {
            **os.environ,
            "ANSIBLE_CALLBACK_PLUGINS": str(Path(__file__).with_name("callback_plugins")),
            "BENCHMARK_TASK_TIMES": str(times),
            **environment,
        }
        program = Path(sys.executable).with_name("ansible-playbook")
        try:
            usage = usage_of(sys.executable, str(program), str(playbook), env=env)
        except subprocess.CalledProcessError:
            failed = subprocess.run(
                [sys.executable, str(program), str(playbook)], env=env, stdout=subprocess.PIPE, text=True, check=False
            )
            raise RuntimeError(f"The playbook failed. Output of a second run:\n{failed.stdout}") from None
        lines = times.read_text(encoding="utf-8").splitlines()
        return PlaybookRun([TaskTime(**json.loads(line)) for line in lines], usage)


def keep_payloads(tasks: list[Task], variables: dict[str, Any], folder: Path) -> list[Path]:
    """Run tasks and return the payloads, one for each task and in order: the programs that Ansible sends to the host."""
    separate = [
        {**task, "vars": {"ansible_remote_tmp": str(folder / f"{number:03d}")}} for number, task in enumerate(tasks)
    ]
    run_playbook(separate, variables, ANSIBLE_KEEP_REMOTE_FILES="1")
    return sorted(folder.glob("*/ansible-tmp-*/AnsiballZ_*.py"))
