# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pages of a list (api.md, Pagination object), as large as the service takes. Keeps P1 and P12."""

from __future__ import annotations

import json
from collections.abc import Container, Iterator, Mapping
from typing import Any, NamedTuple

from .._untrusted import displayable
from .client import Client
from .errors import StatusError
from .response import Response

MORE_FOLLOWS = frozenset({"has_more", "hasMore"})
# The largest C(limit) of the lists that the published API document pages, by the last segment of their path. Without it, a service
# may return ten items a page.
LARGEST = {"projects": 400, "shared": 400, "branches": 10_000, "operations": 1000}
# A limit that is refused is halved down to this one, then left out.
LEAST = 100
REFUSED_PARAMETER = frozenset({400, 422})
# Some services send a cursor with the empty page at the end, a new one each time.
MAX_EMPTY_PAGES = 3


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

    C(first) is the response of first_page(), if it has been fetched already. C(types) are the fields that each item must have,
    with their types.

    Ends without a cursor, at a cursor seen before, or at the third empty page in a row: neither a short page nor an empty one is the end.
    The caller may stop early. Raises what Client raises.
    """
    seen_ids: set[str | int] = set()
    seen_cursors: set[str] = set()
    empty_pages = 0
    response = first or first_page(client, *segments, query=query, page_size=page_size)
    while True:
        items = response.items(field, **types)
        identities = list(map(_identity, items))
        fresh = [item for identity, item in zip(identities, items) if identity not in seen_ids]
        seen_ids.update(identities)
        if "id" in types:
            fresh = list({item["id"]: item for item in fresh}.values())
        yield Page(fresh, response)
        cursor = next_cursor(response)
        empty_pages = 0 if items else empty_pages + 1
        if not cursor or cursor in seen_cursors or empty_pages == MAX_EMPTY_PAGES:
            return
        seen_cursors.add(cursor)
        response = client.get(*segments, query={**(response.request.query or {}), "cursor": cursor})


def first_page(
    client: Client,
    *segments: str | int,
    query: Mapping[str, Any] | None = None,
    page_size: int | None = None,
    accept: Container[int] | None = None,
) -> Response:
    """The response to GET C(segments) with the largest C(limit) that the service takes, unless C(page_size) or C(query) sets one.

    The client remembers a limit that the service takes instead of a larger one. C(accept): statuses that are no errors.
    """

    def fetch(query: Mapping[str, Any]) -> Response:
        if accept is None:
            return client.get(*segments, query=query)
        return client.request("GET", segments, query=query, accept=accept)

    parameters, kind = dict(query or {}), str(segments[-1])
    if page_size is not None:
        parameters["limit"] = page_size
    if "limit" in parameters or kind not in LARGEST:
        try:
            return fetch(parameters)
        except StatusError as error:
            if page_size is not None and _refuses_limit(error):
                error.add(after="The option page_size sets limit.")
            raise
    limit = client.page_limits.get(kind, LARGEST[kind])
    while limit:
        try:
            response = fetch({**parameters, "limit": limit})
        except StatusError as error:
            if not may_refuse_parameter(error):
                raise
            limit = limit // 2 if _refuses_limit(error) and limit >= 2 * LEAST else 0
        else:
            client.page_limits[kind] = limit
            return response
    response = fetch(parameters)
    client.page_limits[kind] = limit
    return response


def may_refuse_parameter(error: StatusError) -> bool:
    """Whether the error may be about a query parameter that the caller has added. One about a missing C(org_id) is not."""
    return error.status in REFUSED_PARAMETER and "org_id" not in error.details.get("message", "")


def _refuses_limit(error: StatusError) -> bool:
    return may_refuse_parameter(error) and "limit" in error.details.get("message", "").lower()


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
        if value and (name.lower().startswith("next") or name in MORE_FOLLOWS):
            raise response.unexpected(f"{displayable(name, 100)} says that more items follow, but there is no cursor")
    return None
