# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page of the role account_report in Chromium."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from chromium import Page
from conftest import HOSTILE, Report

WIDTHS = (1280, 768, 360)
PHONES = (360, 390)
SCHEMES = ("light", "dark")

# Contrast of each text with its background, as WCAG 2 defines it.
CONTRAST = """
(() => {
  const parts = color => color.match(/[\\d.]+/g).map(Number);
  const light = color => parts(color).slice(0, 3).map(v => v / 255)
    .map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4).reduce((sum, v, n) => sum + v * [.2126, .7152, .0722][n], 0);
  const ground = element => {
    for (; element; element = element.parentElement) {
      const color = getComputedStyle(element).backgroundColor;
      if (parts(color)[3] !== 0) return color;
    }
  };
  const low = new Set();
  for (const element of document.querySelectorAll('body *')) {
    if (![...element.childNodes].some(node => node.nodeType === 3 && node.data.trim())) continue;
    const style = getComputedStyle(element);
    const [a, b] = [light(element.closest('svg') ? style.fill : style.color), light(ground(element))].sort((x, y) => y - x);
    const contrast = (a + .05) / (b + .05);
    if (contrast < 4.5) low.add(`${element.tagName} .${element.getAttribute('class')} ${contrast.toFixed(2)}`);
  }
  return [...low];
})()
"""
# The words of tables that continue on a second line; in small text, which contains ids, hyphens belong to the word.
BROKEN_WORDS = """
(() => {
  const broken = [];
  for (const cell of document.querySelectorAll('.scroll td, .scroll th')) {
    const nodes = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    while (nodes.nextNode()) {
      const node = nodes.currentNode;
      for (const word of node.data.matchAll(node.parentElement.closest('small') ? /\\S+/g : /[\\p{L}\\p{N}_.:]+/gu)) {
        const range = document.createRange();
        range.setStart(node, word.index);
        range.setEnd(node, word.index + word[0].length);
        if (new Set([...range.getClientRects()].map(rect => Math.round(rect.y))).size > 1) broken.push(word[0]);
      }
    }
  }
  return broken;
})()
"""
# The number of colors along the upper edge of a screenshot.
COLORS = """
new Promise(done => {{
  const image = new Image();
  image.onload = () => {{
    const context = new OffscreenCanvas(image.width, 1).getContext('2d');
    context.drawImage(image, 0, 0);
    const data = context.getImageData(0, 0, image.width, 1).data;
    done(new Set(Array.from({{length: image.width}}, (_, n) => data.slice(4 * n, 4 * n + 3).join())).size);
  }};
  image.src = 'data:image/png;base64,{png}';
}})
"""
# The text of each element, without surrounding white space and without the thin spaces in numbers.
TEXTS = (
    "[...document.querySelectorAll({selector!r})].map(element => element.textContent.trim().replaceAll('\\u202f', ''))"
)


def texts(browser: Page, selector: str) -> Any:
    return browser.evaluate(TEXTS.format(selector=selector))


@pytest.fixture
def opened(browser: Page, varied: Report) -> Page:
    browser.emulate(1280)
    browser.open(varied.page)
    return browser


@pytest.mark.smoke
def test_no_console_message_and_no_request(opened: Page, varied: Report) -> None:
    assert opened.console_messages() == []
    assert opened.requested_urls() == [varied.page.as_uri()]
    assert opened.evaluate("document.title").startswith("Our account")


def test_numbers_match_the_service(opened: Page, varied: Report) -> None:
    keys, projects = (
        varied.service.api("GET", "/api_keys"),
        varied.service.api("GET", "/projects?limit=400")["projects"],
    )
    of_projects = {
        p["id"]: varied.service.api("GET", f"/projects/{p['id']}/operations?limit=1000")["operations"] for p in projects
    }
    operations = [o for of_project in of_projects.values() for o in of_project]
    failed = [o for o in operations if o["status"] in ("failed", "error", "cancelled")]
    assert texts(opened, ".figures b") == [str(len(found)) for found in (keys, projects, operations, failed)]
    assert len(texts(opened, "table.keys tbody tr")) == len(keys)
    assert texts(opened, "table.projects tbody td:nth-child(5)") == [
        str(p["cpu_used_sec"]) for p in sorted(projects, key=lambda p: (-p["locked"], -p["cpu_used_sec"]))
    ]
    assert sum(map(int, texts(opened, "table.actions tbody td:nth-child(2)"))) == len(operations)
    assert texts(opened, "dl.labels dd")[3].split()[0] == str(len(failed))
    shown = texts(opened, "article h3 small") + texts(opened, "table.rest th[scope=row] small")
    assert sorted(shown) == sorted(of_projects)
    counts = [int(text.split()[0]) for text in texts(opened, ".lane.count")] + [
        int(text) for text in texts(opened, "table.rest td:nth-child(2)")
    ]
    assert sum(counts) == len(operations)


def test_hostile_text_is_escaped(opened: Page) -> None:
    assert opened.evaluate("document.scripts.length") == 0
    assert (
        opened.evaluate(
            "[...document.querySelectorAll('*')].filter(e => [...e.attributes].some(a => /^on/.test(a.name))).length"
        )
        == 0
    )
    assert HOSTILE in texts(opened, "article h3 bdi")
    assert HOSTILE in texts(opened, ".failures .error-text bdi")
    assert [name for name in texts(opened, "table.keys bdi") if name == HOSTILE]


def test_policy_blocks_scripts(opened: Page) -> None:
    """The Content Security Policy blocks a script that was inserted into the page."""
    opened.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"document.title=1\">')")
    opened.evaluate("new Promise(done => setTimeout(done, 100))")
    assert opened.evaluate("document.title") != "1"
    assert any("Content Security Policy" in message for message in opened.console_messages())


@pytest.mark.parametrize("width", WIDTHS)
def test_fits_the_width(opened: Page, width: int) -> None:
    opened.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    opened.emulate(width)
    assert opened.evaluate("document.documentElement.scrollWidth") <= width
    assert (
        opened.evaluate(
            "Math.min(...[...document.querySelectorAll('.timeline')].map(e => e.getBoundingClientRect().width))"
        )
        > width * 0.75
    )


@pytest.mark.parametrize("width", [*PHONES, 1280])
def test_tables_break_no_words(opened: Page, width: int) -> None:
    opened.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    opened.emulate(width)
    assert opened.evaluate("document.querySelectorAll('.scroll td').length") > 100
    assert opened.evaluate(BROKEN_WORDS) == []


def shadows(browser: Page, table: str) -> tuple[bool, bool]:
    """Whether the frame of a table has a shadow on its left, and on its right. The uppermost pixels show no text."""
    frame = f"document.querySelector({table!r}).closest('.scroll')"
    browser.evaluate(f"{frame}.scrollIntoView()")
    x, y, width = browser.evaluate(
        f"(() => {{ const r = {frame}.getBoundingClientRect(); return [r.x, r.y + scrollY, r.width]; }})()"
    )
    found = []
    for left in (x, x + width - 16):
        clip = {"x": left, "y": y, "width": 16, "height": 1, "scale": 1}
        png = browser.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)["data"]
        found.append(browser.evaluate(COLORS.format(png=png)) > 4)
    return found[0], found[1]


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", PHONES)
def test_shadow_shows_that_a_table_scrolls(opened: Page, width: int, scheme: str) -> None:
    opened.emulate(width, scheme=scheme)
    scroll = "document.querySelector('table.projects').closest('.scroll').scrollLeft = {}"
    assert shadows(opened, "table.projects") == (False, True)
    opened.evaluate(scroll.format(60))
    assert shadows(opened, "table.projects") == (True, True)
    opened.evaluate(scroll.format(10000))
    assert shadows(opened, "table.projects") == (True, False)


def test_table_that_fits_has_no_shadow(opened: Page) -> None:
    assert shadows(opened, "table.projects") == (False, False)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_contrast(opened: Page, scheme: str) -> None:
    opened.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    opened.emulate(1280, scheme=scheme)
    assert opened.evaluate(CONTRAST) == []


def test_dark_light_and_print_colors(opened: Page) -> None:
    backgrounds = set()
    for scheme in SCHEMES:
        opened.emulate(1280, scheme=scheme)
        backgrounds.add(opened.evaluate("getComputedStyle(document.body).backgroundColor"))
    opened.emulate(1280, scheme="dark", media="print")
    assert len(backgrounds) == 2
    assert opened.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


@pytest.mark.parametrize("gesture", ["hover", "tap"])
def test_details_of_a_bar(opened: Page, gesture: str) -> None:
    shown = "[...document.querySelectorAll('.timeline .bar text')].filter(e => getComputedStyle(e).display != 'none').map(e => e.textContent)"
    assert opened.evaluate(shown) == []
    place = opened.evaluate(
        "(() => { const bar = document.querySelector('.timeline .bar.error rect'); bar.scrollIntoView({block: 'center'});"
        " const r = bar.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()"
    )
    if gesture == "hover":
        opened.call("Input.dispatchMouseEvent", type="mouseMoved", x=place[0], y=place[1])
    else:
        opened.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": place[0], "y": place[1]}])
        opened.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
        opened.evaluate("new Promise(done => setTimeout(done, 400))")
    (text,) = opened.evaluate(shown)
    assert " · Error · " in text or " · Error (cancelled)" in text
    opened.call("Input.dispatchMouseEvent", type="mouseMoved", x=1, y=1)


def test_accessible(opened: Page) -> None:
    """Labels, heading order, table headers, link targets and unique ids."""
    assert opened.evaluate("document.documentElement.lang") == "en"
    levels = [
        int(level) for level in opened.evaluate("[...document.querySelectorAll('h1, h2, h3')].map(e => e.tagName[1])")
    ]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in zip(levels, levels[1:]))
    assert (
        opened.evaluate("[...document.querySelectorAll('table')].filter(t => !t.querySelector('th[scope=col]')).length")
        == 0
    )
    assert (
        opened.evaluate("[...document.querySelectorAll('svg:not([aria-hidden=true]):not([aria-label])')].length") == 0
    )
    assert opened.evaluate("[...document.querySelectorAll('[role=region]')].filter(e => !e.ariaLabel).length") == 0
    assert (
        opened.evaluate(
            "[...document.querySelectorAll('a')].filter(a => !document.querySelector(a.getAttribute('href'))).length"
        )
        == 0
    )
    ids = opened.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))


class TestLarge:
    def test_size(self, large: Report) -> None:
        assert large.facts["projects"]["total"] == 1000
        assert large.facts["operations"]["total"] >= 20000
        assert large.page.stat().st_size < 5_000_000

    def test_opens_quickly(self, browser: Page, large: Report) -> None:
        browser.emulate(1280)
        seconds = browser.open(large.page)
        print(f"{large.page.stat().st_size / 1e6:.2f} MB, opened in {seconds:.2f} s")
        assert seconds < 5
        assert browser.console_messages() == []
        assert texts(browser, ".figures b")[1:3] == ["1000", str(large.facts["operations"]["total"])]

    def test_all_projects_are_shown(self, browser: Page, large: Report) -> None:
        browser.open(large.page)
        assert len(texts(browser, "table.projects tbody tr")) == 1000
        assert len(texts(browser, "article h3")) + len(texts(browser, "table.rest tbody tr")) == 1000


def test_screenshots(opened: Page, varied: Report, tmp_path: Path) -> None:
    """Take screenshots for review; pytest's option --basetemp selects the folder."""
    for width in (1280, 390):
        for scheme in SCHEMES:
            opened.emulate(width, scheme=scheme)
            opened.screenshot(tmp_path / f"{width}-{scheme}.png")
            assert (tmp_path / f"{width}-{scheme}.png").read_bytes().startswith(b"\x89PNG")
