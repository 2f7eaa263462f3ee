# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds the broken links of a built site.

It checks links within the site, including anchors, and links to files of the repository, which must exist in the
checkout. It does not check links to other hosts, because the build works without a network. Sphinx's linkcheck checks
only the latter.
"""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

REPOSITORY = "https://github.com/clouddb/ansible-control/blob/main/"


class PageParser(HTMLParser):
    """The links and the anchors of one page."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.add(value)
            elif name in ("id", "name") and value:
                self.anchors.add(value)


def broken_links(site: Path, checkout: Path) -> list[str]:
    """The broken links, each with its page."""
    pages = {page.resolve(): PageParser(page) for page in sorted(site.rglob("*.html"))}
    return [
        f"{page.relative_to(site.resolve())}: {link}"
        for page, parsed in pages.items()
        for link in sorted(parsed.links)
        if not _exists(link, page, pages, checkout)
    ]


def _exists(link: str, page: Path, pages: dict[Path, PageParser], checkout: Path) -> bool:
    if link.startswith(REPOSITORY):
        return (checkout / unquote(urlsplit(link.removeprefix(REPOSITORY)).path)).exists()
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return True
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if target in pages:
        return not parts.fragment or unquote(parts.fragment) in pages[target].anchors
    return target.is_file()
