# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Numbers, durations and times as texts, at the limits between their units."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.plugin_utils._report import text


@pytest.mark.parametrize("month, name", [(1, "Jan"), (12, "Dec")])
def test_texts_of_times(month: int, name: str) -> None:
    moment = datetime(2026, month, 3, 4, 5, 6)
    assert text.day_text(moment) == f"3 {name}"
    assert text.datetime_text(moment) == f"3 {name} 2026, 04:05"
    assert text.time_text(f"{moment}Z") == f"3 {name} 04:05:06"


@pytest.mark.parametrize(
    "seconds, expected",
    [
        (9.9949, "9.99 s"),
        (9.995, "10.0 s"),
        (59.949, "59.9 s"),
        (59.95, "1 min 0 s"),
        (3599, "59 min 59 s"),
        (3600, "1 h 0 min"),
        (86399, "23 h 59 min"),
        (86400, "1 d 0 h"),
        (86400 * 1234 + 3600 * 23 + 3599, "1,234 d 23 h"),
    ],
)
def test_durations(seconds: float, expected: str) -> None:
    assert text.duration_text(seconds) == expected


@pytest.mark.parametrize(
    "days, expected", [(0, "< 1 day"), (89, "89 days"), (90, "3 months"), (729, "24 months"), (730, "2 years")]
)
def test_ages(days: int, expected: str) -> None:
    assert text.age_text(days) == expected


def test_what_is_missing() -> None:
    assert (text.age_text(None), text.duration_text(None)) == ("–", "–")
    assert text.datetime_text(None) == "–"


@pytest.mark.parametrize(
    "number, expected", [(True, True), (1234567, "1,234,567 s"), (1234.5, "1,234.5 s"), ("x", "x"), (None, None)]
)
def test_numbers(number: Any, expected: Any) -> None:
    assert text.number_text(number, "s") == expected


@pytest.mark.parametrize("given, expected", [(" a\n b ", "a b"), (7, "7"), ("abcdef", "abcd…"), ("abcde", "abcde")])
def test_texts_on_one_line(given: Any, expected: str) -> None:
    assert text.truncated(given, 5) == expected
