# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Draws docs/docsite/images/account_report.png, the picture in the README and in the guide: python tests/browser/picture.py"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(Path(__file__).parent), str(ROOT / "tests" / "unit" / "support"), str(ROOT / "tests" / "tools")]

from account_report import run_role  # noqa: E402
from chromium import chromium, emulate  # noqa: E402
from playwright.sync_api import Page  # noqa: E402
from sandbox import running_sandbox  # noqa: E402

PICTURE = ROOT / "docs" / "docsite" / "images" / "account_report.png"
WIDTH, HEIGHT = 1200, 1175
SEED: dict[str, Any] = {
    "api_keys": [
        {"name": "ci", "age": "41d", "last_used": "1h"},
        {"name": "laptop of a contractor", "age": "400d", "last_used": "160d"},
        {"name": "test", "age": "3d"},
    ],
    "projects": [
        {"branch_logical_size_limit": 8192, "compute": False, "locked": project[1] == "analytics"}
        | dict(zip(("id", "name", "region_id", "cpu_used_sec", "generate_operations"), project))
        for project in (
            ("wispy-lake-12345678", "shop", "aws-eu-central-1", 402318, 55),
            ("calm-hill-87654321", "blog", "aws-us-east-2", 51240, 34),
            ("bold-river-24681357", "analytics", "aws-eu-central-1", 1294733, 52),
            ("misty-field-11223344", "staging", "azure-westeurope", 7210, 12),
        )
    ],
}


def draw(page: Page, folder: Path) -> bytes:
    """A picture of the top of the report on the account of SEED."""
    with running_sandbox(folder, **SEED) as service:
        variables = {
            "account_report_dest": str(folder / "account.html"),
            "account_report_title": "Account report of control.example.com",
            "account_report_project_url": "https://console.example.com/projects/{project_id}",
            "account_report_now": service.control("GET", "/clock")["now"],
        }
        done = run_role(folder, service, variables)
    if done.returncode:
        raise SystemExit(done.stdout)
    emulate(page, WIDTH)
    page.goto((folder / "account.html").as_uri())
    return page.screenshot(full_page=True, clip={"x": 0, "y": 0, "width": WIDTH, "height": HEIGHT})


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, chromium() as page:
        PICTURE.parent.mkdir(exist_ok=True)
        PICTURE.write_bytes(draw(page, Path(folder)))
