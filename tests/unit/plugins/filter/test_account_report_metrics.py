# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The metrics of an account report, as the parsers of prometheus_client read them."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as prometheus_text

from ansible_collections.clouddb.control.plugins.filter.account_report import account_report
from ansible_collections.clouddb.control.plugins.module_utils._operations.status import ACTIONS, STATUSES
from ansible_collections.clouddb.control.plugins.module_utils._policy.policy import KINDS

from .accounts import NOW, account, ago, key, operation, project, stamp

HOSTILE = 'a "quoted" \\ {{ name }}\n# EOF\x1b[2J\u202e\ud800'
Found = dict[tuple[str, ...], float]


def text_of(name: str = "production", now: datetime = NOW, **source: Any) -> str:
    options = {option: source.pop(option) for option in ("interval", "policy", "limits") if option in source}
    text: str = account_report(account(**source), now=stamp(now), account=name, **options)["metrics"]
    return text


def samples(text: str) -> Found:
    """The samples by name and by the values of their labels, without the account. Both parsers read the same."""
    read = [
        [
            (
                (sample.name, *(value for label, value in sorted(sample.labels.items()) if label != "account")),
                sample.value,
            )
            for family in parse(text)
            for sample in family.samples
        ]
        for parse in (openmetrics, prometheus_text)
    ]
    assert read[0] == read[1]
    assert len(dict(read[0])) == len(read[0]), "each sample is unique"
    return dict(read[0])


def not_zero(found: Found, metric: str) -> dict[tuple[str, ...], float]:
    """The samples of a metric that are not 0, by the values of their labels."""
    return {tuple(values): number for (name, *values), number in found.items() if name == metric and number}


def test_keys_and_projects() -> None:
    found = samples(
        text_of(
            now=NOW,
            api_keys=[
                key(1, "never", created_at="soon"),
                key(2, "stale", ago(days=90), created_at="2025-01-02T03:04:05.5Z"),
                key(3, "a", ago(days=1)),
                key(4, "year 1", "0001-01-01T00:00:00Z", created_at="0001-01-01T00:00:00Z"),
                key(5, "malformed", "soon"),
            ],
            projects=[project("p1"), project("p2"), project("p3", region_id=None), project("p4", region_id="")],
            unavailable_project_ids=["p8"],
            # The one that the list of projects lacks could not be listed either.
            unread_project_ids=["p2", "p9"],
        )
    )
    assert not_zero(found, "clouddb_api_keys") == {("never_used",): 2, ("stale",): 1, ("used",): 1, ("unknown",): 1}
    assert found[("clouddb_api_key_oldest_created_timestamp_seconds",)] == 1735787045.5
    assert not_zero(found, "clouddb_projects") == {("aws-eu-central-1",): 2, ("unknown",): 2}
    assert (found[("clouddb_unreadable_projects",)], found[("clouddb_unavailable_projects",)]) == (1, 2)
    assert found[("clouddb_account_report_last_success_timestamp_seconds",)] == NOW.timestamp()
    assert found[("clouddb_account_report_period_seconds",)] == 7 * 86400


@pytest.mark.parametrize("interval, seconds", [("1h", 3600), ("1d", 86400), (60, 60)])
def test_interval(interval: Any, seconds: int) -> None:
    assert samples(text_of(interval=interval))[("clouddb_account_report_interval_seconds",)] == seconds


def test_findings_of_the_policy() -> None:
    """All kinds, without what the task has resolved; none if there was no policy."""
    outcomes = [("unknown", "reported"), ("unknown", "kept"), ("idle", "revoked"), ("duplicate", "gone")]
    policy = {"findings": [{"kind": kind, "outcome": outcome} for kind, outcome in outcomes]}
    found = samples(text_of(policy=policy))
    assert not_zero(found, "clouddb_api_key_findings") == {("unknown",): 2}
    assert {kind for name, *labels in found if name == "clouddb_api_key_findings" for kind in labels} == {*KINDS}
    checked = samples(text_of(policy={**policy, "check_mode": True}))
    assert not_zero(checked, "clouddb_api_key_findings") == {("unknown",): 2, ("idle",): 1, ("duplicate",): 1}
    assert "clouddb_api_key_findings" not in [name for name, *_labels in samples(text_of(policy={}))]


def test_operations() -> None:
    found = samples(
        text_of(
            operations=[
                operation(1),
                operation(3, "failed"),
                operation(4, "running", action="create_branch"),
                operation(9, "scheduling", action="create_branch"),
                operation(5, "never heard of", action="new_action"),
                operation(6, age=timedelta(days=8)),
            ]
        )
    )
    assert not_zero(found, "clouddb_operations") == {
        ("start_compute", "finished"): 1,
        ("start_compute", "failed"): 1,
        ("create_branch", "running"): 1,
        ("create_branch", "scheduling"): 1,
        ("new_action", "never heard of"): 1,
    }
    assert {labels[1] for name, *labels in found if labels[:1] == ["new_action"] and labels[1:]} > STATUSES
    assert not_zero(found, "clouddb_unfinished_operations") == {("create_branch",): 2, ("new_action",): 1}
    assert not_zero(found, "clouddb_unfinished_operation_oldest_created_timestamp_seconds") == {
        ("create_branch",): (NOW - timedelta(hours=9)).timestamp(),
        ("new_action",): (NOW - timedelta(hours=5)).timestamp(),
    }


def test_usage_quota_and_limits() -> None:
    projects = [project("p1", active_time=50, settings={"quota": {"active_time_seconds": 100}}), project("p2")]
    found = samples(text_of(projects=projects, limits={"active_time_seconds": 40, "compute_time_seconds": 40}))
    # The labels are sorted by their names.
    assert not_zero(found, "clouddb_project_usage") == {
        ("active_time_seconds", "p1"): 50,
        ("compute_time_seconds", "p1"): 10,
        ("compute_time_seconds", "p2"): 10,
    }
    assert not_zero(found, "clouddb_project_quota") == {("active_time_seconds", "p1"): 100}
    assert found[("clouddb_projects_over_limit", "active_time_seconds")] == 1
    assert found[("clouddb_projects_over_limit", "compute_time_seconds")] == 0


def test_released_metrics_keep_their_names_texts_types_and_labels() -> None:
    """node_exporter drops what differs between the files of two versions."""
    released = json.loads((Path(__file__).parent / "metrics_2.0.0.json").read_text(encoding="utf-8"))
    source = account([key(1, "ci")], [project("p1")], [operation(1, "running")])
    text = account_report(source, NOW, account="a", policy={"findings": []})["metrics"]
    now = {
        family.name: [
            family.documentation,
            family.type,
            sorted({label for each in family.samples for label in each.labels}),
        ]
        for family in openmetrics(text)
    }
    assert {name: now.get(name) for name in released} == released


def test_known_actions_and_statuses_are_always_present() -> None:
    found = samples(text_of())
    for name, labels in {
        "clouddb_api_keys": {("never_used",), ("stale",), ("used",), ("unknown",)},
        "clouddb_operations": {(action, status) for action in ACTIONS for status in STATUSES},
        "clouddb_unfinished_operations": {(action,) for action in ACTIONS},
        "clouddb_operation_duration_seconds_count": {(action,) for action in ACTIONS},
    }.items():
        assert {tuple(values) for metric, *values in found if metric == name} == labels
        assert not_zero(found, name) == {}
    assert [name for name, *_labels in found if name.endswith("created_timestamp_seconds")] == []


def test_durations() -> None:
    finished = [operation(number, seconds=seconds) for number, seconds in enumerate((0.5, 1, 1.5))]
    found = samples(text_of(operations=[*finished, operation(4, "failed", 4000), operation(6, "skipped", 50)]))
    name = "clouddb_operation_duration_seconds"
    buckets = {bound: number for (_action, bound), number in not_zero(found, f"{name}_bucket").items()}
    bounds = ["2.0", "5.0", "10.0", "30.0", "60.0", "120.0", "300.0", "600.0", "1800.0", "3600.0"]
    assert buckets == {"1.0": 2, **dict.fromkeys(bounds, 3), "+Inf": 4}
    assert found[(f"{name}_count", "start_compute")] == 4
    assert found[(f"{name}_sum", "start_compute")] == 4003


def test_hostile_values_are_labels() -> None:
    """Values that are shown the same are one series, and an empty value is unknown."""
    text = text_of(
        HOSTILE,
        projects=[project("p1", region_id=HOSTILE)],
        operations=[
            *(operation(1, HOSTILE, action=HOSTILE), operation(2, "", action="")),
            *(operation(3, action="x\ty"), operation(4, "failed", action="x\\ty")),
        ],
    )
    assert all(line.isprintable() for line in text.splitlines())
    shown = 'a "quoted" \\ {{ name }}\\n# EOF\\x1b[2J\\u202e\\ud800'
    found = samples(text)
    assert not_zero(found, "clouddb_projects") == {(shown,): 1}
    assert not_zero(found, "clouddb_operations") == {
        **{(shown, shown): 1, ("unknown", "unknown"): 1},
        **{("x\\ty", "finished"): 1, ("x\\ty", "failed"): 1},
    }
    families = list(openmetrics(text))
    assert {sample.labels["account"] for family in families for sample in family.samples} == {shown}
    assert {family.type for family in families} == {"gauge", "histogram"}, "both formats have these"
