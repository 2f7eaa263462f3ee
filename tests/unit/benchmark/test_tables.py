# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tables in a page: as text, and in their places."""

from __future__ import annotations

import pytest

from ansible_collections.clouddb.control.tests.benchmark.tables import Table, as_markdown, as_rst, with_blocks

TABLE = Table("Pets", ("name", "kind"), [("Tom", "cat"), ("", "dog")])


def test_as_rst() -> None:
    assert (
        as_rst(TABLE)
        == ".. list-table:: Pets\n   :header-rows: 1\n\n   * - name\n     - kind\n   * - Tom\n     - cat\n   * -\n     - dog"
    )


def test_as_markdown() -> None:
    assert as_markdown(TABLE) == "**Pets**\n\n| name | kind |\n| --- | --- |\n| Tom | cat |\n|  | dog |"


def test_only_what_is_between_the_marks_is_replaced() -> None:
    page = "Before.\n\n.. begin pets\n\nold\n\n.. end pets\n\nAfter.\n"
    assert with_blocks(page, {"pets": "new"}) == page.replace("old", "new")
    assert with_blocks(page.replace("\nold\n\n", ""), {"pets": "new"}) == page.replace("old", "new")


@pytest.mark.parametrize(
    "page", ["", ".. begin pets\n", ".. end pets\n.. begin pet\n", 2 * ".. begin pets\n.. end pets\n"]
)
def test_a_page_without_the_one_place_is_refused(page: str) -> None:
    with pytest.raises(ValueError, match="one block pets"):
        with_blocks(page, {"pets": "new"})
