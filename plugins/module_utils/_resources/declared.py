# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Brings a resource with a module of its own to the state that its options declare. Keeps P2, P3, P9 and P11."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from .._errors import ClouddbError, InvalidOption, Result
from .._http.client import Client
from .._http.errors import RequestFailed
from .._lists import ResourceNotFound, id_from, search_named
from .._operations.operations import time_of_creation
from .._operations.wait import WAIT_OPTIONS, wait_options
from .._operations.waiting import Waiting
from .._options import NOT_CREATED_ID, require_trimmed
from .._projects import add_organizations, branch_id_from
from .engine import Engine
from .goal import ACT, CHANGE, CREATE, ENSURE, Find, Goal, ResourceRequest, deletion, path_of_item
from .kinds import Action, Kind, list_of, not_created
from .lookup import Ambiguous
from .state import ABSENT, DELETING, contains, label_of, own_state
from .task import result_of

ACTION_OPTIONS: dict[str, dict[str, Any]] = {"wait": {"type": "bool", "default": True}, **WAIT_OPTIONS}
STATE_OPTIONS: dict[str, dict[str, Any]] = {
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    **ACTION_OPTIONS,
}
RECOVERABLE = {"state": {**STATE_OPTIONS["state"], "choices": ["present", "absent", "recovered"]}}

# In an option with a time, what removes it.
NEVER = "never"
# For so long, one of several resources of a name may be about to be deleted by the host that has created it.
RIVALS = timedelta(minutes=1)


def declare(kind: Kind, params: Mapping[str, Any], client: Client, check_mode: bool) -> Result:
    """The result of the module about this kind of resource. Raises what Engine.run() raises, and ResourceNotFound."""
    is_absent = params["state"] == "absent"
    is_selected_only = params["state"] != "present" or params.get("id") or params.get("new_name")
    if kind.identity.get("name") == "name" and not is_selected_only:
        require_trimmed(params, "name")
    waiting = Waiting(client, wait_options(params))
    bounded = waiting.bounded_client()
    result = result_of()
    try:
        may_be_missing = check_mode and not is_absent
        segments, query = list_of(kind, params, bounded, may_be_missing)
        ids = _ids(kind, params, bounded, segments, may_be_missing)
        goal, *further = _goals(kind, params, ids, bounded.service_now(), segments, query)
        result = _reach_one(kind, goal, client, waiting, check_mode, further)
        is_new = goal.creates and result["changed"] and result["request"]["method"] == "POST"
        if is_new and not kind.is_unique and not check_mode:
            result = _keep_the_first(kind, goal, result, client, waiting)
        # In check mode, a warning about what is there means that the task would fail.
        for action in further if result["changed"] or not (check_mode and result["warnings"]) else ():
            if not (is_new and action.intent == ACT):
                # What an earlier request showed is not observed again.
                result = _together(result, Engine(client, action, waiting, check_mode).run(result["object"]), is_new)
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


def _reach_one(
    kind: Kind, goal: Goal, client: Client, waiting: Waiting, check_mode: bool, further: Sequence[Goal]
) -> Result:
    """As Engine.run(). Of several that were created a moment ago, other hosts delete all but one, so that the task looks again."""
    while True:
        try:
            return Engine(client, goal, waiting, check_mode, further).run()
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
    by_id = {"id": own["id"]}
    Engine(client, deletion(kind, find._replace(match=by_id), by_id, goal.wait), waiting).run()
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
    kind: Kind,
    params: Mapping[str, Any],
    ids: Mapping[str, str],
    now: datetime,
    segments: tuple[str, ...],
    query: Mapping[str, Any],
) -> list[Goal]:
    """The goal that the options describe, with C(ids) in place of names, and those of the actions that they ask for beside C(state)."""
    values = {**params, **ids}
    match = {"id": params["id"]} if params.get("id") else {field: values[each] for each, field in kind.identity.items()}
    match = {field: None if value == NOT_CREATED_ID else value for field, value in match.items()}
    find = Find(segments, kind.plural, match, query)
    if params["state"] == "absent":
        return [deletion(kind, find, params, params["wait"])]
    for option, value in values.items():
        if isinstance(value, (datetime, timedelta)):
            values[option] = _time(kind, option, value, now)
    if action := kind.actions.get(params["state"]):
        return [_action(kind, find, action, values, params)]
    actions = [action for option, action in kind.actions.items() if params.get(option) not in (None, False)]
    return [_ensure(kind, find, values, params), *(_action(kind, find, each, values, params) for each in actions)]


def _ids(
    kind: Kind, params: Mapping[str, Any], client: Client, segments: Sequence[str], may_be_missing: bool
) -> dict[str, str]:
    """The ids of the branches, and of the snapshot, that options name."""
    ids = {}
    for option in kind.references:
        # A deletion and a recovery do not depend on a parent. Without a value, the branch of a compute is the default one.
        is_given = params.get(option) or f"{{{option}}}" in kind.creation
        is_used = params["state"] not in ("absent", "recovered")
        is_needed = not params.get("id") if option in kind.identity else is_given and is_used
        if is_needed:
            id_of = _snapshot_id_from if option == "snapshot" else branch_id_from
            ids[option] = id_of(params[option], client, segments[1], may_be_missing, option)
    return ids


def _snapshot_id_from(snapshot: str, client: Client, project_id: str, may_be_missing: bool, option: str) -> str:
    """The id of the snapshot with this id or name, as of branch_id_from()."""
    if NOT_CREATED_ID in (project_id, snapshot):
        return NOT_CREATED_ID
    listed = search_named(client, ("projects", project_id, "snapshots"), "snapshots", snapshot)
    return id_from(option, "snapshot", listed, snapshot, may_be_missing)


def _ensure(kind: Kind, find: Find, values: Mapping[str, Any], params: Mapping[str, Any]) -> Goal:
    """The goal that the resource is there with the fields that options set; one that is selected by its id is not created."""
    fields = {field: values[option] for option, field in kind.fields.items() if values.get(option) is not None}
    nulls = {field: None for option, field in kind.changeable.items() if values.get(option) == NEVER}
    changes = {kind.wrapper: {name: fields[name] for name in kind.changeable.values() if name in fields} | nulls}
    created = {field: value for field, value in fields.items() if field not in nulls}
    beside = {name: part for option, each in kind.beside_wrapper.items() for name, part in each[values[option]].items()}
    body = {kind.wrapper: {**find.match, **created}, **beside}
    create = ResourceRequest("POST", find.segments, body, wrapper=kind.wrapper)
    if kind.creation:
        segments = _filled(find.segments, kind.creation, values)
        create = create._replace(segments=segments, body=None, query=body[kind.wrapper])
    change = ResourceRequest("PATCH", path_of_item(kind, find.segments), changes, wrapper=kind.wrapper)
    is_selected_only = bool(values.get("id") or values.get("new_name"))
    return Goal(
        CHANGE if is_selected_only else ENSURE,
        {CHANGE: change} if is_selected_only else {CREATE: create, CHANGE: change},
        find,
        values["wait"],
        kind,
        params,
        fixed={name: fields[name] for name in kind.fixed.values() if name in fields},
    )


def _action(kind: Kind, find: Find, action: Action, values: Mapping[str, Any], params: Mapping[str, Any]) -> Goal:
    """The goal that the action has been carried out."""
    given = {field: values[option] for option, field in action.fields.items() if values.get(option) is not None}
    if action.method == "PUT":
        action = action._replace(sets_fields=given)
    place = _filled(find.segments, action.below, values) if action.below else path_of_item(kind, find.segments)
    request = ResourceRequest(action.method, (*place, action.path), given or None, action=action, wrapper=kind.wrapper)
    intent = ACT if action.sets_fields is None else CHANGE
    return Goal(intent, {intent: request}, find, values["wait"], kind, params)


def _filled(segments: Sequence[str], path: Sequence[str], values: Mapping[str, Any]) -> tuple[str, ...]:
    """A path in the project of C(segments), with options in braces."""
    return (*segments[:2], *(each.format(**values) if each.startswith("{") else each for each in path))


def _time(kind: Kind, option: str, value: datetime | timedelta, now: datetime) -> str:
    """The time in this option, or that of the age in it, as the service takes it. Raises InvalidOption for the wrong side of C(now)."""
    is_future = option in kind.changeable
    try:
        age = value if isinstance(value, timedelta) else timedelta(0)
        time = value if isinstance(value, datetime) else now.replace(microsecond=0) + (age if is_future else -age)
    except OverflowError:
        raise InvalidOption(option, "is too long an age. Set a shorter one.") from None
    if (time <= now) == is_future:
        side = "future" if is_future else "past"
        raise InvalidOption(option, f"must be in the {side}, and it is {now:%Y-%m-%dT%H:%M:%SZ} now")
    if is_future and kind.longest_life and time > now + kind.longest_life:
        raise InvalidOption(
            option, f"must be at most {kind.longest_life.days} days ahead, and it is {now:%Y-%m-%dT%H:%M:%SZ} now"
        )
    return time.isoformat().replace("+00:00", "Z")


def module_result(kind: Kind, result: Result) -> Result:
    """The result of the module for one of the engine, even one of an error."""
    left_out = ("json", "status", "polls", "request")
    return {kind.result if name == "object" else name: result[name] for name in result if name not in left_out}
