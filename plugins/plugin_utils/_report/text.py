# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How an account report writes numbers, durations and moments."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

from ...module_utils._timestamps import parse_timestamp

NOTHING = "–"
NARROW_SPACE = "\N{NARROW NO-BREAK SPACE}"
# Not by strftime, whose names follow the locale of the machine.
MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)


def moment_or_none(text: Any) -> datetime | None:
    """The moment in a timestamp; None where there is none that can be read."""
    try:
        return parse_timestamp(text)
    except (AttributeError, TypeError, ValueError):
        return None


def number_text(number: Any) -> str:
    """C(1234567) as C(1 234 567)."""
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        return NOTHING if number is None else str(number)
    return f"{number:,}".replace(",", NARROW_SPACE)


def counted(number: int, one: str, several: str | None = None) -> str:
    """C(1 key), C(2 keys)."""
    return f"{number_text(number)} {one if number == 1 else several or one + 's'}"


def duration_text(seconds: float | None) -> str:
    """Two units at most: C(0.48 s), C(42.3 s), C(12 min 5 s), C(3 h 20 min), C(2 d 4 h)."""
    if seconds is None:
        return NOTHING
    if seconds < 9.995:
        return f"{seconds:.2f} s"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return f"{number_text(whole // 86400)} d {whole % 86400 // 3600} h"


def days_text(days: int | None) -> str:
    """An age, coarser the older it is."""
    if days is None:
        return NOTHING
    if days < 1:
        return "< 1 day"
    if days < 90:
        return counted(days, "day")
    if days < 730:
        return f"{days // 30} months"
    return f"{days // 365} years"


def ago_text(days: int | None) -> str:
    """How long ago something was."""
    if days is None:
        return "never"
    return f"{days_text(days)} ago"


def day_text(day: date) -> str:
    """C(21 Nov)."""
    return f"{day.day} {MONTHS[day.month - 1][:3]}"


def moment_text(moment: datetime | None) -> str:
    """C(21 Nov 2026, 11:04)."""
    return NOTHING if moment is None else f"{day_text(moment)} {moment.year}, {moment:%H:%M}"


def second_text(moment: datetime) -> str:
    """C(21 Nov 11:04:05), where the year is clear."""
    return f"{day_text(moment)} {moment:%H:%M:%S}"


def shortened(text: Any, most: int) -> str:
    """The text on one line, cut off after so many characters."""
    line = " ".join(str(text).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
