# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Untrusted JSON and texts: ids, texts for terminals and templates, and the texts of errors."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ansible_collections.clouddb.control.plugins.module_utils import _untrusted as untrusted
from ansible_collections.clouddb.control.plugins.module_utils._errors import ClouddbError, SecretFileError, sentence

IDS: list[Any] = ["a", "0", "wispy-lake-12345678", "A_b.c", "-", "...a", "x" * 128]
NO_IDS = ["", ".", "..", "...", "a/b", "a b", "a\n", "é", "٣", "x" * 129, "{{ x }}", "a\0", "\ud800", None, 5, True, {}]


@pytest.mark.parametrize("value", IDS + NO_IDS)
def test_ids(value: Any) -> None:
    assert untrusted.is_id(value) is (value in IDS)


@pytest.mark.parametrize(
    "text, shown",
    [
        ("create_branch → finished · é", "create_branch → finished · é"),
        ("\x1b[31mred\x07\x9b", r"\x1b[31mred\x07\x9b"),
        ("two\r\nlines\t\u2028", r"two\r\nlines\t\u2028"),
        ("\u202eevil\u2066\u200b\ufeff", r"\u202eevil\u2066\u200b\ufeff"),
        ("\ud800", r"\ud800"),
        (["\x1b"], r"['\x1b']"),
    ],
)
def test_displayable(text: object, shown: str) -> None:
    assert untrusted.displayable(text) == shown


@given(st.text(), st.integers(1, 20))
def test_displayable_texts_are_printable_short_and_stay_as_they_are(text: str, max_length: int) -> None:
    shown = untrusted.displayable(text, max_length)
    assert shown.isprintable()
    assert len(shown) <= max_length
    assert untrusted.displayable(shown, max_length) == shown
    assert shown == text or len(text) > max_length or not text.isprintable()


PIECES = ["{", "%", "#", "}", " ", "x", "$", "$ANSIBLE_VAULT", "$ANSI", "BLE_VAULT", "ANSIBLE_VAULT;1.1"]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=6).map("".join)


@given(TEXTS, TEXTS)
@example("{", "{ lookup('ansible.builtin.pipe', 'id') }}")
@example("{", "% if x %}")
@example("$", "ANSIBLE_VAULT;1.1")
@example("$ANSIBLE", "_VAULT;1.1")
def test_no_text_holds_a_template_nor_do_two_in_a_row(one: str, other: str) -> None:
    inert = untrusted.without_templates(one) + untrusted.without_templates(other)
    assert not any(delimiter in inert for delimiter in ("{{", "{%", "{#", "$ANSIBLE_VAULT"))
    assert inert.replace(" ", "") == (one + other).replace(" ", "")
    assert untrusted.without_templates(inert) == inert


def test_other_texts_stay_as_they_are() -> None:
    assert untrusted.without_templates("{ x } costs 5 $ or 100 % }} #1") == "{ x } costs 5 $ or 100 % }} #1"


def test_walk_reaches_every_text() -> None:
    value = {"a": ["b", {"c": "d"}, 5, None], 6: "e"}
    assert untrusted.walk(value, str.upper) == {"A": ["B", {"C": "D"}, 5, None], 6: "E"}
    assert value == {"a": ["b", {"c": "d"}, 5, None], 6: "e"}


def test_errors_are_displayable() -> None:
    error = SecretFileError("a\x1b[31mx", {"code": "\u202e", "status": 500}, {"operations": [{"id": "a"}]})
    failure = {"kind": "secret_file", "code": r"\u202e", "status": 500}
    shown = {"msg": r"a\x1b[31mx", "failure": failure, "operations": [{"id": "a"}]}
    assert {name: error.as_result()[name] for name in shown} == shown


@pytest.mark.parametrize(
    "text, ended", [("a", "a."), ("a.", "a."), ("a..", "a."), ("is it X", "is it X."), ("a?", "a?"), (7, "7.")]
)
def test_a_sentence_has_one_end(text: object, ended: str) -> None:
    assert sentence(text) == ended


def test_long_texts() -> None:
    longest = "x" * 20_000
    for text, shown in ((longest, longest), (longest + "x", f"{longest[1:]}…")):
        error = ClouddbError("unexpected", text, {"message": text})
        assert (str(error), error.details) == (shown, {"message": shown})


def test_sentences_are_added_and_stay_displayable() -> None:
    error = SecretFileError("Name is wrong.")
    error.add(before="First\n.", after="Last.")
    assert str(error) == error.as_result()["msg"] == "First\\n. Name is wrong. Last."


# JSON


numbers = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc_ {}%", max_size=3), inner, max_size=3),
)


@given(values.filter(lambda value: not any(part in json.dumps(value) for part in ("{{", "{%"))))
def test_supported_json_is_decoded(value: Any) -> None:
    text = json.dumps(value)
    assert untrusted.decode(text) == json.loads(text)
    assert untrusted.decode(text.encode()) == json.loads(text)


@pytest.mark.parametrize(
    "text, problem",
    [
        *((text, f"{text} is not a number that JSON can express") for text in ("NaN", "-Infinity", "1e999")),
        (str(2**63), "the number 9223372036854775808 is too large"),
        ("-" + "9" * 5000, f"the number -{'9' * 28}… is too large"),
        *((t, "a text in it is not valid Unicode") for t in (r'[{"a": 1}, {"a": {"b": "\ud800"}}]', r'{"\udfff": 1}')),
        ('{"a": [{"__ansible_type": 1}]}', "'__ansible_type' cannot be the name of a field"),
        *((f'{{"{name}": 1}}', f"'{name}' cannot be the name of a field") for name in ("a {{ b", r"\n{% b")),
    ],
)
def test_unsupported_json(text: str, problem: str) -> None:
    with pytest.raises(untrusted.UnsupportedJson) as error:
        untrusted.decode(text.encode())
    assert str(error.value) == problem


def test_escaped_characters_may_be_in_two_halves() -> None:
    assert untrusted.decode(rb'["\ud83d\ude00"]') == ["\N{GRINNING FACE}"]


@pytest.mark.parametrize("content", [b"", b"{", b"<html>", b"\xff", b"\xed\xa0\x80", '{"a": 1}'.encode("utf-16")])
def test_anything_else_is_a_value_error(content: bytes) -> None:
    with pytest.raises(ValueError):
        untrusted.decode(content)
