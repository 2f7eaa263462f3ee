# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The queries of the dashboard, in promtool."""

from __future__ import annotations

import json
from pathlib import Path

from conftest import ROOT, Promtool, Role
from prometheus_client.parser import text_string_to_metric_families

DASHBOARD = json.loads((ROOT / "extensions" / "grafana" / "clouddb.json").read_text(encoding="utf-8"))


def queries() -> list[str]:
    """The queries of the dashboard, for all accounts."""
    return [target["expr"].replace("$account", ".*") for panel in DASHBOARD["panels"] for target in panel["targets"]]


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
