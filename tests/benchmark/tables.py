# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tables in reStructuredText and in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Table(NamedTuple):
    """A table with a caption. The cells are plain text."""

    caption: str
    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


def as_rst(table: Table) -> str:
    """The table as the directive C(list-table)."""
    lines = [f".. list-table:: {table.caption}", "   :header-rows: 1", ""]
    for row in (table.header, *table.rows):
        lines += [f"   {'*' if column == 0 else ' '} - {cell}".rstrip() for column, cell in enumerate(row)]
    return "\n".join(lines)


def as_markdown(table: Table) -> str:
    """The caption, and below it the table with pipes."""
    rows = [table.header, tuple("---" for _column in table.header), *table.rows]
    return "\n".join([f"**{table.caption}**", "", *(f"| {' | '.join(row)} |" for row in rows)])


def replace_blocks(page: str, blocks: dict[str, str]) -> str:
    """Replace the text between C(.. begin NAME) and C(.. end NAME) for each block.

    Raises ValueError if a marker is missing or occurs more than once.
    """
    for name, block in blocks.items():
        begin, end = f".. begin {name}\n", f".. end {name}\n"
        if page.count(begin) != 1 or page.count(end) != 1:
            raise ValueError(f"The page must contain {begin.strip()!r} and {end.strip()!r} exactly once.")
        head, _begin, rest = page.partition(begin)
        tail = rest.partition(end)[2]
        page = f"{head}{begin}\n{block}\n\n{end}{tail}"
    return page
