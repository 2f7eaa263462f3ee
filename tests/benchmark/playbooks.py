# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs playbooks of one play on this machine and tells how long each of their tasks took."""

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
    """When a task began and ended, in seconds since the epoch, and the plain values of its result."""

    name: str
    started: float
    ended: float
    result: dict[str, Any]

    @property
    def seconds(self) -> float:
        return self.ended - self.started


class Played(NamedTuple):
    """The tasks of a playbook, in order, and what all of it took."""

    tasks: list[TaskTime]
    usage: Usage


def play(tasks: list[Task], variables: dict[str, Any], **environment: str) -> Played:
    """Run these tasks by ansible-playbook, as any user would. Raises RuntimeError with its output when one fails."""
    with tempfile.TemporaryDirectory() as folder:
        playbook, times = Path(folder) / "playbook.json", Path(folder) / "times"
        given = {**variables, "ansible_python_interpreter": "{{ ansible_playbook_python }}"}
        playbook.write_text(
            json.dumps([{"hosts": "localhost", "gather_facts": False, "vars": given, "tasks": tasks}]), encoding="utf-8"
        )
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
            raise RuntimeError(f"the playbook failed; once more:\n{failed.stdout}") from None
        return Played([TaskTime(**json.loads(line)) for line in times.read_text(encoding="utf-8").splitlines()], usage)


def keep_payloads(tasks: list[Task], variables: dict[str, Any], folder: Path) -> list[Path]:
    """Run these tasks and keep the programs, one a task and in order, that Ansible sends to the host for them."""
    apart = [
        {**task, "vars": {"ansible_remote_tmp": str(folder / f"{number:03d}")}} for number, task in enumerate(tasks)
    ]
    play(apart, variables, ANSIBLE_KEEP_REMOTE_FILES="1")
    return sorted(folder.glob("*/ansible-tmp-*/AnsiballZ_*.py"))
