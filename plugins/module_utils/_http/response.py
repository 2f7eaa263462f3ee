# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A response of the service, the checks that it has the shape that api.md describes, and the pages of a list (api.md, Pagination
object). Keeps P1, P8 and P11."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from .._untrusted import displayable, is_id
from .errors import UnexpectedResponse
from .session import Request

if TYPE_CHECKING:
    from .client import Client

# The ids that are used in paths, file names, host names and events.
ID_FIELDS = ("id", "project_id", "branch_id", "endpoint_id")
MORE_FOLLOWS = frozenset({"has_more", "hasMore"})


class Response(NamedTuple):
    """The decoded JSON of a response, with what an error about it has to name."""

    json: Any
    request: Request
    attempts: int = 1
    status: int = 200

    def __repr__(self) -> str:
        return f"Response({self.request.method} {self.request.path}, ...)"  # without the JSON, which may hold a secret

    def unexpected(self, problem: str) -> UnexpectedResponse:
        """The error for a response that is not what api.md describes; C(problem) says why, without a full stop."""
        message = f"The response to {self.request.method} {self.request.path} is not what the API describes: {problem}."
        return UnexpectedResponse(message, self.request, self.attempts)

    def object(self, field: str | None = None, **types: type) -> dict[str, Any]:
        """The JSON object itself, or the one in its C(field), with fields of these types. Raises UnexpectedResponse."""
        value = self.json
        if not isinstance(value, dict):
            raise self.unexpected(f"a JSON object was expected, not {_json_type(value)}")
        if field is not None:
            value = value.get(field)
            if not isinstance(value, dict):
                raise self.unexpected(f"its field '{field}' should be an object, not {_json_type(value)}")
        return self.require(value, **types) if types else value

    def items(self, field: str | None, **types: type) -> list[dict[str, Any]]:
        """The array in C(field) (None: the response itself), whose items are objects with fields of these types.

        Raises UnexpectedResponse.
        """
        value = self.json if field is None else self.object().get(field)
        place = "the response" if field is None else f"its field '{field}'"
        if not isinstance(value, list):
            raise self.unexpected(f"{place} should be an array, not {_json_type(value)}")
        for item in value:
            self.require(item, **types)
        return value

    def require(self, item: Any, **types: type) -> dict[str, Any]:
        """The item, if it is an object whose fields named here have these types, and whose ids are ids.

        Ids that are not named here may be missing, null or empty. Raises UnexpectedResponse.
        """
        if not isinstance(item, dict):
            raise self.unexpected(f"an object was expected, not {_json_type(item)}")
        for field, wanted in types.items():
            value = item.get(field)
            if _json_type(value) != _TYPE_NAMES[wanted]:
                raise self.unexpected(f"the field '{field}' should be {_TYPE_NAMES[wanted]}, not {_json_type(value)}")
        for field in ID_FIELDS:
            value = item.get(field)
            # Those of keys are integers.
            if (value or field in types) and _json_type(value) != _TYPE_NAMES[int]:
                self.require_id(value)
        return item

    def require_id(self, value: Any) -> str:
        """The value, if it is an id. Raises UnexpectedResponse."""
        if not is_id(value):
            text = f"'{displayable(value, 100)}'" if isinstance(value, str) else _json_type(value)
            raise self.unexpected(f"an id was expected, not {text}")
        return str(value)


_TYPE_NAMES = {
    dict: "an object",
    list: "an array",
    str: "a string",
    int: "an integer",
    float: "a number",
    bool: "a boolean",
    type(None): "null",
}


def _json_type(value: Any) -> str:
    return _TYPE_NAMES[type(value)]


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
