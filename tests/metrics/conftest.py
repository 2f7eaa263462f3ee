# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures: promtool, and the metrics that the role account_report writes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._timestamps import parse_timestamp

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(Path(__file__).parent), str(ROOT / "tests" / "unit" / "support")]

from account_report import run_program, run_role  # noqa: E402
from sandbox import Sandbox, running_sandbox  # noqa: E402

SEED: dict[str, Any] = {
    "api_keys": [{"name": "ci", "age": "300d"}, {"name": "deploy", "age": "2d"}],
    "projects": [
        {
            "region_id": region,
            "compute": False,
            "operations": [
                {"action": "start_compute", "status": status, "age": "1h"}
                for status in ("finished", "failed", "running")
            ],
        }
        for region in ("aws-eu-central-1", "azure-westeurope")
    ],
}

Promtool = Callable[..., str]


class Written(NamedTuple):
    """The metrics of a report, the mode of their file, and the output of the play."""

    text: str
    mode: int
    output: str


class Role:
    """Runs the role with the metrics file C(production.prom) in a directory of its own."""

    def __init__(self, folder: Path, service: Sandbox) -> None:
        self._folder = folder
        self._service = service
        # The next second, so that a key that was created 300 days ago is 300 days old.
        self.now = parse_timestamp(service.control("GET", "/clock")["now"]).replace(microsecond=0) + timedelta(
            seconds=1
        )
        self.metrics = folder / "textfile" / "production.prom"
        self.metrics.parent.mkdir()

    def run(self, *options: str, succeeds: bool = True, later: timedelta = timedelta(), **variables: Any) -> Written:
        """Run the role with these options of ansible-playbook, C(later) than the time of the service."""
        variables = {
            "account_report_now": f"{self.now + later:%Y-%m-%dT%H:%M:%SZ}",
            "account_report_dest": str(self._folder / "report.html"),
            "account_report_metrics_dest": str(self.metrics),
            **variables,
        }
        done = run_role(self._folder, self._service, variables, *options)
        assert (done.returncode == 0) == succeeds, done.stdout
        is_written = self.metrics.exists()
        return Written(
            self.metrics.read_text(encoding="utf-8") if is_written else "",
            self.metrics.stat().st_mode & 0o777 if is_written else 0,
            done.stdout,
        )


@pytest.fixture
def role(tmp_path: Path) -> Iterator[Role]:
    """The role with an account in a sandbox."""
    with running_sandbox(tmp_path, **SEED) as service:
        yield Role(tmp_path, service)


@pytest.fixture
def promtool(tmp_path: Path) -> Promtool:
    """Runs promtool in a temporary directory, and returns its output. It must succeed."""

    def run(*arguments: str, text: str = "") -> str:
        done = run_program(["promtool", *arguments], tmp_path, input=text)
        assert done.returncode == 0, done.stdout
        return done.stdout

    return run
