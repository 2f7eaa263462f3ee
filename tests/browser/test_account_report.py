# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page of the role account_report in Chromium: what only a browser can show."""

from __future__ import annotations

from pathlib import Path

import pytest
from chromium import emulate
from conftest import HOSTILE
from playwright.sync_api import Page

# Texts that are wider than their element.
CLIPPED = """
[...document.querySelectorAll('h1, h2, h3, p, li, dt, dd, summary, th, td')]
  .filter(element => element.scrollWidth > element.clientWidth + 1).map(element => element.textContent)
"""


@pytest.mark.smoke
def test_opens_and_runs_no_script(browser: Page, varied: Path) -> None:
    urls: list[str] = []
    browser.on("request", lambda request: urls.append(request.url))
    emulate(browser, 1200)
    browser.goto(varied.as_uri())
    assert browser.console_messages() == [] and browser.page_errors() == []
    assert urls == [varied.as_uri()]
    assert browser.title().startswith("Our account")
    assert browser.evaluate("document.scripts.length") == 0
    assert browser.locator("bdi").all_text_contents().count(HOSTILE) > 3
    # If an element were injected, the Content Security Policy would block its script.
    browser.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"document.title=1\">')")
    browser.wait_for_timeout(100)
    assert browser.title() != "1"
    assert any("Content Security Policy" in message.text for message in browser.console_messages())


@pytest.mark.parametrize("width", [1200, 801, 390])
def test_no_text_is_clipped(browser: Page, varied: Path, width: int) -> None:
    emulate(browser, width)
    browser.goto(varied.as_uri())
    browser.evaluate("document.querySelectorAll('details').forEach(details => details.open = true)")
    assert browser.evaluate("document.querySelectorAll('td').length") > 100
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.evaluate(CLIPPED) == []
