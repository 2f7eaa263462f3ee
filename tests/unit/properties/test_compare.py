# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Comparison of numbers and texts: numbers by value, and text as text."""

from __future__ import annotations

import json
from contextlib import suppress

from hypothesis import example, given
from hypothesis import strategies as st

from ansible_collections.clouddb.control.plugins.module_utils._resources.compare import contains

numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
# Most are numbers in one language or another.
texts = st.text(st.sampled_from("0123456789.eE+-_ xaninf१"), max_size=8) | st.text(max_size=8)


@given(numbers)
def test_a_number_is_the_text_that_a_template_makes_of_it(number: float) -> None:
    assert contains(number, number)
    assert contains(number, json.dumps(number))
    assert contains(number, str(number))


@given(numbers, texts)
@example(1000, "1_000")
def test_a_text_is_a_number_only_as_in_json(number: float, text: str) -> None:
    parsed = None
    with suppress(ValueError):
        parsed = json.loads(text.replace(" ", "x").replace("\n", "x").replace("\t", "x").replace("\r", "x"))
    assert contains(number, text) == (type(parsed) in (int, float) and parsed == number)
    assert not contains(number, f"{number}_0")


@given(texts, numbers)
@example("1.10", 1.1)
def test_a_text_that_is_there_equals_only_the_digits_of_an_integer(text: str, number: float) -> None:
    assert contains(text, number) == (isinstance(number, int) and text == str(number))
    assert not contains(str(number), float(number) if isinstance(number, float) else number + 0.5)
