# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fetches an object or a complete list."""

from __future__ import annotations

from .._http.client import Client
from .._http.pagination import pages
from .._http.response import Response
from .compare import contains
from .lookup import find_object, ids_of, incomplete, is_incomplete, no_match, object_in, single_object, unavailable_in
from .outcome import Outcome
from .path import fill, has_placeholder
from .plan import Object, Plan


def fetch(client: Client, plan: Plan) -> Outcome:
    """The response to a GET request; with C(all_pages) or C(find) the complete list.

    For a path with a placeholder, C(find) only selects the object that takes its place. Raises NoMatch without one.
    """
    if plan.find and has_placeholder(plan.segments):
        found = find_object(client, plan)
        if found is None:
            raise no_match(plan)
        outcome = fetch(client, plan._replace(segments=fill(plan.segments, found), find=None))
        return outcome._replace(object=found)
    if plan.find is None and not plan.all_pages:
        response = client.request("GET", plan.segments, plan.query, accept=plan.accept)
        return Outcome(False, response.json, response.status, object_in(response, plan))
    first: Response | None = None
    if plan.find:
        segments, field, query = plan.find.segments, plan.find.field, {**plan.query, **plan.find.query}
    else:
        segments, query = plan.segments, dict(plan.query)
        first = client.get(*segments, query=query)
        field = _array_in(first, segments[-1])
    items: list[Object] = []
    unavailable: set[str] = set()
    responses: list[Response] = []
    for page in pages(client, *segments, field=field, query=query, first=first):
        responses = responses or [page.response]
        items += page.items
        unavailable |= unavailable_in(page.response)
    unavailable -= ids_of(items)
    [first] = responses
    rest = {name: value for name, value in first.json.items() if name != "pagination"} if field else {}
    if "unavailable_project_ids" in rest or unavailable:
        rest["unavailable_project_ids"] = sorted(unavailable)
    found = None
    if plan.find and plan.find.match:
        found = single_object([item for item in items if contains(item, plan.find.match)], plan)
        if found is None and unavailable:
            raise incomplete(plan.find, unavailable)
    warnings = [f"The list {is_incomplete(segments, unavailable)}"] if unavailable else []
    return Outcome(False, {**rest, field: items} if field else items, first.status, found, warnings=warnings)


def _array_in(response: Response, name: str) -> str | None:
    """The field of the list: the array of this name, or the only one; None if the response itself is it. Raises UnexpectedResponse."""
    if isinstance(response.json, list):
        return None
    arrays = [field for field, value in response.object().items() if isinstance(value, list)]
    if name in arrays:
        return name
    if len(arrays) != 1:
        names = f"these arrays: {', '.join(arrays)}" if arrays else "no array"
        raise response.unexpected(f"a list was expected, but it has {names}. Name the list in find.list")
    return arrays[0]
