# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures: reports on a varied and a large account, and a browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from account_report import run_role
from chromium import chromium
from playwright.sync_api import Page
from sandbox import running_sandbox

HOSTILE = """<script>alert(1)</script>"' onload='x' {{ 7 * 7 }}{% raw %}"""
STATUSES = ("finished", "finished", "failed", "finished", "running", "scheduling", "skipped", "cancelled")
ACTIONS = ("start_compute", "suspend_compute", "check_availability", "apply_config", "create_branch")

VARIED: dict[str, Any] = {
    "api_keys": [{"name": "ci", "age": "300d"}, {"name": "ci", "age": "2d"}, {"name": HOSTILE}],
    "projects": [
        {
            "name": name,
            "compute": False,
            "locked": number == 1,
            "cpu_used_sec": 1234567 * number,
            "operations": [
                {
                    "action": ACTIONS[(n + n * number) % len(ACTIONS)],
                    "status": STATUSES[(n + n * number) % len(STATUSES)],
                    "age": f"{n * 5 + number}h",
                    "duration": 0.3 * n + number + 0.1,
                    **({"error": HOSTILE} if n == 2 else {}),
                }
                for n in range(30)
            ],
        }
        for number, name in enumerate(
            ["shop", HOSTILE, "a-project-with-quite-a-long-name-that-does-not-fit-on-one-line-of-a-phone", "blog"]
        )
    ],
}


@pytest.fixture(scope="session")
def varied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a report on an account with names that would run scripts."""
    folder = tmp_path_factory.mktemp("varied")
    with running_sandbox(folder, **VARIED) as service:
        variables = {
            "account_report_dest": str(folder / "report.html"),
            "account_report_title": "Our account",
            "account_report_most_timelines": 3,
            "account_report_now": service.control("GET", "/clock")["now"],
        }
        done = run_role(folder, service, variables)
        assert done.returncode == 0, done.stdout
    return folder / "report.html"


@pytest.fixture(scope="session")
def browser() -> Iterator[Page]:
    with chromium() as page:
        yield page
