# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cost of one task: of project_info, of ansible.builtin.uri doing the same call, and of ansible.builtin.ping."""

from __future__ import annotations

import sys
import tempfile
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from ansible_collections.clouddb.control.tests.benchmark import sandbox
from ansible_collections.clouddb.control.tests.benchmark.import_times import import_times
from ansible_collections.clouddb.control.tests.benchmark.playbooks import Task, keep_payloads, play
from ansible_collections.clouddb.control.tests.benchmark.processes import in_turn, quickest, usage_of

ROUNDS = 30
PROCESS_ROUNDS = 15
SEED = {"projects": [{"name": name, "compute": False} for name in ("shop", "blog", "wiki")]}

TASKS: dict[str, Task] = {
    "ping": {"ansible.builtin.ping": {}},
    "uri": {
        "ansible.builtin.uri": {
            "url": "{{ base_url }}/projects",
            "headers": {"Authorization": "Bearer {{ api_key }}"},
            "return_content": True,
        }
    },
    "project_info": {"clouddb.control.project_info": {"base_url": "{{ base_url }}", "api_key": "{{ api_key }}"}},
}


def measure() -> dict[str, Any]:
    """Seconds of whole tasks, with and without pipelining, and where they go."""
    with sandbox.running(SEED) as service, tempfile.TemporaryDirectory() as folder:
        variables = {"base_url": service.base_url, "api_key": sandbox.API_KEY}
        payloads = dict(zip(TASKS, keep_payloads(list(TASKS.values()), variables, Path(folder))))
        return {
            "rounds": ROUNDS,
            "tasks": {
                "default": _task_seconds(variables),
                "pipelining": _task_seconds(variables, ANSIBLE_PIPELINING="1"),
            },
            "process_rounds": PROCESS_ROUNDS,
            "processes": _processes(payloads),
            "payload_bytes": {name: payload.stat().st_size for name, payload in payloads.items()},
            "import_seconds": {name: import_times(payload) for name, payload in payloads.items()},
        }


def _task_seconds(variables: dict[str, Any], **environment: str) -> dict[str, dict[str, float]]:
    # The first round builds what Ansible keeps for the later ones.
    tasks = [{"name": name, **task} for _round in range(ROUNDS + 1) for name, task in TASKS.items()]
    times = play(tasks, variables, **environment).tasks[len(TASKS) :]
    seconds = {name: [time.seconds for time in times if time.name == name] for name in TASKS}
    # Round by round, so that the machine's moods hit both sides of a ratio alike.
    ours = {
        f"of_{name}": [own / other for own, other in zip(seconds["project_info"], seconds[name])]
        for name in ("uri", "ping")
    }
    ratios = {name: median(each) for name, each in ours.items()}
    return {"ratios": ratios, **{name: _summary(each) for name, each in seconds.items()}}


def _processes(payloads: dict[str, Path]) -> dict[str, dict[str, float]]:
    measures = {name: partial(usage_of, sys.executable, str(payload)) for name, payload in payloads.items()}
    usages = in_turn(PROCESS_ROUNDS, python=partial(usage_of, sys.executable, "-c", "pass"), **measures)
    return {name: quickest(each)._asdict() for name, each in usages.items()}


def _summary(seconds: list[float]) -> dict[str, float]:
    return {"median": median(seconds), "min": min(seconds)}
