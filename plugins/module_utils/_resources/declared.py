# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Brings a resource with a module of its own to the state that its options declare. Keeps P2, P3, P9 and P11.

The paths and fields are those of the published API document, because api.md names these resources without them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Callable, NamedTuple

from .._errors import ClouddbError, InvalidOption
from .._http.client import SUCCESS, Client
from .._http.errors import RequestFailed, StatusError
from .._operations.wait import WAIT_OPTIONS, limits_from
from .._options import NOT_CREATED_ID
from .._timestamps import timestamp_of
from .compare import contains
from .engine import Engine
from .lookup import label_of
from .outcome import Result, result_of
from .parents import ResourceNotFound, branch_id_from, project_id_from, query_of
from .plan import Find, Plan
from .read import preview
from .refusals import branch_refusal, database_refusal


class Kind(NamedTuple):
    """A kind of resource, whose list C(plural) is below that of its C(parents), each named by the option of that name.

    Bodies and responses have it in the field C(wrapper), and its result is C(result). Paths name it by the field C(key).
    C(changeable) and C(fixed) are the fields that requests may change, and that only its creation sets, by option.
    C(rest) are the further fields of the request that creates it. C(refusal) returns the error for a request, by its C(find)
    and body, that the service's lists show to be refused.
    """

    plural: str
    wrapper: str
    result: str
    key: str
    parents: tuple[str, ...]
    changeable: Mapping[str, str] = {}
    fixed: Mapping[str, str] = {}
    rest: Mapping[str, Any] = {}
    refusal: Callable[[Client, Find, Mapping[str, Any] | None], ClouddbError | None] | None = None


PROJECT = Kind(
    "projects",
    "project",
    "project",
    "id",
    (),
    {"name": "name", "history_retention": "history_retention_seconds"},
    {"region_id": "region_id", "pg_version": "pg_version", "org_id": "org_id"},
)
BRANCH = Kind(
    "branches",
    "branch",
    "branch",
    "id",
    ("project",),
    {"expires_at": "expires_at", "protected": "protected"},
    {"parent": "parent_id"},
    # The service creates no compute unless it is asked to.
    {"endpoints": [{"type": "read_write"}]},
    branch_refusal,
)
DATABASE = Kind(
    "databases",
    "database",
    "database",
    "name",
    ("project", "branch"),
    {"owner": "owner_name"},
    refusal=database_refusal,
)
DATABASE_USER = Kind("roles", "role", "database_user", "name", ("project", "branch"))

# Statuses of requests whose fields or resource the service does not accept.
REFUSALS = frozenset({400, 403, 404, 409, 412, 422})
STATE_OPTIONS: dict[str, dict[str, Any]] = {
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "wait": {"type": "bool", "default": True},
    **WAIT_OPTIONS,
}


class Target(NamedTuple):
    """The resource with the fields C(match) in the list C(segments), its further C(fields), and parameters of the list."""

    segments: Sequence[str]
    match: Mapping[str, Any]
    fields: Mapping[str, Any] = {}
    query: Mapping[str, Any] = {}


def plan_for(kind: Kind, target: Target, method: str, wait: bool) -> Plan:
    """The request of this method for a resource."""
    segments = tuple(target.segments)
    body: dict[str, Any] | None = None
    if method == "POST":
        body = {kind.wrapper: {**target.match, **target.fields}, **kind.rest}
    elif method == "PATCH":
        body = {kind.wrapper: _changeable(kind, target)}
    path = segments if method == "POST" else (*segments, f"{{{kind.key}}}")
    find = Find(segments, kind.plural, target.match, target.query)
    options = {field: option for option, field in {**kind.changeable, **kind.fixed}.items()}
    return Plan(method, path, {}, body, find, SUCCESS, all_pages=False, wait=wait, options=options)


def _changeable(kind: Kind, target: Target) -> dict[str, Any]:
    return {field: target.fields[field] for field in kind.changeable.values() if field in target.fields}


def declare(kind: Kind, params: Mapping[str, Any], client: Client, check_mode: bool) -> Result:
    """The result of the module about this kind of resource. Raises what the engine of api_request raises, and ResourceNotFound."""
    limits, is_present = limits_from(params), params["state"] == "present"

    def send(target: Target, method: str, earlier: Result | None = None) -> Result:
        plan = plan_for(kind, target, method, params["wait"])
        if check_mode:
            result = preview(client, plan)
            if result["changed"] and (refused := _refusal(kind, client, plan)):
                raise refused
            if target.segments[1:2] == [NOT_CREATED_ID] and params["project"] != NOT_CREATED_ID:
                problem = f"project: there is no project '{params['project']}'"
                result["warnings"].append(f"{problem}. Unless an earlier task creates it, this task will fail.")
            return result
        try:
            return Engine(client, plan, limits, limits.timeout, earlier).run()
        except StatusError as error:
            if error.request.method != "GET" and error.status in REFUSALS and (refused := _refusal(kind, client, plan)):
                refused.details = {**error.details, **refused.details}
                raise refused from error
            raise

    try:
        target = _target(kind, params, client, check_mode and is_present)
        method = "DELETE" if not is_present else "PATCH" if "id" in target.match else "POST"
        if method == "PATCH" and not target.fields.keys().isdisjoint(kind.fixed.values()):
            _require_fixed(kind, target, preview(client, plan_for(kind, target, method, False))["object"])
        result = send(target, method)
        found = result["object"]
        if is_present and found and not result["changed"]:
            _require_fixed(kind, target, found)
            target = _for_existing(kind, target, params, found)
            if method == "POST" and not contains(found, _changeable(kind, target)):
                result = send(target, "PATCH", earlier=result)
    except ResourceNotFound as error:
        if is_present:
            raise
        result = result_of(warnings=[f"{error} So there is nothing to delete."])
    except ClouddbError as error:
        error.result = module_result(kind, error.result)
        raise
    return module_result(kind, result)


def _refusal(kind: Kind, client: Client, plan: Plan) -> ClouddbError | None:
    """The error for a request that the service's lists show to be refused; None if they do not, or cannot be fetched."""
    if kind.refusal is None or plan.find is None or not plan.find.has_all_values:
        return None
    try:
        return kind.refusal(client, plan.find, plan.body)
    except RequestFailed:
        return None


def _target(kind: Kind, params: Mapping[str, Any], client: Client, may_be_missing: bool) -> Target:
    """The resource that the options describe. With C(may_be_missing), an earlier task would create what it belongs to."""
    # A deletion does not depend on them.
    options = {**kind.changeable, **kind.fixed} if params["state"] == "present" else {}
    fields = {field: params[option] for option, field in options.items() if params.get(option) is not None}
    match = {"name": params["name"]}
    if params.get("id"):
        match = {"id": None if params["id"] == NOT_CREATED_ID else params["id"]}
    if not kind.parents:
        return Target([kind.plural], match, fields, query_of(params))
    project_id = str(project_id_from(params, client, may_be_missing))
    segments = ["projects", project_id]
    if "branch" in kind.parents:
        segments += ["branches", branch_id_from(params["branch"], client, project_id, may_be_missing)]
    if "parent_id" in fields:
        fields["parent_id"] = branch_id_from(fields["parent_id"], client, project_id, may_be_missing, "parent")
    if "expires_at" in fields:
        fields["expires_at"] = _future_time("expires_at", fields["expires_at"], client.service_now())
    return Target([*segments, kind.plural], match, fields)


def _future_time(option: str, value: datetime | timedelta, now: datetime) -> str:
    """The time in this option, or after the age in it, as the service takes it. Raises InvalidOption for one in the past."""
    try:
        time = now.replace(microsecond=0) + value if isinstance(value, timedelta) else value
    except OverflowError:
        raise InvalidOption(option, "is too long an age. Set a shorter one.") from None
    if time <= now:
        raise InvalidOption(option, f"must be in the future, and it is {now:%Y-%m-%dT%H:%M:%SZ} now")
    return time.isoformat().replace("+00:00", "Z")


def _for_existing(kind: Kind, target: Target, params: Mapping[str, Any], found: Mapping[str, Any]) -> Target:
    """The target without the times that stay: an age would lead to another one in each run, so it only sets a missing one."""
    stay = {
        field
        for option, field in kind.changeable.items()
        if isinstance(params.get(option), timedelta) and timestamp_of(found, field)
    }
    return target._replace(fields={field: value for field, value in target.fields.items() if field not in stay})


def _require_fixed(kind: Kind, target: Target, found: Mapping[str, Any]) -> None:
    """Raise InvalidOption if the resource has another value of a field that cannot be changed."""
    for option, field in kind.fixed.items():
        if field in target.fields and field in found and not contains(found[field], target.fields[field]):
            problem = f"{kind.wrapper} {label_of(found)} has {field} {found[field]}, which cannot be changed"
            raise InvalidOption(option, f"{problem}. Set {option} to this value, or omit it.")


def module_result(kind: Kind, result: Result) -> Result:
    """The result of the module for one of the engine, even one of an error."""
    left_out = ("json", "status", "polls", "request")
    return {kind.result if name == "object" else name: result[name] for name in result if name not in left_out}
