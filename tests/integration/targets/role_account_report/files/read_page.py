# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prints the elements, attributes and texts of a report's page as JSON: read_page.py PATH"""

from __future__ import annotations

import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path


class Page(HTMLParser):
    """Collects elements, attributes and texts, and the numbers that the test checks."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.path: list[str] = []
        self.found: dict[str, list[object]] = {
            name: [] for name in ("elements", "attributes", "texts", "titles", "drawings", "figures", "labels")
        }

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found["elements"].append(tag)
        self.found["attributes"] += [name for name, _value in attrs]
        values = dict(attrs)
        if "timeline" in (values.get("class") or ""):
            self.found["drawings"].append(values.get("aria-label"))
        if tag not in ("meta", "link", "br"):
            self.path.append(" ".join(filter(None, [tag, values.get("class")])))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found["elements"].append(tag)
        self.found["attributes"] += [name for name, _value in attrs]

    def handle_endtag(self, tag: str) -> None:
        self.path.pop()

    def handle_data(self, data: str) -> None:
        self.found["texts"].append(data)
        if self.path and self.path[-1] == "title":
            self.found["titles"].append(data)
        for place, within, element in (("figures", "ul figures", "b"), ("labels", "dl labels", "dd")):
            if within in self.path and self.path[-1] == element:
                self.found[place].append(int(re.sub(r"\s", "", data)))


page = Page()
page.feed(Path(sys.argv[1]).read_text(encoding="utf-8"))
page.found["elements"] = sorted(set(map(str, page.found["elements"])))
page.found["attributes"] = sorted(set(map(str, page.found["attributes"])))
print(json.dumps(page.found))
