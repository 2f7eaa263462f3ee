# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cost of one task: its ratios, its tables, and the stand-in for Hetzner Cloud."""

from __future__ import annotations

import pytest
import requests

from ansible_collections.clouddb.control.tests.benchmark import hcloud_service, report
from ansible_collections.clouddb.control.tests.benchmark.task_cost import summarize

# The second round ran on a busy machine.
SECONDS = {
    "ping": [1.0, 4.0, 1.0],
    "uri": [2.0, 8.0, 2.5],
    "project_info": [2.0, 8.0, 2.0],
    "ssh_key_info": [3.0, 16.0, 3.0],
}


def test_ratios_are_medians_of_the_ratios_of_each_round() -> None:
    assert summarize(SECONDS)["ratios"] == {
        "project_info": {"uri": 1.0, "ping": 2.0},
        "ssh_key_info": {"uri": 1.5, "ping": 3.0},
    }


def test_table_shows_durations_and_ratios_of_each_task() -> None:
    summary = summarize(SECONDS)
    parts = {name: {"wall": 0.2, "cpu": 0.1} for name in SECONDS}
    imports = {name: {"collection": 0.01, "requests": 0.04, "ansible": 0.15, "python": 0.02} for name in SECONDS}
    measured = {
        "rounds": 3,
        "tasks": {"default": summary, "pipelining": summary},
        "processes": parts,
        "payload_bytes": dict.fromkeys(SECONDS, 1234),
        "import_seconds": imports,
    }
    tasks, _parts = report.task_cost({"task_cost": measured})
    assert tasks.rows[:4] == [
        ("default", "ansible.builtin.ping", "1000 ms", "1000 ms", "", ""),
        ("default", "ansible.builtin.uri", "2500 ms", "2000 ms", "", ""),
        ("default", "project_info", "2000 ms", "2000 ms", "1.00", "2.00"),
        ("default", "hetzner.hcloud.ssh_key_info", "3000 ms", "3000 ms", "1.50", "3.00"),
    ]
    assert [row[0] for row in tasks.rows[4:]] == ["pipelining"] * 4


@pytest.mark.parametrize("path, status", [("/ssh_keys?page=1&per_page=50", 200), ("/servers", 404)])
def test_hcloud_service_serves_one_page_of_ssh_keys(path: str, status: int) -> None:
    with hcloud_service.running() as endpoint, requests.Session() as session:
        session.trust_env = False
        response = session.get(endpoint + path, timeout=60)
    assert response.status_code == status
    if status == 200:
        content = response.json()
        assert [key["name"] for key in content["ssh_keys"]] == ["shop", "blog", "wiki"]
        assert content["meta"]["pagination"]["next_page"] is None
