# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tables in reStructuredText and Markdown, and their blocks in a page."""

from __future__ import annotations

import pytest

from ansible_collections.clouddb.control.tests.benchmark.tables import Table, as_markdown, as_rst, replace_blocks

TABLE = Table("Pets", ("name", "kind"), [("Tom", "cat"), ("", "dog")])


def test_as_rst() -> None:
    assert (
        as_rst(TABLE)
        == ".. list-table:: Pets\n   :header-rows: 1\n\n   * - name\n     - kind\n   * - Tom\n     - cat\n   * -\n     - dog"
    )


def test_as_markdown() -> None:
    assert as_markdown(TABLE) == "**Pets**\n\n| name | kind |\n| --- | --- |\n| Tom | cat |\n|  | dog |"


def test_replaces_only_the_text_between_the_markers() -> None:
    page = "Before.\n\n.. begin pets\n\nold\n\n.. end pets\n\nAfter.\n"
    assert replace_blocks(page, {"pets": "new"}) == page.replace("old", "new")
    assert replace_blocks(page.replace("\nold\n\n", ""), {"pets": "new"}) == page.replace("old", "new")


@pytest.mark.parametrize(
    "page", ["", ".. begin pets\n", ".. end pets\n.. begin pet\n", 2 * ".. begin pets\n.. end pets\n"]
)
def test_missing_or_repeated_markers_raise_value_error(page: str) -> None:
    with pytest.raises(ValueError, match="exactly once"):
        replace_blocks(page, {"pets": "new"})
