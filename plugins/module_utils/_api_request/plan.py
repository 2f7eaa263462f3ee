# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a task asks for: the request, and how to find the object that it is about."""

from __future__ import annotations

import json
from collections.abc import Container, Mapping
from typing import Any, NamedTuple

from .._errors import ClouddbError, InvalidOption
from .._http.client import SUCCESS, Client, path_of
from .._http.pagination import pages
from .._http.response import Response
from .._options import query_parameters
from .._untrusted import displayable
from .compare import contains, fields_of
from .path import has_placeholder, list_segments, parse_path

Object = dict[str, Any]
MAX_NAMED = 10


class Find(NamedTuple):
    """Selects one object: from the array C(field) (None: the response itself) of the list C(segments), by the fields in C(match)."""

    segments: tuple[str, ...]
    field: str | None
    match: Mapping[str, Any]
    query: Mapping[str, Any]


class Plan(NamedTuple):
    """The request of a task; C(accept) has the statuses that are no failure."""

    method: str
    segments: tuple[str, ...]
    query: Mapping[str, Any]
    body: Mapping[str, Any] | None
    find: Find | None
    accept: Container[int]
    all_pages: bool

    @property
    def name(self) -> str:
        """For messages, for example C(POST /projects/proj-1/branches)."""
        return f"{self.method} {path_of(self.segments).replace('%7B', '{').replace('%7D', '}')}"

    def request(self) -> dict[str, Any]:
        """The request as the task's result shows it."""
        return {"method": self.method, "path": "/".join(("", *self.segments)), "query": self.query, "body": self.body}


class AmbiguousMatch(ClouddbError):
    """Several objects match C(find)."""

    kind = "ambiguous_match"


class NoMatch(ClouddbError):
    """No object matches C(find), and the request needs one."""

    kind = "no_match"


def plan_from(params: Mapping[str, Any], check_mode: bool) -> Plan:
    """The checked options. Raises InvalidOption."""
    method, body = params["method"], params["body"]
    segments = parse_path("path", params["path"], allow_missing=check_mode)
    if method == "GET" and body is not None:
        raise InvalidOption("body", "a GET request has none. Use query for parameters.")
    if method != "GET" and params["all_pages"]:
        raise InvalidOption("all_pages", "is for GET requests")
    try:
        json.dumps(body, allow_nan=False)
    except (TypeError, ValueError):
        raise InvalidOption("body", "has a value that JSON cannot express") from None
    find = _find_from(params["find"], method, segments, check_mode)
    if has_placeholder(segments) and not (find and find.match and method != "POST"):
        raise InvalidOption("path", "has a placeholder, which needs find.match, and a method other than POST")
    statuses = params["status_code"]
    return Plan(
        method,
        segments,
        query_parameters("query", params["query"]),
        body,
        find,
        SUCCESS if statuses is None else frozenset(statuses),
        params["all_pages"],
    )


def _find_from(
    options: Mapping[str, Any] | None, method: str, segments: tuple[str, ...], check_mode: bool
) -> Find | None:
    if options is None:
        return None
    if not options["match"] and method != "GET":
        raise InvalidOption("find", "match must name at least one field, such as name, with its value")
    if not check_mode and None in (options["match"] or {}).values():
        # A variable without a value, which would match objects without this field.
        raise InvalidOption("find", "match must not contain null")
    path = options["path"]
    if path is not None:
        segments = parse_path("find.path", path, allow_missing=check_mode)
    segments = list_segments(segments)
    if has_placeholder(segments) or not segments:
        raise InvalidOption("find", "path is needed, because the path of the request has a placeholder within it")
    return Find(segments, options["list"], options["match"] or {}, query_parameters("find.query", options["query"]))


class IncompleteList(ClouddbError):
    """The service could not include all objects in its list."""

    kind = "incomplete_list"


def find_objects(client: Client, find: Find, match: Mapping[str, Any] | None = None) -> list[Object]:
    """All objects of the list that match, on any page. Raises what Client raises.

    Raises IncompleteList if none matches and the service says that objects are missing.
    """
    wanted = find.match if match is None else match
    found: list[Object] = []
    unavailable: list[Any] = []
    for page in pages(client, *find.segments, field=find.field, query=find.query):
        found += [item for item in page.items if contains(item, wanted)]
        unavailable += unavailable_in(page.response)
    if unavailable and not found:
        raise incomplete(find, unavailable)
    return found


def unavailable_in(response: Response) -> list[Any]:
    """The ids of the objects that the service could not include in its list."""
    ids = response.json.get("unavailable_project_ids") if isinstance(response.json, dict) else None
    return ids if isinstance(ids, list) else []


def incomplete(find: Find, unavailable: list[Any]) -> IncompleteList:
    """The error for a list that may lack the object."""
    ids = displayable(", ".join(map(str, unavailable)))
    return IncompleteList(
        f"No object matches find, but the list {path_of(find.segments)} is incomplete. The service could not include: {ids}. Try again later."
    )


def find_object(client: Client, plan: Plan) -> Object | None:
    """The object that the task is about; None without one, or without C(find). Raises AmbiguousMatch.

    Finds also an object that has been changed already, because the change may be one of the fields it is found by.
    """
    if plan.find is None:
        return None
    found = find_objects(client, plan.find)
    if not found and plan.method in ("PATCH", "PUT"):
        fields = fields_of(plan.body, {})
        if any(field in fields for field in plan.find.match):
            found = find_objects(client, plan.find, {**plan.find.match, **fields})
    return only(found, plan)


def only(found: list[Object], plan: Plan) -> Object | None:
    """The only one of the objects, or None if there is none. Raises AmbiguousMatch."""
    if len(found) < 2:
        return found[0] if found else None
    named = ", ".join(displayable(item.get("id", item.get("name", "?")), 100) for item in found[:MAX_NAMED])
    more = f" and {len(found) - MAX_NAMED} more" if len(found) > MAX_NAMED else ""
    raise AmbiguousMatch(
        f"{plan.name} is about one object, but {len(found)} match find: {named}{more}. Add a field to find.match that only one has."
    )


def is_fulfilled(plan: Plan, found: Object | None) -> bool:
    """Whether the object shows that nothing has to be sent."""
    if plan.find is None:
        return False
    if plan.method == "DELETE":
        return found is None
    if found is None:
        return False
    return plan.method == "POST" or contains(found, fields_of(plan.body, found))
