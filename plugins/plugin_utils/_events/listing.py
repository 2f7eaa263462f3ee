# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The project list, fetched page by page, so that projects can be polled in between."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from ...module_utils._http.client import Client
from ...module_utils._projects import ProjectPage, project_pages

# The fields that may change with an operation. The second one is not in api.md, but the public service sends it.
HINTS = ("updated_at", "compute_last_active_at")


class CompleteList(NamedTuple):
    """All pages of the list; C(began_at) is when the first one was fetched, by the service's clock."""

    projects: list[dict[str, Any]]
    unavailable_ids: list[str]
    requests: int
    began_at: datetime


class Listing:
    """Fetches the list again and again; an error begins it anew."""

    def __init__(self, client: Client, page_size: int | None):
        self._client = client
        self._page_size = page_size
        self._remaining: Iterator[ProjectPage] | None = None
        self._found: list[ProjectPage] = []
        self._began_at = client.service_now()

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
            if not self._found:
                self._began_at = self._client.service_now()
            self._found.append(page)
            return None
        self._remaining = None
        return CompleteList(
            [project for each in self._found for project in each.projects],
            [project_id for each in self._found for project_id in each.unavailable_ids],
            len(self._found),
            self._began_at,
        )


def changed_hints(before: Mapping[str, Any], after: Mapping[str, Any]) -> frozenset[str]:
    """The hints that differ in two lists. A project that was not listed before has none."""
    return frozenset(field for field in HINTS if field in before and before[field] != after.get(field))
