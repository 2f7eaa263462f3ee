# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The metrics of an account report, as a text file for Prometheus.

The text is valid OpenMetrics 1.0 and, because it has only gauges and a histogram without timestamps, also valid in the
older text format that the textfile collector of node_exporter reads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import product
from typing import TYPE_CHECKING, Any

from ...module_utils._operations.status import ACTIONS, STATUSES
from ...module_utils._timestamps import timestamp_of
from ...module_utils._untrusted import displayable
from .operations import IN_PROGRESS, SCHEDULING, grouped

if TYPE_CHECKING:
    from prometheus_client.core import Metric

KEY_STATES = ("never_used", "stale", "used")
BUCKETS = (1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600)

Labels = tuple[str, ...]
Samples = dict[Labels, float]


def metrics_text(facts: Mapping[str, Any], account: str, now: datetime) -> str:
    """The metrics of C(facts), each with the label C(account); C(now) is the time of the report.

    Raises ImportError without prometheus_client, and an error of INVALID_INPUT for facts of another shape.
    """
    from prometheus_client import CollectorRegistry
    from prometheus_client.openmetrics.exposition import generate_latest
    from prometheus_client.registry import Collector

    metrics = report_metrics(facts, account, now)

    class Report(Collector):
        def collect(self) -> Iterable[Metric]:
            return metrics

    # Not the registry of the process, which has metrics of Python.
    registry = CollectorRegistry()
    registry.register(Report())
    text: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]
    return text.decode()


def report_metrics(facts: Mapping[str, Any], account: str, now: datetime) -> list[Metric]:
    """The metrics as objects of prometheus_client. Those of an account without objects have the same names."""
    from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily

    def gauge(name: str, description: str, labels: Sequence[str], samples: Mapping[Labels, float]) -> Metric:
        family = GaugeMetricFamily(name, description, labels=["account", *labels])
        for values, number in sorted(samples.items()):
            family.add_metric([displayable(account), *values], number)
        return family

    def histogram(name: str, description: str, label: str, samples: Mapping[str, Sequence[float]]) -> Metric:
        family = HistogramMetricFamily(name, description, labels=["account", label])
        for value, numbers in sorted(samples.items()):
            family.add_metric([displayable(account), value], _buckets(numbers), sum(numbers))
        return family

    keys, projects, operations = (facts[part]["list"] for part in ("api_keys", "projects", "operations"))
    by_action = _by_action(operations)
    unfinished = {
        action: [operation for operation in found if operation["label"] in (SCHEDULING, IN_PROGRESS)]
        for action, found in by_action.items()
    }
    return [
        gauge(
            "clouddb_account_report_last_success_timestamp_seconds",
            "Unix time of the last report that succeeded.",
            [],
            {(): now.timestamp()},
        ),
        gauge(
            "clouddb_account_report_period_seconds",
            "Length of the period before the report whose operations are counted.",
            [],
            {(): facts["days"] * 86400},
        ),
        gauge(
            "clouddb_api_keys",
            "Number of API keys that were never used, that are stale because of a long time without use, and of all others.",
            ["state"],
            _counts(((_key_state(key),) for key in keys), product(KEY_STATES)),
        ),
        gauge(
            "clouddb_api_key_oldest_created_timestamp_seconds",
            "Unix time at which the oldest API key was created. An account without keys has no such sample.",
            [],
            _oldest({(): keys}),
        ),
        gauge(
            "clouddb_projects",
            "Number of projects in each region.",
            ["region_id"],
            _counts((_label(project["region_id"]),) for project in projects),
        ),
        gauge(
            "clouddb_unavailable_projects",
            "Number of projects that the service could not list. The other metrics do not include them.",
            [],
            {(): len(facts["projects"]["unavailable_ids"])},
        ),
        gauge(
            "clouddb_operations",
            "Number of operations that were created in the period.",
            ["action", "status"],
            _counts(
                ((_label(operation["action"]), _label(operation["status"])) for operation in operations),
                product(by_action, STATUSES),
            ),
        ),
        gauge(
            "clouddb_unfinished_operations",
            "Number of operations of the period that have neither succeeded nor failed.",
            ["action"],
            {(action,): len(found) for action, found in unfinished.items()},
        ),
        gauge(
            "clouddb_unfinished_operation_oldest_created_timestamp_seconds",
            "Unix time at which the oldest unfinished operation was created. Actions without unfinished operations have no such sample.",
            ["action"],
            _oldest({(action,): found for action, found in unfinished.items()}),
        ),
        histogram(
            "clouddb_operation_duration_seconds",
            "Time from the creation to the last update of the operations of the period that were executed.",
            "action",
            {
                action: [each["duration_seconds"] for each in found if each["duration_seconds"] is not None]
                for action, found in by_action.items()
            },
        ),
    ]


def _label(value: object) -> str:
    """The value of a label. Prometheus drops labels with an empty value."""
    return "unknown" if value in (None, "") else displayable(value)


def _key_state(key: Mapping[str, Any]) -> str:
    return "never_used" if key["never_used"] else "stale" if key["stale"] else "used"


def _by_action(operations: Iterable[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """The operations by the label of their action. All known actions are included, so that their series always exist."""
    labeled = ({**operation, "action": _label(operation["action"])} for operation in operations)
    return {**{action: [] for action in ACTIONS}, **grouped(labeled, "action")}


def _counts(found: Iterable[Labels], known: Iterable[Labels] = ()) -> Samples:
    """The number of times that each of the label values was found, 0 for known ones that were not."""
    return {**dict.fromkeys(known, 0), **Counter(found)}


def _oldest(groups: Mapping[Labels, Iterable[Mapping[str, Any]]]) -> Samples:
    """The Unix time at which the oldest object of each group was created, for groups that have one."""
    created = {
        labels: [moment.timestamp() for item in group if (moment := timestamp_of(item, "created_at"))]
        for labels, group in groups.items()
    }
    return {labels: min(moments) for labels, moments in created.items() if moments}


def _buckets(numbers: Sequence[float]) -> list[tuple[str, float]]:
    """The number of values up to each bound."""
    bounds = [float(bound) for bound in BUCKETS]
    return [*((str(bound), sum(number <= bound for number in numbers)) for bound in bounds), ("+Inf", len(numbers))]
