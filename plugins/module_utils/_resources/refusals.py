# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why the service refuses a request, as its values or lists show: in check mode beforehand, else afterwards. Keeps P9 and P11.

Each rule names the answer of the service that it foresees. What an earlier task of the play may change by creating or deleting
something has a remedy: in check mode, that is a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from functools import cache
from typing import Any

from .._errors import ClouddbError, InvalidOption
from .._http.client import Client
from .._http.errors import RequestFailed
from .._lists import list_resources, there_is_no
from .._operations.operations import MAX_NAMED, time_of_creation
from .._timestamps import BEGINNING, parse_timestamp, timestamp_of
from .._untrusted import displayable
from .goal import Find, Goal, Refusal, ResourceRequest
from .kinds import SCHEMA_ONLY
from .state import ABSENT, DELETING, Resource, label_of, own_state

Branches = Callable[[], Sequence[Resource]]


def refusal_of(client: Client, goal: Goal, request: ResourceRequest, found: Resource | None) -> Refusal | None:
    """Why the values or the service's lists show that it refuses the goal's request; None if they do not, or cannot be fetched."""
    if goal.kind is None or goal.find is None or not goal.find.has_all_values:
        return None
    rule = RULES.get(request.action.path if request.action else "", RULES.get(goal.kind.plural))
    try:
        return rule(client, goal.find, request, found) if rule else None
    except RequestFailed:
        return None


def refusal_of_branch(client: Client, find: Find, request: ResourceRequest, found: Resource | None) -> Refusal | None:
    """Why a branch cannot be created, changed, made the default branch or deleted."""
    fields, present = request.fields(found or {}), _present(client, find)
    after = {**(found or {}), **fields}
    if request.method == "DELETE":
        return _refusal_to_delete(present, found)
    parent_id = fields.get("parent_id") if found is None else None
    if parent_id and (refusal := _refusal_of_parent(present, parent_id)):
        return refusal
    if found is None and "parent_timestamp" in fields:
        parents = (each for each in present() if each.get("id") == parent_id or (not parent_id and each.get("default")))
        return _refusal_of_time(client, find, "from_timestamp", fields["parent_timestamp"], parents)
    if found and (others := _named(present, fields.get("name"), found)):
        problem = f"there is another branch of this name, {label_of(others[0])}. Set another name, or rename or delete this branch"
        return Refusal(InvalidOption("new_name", problem))
    if not after.get("expires_at") or not {"expires_at", "protected", "default"} & fields.keys():
        return None
    name = _name_of(after)
    for field, state in (("default", "the default branch"), ("protected", "protected")):
        if after.get(field) and field in fields:
            advice = "Omit expires_at" if "expires_at" in fields else "Set expires_at: never first"
            return Refusal(InvalidOption(field, f"branch {name} expires, so it cannot be {state}. {advice}"))
        if after.get(field):
            return Refusal(
                InvalidOption("expires_at", f"branch {name} is {state}, so it cannot expire. Omit expires_at")
            )
    children = _children(present, found) if "expires_at" in fields else []
    problem = f"branch {name} cannot expire, because other branches were created from it: {', '.join(children)}"
    return Refusal(InvalidOption("expires_at", problem), "deletes them") if children else None


def _refusal_of_parent(present: Branches, parent_id: Any) -> Refusal | None:
    parents = [branch for branch in present() if branch.get("id") == parent_id]
    if not parents or not parents[0].get("expires_at"):
        return None
    name = _name_of(parents[0])
    return Refusal(InvalidOption("parent", f"branch {name} expires, so no branch can be created from it"))


def _refusal_to_delete(present: Branches, found: Resource | None) -> Refusal | None:
    if found is None:
        return None
    reason, remedy = reason_to_keep(found), ""
    if not reason and found.get("id") == root_of(present()):
        reason = "it is the root branch, which a project keeps until a snapshot is restored in its place."
    if not reason and (children := _children(present, found)):
        reason = f"other branches were created from it. Delete these first: {', '.join(children)}."
        remedy = "deletes them"
    problem = f"Branch {_name_of(found)} cannot be deleted: {reason}"
    return Refusal(ClouddbError("refused", problem), remedy) if reason else None


def refusal_of_restore(client: Client, find: Find, request: ResourceRequest, found: Resource | None) -> Refusal | None:
    """Why a branch cannot be restored from this source, or not without another name for its present state."""
    fields, own_id, present = request.body or {}, (found or find.match)["id"], _present(client, find)
    if request.action and request.action.successor:
        return None
    kept_as = fields.get("preserve_under_name")
    is_own = fields.get("source_branch_id") == own_id
    if found and found.get("protected"):
        problem = f"Branch {_name_of(found)} cannot be restored: it is protected. Set protected: false first."
        return Refusal(ClouddbError("refused", problem))
    if is_own and not {"source_timestamp", "source_lsn"} & fields.keys():
        return Refusal(InvalidOption("source", "is the branch itself. Set timestamp or lsn, or another source"))
    if is_own and (found or {}).get("restored_from"):
        problem = "is the branch itself, which was restored from a snapshot, so that its own history cannot be restored. Set another source"
        return Refusal(InvalidOption("source", problem))
    if is_own and not kept_as:
        return Refusal(InvalidOption("preserve_as", "is required to restore a branch from its own history"))
    if _named(present, kept_as):
        problem = (
            f"there is a branch {displayable(kept_as, 100)} already. Set another name, or delete or rename this branch"
        )
        return Refusal(InvalidOption("preserve_as", problem))
    if time := fields.get("source_timestamp"):
        sources = (each for each in present() if each.get("id") == fields.get("source_branch_id"))
        if refusal := _refusal_of_time(client, find, "timestamp", time, sources):
            return refusal
    children = [] if kept_as else _children(present, {"id": own_id})
    problem = f"is required, because other branches were created from this one: {', '.join(children)}"
    return Refusal(InvalidOption("preserve_as", problem), "deletes them") if children else None


def _refusal_of_time(
    client: Client, find: Find, option: str, time: Any, sources: Iterable[Mapping[str, Any]]
) -> Refusal | None:
    """Why the first of these branches has no data of this time: its history, which the project bounds, begins later."""
    source = next(iter(sources), None)
    if time is None or source is None:
        return None
    retention = client.get(*find.segments[:2]).object("project").get("history_retention_seconds")
    kept_since = client.service_now() - timedelta(seconds=retention) if isinstance(retention, int) else BEGINNING
    since = max(kept_since, time_of_creation(source))
    if parse_timestamp(time) >= since:
        return None
    limit = f" The project keeps {retention} s (history_retention)." if since == kept_since else ""
    since += timedelta(seconds=1)  # the next whole second
    problem = f"the history of branch {_name_of(source)} begins at {since:%Y-%m-%dT%H:%M:%SZ}.{limit} Set a later time"
    return Refusal(InvalidOption(option, problem))


def refusal_of_compute(client: Client, find: Find, request: ResourceRequest, found: Resource | None) -> Refusal | None:
    """Why a compute cannot be deleted, or not have these sizes: its branch is protected, the smallest is more than the largest."""
    if request.method == "DELETE":
        branches = list_resources(client, (*find.segments[:-1], "branches"), "branches").items
        own = [each for each in branches if each.get("protected") and each.get("id") == (found or {}).get("branch_id")]
        problem = "cannot be deleted: its branch is protected. Set protected: false of the branch first."
        return Refusal(ClouddbError("refused", f"Compute {label_of(found or {})} {problem}")) if own else None
    return _refusal_of_sizes(found or {}, request.fields(found or {}))


def _refusal_of_sizes(before: Mapping[str, Any], fields: Mapping[str, Any]) -> Refusal | None:
    least, most = ({**before, **fields}.get(f"autoscaling_limit_{side}_cu") for side in ("min", "max"))
    if not isinstance(least, (int, float)) or not isinstance(most, (int, float)) or least <= most:
        return None
    if "autoscaling_limit_min_cu" in fields:
        problem = f"{least:g} is more than max_cu, which is {most:g}"
        return Refusal(InvalidOption("min_cu", f"{problem}. Set a smaller min_cu, or a larger max_cu"))
    problem = f"{most:g} is less than min_cu, which is {least:g}"
    return Refusal(InvalidOption("max_cu", f"{problem}. Set a larger max_cu, or a smaller min_cu"))


def refusal_of_project(client: Client, find: Find, request: ResourceRequest, found: Resource | None) -> Refusal | None:
    """Why a project cannot be deleted: it has a protected branch; or why its computes cannot have these sizes."""
    if request.method != "DELETE" or found is None:
        before, sizes = ((each or {}).get("default_endpoint_settings") for each in (found, request.fields(found or {})))
        refusal = _refusal_of_sizes(before or {}, sizes) if sizes else None
        return Refusal(InvalidOption("default_compute", str(refusal.error))) if refusal else None
    branches = list_resources(client, (*find.segments, str(found["id"]), "branches"), "branches").items
    names = ", ".join([_name_of(each) for each in branches if each.get("protected")][:MAX_NAMED])
    problem = (
        f"Project {label_of(found)} cannot be deleted: it has protected branches. Set protected: false first: {names}."
    )
    return Refusal(ClouddbError("refused", problem), "does so") if names else None


def refusal_of_database(client: Client, find: Find, request: ResourceRequest, found: Resource | None) -> Refusal | None:
    """Why a database cannot have this owner: it is no user of the branch."""
    owner = request.fields(found or {}).get("owner_name")
    if owner is None:
        return None
    listed = list_resources(client, (*find.segments[:-1], "roles"), "roles")
    if owner in listed.names:
        return None
    error = there_is_no("owner", "user", listed, owner)
    error.add(after="Create the user with database_user.")
    return Refusal(error, "creates it")


def refusal_of_user(client: Client, find: Find, request: ResourceRequest, found: Resource | None) -> Refusal | None:
    """Why a user cannot be deleted: it owns a database."""
    if request.method != "DELETE" or found is None:
        return None
    databases = list_resources(client, (*find.segments[:-1], "databases"), "databases").items
    owned = [displayable(each.get("name"), 100) for each in databases if each.get("owner_name") == found.get("name")]
    name, names = displayable(found.get("name"), 100), ", ".join(owned[:MAX_NAMED])
    problem = f"User {name} cannot be deleted: it owns {names}. Delete the database, or give it another owner, first."
    return Refusal(ClouddbError("refused", problem), "does so") if owned else None


def refusal_of_snapshot(client: Client, find: Find, request: ResourceRequest, found: Resource | None) -> Refusal | None:
    """Why there can be no snapshot of a branch: it is not a root branch, or has no data of this time."""
    if request.method != "POST" or found:
        return None
    branch = client.get(*request.segments[:-1]).object("branch")
    time = request.fields({}).get("timestamp")
    return _refusal_of_child(branch, "branch", "snapshots") or _refusal_of_time(
        client, find, "timestamp", time, [branch]
    )


def refusal_of_schedule(client: Client, find: Find, request: ResourceRequest, found: Resource | None) -> Refusal | None:
    """Why a branch can have no backup schedule: it is not a root branch."""
    # An empty one is what a branch without a schedule has.
    is_set = any(request.fields(found or {}).values())
    return _refusal_of_child(found or {}, "backup_schedule", "a backup schedule") if is_set else None


def _refusal_of_child(branch: Mapping[str, Any], option: str, what: str) -> Refusal | None:
    problem = f"branch {_name_of(branch)} cannot have {what}, because it is not a root branch: it has a parent"
    # In check mode, a branch that the task would create has no id, and its parent may be the default branch.
    is_child = branch.get("parent_id") or (branch.get("id") is None and branch.get("init_source") != SCHEMA_ONLY)
    return Refusal(InvalidOption(option, problem)) if is_child else None


def refusal_of_recovery(client: Client, find: Find, request: ResourceRequest, found: Resource | None) -> Refusal | None:
    """Why a deleted branch cannot be recovered: its parent is deleted as well."""
    parent_id = (found or {}).get("parent_id")
    if not parent_id or any(branch.get("id") == parent_id for branch in _present(client, find)()):
        return None
    problem = f"Branch {_name_of(found or {})} cannot be recovered: its parent {displayable(parent_id, 100)} is deleted. Recover that first."
    return Refusal(ClouddbError("refused", problem), "recovers it")


def reason_to_keep(branch: Mapping[str, Any]) -> str:
    """Why the branch cannot be deleted, even without children; empty if it can be."""
    if branch.get("default"):
        return "it is the default branch of the project. Make another branch the default first."
    if branch.get("protected"):
        return "it is protected. Set protected: false first."
    return ""


def root_of(branches: Sequence[Mapping[str, Any]]) -> Any:
    """The id of the branch that their project was created with; None if a snapshot was restored in its place.

    Branches without a parent that were created later can be deleted.
    """
    dated = [branch for branch in branches if timestamp_of(branch, "created_at")]
    first = min(dated, key=time_of_creation, default=Resource())
    is_later = first.get("parent_id") or first.get("restored_from") or first.get("init_source") == SCHEMA_ONLY
    restored = [each for each in branches if each.get("restored_as") == first.get("id")]
    is_replaced = any(each.get("restore_status") != "restored" for each in restored)
    return None if is_later or is_replaced else first.get("id")


def _present(client: Client, find: Find) -> Branches:
    """The branches that are not being deleted, which are listed once, when they are needed first."""

    @cache
    def present() -> list[Resource]:
        listed = list_resources(client, find.segments, find.field).items
        return [branch for branch in listed if own_state(branch) not in (ABSENT, DELETING)]

    return present


def _named(present: Branches, name: Any, found: Resource | None = None) -> list[Resource]:
    """The other branches that have this name."""
    if not name or name == (found or {}).get("name"):
        return []
    own_id = (found or {}).get("id")
    return [each for each in present() if each.get("name") == name and each.get("id") != own_id]


def _children(present: Branches, found: Resource | None) -> list[str]:
    """The names of the first branches that were created from this one."""
    own_id = (found or {}).get("id")
    children = [_name_of(each) for each in present() if own_id and each.get("parent_id") == own_id]
    return children[:MAX_NAMED]


def _name_of(branch: Mapping[str, Any]) -> str:
    return displayable(branch.get("name") or label_of(branch), 100)


# By the path of an action, else by the list of the resource.
RULES: Mapping[str, Callable[[Client, Find, ResourceRequest, Resource | None], Refusal | None]] = {
    "restore": refusal_of_restore,
    "recover": refusal_of_recovery,
    "projects": refusal_of_project,
    "backup_schedule": refusal_of_schedule,
    "snapshots": refusal_of_snapshot,
    "branches": refusal_of_branch,
    "endpoints": refusal_of_compute,
    "databases": refusal_of_database,
    "roles": refusal_of_user,
}
