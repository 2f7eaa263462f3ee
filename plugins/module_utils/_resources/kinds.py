# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kinds of resources that have a module of their own, each a row, and their lists. Keeps P1, P2, P3 and P9.

The paths and fields are those of the published API document, because api.md names these resources without them. Modules that
only list resources load this file and not the engine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from .._errors import Result, will_fail
from .._http.client import Client
from .._lists import list_resources
from .._options import NOT_CREATED_ID
from .._projects import branch_from, branch_id_from, checked_query, project_id_from

# The C(init_source) of a branch that has no parent.
SCHEMA_ONLY = "schema-only"


class Action(NamedTuple):
    """A request about a resource, C(method) C(path) below that of the resource, with a body of C(fields) by option.

    C(defaults) are the fields of the resource whose values these fields have without the option, each with the error if it has
    none. C(sets_fields) are the fields that show that the action is not needed, or has been carried out. Without them, each task
    carries it out, and only a time in C(evidence) that has changed shows that it was.

    Instead of the resource, the request may be below C(below), a path in the project with options in braces. After it, the resource
    that has the fields C(successor), by fields of the one before, takes the place of that. C(listed_with) are query parameters with
    which lists have resources that lack C(sets_fields). If it is a part of the resource with a path of its own (PUT), GET shows the fields.
    """

    path: str
    method: str = "POST"
    below: tuple[str, ...] = ()
    successor: Mapping[str, str] = {}
    listed_with: Mapping[str, Any] = {}
    sets_fields: Mapping[str, Any] | None = None
    fields: Mapping[str, str] = {}
    defaults: Mapping[str, tuple[str, str]] = {}
    evidence: tuple[str, ...] = ()


class Kind(NamedTuple):
    """A kind of resource, whose list C(plural) is below that of its C(parents), each named by the option of that name.

    Bodies and responses have it in the field C(wrapper), and its result is C(result). Paths name it by the field C(key).
    Fields by option: C(identity) selects it, unless the option C(id) does, C(changeable) may be changed, C(fixed) is only set by its
    creation, and C(initial) as well, but is not compared. C(references) are the options with the id or the name of a branch, or of a C(snapshot).
    C(problems) are errors by option, with options in braces: an option of C(identity) without such a resource, and a fixed field
    with another value. C(beside_wrapper) are further fields of the body that creates it, by option and its value. C(actions) are
    further requests, by the value of C(state) or the option that asks for them. Several resources may have the same C(identity)
    unless C(is_unique). Without C(creation), a path in the project with options in braces, it is created in its list; with it, the
    fields are query parameters, and its path has no GET. C(longest_life) is how far ahead a time may be that it has.
    """

    plural: str
    wrapper: str
    result: str
    key: str = "id"
    parents: tuple[str, ...] = ()
    identity: Mapping[str, str] = {"name": "name"}
    changeable: Mapping[str, str] = {}
    fixed: Mapping[str, str] = {}
    initial: Mapping[str, str] = {}
    references: tuple[str, ...] = ()
    beside_wrapper: Mapping[str, Mapping[bool, Mapping[str, Any]]] = {}
    actions: Mapping[str, Action] = {}
    problems: Mapping[str, str] = {}
    is_unique: bool = True
    creation: tuple[str, ...] = ()
    longest_life: timedelta | None = None

    @property
    def fields(self) -> dict[str, str]:
        """All fields that options set, by option."""
        return {**self.changeable, **self.fixed, **self.initial}


PROJECT = Kind(
    plural="projects",
    wrapper="project",
    result="project",
    changeable={
        "name": "name",
        "history_retention": "history_retention_seconds",
        "settings": "settings",
        "default_compute": "default_endpoint_settings",
    },
    fixed={"region_id": "region_id", "pg_version": "pg_version", "org_id": "org_id"},
    initial={"branch": "branch"},
    actions={"recovered": Action("recover", sets_fields={"deleted_at": None}, listed_with={"recoverable": True})},
    is_unique=False,
)
BRANCH = Kind(
    plural="branches",
    wrapper="branch",
    result="branch",
    parents=("project",),
    changeable={"new_name": "name", "expires_at": "expires_at", "protected": "protected"},
    fixed={"parent": "parent_id"},
    problems={
        "parent": "branch {name} has another parent than {parent}, and an existing branch keeps its parent. Omit parent. If a restore"
        " has changed it, branch_restore with source: {parent} makes {parent} the parent again, and replaces the data"
    },
    initial={"from_timestamp": "parent_timestamp", "from_lsn": "parent_lsn", "init_source": "init_source"},
    references=("parent",),
    # Without the field, some services create a compute, and others none.
    beside_wrapper={"compute": {True: {"endpoints": [{"type": "read_write"}]}, False: {"endpoints": []}}},
    actions={
        "default": Action("set_as_default", sets_fields={"default": True}),
        "backup_schedule": Action("backup_schedule", "PUT", fields={"backup_schedule": "schedule"}),
        "recovered": Action("recover", sets_fields={"recovery": None}, listed_with={"include_deleted": True}),
    },
    # As the published API document bounds it.
    longest_life=timedelta(days=30),
)
BRANCH_RESTORE = Kind(
    plural="branches",
    wrapper="branch",
    result="branch",
    parents=("project",),
    identity={"name": "id"},
    references=("name", "source", "snapshot"),
    actions={
        "restored": Action(
            "restore",
            fields={
                "source": "source_branch_id",
                "timestamp": "source_timestamp",
                "lsn": "source_lsn",
                "preserve_as": "preserve_under_name",
            },
            defaults={
                "source_branch_id": (
                    "parent_id",
                    "branch {name} has no parent to restore it from. Set source to another branch, or set timestamp or lsn and"
                    " preserve_as to restore it from its own history.",
                )
            },
            evidence=("last_reset_at",),
        ),
        "snapshot restored": Action(
            "restore",
            below=("snapshots", "{snapshot}"),
            fields={"finalize": "finalize_restore"},
            defaults={"target_branch_id": ("id", "")},
            successor={"restored_as": "id"},
            evidence=("created_at",),
        ),
    },
)
COMPUTE = Kind(
    plural="endpoints",
    wrapper="endpoint",
    result="compute",
    parents=("project",),
    identity={"branch": "branch_id", "type": "type"},
    changeable={
        "min_cu": "autoscaling_limit_min_cu",
        "max_cu": "autoscaling_limit_max_cu",
        "suspend_timeout": "suspend_timeout_seconds",
        "name": "name",
        "settings": "settings",
        "disabled": "disabled",
    },
    references=("branch",),
    actions={
        "started": Action("start", sets_fields={"current_state": "active"}),
        "suspended": Action("suspend", sets_fields={"current_state": "idle"}),
        "restarted": Action("restart", evidence=("started_at",)),
    },
    problems={"branch": "{branch} has no compute of type {type}. Create it with state: present"},
)
DATABASE = Kind(
    plural="databases",
    wrapper="database",
    result="database",
    key="name",
    parents=("project", "branch"),
    changeable={"owner": "owner_name"},
)
DATABASE_USER = Kind(
    plural="roles",
    wrapper="role",
    result="database_user",
    key="name",
    parents=("project", "branch"),
    actions={"reset_password": Action("reset_password", evidence=("updated_at",))},
)
SNAPSHOT = Kind(
    plural="snapshots",
    wrapper="snapshot",
    result="snapshot",
    parents=("project",),
    creation=("branches", "{branch}", "snapshot"),
    changeable={"expires_at": "expires_at"},
    initial={"timestamp": "timestamp", "lsn": "lsn"},
    references=("branch",),
    is_unique=False,
)


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
        name: [each for each in items if branch_id in (None, each.get("branch_id"), each.get("source_branch_id"))],
        "warnings": not_created(params, segments, ids),
    }


def list_of(
    kind: Kind, params: Mapping[str, Any], client: Client, may_be_missing: bool
) -> tuple[tuple[str, ...], dict[str, Any]]:
    """The path of the list of this kind, and its query parameters."""
    if not kind.parents:
        return (kind.plural,), checked_query(params)
    if "branch" in kind.parents:
        project_id, branch_id = branch_from(params, client, may_be_missing)
        return ("projects", project_id, "branches", branch_id, kind.plural), {}
    return ("projects", project_id_from(params, client, may_be_missing), kind.plural), {}


def not_created(params: Mapping[str, Any], segments: Sequence[str], ids: Mapping[str, str]) -> list[str]:
    """The warnings of check mode about options that name what is not there; what an earlier task names has no value yet."""
    found = {**dict(zip(("project", "branch"), segments[1::2])), **ids}
    return [
        will_fail(
            f"{option}: there is no {option if option in ('project', 'snapshot') else 'branch'} '{params[option]}'"
        )
        for option, value in found.items()
        if value == NOT_CREATED_ID and params.get(option) not in (None, NOT_CREATED_ID)
        # Nothing is looked up below a project that is not there.
        if option == "project" or segments[1] != NOT_CREATED_ID
    ]
