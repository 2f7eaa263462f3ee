# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Branches, with their computes (the API's endpoints) and databases."""

from __future__ import annotations

import sqlite3

from fastapi import HTTPException

from . import identifiers, platform_activity
from .clock import format_timestamp
from .response_models import Branch, Database, Endpoint
from .store import Transaction

DEFAULT_BRANCH = "main"


def insert(
    tx: Transaction,
    project_id: str,
    name: str | None = None,
    parent_id: str | None = None,
    branch_id: str | None = None,
    created_at: int | None = None,
) -> Branch:
    """Insert a branch with the databases of its parent. A project's default branch is the one without a parent."""
    branch_id = branch_id or identifiers.branch_id()
    created_at = created_at or tx.unique_time()
    try:
        tx.db.execute(
            "INSERT INTO branches (id, project_id, parent_id, name, created_at) VALUES (?, ?, ?, ?, ?)",
            (branch_id, project_id, parent_id, name or branch_id, created_at),
        )
    except sqlite3.IntegrityError as error:
        raise HTTPException(409, f"project {project_id} has a branch named {name} already") from error
    tx.db.execute(
        "INSERT INTO databases (branch_id, name, owner_name, created_at)"
        " SELECT ?, name, owner_name, ? FROM databases WHERE branch_id = ?",
        (branch_id, created_at, parent_id),
    )
    return get(tx, project_id, branch_id)


def list_all(tx: Transaction, project_id: str) -> list[Branch]:
    rows = tx.db.execute("SELECT * FROM branches WHERE project_id = ? ORDER BY seq", (project_id,))
    return [from_row(row) for row in rows]


def get(tx: Transaction, project_id: str, branch_id: str | None) -> Branch:
    """Return the branch with this id, or the project's default branch."""
    row = tx.db.execute(
        "SELECT * FROM branches WHERE project_id = :project"
        " AND (id = :branch OR (:branch IS NULL AND parent_id IS NULL))",
        {"project": project_id, "branch": branch_id},
    ).fetchone()
    if row is None:
        raise HTTPException(404, f"branch {branch_id} not found in project {project_id}")
    return from_row(row)


def from_row(row: sqlite3.Row) -> Branch:
    return Branch(
        id=row["id"],
        project_id=row["project_id"],
        parent_id=row["parent_id"],
        name=row["name"],
        default=row["parent_id"] is None,
        created_at=format_timestamp(row["created_at"]),
    )


def insert_endpoint(tx: Transaction, branch: Branch, endpoint_id: str | None = None) -> Endpoint:
    """Insert a compute for the branch, last used now."""
    endpoint = Endpoint(id=endpoint_id or identifiers.endpoint_id(), project_id=branch.project_id, branch_id=branch.id)
    tx.db.execute(
        "INSERT INTO endpoints VALUES (?, ?, ?, ?, 0, 0)",
        (endpoint.id, endpoint.project_id, endpoint.branch_id, tx.now),
    )
    platform_activity.record_use(tx, endpoint.id)
    return endpoint


def endpoint_id_of(tx: Transaction, branch_id: str) -> str | None:
    row = tx.db.execute("SELECT id FROM endpoints WHERE branch_id = ?", (branch_id,)).fetchone()
    return row["id"] if row else None


def insert_database(tx: Transaction, branch_id: str, name: str, owner_name: str) -> Database:
    try:
        inserted = tx.db.execute(
            "INSERT INTO databases (branch_id, name, owner_name, created_at) VALUES (?, ?, ?, ?)",
            (branch_id, name, owner_name, tx.unique_time()),
        )
    except sqlite3.IntegrityError as error:
        raise HTTPException(409, f"branch {branch_id} has a database named {name} already") from error
    row = tx.db.execute("SELECT * FROM databases WHERE id = ?", (inserted.lastrowid,)).fetchone()
    return database_from_row(row)


def list_databases(tx: Transaction, branch_id: str) -> list[Database]:
    rows = tx.db.execute("SELECT * FROM databases WHERE branch_id = ?", (branch_id,))
    return [database_from_row(row) for row in rows]


def database_from_row(row: sqlite3.Row) -> Database:
    return Database(
        id=row["id"],
        branch_id=row["branch_id"],
        name=row["name"],
        owner_name=row["owner_name"],
        created_at=format_timestamp(row["created_at"]),
    )
