# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A test with several rows runs all of them, and fails with those that fail."""

from __future__ import annotations

import inspect

import pytest


def test_every_row_is_run_and_each_failure_is_named() -> None:
    rows: list[tuple[int, str, int]] = []

    @pytest.mark.parametrize("name", ["a", "b"])
    @pytest.mark.parametrize("number, expected", [(1, "odd"), (2, "even"), (3, "even")])
    def parity(fixture: int, name: str, number: int, expected: str) -> None:
        rows.append((number, name, fixture))
        if (name, number) == ("b", 1):
            pytest.fail("not this one")
        assert ("odd" if number % 2 else "even") == expected

    assert list(inspect.signature(parity).parameters) == ["fixture"]
    with pytest.raises(AssertionError) as error:
        parity(fixture=7)
    assert rows == [(number, name, 7) for name in "ab" for number in (1, 2, 3)]
    failures = str(error.value)
    assert [failures.count(str(row)) for row in ((1, "odd"), (2, "even"), (3, "even"))] == [1, 0, 2]


def test_a_table_without_rows_is_an_error() -> None:
    with pytest.raises(AssertionError, match="a test without rows"):
        pytest.mark.parametrize("row", [])
