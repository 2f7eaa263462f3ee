# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measures the request rate of jobs, alone and in slices: ``.venv/bin/python measure.py [PROJECTS]`` on an idle machine.

It runs the playbooks of the example project against a sandbox with the rate limit of the public service.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import conftest
from jobs import Job
from sandbox import API_KEY, Sandbox, running_sandbox
from test_slices import account, slices

HEADER = f"{'job':34} {'projects':>8} {'seconds':>8} {'requests':>8} {'a minute':>8} {'refused':>8}"


def measured(name: str, projects: int, sandbox: Sandbox, launch: Callable[[], list[Job]]) -> str:
    """A line of the table."""
    sandbox.control("DELETE", "/requests")
    sandbox.control("PUT", "/rate_limit", {"per_minute": 700, "burst": 40})
    started = time.monotonic()
    jobs = launch()
    seconds = time.monotonic() - started
    assert {job.status for job in jobs} == {"successful"}
    requests = sandbox.requests()
    refused = sum(entry["status"] == 429 for entry in requests)
    return f"{name:34} {projects:8} {seconds:8.1f} {len(requests):8} {len(requests) / seconds * 60:8.0f} {refused:8}"


def main() -> None:
    """Measure and print the table."""
    projects = int(sys.argv[1]) if len(sys.argv) > 1 else 120
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n{HEADER}")
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        controller = conftest.installed(root / "controller")
        with running_sandbox(root, generate={"projects": projects, "operations_per_project": 5}) as sandbox:
            sandbox.control("PUT", "/clock", {"speed": 1})
            credential = {"base_url": sandbox.base_url, "api_key": API_KEY}
            hosts = account(controller, sandbox)
            for count in (1, 2, 4, 8):
                parts = slices(hosts, count)

                def drain(number: int, parts: list[dict[str, dict[str, object]]] = parts) -> Job:
                    inventory = {"clouddb_projects": {"hosts": parts[number]}}
                    # Each number of slices sets another value, so that every run changes the projects.
                    days = {"history_retention_days": 10 + len(parts)}
                    return controller.launch(
                        "clouddb drain projects", root / f"{len(parts)}-{number}", credential, days, inventory
                    )

                def all_slices(count: int = count, drain: Callable[[int], Job] = drain) -> list[Job]:
                    with ThreadPoolExecutor(count) as pool:
                        return list(pool.map(drain, range(count)))

                print(measured(f"drain_projects.yml, {count} slices", projects, sandbox, all_slices), flush=True)

            def alert() -> list[Job]:
                return [
                    controller.launch("clouddb alert on failures", root / "alert", credential, {"alert_minutes": 0})
                ]

            print(measured("alert_on_failures.yml", projects, sandbox, alert), flush=True)


if __name__ == "__main__":
    main()
