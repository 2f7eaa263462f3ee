# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The alert rules and the queries of the dashboard, in promtool."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml
from conftest import ROOT, Promtool, Role
from prometheus_client.parser import text_string_to_metric_families

RULES = ROOT / "extensions" / "prometheus" / "clouddb.rules.yml"
ALERTS = ROOT / "tests" / "metrics" / "alerts.yml"
DASHBOARD = ROOT / "extensions" / "grafana" / "clouddb.json"


def alerts() -> list[dict[str, Any]]:
    [group] = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return list(group["rules"])


def queries() -> list[str]:
    """The queries of the dashboard, for all accounts."""
    panels = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    return [target["expr"].replace("$account", ".*") for panel in panels for target in panel["targets"]]


def test_rules_are_valid(promtool: Promtool) -> None:
    assert f"SUCCESS: {len(alerts())} rules found" in promtool("check", "rules", "--lint-fatal", str(RULES))


def test_alerts(promtool: Promtool) -> None:
    assert "SUCCESS" in promtool("test", "rules", str(ALERTS))


def test_every_alert_has_a_test_in_which_it_fires_and_one_in_which_it_does_not() -> None:
    tests = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["tests"]
    cases = [case for test in tests for case in test["alert_rule_test"]]
    names = {alert["alert"] for alert in alerts()}
    assert {case["alertname"] for case in cases if case.get("exp_alerts")} == names
    assert {case["alertname"] for case in cases if not case.get("exp_alerts")} == names


def test_queries_of_the_dashboard_are_valid(promtool: Promtool, tmp_path: Path) -> None:
    rules = [{"record": f"dashboard:query{number}", "expr": query} for number, query in enumerate(queries())]
    (tmp_path / "queries.yml").write_text(json.dumps({"groups": [{"name": "queries", "rules": rules}]}))
    assert f"SUCCESS: {len(rules)} rules found" in promtool("check", "rules", "--lint-fatal", "queries.yml")


def test_queries_of_the_dashboard_return_series(role: Role, promtool: Promtool, tmp_path: Path) -> None:
    text = role.run().text
    series = [
        {
            "series": sample.name
            + json.dumps(sample.labels, separators=(",", "=")).replace('{"', "{").replace(',"', ",").replace('"=', "="),
            "values": f"{sample.value} {sample.value}",
        }
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    ]
    cases = [
        {"expr": f"count({query}) > bool 0", "eval_time": "1m", "exp_samples": [{"labels": "{}", "value": 1}]}
        for query in queries()
    ]
    test = {
        "evaluation_interval": "1m",
        "tests": [{"interval": "1m", "input_series": series, "promql_expr_test": cases}],
    }
    (tmp_path / "test.yml").write_text(json.dumps(test))
    assert "SUCCESS" in promtool("test", "rules", "test.yml")
