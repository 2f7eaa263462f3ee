# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The metrics of an account report, as a text file for Prometheus. Keeps P8.

The text is valid OpenMetrics 1.0 and, because it has only gauges and a histogram without timestamps, also valid in the
older text format that the textfile collector of node_exporter reads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import product
from typing import Any, NamedTuple

from ...module_utils._operations.status import ACTIONS, STATUSES
from ...module_utils._policy.policy import KINDS
from ...module_utils._timestamps import timestamp_of
from ...module_utils._untrusted import displayable
from .operations import IN_PROGRESS, SCHEDULING, grouped

KEY_STATES = ("never_used", "stale", "used")
# Findings about keys that are gone, in the results of api_key_policy.
RESOLVED_OUTCOMES = ("revoked", "gone")
BUCKETS = (1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600)

Labels = tuple[str, ...]
Items = Iterable[Mapping[str, Any]]


class Metric(NamedTuple):
    """A metric and its samples by the values of its labels: numbers of a gauge, lists of numbers of a histogram."""

    name: str
    description: str
    labels: Labels
    samples: Mapping[Labels, Any]
    kind: str = "gauge"

    def lines(self, account: str) -> Iterable[str]:
        """The text of the metric; each sample has the label C(account)."""
        yield f"# HELP {self.name} {self.description}"
        yield f"# TYPE {self.name} {self.kind}"
        for values, found in sorted(self.samples.items()):
            labels = {"account": displayable(account), **dict(zip(self.labels, values))}
            if self.kind == "gauge":
                yield _sample(self.name, labels, found)
                continue
            for bound in BUCKETS:
                count = sum(number <= bound for number in found)
                yield _sample(f"{self.name}_bucket", {**labels, "le": f"{bound:.1f}"}, count)
            yield _sample(f"{self.name}_bucket", {**labels, "le": "+Inf"}, len(found))
            yield _sample(f"{self.name}_count", labels, len(found))
            yield _sample(f"{self.name}_sum", labels, sum(found))


class MetricsOptions(NamedTuple):
    """The label C(account), the seconds between two reports, and the findings of the API key policy, None without one."""

    account: str
    interval: float
    findings: Sequence[Mapping[str, Any]] | None


def metrics_text(facts: Mapping[str, Any], options: MetricsOptions, now: datetime) -> str:
    """The metrics of C(facts), each with the label C(account); C(now) is the time of the report."""
    metrics = [
        *_report_metrics(facts, options, now),
        *_account_metrics(facts, options.findings),
        *_operation_metrics(facts["operations"]["list"]),
    ]
    return "\n".join([*(line for metric in metrics for line in metric.lines(options.account)), "# EOF", ""])


def _report_metrics(facts: Mapping[str, Any], options: MetricsOptions, now: datetime) -> list[Metric]:
    return [
        Metric(
            "clouddb_account_report_last_success_timestamp_seconds",
            "Unix time of the last report that succeeded.",
            (),
            {(): now.timestamp()},
        ),
        Metric(
            "clouddb_account_report_interval_seconds",
            "Time between two reports.",
            (),
            {(): options.interval},
        ),
        Metric(
            "clouddb_account_report_period_seconds",
            "Length of the period whose operations are counted.",
            (),
            {(): facts["days"] * 86400},
        ),
    ]


def _account_metrics(facts: Mapping[str, Any], findings: Sequence[Mapping[str, Any]] | None) -> list[Metric]:
    keys = facts["api_keys"]["list"]
    open_findings = [finding for finding in findings or () if finding["outcome"] not in RESOLVED_OUTCOMES]
    return [
        Metric(
            "clouddb_api_keys",
            "Number of API keys.",
            ("state",),
            _counts(((_key_state(key),) for key in keys), product(KEY_STATES)),
        ),
        Metric(
            "clouddb_api_key_findings",
            "Number of findings of the API key policy that were not resolved.",
            ("kind",),
            _counts(
                ((_label(finding["kind"]),) for finding in open_findings),
                product(KINDS) if findings is not None else (),
            ),
        ),
        Metric(
            "clouddb_api_key_oldest_created_timestamp_seconds",
            "Unix time at which the oldest API key was created.",
            (),
            _oldest({(): keys}),
        ),
        Metric(
            "clouddb_projects",
            "Number of projects in each region.",
            ("region_id",),
            _counts((_label(project["region_id"]),) for project in facts["projects"]["list"]),
        ),
        Metric(
            "clouddb_unavailable_projects",
            "Number of projects that the service could not list. The other metrics do not include them.",
            (),
            {(): len(facts["projects"]["unavailable_ids"])},
        ),
    ]


def _operation_metrics(operations: Items) -> list[Metric]:
    labeled = [{**operation, "action": _label(operation["action"])} for operation in operations]
    found_by_action = grouped(labeled, "action")
    # All known actions are included, so that their series always exist.
    by_action: dict[Labels, Items] = {
        (action,): found_by_action.get(action, []) for action in {*ACTIONS, *found_by_action}
    }
    unfinished = {
        labels: [operation for operation in found if operation["label"] in (SCHEDULING, IN_PROGRESS)]
        for labels, found in by_action.items()
    }
    return [
        Metric(
            "clouddb_operations",
            "Number of operations.",
            ("action", "status"),
            _counts(
                ((operation["action"], _label(operation["status"])) for operation in labeled),
                product((action for [action] in by_action), STATUSES),
            ),
        ),
        Metric(
            "clouddb_unfinished_operations",
            "Number of operations that have neither succeeded nor failed.",
            ("action",),
            {labels: len(found) for labels, found in unfinished.items()},
        ),
        Metric(
            "clouddb_unfinished_operation_oldest_created_timestamp_seconds",
            "Unix time at which the oldest unfinished operation was created.",
            ("action",),
            _oldest(unfinished),
        ),
        Metric(
            "clouddb_operation_duration_seconds",
            "Time from the creation to the last update of the operations that were executed.",
            ("action",),
            {
                labels: [each["duration_seconds"] for each in found if each["duration_seconds"] is not None]
                for labels, found in by_action.items()
            },
            "histogram",
        ),
    ]


def _sample(name: str, labels: Mapping[str, str], number: float) -> str:
    escaped = {label: value.replace("\\", "\\\\").replace('"', '\\"') for label, value in labels.items()}
    pairs = ",".join(f'{label}="{value}"' for label, value in escaped.items())
    return f"{name}{{{pairs}}} {float(number)}"


def _label(value: object) -> str:
    """The value of a label. Prometheus drops labels with an empty value."""
    return "unknown" if value in (None, "") else displayable(value)


def _key_state(key: Mapping[str, Any]) -> str:
    return "never_used" if key["never_used"] else "stale" if key["stale"] else "used"


def _counts(found: Iterable[Labels], known: Iterable[Labels] = ()) -> dict[Labels, int]:
    """The number of times that each of the label values was found, 0 for known ones that were not."""
    return {**dict.fromkeys(known, 0), **Counter(found)}


def _oldest(groups: Mapping[Labels, Items]) -> dict[Labels, float]:
    """The Unix time at which the oldest resource of each group was created, for groups that have one."""
    created = {
        labels: [moment.timestamp() for item in group if (moment := timestamp_of(item, "created_at"))]
        for labels, group in groups.items()
    }
    return {labels: min(moments) for labels, moments in created.items() if moments}
