# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The checks of option values, the timestamps of the service, and ages in options."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from typing import Any, Callable

import pytest

from ansible_collections.clouddb.control.plugins.module_utils import _options as options
from ansible_collections.clouddb.control.plugins.module_utils import _timestamps as timestamps
from ansible_collections.clouddb.control.plugins.module_utils._errors import InvalidOption
from ansible_collections.clouddb.control.plugins.module_utils._lists import MAX_COMPARED, no_such, similar
from ansible_collections.clouddb.control.plugins.module_utils._operations.status import selected_statuses

UTC = timezone.utc
MIDNIGHT, AT_EIGHT = datetime(2026, 11, 21, tzinfo=UTC), datetime(2026, 11, 21, 8, tzinfo=UTC)


def refused(check: Callable[..., Any], value: Any, *limits: Any, **more_limits: Any) -> str:
    with pytest.raises(InvalidOption) as error:
        check({"it": value}, "it", *limits, **more_limits)
    assert error.value.details == {"option": "it"}
    return str(error.value)


def test_integer_is_within_limits() -> None:
    assert options.integer({"it": 10**400}, "it", 1) == 10**400
    assert options.integer({"it": 32}, "it", 1, 32) == 32
    assert refused(options.integer, 0, 1) == "it: must be 1 or more, not 0."
    assert refused(options.integer, 33, 1, 32) == "it: must be from 1 to 32, not 33."
    assert refused(options.integer, 0, 1, 32) and refused(options.integer, True, 1)


def test_a_value_that_is_valid_is_returned() -> None:
    assert options.integer({}, "it", 1) is None
    assert options.not_blank({"it": ["a"]}, "it") == ["a"]
    options.require_number("it", 10**400)
    for value, problem in ((True, "a number, not the boolean true"), (float("inf"), "a finite number, not inf")):
        with pytest.raises(InvalidOption, match=f"^it: must be {problem}.$"):
            options.require_number("it", value)


def test_a_duration_of_zero_is_refused_unless_allowed() -> None:
    assert "greater than 0" in refused(timestamps.duration, 0.0, zero=False)
    assert timestamps.duration({"it": "365d"}, "it") == 31_536_000
    assert timestamps.duration({"it": 0.001}, "it", zero=False) == 0.001


@pytest.mark.parametrize("value", [-1, "-1", "nan", "366d", "9" * 400, "soon", "", True, None, [300]])
def test_duration_refuses_anything_else_and_shows_both_forms(value: Any) -> None:
    assert refused(timestamps.duration, value) == (
        "it: must be a number of seconds from 0 to 31536000, or a duration such as 90s, 5m, 24h, 7d or 2w, "
        f"not '{value}'."
    )


def test_duration_has_a_maximum() -> None:
    assert timestamps.duration({"it": "36500d"}, "it", largest=timestamps.MAX_AGE) == timestamps.MAX_AGE
    assert refused(timestamps.duration, "36501d", largest=timestamps.MAX_AGE)


def test_moment_accepts_timestamps_and_ages() -> None:
    times = {"2026-11-21T08:00:00Z": AT_EIGHT, "2026-11-21": MIDNIGHT}
    ages = {"24h": timedelta(days=1), "500000w": timedelta(weeks=500_000), "0s": timedelta(0)}
    seconds = {value: timedelta(seconds=int(value)) for value in (5400, "5400", 9_999_999)}
    expected: dict[Any, Any] = {**times, **ages, **seconds}
    assert {value: timestamps.moment({"it": value}, "it") for value in expected} == expected
    # Only an age without a unit has a maximum.
    assert all(timestamps.moment({"it": f"10000000{unit}"}, "it") for unit in "smhdw")
    assert refused(timestamps.moment, 10_000_000)


@pytest.mark.parametrize("offset", ["Z", "z", "+01", "+0100", "-01:00", " Z"])
def test_a_moment_may_need_an_offset(offset: str) -> None:
    for time in ("2026-11-21T08:00", "2026-11-21 08:00:00.5"):
        assert timestamps.moment({"it": time + offset}, "it", needs_offset=True)
        assert "has no offset from UTC" in refused(timestamps.moment, time, needs_offset=True)
    assert "has no offset from UTC" in refused(timestamps.moment, "2026-11-21", needs_offset=True)


def test_whole_seconds() -> None:
    expected = {None: None, "-1": -1, -1: -1, "1.5m": 90, 7: 7, 0: 0}
    assert {value: timestamps.whole_seconds({"it": value}, "it", -1) for value in expected} == expected
    assert timestamps.whole_seconds({}, "it") is None
    assert "must be a whole number of seconds" in refused(timestamps.whole_seconds, "1.5")
    assert refused(timestamps.whole_seconds, True) and refused(timestamps.whole_seconds, -1)


@pytest.mark.parametrize("value", ["", "yesterday", "-1h", "-5", "20261121", "2026-13-01", "9" * 400 + "d"])
def test_moment_refuses_other_text_and_shows_both_formats(value: str) -> None:
    message = refused(timestamps.moment, value)
    assert "2026-11-21T08:00:00Z" in message
    assert timestamps.AGE_EXAMPLES in message


@pytest.mark.parametrize("text", ["faild", "Failed", "canceled", "finshed", "runing", "unsucessful"])
def test_a_misspelled_status_is_an_error(text: str) -> None:
    right = {"canceled": "cancelled", "finshed": "finished", "runing": "running", "unsucessful": "unsuccessful"}
    assert refused(selected_statuses, [text]).endswith(f"Did you mean {right.get(text, 'failed')}?")


@pytest.mark.parametrize("value, text", [("1.10", "1.10"), (42, "42"), ("", "")])
def test_a_name_is_a_text_or_the_digits_of_an_integer(value: object, text: str) -> None:
    assert options.as_text("it", value) == text


@pytest.mark.parametrize(
    "value, shown",
    [
        (1.10, "the number 1.1. Quote it."),
        (True, "the boolean true. Quote it."),
        (date(2026, 1, 2), "the date 2026-01-02. Quote it."),
        *((value, "must be text.") for value in (["a"], None)),
    ],
)
def test_anything_else_is_no_name(value: object, shown: str) -> None:
    with pytest.raises(InvalidOption) as refusal:
        options.as_text("filters", value, "name")
    assert str(refusal.value).startswith("filters: name must be text")
    assert str(refusal.value).endswith(shown)


def test_similar_texts_come_first_whatever_their_case() -> None:
    assert similar("SHOPS", ["blog", "shop-eu", "shop"]) == ["shop", "shop-eu"]
    assert similar("shp", ["SHOP", "shop"]) == ["SHOP"]
    assert similar("x", ["blog"]) == []
    assert no_such("option", "shop", ["shop1", "shop2", "shop3"]).count(" or ") == 1
    assert similar("shops", ["shop", *map(str, range(MAX_COMPARED))]) == []


# Timestamps and ages


@pytest.mark.parametrize(
    "text, moment",
    [
        *((text, AT_EIGHT) for text in ("2026-11-21T08:00:00Z", "2026-11-21 08:00:00", "  2026-11-21T08:00:00Z\n")),
        ("2026-11-21", MIDNIGHT),
        ("2026-11-21T08:00:00+02:00", MIDNIGHT.replace(hour=6)),
        *((f"2026-11-21T08:00:00{fraction}Z", AT_EIGHT.replace(microsecond=500_000)) for fraction in (".5", ",5")),
        ("2026-11-21T08:00:00.999999999+01:00", MIDNIGHT.replace(hour=7, microsecond=999_999)),
    ],
)
def test_parse_timestamp_returns_utc(text: str, moment: datetime) -> None:
    read = timestamps.parse_timestamp(text)
    assert read == moment
    assert read.tzinfo is UTC


@pytest.mark.parametrize(
    "text",
    [
        *("", "now", "2026-13-01T00:00:00Z", "9999-12-31T23:59:60Z", "2026-11-21T08:00:00+25:00"),
        *("2026-11-21T08:00:00Z and more", "9999-12-31T23:59:59-01:00", "\u0662026-11-21T08:00:00Z"),
    ],
)
def test_parse_timestamp_refuses_other_text(text: str) -> None:
    with pytest.raises(ValueError):
        timestamps.parse_timestamp(text)


@pytest.mark.parametrize("item", [{}, {"at": None}, {"at": ""}, {"at": 5}, {"at": []}, {"at": "yesterday"}])
def test_a_field_without_a_timestamp(item: dict[str, object]) -> None:
    assert timestamps.timestamp_of(item, "at") is None
    assert timestamps.is_never(item, "at") == (item.get("at", 5) in (None, ""))


def test_times_before_the_service_began_stand_for_none() -> None:
    for never in ("0001-01-01T00:00:00Z", "2000-01-01T00:00:00Z"):
        assert timestamps.timestamp_of({"at": never}, "at") is None
        assert timestamps.is_never({"at": never}, "at")
    first = {"at": "2000-01-01T00:00:01Z"}
    assert timestamps.timestamp_of(first, "at") == datetime(2000, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert timestamps.is_never(first, "at") is False


def test_seconds_between_two_fields() -> None:
    item = {"start": "2026-11-21T08:00:00Z", "end": "2026-11-21T08:01:00Z"}
    assert timestamps.seconds_between(item, "start", "end") == 60
    assert timestamps.seconds_between(item, "end", "start") == 0
    assert timestamps.seconds_between(item, "start", "x") is timestamps.seconds_between(item, "x", "end") is None


@pytest.mark.parametrize(
    "text, seconds",
    [
        *(("90s", 90), ("1.5h", 5400), ("5m", 300), ("7d", 7 * 86400), ("2w", 14 * 86400)),
        *((" 0.25 ", 0.25), ("-7", -7), (300, 300), (0.25, 0.25)),
        *(
            (text, None)
            for text in ("", "d", "-7d", "+7d", "7D", "7d12h", ".5h", "nan s", "2026-11-21", "\u0667d", "\u0667")
        ),
        *((text, None) for text in ("0x10", "nan", "inf", "9" * 400, "9" * 400 + "s", "1000000000d", "1_0", "1_0.5")),
        *((value, None) for value in (float("nan"), float("inf"), 10**400, True, None, [5], {}, b"5")),
    ],
)
def test_an_age_is_seconds_or_has_one_unit(text: object, seconds: float | None) -> None:
    assert timestamps.parse_age(text) == (None if seconds is None else timedelta(seconds=seconds))


@pytest.mark.parametrize("by_name, advice", [({}, ""), ({"project": None}, " For a name, set project.")])
def test_only_an_option_that_there_is_is_advised_for_a_name(by_name: dict[str, None], advice: str) -> None:
    with pytest.raises(InvalidOption) as refusal:
        options.identifier({**by_name, "project_id": "my shop"}, "project_id")
    assert str(refusal.value).endswith(f"'-', '_' and '.'.{advice}")


@pytest.mark.parametrize("missing, quoted", [(["naem"], "'naem'"), (["a b", "x\n"], r"'a b' or 'x\n'")])
def test_fields_that_no_item_has_are_a_warning(missing: list[str], quoted: str) -> None:
    fields = options.Fields(["id", *missing, "error"], optional=["error"])
    assert fields.warnings() == []  # of no items
    fields.reduce([{"id": "a", "name": None, "tags": [{"id": 1}]}])
    fields.reduce([{"id": "b", "size": 3}])
    assert fields.warnings() == [f"fields: no item has {quoted}. The fields are id, name, size, tags."]
