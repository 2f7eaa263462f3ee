# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Computes of branches, which the API calls endpoints. A branch has one or none."""

from __future__ import annotations

import sqlite3

from . import identifiers, operations, platform_activity
from .clock import format_timestamp
from .response_models import Branch, Endpoint, Operation
from .store import Transaction

SELECT = (
    "SELECT endpoints.*, branches.created_at, proxy_host, region_id, provisioner FROM endpoints"
    " JOIN branches ON branches.id = branch_id JOIN projects ON projects.id = endpoints.project_id"
)


def insert(tx: Transaction, branch: Branch, endpoint_id: str | None = None) -> Endpoint:
    """Insert a compute for the branch, last used now."""
    endpoint_id = endpoint_id or identifiers.endpoint_id()
    tx.db.execute(
        "INSERT INTO endpoints VALUES (?, ?, ?, ?, 0, 0)", (endpoint_id, branch.project_id, branch.id, tx.now)
    )
    platform_activity.record_use(tx, endpoint_id)
    return from_row(tx.db.execute(f"{SELECT} WHERE endpoints.id = ?", (endpoint_id,)).fetchone())


def list_of_project(tx: Transaction, project_id: str) -> list[Endpoint]:
    rows = tx.db.execute(f"{SELECT} WHERE endpoints.project_id = ? ORDER BY endpoints.rowid", (project_id,))
    return [from_row(row) for row in rows]


def find(tx: Transaction, branch_id: str) -> Endpoint | None:
    """Return the branch's compute, or None if it has none."""
    row = tx.db.execute(f"{SELECT} WHERE branch_id = ?", (branch_id,)).fetchone()
    return from_row(row) if row else None


def from_row(row: sqlite3.Row) -> Endpoint:
    created_at = format_timestamp(row["created_at"])
    return Endpoint(
        id=row["id"],
        project_id=row["project_id"],
        branch_id=row["branch_id"],
        host=f"{row['id']}.{row['proxy_host']}",
        proxy_host=row["proxy_host"],
        region_id=row["region_id"],
        provisioner=row["provisioner"],
        current_state="idle" if platform_activity.is_suspended(row["step"]) else "active",
        created_at=created_at,
        updated_at=created_at,
    )


def apply_config(tx: Transaction, branch: Branch) -> Operation:
    """Start to apply a change of the branch's roles or databases. This uses its compute, if it has one."""
    endpoint = find(tx, branch.id)
    if endpoint:
        platform_activity.record_use(tx, endpoint.id)
    return operations.start(
        tx,
        "apply_config",
        project_id=branch.project_id,
        branch_id=branch.id,
        endpoint_id=endpoint.id if endpoint else None,
    )


def start_operation(tx: Transaction, action: str, endpoint: Endpoint) -> Operation:
    """Start an operation on the compute."""
    return operations.start(
        tx, action, project_id=endpoint.project_id, branch_id=endpoint.branch_id, endpoint_id=endpoint.id
    )


def suspend(tx: Transaction, branch: Branch) -> list[Operation]:
    """Start to suspend the branch's compute. Returns the operation, or nothing if the branch has no compute."""
    endpoint = find(tx, branch.id)
    return [start_operation(tx, "suspend_compute", endpoint)] if endpoint else []
