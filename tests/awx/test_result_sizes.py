# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The size of a job's events: AWX stores each as a row of its table, with the complete result of the task."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jobs import Controller, Job
from sandbox import API_KEY, running_sandbox

OPERATIONS = 4000
# As many as fit into an event: ansible-runner leaves out results of more than 700,000 characters.
FITTING = 1500
RESULTS: dict[str, dict[str, Any]] = {
    "complete": {},
    "fitting": {"max_results": FITTING},
    "fields": {"fields": ["id", "status"]},
    "summary": {"summary_only": True},
}


def row_size(job: Job, task: str) -> int:
    """The bytes of the event with the result of this task."""
    [event] = [
        event for event in job.events if event["event"] == "runner_on_ok" and event["event_data"]["task"] == task
    ]
    return len(json.dumps(event))


def test_a_summary_fits_into_an_event_and_a_list_does_not(controller: Controller, tmp_path: Path) -> None:
    tasks = [
        {"name": name, "clouddb.control.operation_info": {"page_size": 1000, **options}}
        for name, options in RESULTS.items()
    ]
    play = {"name": "List", "hosts": "localhost", "connection": "local", "gather_facts": False, "tasks": tasks}
    playbook = tmp_path / "list.yml"
    variables = {"ansible_python_interpreter": "{{ ansible_playbook_python }}"}
    playbook.write_text(json.dumps([{**play, "vars": variables}]), encoding="utf-8")
    project = {"name": "shop", "compute": False, "generate_operations": OPERATIONS}
    with running_sandbox(tmp_path, projects=[project]) as sandbox:
        credential = {"base_url": sandbox.base_url, "api_key": API_KEY}
        job = controller.play(str(playbook), tmp_path / "job", controller.injected(credential))
    assert (job.status, job.failed_hosts()) == ("successful", []), job.failures()

    results = {name: job.results(name)[0] for name in RESULTS}
    sizes = {name: row_size(job, name) for name in RESULTS}
    print(sizes)
    assert "operations" not in results["complete"]
    assert len(results["fitting"]["operations"]) == FITTING
    assert len(results["fields"]["operations"]) == OPERATIONS
    assert results["summary"]["summary"] == results["fields"]["summary"]
    assert results["summary"]["summary"]["total"] == OPERATIONS
    # Of each operation, a fourth remains.
    assert sizes["fields"] / OPERATIONS < sizes["fitting"] / FITTING / 4
    assert sizes["fitting"] > 400_000
    assert sizes["summary"] < 5_000
