# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Brings a resource with a module of its own to the state that its options declare. Keeps P2, P3, P9 and P11.

The paths and fields are those of the published API document, because api.md names these resources without them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

from .._errors import ClouddbError, InvalidOption
from .._http.client import SUCCESS, Client
from .._operations.wait import WAIT_OPTIONS, limits_from, stop_when_from
from .._options import NOT_CREATED_ID, not_blank
from .._timestamps import duration
from .compare import contains
from .engine import Engine
from .lookup import name_of
from .outcome import Result, result_of
from .parents import ResourceNotFound, branch_id_from, project_id_from, query_of
from .plan import Find, Plan
from .read import preview

Fields = dict[str, Any]


class Kind(NamedTuple):
    """A kind of resource, whose list C(plural) is below that of its C(parents), each named by the option of that name.

    Bodies and responses have it in the field C(wrapper), and its result is C(result). Paths name it by the field C(key).
    C(changeable) and C(fixed) are the fields that requests may change, and that only its creation sets, by option.
    C(rest) are the further fields of the request that creates it.
    """

    plural: str
    wrapper: str
    result: str
    key: str
    parents: tuple[str, ...]
    changeable: Mapping[str, str] = {}
    fixed: Mapping[str, str] = {}
    rest: Mapping[str, Any] = {}

    def options(self) -> dict[str, str]:
        """The fields that tasks set, by option."""
        return {**self.changeable, **self.fixed}


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
)
DATABASE = Kind("databases", "database", "database", "name", ("project", "branch"), {"owner": "owner_name"})
DATABASE_USER = Kind("roles", "role", "database_user", "name", ("project", "branch"))

STATE_OPTIONS: dict[str, dict[str, Any]] = {
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "wait": {"type": "bool", "default": True},
    **WAIT_OPTIONS,
}


class Task(NamedTuple):
    """What a task asks for: the resource with the fields C(match) in the list C(segments), and its further C(fields).

    C(query) are the parameters of the list.
    """

    kind: Kind
    segments: tuple[str, ...]
    match: Fields
    fields: Fields
    query: Fields
    wait: bool

    def plan(self, method: str) -> Plan:
        kind = self.kind
        body: dict[str, Any] | None = None
        if method == "POST":
            body = {kind.wrapper: {**self.match, **self.fields}, **kind.rest}
        elif method == "PATCH":
            body = {kind.wrapper: self.changeable()}
        segments = self.segments if method == "POST" else (*self.segments, f"{{{kind.key}}}")
        find = Find(self.segments, kind.plural, self.match, self.query)
        options = {field: option for option, field in kind.options().items()}
        return Plan(method, segments, {}, body, find, SUCCESS, False, self.wait, options)

    def changeable(self) -> Fields:
        return {field: self.fields[field] for field in self.kind.changeable.values() if field in self.fields}


def declare(kind: Kind, params: Mapping[str, Any], client: Client, check_mode: bool) -> Result:
    """The result of the module about this kind of resource. Raises what the engine of api_request raises, and ResourceNotFound."""
    not_blank(params, "name")
    timeout, limits = duration(params, "timeout"), limits_from(params, workers=1)
    saved, is_present = params.get("_state"), params["state"] == "present"

    def send(method: str, seconds: float, saved: Mapping[str, Any] | None = None) -> Result:
        plan = task.plan(method)
        if check_mode:
            return preview(client, plan)
        result = Engine(client, plan, limits, seconds, seconds, stop_when_from(params)).run(saved)
        if "_state" in result:
            # For the next run of the module, which does not look up the parents again.
            fields = {name: getattr(task, name) for name in ("segments", "match", "fields", "query")}
            result["_state"].update(fields, method=method)
        return result

    try:
        if saved:
            task = Task(kind, tuple(saved["segments"]), saved["match"], saved["fields"], saved["query"], params["wait"])
            method = saved["method"]
        else:
            task = _task_from(kind, params, client, check_mode and is_present)
            method = "DELETE" if not is_present else "PATCH" if "id" in task.match else "POST"
        result = send(method, timeout, saved)
        found = result["object"]
        if is_present and found and not result["changed"] and "_state" not in result:
            _require_fixed(task, params, found)
            if method == "POST" and not contains(found, task.changeable()):
                result = send("PATCH", max(0.0, timeout - result["elapsed"]))
    except ResourceNotFound as error:
        if is_present:
            raise
        result = result_of(warnings=[f"{error} So there is nothing to delete."])
    except ClouddbError as error:
        if "object" in error.result:
            error.result = {**_named(kind, error.result), **unfinished_of(error)}
        raise
    return _named(kind, result)


def _task_from(kind: Kind, params: Mapping[str, Any], client: Client, may_be_missing: bool) -> Task:
    """The task that the options describe. With C(may_be_missing), an earlier task would create what it belongs to."""
    fields = {field: params[option] for option, field in kind.options().items() if params.get(option) is not None}
    match = {"name": params["name"]}
    if params.get("id"):
        match = {"id": None if params["id"] == NOT_CREATED_ID else params["id"]}
    segments: tuple[str, ...] = (kind.plural,)
    if kind.parents:
        project_id = str(project_id_from(params, client, may_be_missing))
        find_branch = partial(branch_id_from, client=client, project_id=project_id, may_be_missing=may_be_missing)
        above = ("branches", find_branch(params["branch"])) if "branch" in kind.parents else ()
        segments = ("projects", project_id, *above, kind.plural)
        if "parent_id" in fields:
            fields["parent_id"] = find_branch(fields["parent_id"])
    query = {} if kind.parents else query_of(params)
    return Task(kind, segments, match, fields, query, params["wait"])


def _require_fixed(task: Task, params: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    """Raise InvalidOption if the resource has another value of a field that cannot be changed."""
    for option, field in task.kind.fixed.items():
        if field in task.fields and field in found and not contains(found[field], task.fields[field]):
            problem = f"{task.kind.wrapper} {name_of(found)} has {field} {found[field]}, which cannot be changed"
            raise InvalidOption(option, f"{problem}. Use its value, or delete it first.")


def _named(kind: Kind, result: Result) -> Result:
    """The result of the module for one of the engine."""
    kept = ("changed", "operations", "elapsed", "diff", "warnings")
    internal = [name for name in result if name.startswith("_")]
    return {kind.result: result["object"], **{name: result[name] for name in (*kept, *internal)}}


def unfinished_of(error: ClouddbError) -> Result:
    """The ids of operations in the error of a wait."""
    return {name: error.result[name] for name in ("failed_ids", "pending_ids") if name in error.result}
