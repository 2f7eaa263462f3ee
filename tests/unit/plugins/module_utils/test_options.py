# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The checks of option values."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any, Callable

import pytest

from ansible_collections.clouddb.control.plugins.module_utils import _options as options
from ansible_collections.clouddb.control.plugins.module_utils._errors import InvalidOption


def refused(check: Callable[..., Any], value: Any, *limits: Any, **more_limits: Any) -> str:
    with pytest.raises(InvalidOption) as error:
        check({"it": value}, "it", *limits, **more_limits)
    assert error.value.details == {"option": "it"}
    return str(error.value)


@pytest.mark.parametrize("value", [None, 1, 2, 10**400])
def test_integer_accepts_values_from_the_minimum(value: int | None) -> None:
    assert options.integer({"it": value}, "it", 1) == value


def test_missing_option_is_none() -> None:
    assert options.integer({}, "it", 1) is None
    assert options.not_blank({}, "it") is None
    assert options.identifier({}, "it") is None
    assert options.moment({}, "it") is None


@pytest.mark.parametrize("value", [0, -1])
def test_integer_refuses_values_below_the_minimum(value: int) -> None:
    assert refused(options.integer, value, 1) == f"it: must be 1 or more, not {value}."


def test_integer_refuses_values_out_of_range() -> None:
    assert options.integer({"it": 32}, "it", 1, 32) == 32
    assert refused(options.integer, 33, 1, 32) == "it: must be from 1 to 32, not 33."
    assert refused(options.integer, 0, 1, 32) == "it: must be from 1 to 32, not 0."


@pytest.mark.parametrize("value", [0, 0.0, 0.25, 300, 31_536_000])
def test_seconds_accepts_up_to_a_year(value: float) -> None:
    assert options.seconds({"it": value}, "it") == value


@pytest.mark.parametrize("value", [-0.1, -1, float("nan"), float("inf"), float("-inf"), 31_536_000.1])
def test_seconds_refuses_negative_and_infinite_values(value: float) -> None:
    assert refused(options.seconds, value) == f"it: must be a number of seconds from 0 to 31536000, not {value}."


def test_seconds_refuses_zero_unless_allowed() -> None:
    assert (
        refused(options.seconds, 0.0, zero=False)
        == "it: must be a number of seconds greater than 0 and up to 31536000, not 0.0."
    )
    assert options.seconds({"it": 0.001}, "it", zero=False) == 0.001


@pytest.mark.parametrize(
    "value, number",
    [
        (0, 0),
        (0.25, 0.25),
        (300, 300),
        ("300", 300),
        (" 300 ", 300),
        ("90s", 90),
        ("5m", 300),
        ("24h", 86400),
        ("365d", 31_536_000),
    ],
)
def test_duration_accepts_seconds_and_ages(value: Any, number: float) -> None:
    assert options.duration({"it": value}, "it") == number


@pytest.mark.parametrize(
    "value",
    [
        -0.1,
        -1,
        "-1",
        float("nan"),
        "nan",
        "inf",
        31_536_000.1,
        "366d",
        "9" * 400,
        "soon",
        "",
        "5 years",
        True,
        None,
        [300],
        {},
    ],
)
def test_duration_refuses_anything_else_and_shows_both_forms(value: Any) -> None:
    expected = f"it: must be a number of seconds from 0 to 31536000, or a duration such as 90s, 5m, 24h, 7d or 2w, not '{value}'."
    assert refused(options.duration, value) == expected


def test_duration_refuses_zero_unless_allowed() -> None:
    assert "greater than 0 and up to 31536000" in refused(options.duration, "0s", zero=False)
    assert options.duration({"it": "0.001"}, "it", zero=False) == 0.001


def test_duration_has_a_maximum() -> None:
    assert options.duration({"it": "36500d"}, "it", largest=options.MAX_AGE) == options.MAX_AGE
    assert "from 0 to 3153600000, or" in refused(options.duration, "36501d", largest=options.MAX_AGE)


@pytest.mark.parametrize("value", ["a", " a ", ["a", "b"], []])
def test_not_blank_accepts_text_and_lists(value: Any) -> None:
    assert options.not_blank({"it": value}, "it") == value


@pytest.mark.parametrize("value", ["", " ", "\t\n", ["a", ""], [" "]])
@pytest.mark.parametrize("check", [options.not_blank, options.identifier])
def test_not_blank_refuses_blank_text(check: Callable[..., Any], value: Any) -> None:
    assert "must not be empty" in refused(check, value)


@pytest.mark.parametrize("value", ["a", ["a", "wispy-lake-12345678"], ["br_1.5"], []])
def test_identifier_accepts_ids(value: Any) -> None:
    assert options.identifier({"it": value}, "it") == value


@pytest.mark.parametrize(
    "value, quoted",
    [("..", "'..'"), (["a", "b/c"], "'b/c'"), (" a", "' a'"), ("\x1b[31m", r"'\x1b[31m'"), ("\ud800", r"'\ud800'")],
)
def test_identifier_refuses_other_text(value: Any, quoted: str) -> None:
    assert refused(options.identifier, value) == (
        f"it: {quoted} is not an id. Ids consist of letters, digits, '-', '_' and '.'."
    )


def test_moment_accepts_timestamps_and_ages() -> None:
    assert options.moment({"it": "2026-11-21T08:00:00Z"}, "it") == datetime(2026, 11, 21, 8, tzinfo=timezone.utc)
    assert options.moment({"it": "24h"}, "it") == timedelta(days=1)
    assert options.moment({"it": 5400}, "it") == options.moment({"it": "5400"}, "it") == timedelta(minutes=90)
    assert options.moment({"it": "500000w"}, "it") == timedelta(weeks=500_000)


def test_only_an_age_without_a_unit_has_a_maximum() -> None:
    for age in (options.MAX_BARE_AGE, f"{options.MAX_BARE_AGE}s"):
        assert options.moment({"it": age}, "it") == timedelta(seconds=options.MAX_BARE_AGE)
    for age, expected in {
        "10000000s": {"seconds": 10**7},
        "200000m": {"minutes": 200_000},
        "116d": {"days": 116},
    }.items():
        assert options.moment({"it": age}, "it") == timedelta(**expected)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "yesterday",
        "h",
        "-1h",
        "-24",
        "20261121",
        "True",
        "1y",
        "24 hours",
        "2026-13-01",
        "2026-11-21T25:00:00Z",
        "1763712000",
        "9" * 400 + "d",
    ],
)
def test_moment_refuses_other_text_and_shows_both_formats(value: str) -> None:
    assert refused(options.moment, value) == (
        "it: must be an ISO 8601 timestamp such as 2026-11-21T08:00:00Z, an age such as 90s, 5m, 24h, 7d or 2w, "
        f"or an age in seconds up to 9999999, not '{value}'."
    )


def test_moment_accepts_an_age_of_zero() -> None:
    assert options.moment({"it": "0s"}, "it") == timedelta(0)


KNOWN = {"failed", "finished", "running"}


@pytest.mark.parametrize("values", [None, [], ["failed"], ["running", "finished"]])
def test_known_values_cause_no_warning(values: list[str] | None) -> None:
    assert options.unknown_values({"it": values}, "it", KNOWN) == []


@pytest.mark.parametrize(
    "value, rest",
    [
        ("faild", "Did you mean failed? Known values are failed, finished, running."),
        ("FINISHED", "Did you mean finished? Known values are failed, finished, running."),
        ("fialed", "Did you mean failed? Known values are failed, finished, running."),
        ("unfinished", "Known values are failed, finished, running."),
        ("dreaming", "Known values are failed, finished, running."),
    ],
)
def test_unknown_value_causes_a_warning_with_the_known_ones_and_the_misspelt_one(value: str, rest: str) -> None:
    assert options.unknown_values({"it": ["running", value]}, "it", KNOWN) == [
        f"it: '{value}' is unknown to this collection, and may never occur. {rest}"
    ]


def test_all_known_values_that_an_unknown_one_may_mean_are_named() -> None:
    [warning] = options.unknown_values({"it": ["fal"]}, "it", ["fall", "fail", "done"])
    assert warning.endswith(" Did you mean fail or fall? Known values are done, fail, fall.")


def test_plain_numbers_in_upper_case() -> None:
    for value in ("1E5", "2.5e-3", "NaN", "INF"):
        options.plain_number("it", value, "float")


@pytest.mark.parametrize("value", ["\u00a01", "\u0661"])
@pytest.mark.parametrize("type_name", ["int", "float"])
def test_numbers_with_characters_of_unicode_are_not_plain(value: str, type_name: str) -> None:
    with pytest.raises(InvalidOption, match="^it: must be an? "):
        options.plain_number("it", value, type_name)


def test_similar_texts_come_first_whatever_their_case() -> None:
    assert options.similar("SHOPS", ["blog", "shop-eu", "Shop", "shop"]) == ["Shop", "shop", "shop-eu"]
    assert options.similar("x", ["blog"]) == []
    assert len(options.similar("shop", [f"shop{number}" for number in range(9)])) == options.MAX_SIMILAR


def test_too_many_texts_are_not_compared() -> None:
    candidates = ["shop", *map(str, range(options.MAX_COMPARED))]
    assert options.similar("shops", candidates[:-1]) == ["shop"]
    assert options.similar("shops", candidates) == []
