# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads a paged list to its end (api.md, Pagination object)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from .._options import is_path_segment
from .client import Client
from .response import Response

# Items that shift while a list is read come again, on a few pages. A list that only repeats itself for so long never ends.
MAX_PAGES_WITHOUT_NEWS = 100


class Page(NamedTuple):
    """One page: the items not seen on an earlier one, and the whole answer that brought them."""

    items: list[dict[str, Any]]
    response: Response


def pages(
    client: Client,
    *segments: str,
    field: str,
    query: Mapping[str, Any] | None = None,
    page_size: int | None = None,
    **types: type,
) -> Iterator[Page]:
    """Page by page, the objects in C(field) of the answers to GET C(segments), each once by its string C(id).

    C(types) are further fields that each object must have.

    Ends at an empty page, without a cursor, or at a cursor seen before: a short page is not the end. The caller may
    stop early. Raises what Client raises, and UnexpectedResponse when page after page brings only items seen before; then
    nothing read so far is the whole list.
    """
    seen_ids: set[str] = set()
    seen_cursors: set[str] = set()
    cursor: str | None = None
    pages_without_news = 0
    while True:
        paging = {"limit": page_size, "cursor": cursor}
        response = client.get(
            *segments, query={**(query or {}), **{name: value for name, value in paging.items() if value is not None}}
        )
        items = response.items(field, id=str, **types)
        for item in items:
            if not is_path_segment(item["id"]):
                raise response.unexpected(f"{item['id']!r} can't be an id")
        fresh = list({item["id"]: item for item in items if item["id"] not in seen_ids}.values())
        seen_ids.update(item["id"] for item in fresh)
        yield Page(fresh, response)
        cursor = _next_cursor(response)
        if not items or not cursor or cursor in seen_cursors:
            return
        seen_cursors.add(cursor)
        pages_without_news = 0 if fresh else pages_without_news + 1
        if pages_without_news == MAX_PAGES_WITHOUT_NEWS:
            raise response.unexpected(
                f"{pages_without_news} pages in a row hold only items of earlier pages, and another page is to follow"
            )


def _next_cursor(response: Response) -> str | None:
    """The opaque cursor, exactly as it came."""
    if not response.object().get("pagination"):
        return None
    cursor = response.object("pagination").get("cursor")
    if cursor is not None and not isinstance(cursor, str):
        raise response.unexpected("the cursor should be a string")
    return cursor
