# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Listing the operations of all projects of an account under a rate limit."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ansible_collections.clouddb.control.tests.benchmark import sandbox
from ansible_collections.clouddb.control.tests.benchmark.playbooks import run_playbook

PROJECTS = 500
OPERATIONS_PER_PROJECT = 20
PER_MINUTE = 700
BURST = 40


def measure() -> dict[str, Any]:
    """Duration and result of one task, and the responses in the sandbox's request log."""
    project = {"generate_operations": OPERATIONS_PER_PROJECT, "compute": False}
    with sandbox.running({"projects": [project] * PROJECTS}) as service:
        service.set_rate_limit(PER_MINUTE, BURST)
        tasks = [
            {
                "name": "list",
                "clouddb.control.operation_info": {"base_url": "{{ base_url }}", "api_key": "{{ api_key }}"},
                "register": "listed",
            },
            {"name": "count", "ansible.builtin.debug": {"msg": "{{ listed.operations | length }}"}},
        ]
        times = {
            time.name: time
            for time in run_playbook(tasks, {"base_url": service.base_url, "api_key": sandbox.API_KEY}).tasks
        }
        statuses = Counter(entry["status"] for entry in service.requests())
    return {
        "projects": PROJECTS,
        "per_minute": PER_MINUTE,
        "burst": BURST,
        "expected": PROJECTS * OPERATIONS_PER_PROJECT,
        "listed": int(times["count"].result["msg"]),
        "seconds": times["list"].seconds,
        "shortest_seconds": (statuses[200] - BURST) * 60 / PER_MINUTE,
        "responses_200": statuses[200],
        "responses_429": statuses[429],
    }
