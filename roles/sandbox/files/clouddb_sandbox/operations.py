# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""System operations (api.md, "Operation")."""

from __future__ import annotations

import json
import sqlite3

from fastapi import HTTPException

from . import identifiers, operation_plans
from .clock import format_timestamp
from .lifecycle import DEFAULT_TIMELINES, DELETE_TIMELINE, ERROR_STATUSES, Timeline, completion_time, state_at
from .pagination import pagination_of, select_page
from .response_models import Operation, OperationListResponse
from .rules import LOCKED
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
    """Insert an operation. Returns its id."""
    operation_id = operation_id or identifiers.operation_id()
    tx.db.execute(
        "INSERT INTO operations (id, project_id, branch_id, endpoint_id, action, created_at, timeline, error,"
        " completed_at, by_platform) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            operation_id,
            project_id,
            branch_id,
            endpoint_id,
            action,
            created_at,
            json.dumps(timeline),
            error,
            completion_time(timeline, created_at),
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
    platform_time: int | None = None,
) -> Operation:
    """Start an operation: now, for a request, or at `platform_time` in the past, for the platform itself."""
    by_platform = platform_time is not None
    plan = operation_plans.consume(tx, action, project_id, by_platform)
    if plan:
        timeline = json.loads(plan["timeline"])
    elif tx.lingering and tx.lingering.operations_run:
        timeline = [(0, "running"), (tx.lingering.seconds, "finished")]
    else:
        timeline = DEFAULT_TIMELINES.get(action, DELETE_TIMELINE)
    operation_id = insert(
        tx,
        project_id=project_id,
        branch_id=branch_id,
        endpoint_id=endpoint_id,
        action=action,
        created_at=tx.unique_time() if platform_time is None else platform_time,
        timeline=timeline,
        error=plan["error"] if plan else None,
        by_platform=by_platform,
    )
    return get(tx, project_id, operation_id)


def from_row(row: sqlite3.Row, now: int) -> Operation:
    status, updated_at, failures_count = state_at(json.loads(row["timeline"]), row["created_at"], now)
    return Operation(
        id=row["id"],
        project_id=row["project_id"],
        branch_id=row["branch_id"],
        endpoint_id=row["endpoint_id"],
        action=row["action"],
        status=status,
        error=(row["error"] or DEFAULT_ERROR) if status in ERROR_STATUSES else None,
        failures_count=failures_count,
        total_duration_ms=(updated_at - row["created_at"]) // 1000,
        created_at=format_timestamp(row["created_at"]),
        updated_at=format_timestamp(updated_at),
    )


def get(tx: Transaction, project_id: str, operation_id: str) -> Operation:
    row = tx.db.execute(
        "SELECT * FROM operations WHERE project_id = ? AND id = ?", (project_id, operation_id)
    ).fetchone()
    if row is None:
        raise HTTPException(404, f"operation {operation_id} not found in project {project_id}")
    return from_row(row, tx.now)


def list_page(tx: Transaction, project_id: str, cursor: str | None, limit: int) -> OperationListResponse:
    rows = select_page(tx, "operations", ["project_id = ?"], [project_id], cursor, limit)
    return OperationListResponse(operations=[from_row(row, tx.now) for row in rows], pagination=pagination_of(rows))


def refuse_if_locked(tx: Transaction, project_id: str, branch_id: str | None = None) -> None:
    """Raise a 423 error while an operation that a request started on the branch, or in the project, is unfinished.

    If the sandbox locks projects, any operation of the project counts.

    The platform's own operations do not lock: the result of a playbook must not depend on when they start.
    """
    unfinished = tx.db.execute(
        "SELECT 1 FROM operations WHERE project_id = :project AND (:branch IS NULL OR branch_id = :branch)"
        " AND (completed_at IS NULL OR completed_at > :now) AND NOT by_platform LIMIT 1",
        {"project": project_id, "branch": None if tx.lock == "project" else branch_id, "now": tx.now},
    ).fetchone()
    if unfinished:
        raise HTTPException(423, LOCKED)
