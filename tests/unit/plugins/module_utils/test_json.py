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
    MAX_DEPTH,
    UnsupportedJson,
    decode,
)

NO_UNICODE = "a text in it is not valid Unicode"


def nested(depth: int) -> Any:
    return json.loads("[" * depth + "]" * depth)


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
        ("[" * 100_000, f"it has more than {MAX_DEPTH} levels of arrays and objects"),
        (json.dumps(nested(MAX_DEPTH + 1)), f"it has more than {MAX_DEPTH} levels of arrays and objects"),
        ("[NaN]", "NaN is not a number that JSON can express"),
        ("-Infinity", "-Infinity is not a number that JSON can express"),
        ("1e999", "1e999 is not a number that JSON can express"),
        (str(2**63), "the number 9223372036854775808 is too large"),
        (str(-(2**63) - 1), "the number -9223372036854775809 is too large"),
        ("9" * 30, f"the number {'9' * 30} is too large"),
        ("9" * 31, f"the number {'9' * 29}… is too large"),
        ("1e" + "9" * 28, f"1e{'9' * 28} is not a number that JSON can express"),
        ("1e" + "9" * 29, f"1e{'9' * 27}… is not a number that JSON can express"),
        ('{"' + "x" * 94 + r'\ud800": 1}', f"the name of a field, '{'x' * 94}\\ud800', is not valid Unicode"),
        ('{"' + "x" * 101 + r'\ud800": 1}', f"the name of a field, '{'x' * 99}…', is not valid Unicode"),
        (json.dumps({"{{" + "x" * 98: 1}), "'{{" + "x" * 98 + "' cannot be the name of a field"),
        (json.dumps({"{{" + "x" * 99: 1}), "'{{" + "x" * 97 + "…' cannot be the name of a field"),
        # Whatever stands beside it.
        (r'[{"a": {"b": "\ud800"}}, {"a": {"b": 1}}, [["c"]]]', NO_UNICODE),
        (r'[[["\ud800"]], [["b"]], {"a": {"b": 1}}]', NO_UNICODE),
        ("-" + "9" * 5000, f"the number -{'9' * 28}… is too large"),
        (r'["\ud800"]', NO_UNICODE),
        (r'{"\udfff": 1}', r"the name of a field, '\udfff', is not valid Unicode"),
        ('{"a": [{"__ansible_type": 1}]}', "'__ansible_type' cannot be the name of a field"),
        ('{"__ansible_vault": "x"}', "'__ansible_vault' cannot be the name of a field"),
        ('{"a {{ b": 1}', "'a {{ b' cannot be the name of a field"),
        (r'{"\n{% b": 1}', r"'\n{% b' cannot be the name of a field"),
    ],
)
def test_unsupported_json(text: str, problem: str) -> None:
    with pytest.raises(UnsupportedJson) as error:
        decode(text.encode())
    assert str(error.value) == problem


def test_any_number_of_values_is_decoded() -> None:
    keys = [{"id": number, "name": "deploy", "last_used_at": None} for number in range(60_000)]
    assert decode(json.dumps([keys] * 5)) == [keys] * 5


@pytest.mark.parametrize("number", [2**63 - 1, -(2**63)])
def test_the_largest_numbers(number: int) -> None:
    assert decode(str(number)) == number


def test_levels() -> None:
    assert MAX_DEPTH == 50


def test_the_deepest_supported_json() -> None:
    assert decode(json.dumps(nested(MAX_DEPTH))) == nested(MAX_DEPTH)


@pytest.mark.parametrize("content", [b"", b"{", b"<html>", b"\xff", b"\xed\xa0\x80", '{"a": 1}'.encode("utf-16")])
def test_anything_else_is_a_value_error(content: bytes) -> None:
    with pytest.raises(ValueError, match="."):
        decode(content)
