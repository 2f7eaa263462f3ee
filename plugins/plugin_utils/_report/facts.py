# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The facts of an account report: the content of its JSON file, and the input of its page. Keeps P1, P3 and P8."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

from ...module_utils._keys.keys import last_use
from ...module_utils._timestamps import is_never, parse_timestamp, timestamp_of
from .operations import counts, operation_facts
from .text import number_or_zero, scalar
from .usage import over_limits, usage_facts

# Increased when the structure of the facts changes, so that reports of other versions are recognized.
FORMAT = 2
# What the calculations raise for values that no account and no report has.
INVALID_INPUT = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
PROJECT_FIELDS = (
    "id",
    "name",
    "region_id",
    "platform_id",
    "pg_version",
    "locked",
    "cpu_used_sec",
    "branch_logical_size_limit",
    "consumption_period_start",
    "consumption_period_end",
    "created_at",
)


def report_facts(
    account: Mapping[str, Any],
    title: str,
    days: int,
    stale_days: int,
    now: str,
    previous: str,
    limits: Mapping[str, int | float] = MappingProxyType({}),
) -> dict[str, Any]:
    """The facts of C(account), a mapping with C(api_keys), C(projects), C(unavailable_project_ids), C(operations), and
    C(unread_project_ids), the projects that the operations are not of. C(limits) of usage are those of checked_limits().

    C(previous) is the JSON of an earlier report. If only the time has changed since then, the facts of the earlier time
    are returned, so that the report does not change. Anything else is ignored. Raises an error of INVALID_INPUT for an
    account of another shape or a malformed timestamp.
    """
    moment = parse_timestamp(now)
    facts = _facts(account, title, days, stale_days, moment, limits)
    with suppress(*INVALID_INPUT):
        # Its integers are not needed, and a long one would take time or be an error.
        found = json.loads(previous, parse_int=str)
        if found["fingerprint"] == facts["fingerprint"]:
            earlier = min(moment, parse_timestamp(found["generated_at"]))
            earlier_facts = _facts(account, title, days, stale_days, earlier, limits)
            return earlier_facts if earlier_facts["fingerprint"] == facts["fingerprint"] else facts
    return facts


def _facts(
    account: Mapping[str, Any], title: str, days: int, stale_days: int, now: datetime, limits: Mapping[str, int | float]
) -> dict[str, Any]:
    now = now.replace(microsecond=0)
    since = now - timedelta(days=days)
    projects = _projects({**account, "projects": _once(account["projects"])}, limits)
    names = {str(project["id"]): str(project["name"]) for project in projects["list"] if project["name"] is not None}
    facts = {
        "format": FORMAT,
        "title": title,
        "days": days,
        "stale_days": stale_days,
        "api_keys": _keys(_once(account["api_keys"]), now, stale_days),
        "projects": projects,
        "operations": operation_facts(account["operations"], names, since, now),
    }
    fingerprint = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
    return {**facts, "fingerprint": fingerprint, "generated_at": _timestamp(now), "since": _timestamp(since)}


def _once(items: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The items without those that a list has twice, because it changed between two pages: the later one counts."""
    return list({str(item.get("id")): item for item in items}.values())


def _timestamp(moment: datetime) -> str:
    # strftime does not pad years.
    return f"{moment.replace(tzinfo=None).isoformat()}Z"


def _keys(api_keys: Sequence[Mapping[str, Any]], now: datetime, stale_days: int) -> dict[str, Any]:
    """The keys sorted by name, and the numbers of never used keys, stale keys, and keys with duplicate names."""
    names = Counter(scalar(key, "name") for key in api_keys)
    keys = [_key(key, now, stale_days, names[scalar(key, "name")] > 1) for key in api_keys]
    return {
        "total": len(keys),
        "never_used": sum(key["never_used"] for key in keys),
        "stale": sum(key["stale"] for key in keys),
        "duplicate_names": sum(key["duplicate_name"] for key in keys),
        "list": sorted(keys, key=lambda key: (str(key["name"]).casefold(), str(key["created_at"]), str(key["id"]))),
    }


def _key(key: Mapping[str, Any], now: datetime, stale_days: int, is_duplicate: bool) -> dict[str, Any]:
    last_used_at = last_use(key)
    unused_days = _full_days(last_used_at, now)
    return {
        "id": scalar(key, "id"),
        "name": scalar(key, "name"),
        "created_at": scalar(key, "created_at"),
        "age_days": _full_days(timestamp_of(key, "created_at"), now),
        # Only the day: the report's own requests use a key, and would change a more precise time in every run.
        "last_used_on": last_used_at.date().isoformat() if last_used_at else None,
        "unused_days": unused_days,
        "last_used_from_addr": scalar(key, "last_used_from_addr") or None,
        "never_used": is_never(key, "last_used_at"),
        "stale": unused_days is not None and unused_days >= stale_days,
        "duplicate_name": is_duplicate,
    }


def _full_days(since: datetime | None, now: datetime) -> int | None:
    return None if since is None else max(0, (now - since).days)


def _projects(account: Mapping[str, Any], limits: Mapping[str, int | float]) -> dict[str, Any]:
    """The projects sorted by name, their numbers by region, version and platform, and their total compute seconds.

    A project whose operations are not known is unreadable if it is in the list of projects, and otherwise unavailable.
    """
    projects = account["projects"]
    listed_ids = {str(project["id"]) for project in projects}
    unread_ids = set(map(str, account.get("unread_project_ids") or ()))
    unavailable_ids = {*map(str, account.get("unavailable_project_ids") or ()), *(unread_ids - listed_ids)}
    listed = sorted(
        (
            {**{field: scalar(project, field) for field in PROJECT_FIELDS}, **usage_facts(project)}
            for project in projects
        ),
        key=lambda project: (str(project["name"]).casefold(), str(project["id"])),
    )
    return {
        "total": len(projects),
        "locked": sum(bool(project.get("locked")) for project in projects),
        "cpu_used_sec": sum(number_or_zero(project, "cpu_used_sec") for project in projects),
        "by_region": counts(project.get("region_id") for project in projects),
        "by_version": counts(project.get("pg_version") for project in projects),
        "by_platform": counts(project.get("platform_id") for project in projects),
        "unavailable_ids": sorted(unavailable_ids),
        "unreadable_ids": sorted(unread_ids & listed_ids),
        "limits": dict(limits),
        "over_limits": over_limits(listed, limits),
        "list": listed,
    }
