# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Branches. The computes, databases and roles of a branch are deleted with it."""

from __future__ import annotations

import json
import sqlite3

from fastapi import HTTPException

from . import databases, identifiers, lifecycle, operations, projects, roles
from .clock import SECOND, format_timestamp, to_microseconds
from .pagination import encode_cursor, select_page
from .request_models import BranchChanges, NewBranch
from .response_models import Branch, BranchListResponse, NextPagination, Operation
from .responses import unique_name
from .store import Transaction

DEFAULT_BRANCH = "main"
DEFAULT_DATABASE = "clouddb"
DEFAULT_ROLE = "clouddb_owner"
MAX_LIFETIME = 30 * 86400 * SECOND


def insert_default(
    tx: Transaction, project_id: str, branch_id: str | None = None, created_at: int | None = None
) -> Branch:
    """Insert the default branch of a new project, with a database and the role that owns it."""
    created_at = created_at or tx.unique_time()
    branch = insert_row(tx, project_id, branch_id or identifiers.branch_id(), DEFAULT_BRANCH, None, created_at)
    roles.insert(tx, branch.id, DEFAULT_ROLE, created_at)
    databases.insert(tx, branch.id, DEFAULT_DATABASE, DEFAULT_ROLE, created_at)
    return branch


def insert(tx: Transaction, parent: Branch, fields: NewBranch) -> Branch:
    """Insert a branch with the roles and the databases of its parent. Raises a 409 error if the name exists."""
    branch_id, created_at = identifiers.branch_id(), tx.unique_time()
    branch = insert_row(tx, parent.project_id, branch_id, fields.name or branch_id, parent.id, created_at)
    branch = update(tx, branch, fields)
    roles.copy(tx, parent.id, branch.id, created_at)
    databases.copy(tx, parent.id, branch.id, created_at)
    return branch


def insert_row(
    tx: Transaction, project_id: str, branch_id: str, name: str, parent_id: str | None, created_at: int
) -> Branch:
    with unique_name(f"project {project_id}", "branch", name):
        tx.db.execute(
            "INSERT INTO branches (id, project_id, parent_id, name, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?)",
            (branch_id, project_id, parent_id, name, created_at, created_at),
        )
    return get(tx, project_id, branch_id)


def list_page(tx: Transaction, project_id: str, cursor: str | None, limit: int) -> BranchListResponse:
    """Return a page of a project's branches, oldest first. Raises a 404 error if the project does not exist."""
    projects.get(tx, project_id)
    rows = select_page(tx, "branch_states", ["project_id = ?"], [project_id], cursor, limit + 1, "ASC")
    following = encode_cursor(rows[limit - 1]) if len(rows) > limit else None
    return BranchListResponse(
        branches=[from_row(row, tx.now) for row in rows[:limit]],
        pagination=NextPagination(next=following, sort_by="created_at", sort_order="asc"),
    )


def find(tx: Transaction, project_id: str, branch_id: str | None) -> Branch | None:
    """Return the branch with this id, or the default branch. Raises a 404 error if the project does not exist."""
    projects.get(tx, project_id)
    row = tx.db.execute(
        "SELECT * FROM branch_states WHERE project_id = :project"
        " AND (id = :branch OR (:branch IS NULL AND parent_id IS NULL))",
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
    if branch.current_state == "deleting":
        raise HTTPException(423, f"branch {branch.id} is being deleted")
    operations.refuse_if_locked(tx, project_id, branch.id)
    return branch


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
        tx.db.execute("UPDATE branches SET expires_at = ? WHERE id = ?", (expires_at, branch.id))
    changed = get(tx, branch.project_id, branch.id)
    if changed.expires_at and (changed.default or changed.protected):
        raise HTTPException(422, f"branch {branch.id} cannot expire: it is protected or the project's default branch")
    return changed


def require_deletable(tx: Transaction, branch: Branch) -> None:
    """Raise a 422 error if the branch is protected, is the default branch or has children."""
    if branch.protected:
        raise HTTPException(422, f"cannot delete branch {branch.id}: it is protected")
    if branch.default:
        raise HTTPException(422, f"cannot delete branch {branch.id}: it is the project's default branch")
    children = [row["id"] for row in tx.db.execute("SELECT id FROM branches WHERE parent_id = ?", (branch.id,))]
    if children:
        raise HTTPException(
            422, f"cannot delete branch {branch.id}: it has children; delete {', '.join(children)} first"
        )


def delete(tx: Transaction, branch: Branch) -> Branch:
    """Delete a branch. Returns it, as it is now if its deletion lingers."""
    tx.delete(branch.id, "DELETE FROM branches WHERE id = ?", branch.id)
    return find(tx, branch.project_id, branch.id) or branch


def state_of(row: sqlite3.Row, now: int) -> str:
    if row["deleting"]:
        return "deleting"
    if row["creation_timeline"] is None:
        return "ready"
    creation = lifecycle.state_at(json.loads(row["creation_timeline"]), row["creation_started_at"], now)
    return "ready" if creation.status == "finished" else "init"


def from_row(row: sqlite3.Row, now: int) -> Branch:
    return Branch(
        id=row["id"],
        project_id=row["project_id"],
        parent_id=row["parent_id"],
        name=row["name"],
        default=row["parent_id"] is None,
        protected=bool(row["protected"]),
        expires_at=format_timestamp(row["expires_at"]) if row["expires_at"] else None,
        current_state=state_of(row, now),
        state_changed_at=format_timestamp(row["created_at"]),
        created_at=format_timestamp(row["created_at"]),
        updated_at=format_timestamp(row["updated_at"]),
    )
