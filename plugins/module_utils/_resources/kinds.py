# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kinds of resources that have a module of their own, each a row. Keeps P2, P3 and P9.

The paths and fields are those of the published API document, because api.md names these resources without them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable, NamedTuple

from .._http.client import Client
from .goal import Action, Find, Refusal, Resource, ResourceRequest
from .refusals import refusal_of_branch, refusal_of_compute, refusal_of_database, refusal_of_restore, refusal_of_user


class Kind(NamedTuple):
    """A kind of resource, whose list C(plural) is below that of its C(parents), each named by the option of that name.

    Bodies and responses have it in the field C(wrapper), and its result is C(result). Paths name it by the field C(key).
    Fields by option: C(identity) selects it, unless the option C(id) does, C(changeable) may be changed, C(fixed) is only set by its
    creation, and C(initial) as well, but is not compared. C(references) are the options with the id or the name of a branch.
    C(missing) is the error if there is no such resource, with options in braces, and C(moved) that for another value of a fixed field, by option.
    C(parts) are further fields of the request that creates it, by option and its value. C(actions) are further requests, by the
    value of C(state) or the option that asks for them. C(refusal) returns why the service's lists show that it refuses a request.
    Several resources may have the same C(identity) unless C(is_unique).
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
    parts: Mapping[str, Mapping[bool, Mapping[str, Any]]] = {}
    actions: Mapping[str, Action] = {}
    missing: str = "there is no {noun} '{name}'. {advice}"
    moved: Mapping[str, str] = {}
    refusal: Callable[[Client, Find, ResourceRequest, Resource | None], Refusal | None] | None = None
    is_unique: bool = True

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
    initial={"first_branch": "branch"},
    is_unique=False,
)
BRANCH = Kind(
    plural="branches",
    wrapper="branch",
    result="branch",
    parents=("project",),
    changeable={"new_name": "name", "expires_at": "expires_at", "protected": "protected"},
    fixed={"parent": "parent_id"},
    moved={
        "parent": "branch {name} has another parent than {parent}, and an existing branch keeps its parent. Omit parent. If a restore"
        " has changed it, branch_restore with source: {parent} makes {parent} the parent again, and replaces the data"
    },
    initial={"from_timestamp": "parent_timestamp", "from_lsn": "parent_lsn", "init_source": "init_source"},
    references=("parent",),
    # Without the field, some services create a compute, and others none.
    parts={"compute": {True: {"endpoints": [{"type": "read_write"}]}, False: {"endpoints": []}}},
    actions={"default": Action("set_as_default", sets={"default": True})},
    refusal=refusal_of_branch,
)
BRANCH_RESTORE = Kind(
    plural="branches",
    wrapper="branch",
    result="branch",
    parents=("project",),
    identity={"name": "id"},
    references=("name", "source"),
    actions={
        "restored": Action(
            "restore",
            fields={
                "source": "source_branch_id",
                "timestamp": "source_timestamp",
                "lsn": "source_lsn",
                "preserve_as": "preserve_under_name",
            },
            defaults={"source_branch_id": "parent_id"},
            lacking="branch {name} has no parent to restore it from. Set source to another branch, or set timestamp or lsn and"
            " preserve_as to restore it from its own history.",
            evidence=("last_reset_at",),
        )
    },
    refusal=refusal_of_restore,
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
        "started": Action("start", sets={"current_state": "active"}, operation="start_compute"),
        "suspended": Action("suspend", sets={"current_state": "idle"}, operation="suspend_compute"),
        "restarted": Action("restart", evidence=("started_at",)),
    },
    missing="{branch} has no compute of type {type}. Create it with state: present",
    refusal=refusal_of_compute,
)
DATABASE = Kind(
    plural="databases",
    wrapper="database",
    result="database",
    key="name",
    parents=("project", "branch"),
    changeable={"owner": "owner_name"},
    refusal=refusal_of_database,
)
DATABASE_USER = Kind(
    plural="roles",
    wrapper="role",
    result="database_user",
    key="name",
    parents=("project", "branch"),
    actions={"reset_password": Action("reset_password", evidence=("updated_at",))},
    refusal=refusal_of_user,
)
