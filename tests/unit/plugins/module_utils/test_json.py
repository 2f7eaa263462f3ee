# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decoding of untrusted JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.clouddb.control.plugins.module_utils._json import (
    UnsupportedJson,
    decode,
)

NO_UNICODE = "a text in it is not valid Unicode"


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc_ {}%", max_size=3), inner, max_size=3),
)


@given(values.filter(lambda value: not any(part in json.dumps(value) for part in ("{{", "{%"))))
def test_supported_json_is_decoded(value: Any) -> None:
    text = json.dumps(value)
    assert decode(text) == json.loads(text)
    assert decode(text.encode()) == json.loads(text)


def test_texts_may_hold_templates() -> None:
    assert decode(b'{"name": "{{ x }}"}') == {"name": "{{ x }}"}


@pytest.mark.parametrize(
    "text, problem",
    [
        ("[NaN]", "NaN is not a number that JSON can express"),
        ("-Infinity", "-Infinity is not a number that JSON can express"),
        ("1e999", "1e999 is not a number that JSON can express"),
        (str(2**63), "the number 9223372036854775808 is too large"),
        ("-" + "9" * 5000, f"the number -{'9' * 28}… is too large"),
        (r'[{"a": 1}, {"a": {"b": "\ud800"}}]', NO_UNICODE),
        (r'{"\udfff": 1}', NO_UNICODE),
        ('{"a": [{"__ansible_type": 1}]}', "'__ansible_type' cannot be the name of a field"),
        ('{"a {{ b": 1}', "'a {{ b' cannot be the name of a field"),
        (r'{"\n{% b": 1}', r"'\n{% b' cannot be the name of a field"),
    ],
)
def test_unsupported_json(text: str, problem: str) -> None:
    with pytest.raises(UnsupportedJson) as error:
        decode(text.encode())
    assert str(error.value) == problem


@pytest.mark.parametrize("number", [2**63 - 1, -(2**63)])
def test_the_largest_numbers(number: int) -> None:
    assert decode(str(number)) == number


def test_escaped_characters_may_be_in_two_halves() -> None:
    assert decode(rb'["\ud83d\ude00"]') == ["\N{GRINNING FACE}"]


@pytest.mark.parametrize("content", [b"", b"{", b"<html>", b"\xff", b"\xed\xa0\x80", '{"a": 1}'.encode("utf-16")])
def test_anything_else_is_a_value_error(content: bytes) -> None:
    with pytest.raises(ValueError, match="."):
        decode(content)
