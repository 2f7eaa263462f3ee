# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Formats numbers, durations and times for an account report, and loads its templates. Keeps P8."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date, datetime
from functools import cache
from pathlib import Path
from typing import Any, Callable

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from ...module_utils._timestamps import parse_timestamp
from ...module_utils._untrusted import MAX_INTEGER, displayable

TEMPLATES = Path(__file__).parents[3] / "roles" / "account_report" / "templates"
NO_VALUE = "–"
# strftime would use the locale of the machine.
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@cache
def template_environment(finalize: Callable[[Any], Any], autoescape: bool = False) -> Environment:
    """The environment of the role's templates, which compiles each once; C(finalize) returns what they write for a value."""
    return Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=autoescape,
        finalize=finalize,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def scalar(item: Mapping[str, Any], field: str) -> str | int | float | bool | None:
    """The field's value; one that the API does not describe, such as an array, as a text."""
    value = item.get(field)
    is_number = isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
    return value if value is None or is_number or isinstance(value, str) else displayable(value)


def number_or_zero(item: Mapping[str, Any], field: str) -> int | float:
    """The field's number, at most MAX_INTEGER, so that sums are finite; 0 if it is missing or no number."""
    value = scalar(item, field)
    return max(-MAX_INTEGER, min(MAX_INTEGER, value)) if isinstance(value, (int, float)) else 0


def number_text(number: Any, unit: str = "") -> Any:
    """C(1234567) as C(1,234,567), followed by its unit; anything but a number unchanged."""
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        return number
    return f"{number:,} {unit}".rstrip()


def count_text(number: int, singular: str) -> str:
    """C(1 key), C(2 keys)."""
    return f"{number_text(number)} {singular if number == 1 else singular + 's'}"


def duration_text(seconds: float | None) -> str:
    """A duration in at most two units: C(0.48 s), C(42.3 s), C(12 min 5 s), C(3 h 20 min), C(2 d 4 h)."""
    if seconds is None:
        return NO_VALUE
    if seconds < 59.95:
        return f"{seconds:.2f} s" if seconds < 9.995 else f"{seconds:.1f} s"
    total = round(seconds)
    if total < 3600:
        return f"{total // 60} min {total % 60} s"
    if total < 86400:
        return f"{total // 3600} h {total % 3600 // 60} min"
    return f"{total // 86400:,} d {total % 86400 // 3600} h"


def age_text(days: int | None) -> str:
    """An age in days, months or years."""
    if days is None:
        return NO_VALUE
    if days < 1:
        return "< 1 day"
    if days < 90:
        return count_text(days, "day")
    return f"{days // 30} months" if days < 730 else f"{days // 365} years"


def day_text(day: date) -> str:
    """C(21 Nov)."""
    return f"{day.day} {MONTHS[day.month - 1]}"


def datetime_text(moment: datetime | None) -> str:
    """C(21 Nov 2026, 11:04)."""
    return NO_VALUE if moment is None else f"{day_text(moment)} {moment.year}, {moment:%H:%M}"


def time_text(timestamp: str) -> str:
    """C(21 Nov 11:04:05), without the year."""
    moment = parse_timestamp(timestamp)
    return f"{day_text(moment)} {moment:%H:%M:%S}"


def truncated(text: Any, max_length: int) -> str:
    """The text on one line, displayable, and truncated to C(max_length) characters."""
    return displayable(" ".join(str(text).split()), max_length)
