# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Long lists: complete tasks, their module alone, and a bare loop that fetches the same pages."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from ansible_collections.clouddb.control.tests.benchmark import sandbox
from ansible_collections.clouddb.control.tests.benchmark.playbooks import Task, keep_payloads, run_playbook
from ansible_collections.clouddb.control.tests.benchmark.processes import Usage, interleaved, medians, usage_of

RUNS = 3
OPERATIONS = (1_000, 10_000, 30_000, 100_000)
MAX_OPERATIONS = OPERATIONS[-1]
PROJECTS = (1_000, 10_000)
KEYS = 60_000
# With a status that no operation has, all pages are fetched and nothing is returned.
UNUSED_STATUS = "cancelling"


class Case(NamedTuple):
    """A list to fetch completely, by a task and by the bare loop with its arguments (path, field, query).

    C(page_size) is None for a list without pages. C(returned) is false if the task filters all items out of its result.
    """

    list: str
    items: int
    page_size: int | None
    returned: bool
    task: Task
    loop: tuple[str, ...]


def measure() -> dict[str, Any]:
    """Resource usage of the programs of each case."""
    seed = {
        "projects": [
            *(
                {"name": f"operations-{number}", "generate_operations": number, "compute": False}
                for number in OPERATIONS
            ),
            *({"org_id": f"org-{number}", "compute": False} for number in PROJECTS for _project in range(number)),
        ],
        "api_keys": [{"name": f"deploy-{number}"} for number in range(KEYS)],
    }
    with sandbox.running(seed) as service, tempfile.TemporaryDirectory() as folder:
        cases = [*_operation_cases(service), *_project_cases(), _key_case()]
        variables = {"base_url": service.base_url, "api_key": sandbox.API_KEY}
        payloads = keep_payloads([case.task for case in cases], variables, Path(folder))
        return {
            "runs": RUNS,
            "cases": [_measure_case(service, case, payload) for case, payload in zip(cases, payloads)],
        }


def _operation_cases(service: sandbox.Sandbox) -> list[Case]:
    ids = {project["name"]: project["id"] for project in service.projects(search="operations-")}
    cases = []
    for number, page_size, returned in (
        *((number, 100, True) for number in OPERATIONS),
        (MAX_OPERATIONS, 1000, True),
        (MAX_OPERATIONS, 1000, False),
    ):
        project_id = ids[f"operations-{number}"]
        options = {
            "project_id": project_id,
            "page_size": page_size,
            **({} if returned else {"status": [UNUSED_STATUS]}),
        }
        loop = (f"/projects/{project_id}/operations", "operations", f"limit={page_size}")
        cases.append(Case("operations", number, page_size, returned, _task("operation_info", options), loop))
    return cases


def _project_cases() -> list[Case]:
    cases = []
    for number in PROJECTS:
        options = {"query": {"org_id": f"org-{number}"}, "page_size": 400}
        loop = ("/projects", "projects", "limit=400", f"org_id=org-{number}")
        cases.append(Case("projects", number, 400, True, _task("project_info", options), loop))
    return cases


def _key_case() -> Case:
    return Case("keys", KEYS, None, True, _task("api_key_info", {}), ("/api_keys", ""))


def _task(module: str, options: dict[str, Any]) -> Task:
    return {f"clouddb.control.{module}": {"base_url": "{{ base_url }}", "api_key": "{{ api_key }}", **options}}


def _measure_case(service: sandbox.Sandbox, case: Case, payload: Path) -> dict[str, Any]:
    path, *arguments = case.loop
    program = str(Path(__file__).with_name("bare_loop.py"))
    env = {**os.environ, "BENCHMARK_API_KEY": sandbox.API_KEY}
    sandbox_seconds: list[float] = []
    request_counts: list[int] = []

    def loop() -> Usage:
        service.clear_requests()
        usage = usage_of(sys.executable, program, service.base_url + path, *arguments, env=env)
        log = service.requests()
        sandbox_seconds.append(sum(entry["seconds"] for entry in log))
        request_counts.append(len(log))
        return usage

    measures: dict[str, Callable[[], Usage]] = {
        "loop": loop,
        "module": partial(usage_of, sys.executable, str(payload)),
        "task": partial(_task_usage, service, case.task),
    }
    usages = {name: medians(each) for name, each in interleaved(RUNS, **measures).items()}
    return {
        **{name: getattr(case, name) for name in ("list", "items", "page_size", "returned")},
        "requests": request_counts[-1],
        "sandbox_share_of_loop": median(sandbox_seconds) / usages["loop"].wall,
        **{name: usage._asdict() for name, usage in usages.items()},
    }


def _task_usage(service: sandbox.Sandbox, task: Task) -> Usage:
    run = run_playbook([task], {"base_url": service.base_url, "api_key": sandbox.API_KEY})
    return run.usage._replace(wall=run.tasks[0].seconds)
