# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""In promtool: the file that the role account_report writes, the alert rules, and the queries of the dashboard."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
import yaml
from account_report import run_program, run_role
from sandbox import running_sandbox

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "extensions" / "prometheus" / "clouddb.rules.yml"
[GROUP] = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
DESCRIPTIONS = {rule["alert"]: rule["annotations"]["description"] for rule in GROUP["rules"]}
# As texts, because a series such as 0x3 would be a number.
ALERTS = yaml.load(Path(__file__).with_name("alerts.yml").read_text(encoding="utf-8"), yaml.BaseLoader)
DASHBOARD = ROOT / "extensions" / "grafana" / "clouddb.json"
SUCCESS = re.compile(
    r"^clouddb_account_report_last_success_timestamp_seconds\{account=\"production\"\} (\S+)$", re.MULTILINE
)
OPERATIONS = [
    {"action": "start_compute", "status": status, "age": "1h"} for status in ("finished", "failed", "running")
]
SEED: dict[str, Any] = {
    "api_keys": [{"name": "ci", "age": "300d"}, {"name": "deploy", "age": "2d"}],
    "projects": [
        {"region_id": region, "compute": False, "operations": OPERATIONS}
        for region in ("aws-eu-central-1", "azure-westeurope")
    ],
}
Promtool = Callable[..., str]
Role = Callable[..., str]


@pytest.fixture
def metrics(tmp_path: Path) -> Path:
    """The metrics file of the role, in a directory of its own."""
    (tmp_path / "textfile").mkdir()
    return tmp_path / "textfile" / "production.prom"


@pytest.fixture
def role(tmp_path: Path, metrics: Path) -> Iterator[Role]:
    """Runs the role with an account in a sandbox; returns the output."""
    with running_sandbox(tmp_path, **SEED) as service:
        # Hourly from a day after the seed: the page shows ages in days. It shows dates, too, so no run is before midnight.
        start = datetime.now(timezone.utc) + timedelta(days=1, minutes=5)
        start += timedelta(hours=24 - start.hour if start.hour >= 18 else 0)
        times = (start + timedelta(hours=hour) for hour in itertools.count())

        def run(*options: str, succeeds: bool = True, **variables: Any) -> str:
            defaults = {
                "account_report_now": f"{next(times):%Y-%m-%dT%H:%M:00Z}",
                "account_report_dest": str(tmp_path / "report.html"),
                "account_report_metrics_dest": str(metrics),
            }
            done = run_role(tmp_path, service, {**defaults, **variables}, *options)
            assert (done.returncode == 0) == succeeds, done.stdout
            return done.stdout

        yield run


@pytest.fixture
def promtool(tmp_path: Path) -> Promtool:
    """Runs promtool in a temporary directory, and returns its output. It must succeed."""

    def run(*arguments: str, text: str = "") -> str:
        done = run_program(["promtool", *arguments], tmp_path, input=text)
        assert done.returncode == 0, done.stdout
        return done.stdout

    return run


def run_tests(promtool: Promtool, folder: Path, test: dict[str, Any], **files: list[str]) -> None:
    (folder / "test.yml").write_text(json.dumps({"evaluation_interval": test["interval"], "tests": [test], **files}))
    assert "SUCCESS" in promtool("test", "rules", "test.yml")


def time_of_success(text: str) -> float:
    [value] = SUCCESS.findall(text)
    return float(value)


@pytest.mark.smoke
def test_file(role: Role, metrics: Path, promtool: Promtool) -> None:
    output, first = role("--diff"), metrics.read_text()
    assert promtool("check", "metrics", text=first) == ""
    assert metrics.stat().st_mode & 0o777 == 0o644
    lines = first.splitlines()
    assert 'clouddb_projects{account="production",region_id="azure-westeurope"} 1.0' in lines
    assert 'clouddb_operations{account="production",action="start_compute",status="failed"} 2.0' in lines
    assert list(metrics.parent.iterdir()) == [metrics]
    assert "+clouddb_" not in output

    output, again = role(), metrics.read_text()
    assert time_of_success(again) - time_of_success(first) == pytest.approx(3600, abs=1)
    assert SUCCESS.sub("", again) == SUCCESS.sub("", first)
    # The page and its JSON are unchanged, the metrics are not.
    assert re.search(r"changed=1 .*failed=0", output)


def test_failed_run_keeps_the_time_of_the_last_success(role: Role, metrics: Path) -> None:
    role()
    first = metrics.read_text()
    for failing in ({"account_report_dest": "/nowhere/a.html"}, {"account_report_json_dest": str(metrics.parent)}):
        role(succeeds=False, **failing)
        assert metrics.read_text() == first


def test_requests_for_a_thousand_projects(tmp_path: Path) -> None:
    """One list of projects, in pages of 400, and two lists of operations for each project."""
    with running_sandbox(tmp_path, projects=[{"compute": False} for _number in range(1000)]) as service:
        done = run_role(tmp_path, service, {"account_report_dest": str(tmp_path / "report.html")})
        assert "1,000 projects" in done.stdout
        sent = Counter(re.sub("/projects/.*/", "/projects/{id}/", request) for request in service.sent())
    # Two pages are full, and the last one has a cursor, too.
    assert sent == {"GET /api_keys": 1, "GET /projects": 4, "GET /projects/{id}/operations": 2000}


def test_rules(promtool: Promtool) -> None:
    found = promtool("check", "rules", "--lint-fatal", str(RULES))
    assert f"SUCCESS: {len(DESCRIPTIONS)} rules found" in found


@pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in ALERTS])
def test_alerts(promtool: Promtool, tmp_path: Path, case: dict[str, Any]) -> None:
    for check in case["alert_rule_test"]:
        alerts = [(dict(alert), DESCRIPTIONS[check["alertname"]]) for alert in check.get("exp_alerts", [])]
        check["exp_alerts"] = [
            {"exp_annotations": {"summary": labels.pop("summary"), "description": description}, "exp_labels": labels}
            for labels, description in alerts
        ]
    run_tests(promtool, tmp_path, {**case, "interval": "5m"}, rule_files=[str(RULES)])


def test_queries_of_the_dashboard_return_series(role: Role, metrics: Path, promtool: Promtool, tmp_path: Path) -> None:
    role(account_report_policy_result={"findings": [{"kind": "unknown", "outcome": "reported"}]})
    samples = [line.rsplit(" ", 1) for line in metrics.read_text().splitlines() if not line.startswith("#")]
    series = [{"series": name, "values": f"{value} {value}"} for name, value in samples]
    panels = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    # For all accounts
    queries = [target["expr"].replace("$account", ".*") for panel in panels for target in panel["targets"]]
    cases = [
        {"expr": f"count({query}) > bool 0", "eval_time": "1m", "exp_samples": [{"labels": "{}", "value": 1}]}
        for query in queries
    ]
    run_tests(promtool, tmp_path, {"interval": "1m", "input_series": series, "promql_expr_test": cases})
