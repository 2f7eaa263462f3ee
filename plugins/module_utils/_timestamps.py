# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Points in time: the service's ISO 8601 timestamps, and the options that take timestamps, ages and durations. Keeps P3 and P11."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

from ._errors import InvalidOption
from ._options import MAX_SECONDS

# For ages that are only subtracted from the current time: a longer one would lead to a time before the first.
MAX_AGE = 100 * MAX_SECONDS
AGE_EXAMPLES = "90s, 5m, 24h, 7d or 2w"
# As a bare number, these are more likely a date such as 20261121, or seconds since 1970, than an age.
MAX_BARE_AGE = 9_999_999
# The service began later. Times up to then stand for none: the year 1 in Go, 1970 in Unix, and 1980 in FAT.
BEGINNING = datetime(2000, 1, 1, tzinfo=timezone.utc)

_TIMESTAMP = r"(\d{4}-\d\d-\d\d)(?:[Tt ](\d\d:\d\d)(?::(\d\d)(?:[.,](\d+))?)?)?\s*([Zz]|[+-]\d\d(?::?\d\d)?)?"
_OFFSET = r":\d\d\S*\s*([Zz]|[+-]\d\d(:?\d\d)?)$"
_AGE = r"(\d+(?:\.\d+)?)\s*([smhdw])"
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def parse_timestamp(text: str) -> datetime:
    """An ISO 8601 date or timestamp as an aware UTC datetime; one without an offset is taken as UTC.

    Digits beyond microseconds are dropped. Raises ValueError.
    """
    match = re.fullmatch(_TIMESTAMP, text.strip(), re.ASCII)
    if match is None:
        raise ValueError(f"{text!r} is not an ISO 8601 timestamp")
    day, time_of_day, seconds, fraction, offset = match.groups()
    microseconds = (fraction or "0")[:6].ljust(6, "0")
    digits = re.sub("[Zz:]", "", offset or "") or "+00"
    normalized = f"{day}T{time_of_day or '00:00'}:{seconds or '00'}.{microseconds}{digits[:3]}:{digits[3:] or '00'}"
    try:
        return datetime.fromisoformat(normalized).astimezone(timezone.utc)
    except (OverflowError, ValueError) as error:
        raise ValueError(f"{text!r} is out of range") from error


def timestamp_of(item: Mapping[str, Any], field: str) -> datetime | None:
    """The timestamp in this field; None if it is missing, null, empty or malformed, or stands for no time."""
    try:
        found = parse_timestamp(item[field])
    except (AttributeError, KeyError, ValueError):
        return None
    return found if found > BEGINNING else None


def is_never(item: Mapping[str, Any], field: str) -> bool:
    """Whether the field says that something has not happened: with null, an empty text or a time that stands for none.

    A field that is missing or malformed says nothing.
    """
    try:
        return item[field] in (None, "") or parse_timestamp(item[field]) <= BEGINNING
    except (AttributeError, KeyError, ValueError):
        return False


def seconds_between(item: Mapping[str, Any], start: str, end: str) -> float | None:
    """The seconds between two timestamps of the item, 0 if the C(end) is earlier; None unless it has both."""
    started_at, ended_at = timestamp_of(item, start), timestamp_of(item, end)
    return max(0.0, (ended_at - started_at).total_seconds()) if started_at and ended_at else None


def parse_age(value: object) -> timedelta | None:
    """An age: a number of seconds, as a number or a text, or a text such as C(90s), C(24h) or C(7d) (units s, m, h, d, w).

    None for anything else, and for ages that are not finite or longer than time itself.
    """
    match = re.fullmatch(_AGE, value.strip(), re.ASCII) if isinstance(value, str) else None
    try:
        if match:
            return timedelta(**{_UNITS[match.group(2)]: float(match.group(1))})
        text = str(value)
        # Python takes underscores between digits, and the digits of other scripts.
        if text.isascii() and "_" not in text:
            return timedelta(seconds=float(text))
    except (ValueError, OverflowError):
        pass
    return None


def duration(params: Mapping[str, Any], option: str, zero: bool = True, largest: int = MAX_SECONDS) -> float:
    """The option's seconds, given as a number, as its text, or with a unit such as C(5m); 0 only where C(zero) is set."""
    age = parse_age(params[option])
    value = -1.0 if age is None else age.total_seconds()
    if not 0 <= value <= largest or (value == 0 and not zero):
        raise InvalidOption(
            option,
            f"must be a number of seconds {'from 0' if zero else 'greater than 0 and up'} to {largest}, "
            f"or a duration such as {AGE_EXAMPLES}, not '{params[option]}'",
        )
    return value


def whole_seconds(params: Mapping[str, Any], option: str, *others: int) -> int | None:
    """The option's whole seconds, as of duration(), or one of the numbers in C(others); None if it is not set."""
    value = params.get(option)
    if value is None or str(value).strip() in map(str, others):
        return None if value is None else int(value)
    seconds = duration(params, option)
    if seconds % 1:
        # 0 means something else, such as no history.
        raise InvalidOption(option, f"must be a whole number of seconds, not '{value}'")
    return int(seconds)


def moment(params: Mapping[str, Any], option: str, needs_offset: bool = False) -> datetime | timedelta | None:
    """The option's ISO 8601 timestamp or age (text or a number of seconds), which may be None.

    With C(needs_offset), a timestamp without one is refused: who has written it may have meant another time than UTC.
    """
    if params.get(option) is None:
        return None
    text = str(params[option])
    try:
        time = parse_timestamp(text)
        if needs_offset and not re.search(_OFFSET, text.strip()):
            example = f"{time:%Y-%m-%dT%H:%M:%S}"
            problem = f"'{text}' has no offset from UTC. Write '{example}Z' for UTC, or for example '{example}+01:00', in quotes"
            raise InvalidOption(option, problem)
        return time
    except ValueError:
        age = parse_age(text)
    is_bare = text.strip()[-1:] not in ("s", "m", "h", "d", "w")
    if age is None or age.total_seconds() < 0 or (is_bare and age.total_seconds() > MAX_BARE_AGE):
        raise InvalidOption(
            option,
            f"must be an ISO 8601 timestamp such as 2026-11-21T08:00:00Z, a duration such as {AGE_EXAMPLES}, "
            f"or a number of seconds up to {MAX_BARE_AGE}, not '{text}'",
        )
    return age
