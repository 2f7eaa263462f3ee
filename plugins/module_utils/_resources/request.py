# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The requests of api_request: which options are refused, the goal that they describe, and its GET requests.

Keeps P1, P2, P3, P8, P9 and P11.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from .._errors import InvalidOption, Result, will_fail
from .._http.client import SUCCESS, Client
from .._http.errors import NotFound
from .._http.message import REFUSED
from .._http.pages import first_page
from .._http.response import Response
from .._lists import list_resources, similar
from .._options import as_text, query_parameters
from .goal import (
    CHANGE,
    CREATE,
    DELETE,
    PLACEHOLDER,
    READ,
    Find,
    Goal,
    ResourceRequest,
    fields_of,
    fill,
    has_values,
    is_complete,
    placeholders,
    selects,
)
from .lookup import find_resource, require_array, select
from .state import ABSENT, Observation, contains
from .task import no_match, result_of

INTENTS = {"GET": READ, "POST": CREATE, "PATCH": CHANGE, "PUT": CHANGE, "DELETE": DELETE}
# What a path must not begin with or contain, and why.
_REFUSED_PATHS = {
    r"[A-Za-z][A-Za-z0-9+.-]*:|//": "must be a path below base_url, such as projects/ID/branches, without scheme and host",
    r"/?api/v\d+(/|$)": "must be a path below base_url. Leave out /api and the version, which base_url ends with.",
    r".*[?#]": "must not contain '?' or '#'. Use query for the query parameters.",
    r"(.*/)?\.\.?(/|$)": "must not contain the segments '.' and '..'",
}


def goal_from(params: Mapping[str, Any], check_mode: bool) -> Goal:
    """The goal that the checked options describe. Raises InvalidOption."""
    method, body = params["method"], params["body"]
    segments = parse_path("path", params["path"], allow_missing=check_mode)
    if method == "GET" and body is not None:
        raise InvalidOption("body", "a GET request has none. Use query for parameters.")
    if method in ("PATCH", "PUT") and not fields_of(body, {}):
        raise InvalidOption("body", f"is required. A {method} request without one changes nothing.")
    if method != "GET" and params["all_pages"]:
        raise InvalidOption("all_pages", "requires method: GET. Omit it for other methods.")
    find = _find_from(params["find"], method, segments, check_mode)
    if method == "POST" and find:
        _require_match_in_body(find, segments[-1], body or {})
    if placeholders(segments) and not (find and find.match and method != "POST"):
        raise InvalidOption("path", "the placeholder {id} requires find.match, and a method other than POST.")
    if find and method in ("PATCH", "PUT", "DELETE") and find.segments == segments:
        raise InvalidOption("path", "is that of the list. Add the id of the resource, as in branches/{id}.")
    statuses = params["status_code"]
    unclear = sorted(set(statuses or ()).difference(SUCCESS, REFUSED))
    if unclear and method != "GET":
        # Such a response would hide that something was created or changed.
        problem = f"{unclear[0]} does not tell whether the service has carried out a {method} request. Remove it."
        raise InvalidOption("status_code", problem)
    query = query_parameters("query", params["query"], allow_missing=check_mode)
    request = ResourceRequest(method, segments, body, query, frozenset(statuses or SUCCESS))
    return Goal(INTENTS[method], {INTENTS[method]: request}, find, params["wait"])


def _require_match_in_body(find: Find, last_segment: str, body: Mapping[str, Any]) -> None:
    """Raise InvalidOption if the resource that C(body) describes would not match: each run would create another one.

    The fields of C(match) are in a wrapper that fits the list, such as C(branch) for C(branches). Where the list is the
    response itself, as that of API keys, the body has no wrapper, and may name the fields differently.
    """
    if not body:
        raise InvalidOption("body", "is required to create a resource.")
    wrappers = {name: value for name, value in body.items() if isinstance(value, Mapping)}
    plural = find.field or last_segment
    fitting = {name: wrappers[name] for name in wrappers if {plural, last_segment} & {f"{name}s", f"{name}es"}}
    if not fitting and (find.field or wrappers):
        raise _not_the_wrapper([*(wrappers or body)], plural)
    for name, wanted in find.match.items():
        values = [fields[name] for fields in fitting.values() if name in fields]
        if not fitting:
            values = [body[name]] if name in body else [*body.values()]
        if not values:
            wrapper, fields = next(iter(fitting.items()))
            problem = f"lacks {name}, which find.match has. It has: {', '.join(fields) or 'none'}."
            raise InvalidOption(f"body.{wrapper}", problem)
        # In check mode, a value may be null, because an earlier task would provide it.
        if has_values(wanted) and not any(contains(value, wanted) for value in values):
            problem = f"match and body have different values of {name}, so each run would create a resource"
            raise InvalidOption("find", f"{problem}. Use the same value in both.")


def _not_the_wrapper(names: Sequence[str], plural: str) -> InvalidOption:
    """The error if the body has these fields, but none that fits the list C(plural)."""
    near = {name: found[0] for name in names if (found := similar(name, (plural[:-1], plural[:-2])))}
    name = next(iter(near), names[0])
    advice = f"Did you mean {near[name]}?" if near else "Put the fields of the resource into its wrapper."
    return InvalidOption("body", f"'{name}' is not the wrapper of a resource in {plural}. {advice}")


def _find_from(
    options: Mapping[str, Any] | None, method: str, segments: tuple[str, ...], check_mode: bool
) -> Find | None:
    if options is None:
        return None
    match = options["match"] or {}
    if not match and method != "GET":
        raise InvalidOption("find", "match must name at least one field, such as name, with its value")
    if match and not selects(match, may_be_missing=check_mode):
        # A variable without a value, which would match resources without this field. Before ansible-core 2.19, null becomes "".
        raise InvalidOption(
            "find", "match must not contain null, an empty text, an empty dictionary or an empty list, at any depth"
        )
    _require_texts(match)
    if options["path"] is not None:
        segments = parse_path("find.path", options["path"], allow_missing=check_mode)
    # The path of a resource is that of its list and a placeholder.
    segments = segments[:-1] if PLACEHOLDER.fullmatch(segments[-1]) else segments
    if placeholders(segments) or not segments:
        raise InvalidOption("find", "path is needed, because the path of the request has a placeholder within it")
    return Find(segments, options["list"], match, query_parameters("find.query", options["query"], check_mode))


def _require_texts(match: Mapping[str, Any]) -> None:
    """Raise InvalidOption for a number or a boolean in a field that names a resource. Other fields may have such values."""
    for field, value in match.items():
        if isinstance(value, Mapping):
            _require_texts(value)
        elif value is not None and f"_{field}".endswith(("_id", "_name")):
            as_text("find", value, f"match.{field}")


def parse_path(option: str, text: str, allow_missing: bool = False) -> tuple[str, ...]:
    """The segments of a path below base_url, not encoded. Raises InvalidOption.

    A segment without a value comes from a variable without one. With C(allow_missing) it is accepted: in check mode, the
    resource that an earlier task would create has no id.
    """
    for pattern, problem in _REFUSED_PATHS.items():
        if re.match(pattern, text.strip(), re.DOTALL):
            raise InvalidOption(option, problem)
    segments = tuple(text.strip().removeprefix("/").split("/"))
    if not allow_missing and not is_complete(segments):
        raise InvalidOption(option, f"'{text}' has an empty segment. A variable in it probably has no value.")
    return segments


# GET requests


def read(client: Client, goal: Goal, all_pages: bool, check_mode: bool) -> Result:
    """The result of a GET request. In check mode, a resource that only an earlier task would create is a warning.

    Raises what Client raises, and ClouddbError.
    """
    request, find = goal.first_request, goal.find
    has_all_values = is_complete(request.segments) and has_values(request.query) and (not find or find.has_all_values)
    if check_mode and not has_all_values:
        unknown = "because a value in it is not known. An earlier task would create the resource."
        return result_of(warnings=[f"{request.line} was not sent, {unknown}"])
    if not placeholders(request.segments):
        return _get(client, goal, request, find, all_pages, check_mode)
    found, warnings = find_resource(client, goal)
    if found:
        by_id = request._replace(segments=fill(request.segments, found))
        return {**_get(client, goal, by_id, None, all_pages, check_mode=False), "object": found}
    if check_mode:
        return result_of(warnings=[*warnings, will_fail(f"No resource matches {goal.selector}")])
    raise no_match(goal, Observation(ABSENT, None, [], warnings))


def _get(
    client: Client, goal: Goal, request: ResourceRequest, find: Find | None, all_pages: bool, check_mode: bool
) -> Result:
    """The result of a GET request for a list, or for a path without placeholders."""
    if find:
        request = request._replace(segments=find.segments, query={**request.query, **find.query})
    try:
        if find or all_pages:
            response = first_page(client, *request.segments, query=request.query, accept=request.accept)
        else:
            response = client.request("GET", request.segments, request.query, accept=request.accept)
    except NotFound as error:
        if not check_mode:
            raise
        return result_of(warnings=[f"{error} In check mode, an earlier task might create the resource."])
    if (find or all_pages) and response.status in SUCCESS:
        return _read_list(client, goal, request, find, response)
    shown = request.resource_in(response.json)
    return result_of(shown, shown, json=response.json, status=response.status)


def _read_list(client: Client, goal: Goal, request: ResourceRequest, find: Find | None, first: Response) -> Result:
    field = find.field if find else _array_in(first, request.segments[-1])
    require_array(first, field)
    listed = list_resources(client, request.segments, field, request.query, first)
    rest = {name: value for name, value in first.json.items() if name != "pagination"} if field else {}
    if "unavailable_project_ids" in rest:
        rest["unavailable_project_ids"] = listed.unavailable_ids
    found, warnings = select(listed, [find.match], goal) if find and find.match else (None, [])
    json = {**rest, field: listed.items} if field else listed.items
    return result_of(found, found, json=json, status=first.status, warnings=warnings + listed.warnings)


def _array_in(response: Response, name: str) -> str | None:
    """The field of the list: the array of this name, or the only one; None if the response itself is it. Raises UnexpectedResponse."""
    if isinstance(response.json, list):
        return None
    arrays = [field for field, value in response.object().items() if isinstance(value, list)]
    if name in arrays or len(arrays) != 1:
        # If there is no array of this name, the error says which there are.
        return name
    return arrays[0]
