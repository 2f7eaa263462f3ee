# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The errors as results of a failed task, and whether each is transient or may have acted."""

from __future__ import annotations

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import ClouddbError, SecretFileError, sentence
from ansible_collections.clouddb.control.plugins.module_utils._http.errors import StatusError
from ansible_collections.clouddb.control.plugins.module_utils._http.session import Request


@pytest.mark.parametrize(
    "text, ended", [("a", "a."), ("a.", "a."), ("a..", "a."), ("is it X", "is it X."), ("a?", "a?"), (7, "7.")]
)
def test_a_sentence_has_one_end(text: object, ended: str) -> None:
    assert sentence(text) == ended


def test_long_texts() -> None:
    longest = "x" * 20_000
    assert ClouddbError("unexpected", "y", {"message": longest}).details == {"message": longest}
    assert ClouddbError("unexpected", "y", {"message": longest + "x"}).details == {"message": f"{longest[1:]}…"}
    assert str(ClouddbError("unexpected", longest)) == longest
    assert str(ClouddbError("unexpected", longest + "x")) == f"{longest[1:]}…"


@pytest.mark.parametrize(
    "statuses, may_have_acted, transient",
    [
        ((400, 401, 403, 404, 405, 407, 409, 417, 421, 422, 425, 426, 428, 431, 451), False, False),
        ((423, 429), False, True),
        ((101, 300, 302, 399, 406, 416, 418, 420, 424, 427, 430, 450, 452, 499, 600, 999), True, False),
        ((408, 500, 502, 503, 504, 599), True, True),
    ],
)
def test_status_sets_transient_and_may_have_acted(
    statuses: tuple[int, ...], may_have_acted: bool, transient: bool
) -> None:
    for status in statuses:
        error = StatusError("failed", Request("GET", "/projects", "id-1"), 2, status)
        assert (error.may_have_acted, error.transient) == (may_have_acted, transient), status


def test_sentences_are_added_and_stay_displayable() -> None:
    error = SecretFileError("Name is wrong.")
    error.add(before="First\n.", after="Last.")
    assert str(error) == error.as_result()["msg"] == "First\\n. Name is wrong. Last."
