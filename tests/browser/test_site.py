# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The documentation site in Chromium."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from chromium import Page

ROOT = Path(__file__).resolve().parents[2]
WIDTHS = (1280, 360)

# Elements whose content overflows, without a scrolling element around them.
OVERFLOWING = """
(() => {
  const scrolls = element => element && (['auto', 'scroll'].includes(getComputedStyle(element).overflowX) || scrolls(element.parentElement));
  return [...document.querySelectorAll('[role=main], [role=main] *')]
    .filter(element => element.clientWidth && element.scrollWidth > element.clientWidth + 1 && !scrolls(element))
    .map(element => `${element.tagName} ${element.textContent.trim().slice(0, 60)}`);
})()
"""

# Code whose lines are wider than its block, so that a reader sees their ends only after scrolling.
CLIPPED_CODE = """
(() => {
  const clipped = element => element && element.matches('[role=main] *') &&
    (element.scrollWidth > element.clientWidth + 1 || clipped(element.parentElement));
  return [...document.querySelectorAll('[role=main] pre')].filter(clipped)
    .map(element => `${element.scrollWidth - element.clientWidth} px: ${element.textContent.trim().slice(0, 60)}`);
})()
"""


@pytest.fixture(scope="session")
def pages() -> list[Path]:
    """The pages of a new build."""
    subprocess.run([sys.executable, ROOT / "docs" / "site" / "build.py"], check=True)
    return sorted((ROOT / ".build" / "docs").rglob("*.html"))


@pytest.mark.parametrize("width", WIDTHS)
def test_every_page_fits_and_loads_completely(browser: Page, pages: list[Path], width: int) -> None:
    browser.emulate(width)
    problems = {}
    for page in pages:
        browser.open(page)
        external = [url for url in browser.requested_urls() if not url.startswith(("file:", "data:"))]
        found = browser.console_messages() + external + browser.evaluate(OVERFLOWING)
        if browser.evaluate("document.documentElement.scrollWidth") > width:
            found.append("The page scrolls horizontally.")
        if found:
            problems[page.name] = found
    assert len(pages) > 20
    assert problems == {}


def test_no_code_is_clipped(browser: Page, pages: list[Path]) -> None:
    browser.emulate(1280)
    blocks, clipped = 0, {}
    for page in pages:
        browser.open(page)
        blocks += browser.evaluate("document.querySelectorAll('[role=main] pre').length")
        if found := browser.evaluate(CLIPPED_CODE):
            clipped[page.name] = found
    assert blocks > 100
    assert clipped == {}


def test_menu_has_sections(browser: Page, pages: list[Path]) -> None:
    """Each section is a caption followed by its pages, on the front page, a guide, and a module's page."""
    sections = """
    (() => {
      const found = {};
      let caption = null;
      for (const element of document.querySelector('.wy-menu').children) {
        if (element.matches('.caption')) caption = element.textContent;
        else (found[caption] ??= []).push(...[...element.querySelectorAll('.toctree-l1 > a')].map(a => a.href || location.href));
      }
      return found;
    })()
    """
    browser.emulate(1280)
    for name in ("index.html", "waiting.html", "api_key_module.html"):
        (page,) = (page for page in pages if page.name == name)
        browser.open(page)
        menu = {
            caption: [link.partition("#")[0].rpartition("/")[2].removesuffix(".html") for link in links]
            for caption, links in browser.evaluate(sections).items()
        }
        assert next(iter(menu)) == "Guides" and list(menu)[-2:] == ["Background", "Internal"]
        assert menu["Guides"][0] == "getting_started" and "waiting" in menu["Guides"]
        assert "api_key_module" in menu["Modules"] and "fault_matrix" in menu["Background"]
        assert "api_key_deployment_module" in menu["Internal"]
