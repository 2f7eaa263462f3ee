# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Brings a resource with a module of its own to the state that its options declare. Keeps P2, P3, P9 and P11."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from .._errors import ClouddbError, InvalidOption, Result, will_fail
from .._http.client import Client
from .._http.errors import RequestFailed
from .._lists import ResourceNotFound, list_resources, search_named
from .._operations.operations import time_of_creation
from .._operations.wait import WAIT_OPTIONS, limits_from
from .._options import NOT_CREATED_ID, require_trimmed
from .._projects import add_organizations, branch_id_from, checked_query, project_id_from
from .._untrusted import displayable
from .compare import contains
from .engine import reach
from .goal import ACT, CHANGE, CREATE, DELETE, ENSURE, Action, Find, Goal, ResourceRequest
from .kinds import Kind
from .lookup import Ambiguous, label_of
from .outcome import result_of
from .state import ABSENT, DELETING, own_state
from .waiting import Waiting

ACTION_OPTIONS: dict[str, dict[str, Any]] = {"wait": {"type": "bool", "default": True}, **WAIT_OPTIONS}
STATE_OPTIONS: dict[str, dict[str, Any]] = {
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    **ACTION_OPTIONS,
}

# In an option with a time, what removes it.
NEVER = "never"
# As the published API document bounds C(expires_at).
LONGEST_LIFE = timedelta(days=30)
# For so long, one of several resources of a name may be about to be deleted by the host that has created it.
RIVALS = timedelta(minutes=1)


def declare(kind: Kind, params: Mapping[str, Any], client: Client, check_mode: bool) -> Result:
    """The result of the module about this kind of resource. Raises what reach() raises, and ResourceNotFound."""
    is_absent = params["state"] == "absent"
    is_selected_only = params["state"] != "present" or params.get("id") or params.get("new_name")
    if kind.identity.get("name") == "name" and not is_selected_only:
        require_trimmed(params, "name")
    waiting = Waiting(client, limits_from(params))
    bounded = waiting.bounded_client()
    result = result_of()
    try:
        may_be_missing = check_mode and not is_absent
        segments, query = list_of(kind, params, bounded, may_be_missing)
        ids = _ids(kind, params, bounded, segments, may_be_missing)
        goals = _goals(kind, {**params, **ids}, bounded.service_now(), segments, query)
        goal, *further = [each._replace(missing=_missing(kind, params), moved=_moved(kind, params)) for each in goals]
        result = _reach_one(kind, goal, client, waiting, check_mode)
        is_new = result["changed"] and result["request"]["method"] == "POST"
        if is_new and not kind.is_unique and not check_mode:
            result = _keep_the_first(kind, goal, result, client, waiting)
        # In check mode, a warning about what is there means that the task would fail.
        for action in further if result["changed"] or not (check_mode and result["warnings"]) else ():
            if not (is_new and action.intent == ACT):
                # What an earlier request showed is not observed again.
                result = _together(result, reach(client, action, waiting, check_mode, result["object"]), is_new)
        result["warnings"] += not_created(params, segments, ids)
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


def info(kind: Kind, name: str, params: Mapping[str, Any], client: Client, check_mode: bool) -> Result:
    """The result of the module that returns all resources of this kind as C(name), those of C(branch) if it is set.

    In check mode, what an earlier task would create has none. Raises what Client raises, and ResourceNotFound.
    """
    segments, query = list_of(kind, params, client, may_be_missing=check_mode)
    ids = {}
    if "branch" not in kind.parents and params.get("branch"):
        ids["branch"] = branch_id_from(params["branch"], client, segments[1], may_be_missing=check_mode)
    branch_id = ids.get("branch")
    is_created = NOT_CREATED_ID not in (*segments, branch_id)
    items = list_resources(client, segments, kind.plural, query).items if is_created else []
    return {
        "changed": False,
        name: [each for each in items if branch_id in (None, each.get("branch_id"))],
        "warnings": not_created(params, segments, ids),
    }


def _reach_one(kind: Kind, goal: Goal, client: Client, waiting: Waiting, check_mode: bool) -> Result:
    """As reach(). Of several that were created a moment ago, other hosts delete all but one, so that the task looks again."""
    while True:
        try:
            return reach(client, goal, waiting, check_mode)
        except Ambiguous as error:
            newest = max(map(time_of_creation, error.resources))
            if kind.is_unique or check_mode or client.service_now() - newest > RIVALS:
                raise
            waiting.begin_once()
            if waiting.seconds_left() <= 0:
                raise
            waiting.pause(waiting.seconds_left())


def _keep_the_first(kind: Kind, goal: Goal, result: Result, client: Client, waiting: Waiting) -> Result:
    """The result of a creation, after which only the first of the resources that were created at once under one name stays."""
    own, find = result["object"], goal.find
    if find is None:
        return result
    try:
        name = str(find.match["name"])
        listed = search_named(waiting.bounded_client(), find.segments, find.field, name, find.query).items
    except RequestFailed as error:
        problem = f"Whether another host has created {label_of(own)} too was not looked up: {error}"
        return {**result, "warnings": [*result["warnings"], problem]}
    rivals = [each for each in listed if contains(each, find.match) and own_state(each) not in (ABSENT, DELETING)]
    first = min([*rivals, own], key=lambda each: (time_of_creation(each), str(each.get("id"))))
    if first.get("id") == own.get("id"):
        return result
    by_id = find._replace(match={"id": own["id"]}, selector="id")
    reach(client, deletion(kind, by_id, wait=goal.wait), waiting)
    problem = f"Another host has created {label_of(first)} at the same time. {label_of(own)}, which this task created, was deleted."
    return result_of(first, first, elapsed=waiting.elapsed(), warnings=[*result["warnings"], problem])


def _together(first: Result, second: Result, is_new: bool) -> Result:
    """The result of a task that needed two goals; with C(is_new), the first has created the resource."""
    operations = {each["id"]: each for each in [*first["operations"], *second["operations"]]}
    before = first["diff"]["before"] if is_new else {**first["diff"]["before"], **second["diff"]["before"]}
    return {
        **second,
        "changed": first["changed"] or second["changed"],
        "operations": list(operations.values()),
        "diff": {"before": before, "after": {**first["diff"]["after"], **second["diff"]["after"]}},
        "warnings": first["warnings"] + second["warnings"],
    }


def _goals(
    kind: Kind, params: Mapping[str, Any], now: datetime, segments: tuple[str, ...], query: Mapping[str, Any]
) -> list[Goal]:
    """The goal that the options describe, with ids in place of names, and those of the actions that they ask for beside C(state)."""
    values = {**params}
    match = {field: values[option] for option, field in kind.identity.items()}
    selector = " and ".join(kind.identity)
    if params.get("id"):
        match, selector = {"id": params["id"]}, "id"
    match = {field: None if value == NOT_CREATED_ID else value for field, value in match.items()}
    find = Find(segments, kind.plural, match, query, selector)
    if params["state"] == "absent":
        return [deletion(kind, find, params["wait"])]
    for option, value in values.items():
        if isinstance(value, (datetime, timedelta)):
            values[option] = _time(option, value, now, is_future=option in kind.changeable)
    if action := kind.actions.get(params["state"]):
        return [_action(kind, find, action, values)]
    once = {field for option, field in kind.changeable.items() if isinstance(params.get(option), timedelta)}
    actions = [action for option, action in kind.actions.items() if params.get(option)]
    return [_ensure(kind, find, values, once), *(_action(kind, find, action, values) for action in actions)]


def _missing(kind: Kind, params: Mapping[str, Any]) -> str:
    """The error if the resource is not there."""
    noun, advice = kind.result.replace("_", " "), "Check it, and what the API key may access"
    if params.get("id"):
        return f"there is no {noun} with the id {displayable(params['id'], 100)}. {advice}"
    names = {option: displayable(params.get(option) or f"the default {option}", 100) for option in kind.identity}
    return kind.missing.format(noun=noun, advice=advice, **names)


def _moved(kind: Kind, params: Mapping[str, Any]) -> dict[str, str]:
    """The error about another value of a fixed field, by option, in the words of the task."""
    names = {option: displayable(value, 100) for option, value in params.items() if isinstance(value, str)}
    return {option: problem.format(**names) for option, problem in kind.moved.items() if option in names}


def _ids(
    kind: Kind, params: Mapping[str, Any], client: Client, segments: Sequence[str], may_be_missing: bool
) -> dict[str, str]:
    """The ids of the branches that options name."""
    ids = {}
    for option in kind.references:
        # A deletion does not depend on a parent. Without a value, the branch of a compute is the default one.
        is_needed = (
            not params.get("id") if option in kind.identity else params.get(option) and params["state"] != "absent"
        )
        if is_needed:
            ids[option] = branch_id_from(params[option], client, segments[1], may_be_missing, option)
    return ids


def _ensure(kind: Kind, find: Find, values: Mapping[str, Any], once: set[str]) -> Goal:
    """The goal that the resource is there with the fields that options set; one that is selected by its id is not created."""
    fields = {field: values[option] for option, field in kind.fields.items() if values.get(option) is not None}
    nulls = {field: None for option, field in kind.changeable.items() if values.get(option) == NEVER}
    changes = {kind.wrapper: {name: fields[name] for name in kind.changeable.values() if name in fields} | nulls}
    created = {field: value for field, value in fields.items() if field not in nulls}
    parts = {name: part for option, each in kind.parts.items() for name, part in each[values[option]].items()}
    requests = {
        CREATE: ResourceRequest(
            "POST", find.segments, {kind.wrapper: {**find.match, **created}, **parts}, wrapper=kind.wrapper
        ),
        CHANGE: ResourceRequest("PATCH", _item(kind, find.segments), changes, wrapper=kind.wrapper),
    }
    is_selected_only = find.selector == "id" or bool(values.get("new_name"))
    if is_selected_only:
        del requests[CREATE]
    return Goal(
        CHANGE if is_selected_only else ENSURE,
        requests,
        find,
        values["wait"],
        options={field: option for option, field in kind.fields.items()},
        fixed={name: fields[name] for name in kind.fixed.values() if name in fields},
        once=once,
        refuses=kind.refusal,
    )


def _action(kind: Kind, find: Find, action: Action, values: Mapping[str, Any]) -> Goal:
    """The goal that the action has been carried out."""
    given = {field: values[option] for option, field in action.fields.items() if values.get(option) is not None}
    segments = (*_item(kind, find.segments), action.path)
    request = ResourceRequest("POST", segments, given or None, action=action)
    intent = ACT if action.sets is None else CHANGE
    options = {field: option for option, field in action.fields.items()}
    effects = {each.operation: each.sets for each in kind.actions.values() if each.sets and each.operation}
    return Goal(intent, {intent: request}, find, values["wait"], options, effects=effects, refuses=kind.refusal)


def deletion(kind: Kind, find: Find, wait: bool) -> Goal:
    """The goal that the resource is gone."""
    request = ResourceRequest("DELETE", _item(kind, find.segments))
    return Goal(DELETE, {DELETE: request}, find, wait, refuses=kind.refusal)


def _item(kind: Kind, segments: Sequence[str]) -> tuple[str, ...]:
    return (*segments, f"{{{kind.key}}}")


def not_created(params: Mapping[str, Any], segments: Sequence[str], ids: Mapping[str, str]) -> list[str]:
    """The warnings of check mode about options that name what is not there; what an earlier task names has no value yet."""
    found = {**dict(zip(("project", "branch"), segments[1::2])), **ids}
    return [
        will_fail(f"{option}: there is no {'project' if option == 'project' else 'branch'} '{params[option]}'")
        for option, value in found.items()
        if value == NOT_CREATED_ID and params.get(option) not in (None, NOT_CREATED_ID)
        # Nothing is looked up below a project that is not there.
        if option == "project" or segments[1] != NOT_CREATED_ID
    ]


def list_of(
    kind: Kind, params: Mapping[str, Any], client: Client, may_be_missing: bool
) -> tuple[tuple[str, ...], dict[str, Any]]:
    """The path of the list of this kind, and its query parameters."""
    if not kind.parents:
        return (kind.plural,), checked_query(params)
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
    if is_future and time > now + LONGEST_LIFE:
        raise InvalidOption(
            option, f"must be at most {LONGEST_LIFE.days} days ahead, and it is {now:%Y-%m-%dT%H:%M:%SZ} now"
        )
    return time.isoformat().replace("+00:00", "Z")


def module_result(kind: Kind, result: Result) -> Result:
    """The result of the module for one of the engine, even one of an error."""
    left_out = ("json", "status", "polls", "request")
    return {kind.result if name == "object" else name: result[name] for name in result if name not in left_out}
