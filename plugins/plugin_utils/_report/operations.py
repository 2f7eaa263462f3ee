# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The operations in an account report. Keeps P3."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from statistics import median
from typing import Any

from ...module_utils._operations.status import FAILED, SUCCEEDED
from ...module_utils._timestamps import parse_timestamp, seconds_between, timestamp_of
from ...module_utils._untrusted import without_templates
from .text import number_or_zero, scalar

OK, SCHEDULING, IN_PROGRESS, ERROR = LABELS = ("OK", "Scheduling", "In progress", "Error")
# Only operations that were executed have a duration: the times of skipped and cancelled ones are not those of the action.
EXECUTED_STATUSES = ("finished", "failed", "error")
MAX_SLOWEST = 10
# The clock that C(now) comes from may be behind the service's.
MAX_CLOCK_DIFFERENCE = timedelta(hours=1)
# An operation that is unfinished for longer needs attention.
MAX_UNFINISHED_AGE = timedelta(hours=1)
UNFINISHED = (SCHEDULING, IN_PROGRESS)


def console_label(status: str) -> str:
    """The label that the web console shows for a status. An unknown status is in progress, as in operation_wait."""
    if status in SUCCEEDED:
        return OK
    if status in FAILED:
        return ERROR
    return SCHEDULING if status == "scheduling" else IN_PROGRESS


def operation_facts(
    operations: Sequence[Mapping[str, Any]], names: Mapping[str, str], since: datetime, now: datetime
) -> dict[str, Any]:
    """The operations that are reported, newest first, with counts and durations.

    C(operations) may have an operation twice: the later one counts. C(names) maps project ids to names. Raises ValueError for an
    operation without a valid C(created_at).
    """
    latest = {(str(operation.get("project_id")), str(operation.get("id"))): operation for operation in operations}
    all_found = [_operation(operation, names) for operation in latest.values()]
    found = [operation for operation in all_found if is_reported(operation, since, now + MAX_CLOCK_DIFFERENCE)]
    found.sort(key=lambda operation: (parse_timestamp(operation["created_at"]), operation["id"]), reverse=True)
    timed = [operation for operation in found if operation["duration_seconds"] is not None]
    return {
        "total": len(found),
        "by_label": by_label(found),
        "by_status": counts(operation["status"] for operation in found),
        "by_action": [_action(action, group) for action, group in grouped(found, "action").items()],
        "slowest": sorted(timed, key=lambda operation: -operation["duration_seconds"])[:MAX_SLOWEST],
        "failed": [operation for operation in found if operation["label"] == ERROR],
        "long_unfinished": [each for each in found if _is_long_unfinished(each, now)],
        "list": found,
    }


def is_reported(operation: Mapping[str, Any], since: datetime, until: datetime) -> bool:
    """Whether it was created in the period or, if it was created before, has failed in it or is unfinished now."""
    created_at = parse_timestamp(str(operation["created_at"]))
    if created_at >= since or operation["label"] in UNFINISHED:
        return created_at <= until
    failed_at = timestamp_of(operation, "updated_at") if operation["label"] == ERROR else None
    return failed_at is not None and since <= failed_at <= until


def _is_long_unfinished(operation: Mapping[str, Any], now: datetime) -> bool:
    is_old = parse_timestamp(operation["created_at"]) < now - MAX_UNFINISHED_AGE
    return operation["label"] in UNFINISHED and is_old


def word(label: str) -> str:
    """The word for a label on the page: C(failed) is the word of the modules for what the web console labels C(Error)."""
    return "Failed" if label == ERROR else label


def by_label(operations: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """The number of operations with each of the four labels."""
    labels = [operation["label"] for operation in operations]
    return {label: labels.count(label) for label in LABELS}


def _operation(operation: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    status = str(operation.get("status"))
    is_executed = status in EXECUTED_STATUSES
    return {
        "id": str(operation.get("id")),
        "project_id": scalar(operation, "project_id"),
        "project_name": names.get(str(operation.get("project_id"))),
        "branch_id": scalar(operation, "branch_id"),
        "endpoint_id": scalar(operation, "endpoint_id"),
        "action": str(operation.get("action")),
        "status": status,
        "label": console_label(status),
        "created_at": str(operation.get("created_at")),
        "updated_at": scalar(operation, "updated_at"),
        "duration_seconds": seconds_between(operation, "created_at", "updated_at") if is_executed else None,
        "failures_count": number_or_zero(operation, "failures_count"),
        "error": scalar(operation, "error") or None,
    }


def _action(action: str, operations: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    seconds = sorted(each["duration_seconds"] for each in operations if each["duration_seconds"] is not None)
    return {
        "action": action,
        "total": len(operations),
        "by_label": by_label(operations),
        "timed": len(seconds),
        "median_seconds": round(median(seconds), 6) if seconds else None,
        # By the nearest-rank method.
        "p95_seconds": seconds[math.ceil(len(seconds) * 95 / 100) - 1] if seconds else None,
        "longest_seconds": max(seconds, default=None),
    }


def counts(values: Iterable[Any]) -> dict[str, int]:
    """The number of occurrences of each value, the most frequent first; a missing value is C(unknown)."""
    found = Counter("unknown" if value in (None, "") else without_templates(str(value)) for value in values)
    return dict(sorted(found.items(), key=lambda entry: (-entry[1], entry[0])))


def grouped(operations: Iterable[Mapping[str, Any]], field: str) -> dict[str, list[Mapping[str, Any]]]:
    """The operations grouped by the value of a field, the most frequent value first."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for operation in operations:
        groups.setdefault(str(operation[field]), []).append(operation)
    return dict(sorted(groups.items(), key=lambda entry: (-len(entry[1]), entry[0])))
