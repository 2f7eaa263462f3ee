# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real waits: the time from the end of the operations to the end of the task, and the number of polls."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from ansible_collections.clouddb.control.tests.benchmark import sandbox
from ansible_collections.clouddb.control.tests.benchmark.playbooks import Task, run_playbook

OPERATION_WAIT: Task = {
    "clouddb.control.operation_wait": {
        "base_url": "{{ base_url }}",
        "api_key": "{{ api_key }}",
        "operations": "{{ started.stdout | from_json }}",
        "timeout": 900,
        "progress": "{{ progress }}",
    }
}
URI: Task = {
    "ansible.builtin.uri": {
        "url": "{{ base_url }}/projects/{{ item.project_id }}/operations/{{ item.id }}",
        "headers": {"Authorization": "Bearer {{ api_key }}"},
    },
    "loop": "{{ started.stdout | from_json }}",
    "loop_control": {"label": "{{ item.id }}"},
    "register": "polled",
    "until": "polled.json.operation.status == 'finished'",
    "retries": 200,
    "delay": 5,
}
VARIANTS = {"operation_wait": OPERATION_WAIT, "operation_wait, no progress": OPERATION_WAIT, "uri": URI}


class Case(NamedTuple):
    """Operations of one project, their C(duration) in seconds, and how often to start and wait for them."""

    variant: str
    operations: int
    duration: int
    runs: int = 1


SHORT = [
    Case(variant, operations, duration, runs)
    for operations, duration, runs in ((1, 1, 3), (1, 10, 3), (10, 1, 1), (10, 10, 1), (100, 1, 1), (100, 10, 1))
    for variant in ("operation_wait", "uri")
]
# These sleep most of the time, so they run in parallel.
LONG = [Case(variant, 1, 300) for variant in VARIANTS] + [Case("operation_wait", number, 300) for number in (10, 100)]


def measure() -> dict[str, Any]:
    """Lag, number of polls and processor time of each case."""
    seed = {"projects": [{"name": f"wait-{number}", "compute": False} for number in range(len(LONG) + len(SHORT))]}
    with sandbox.running(seed) as service, ThreadPoolExecutor(len(LONG)) as executor:
        ids = iter([project["id"] for project in service.projects()])
        long = [executor.submit(partial(_measure_case, service.base_url, case, next(ids))) for case in LONG]
        short = [_measure_case(service.base_url, case, next(ids)) for case in SHORT]
        return {"cases": [*short, *(future.result() for future in long)]}


def _measure_case(base_url: str, case: Case, project_id: str) -> dict[str, Any]:
    runs = [_wait(sandbox.Sandbox(base_url), case, project_id) for _run in range(case.runs)]
    return {**case._asdict(), **{name: median(run[name] for run in runs) for name in runs[0]}}


def _wait(service: sandbox.Sandbox, case: Case, project_id: str) -> dict[str, float]:
    program = str(Path(__file__).with_name("start_operations.py"))
    arguments = [service.base_url, project_id, str(case.operations), str(case.duration)]
    start: Task = {
        "name": "start",
        "ansible.builtin.command": {"argv": ["{{ ansible_playbook_python }}", program, *arguments]},
        "environment": {"BENCHMARK_API_KEY": "{{ api_key }}"},
        "register": "started",
    }
    polls_before = _count_polls(service, project_id)
    variables = {
        "base_url": service.base_url,
        "api_key": sandbox.API_KEY,
        "progress": case.variant != "operation_wait, no progress",
    }
    run = run_playbook([start, {"name": "wait", **VARIANTS[case.variant]}], variables)
    polls = _count_polls(service, project_id) - polls_before
    operations = service.get(f"/projects/{project_id}/operations", limit=case.operations)["operations"]
    end = max(
        datetime.fromisoformat(operation["updated_at"].replace("Z", "+00:00")).timestamp() for operation in operations
    )
    return {"lag": run.tasks[-1].ended - end, "requests": polls, "cpu": run.usage.cpu}


def _count_polls(service: sandbox.Sandbox, project_id: str) -> int:
    path = f"/api/v2/projects/{project_id}/operations"
    return sum(entry["method"] == "GET" and entry["path"].startswith(path) for entry in service.requests())
