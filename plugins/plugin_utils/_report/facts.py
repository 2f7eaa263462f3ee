# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The facts of an account report: the content of its JSON file, and the input of its page. Keeps P1, P3 and P8."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from ...module_utils._timestamps import parse_timestamp
from .keys import key_facts
from .operations import operation_facts
from .projects import project_facts

# Increased when the structure of the facts changes, so that reports of other versions are recognized.
FORMAT = 1
# What the calculations raise for values that no account and no report has.
INVALID_INPUT = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
VOLATILE_FIELDS = ("generated_at", "since")


class ReportOptions(NamedTuple):
    """The options of a report."""

    title: str
    days: int
    stale_days: int


def report_facts(account: Mapping[str, Any], options: ReportOptions, now: str, previous: str) -> dict[str, Any]:
    """The facts of C(account), a mapping with C(api_keys), C(projects), C(unavailable_project_ids) and C(operations).

    C(previous) is the JSON of an earlier report. If only the time has changed since then, the facts of the earlier time
    are returned, so that the report does not change. Anything else is ignored. Raises an error of INVALID_INPUT for an
    account of another shape or a malformed timestamp.
    """
    moment = parse_timestamp(now)
    facts = _facts(account, options, moment)
    try:
        # Its integers are not needed, and a long one would take time or be an error.
        found = json.loads(previous, parse_int=str)
        earlier = parse_timestamp(found["generated_at"])
        is_unchanged = earlier <= moment and found["fingerprint"] == facts["fingerprint"]
        earlier_facts = _facts(account, options, earlier) if is_unchanged else facts
    except INVALID_INPUT:
        # It is no report.
        return facts
    return earlier_facts if earlier_facts["fingerprint"] == facts["fingerprint"] else facts


def _facts(account: Mapping[str, Any], options: ReportOptions, now: datetime) -> dict[str, Any]:
    now = now.replace(microsecond=0)
    since = now - timedelta(days=options.days)
    projects = project_facts(account["projects"], account.get("unavailable_project_ids") or ())
    names = {str(project["id"]): str(project["name"]) for project in projects["list"] if project["name"] is not None}
    facts = {
        "format": FORMAT,
        "title": options.title,
        "generated_at": _timestamp(now),
        "since": _timestamp(since),
        "days": options.days,
        "stale_days": options.stale_days,
        "api_keys": key_facts(account["api_keys"], now, options.stale_days),
        "projects": projects,
        "operations": operation_facts(account["operations"], names, since, now),
    }
    return {**facts, "fingerprint": _fingerprint(facts)}


def _timestamp(moment: datetime) -> str:
    # strftime does not pad years.
    return f"{moment.replace(tzinfo=None).isoformat()}Z"


def _fingerprint(facts: Mapping[str, Any]) -> str:
    stable = {name: value for name, value in facts.items() if name not in VOLATILE_FIELDS}
    return hashlib.sha256(json.dumps(stable, sort_keys=True).encode()).hexdigest()
