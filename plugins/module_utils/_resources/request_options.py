# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of api_request: which are refused, and the goal that they describe. Keeps P2, P3, P8, P9 and P11."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from .._errors import InvalidOption
from .._http.client import SUCCESS
from .._http.message import REFUSED
from .._lists import similar
from .._options import as_text, query_parameters
from .compare import contains, fields_of, has_values, selects
from .goal import (
    CHANGE,
    CREATE,
    DELETE,
    PLACEHOLDER,
    READ,
    Find,
    Goal,
    ResourceRequest,
    is_complete,
    placeholders,
)

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
    fitting = {
        name: wrappers[name]
        for name in wrappers
        if {plural, last_segment} & {f"{name}s", f"{name}es", f"{name[:-1]}ies"}
    }
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
    if match and not check_mode and not selects(match):
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
