# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fetches every page of a list (api.md, Pagination object), and where a list goes on after a failure. Keeps P1."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from .._errors import LOCKED, REFUSED_TEMPORARILY, RequestFailed, StatusError
from .._untrusted import displayable
from .client import Client
from .response import Response

# Items that shift while a list is fetched are repeated on a few pages. A list that repeats itself for longer never ends.
MAX_REPEATED_PAGES = 100
# After these 4xx, the same request may succeed later.
RETRIED_STATUSES = frozenset({408, LOCKED, 429})
# A page that has failed this many times may have an invalid cursor.
MAX_FAILURES = 10
MORE_FOLLOWS = frozenset({"has_more", "hasMore"})


class Page(NamedTuple):
    """One page: the items that no earlier page had, and the complete response."""

    items: list[dict[str, Any]]
    response: Response


def pages(
    client: Client,
    *segments: str | int,
    field: str | None,
    query: Mapping[str, Any] | None = None,
    page_size: int | None = None,
    first: Response | None = None,
    **types: type,
) -> Iterator[Page]:
    """Yields the pages of the array C(field) (None: the response itself) of GET C(segments).

    Each object is on one page only, by its C(id); within a page, an id that C(types) requires occurs once.

    C(first) is the response with the first page, if it has been fetched already. C(types) are the fields that each object
    must have, with their types.

    Ends at an empty page, without a cursor, or at a cursor seen before: a short page is not the end. The caller may
    stop early. Raises what Client raises, and UnexpectedResponse if page after page repeats items: the list is not
    complete then.
    """
    seen_ids: set[str | int] = set()
    seen_cursors: set[str] = set()
    cursor: str | None = None
    repeated_pages = 0
    while True:
        paging = {"limit": page_size, "cursor": cursor}
        response = first or client.get(
            *segments, query={**(query or {}), **{name: value for name, value in paging.items() if value is not None}}
        )
        first = None
        items = response.items(field, **types)
        identities = list(map(_identity, items))
        fresh = [item for identity, item in zip(identities, items) if identity not in seen_ids]
        seen_ids.update(identities)
        if "id" in types:
            fresh = list({item["id"]: item for item in fresh}.values())
        yield Page(fresh, response)
        cursor = next_cursor(response)
        if not items or not cursor or cursor in seen_cursors:
            return
        seen_cursors.add(cursor)
        repeated_pages = 0 if fresh else repeated_pages + 1
        if repeated_pages == MAX_REPEATED_PAGES:
            raise response.unexpected(
                f"{repeated_pages} pages in a row repeat items of earlier pages, and another page follows"
            )


def _identity(item: Mapping[str, Any]) -> str | int:
    """The id of an object; the complete object if it has none."""
    identity = item.get("id")
    return identity if isinstance(identity, (str, int)) else json.dumps(item, sort_keys=True)


def next_cursor(response: Response) -> str | None:
    """The opaque cursor of the next page, exactly as it came: C(cursor), or C(next) as the list of branches names it.

    Raises UnexpectedResponse if it is no string, or if the response says in another way that more items follow.
    """
    if not isinstance(response.json, dict):
        return None
    pagination = response.object("pagination") if response.json.get("pagination") else {}
    cursor = pagination.get("next") if pagination.get("cursor") in (None, "") else pagination["cursor"]
    if cursor is not None and not isinstance(cursor, str):
        raise response.unexpected("the cursor should be a string")
    for name, value in [*pagination.items(), *response.json.items()] if not cursor else []:
        if value and (name.lower().startswith("next") or (name in MORE_FOLLOWS and value is True)):
            raise response.unexpected(f"{displayable(name, 100)} says that more items follow, but there is no cursor")
    return cursor


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
