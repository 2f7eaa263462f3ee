# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""System operations (api.md, "Operation")."""

from __future__ import annotations

import json
import sqlite3

from fastapi import HTTPException

from . import names
from .clock import timestamp
from .lifecycle import DEFAULT_TIMELINES, WITH_ERROR, Timeline, settled_at, standing
from .paging import select_page
from .resources import Operation, OperationPage
from .store import Transaction

DEFAULT_ERROR = "the operation failed"


def insert(
    tx: Transaction,
    *,
    project_id: str,
    branch_id: str,
    endpoint_id: str | None,
    action: str,
    created_at: int,
    timeline: Timeline,
    error: str | None = None,
    operation_id: str | None = None,
    by_platform: bool = False,
) -> str:
    operation_id = operation_id or names.operation_id()
    tx.db.execute(
        "INSERT INTO operations (id, project_id, branch_id, endpoint_id, action, created_at, timeline, error,"
        " settled_at, by_platform) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            operation_id,
            project_id,
            branch_id,
            endpoint_id,
            action,
            created_at,
            json.dumps(timeline),
            error,
            settled_at(timeline, created_at),
            by_platform,
        ),
    )
    return operation_id


def start(
    tx: Transaction,
    action: str,
    *,
    project_id: str,
    branch_id: str,
    endpoint_id: str | None = None,
    platform_at: int | None = None,
) -> Operation:
    """Start an operation: now, for a request, or by the platform itself at a moment that has passed."""
    plan = take_plan(tx, action, project_id, by_platform=platform_at is not None)
    operation_id = insert(
        tx,
        project_id=project_id,
        branch_id=branch_id,
        endpoint_id=endpoint_id,
        action=action,
        created_at=tx.stamp() if platform_at is None else platform_at,
        timeline=json.loads(plan["timeline"]) if plan else DEFAULT_TIMELINES[action],
        error=plan["error"] if plan else None,
        by_platform=platform_at is not None,
    )
    return find(tx, project_id, operation_id)


def take_plan(tx: Transaction, action: str, project_id: str, by_platform: bool) -> sqlite3.Row | None:
    """The oldest plan that fits, used once. The platform's own operations follow only plans that name their action."""
    plan: sqlite3.Row | None = tx.db.execute(
        "SELECT * FROM operation_plans WHERE (action = ? OR (action IS NULL AND NOT ?))"
        " AND (project_id = ? OR project_id IS NULL) ORDER BY id LIMIT 1",
        (action, by_platform, project_id),
    ).fetchone()
    if plan:
        tx.db.execute("UPDATE operation_plans SET times = times - 1 WHERE id = ?", (plan["id"],))
        tx.db.execute("DELETE FROM operation_plans WHERE times = 0")
    return plan


def resource(row: sqlite3.Row, now: int) -> Operation:
    status, updated_at, failures_count = standing(json.loads(row["timeline"]), row["created_at"], now)
    return Operation(
        id=row["id"],
        project_id=row["project_id"],
        branch_id=row["branch_id"],
        endpoint_id=row["endpoint_id"],
        action=row["action"],
        status=status,
        error=(row["error"] or DEFAULT_ERROR) if status in WITH_ERROR else None,
        failures_count=failures_count,
        created_at=timestamp(row["created_at"]),
        updated_at=timestamp(updated_at),
    )


def find(tx: Transaction, project_id: str, operation_id: str) -> Operation:
    row = tx.db.execute(
        "SELECT * FROM operations WHERE project_id = ? AND id = ?", (project_id, operation_id)
    ).fetchone()
    if row is None:
        raise HTTPException(404, f"operation {operation_id} not found in project {project_id}")
    return resource(row, tx.now)


def page(tx: Transaction, project_id: str, cursor: str | None, limit: int) -> OperationPage:
    rows, pagination = select_page(tx, "operations", ["project_id = ?"], [project_id], cursor, limit)
    return OperationPage(operations=[resource(row, tx.now) for row in rows], pagination=pagination)


def refuse_if_busy(tx: Transaction, project_id: str, branch_id: str | None = None) -> None:
    """423 while work that a request started on the branch, or anywhere in the project, is unfinished.

    The platform's own operations give way: whether a playbook passes must not depend on their moment.
    """
    busy = tx.db.execute(
        "SELECT id, action FROM operations WHERE project_id = :project AND (:branch IS NULL OR branch_id = :branch)"
        " AND (settled_at IS NULL OR settled_at > :now) AND NOT by_platform LIMIT 1",
        {"project": project_id, "branch": branch_id, "now": tx.now},
    ).fetchone()
    if busy:
        raise HTTPException(
            423, f"operation {busy['id']} ({busy['action']}) is unfinished; wait for it, then send this request again"
        )
