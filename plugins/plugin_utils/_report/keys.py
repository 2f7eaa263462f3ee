# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an account report says of the API keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from .text import moment_or_none


def key_facts(api_keys: Sequence[Mapping[str, Any]], now: datetime, stale_days: int) -> dict[str, Any]:
    """The keys by name, and how many of them were never used, are stale, or share their name."""
    names = Counter(key.get("name") for key in api_keys)
    keys = [_key(key, now, stale_days, names[key.get("name")] > 1) for key in api_keys]
    return {
        "total": len(keys),
        "never_used": sum(key["never_used"] for key in keys),
        "stale": sum(key["stale"] for key in keys),
        "duplicate_names": sum(key["duplicate_name"] for key in keys),
        "list": sorted(keys, key=lambda key: (str(key["name"]).casefold(), str(key["created_at"]), str(key["id"]))),
    }


def _key(key: Mapping[str, Any], now: datetime, stale_days: int, is_duplicate: bool) -> dict[str, Any]:
    created_at, last_used_at = moment_or_none(key.get("created_at")), moment_or_none(key.get("last_used_at"))
    unused_days = _whole_days(last_used_at, now)
    return {
        "id": key.get("id"),
        "name": key.get("name"),
        "created_at": key.get("created_at"),
        "age_days": _whole_days(created_at, now),
        # The day is enough, and the report's own requests, which use a key, do not change it from one minute to the next.
        "last_used_on": last_used_at.date().isoformat() if last_used_at else None,
        "unused_days": unused_days,
        "last_used_from_addr": key.get("last_used_from_addr") or None,
        "never_used": last_used_at is None,
        "stale": unused_days is not None and unused_days >= stale_days,
        "duplicate_name": is_duplicate,
    }


def _whole_days(since: datetime | None, now: datetime) -> int | None:
    return None if since is None else max(0, (now - since).days)
