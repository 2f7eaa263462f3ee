# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The API keys in an account report. Keeps P3."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from ...module_utils._timestamps import timestamp_of
from .text import scalar


def key_facts(api_keys: Sequence[Mapping[str, Any]], now: datetime, stale_days: int) -> dict[str, Any]:
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
    created_at, last_used_at = timestamp_of(key, "created_at"), timestamp_of(key, "last_used_at")
    unused_days = _full_days(last_used_at, now)
    return {
        "id": scalar(key, "id"),
        "name": scalar(key, "name"),
        "created_at": scalar(key, "created_at"),
        "age_days": _full_days(created_at, now),
        # Only the day: the report's own requests use a key, and would change a more precise time in every run.
        "last_used_on": last_used_at.date().isoformat() if last_used_at else None,
        "unused_days": unused_days,
        "last_used_from_addr": scalar(key, "last_used_from_addr") or None,
        "never_used": last_used_at is None,
        "stale": unused_days is not None and unused_days >= stale_days,
        "duplicate_name": is_duplicate,
    }


def _full_days(since: datetime | None, now: datetime) -> int | None:
    return None if since is None else max(0, (now - since).days)
