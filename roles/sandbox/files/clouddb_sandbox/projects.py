# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Projects, their branches, computes and databases: the objects that operations act on."""

from __future__ import annotations

import sqlite3
from typing import Any

from fastapi import HTTPException

from . import names, platform_activity
from .clock import timestamp
from .paging import select_page
from .resources import Branch, Database, Endpoint, Project, ProjectDetails, ProjectPage
from .store import Transaction

DEFAULT_REGION = "aws-eu-central-1"
DEFAULT_BRANCH = "main"


def insert(tx: Transaction, fields: dict[str, Any]) -> str:
    """Add a project; what `fields` leaves out gets the value that a new project of the service has."""
    project_id = fields.get("id") or names.project_id()
    region_id = fields.get("region_id") or DEFAULT_REGION
    created_at = fields.get("created_at") or tx.stamp()
    row = {
        "name": project_id,
        "platform_id": region_id.partition("-")[0],
        "provisioner": "k8s-neonvm",
        "pg_version": 17,
        "locked": False,
        "cpu_used_sec": 0,
        "proxy_host": f"{region_id}.clouddb.example",
        "branch_logical_size_limit": 512,
        "history_retention_seconds": 86400,
        "updated_at": created_at,
        **{name: value for name, value in fields.items() if value is not None},
        "id": project_id,
        "region_id": region_id,
        "created_at": created_at,
    }
    columns = ", ".join(row)
    places = ", ".join("?" * len(row))
    tx.db.execute(f"INSERT INTO projects ({columns}) VALUES ({places})", list(row.values()))
    return project_id


def page(
    tx: Transaction,
    *,
    search: str | None,
    org_id: str | None,
    unavailable: list[str],
    cursor: str | None,
    limit: int,
) -> ProjectPage:
    """A page of the account's projects, without those that are said to be unavailable: their ids are named instead."""
    conditions = ["deleted_at IS NULL"]
    values: list[Any] = []
    if search:
        conditions.append("(instr(lower(name), lower(?)) OR instr(lower(id), lower(?)))")
        values += [search, search]
    if org_id:
        conditions.append("org_id = ?")
        values.append(org_id)
    if unavailable:
        conditions.append(f"id NOT IN ({', '.join('?' * len(unavailable))})")
        values += unavailable
    rows, pagination = select_page(tx, "projects", conditions, values, cursor, limit)
    return ProjectPage(
        projects=[Project(**common_fields(row)) for row in rows],
        unavailable_project_ids=unavailable or None,
        pagination=pagination,
    )


def common_fields(row: sqlite3.Row) -> dict[str, Any]:
    fields = {name: row[name] for name in Project.model_fields}
    return {
        **fields,
        "locked": bool(row["locked"]),
        "created_at": timestamp(row["created_at"]),
        "updated_at": timestamp(row["updated_at"]),
    }


def find(tx: Transaction, project_id: str) -> ProjectDetails:
    row = tx.db.execute("SELECT * FROM projects WHERE id = ? AND deleted_at IS NULL", (project_id,)).fetchone()
    if row is None:
        raise HTTPException(404, f"project {project_id} not found")
    return ProjectDetails(**common_fields(row), history_retention_seconds=row["history_retention_seconds"])


def require_known(tx: Transaction, project_id: str) -> None:
    """A 404 for a project that never was; the operations of a deleted one can still be asked for."""
    if not tx.db.execute("SELECT 1 FROM projects WHERE id = ?", (project_id,)).fetchone():
        raise HTTPException(404, f"project {project_id} not found")


def set_history_retention(tx: Transaction, project_id: str, seconds: int) -> None:
    tx.db.execute(
        "UPDATE projects SET history_retention_seconds = ?, updated_at = ? WHERE id = ?",
        (seconds, tx.stamp(), project_id),
    )


def delete(tx: Transaction, project_id: str) -> None:
    tx.db.execute("UPDATE projects SET deleted_at = ? WHERE id = ?", (tx.stamp(), project_id))
    tx.db.execute("DELETE FROM endpoints WHERE project_id = ?", (project_id,))


def insert_branch(
    tx: Transaction,
    project_id: str,
    name: str | None = None,
    parent_id: str | None = None,
    branch_id: str | None = None,
    created_at: int | None = None,
) -> Branch:
    """Add a branch with the databases of its parent. A project's first branch, without a parent, is its default."""
    branch_id = branch_id or names.branch_id()
    created_at = created_at or tx.stamp()
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
    return find_branch(tx, project_id, branch_id)


def branches(tx: Transaction, project_id: str) -> list[Branch]:
    rows = tx.db.execute("SELECT * FROM branches WHERE project_id = ? ORDER BY seq", (project_id,))
    return [branch_of(row) for row in rows]


def find_branch(tx: Transaction, project_id: str, branch_id: str | None) -> Branch:
    """The branch of that id, or the project's default branch."""
    row = tx.db.execute(
        "SELECT * FROM branches WHERE project_id = :project"
        " AND (id = :branch OR (:branch IS NULL AND parent_id IS NULL))",
        {"project": project_id, "branch": branch_id},
    ).fetchone()
    if row is None:
        raise HTTPException(404, f"branch {branch_id} not found in project {project_id}")
    return branch_of(row)


def branch_of(row: sqlite3.Row) -> Branch:
    return Branch(
        id=row["id"],
        project_id=row["project_id"],
        parent_id=row["parent_id"],
        name=row["name"],
        default=row["parent_id"] is None,
        created_at=timestamp(row["created_at"]),
    )


def insert_endpoint(tx: Transaction, branch: Branch, endpoint_id: str | None = None) -> Endpoint:
    """Give the branch a compute, in use from now on."""
    endpoint = Endpoint(id=endpoint_id or names.endpoint_id(), project_id=branch.project_id, branch_id=branch.id)
    tx.db.execute(
        "INSERT INTO endpoints VALUES (?, ?, ?, ?, 0, 0)",
        (endpoint.id, endpoint.project_id, endpoint.branch_id, tx.now),
    )
    platform_activity.used(tx, endpoint.id)
    return endpoint


def endpoint_of(tx: Transaction, branch_id: str) -> str | None:
    row = tx.db.execute("SELECT id FROM endpoints WHERE branch_id = ?", (branch_id,)).fetchone()
    return row["id"] if row else None


def insert_database(tx: Transaction, branch_id: str, name: str, owner_name: str) -> Database:
    try:
        added = tx.db.execute(
            "INSERT INTO databases (branch_id, name, owner_name, created_at) VALUES (?, ?, ?, ?)",
            (branch_id, name, owner_name, tx.stamp()),
        )
    except sqlite3.IntegrityError as error:
        raise HTTPException(409, f"branch {branch_id} has a database named {name} already") from error
    row = tx.db.execute("SELECT * FROM databases WHERE id = ?", (added.lastrowid,)).fetchone()
    return database_of(row)


def databases(tx: Transaction, branch_id: str) -> list[Database]:
    return [database_of(row) for row in tx.db.execute("SELECT * FROM databases WHERE branch_id = ?", (branch_id,))]


def database_of(row: sqlite3.Row) -> Database:
    return Database(
        id=row["id"],
        branch_id=row["branch_id"],
        name=row["name"],
        owner_name=row["owner_name"],
        created_at=timestamp(row["created_at"]),
    )
