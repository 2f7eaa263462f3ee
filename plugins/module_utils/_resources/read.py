# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The GET requests of api_request: read a resource or a complete list. Keeps P1 and P9."""

from __future__ import annotations

from .._errors import Result, will_fail
from .._http.client import SUCCESS, Client
from .._http.errors import NotFound
from .._http.pages import first_page
from .._http.response import Response
from .._lists import list_resources
from .compare import has_values
from .goal import Find, Goal, ResourceRequest, fill, is_complete, placeholders
from .journal import Journal
from .lookup import find_resource, require_array, select, shown_resource
from .observe import Observation
from .outcome import no_match, result_of
from .state import ABSENT


def read(client: Client, goal: Goal, all_pages: bool, check_mode: bool) -> Result:
    """The result of a GET request. In check mode, a resource that only an earlier task would create is a warning.

    Raises what Client raises, and ClouddbError.
    """
    request, find = goal.first, goal.find
    has_all_values = is_complete(request.segments) and has_values(request.query) and (not find or find.has_all_values)
    if check_mode and not has_all_values:
        unknown = "because a value in it is not known. An earlier task would create the resource."
        return result_of(warnings=[f"{request.line} was not sent, {unknown}"])
    if not placeholders(request.segments):
        return _get(client, goal, request, find, all_pages, check_mode)
    found, warnings = find_resource(client, goal, Journal(goal))
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
    shown = shown_resource(response.json, request)
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
