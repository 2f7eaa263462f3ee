# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The alert rules, the dashboard and the guide use the metrics that the role account_report writes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from ansible_collections.clouddb.control.plugins.filter.account_report import account_report
from ansible_collections.clouddb.control.plugins.module_utils._operations.status import FAILED, SUCCEEDED
from ansible_collections.clouddb.control.plugins.plugin_utils._report.metrics import KEY_STATES

from ..plugins.filter.accounts import NOW, account, key, operation, project, stamp

ROOT = Path(__file__).parents[3]
RULES = ROOT / "extensions" / "prometheus" / "clouddb.rules.yml"
DASHBOARD = ROOT / "extensions" / "grafana" / "clouddb.json"
GUIDE = ROOT / "docs" / "docsite" / "rst" / "account_report.rst"


def metrics() -> list[Metric]:
    """The metrics of an account that has each of them."""
    settings = {"quota": {"compute_time_seconds": 1}}
    source = account([key(1, "ci")], [project("p1", settings=settings)], [operation(1, "running")])
    policy: dict[str, Any] = {"findings": []}
    limits = {"compute_time_seconds": 1}
    text = account_report(source, stamp(NOW), account="production", policy=policy, limits=limits)["metrics"]
    return list(text_string_to_metric_families(text))


def alerts() -> list[dict[str, Any]]:
    [group] = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return list(group["rules"])


def dashboard() -> dict[str, Any]:
    return dict(json.loads(DASHBOARD.read_text(encoding="utf-8")))


def queries() -> list[str]:
    return [target["expr"] for panel in dashboard()["panels"] for target in panel["targets"]]


def uses(query: str) -> set[tuple[str, frozenset[str]]]:
    """The samples that a query selects: their names, and the labels that it selects and groups them by."""
    selectors = re.findall(r"(clouddb_\w+)(?:\{([^}]*)\})?", query)
    return {(name, frozenset(re.findall(r"(\w+)=", matchers))) for name, matchers in selectors}


def selected_statuses(query: str) -> set[frozenset[str]]:
    return {frozenset(value.split("|")) for value in re.findall(r'status=~"([^"]*)"', query)}


@pytest.mark.parametrize("query", [*(alert["expr"] for alert in alerts()), *queries()])
def test_queries_select_existing_metrics_and_labels(query: str) -> None:
    labels = {sample.name: set(sample.labels) for metric in metrics() for sample in metric.samples}
    assert uses(query)
    for name, selected in uses(query):
        assert selected <= labels[name]
    grouped = {
        label for labels in re.findall(r"(?:by|without|ignoring) \(([^)]*)\)", query) for label in labels.split(", ")
    }
    assert grouped <= set.union(*(labels[name] for name, _selected in uses(query)))
    assert set(re.findall(r'state=~"([^"]*)"', query)) <= {"never_used|stale"} and {"never_used", "stale"} < set(
        KEY_STATES
    )
    assert selected_statuses(query) <= {FAILED, FAILED | SUCCEEDED}


def test_every_metric_is_used() -> None:
    used = {name for query in [*queries(), *(alert["expr"] for alert in alerts())] for name, _labels in uses(query)}
    names = {metric.name + ("_bucket" if metric.type == "histogram" else "") for metric in metrics()}
    assert names - used == set()


def test_dashboard_works_in_any_grafana() -> None:
    found = dashboard()
    # An import with an id would replace another dashboard.
    assert "id" not in found and found["schemaVersion"] >= 38
    source = {"type": "prometheus", "uid": "${datasource}"}
    panels = found["panels"]
    assert [panel["id"] for panel in panels] == list(range(1, len(panels) + 1))
    assert len({panel["title"] for panel in panels}) == len(panels)
    for panel in panels:
        assert panel["datasource"] == source and panel["description"].endswith(".")
        assert [target["datasource"] for target in panel["targets"]] == [source]
        assert "$account" in panel["targets"][0]["expr"]
    variables = {variable["name"]: variable for variable in found["templating"]["list"]}
    assert list(variables) == ["datasource", "account"]
    assert variables["account"]["datasource"] == source
    [(name, _labels)] = uses(variables["account"]["query"]["query"])
    assert name in {metric.name for metric in metrics()}


def test_guide_lists_every_metric() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    rows = re.findall(r"   \* - ``(clouddb_\w+)(?:\{(.+)\})?``\n     - (.+)\n", text)
    assert rows == [
        (
            metric.name,
            ", ".join(label for label in metric.samples[0].labels if label not in ("account", "le")),
            metric.documentation,
        )
        for metric in metrics()
    ]
