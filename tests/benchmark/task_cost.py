# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cost of one task: project_info compared with ping, with uri sending the same request, and with another API's module."""

from __future__ import annotations

import sys
import tempfile
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from ansible_collections.clouddb.control.tests.benchmark import hcloud_service, sandbox
from ansible_collections.clouddb.control.tests.benchmark.import_times import import_times
from ansible_collections.clouddb.control.tests.benchmark.playbooks import Task, keep_payloads, run_playbook
from ansible_collections.clouddb.control.tests.benchmark.processes import interleaved, minima, usage_of

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
    "ssh_key_info": {
        "hetzner.hcloud.ssh_key_info": {"api_endpoint": "{{ hcloud_endpoint }}", "api_token": "{{ api_key }}"}
    },
}
# The tasks to which the others are compared.
REFERENCES = ("uri", "ping")


def measure() -> dict[str, Any]:
    """Duration of complete tasks in seconds, with and without pipelining, and of their parts."""
    with (
        sandbox.running(SEED) as service,
        hcloud_service.running() as hcloud_endpoint,
        tempfile.TemporaryDirectory() as folder,
    ):
        variables = {"base_url": service.base_url, "api_key": sandbox.API_KEY, "hcloud_endpoint": hcloud_endpoint}
        payloads = dict(zip(TASKS, keep_payloads(list(TASKS.values()), variables, Path(folder))))
        return {
            "rounds": ROUNDS,
            "tasks": {
                "default": _measure_tasks(variables),
                "pipelining": _measure_tasks(variables, ANSIBLE_PIPELINING="1"),
            },
            "process_rounds": PROCESS_ROUNDS,
            "processes": _measure_processes(payloads),
            "payload_bytes": {name: payload.stat().st_size for name, payload in payloads.items()},
            "import_seconds": {name: import_times(payload) for name, payload in payloads.items()},
        }


def _measure_tasks(variables: dict[str, Any], **environment: str) -> dict[str, dict[str, Any]]:
    # The first round fills Ansible's caches.
    tasks = [{"name": name, **task} for _round in range(ROUNDS + 1) for name, task in TASKS.items()]
    times = run_playbook(tasks, variables, **environment).tasks[len(TASKS) :]
    return summarize({name: [time.seconds for time in times if time.name == name] for name in TASKS})


def summarize(seconds: dict[str, list[float]]) -> dict[str, dict[str, Any]]:
    """Median and minimum of each task's durations (one for each round), and the ratios to the reference tasks.

    A ratio is the median of the ratios of all rounds, so that load on the machine affects both sides of it alike.
    """
    ratios = {
        name: {
            reference: median(own / other for own, other in zip(durations, seconds[reference]))
            for reference in REFERENCES
        }
        for name, durations in seconds.items()
        if name not in REFERENCES
    }
    summaries = {name: {"median": median(each), "min": min(each)} for name, each in seconds.items()}
    return {"ratios": ratios, **summaries}


def _measure_processes(payloads: dict[str, Path]) -> dict[str, dict[str, float]]:
    measures = {name: partial(usage_of, sys.executable, str(payload)) for name, payload in payloads.items()}
    usages = interleaved(PROCESS_ROUNDS, python=partial(usage_of, sys.executable, "-c", "pass"), **measures)
    return {name: minima(each)._asdict() for name, each in usages.items()}
