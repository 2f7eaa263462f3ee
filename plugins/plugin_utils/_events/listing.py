# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The project list, fetched page by page, so that projects can be polled in between."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ...module_utils._http.client import Client
from ...module_utils._projects import ProjectPage, project_pages

# The fields that may change with an operation. The second one is not in api.md, but the public service sends it.
HINTS = ("updated_at", "compute_last_active_at")


class CompleteList(NamedTuple):
    """All pages of the list."""

    projects: list[dict[str, Any]]
    unavailable_ids: list[str]
    requests: int


class Listing:
    """Fetches the list again and again; an error begins it anew."""

    def __init__(self, client: Client, page_size: int | None):
        self._client = client
        self._page_size = page_size
        self._remaining: Iterator[ProjectPage] | None = None
        self._found: list[ProjectPage] = []

    def fetch(self) -> CompleteList | None:
        """Fetch the next page; returns the list once all pages are fetched. Raises what Client raises."""
        if self._remaining is None:
            self._remaining, self._found = project_pages(self._client, page_size=self._page_size), []
        try:
            page = next(self._remaining, None)
        except BaseException:
            self._remaining = None
            raise
        if page:
            self._found.append(page)
            return None
        self._remaining = None
        return CompleteList(
            [project for each in self._found for project in each.projects],
            [project_id for each in self._found for project_id in each.unavailable_ids],
            len(self._found),
        )


def hints(project: Mapping[str, Any]) -> list[Any]:
    """Values that are likely to differ when an operation of the project has changed."""
    return [project.get(field) for field in HINTS]
