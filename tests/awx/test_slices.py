# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Job slices of the dynamic inventory, divided as in AWX."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jobs import Controller, Job
from sandbox import API_KEY, Sandbox, running_sandbox

Hosts = dict[str, dict[str, Any]]


def account(controller: Controller, sandbox: Sandbox) -> Hosts:
    """The hosts of the example project's inventory source, with their variables."""
    source = controller.collection / "examples" / "inventory" / "account.clouddb.yml"
    env = controller.injected({"base_url": sandbox.base_url, "api_key": API_KEY})
    listed = controller.run("ansible-inventory", "--inventory", str(source), "--list", "--export", env=env)
    # ansible-inventory marks strings that must not be templated.
    plain = re.sub(r'\{\s*"__ansible_unsafe": (".*")\s*\}', r"\1", listed)
    hosts: Hosts = json.loads(plain)["_meta"]["hostvars"]
    return hosts


def slices(hosts: Hosts, count: int) -> list[Hosts]:
    """Divide hosts as AWX does: sorted by name, host number i belongs to slice i mod count."""
    names = sorted(hosts)
    return [{name: hosts[name] for name in names[number::count]} for number in range(count)]


def test_parallel_slices_change_each_project_once(controller: Controller, tmp_path: Path) -> None:
    with running_sandbox(tmp_path, generate={"projects": 6}) as sandbox:
        sandbox.control("PUT", "/clock", {"speed": 10})
        parts = slices(account(controller, sandbox), 2)
        credential = {"base_url": sandbox.base_url, "api_key": API_KEY}

        def run(number: int) -> Job:
            inventory = {"clouddb_projects": {"hosts": parts[number]}}
            days = {"history_retention_days": 3}
            return controller.launch("clouddb drain projects", tmp_path / f"job{number}", credential, days, inventory)

        with ThreadPoolExecutor() as pool:
            jobs = list(pool.map(run, range(2)))
        projects = list_projects(sandbox)
        changed = [entry["path"].rpartition("/")[2] for entry in sandbox.requests() if entry["method"] == "PATCH"]
        details = [sandbox.api("GET", f"/projects/{each}")["project"] for each in projects]
    assert [job.status for job in jobs] == ["successful", "successful"]
    assert sorted(changed) == sorted(projects)
    assert {project["history_retention_seconds"] for project in details} == {3 * 86400}


def list_projects(sandbox: Sandbox) -> list[str]:
    """The ids of all projects, page by page."""
    ids: list[str] = []
    page = sandbox.api("GET", "/projects?limit=400")
    while page["projects"]:
        ids += [project["id"] for project in page["projects"]]
        page = sandbox.api("GET", f"/projects?limit=400&cursor={quote(page['pagination']['cursor'])}")
    return ids
