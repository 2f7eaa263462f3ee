# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The recovery of deleted projects and branches, with all that was deleted with them."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from fastapi import HTTPException

from . import branches, platform_activity, projects
from .clock import format_timestamp
from .response_models import Branch, BranchRecovery
from .responses import unique_name
from .rules import RECOVERY_WINDOW
from .store import BRANCH_TABLES, Transaction


def list_branches(tx: Transaction, project_id: str, search: str | None) -> list[Branch]:
    """Return the deleted branches of a project that can be recovered, the last deleted first."""
    rows = tx.db.execute(
        "SELECT * FROM deleted_branches WHERE project_id = ? AND deleted_at > ? AND id NOT IN (SELECT id FROM branches)"
        " ORDER BY deleted_at DESC",
        (project_id, tx.now - RECOVERY_WINDOW),
    )
    found = [branch_of(row) for row in rows]
    return [branch for branch in found if not search or search.lower() in f"{branch.name}\n{branch.id}".lower()]


def branch_of(row: sqlite3.Row) -> Branch:
    """Return a deleted branch as it was."""
    [fields] = json.loads(row["content"])["branches"]
    recovery = BranchRecovery(
        deleted_at=format_timestamp(row["deleted_at"]),
        recoverable_until=format_timestamp(row["deleted_at"] + RECOVERY_WINDOW),
        deletion_method=row["method"],
    )
    branch = branches.from_row({**fields, "deleting": False, "creation_timeline": None}, 0)
    return branch.model_copy(update={"recovery": recovery})


def recover_branch(tx: Transaction, project_id: str, branch_id: str) -> Branch:
    """Restore a deleted branch, which no longer expires. Raises 404, 409 and 422 errors."""
    if branches.find(tx, project_id, branch_id):
        raise HTTPException(422, f"branch {branch_id} is not deleted")
    rows = [row for row in tx.rows("deleted_branches", "id", branch_id) if row["project_id"] == project_id]
    if not rows or rows[0]["deleted_at"] <= tx.now - RECOVERY_WINDOW:
        raise HTTPException(404, f"branch {branch_id} cannot be recovered in project {project_id}")
    content = json.loads(rows[0]["content"])
    [fields] = content["branches"]
    if fields["parent_id"] and branches.find(tx, project_id, fields["parent_id"]) is None:
        raise HTTPException(422, f"branch {branch_id} cannot be recovered before its parent {fields['parent_id']}")
    fields.update(expires_at=None, ttl_seconds=None)
    with unique_name(f"project {project_id}", "branch", fields["name"]):
        insert(tx, content)
    return branches.get(tx, project_id, branch_id)


def recover_project(tx: Transaction, project_id: str) -> list[Branch]:
    """Restore a deleted project with the branches that it had. Raises 404 and 422 errors."""
    rows = tx.rows("projects", "id", project_id)
    deleted_at = rows[0]["deleted_at"] if rows else 0
    if deleted_at is None:
        raise HTTPException(422, f"project {project_id} is not deleted")
    if deleted_at <= tx.now - RECOVERY_WINDOW:
        raise HTTPException(404, f"project {project_id} cannot be recovered")
    projects.undelete(tx, project_id)
    # A branch may be older than its parent.
    tx.db.execute("PRAGMA defer_foreign_keys = ON")
    for row in tx.rows("deleted_branches", "project_id", project_id):
        if row["deleted_at"] == deleted_at:
            insert(tx, json.loads(row["content"]))
    return [branches.get(tx, project_id, row["id"]) for row in tx.rows("branches", "project_id", project_id)]


def insert(tx: Transaction, content: dict[str, list[dict[str, Any]]]) -> None:
    """Insert the rows of a deleted branch again. Its computes are idle."""
    for table in BRANCH_TABLES:
        for row in content[table]:
            tx.insert(table, row)
    tx.db.execute("DELETE FROM deleted_branches WHERE id = ?", (content["branches"][0]["id"],))
    for endpoint in content["endpoints"]:
        platform_activity.record_suspension(tx, endpoint["id"])
