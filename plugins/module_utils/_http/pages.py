# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pages of a list (api.md, Pagination object). Keeps P1."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from .._untrusted import displayable
from .client import Client
from .response import Response

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

    No item is on two pages, by its C(id). If C(types) requires an C(id), no item is on a page twice.

    C(first) is the response with the first page, if it has been fetched already. C(types) are the fields that each item
    must have, with their types.

    Ends at an empty page, without a cursor, or at a cursor seen before: a short page is not the end. The caller may
    stop early. Raises what Client raises.
    """
    seen_ids: set[str | int] = set()
    seen_cursors: set[str] = set()
    parameters = dict(query or {})
    if page_size is not None:
        parameters["limit"] = page_size
    while True:
        response = first or client.get(*segments, query=parameters)
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
        parameters = {**parameters, "cursor": cursor}


def _identity(item: Mapping[str, Any]) -> str | int:
    """The id of an item; the complete item if it has none."""
    identity = item.get("id")
    return identity if isinstance(identity, (str, int)) else json.dumps(item, sort_keys=True)


def next_cursor(response: Response) -> str | None:
    """The opaque cursor of the next page, exactly as it came: C(cursor), or C(next) as the list of branches names it.

    Raises UnexpectedResponse if it is no string, or if the response says in another way that more items follow.
    """
    if not isinstance(response.json, dict):
        return None
    pagination = response.object("pagination") if response.json.get("pagination") else {}
    cursor = pagination.get("cursor")
    if cursor in (None, ""):
        cursor = pagination.get("next")
    if cursor is not None and not isinstance(cursor, str):
        raise response.unexpected("the cursor should be a string")
    if cursor:
        return cursor
    for name, value in (*pagination.items(), *response.json.items()):
        if value and (name.lower().startswith("next") or (name in MORE_FOLLOWS and value is True)):
            raise response.unexpected(f"{displayable(name, 100)} says that more items follow, but there is no cursor")
    return None
