# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""In promtool: the file that the role account_report writes, the alert rules, and the queries of the dashboard."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from conftest import ROOT, Promtool, Role
from prometheus_client.parser import text_string_to_metric_families

RULES = ROOT / "extensions" / "prometheus" / "clouddb.rules.yml"
DASHBOARD = ROOT / "extensions" / "grafana" / "clouddb.json"
HOUR = timedelta(hours=1)
SUCCESS = re.compile(
    r"^clouddb_account_report_last_success_timestamp_seconds\{account=\"production\"\} (\S+)$", re.MULTILINE
)


def time_of_success(text: str) -> float:
    [value] = SUCCESS.findall(text)
    return float(value)


@pytest.mark.smoke
def test_file(role: Role, promtool: Promtool) -> None:
    first = role.run("--diff")
    assert promtool("check", "metrics", text=first.text) == ""
    assert first.mode == 0o644
    assert time_of_success(first.text) == role.now.timestamp()
    lines = first.text.splitlines()
    assert 'clouddb_projects{account="production",region_id="azure-westeurope"} 1.0' in lines
    assert 'clouddb_operations{account="production",action="start_compute",status="failed"} 2.0' in lines
    assert list(role.metrics.parent.iterdir()) == [role.metrics]
    assert "+clouddb_" not in first.output

    again = role.run(later=HOUR)
    assert time_of_success(again.text) == role.now.timestamp() + 3600
    assert SUCCESS.sub("", again.text) == SUCCESS.sub("", first.text)
    # The page and its JSON are unchanged, the metrics are not.
    assert re.search(r"changed=1 .*failed=0", again.output)


def test_failed_run_keeps_the_time_of_the_last_success(role: Role) -> None:
    first = role.run()
    directory = str(role.metrics.parent)
    for failing in ({"account_report_dest": "/nowhere/a.html"}, {"account_report_json_dest": directory}):
        assert role.run(succeeds=False, later=HOUR, **failing).text == first.text


def test_rules_are_valid(promtool: Promtool) -> None:
    [group] = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    assert f"SUCCESS: {len(group['rules'])} rules found" in promtool("check", "rules", "--lint-fatal", str(RULES))


def test_alerts(promtool: Promtool) -> None:
    assert "SUCCESS" in promtool("test", "rules", str(ROOT / "tests" / "metrics" / "alerts.yml"))


def test_queries_of_the_dashboard_return_series(role: Role, promtool: Promtool, tmp_path: Path) -> None:
    text = role.run(account_report_policy_result={"findings": [{"kind": "unknown", "outcome": "reported"}]}).text
    series = [
        {
            "series": sample.name
            + json.dumps(sample.labels, separators=(",", "=")).replace('{"', "{").replace(',"', ",").replace('"=', "="),
            "values": f"{sample.value} {sample.value}",
        }
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    ]
    panels = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    # For all accounts
    queries = [target["expr"].replace("$account", ".*") for panel in panels for target in panel["targets"]]
    cases = [
        {"expr": f"count({query}) > bool 0", "eval_time": "1m", "exp_samples": [{"labels": "{}", "value": 1}]}
        for query in queries
    ]
    test = {
        "evaluation_interval": "1m",
        "tests": [{"interval": "1m", "input_series": series, "promql_expr_test": cases}],
    }
    (tmp_path / "test.yml").write_text(json.dumps(test))
    assert "SUCCESS" in promtool("test", "rules", "test.yml")
