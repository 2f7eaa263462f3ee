# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Points in time: the service's ISO 8601 timestamps, and the ages that options take. Keeps P3."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

# Earlier than all timestamps of the service.
BEGINNING = datetime.min.replace(tzinfo=timezone.utc)

_TIMESTAMP = r"(\d{4}-\d\d-\d\d)(?:[Tt ](\d\d:\d\d)(?::(\d\d)(?:[.,](\d+))?)?)?\s*([Zz]|[+-]\d\d(?::?\d\d)?)?"
_AGE = r"(\d+(?:\.\d+)?)\s*([smhdw])"
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def parse_timestamp(text: str) -> datetime:
    """An ISO 8601 date or timestamp as an aware UTC datetime; one without an offset is taken as UTC.

    Digits beyond microseconds are dropped. A leap second is the second after it. Raises ValueError.
    """
    match = re.fullmatch(_TIMESTAMP, text.strip(), re.ASCII)
    if match is None:
        raise ValueError(f"{text!r} is not an ISO 8601 timestamp")
    day, time_of_day, seconds, fraction, offset = match.groups()
    microseconds = (fraction or "0")[:6].ljust(6, "0")
    digits = re.sub("[Zz:]", "", offset or "") or "+00"
    # datetime has no second 60.
    second, leap = ("59", 1) if seconds == "60" else (seconds or "00", 0)
    normalized = f"{day}T{time_of_day or '00:00'}:{second}.{microseconds}{digits[:3]}:{digits[3:] or '00'}"
    try:
        return datetime.fromisoformat(normalized).astimezone(timezone.utc) + timedelta(seconds=leap)
    except (OverflowError, ValueError) as error:
        raise ValueError(f"{text!r} is out of range") from error


def timestamp_of(item: Mapping[str, Any], field: str) -> datetime | None:
    """The timestamp in this field; None if it is missing, null, empty or malformed."""
    try:
        return parse_timestamp(item[field])
    except (AttributeError, KeyError, ValueError):
        return None


def parse_age(value: object) -> timedelta | None:
    """An age: a number of seconds, as a number or a text, or a text such as C(90s), C(24h) or C(7d) (units s, m, h, d, w).

    None for anything else, and for ages that are not finite or longer than time itself.
    """
    match = re.fullmatch(_AGE, value.strip(), re.ASCII) if isinstance(value, str) else None
    try:
        if match:
            return timedelta(**{_UNITS[match.group(2)]: float(match.group(1))})
        # Python takes a boolean for a number, and underscores between digits.
        is_number = isinstance(value, (str, int, float)) and not isinstance(value, bool)
        if is_number and str(value).isascii() and "_" not in str(value):
            return timedelta(seconds=float(str(value)))
    except (ValueError, OverflowError):
        pass
    return None
