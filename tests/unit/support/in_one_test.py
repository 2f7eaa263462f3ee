# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the rows of a table in one test: ansible-test forks for each test, which takes longer than most rows."""

from __future__ import annotations

import functools
import inspect
import traceback
from collections.abc import Callable, Iterable
from typing import Any

import pytest

Test = Callable[..., None]


def in_one_test(names: str, rows: Iterable[Any]) -> Callable[[Test], Test]:
    """As C(pytest.mark.parametrize), but all rows share one test and its fixtures. The test fails with the rows that fail."""
    arguments = [name.strip() for name in names.split(",")]
    table = [tuple(row) if len(arguments) > 1 else (row,) for row in rows]
    assert table, "a test without rows proves nothing"

    def decorate(test: Test) -> Test:
        @functools.wraps(test)
        def run(*args: Any, **fixtures: Any) -> None:
            failures = []
            for row in table:
                try:
                    test(*args, **fixtures, **dict(zip(arguments, row)))
                except (Exception, pytest.fail.Exception):
                    failures.append(f"{repr(row)[:200]}\n{traceback.format_exc()}")
            assert not failures, "\n".join(failures)

        signature = inspect.signature(test)
        fixtures = [parameter for name, parameter in signature.parameters.items() if name not in arguments]
        run.__signature__ = signature.replace(parameters=fixtures)
        return run

    return decorate
