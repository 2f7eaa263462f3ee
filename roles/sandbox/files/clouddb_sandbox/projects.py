# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Projects (api.md, "Project")."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from fastapi import HTTPException

from . import identifiers
from .clock import MAX_TIME, SECOND, format_timestamp
from .pagination import pagination_of, select_page
from .request_models import ProjectChanges
from .response_models import ORGANIZATION_ID, Project, ProjectDetails, ProjectListResponse
from .store import Transaction

CONSUMPTION_PERIOD = 30 * 86400 * SECOND
DEFAULT_REGION = "aws-eu-central-1"


def insert(tx: Transaction, fields: dict[str, Any]) -> str:
    """Insert a project, with the service's defaults for fields that are missing or None. Returns its id."""
    project_id = fields.get("id") or identifiers.project_id()
    region_id = fields.get("region_id") or DEFAULT_REGION
    created_at = fields.get("created_at") or tx.unique_time()
    row = {
        "name": project_id,
        "platform_id": region_id.partition("-")[0],
        "provisioner": "k8s-neonvm",
        "pg_version": 17,
        "locked": False,
        "cpu_used_sec": 0,
        "proxy_host": f"{region_id}.clouddb.example",
        "branch_logical_size_limit": 512,
        "org_id": ORGANIZATION_ID,
        "history_retention_seconds": 86400,
        "updated_at": created_at,
        **{name: value for name, value in fields.items() if value is not None},
        "id": project_id,
        "region_id": region_id,
        "created_at": created_at,
        "settings": json.dumps(fields.get("settings") or {}),
        "default_endpoint_settings": json.dumps(fields.get("default_endpoint_settings") or {}),
    }
    columns = ", ".join(row)
    placeholders = ", ".join("?" * len(row))
    tx.db.execute(f"INSERT INTO projects ({columns}) VALUES ({placeholders})", list(row.values()))
    return project_id


def list_page(
    tx: Transaction,
    *,
    search: str | None,
    org_id: str | None,
    unavailable_ids: list[str],
    cursor: str | None,
    limit: int,
) -> ProjectListResponse:
    """Return a page of the account's projects. Unavailable projects are omitted and reported by id."""
    conditions = ["deleted_at IS NULL"]
    values: list[Any] = []
    if search:
        conditions.append("(instr(lower(name), lower(?)) OR instr(lower(id), lower(?)))")
        values += [search, search]
    if org_id:
        conditions.append("org_id = ?")
        values.append(org_id)
    if unavailable_ids:
        conditions.append(f"id NOT IN ({', '.join('?' * len(unavailable_ids))})")
        values += unavailable_ids
    rows = select_page(tx, "projects", conditions, values, cursor, limit)
    return ProjectListResponse(
        projects=[Project(**fields_of(row)) for row in rows],
        unavailable_project_ids=unavailable_ids or None,
        pagination=pagination_of(rows),
    )


def fields_of(row: sqlite3.Row) -> dict[str, Any]:
    """Return the fields of a project list item, and others."""
    return {
        **dict(row),
        "locked": bool(row["locked"]),
        "settings": json.loads(row["settings"]),
        "default_endpoint_settings": json.loads(row["default_endpoint_settings"]),
        "branch_logical_size_limit_bytes": row["branch_logical_size_limit"] * 1024 * 1024,
        "created_at": format_timestamp(row["created_at"]),
        "updated_at": format_timestamp(row["updated_at"]),
    }


def get(tx: Transaction, project_id: str) -> ProjectDetails:
    row = tx.db.execute("SELECT * FROM projects WHERE id = ? AND deleted_at IS NULL", (project_id,)).fetchone()
    if row is None:
        raise HTTPException(404, f"project {project_id} not found")
    period_start = tx.now - (tx.now - row["created_at"]) % CONSUMPTION_PERIOD
    return ProjectDetails(
        **fields_of(row),
        consumption_period_start=format_timestamp(period_start),
        consumption_period_end=format_timestamp(min(period_start + CONSUMPTION_PERIOD, MAX_TIME)),
    )


def require_known(tx: Transaction, project_id: str) -> None:
    """Raise a 404 error unless the project exists or was deleted: operations of deleted projects remain available."""
    if not tx.db.execute("SELECT 1 FROM projects WHERE id = ?", (project_id,)).fetchone():
        raise HTTPException(404, f"project {project_id} not found")


def update(tx: Transaction, project: ProjectDetails, changes: ProjectChanges) -> None:
    """Change the fields that are not None, and those of the settings that are given."""
    settings = json.dumps({**project.settings, **(changes.settings or {})})
    given = changes.default_endpoint_settings
    defaults = {**project.default_endpoint_settings, **(given.model_dump(exclude_none=True) if given else {})}
    tx.db.execute(
        "UPDATE projects SET name = coalesce(?, name), settings = ?, default_endpoint_settings = ?,"
        " history_retention_seconds = coalesce(?, history_retention_seconds), updated_at = ? WHERE id = ?",
        (changes.name, settings, json.dumps(defaults), changes.history_retention_seconds, tx.unique_time(), project.id),
    )


def delete(tx: Transaction, project_id: str) -> None:
    """Delete a project and its branches. The row is kept, for the project's operations."""
    deleted_at = tx.unique_time()
    tx.delete(project_id, "UPDATE projects SET deleted_at = ? WHERE id = ?", deleted_at, project_id)
    tx.delete(project_id, "DELETE FROM branches WHERE project_id = ?", project_id)
