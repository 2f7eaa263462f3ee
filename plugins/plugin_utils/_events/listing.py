# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The project list, fetched page by page, so that projects can be polled in between."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from ...module_utils._errors import LOCKED, RequestFailed, StatusError
from ...module_utils._http.client import Client
from ...module_utils._projects import project_pages

# The fields that may change with an operation. The second one is not in api.md, but the public service sends it.
HINTS = ("updated_at", "compute_last_active_at")
# After these 4xx, the same request may succeed later.
RETRIED_STATUSES = frozenset({408, LOCKED, 429})
# So often a page is fetched before the list begins anew.
MAX_ATTEMPTS = 10


class CompleteList(NamedTuple):
    """The projects of all pages, by their ids; C(began_at) is when the first one was fetched, by the service's clock."""

    projects: dict[str, dict[str, Any]]
    unavailable_ids: set[str]
    requests: int
    began_at: datetime


class Listing:
    """Fetches the list again and again.

    A page that fails is fetched again; the list begins anew when the service rejects the request, or the page fails for long.
    """

    def __init__(self, client: Client, page_size: int | None):
        self._client = client
        self._page_size = page_size
        self._begin()

    def _begin(self) -> None:
        self._projects: dict[str, dict[str, Any]] = {}
        self._unavailable_ids: set[str] = set()
        self._requests = 0
        self._failures = 0
        self._began_at = self._client.service_now()
        self._go_on_from(None)

    def _go_on_from(self, cursor: str | None) -> None:
        self._cursor = cursor
        self._remaining = project_pages(self._client, {"cursor": cursor} if cursor else None, self._page_size)

    def fetch(self) -> CompleteList | None:
        """Fetch the next page; returns the list once all pages are fetched. Raises what Client raises."""
        try:
            page = next(self._remaining, None)
        except RequestFailed as error:
            self._failures += 1
            if _is_rejected(error) or self._failures == MAX_ATTEMPTS:
                self._begin()
            else:
                # A generator ends with its error.
                self._go_on_from(self._cursor)
            raise
        if page:
            if not self._requests:
                self._began_at = self._client.service_now()
            self._requests += 1
            self._projects.update((project["id"], project) for project in page.projects)
            self._unavailable_ids.update(page.unavailable_ids)
            self._cursor, self._failures = page.next_cursor, 0
            return None
        found = CompleteList(self._projects, self._unavailable_ids, self._requests, self._began_at)
        self._begin()
        return found


def _is_rejected(error: RequestFailed) -> bool:
    """Whether the service will not answer the same request later either, as when the cursor has expired."""
    return isinstance(error, StatusError) and 400 <= error.status < 500 and error.status not in RETRIED_STATUSES


def changed_hints(before: Mapping[str, Any], after: Mapping[str, Any]) -> frozenset[str]:
    """The hints that differ in two lists. A project that was not listed before has none."""
    return frozenset(field for field in HINTS if field in before and before[field] != after.get(field))
