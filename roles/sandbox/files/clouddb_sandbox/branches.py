# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Branches. The computes, databases and roles of a branch are deleted with it."""

from __future__ import annotations

import json
import sqlite3
from datetime import datetime
from typing import Any

from fastapi import HTTPException

from . import databases, identifiers, lifecycle, operations, projects, roles
from .clock import SECOND, format_optional, format_timestamp, to_microseconds
from .pagination import decode_keys, encode_keys
from .request_models import BranchChanges, BranchRestoreRequest, DefaultBranch, NewBranch
from .response_models import Branch, BranchListResponse, NextPagination, Operation, RestrictedAction
from .responses import unique_name
from .store import Transaction

DEFAULT_BRANCH = "main"
DEFAULT_DATABASE = "clouddb"
MAX_LIFETIME = 30 * 86400 * SECOND
RESTRICTED_ACTIONS = [
    RestrictedAction(name=name, reason="the branch is protected") for name in ("restore", "delete-rw-endpoint")
]


def insert_default(
    tx: Transaction,
    project_id: str,
    fields: DefaultBranch,
    branch_id: str | None = None,
    created_at: int | None = None,
) -> Branch:
    """Insert the default branch of a new project, with a database and the role that owns it."""
    created_at = created_at or tx.unique_time()
    name, database_name = fields.name or DEFAULT_BRANCH, fields.database_name or DEFAULT_DATABASE
    role_name = fields.role_name or f"{database_name}_owner"
    branch = insert_row(
        tx, project_id, name, id=branch_id or identifiers.branch_id(), created_at=created_at, is_default=True
    )
    roles.insert(tx, branch.id, role_name, created_at)
    databases.insert(tx, branch.id, database_name, role_name, created_at)
    return branch


def insert(tx: Transaction, parent: Branch, fields: NewBranch) -> Branch:
    """Insert a branch with the roles and the databases of its parent. Raises a 409 error if the name exists.

    Raises a 422 error if the parent expires, or if its history does not contain the time that is given.
    """
    if parent.expires_at:
        raise HTTPException(422, f"branch {parent.id} cannot have children: it expires at {parent.expires_at}")
    time = time_in_history(tx, parent, fields.parent_timestamp, fields.parent_lsn)
    branch = insert_row(
        tx,
        parent.project_id,
        fields.name,
        parent_id=None if fields.init_source == "schema-only" else parent.id,
        init_source=fields.init_source,
        parent_timestamp=time if fields.parent_timestamp else None,
        parent_lsn=fields.parent_lsn,
    )
    branch = update(tx, branch, fields)
    copy_content(tx, parent.id, branch.id, time)
    if parent.protected:
        for role in roles.list_all(tx, branch.id):
            roles.set_password(tx, role, roles.generate_password())
    return branch


def insert_row(tx: Transaction, project_id: str, name: str | None, **columns: str | int | None) -> Branch:
    """Insert a branch, which is named like its id by default. Raises a 409 error if the name exists."""
    branch_id = columns.get("id") or identifiers.branch_id()
    created_at = columns.get("created_at") or tx.unique_time()
    row = {
        **columns,
        "id": branch_id,
        "project_id": project_id,
        "name": name or branch_id,
        "created_at": created_at,
        "updated_at": created_at,
    }
    with unique_name(f"project {project_id}", "branch", str(row["name"])):
        tx.insert("branches", row)
    return get(tx, project_id, str(branch_id))


def time_in_history(tx: Transaction, source: Branch, timestamp: datetime | None, lsn: str | None) -> int:
    """Return the time of the branch's content that is copied: now, or a time in its history. Raises a 422 error.

    The sandbox has no history of sequence numbers, so those mean now.
    """
    if timestamp and lsn:
        raise HTTPException(422, "a timestamp and an LSN are mutually exclusive")
    time = to_microseconds(timestamp) if timestamp else tx.now
    project = tx.db.execute("SELECT * FROM projects WHERE id = ?", (source.project_id,)).fetchone()
    created_at = tx.db.execute("SELECT created_at FROM branches WHERE id = ?", (source.id,)).fetchone()["created_at"]
    begins_at = max(project["created_at"], created_at, tx.now - project["history_retention_seconds"] * SECOND)
    if timestamp and not begins_at <= time <= tx.now:
        raise HTTPException(422, f"the history of branch {source.id} does not contain {timestamp}")
    return time


def copy_content(tx: Transaction, source_id: str, branch_id: str, time: int) -> None:
    """Copy the roles and databases that existed at this time, unless they were deleted since."""
    for table, columns in (("roles", "name, password"), ("databases", "name, owner_name")):
        tx.db.execute(
            f"INSERT INTO {table} (branch_id, {columns}, created_at, updated_at)"
            f" SELECT ?, {columns}, created_at, updated_at FROM {table} WHERE branch_id = ? AND created_at <= ? ORDER BY rowid",
            (branch_id, source_id, time),
        )


def list_page(
    tx: Transaction,
    project_id: str,
    *,
    search: str | None,
    sort_by: str,
    sort_order: str,
    cursor: str | None,
    limit: int,
) -> BranchListResponse:
    """Return a page of a project's branches. Raises a 404 error if the project does not exist."""
    projects.get(tx, project_id)
    conditions, values = ["project_id = ?"], [project_id]
    if search:
        conditions.append("(instr(lower(name), lower(?)) OR instr(lower(id), lower(?)))")
        values += [search, search]
    if cursor is not None:
        conditions.append(f"({sort_by}, seq) {'<' if sort_order == 'desc' else '>'} (?, ?)")
        values += decode_keys(cursor)
    rows = tx.db.execute(
        f"SELECT * FROM branch_states WHERE {' AND '.join(conditions)}"
        f" ORDER BY {sort_by} {sort_order}, seq {sort_order} LIMIT ?",
        [*values, limit + 1],
    ).fetchall()
    following = encode_keys(rows[limit - 1][sort_by], rows[limit - 1]["seq"]) if len(rows) > limit else None
    return BranchListResponse(
        branches=[from_row(row, tx.now) for row in rows[:limit]],
        pagination=NextPagination(next=following, sort_by=sort_by, sort_order=sort_order),
    )


def find(tx: Transaction, project_id: str, branch_id: str | None) -> Branch | None:
    """Return the branch with this id, or the default branch. Raises a 404 error if the project does not exist."""
    projects.get(tx, project_id)
    row = tx.db.execute(
        "SELECT * FROM branch_states WHERE project_id = :project"
        " AND (id = :branch OR (:branch IS NULL AND is_default))",
        {"project": project_id, "branch": branch_id},
    ).fetchone()
    return from_row(row, tx.now) if row else None


def get(tx: Transaction, project_id: str, branch_id: str | None) -> Branch:
    """Return the branch with this id, or the default branch. Raises a 404 error if it or the project does not exist."""
    branch = find(tx, project_id, branch_id)
    if branch is None:
        raise HTTPException(404, f"branch {branch_id} not found in project {project_id}")
    return branch


def get_unlocked(tx: Transaction, project_id: str, branch_id: str | None) -> Branch:
    """Return the branch, for a request that changes it. Raises the errors of get() and of refuse_if_locked()."""
    branch = get(tx, project_id, branch_id)
    refuse_if_locked(tx, branch)
    return branch


def refuse_if_locked(tx: Transaction, branch: Branch) -> None:
    """Raise a 423 error while the branch is being deleted, or an operation on it is unfinished."""
    if branch.current_state == "deleting":
        raise HTTPException(423, f"branch {branch.id} is being deleted")
    operations.refuse_if_locked(tx, branch.project_id, branch.id)


def start_creation(tx: Transaction, branch: Branch, action: str) -> Operation:
    """Start the operation that creates the branch. The branch is in the state `init` until it is finished."""
    operation = operations.start(tx, action, project_id=branch.project_id, branch_id=branch.id)
    tx.db.execute("UPDATE branches SET creation_id = ? WHERE id = ?", (operation.id, branch.id))
    return operation


def update(tx: Transaction, branch: Branch, changes: BranchChanges) -> Branch:
    """Change the fields that are given. Raises a 409 error if the name exists, and a 422 error if the branch must not expire, or not then."""
    name = changes.name or branch.name
    with unique_name(f"project {branch.project_id}", "branch", name):
        tx.db.execute(
            "UPDATE branches SET name = ?, protected = coalesce(?, protected), updated_at = ? WHERE id = ?",
            (name, changes.protected, tx.unique_time(), branch.id),
        )
    if "expires_at" in changes.model_fields_set:
        expires_at = to_microseconds(changes.expires_at) if changes.expires_at else None
        if expires_at and not tx.now < expires_at <= tx.now + MAX_LIFETIME:
            raise HTTPException(422, "expires_at must be in the future, and at most 30 days ahead")
        if expires_at and children_of(tx, branch):
            raise HTTPException(422, f"branch {branch.id} cannot expire: it has children")
        ttl_seconds = round((expires_at - tx.now) / SECOND) if expires_at else None
        tx.db.execute(
            "UPDATE branches SET expires_at = ?, ttl_seconds = ? WHERE id = ?", (expires_at, ttl_seconds, branch.id)
        )
    changed = get(tx, branch.project_id, branch.id)
    if changed.expires_at and (changed.default or changed.protected):
        raise HTTPException(422, f"branch {branch.id} cannot expire: it is protected or the project's default branch")
    return changed


def require_deletable(tx: Transaction, branch: Branch) -> None:
    """Raise a 422 error if the branch is protected, is the default branch or that of the project's creation, or has children."""
    if branch.protected:
        raise HTTPException(422, f"cannot delete branch {branch.id}: it is protected")
    if branch.default:
        raise HTTPException(422, f"cannot delete branch {branch.id}: it is the project's default branch")
    if is_root_of_project(tx, branch):
        raise HTTPException(422, "cannot delete the root branch")
    if children := children_of(tx, branch):
        raise HTTPException(
            422, f"cannot delete branch {branch.id}: it has children; delete {', '.join(children)} first"
        )


def is_root_of_project(tx: Transaction, branch: Branch) -> bool:
    """Whether the project was created with this branch, and no snapshot was restored in its place."""
    oldest = tx.db.execute(
        "SELECT id FROM branches WHERE project_id = ? ORDER BY created_at, seq LIMIT 1", (branch.project_id,)
    ).fetchone()
    is_replaced = tx.db.execute(
        "SELECT 1 FROM branches WHERE project_id = ? AND restored_as = ? AND restore_status = 'finalized'",
        (branch.project_id, branch.id),
    ).fetchone()
    is_of_creation = branch.init_source == "parent-data" and not branch.restored_from
    return oldest["id"] == branch.id and is_of_creation and not is_replaced


def children_of(tx: Transaction, branch: Branch) -> list[str]:
    return [row["id"] for row in tx.db.execute("SELECT id FROM branches WHERE parent_id = ?", (branch.id,))]


def set_as_default(tx: Transaction, branch: Branch) -> Branch:
    """Make the branch the project's default branch. Raises a 422 error if it expires."""
    if branch.expires_at:
        raise HTTPException(422, f"branch {branch.id} cannot be the default branch: it expires at {branch.expires_at}")
    tx.db.execute("UPDATE branches SET is_default = (id = ?) WHERE project_id = ?", (branch.id, branch.project_id))
    return get(tx, branch.project_id, branch.id)


def restore(tx: Transaction, branch: Branch, source: Branch, fields: BranchRestoreRequest) -> None:
    """Replace the roles and databases of the branch. Its computes stay. Raises 409 and 422 errors.

    The previous state, and the children, can become those of another branch.
    """
    if branch.protected:
        raise HTTPException(422, f"branch {branch.id} cannot be restored: it is protected")
    time = time_in_history(tx, source, fields.source_timestamp, fields.source_lsn)
    is_own = source.id == branch.id
    if is_own and branch.restored_from:
        raise HTTPException(422, "restore from snapshot on target branch is still ongoing")
    if is_own and not (fields.source_timestamp or fields.source_lsn):
        raise HTTPException(422, "source_timestamp or source_lsn is required: the branch is its own source")
    if not fields.preserve_under_name and (is_own or children_of(tx, branch)):
        raise HTTPException(422, "preserve_under_name is required: the branch has children, or is its own source")
    passwords = [roles.get(tx, branch.id, role.name) for role in roles.list_all(tx, branch.id) if source.protected]
    kept = None
    if fields.preserve_under_name:
        kept = insert_row(tx, branch.project_id, fields.preserve_under_name, parent_id=branch.parent_id).id
        tx.db.execute("UPDATE branches SET parent_id = ? WHERE parent_id = ?", (kept, branch.id))
    for table in ("roles", "databases"):
        if kept:
            tx.db.execute(f"UPDATE {table} SET branch_id = ? WHERE branch_id = ?", (kept, branch.id))
        else:
            tx.db.execute(f"DELETE FROM {table} WHERE branch_id = ?", (branch.id,))
    origin = kept if is_own and kept else source.id
    copy_content(tx, origin, branch.id, time)
    for role in passwords:
        roles.set_password(tx, role, role.password)
    tx.db.execute(
        "UPDATE branches SET parent_id = ?, parent_timestamp = ?, parent_lsn = ?, init_source = 'parent-data',"
        " last_reset_at = ?, expires_at = ? + ttl_seconds * 1000000, updated_at = ? WHERE id = ?",
        (
            # A root branch that is restored from its own history remains one.
            None if is_own and branch.parent_id is None else origin,
            time if fields.source_timestamp else None,
            fields.source_lsn,
            tx.now,
            tx.now,
            tx.unique_time(),
            branch.id,
        ),
    )


def delete(tx: Transaction, branch: Branch, *, is_hard: bool) -> Branch:
    """Delete a branch, which can be recovered unless C(is_hard). Returns it, as it is now if its deletion lingers."""
    if not is_hard:
        tx.keep_deleted(branch.id, tx.unique_time(), "user")
    tx.delete(branch.id, "DELETE FROM branches WHERE id = ?", branch.id)
    return find(tx, branch.project_id, branch.id) or branch


def state_of(row: sqlite3.Row | dict[str, Any], now: int) -> tuple[str, int]:
    """Return the state, and since when the branch has had it."""
    if row["deleting"]:
        return "deleting", row["updated_at"]
    if row["creation_timeline"] is None:
        return "ready", row["created_at"]
    creation = lifecycle.state_at(json.loads(row["creation_timeline"]), row["creation_started_at"], now)
    if creation.status == "finished":
        return "ready", creation.updated_at
    return "resetting" if row["last_reset_at"] else "init", row["creation_started_at"]


def from_row(row: sqlite3.Row | dict[str, Any], now: int) -> Branch:
    state, state_changed_at = state_of(row, now)
    return Branch(
        id=row["id"],
        project_id=row["project_id"],
        parent_id=row["parent_id"],
        name=row["name"],
        parent_timestamp=format_optional(row["parent_timestamp"]),
        parent_lsn=row["parent_lsn"],
        init_source=row["init_source"],
        default=bool(row["is_default"]),
        protected=bool(row["protected"]),
        expires_at=format_optional(row["expires_at"]),
        last_reset_at=format_optional(row["last_reset_at"]),
        current_state=state,
        restricted_actions=RESTRICTED_ACTIONS if row["protected"] else None,
        ttl_interval_seconds=row["ttl_seconds"],
        restored_from=row["restored_from"],
        restored_as=row["restored_as"],
        restore_status=row["restore_status"],
        state_changed_at=format_timestamp(state_changed_at),
        created_at=format_timestamp(row["created_at"]),
        updated_at=format_timestamp(row["updated_at"]),
    )
