# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The project list, fetched page by page, so that projects can be polled in between. Keeps P1."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any, NamedTuple

from ...module_utils._errors import LOCKED, REFUSED_TEMPORARILY, RequestFailed, StatusError
from ...module_utils._http.client import Client
from ...module_utils._projects import project_pages
from .options import SourceOptions
from .schedule import GROWTH

# The project list takes at most this share of the requests, unless no project is to be polled.
SHARE_OF_PROJECT_LIST = 1 / 10
# After these 4xx, the same request may succeed later.
RETRIED_STATUSES = frozenset({408, LOCKED, 429})
# A page that has failed this many times may have an invalid cursor.
MAX_FAILURES = 10


class ListPosition(NamedTuple):
    """The next page of a list: its cursor, None for the first page, and how often it has failed, other than by a refusal."""

    cursor: str | None = None
    failures: int = 0

    def after_failure(self, error: RequestFailed) -> ListPosition:
        """The same page; the first one if the service rejects this one, or it has failed MAX_FAILURES times."""
        # A request that the service refuses for now says nothing about the cursor.
        if isinstance(error, StatusError) and error.status in REFUSED_TEMPORARILY:
            return self
        failures = self.failures + 1
        return ListPosition() if is_rejected(error) or failures == MAX_FAILURES else self._replace(failures=failures)


def is_rejected(error: RequestFailed) -> bool:
    """Whether the same request will be rejected again, as when its cursor has expired."""
    return isinstance(error, StatusError) and 400 <= error.status < 500 and error.status not in RETRIED_STATUSES


class CompleteList(NamedTuple):
    """The projects of all pages, by their ids; C(began_at) is when the first one was fetched, by the service's clock."""

    projects: dict[str, dict[str, Any]]
    unavailable_ids: set[str]
    began_at: datetime


class Listing:
    """Fetches the list again and again.

    A page that fails is fetched again; the list begins anew when the service rejects the request, or the page fails for long.
    A list begins every C(max_interval) seconds, or less often, because one of ten requests at most is for the list. C(due) is the
    moment when the next page is to be fetched, infinite while one is.
    """

    def __init__(self, client: Client, options: SourceOptions):
        self._client = client
        self._options = options
        self._clock = client.clock
        self._requested_at = self._list_requested_at = self.due = self._clock.monotonic()
        self._failures = 0
        self._begin()

    def _begin(self) -> None:
        self._projects: dict[str, dict[str, Any]] = {}
        self._unavailable_ids: set[str] = set()
        self._has_begun = False
        self._began_at = self._client.service_now()
        self._go_on_from(ListPosition())

    def _go_on_from(self, position: ListPosition) -> None:
        self._position = position
        query = {**self._options.query, **({"cursor": position.cursor} if position.cursor else {})}
        self._remaining = project_pages(self._client, query, self._options.page_size)

    def start(self) -> None:
        """Call fetch() now, and page_ended() or page_failed() afterwards."""
        self._requested_at, self.due = self._clock.monotonic(), math.inf
        if not self._has_begun:
            self._list_requested_at = self._requested_at

    def page_ended(self, is_complete: bool, is_alone: bool) -> None:
        """Set when the next page is due; at once if no project is to be polled, so that C(is_alone) is set."""
        seconds = 60 / self._options.requests_per_minute / SHARE_OF_PROJECT_LIST
        self.due = self._requested_at if is_alone else self._requested_at + seconds
        if is_complete:
            self.due = max(self._requested_at + seconds, self._list_requested_at + self._options.max_interval)

    def page_failed(self) -> None:
        """Set when the page is fetched again."""
        # The exponent is bounded because a float overflows.
        seconds = self._options.interval * GROWTH ** min(self._failures, MAX_FAILURES)
        self.due = self._clock.monotonic() + min(seconds, self._options.max_interval)

    def fetch(self) -> CompleteList | None:
        """Fetch the next page; returns the list once all pages are fetched. Raises what Client raises."""
        try:
            page = next(self._remaining, None)
        except RequestFailed as error:
            self._failures += 1
            position = self._position.after_failure(error)
            if position.cursor:
                # A generator ends with its error.
                self._go_on_from(position)
            else:
                self._begin()
            raise
        if page:
            if not self._has_begun:
                self._began_at = self._client.service_now()
            self._has_begun = True
            self._projects.update((project["id"], project) for project in page.projects)
            self._unavailable_ids.update(page.unavailable_ids)
            self._position = ListPosition(page.next_cursor)
            self._failures = 0
            return None
        found = CompleteList(self._projects, self._unavailable_ids, self._began_at)
        self._begin()
        return found
