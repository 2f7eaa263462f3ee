# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Timestamps and ages: any text is either parsed correctly or refused with a clear error."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.clouddb.control.plugins.module_utils._errors import InvalidOption
from ansible_collections.clouddb.control.plugins.module_utils._options import moment
from ansible_collections.clouddb.control.plugins.module_utils._timestamps import parse_timestamp

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


@given(any_text)
def test_moment_returns_a_value_or_names_the_option(text: str) -> None:
    try:
        read = moment({"created_after": text}, "created_after")
    except InvalidOption as error:
        assert str(error).startswith("created_after: must be")
        return
    assert text.strip().isascii()
    assert isinstance(read, datetime) or (isinstance(read, timedelta) and read >= timedelta(0))
