# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waiting for real: how long after the operations' end a task ends, and how many requests it has sent by then."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from ansible_collections.clouddb.control.tests.benchmark import sandbox
from ansible_collections.clouddb.control.tests.benchmark.playbooks import Task, play

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
    "register": "looked",
    "until": "looked.json.operation.status == 'finished'",
    "retries": 200,
    "delay": 5,
}
WAYS = {"operation_wait": OPERATION_WAIT, "operation_wait, no progress": OPERATION_WAIT, "uri": URI}


class Case(NamedTuple):
    """So many operations of one project, which all last so many seconds, waited for C(runs) times."""

    way: str
    operations: int
    duration: int
    runs: int = 1


SHORT = [
    Case(way, operations, duration, runs)
    for operations, duration, runs in ((1, 1, 3), (1, 10, 3), (10, 1, 1), (10, 10, 1), (100, 1, 1), (100, 10, 1))
    for way in ("operation_wait", "uri")
]
# These sleep nearly all of the time, so they may as well do it side by side.
LONG = [Case(way, 1, 300) for way in WAYS] + [Case("operation_wait", number, 300) for number in (10, 100)]


def measure() -> dict[str, Any]:
    """The outcome of each case."""
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
    sent_before = _looks(service, project_id)
    variables = {
        "base_url": service.base_url,
        "api_key": sandbox.API_KEY,
        "progress": case.way != "operation_wait, no progress",
    }
    played = play([start, {"name": "wait", **WAYS[case.way]}], variables)
    sent = _looks(service, project_id) - sent_before
    operations = service.get(f"/projects/{project_id}/operations", limit=case.operations)["operations"]
    end = max(
        datetime.fromisoformat(operation["updated_at"].replace("Z", "+00:00")).timestamp() for operation in operations
    )
    return {"lag": played.tasks[-1].ended - end, "requests": sent, "cpu": played.usage.cpu}


def _looks(service: sandbox.Sandbox, project_id: str) -> int:
    path = f"/api/v2/projects/{project_id}/operations"
    return sum(entry["method"] == "GET" and entry["path"].startswith(path) for entry in service.requests())
