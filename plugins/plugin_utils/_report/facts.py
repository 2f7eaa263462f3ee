# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All facts of an account report: what its JSON file holds and its page is drawn from."""

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

# Raised when the shape of the facts changes, so that no older report passes for the present one.
FORMAT = 1
PASSING = ("generated_at", "since")


class Scope(NamedTuple):
    """What the report is about."""

    title: str
    days: int
    stale_days: int


def report_facts(account: Mapping[str, Any], scope: Scope, now: str, previous: str = "") -> dict[str, Any]:
    """The facts of C(account), that is its C(api_keys), C(projects), C(unavailable_project_ids) and C(operations).

    C(previous) is the text of an earlier report's JSON. If nothing has changed since but the time, the facts are those
    of the earlier time, so that the report stays as it is. Raises ValueError for a malformed time.
    """
    facts = _facts(account, scope, parse_timestamp(now))
    earlier = _earlier(previous)
    if earlier.get("fingerprint") == facts["fingerprint"]:
        return _facts(account, scope, parse_timestamp(earlier["generated_at"]))
    return facts


def _facts(account: Mapping[str, Any], scope: Scope, now: datetime) -> dict[str, Any]:
    now = now.replace(microsecond=0)
    since = now - timedelta(days=scope.days)
    projects = project_facts(account["projects"], account.get("unavailable_project_ids") or ())
    names = {str(project["id"]): str(project["name"]) for project in projects["list"]}
    facts = {
        "format": FORMAT,
        "title": scope.title,
        "generated_at": _timestamp(now),
        "since": _timestamp(since),
        "days": scope.days,
        "stale_days": scope.stale_days,
        "api_keys": key_facts(account["api_keys"], now, scope.stale_days),
        "projects": projects,
        "operations": operation_facts(account["operations"], names, since),
    }
    return {**facts, "fingerprint": _fingerprint(facts)}


def _timestamp(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%S}Z"


def _fingerprint(facts: Mapping[str, Any]) -> str:
    lasting = {name: value for name, value in facts.items() if name not in PASSING}
    return hashlib.sha256(json.dumps(lasting, sort_keys=True).encode()).hexdigest()


def _earlier(text: str) -> Mapping[str, Any]:
    """The facts of the earlier report; none if there is none, or if it is something else."""
    try:
        found = json.loads(text)
        parse_timestamp(found["generated_at"])
    except (AttributeError, KeyError, TypeError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
