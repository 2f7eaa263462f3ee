# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The documentation site in Chromium."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlencode, urlsplit

import pytest
from chromium import emulate
from playwright.sync_api import Page

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


LINK = r"""\b(?:href|src)=["']([^"']+)["']"""


@pytest.fixture(scope="session")
def pages() -> list[Path]:
    subprocess.run([sys.executable, ROOT / "docs" / "site" / "build.py"], check=True)
    return sorted((ROOT / ".build" / "docs").rglob("*.html"))


def on_each_page(browser: Page, pages: Iterable[Path], *scripts: str) -> dict[Path, list[Any]]:
    results = {}
    for page in pages:
        browser.goto(page.as_uri())
        results[page] = [browser.evaluate(script) for script in scripts]
    return results


@pytest.mark.parametrize("width", WIDTHS)
def test_every_page_fits_and_loads_completely(browser: Page, pages: list[Path], width: int) -> None:
    emulate(browser, width)
    problems = {}
    urls: list[str] = []
    browser.on("request", lambda request: urls.append(request.url))
    for page in pages:
        urls.clear()
        browser.goto(page.as_uri())
        external = [url for url in urls if not url.startswith(("file:", "data:"))]
        messages = [str(message) for message in (*browser.console_messages(), *browser.page_errors())]
        found = messages + external + browser.evaluate(OVERFLOWING)
        if browser.evaluate("document.documentElement.scrollWidth") > width:
            found.append("The page scrolls horizontally.")
        if found:
            problems[page.name] = found
    assert len(pages) > 20
    assert problems == {}


def test_no_code_is_clipped(browser: Page, pages: list[Path]) -> None:
    emulate(browser, 1280)
    shown = on_each_page(browser, pages, "document.querySelectorAll('[role=main] pre').length", CLIPPED_CODE)
    assert sum(blocks for blocks, _clipped in shown.values()) > 100
    assert {page.name: clipped for page, (_blocks, clipped) in shown.items() if clipped} == {}


def test_links_within_the_site_have_targets(pages: list[Path]) -> None:
    """Sphinx checks those of references, but not those in the HTML that antsibull-docs writes."""
    ids = {page: set(re.findall(r'\bid="([^"]*)"', page.read_text(encoding="utf-8"))) for page in pages}
    links = [(page, urlsplit(link)) for page in pages for link in re.findall(LINK, page.read_text(encoding="utf-8"))]
    within = [(page, link) for page, link in links if not link.netloc]
    assert len(within) > 10000
    for page, link in within:
        target = (page.parent / link.path).resolve() if link.path else page
        assert target.is_file() and (not link.fragment or unquote(link.fragment) in ids[target]), f"{page.name}: {link}"


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
    emulate(browser, 1280)
    for name in ("index.html", "waiting.html", "api_key_module.html"):
        browser.goto(named(pages, name).as_uri())
        menu = {
            caption: [link.partition("#")[0].rpartition("/")[2].removesuffix(".html") for link in links]
            for caption, links in browser.evaluate(sections).items()
        }
        assert next(iter(menu)) == "Guides" and list(menu)[-2:] == ["Background", "Internal"]
        assert menu["Guides"][0] == "getting_started" and "waiting" in menu["Guides"]
        assert "api_key_module" in menu["Modules"] and "fault_matrix" in menu["Background"]
        assert "api_key_deployment_module" in menu["Internal"]


# Text whose contrast to its background is below the 4.5 that WCAG requires, apart from code, whose colors a filter changes.
PALE = """
(() => {
  const numbers = color => color.match(/[\\d.]+/g).map(Number);
  const background = element => {
    const color = element ? numbers(getComputedStyle(element).backgroundColor) : [255, 255, 255, 1];
    return color[3] === 0 ? background(element.parentElement) : color;
  };
  const luminance = color => color.slice(0, 3)
    .map(part => part / 255).map(part => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, index) => sum + part * [0.2126, 0.7152, 0.0722][index], 0);
  const contrast = element => {
    const [low, high] = [numbers(getComputedStyle(element).color), background(element)].map(luminance).sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const hasText = element => [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim());
  return [...document.querySelectorAll('.wy-nav-content *')]
    .filter(element => element.getClientRects().length && hasText(element) && !element.closest('pre, .headerlink') && contrast(element) < 4.5)
    .map(element => `${contrast(element).toFixed(1)} ${element.tagName} ${element.className} ${element.textContent.trim().slice(0, 40)}`);
})()
"""


def named(pages: list[Path], name: str) -> Path:
    return next(page for page in pages if page.name == name)


def test_dark_pages_are_readable(browser: Page, pages: list[Path]) -> None:
    emulate(browser, 1280, "dark")
    color = "getComputedStyle(document.querySelector('.wy-nav-content')).backgroundColor"
    shown = on_each_page(browser, pages, color, PALE)
    assert {page.name: colors for page, colors in shown.items() if colors != ["rgb(27, 31, 35)", []]} == {}


def test_front_page_begins_with_the_installation_and_a_playbook(browser: Page, pages: list[Path]) -> None:
    emulate(browser, 1280)
    browser.goto(named(pages, "index.html").as_uri())
    ends = "[...document.querySelectorAll('[role=main] pre')].map(element => element.getBoundingClientRect().bottom)"
    shown = browser.evaluate(ends)
    assert len(shown) == 2 and max(shown) < 720


def test_drawing_on_the_front_page_can_be_read_on_a_phone(browser: Page, pages: list[Path]) -> None:
    emulate(browser, 390)
    browser.goto(named(pages, "index.html").as_uri())
    scale = browser.evaluate("(image => image.width / image.naturalWidth)(document.querySelector('.drawing'))")
    assert 0.9 < scale <= 1


# What readers in a hurry search for, and the page that answers.
SEARCHES = {
    "owner": "database_module.html",
    "rotate": "docsite/key_rotation.html",
    "timeout": "docsite/waiting.html",
    "env file": "connection_info_module.html",
    "403": "docsite/troubleshooting.html",
}


def test_search_answers_first_and_leaves_out_internal_modules(browser: Page, pages: list[Path]) -> None:
    for words, answer in SEARCHES.items():
        browser.goto(f"{named(pages, 'search.html').as_uri()}?{urlencode({'q': words})}")
        browser.locator("#search-results .search-summary", has_text=re.compile(r"\S")).wait_for()
        addresses = "links => links.map(link => link.getAttribute('href').split(/[?#]/)[0])"
        found = browser.locator("#search-results li a").evaluate_all(addresses)
        assert found[0] == answer, (words, found[:5])
        assert not {"api_key_rotation_module.html", "api_key_deployment_module.html"} & set(found)


def test_first_options_of_a_module_are_its_own(browser: Page, pages: list[Path]) -> None:
    for name, first in ("branch", ["project", "name", "state"]), ("database", ["name", "project", "branch", "state"]):
        browser.goto(named(pages, f"{name}_module.html").as_uri())
        titles = browser.locator("#parameters .ansible-option-title").all_inner_texts()
        shown = [title.strip() for title in titles]
        assert sorted(shown[: len(first)]) == sorted(first), shown
        assert shown[-1] == "validate_certs"


def test_contents_are_not_repeated_beside_the_menu(browser: Page, pages: list[Path]) -> None:
    for width, shown in (1280, False), (390, True):
        emulate(browser, width)
        browser.goto(named(pages, "waiting.html").as_uri())
        assert browser.locator("nav.contents").is_visible() is shown


def test_the_menu_shows_the_current_page(browser: Page, pages: list[Path]) -> None:
    """The theme scrolls the menu to its entry, which the search would cover."""
    emulate(browser, 1280)
    for name in ("continuous_integration.html", "branch_module.html", "troubleshooting.html"):
        browser.goto(named(pages, name).as_uri())
        entry, search = (
            browser.locator(each).first.bounding_box() for each in (".wy-menu a.current", ".wy-side-nav-search")
        )
        assert entry and search and search["y"] + search["height"] <= entry["y"] < 900, name


# Tables that a phone shows only after scrolling.
WIDE_TABLES = """
[...document.querySelectorAll('[role=main] table')].filter(table => table.getBoundingClientRect().right > innerWidth)
  .map(table => table.textContent.trim().slice(0, 60))
"""


def test_tables_fit_on_a_phone(browser: Page, pages: list[Path]) -> None:
    emulate(browser, 390)
    shown = on_each_page(browser, pages, "document.querySelectorAll('[role=main] table').length", WIDE_TABLES)
    assert sum(tables for tables, _wide in shown.values()) > 60
    wide = {page.name: wide for page, (_tables, wide) in shown.items() if wide}
    assert wide.keys() <= {"fault_matrix.html"}, wide
