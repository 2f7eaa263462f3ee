# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Projects (api.md, "Project")."""

from __future__ import annotations

import json
import re
import sqlite3
from typing import Any

from fastapi import HTTPException

from . import identifiers
from .clock import MAX_TIME, SECOND, format_optional, format_timestamp
from .pagination import select_page
from .request_models import ProjectChanges
from .response_models import ORGANIZATION_ID, Pagination, Project, ProjectDetails, ProjectListResponse
from .rules import NO_ROUTE, RECOVERY_WINDOW, REGIONS
from .store import Transaction

CONSUMPTION_PERIOD = 30 * 86400 * SECOND
DEFAULT_REGION = "aws-eu-central-1"
# Wider than the pattern of the document: a seed may have other ids.
PROJECT_ID = re.compile(r"[A-Za-z0-9._-]{1,200}")


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
        "store_passwords": True,
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
    tx.insert("projects", row)
    return project_id


def require_region(region_id: str | None) -> None:
    """Raise a 422 error unless new projects can have this region."""
    if region_id is not None and region_id not in REGIONS:
        raise HTTPException(422, f"region {region_id} is not available; use one of {', '.join(REGIONS)}")


def organizations(tx: Transaction) -> list[str]:
    """Return the organizations of the account: its own, and those that the seed's projects belong to."""
    rows = tx.db.execute("SELECT DISTINCT org_id FROM projects WHERE org_id != ? ORDER BY org_id", (ORGANIZATION_ID,))
    return [ORGANIZATION_ID, *(row["org_id"] for row in rows)]


def require_organization(tx: Transaction, org_id: str | None) -> None:
    """Raise a 404 error unless the account has this organization."""
    if org_id and org_id not in organizations(tx):
        raise HTTPException(404, f"organization {org_id} not found")


def list_page(
    tx: Transaction,
    *,
    search: str | None,
    org_id: str | None,
    recoverable: bool,
    unavailable_ids: list[str],
    cursor: str | None,
    limit: int,
) -> ProjectListResponse:
    """Return a page of the account's projects. Unavailable projects are omitted and reported by id."""
    require_organization(tx, org_id)
    conditions = ["deleted_at > ?" if recoverable else "deleted_at IS NULL"]
    values: list[Any] = [tx.now - RECOVERY_WINDOW] if recoverable else []
    if cursor is not None:
        conditions.append("(created_at, seq) < (SELECT created_at, seq FROM projects WHERE id = ?)")
        values.append(known_cursor(tx, cursor))
    if search:
        conditions.append("(instr(lower(name), lower(?)) OR instr(lower(id), lower(?)))")
        values += [search, search]
    if org_id:
        conditions.append("org_id = ?")
        values.append(org_id)
    if unavailable_ids:
        conditions.append(f"id NOT IN ({', '.join('?' * len(unavailable_ids))})")
        values += unavailable_ids
    rows = select_page(tx, "projects", conditions, values, None, limit)
    return ProjectListResponse(
        projects=[Project(**fields_of(row)) for row in rows],
        unavailable_project_ids=unavailable_ids or None,
        pagination=Pagination(cursor=rows[-1]["id"]) if rows else None,
    )


def known_cursor(tx: Transaction, cursor: str) -> str:
    """Return the cursor, which is the id of a project, even a deleted one. Raises a 400 error if it is none."""
    if not tx.db.execute("SELECT 1 FROM projects WHERE id = ?", (cursor,)).fetchone():
        raise HTTPException(400, f"cursor: {cursor!r} is not a cursor of this API. Send it as it came.")
    return cursor


def fields_of(row: sqlite3.Row) -> dict[str, Any]:
    """Return the fields of a project list item, and others."""
    deleted_at = row["deleted_at"]
    return {
        **dict(row),
        "locked": bool(row["locked"]),
        "store_passwords": bool(row["store_passwords"]),
        "settings": json.loads(row["settings"]),
        "default_endpoint_settings": json.loads(row["default_endpoint_settings"]),
        "branch_logical_size_limit_bytes": row["branch_logical_size_limit"] * 1024 * 1024,
        "created_at": format_timestamp(row["created_at"]),
        "updated_at": format_timestamp(row["updated_at"]),
        "deleted_at": format_optional(deleted_at),
        "recoverable_until": format_optional(deleted_at and deleted_at + RECOVERY_WINDOW),
    }


def get(tx: Transaction, project_id: str) -> ProjectDetails:
    if not PROJECT_ID.fullmatch(project_id):
        raise HTTPException(404, NO_ROUTE)
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
    settings = json.dumps(
        {**project.settings, **(changes.settings.model_dump(exclude_none=True) if changes.settings else {})}
    )
    given = changes.default_endpoint_settings
    defaults = {**project.default_endpoint_settings, **(given.model_dump(exclude_none=True) if given else {})}
    tx.db.execute(
        "UPDATE projects SET name = coalesce(?, name), settings = ?, default_endpoint_settings = ?,"
        " history_retention_seconds = coalesce(?, history_retention_seconds), updated_at = ? WHERE id = ?",
        (changes.name, settings, json.dumps(defaults), changes.history_retention_seconds, tx.unique_time(), project.id),
    )


def delete(tx: Transaction, project_id: str) -> None:
    """Delete a project and its branches, which can be recovered. Raises a 422 error if a branch is protected.

    The row is kept, also for the project's operations.
    """
    if tx.db.execute("SELECT 1 FROM branches WHERE project_id = ? AND protected", (project_id,)).fetchone():
        raise HTTPException(422, f"project {project_id} cannot be deleted: it has a protected branch")
    deleted_at = tx.unique_time()
    for row in tx.rows("branches", "project_id", project_id):
        tx.keep_deleted(row["id"], deleted_at, "user")
    tx.delete(project_id, "UPDATE projects SET deleted_at = ? WHERE id = ?", deleted_at, project_id)
    tx.delete(project_id, "DELETE FROM branches WHERE project_id = ?", project_id)


def undelete(tx: Transaction, project_id: str) -> None:
    tx.db.execute("UPDATE projects SET deleted_at = NULL, updated_at = ? WHERE id = ?", (tx.unique_time(), project_id))
