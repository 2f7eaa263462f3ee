# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Brings a resource with a module of its own to the state that its options declare. Keeps P2, P3, P9 and P11."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from .._errors import ClouddbError, InvalidOption, Result, will_fail
from .._http.client import Client
from .._http.errors import RequestFailed, StatusError
from .._lists import ResourceNotFound
from .._operations.wait import WAIT_OPTIONS, Limits, limits_from
from .._options import NOT_CREATED_ID
from .._projects import add_organizations, project_id_from, query_of
from .compare import contains
from .engine import Engine
from .goal import ACT, CHANGE, CREATE, DELETE, ENSURE, Find, Goal, ResourceRequest
from .kinds import Action, Kind
from .lookup import branch_id_from
from .outcome import result_of
from .preview import preview
from .refusals import Refusal

# Statuses of requests whose fields or resource the service does not accept.
REFUSALS = frozenset({400, 403, 404, 409, 412, 422})
ACTION_OPTIONS: dict[str, dict[str, Any]] = {"wait": {"type": "bool", "default": True}, **WAIT_OPTIONS}
STATE_OPTIONS: dict[str, dict[str, Any]] = {
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    **ACTION_OPTIONS,
}


def declare(kind: Kind, params: Mapping[str, Any], client: Client, check_mode: bool) -> Result:
    """The result of the module about this kind of resource. Raises what the engine of api_request raises, and ResourceNotFound."""
    limits, is_absent = limits_from(params), params["state"] == "absent"
    used = None if check_mode else limits
    result = result_of()
    try:
        find, values = _find(kind, params, client, may_be_missing=check_mode and not is_absent)
        result = reach(kind, _goal(kind, find, values, params), client, used)
        for action in _further_actions(kind, params, result):
            goal = _action(kind, find, action, values, params["wait"])
            if check_mode and result["object"].get("id", "") is None:
                result["object"] = {**result["object"], **(action.sets or {})}
            else:
                result = _together(result, reach(kind, goal, client, used, result["elapsed"]))
        result["warnings"] += missing_project(find.segments, params)
    except ResourceNotFound as error:
        if not is_absent:
            raise
        result = result_of(warnings=[f"{error} So there is nothing to delete."])
    except ClouddbError as error:
        if not kind.parents:
            add_organizations(error, client)
        error.result = module_result(kind, error.result)
        if result["changed"]:
            error.result["changed"] = True
        raise
    return module_result(kind, result)


def _further_actions(kind: Kind, params: Mapping[str, Any], result: Result) -> list[Action]:
    """The actions that options ask for beside the state, if what the task has done does not include them."""
    is_absent = params["state"] == "absent"
    asked = [action for option, action in kind.actions.items() if params.get(option) and not is_absent]
    is_new = result["changed"] and not result["diff"]["before"]
    return [each for each in asked if not (is_new if each.sets is None else contains(result["object"], each.sets))]


def _together(first: Result, second: Result) -> Result:
    """The result of a task that needed two goals."""
    operations = {each["id"]: each for each in [*first["operations"], *second["operations"]]}
    return {
        **second,
        "changed": first["changed"] or second["changed"],
        "operations": list(operations.values()),
        "diff": {side: {**first["diff"][side], **second["diff"][side]} for side in ("before", "after")},
        "warnings": first["warnings"] + second["warnings"],
    }


def reach(kind: Kind, goal: Goal, client: Client, limits: Limits | None, elapsed: float = 0.0) -> Result:
    """The engine's result; without C(limits), that of check mode. C(elapsed) seconds of the timeout have passed.

    Raises what the engine raises, or a clearer error if the service's lists show why it refuses the request.
    """
    if limits is None:
        result = preview(client, goal)
        if result["changed"] and (refused := _refusal(kind, client, goal, result["request"]["body"])):
            if not refused.remedy:
                raise refused.error
            result["warnings"].append(will_fail(refused.error, refused.remedy))
        return result
    try:
        return Engine(client, goal, limits, elapsed=elapsed).run()
    except StatusError as error:
        request = error.request
        is_refused = request.method != "GET" and error.status in REFUSALS
        if is_refused and (refused := _refusal(kind, client, goal, request.body)):
            refused.error.details = {**error.details, **refused.error.details}
            raise refused.error from error
        raise


def _refusal(kind: Kind, client: Client, goal: Goal, body: Mapping[str, Any] | None) -> Refusal | None:
    """Why the service's lists show that it refuses a request; None if they do not, or cannot be fetched."""
    is_state = goal.is_action and goal.intent != ACT
    if kind.refusal is None or is_state or goal.find is None or not goal.find.has_all_values:
        return None
    try:
        return kind.refusal(client, goal.find, body)
    except RequestFailed:
        return None


def _find(kind: Kind, params: Mapping[str, Any], client: Client, may_be_missing: bool) -> tuple[Find, dict[str, Any]]:
    """What selects the resource, and the options with ids in place of the names of branches, and times in place of ages.

    With C(may_be_missing), an earlier task would create what they name.
    """
    segments, query = list_of(kind, params, client, may_be_missing)
    values = dict(params)
    for option in kind.references:
        # A deletion does not depend on a parent. Without a value, the branch of a compute is the default one.
        is_needed = (
            not params.get("id") if option in kind.identity else params.get(option) and params["state"] != "absent"
        )
        if is_needed:
            values[option] = branch_id_from(params[option], client, segments[1], may_be_missing, option)
    for option, value in values.items():
        if isinstance(value, (datetime, timedelta)) and params["state"] != "absent":
            values[option] = _time(option, value, client.service_now(), is_future=option in kind.changeable)
    match = {field: values[option] for option, field in kind.identity.items()}
    selector = " and ".join(kind.identity)
    if params.get("id"):
        match, selector = {"id": params["id"]}, "id"
    match = {field: None if value == NOT_CREATED_ID else value for field, value in match.items()}
    return Find(segments, kind.plural, match, query, selector), values


def _goal(kind: Kind, find: Find, values: Mapping[str, Any], params: Mapping[str, Any]) -> Goal:
    """The goal that the options describe."""
    if params["state"] == "absent":
        return deletion(kind, find, params["wait"])
    if action := kind.actions.get(params["state"]):
        return _action(kind, find, action, values, params["wait"])
    fields = {field: values[option] for option, field in kind.fields.items() if values.get(option) is not None}
    changes = {kind.wrapper: {name: fields[name] for name in kind.changeable.values() if name in fields}}
    parts = {name: part for option, each in kind.parts.items() for name, part in each[params[option]].items()}
    requests = {
        CREATE: ResourceRequest("POST", find.segments, {kind.wrapper: {**find.match, **fields}, **parts}),
        CHANGE: ResourceRequest("PATCH", _item(kind, find.segments), changes),
    }
    if find.selector == "id":
        del requests[CREATE]
    return Goal(
        CHANGE if find.selector == "id" else ENSURE,
        requests,
        find,
        params["wait"],
        options={field: option for option, field in kind.fields.items()},
        fixed={name: fields[name] for name in kind.fixed.values() if name in fields},
        once={field for option, field in kind.changeable.items() if isinstance(params.get(option), timedelta)},
    )


def _action(kind: Kind, find: Find, action: Action, values: Mapping[str, Any], wait: bool) -> Goal:
    """The goal that the action has been carried out."""
    given = {field: values[option] for option, field in action.fields.items() if values.get(option) is not None}
    segments = (*_item(kind, find.segments), action.path)
    body = {**action.defaults, **given} or None
    request = ResourceRequest("POST", segments, body, sets=action.sets, lacking=action.lacking)
    step = ACT if action.sets is None else CHANGE
    return Goal(step, {step: request}, find, wait, {field: option for option, field in action.fields.items()})


def deletion(kind: Kind, find: Find, wait: bool) -> Goal:
    """The goal that the resource is gone."""
    return Goal(DELETE, {DELETE: ResourceRequest("DELETE", _item(kind, find.segments))}, find, wait)


def _item(kind: Kind, segments: Sequence[str]) -> tuple[str, ...]:
    return (*segments, f"{{{kind.key}}}")


def missing_project(segments: Sequence[str], params: Mapping[str, Any]) -> list[str]:
    """A warning of check mode if there is no project of this name; empty if there is, or if its id has no value."""
    if NOT_CREATED_ID not in segments[1:2] or params["project"] == NOT_CREATED_ID:
        return []
    return [will_fail(f"project: there is no project '{params['project']}'")]


def list_of(
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


def _time(option: str, value: datetime | timedelta, now: datetime, is_future: bool) -> str:
    """The time in this option, or that of the age in it, as the service takes it. Raises InvalidOption for the wrong side of C(now)."""
    try:
        age = value if isinstance(value, timedelta) else timedelta(0)
        time = value if isinstance(value, datetime) else now.replace(microsecond=0) + (age if is_future else -age)
    except OverflowError:
        raise InvalidOption(option, "is too long an age. Set a shorter one.") from None
    if (time <= now) == is_future:
        side = "future" if is_future else "past"
        raise InvalidOption(option, f"must be in the {side}, and it is {now:%Y-%m-%dT%H:%M:%SZ} now")
    return time.isoformat().replace("+00:00", "Z")


def module_result(kind: Kind, result: Result) -> Result:
    """The result of the module for one of the engine, even one of an error."""
    left_out = ("json", "status", "polls", "request")
    return {kind.result if name == "object" else name: result[name] for name in result if name not in left_out}
