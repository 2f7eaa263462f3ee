# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Timestamps of the service, and ages in options."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._timestamps import (
    parse_age,
    parse_timestamp,
    timestamp_of,
)

UTC = timezone.utc


@pytest.mark.parametrize(
    "text, moment",
    [
        ("2026-11-21T08:00:00Z", datetime(2026, 11, 21, 8, tzinfo=UTC)),
        ("2026-11-21 08:00:00", datetime(2026, 11, 21, 8, tzinfo=UTC)),
        ("2026-11-21", datetime(2026, 11, 21, tzinfo=UTC)),
        ("  2026-11-21T08:00:00Z\n", datetime(2026, 11, 21, 8, tzinfo=UTC)),
        ("2026-11-21T08:00:00+02:00", datetime(2026, 11, 21, 6, tzinfo=UTC)),
        ("2026-11-21T08:00:00.5Z", datetime(2026, 11, 21, 8, 0, 0, 500_000, tzinfo=UTC)),
        ("2026-11-21T08:00:00,5Z", datetime(2026, 11, 21, 8, 0, 0, 500_000, tzinfo=UTC)),
        ("2026-11-21T08:00:00.999999999+01:00", datetime(2026, 11, 21, 7, 0, 0, 999_999, tzinfo=UTC)),
    ],
)
def test_parse_timestamp_returns_utc(text: str, moment: datetime) -> None:
    read = parse_timestamp(text)
    assert read == moment
    assert read.tzinfo is timezone.utc


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2026-13-01T00:00:00Z",
        "2026-11-21T25:00:00Z",
        "9999-12-31T23:59:60Z",
        "2026-11-21T08:00:00+25:00",
        "2026-11-21T08:00:00Z and more",
        "9999-12-31T23:59:59-01:00",
        "\u0662026-11-21T08:00:00Z",
    ],
)
def test_parse_timestamp_refuses_other_text(text: str) -> None:
    with pytest.raises(ValueError):
        parse_timestamp(text)


@pytest.mark.parametrize("item", [{}, {"at": None}, {"at": ""}, {"at": 5}, {"at": []}, {"at": "yesterday"}])
def test_a_field_without_a_timestamp(item: dict[str, object]) -> None:
    assert timestamp_of(item, "at") is None


@pytest.mark.parametrize(
    "text, age",
    [
        ("90s", timedelta(seconds=90)),
        ("2w", timedelta(weeks=2)),
        ("1.5h", timedelta(minutes=90)),
        ("300", timedelta(minutes=5)),
        (" 0.25 ", timedelta(milliseconds=250)),
        ("-7", timedelta(seconds=-7)),
        (300, timedelta(minutes=5)),
        (0.25, timedelta(milliseconds=250)),
    ],
)
def test_parse_age_reads_all_units_and_seconds(text: object, age: timedelta) -> None:
    assert parse_age(text) == age


@pytest.mark.parametrize(
    "value",
    [
        *(
            "",
            "d",
            "-7d",
            "+7d",
            "7D",
            "7d12h",
            ".5h",
            "nan s",
            "2026-11-21",
            "\u0667d",
            "\u0667",
            "0x10",
        ),
        *("nan", "inf", float("nan"), float("inf"), 10**400, "9" * 400, "9" * 400 + "s", "1000000000d"),
        *(True, None, [5], {}, b"5", "1_0", "1_0.5"),
    ],
)
def test_parse_age_returns_none_for_anything_else(value: object) -> None:
    assert parse_age(value) is None
