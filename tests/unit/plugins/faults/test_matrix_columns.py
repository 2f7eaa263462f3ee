# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page of the error matrix has a column for each task that the tests run, and no other."""

from __future__ import annotations

import re

from ansible_collections.clouddb.control.tests.unit.plugins.faults import test_error_matrix
from ansible_collections.clouddb.control.tests.unit.plugins.faults.matrix import COLUMNS, Row


def test_page_has_every_column_of_the_matrix() -> None:
    assert tuple(COLUMNS) == Row._fields[Row._fields.index("present") :]


def test_headings_name_the_tasks_that_are_tested() -> None:
    tested: dict[str, set[str]] = {column: set() for column in COLUMNS}
    for name, column in test_error_matrix.COLUMNS.items():
        tested[column.expected].add(name.split()[0])
    headings = {column: set(re.findall(r"``(\w+)``", heading)) - {"find"} for column, heading in COLUMNS.items()}
    assert headings == tested
