# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Operation plans, which tests add with /_sandbox/operation_plans: the timelines of the next matching operations."""

from __future__ import annotations

import json
import sqlite3
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from .lifecycle import ACTIONS, Timeline, check_timeline
from .request_models import MAX_INTEGER, ControlRequestModel, one_of
from .store import Transaction


def lists_to_tuples(timeline: Any) -> Any:
    """Convert the entries of a JSON timeline: strict models take no list for a tuple."""
    if not isinstance(timeline, list):
        return timeline
    return [tuple(entry) if isinstance(entry, list) else entry for entry in timeline]


class OperationPlan(ControlRequestModel):
    """Applies to operations with this action, or any that a request starts; in this project, or any."""

    action: Annotated[str, one_of(*ACTIONS)] | None = None
    project_id: str | None = None
    times: int | None = Field(
        default=1, ge=1, le=MAX_INTEGER, description="number of operations to apply to; null: all, until cleared"
    )
    timeline: Annotated[Timeline, BeforeValidator(lists_to_tuples), AfterValidator(check_timeline)]
    error: str | None = Field(default=None, description="the operation's `error` while its status is failed or error")


def add(tx: Transaction, plan: OperationPlan) -> dict[str, Any]:
    tx.db.execute(
        "INSERT INTO operation_plans (action, project_id, times, timeline, error) VALUES (?, ?, ?, ?, ?)",
        (plan.action, plan.project_id, plan.times, json.dumps(plan.timeline), plan.error),
    )
    return remaining(tx)[-1]


def remaining(tx: Transaction) -> list[dict[str, Any]]:
    rows = tx.db.execute("SELECT * FROM operation_plans ORDER BY id")
    return [{**dict(row), "timeline": json.loads(row["timeline"])} for row in rows]


def clear(tx: Transaction) -> None:
    tx.db.execute("DELETE FROM operation_plans")


def consume(tx: Transaction, action: str, project_id: str, by_platform: bool) -> sqlite3.Row | None:
    """Return the oldest matching plan, and count its use.

    The platform's own operations follow only plans that name their action.
    """
    plan: sqlite3.Row | None = tx.db.execute(
        "SELECT * FROM operation_plans WHERE (action = ? OR (action IS NULL AND NOT ?))"
        " AND (project_id = ? OR project_id IS NULL) ORDER BY id LIMIT 1",
        (action, by_platform, project_id),
    ).fetchone()
    if plan:
        tx.db.execute("UPDATE operation_plans SET times = times - 1 WHERE id = ?", (plan["id"],))
        tx.db.execute("DELETE FROM operation_plans WHERE times = 0")
    return plan
