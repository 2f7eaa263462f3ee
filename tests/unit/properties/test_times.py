# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Timestamps, ages and Retry-After headers: any text is either parsed correctly or refused with a clear error."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from email.utils import format_datetime

from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.clouddb.control.plugins.module_utils._errors import InvalidOption
from ansible_collections.clouddb.control.plugins.module_utils._http.transport import (
    MAX_RETRY_AFTER,
    retry_after_seconds,
)
from ansible_collections.clouddb.control.plugins.module_utils._options import moment
from ansible_collections.clouddb.control.plugins.module_utils._timestamps import parse_age, parse_timestamp
from ansible_collections.clouddb.control.tests.unit.support.scripted_client import scripted
from ansible_collections.clouddb.control.tests.unit.support.scripted_service import ScriptedService, reply

UNITS = {
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}
zones = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
moments = st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31), timezones=zones)
# Text that is almost a valid timestamp or age finds more errors than random text.
near_misses = st.text("0123456789-:.,TtZz+ smhdw", max_size=40)
any_text = (
    st.text()
    | near_misses
    | st.from_regex(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d*)?[Z+\-]\d*:?\d*")
    | st.from_regex(r"\d+(\.\d+)?\s*[smhdw]")
)


@given(
    moments,
    st.sampled_from("Tt "),
    st.sampled_from([".", ","]),
    st.text("0123456789", max_size=12),
    st.sampled_from(["", " ", "\n"]),
)
def test_all_notations_of_a_timestamp_are_equal(
    when: datetime, between: str, point: str, beyond: str, around: str
) -> None:
    """Digits beyond microseconds are ignored."""
    text = (
        when.strftime("%Y-%m-%d").zfill(10)
        + between
        + when.strftime("%H:%M:%S")
        + point
        + f"{when.microsecond:06}{beyond}"
    )
    for offset in (when.strftime("%z"), when.isoformat()[-6:]):
        read = parse_timestamp(f"{around}{text}{offset}{around}")
        assert read == when
        assert read.utcoffset() == timedelta(0)


@given(any_text)
def test_parse_timestamp_refuses_other_text(text: str) -> None:
    try:
        read = parse_timestamp(text)
    except ValueError:
        return
    assert read.utcoffset() == timedelta(0)
    assert text.strip().isascii()


@given(st.integers(0, 10**6), st.sampled_from(list(UNITS)), st.sampled_from(["", " "]))
def test_parse_age_multiplies_its_unit(number: int, unit: str, between: str) -> None:
    assert (
        parse_age(f"{number}{between}{unit}")
        == moment({"created_after": f" {number}{unit}"}, "created_after")
        == number * UNITS[unit]
    )


@given(any_text)
def test_moment_returns_a_value_or_names_the_option(text: str) -> None:
    try:
        read = moment({"created_after": text}, "created_after")
    except InvalidOption as error:
        assert str(error).startswith("created_after: must be")
        return
    assert text.strip().isascii()
    assert isinstance(read, datetime) or (isinstance(read, timedelta) and read >= timedelta(0))


# The characters of a header: latin-1 without line breaks and NUL.
headers = st.text(st.characters(max_codepoint=255, exclude_characters="\r\n\0"), max_size=50)
durations = st.integers(2 * 86400, 400 * 86400).map(lambda seconds: timedelta(seconds=seconds))


@given(st.integers(0, 10**30))
def test_retry_after_seconds_are_clamped(seconds: int) -> None:
    assert retry_after_seconds({"Retry-After": f"{seconds}"}, datetime.now(timezone.utc)) == min(
        seconds, MAX_RETRY_AFTER
    )


@given(durations)
def test_retry_after_dates_are_clamped(away: timedelta) -> None:
    now = datetime.now(timezone.utc)
    assert retry_after_seconds({"Retry-After": format_datetime(now + away, usegmt=True)}, now) == MAX_RETRY_AFTER
    assert retry_after_seconds({"Retry-After": format_datetime(now - away, usegmt=True)}, now) == 0


@given(
    headers
    | near_misses
    | st.sampled_from(
        ["Fri, 31 Dec 99999 23:59:59 GMT", "Fri, 31 Dec 9999 23:59:59 -9999", "9" * 5000, "1e9", "-1", "nan", "0x10"]
    )
)
def test_any_retry_after_header_is_clamped(service: ScriptedService, header: str) -> None:
    service.script[:] = [reply({}, 503, Retry_After=header), reply({"done": True})]
    served = scripted(service)
    assert served.client.get("things").object() == {"done": True}
    (pause,) = served.clock.pauses
    assert 0 <= pause <= MAX_RETRY_AFTER


def test_max_retry_after_is_a_minute() -> None:
    assert MAX_RETRY_AFTER == 60
