# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sends GET requests only: reads a resource or a complete list, or says what a request would do. Keeps P1 and P9."""

from __future__ import annotations

from .._http.client import SUCCESS, Client
from .._http.errors import NotFound
from .._http.response import Response
from .compare import fields_of, with_fields
from .engine import FAIL, SEND, STEPS
from .lookup import find_resource, label_of, list_resources, require_array, select
from .observe import Observation, observe, shown_resource
from .outcome import Result, no_match, result_of, will_fail
from .plan import Plan, fill, placeholders
from .state import ABSENT, BROKEN, DELETING


def read(client: Client, plan: Plan, check_mode: bool) -> Result:
    """The result of a GET request. In check mode, a resource that only an earlier task would create is a warning.

    Raises what Client raises, and ResourceError.
    """
    if check_mode and not plan.has_all_values:
        unknown = "because a value in it is not known. An earlier task would create the resource."
        return result_of(warnings=[f"{plan.request_line} was not sent, {unknown}"])
    if not placeholders(plan.segments):
        return _get(client, plan, check_mode)
    found, warnings = find_resource(client, plan, plan.find) if plan.find else (None, [])
    if found:
        by_id = plan._replace(segments=fill(plan.segments, found), find=None)
        return {**_get(client, by_id, check_mode=False), "object": found}
    if check_mode:
        return result_of(warnings=[*warnings, will_fail(plan, f"No resource matches {plan.selector}", "creates")])
    raise no_match(plan, Observation(ABSENT, None, [], warnings))


def _get(client: Client, plan: Plan, check_mode: bool) -> Result:
    """The result of a GET request for a list, or for a path without placeholders."""
    if plan.find:
        plan = plan._replace(segments=plan.find.segments, query={**plan.query, **plan.find.query})
    try:
        response = client.request("GET", plan.segments, plan.query, accept=plan.accept)
    except NotFound as error:
        if not check_mode:
            raise
        return result_of(warnings=[f"{error} In check mode, an earlier task might create the resource."])
    if (plan.find or plan.all_pages) and response.status in SUCCESS:
        return _read_list(client, plan, response)
    shown = shown_resource(response.json, plan)
    return result_of(shown, shown, json=response.json, status=response.status)


def _read_list(client: Client, plan: Plan, first: Response) -> Result:
    field = plan.find.field if plan.find else _array_in(first, plan.segments[-1])
    require_array(first, field)
    listed = list_resources(client, plan.segments, field, plan.query, first)
    rest = {name: value for name, value in first.json.items() if name != "pagination"} if field else {}
    if "unavailable_project_ids" in rest:
        rest["unavailable_project_ids"] = listed.unavailable_ids
    found, warnings = select(listed, [plan.find.match], plan) if plan.find and plan.find.match else (None, [])
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


def preview(client: Client, plan: Plan) -> Result:
    """What the task would return; sends GET requests only. A resource that would be created has the id null."""
    # Without its id, which an earlier task would have created, there is nothing to look up.
    can_look_up = plan.find is not None and plan.find.has_all_values
    seen = observe(client, plan) if can_look_up else Observation(ABSENT, None)
    step = STEPS[plan.method][seen.state] if can_look_up else SEND
    found, warnings = seen.resource, [*seen.warnings]
    if step == FAIL:
        warnings.append(will_fail(plan, f"No resource matches {plan.selector}", "creates"))
    if found and seen.state == BROKEN and step != SEND:
        warnings.append(will_fail(plan, f"The creation of {label_of(found)} has failed", "deletes"))
    is_recreated = plan.method == "POST" and seen.state == DELETING
    if step not in (SEND, FAIL) and not is_recreated:
        return result_of(found, found, warnings=warnings)
    before = None if is_recreated else found
    after = with_fields(before or {"id": None}, fields_of(plan.body, before or {})) if plan.method != "DELETE" else None
    return result_of(before, after, changed=True, request=plan.request(before), warnings=warnings)
