# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A page in the Chromium of this machine, which Playwright controls. Playwright's own browsers are not downloaded."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from playwright.sync_api import Page, sync_playwright

PROGRAM = os.environ.get("CHROMIUM", "chromium")


@contextmanager
def chromium() -> Iterator[Page]:
    with (
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=shutil.which(PROGRAM) or PROGRAM) as browser,
    ):
        yield browser.new_page()


def emulate(page: Page, width: int, scheme: Literal["light", "dark"] = "light") -> None:
    """Set the width of the window in pixels, and the color scheme that the user prefers."""
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)
