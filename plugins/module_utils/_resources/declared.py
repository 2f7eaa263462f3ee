# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Brings a resource with a module of its own to the state that its options declare. Keeps P2, P3, P9 and P11."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from .._errors import ClouddbError, InvalidOption
from .._http.client import Client
from .._http.errors import RequestFailed, StatusError
from .._operations.wait import WAIT_OPTIONS, Limits, limits_from
from .._options import NOT_CREATED_ID
from .engine import Engine
from .goal import CHANGE, CREATE, DELETE, ENSURE, Find, Goal, ResourceRequest
from .kinds import Kind
from .outcome import Result, result_of
from .parents import ResourceNotFound, branch_id_from, project_id_from, query_of
from .preview import preview

# Statuses of requests whose fields or resource the service does not accept.
REFUSALS = frozenset({400, 403, 404, 409, 412, 422})
STATE_OPTIONS: dict[str, dict[str, Any]] = {
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "wait": {"type": "bool", "default": True},
    **WAIT_OPTIONS,
}


def declare(kind: Kind, params: Mapping[str, Any], client: Client, check_mode: bool) -> Result:
    """The result of the module about this kind of resource. Raises what the engine of api_request raises, and ResourceNotFound."""
    limits, is_present = limits_from(params), params["state"] == "present"
    try:
        goal = _goal(kind, params, client, may_be_missing=check_mode and is_present)
        result = reach(kind, goal, client, None if check_mode else limits)
        if goal.find and NOT_CREATED_ID in goal.find.segments[1:2] and params["project"] != NOT_CREATED_ID:
            problem = f"project: there is no project '{params['project']}'"
            result["warnings"].append(f"{problem}. Unless an earlier task creates it, this task will fail.")
    except ResourceNotFound as error:
        if is_present:
            raise
        result = result_of(warnings=[f"{error} So there is nothing to delete."])
    except ClouddbError as error:
        error.result = module_result(kind, error.result)
        raise
    return module_result(kind, result)


def reach(kind: Kind, goal: Goal, client: Client, limits: Limits | None, elapsed: float = 0.0) -> Result:
    """The engine's result; without C(limits), that of check mode. C(elapsed) seconds of the timeout have passed.

    Raises what the engine raises, or a clearer error if the service's lists show why it refuses the request.
    """
    if limits is None:
        result = preview(client, goal)
        if result["changed"] and (refused := _refusal(kind, client, goal, result["request"]["body"])):
            raise refused
        return result
    try:
        return Engine(client, goal, limits, elapsed=elapsed).run()
    except StatusError as error:
        request = error.request
        is_refused = request.method != "GET" and error.status in REFUSALS
        if is_refused and (refused := _refusal(kind, client, goal, request.body)):
            refused.details = {**error.details, **refused.details}
            raise refused from error
        raise


def _refusal(kind: Kind, client: Client, goal: Goal, body: Mapping[str, Any] | None) -> ClouddbError | None:
    """The error for a request that the service's lists show to be refused; None if they do not, or cannot be fetched."""
    if kind.refusal is None or goal.find is None or not goal.find.has_all_values:
        return None
    try:
        return kind.refusal(client, goal.find, body)
    except RequestFailed:
        return None


def _goal(kind: Kind, params: Mapping[str, Any], client: Client, may_be_missing: bool) -> Goal:
    """The goal that the options describe. With C(may_be_missing), an earlier task would create what the resource belongs to."""
    segments, query = _list_of(kind, params, client, may_be_missing)
    match = {"name": params["name"]}
    if params.get("id"):
        match = {"id": None if params["id"] == NOT_CREATED_ID else params["id"]}
    find = Find(segments, kind.plural, match, query, " and ".join(match))
    if params["state"] == "absent":
        return deletion(kind, find, params["wait"])
    fields = {field: params[option] for option, field in kind.fields.items() if params.get(option) is not None}
    if "parent_id" in fields:
        fields["parent_id"] = branch_id_from(fields["parent_id"], client, segments[1], may_be_missing, "parent")
    ages = {field for field, value in fields.items() if isinstance(value, timedelta)}
    for option, field in kind.fields.items():
        if isinstance(fields.get(field), (datetime, timedelta)):
            fields[field] = _future_time(option, fields[field], client.service_now())
    changes = {kind.wrapper: {name: fields[name] for name in kind.changeable.values() if name in fields}}
    requests = {
        CREATE: ResourceRequest("POST", segments, {kind.wrapper: {**match, **fields}, **kind.rest}),
        CHANGE: ResourceRequest("PATCH", _item(kind, segments), changes),
    }
    if "id" in match:
        del requests[CREATE]
    return Goal(
        CHANGE if "id" in match else ENSURE,
        requests,
        find,
        params["wait"],
        options={field: option for option, field in kind.fields.items()},
        fixed={name: fields[name] for name in kind.fixed.values() if name in fields},
        once=ages,
    )


def deletion(kind: Kind, find: Find, wait: bool) -> Goal:
    """The goal that the resource is gone."""
    return Goal(DELETE, {DELETE: ResourceRequest("DELETE", _item(kind, find.segments))}, find, wait)


def _item(kind: Kind, segments: Sequence[str]) -> tuple[str, ...]:
    return (*segments, f"{{{kind.key}}}")


def _list_of(
    kind: Kind, params: Mapping[str, Any], client: Client, may_be_missing: bool
) -> tuple[tuple[str, ...], dict[str, Any]]:
    """The path of the list of this kind, and its query parameters."""
    if not kind.parents:
        return (kind.plural,), query_of(params)
    project_id = str(project_id_from(params, client, may_be_missing))
    parents = ["projects", project_id]
    if "branch" in kind.parents:
        parents += ["branches", branch_id_from(params["branch"], client, project_id, may_be_missing)]
    return (*parents, kind.plural), {}


def _future_time(option: str, value: datetime | timedelta, now: datetime) -> str:
    """The time in this option, or after the age in it, as the service takes it. Raises InvalidOption for one in the past."""
    try:
        time = now.replace(microsecond=0) + value if isinstance(value, timedelta) else value
    except OverflowError:
        raise InvalidOption(option, "is too long an age. Set a shorter one.") from None
    if time <= now:
        raise InvalidOption(option, f"must be in the future, and it is {now:%Y-%m-%dT%H:%M:%SZ} now")
    return time.isoformat().replace("+00:00", "Z")


def module_result(kind: Kind, result: Result) -> Result:
    """The result of the module for one of the engine, even one of an error."""
    left_out = ("json", "status", "polls", "request")
    return {kind.result if name == "object" else name: result[name] for name in result if name not in left_out}
