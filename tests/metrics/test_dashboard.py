# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The dashboard: its structure in the types of Grafana, and its queries in promtool."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, get_type_hints

import yaml
from conftest import ROOT, Promtool, Role
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard
from prometheus_client.parser import text_string_to_metric_families
from pydantic import ConfigDict, TypeAdapter

RULES = ROOT / "extensions" / "prometheus" / "clouddb.rules.yml"
DASHBOARD = json.loads((ROOT / "extensions" / "grafana" / "clouddb.json").read_text(encoding="utf-8"))


def queries() -> list[str]:
    """The queries of the dashboard, for all accounts."""
    return [target["expr"].replace("$account", ".*") for panel in DASHBOARD["panels"] for target in panel["targets"]]


def check_types(value: Any) -> None:
    """Check the attributes of an object of Grafana's types, and those of the objects in it. Raises ValidationError."""
    if isinstance(value, dict):
        check_types(list(value.values()))
    elif isinstance(value, list):
        for item in value:
            check_types(item)
    elif type(value).__module__.startswith("grafana_foundation_sdk."):
        for name, hint in get_type_hints(type(value)).items():
            TypeAdapter(hint, config=ConfigDict(arbitrary_types_allowed=True)).validate_python(getattr(value, name))
            check_types(getattr(value, name))


def without_defaults(encoded: Any, original: Any) -> Any:
    """The part of the encoded dashboard that the original has, too."""
    if isinstance(encoded, dict) and isinstance(original, dict):
        return {key: without_defaults(encoded[key], original[key]) for key in original if key in encoded}
    if isinstance(encoded, list) and isinstance(original, list) and len(encoded) == len(original):
        return [without_defaults(*pair) for pair in zip(encoded, original, strict=True)]
    return encoded


def test_structure() -> None:
    """Grafana knows each field of the dashboard, and each has the type that Grafana expects."""
    register_default_plugins()
    parsed = Dashboard.from_json(DASHBOARD)
    check_types(parsed)
    for panel in parsed.panels or []:
        assert not isinstance(panel.options, dict), f"Grafana has no panel of the type {panel.type_val}."
    # The parser ignores what it does not know.
    assert without_defaults(json.loads(JSONEncoder().encode(parsed)), DASHBOARD) == DASHBOARD


def test_share_of_failed_operations_is_that_of_the_alert() -> None:
    [group] = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    [alert] = [rule["expr"] for rule in group["rules"] if rule["alert"] == "ClouddbOperationsFailing"]
    [panel] = [panel for panel in DASHBOARD["panels"] if panel["title"] == "Share of failed operations by action"]
    statuses = re.compile(r'status=~"([^"]*)"')
    assert statuses.findall(panel["targets"][0]["expr"]) == statuses.findall(alert)[:2]


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
