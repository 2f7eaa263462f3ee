# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Broken links are found, and no others."""

from __future__ import annotations

import sys
from pathlib import Path

from conftest import CHECKOUT

sys.path.insert(0, str(CHECKOUT / "docs" / "site"))

from links import REPOSITORY, broken_links

VALID_LINKS = [
    "",
    "#here",
    "two.html",
    "two.html#there",
    "figure.svg",
    f"{REPOSITORY}README.md",
    "https://example.com/anything",
]
BROKEN_LINKS = ["#there", "three.html", "two.html#here", "missing.svg", f"{REPOSITORY}no-such-file.md", "/two.html"]


def test_broken_links_are_found(tmp_path: Path) -> None:
    (tmp_path / "figure.svg").touch()
    (tmp_path / "two.html").write_text('<p id="there">')
    (tmp_path / "one.html").write_text(
        '<p id="here">' + "".join(f'<a href="{link}"></a>' for link in VALID_LINKS + BROKEN_LINKS)
    )
    assert broken_links(tmp_path, CHECKOUT) == sorted(f"one.html: {link}" for link in BROKEN_LINKS)
