# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The documentation site in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest
from chromium import Page

WIDTHS = (1280, 360)

# Blocks whose content is cut off, or runs over their edge, as no box around it scrolls.
TOO_WIDE = """
(() => {
  const scrolls = element => element && (['auto', 'scroll'].includes(getComputedStyle(element).overflowX) || scrolls(element.parentElement));
  return [...document.querySelectorAll('[role=main], [role=main] *')]
    .filter(element => element.clientWidth && element.scrollWidth > element.clientWidth + 1 && !scrolls(element))
    .map(element => `${element.tagName} ${element.textContent.trim().slice(0, 60)}`);
})()
"""


@pytest.fixture(scope="session")
def pages(pytestconfig: pytest.Config) -> list[Path]:
    return sorted(pytestconfig.getoption("site").rglob("*.html"))


@pytest.mark.parametrize("width", WIDTHS)
def test_every_page_fits_and_is_whole(browser: Page, pages: list[Path], width: int) -> None:
    browser.look(width)
    wrong = {}
    for page in pages:
        browser.open(page)
        elsewhere = [address for address in browser.requested() if not address.startswith(("file:", "data:"))]
        found = browser.complaints() + elsewhere + browser.evaluate(TOO_WIDE)
        if browser.evaluate("document.documentElement.scrollWidth") > width:
            found.append("the page scrolls sideways")
        if found:
            wrong[page.name] = found
    assert len(pages) > 20
    assert wrong == {}
