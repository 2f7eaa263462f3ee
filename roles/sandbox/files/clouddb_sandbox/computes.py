# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Computes of branches, which the API calls endpoints. A branch has at most one that is read_write."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from fastapi import HTTPException

from . import identifiers, lifecycle, operations, platform_activity, projects
from .clock import format_optional, format_timestamp
from .request_models import AUTOSCALING_LIMITS, ComputeChanges, ComputeOptions, NewCompute
from .response_models import DEFAULT_COMPUTE_UNITS, Branch, Endpoint, Operation
from .rules import MAX_AUTOSCALING_LIMIT, MAX_AUTOSCALING_RANGE, MAX_FIXED_SIZE
from .store import Transaction

READ_WRITE = NewCompute(type="read_write")
SELECT = (
    "SELECT endpoints.*, proxy_host, region_id, provisioner, timeline, operations.created_at AS change_started_at,"
    " operations.action AS change_action"
    " FROM endpoints JOIN projects ON projects.id = endpoints.project_id LEFT JOIN operations ON operations.id = change_id"
)


def insert(
    tx: Transaction,
    branch: Branch,
    options: NewCompute = READ_WRITE,
    endpoint_id: str | None = None,
    created_at: int | None = None,
) -> Endpoint:
    """Insert a compute for the branch, last used now. Raises a 409 error if the branch has its read_write compute already."""
    if options.type == "read_write" and find_read_write(tx, branch.id):
        raise HTTPException(409, f"branch {branch.id} has a read_write compute already")
    defaults = projects.get(tx, branch.project_id).default_endpoint_settings
    endpoint_id, created_at = endpoint_id or identifiers.endpoint_id(), created_at or tx.unique_time()
    tx.db.execute(
        "INSERT INTO endpoints (id, project_id, branch_id, options, created_at, updated_at, started_at, last_used_at, step)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, 0, 0)",
        (endpoint_id, branch.project_id, branch.id, options_of(defaults, options), *[created_at] * 3),
    )
    platform_activity.record_use(tx, endpoint_id)
    return get(tx, branch.project_id, endpoint_id)


def create(tx: Transaction, branch: Branch, options: NewCompute = READ_WRITE) -> tuple[Endpoint, Operation]:
    """Insert a compute, and start it. It is in the state `init` until then."""
    endpoint = insert(tx, branch, options).model_copy(update={"current_state": "init"})
    tx.db.execute("UPDATE endpoints SET started_at = NULL WHERE id = ?", (endpoint.id,))
    started = start(tx, endpoint)
    return get(tx, branch.project_id, endpoint.id), started


def options_of(stored: dict[str, Any], changes: ComputeOptions) -> str:
    """Return the options with the changes, as they are stored. Raises a 422 error if the limits contradict each other."""
    settings = {name: stored[name] for name in stored if name not in ("pg_settings", "pgbouncer_settings")}
    options = {**settings, **changes.model_dump(exclude={"branch_id", "region_id"}, exclude_none=True)}
    if changes.settings:
        options["settings"] = {**(settings.get("settings") or {}), **options["settings"]}
    limits = [options.get(name, DEFAULT_COMPUTE_UNITS) for name in AUTOSCALING_LIMITS]
    if limits != sorted(limits):
        raise HTTPException(422, "autoscaling_limit_min_cu must not exceed autoscaling_limit_max_cu")
    largest = MAX_FIXED_SIZE if limits[0] == limits[1] else MAX_AUTOSCALING_LIMIT
    if limits[1] > largest:
        raise HTTPException(422, f"autoscaling_limit_max_cu must not exceed {largest}")
    if limits[1] - limits[0] > MAX_AUTOSCALING_RANGE:
        raise HTTPException(
            422, f"the autoscaling limits must not differ by more than {MAX_AUTOSCALING_RANGE} compute units"
        )
    return json.dumps(options)


def list_of_project(tx: Transaction, project_id: str) -> list[Endpoint]:
    """Return the computes of a project, oldest first. Raises a 404 error if the project does not exist."""
    projects.get(tx, project_id)
    rows = tx.db.execute(f"{SELECT} WHERE endpoints.project_id = ? ORDER BY endpoints.rowid", (project_id,))
    return [from_row(row, tx.now) for row in rows]


def list_of_branch(tx: Transaction, branch_id: str) -> list[Endpoint]:
    rows = tx.db.execute(f"{SELECT} WHERE endpoints.branch_id = ? ORDER BY endpoints.rowid", (branch_id,))
    return [from_row(row, tx.now) for row in rows]


def find_read_write(tx: Transaction, branch_id: str) -> Endpoint | None:
    """Return the branch's read_write compute, or None if it has none."""
    return next((endpoint for endpoint in list_of_branch(tx, branch_id) if endpoint.type == "read_write"), None)


def find(tx: Transaction, project_id: str, endpoint_id: str) -> Endpoint | None:
    """Return the project's compute with this id. Raises a 404 error if the project does not exist."""
    projects.get(tx, project_id)
    condition = "WHERE endpoints.project_id = ? AND endpoints.id = ?"
    row = tx.db.execute(f"{SELECT} {condition}", (project_id, endpoint_id)).fetchone()
    return from_row(row, tx.now) if row else None


def get(tx: Transaction, project_id: str, endpoint_id: str) -> Endpoint:
    """Return the compute. Raises a 404 error if it or the project does not exist."""
    endpoint = find(tx, project_id, endpoint_id)
    if endpoint is None:
        raise HTTPException(404, f"endpoint {endpoint_id} not found in project {project_id}")
    return endpoint


def update(tx: Transaction, endpoint: Endpoint, changes: ComputeChanges) -> list[Operation]:
    """Change the fields that are given. A compute that is disabled is suspended."""
    stored = tx.db.execute("SELECT options FROM endpoints WHERE id = ?", (endpoint.id,)).fetchone()["options"]
    tx.db.execute(
        "UPDATE endpoints SET options = ?, updated_at = ? WHERE id = ?",
        (options_of(json.loads(stored), changes), tx.unique_time(), endpoint.id),
    )
    is_active = endpoint.current_state == "active"
    (platform_activity.record_use if is_active else platform_activity.record_suspension)(tx, endpoint.id)
    started = [start_operation(tx, "apply_config", endpoint)]
    return [*started, suspend(tx, endpoint)] if changes.disabled and is_active else started


def delete(tx: Transaction, endpoint: Endpoint) -> None:
    tx.delete(endpoint.id, "DELETE FROM endpoints WHERE id = ?", endpoint.id)


def from_row(row: sqlite3.Row, now: int) -> Endpoint:
    state = "idle" if platform_activity.is_suspended(row["step"]) else "active"
    if row["timeline"] and not lifecycle.is_finished(json.loads(row["timeline"]), row["change_started_at"], now):
        state = row["state"]
    times = {name: row[name] for name in ("started_at", "suspended_at")}
    times.update([change] if (change := platform_activity.change_of(row, now)) else [])
    return Endpoint(
        **{"provisioner": row["provisioner"], **json.loads(row["options"])},
        id=row["id"],
        project_id=row["project_id"],
        branch_id=row["branch_id"],
        host=f"{row['id']}.{row['proxy_host']}",
        proxy_host=row["proxy_host"],
        region_id=row["region_id"],
        current_state=state,
        last_active=format_timestamp(row["last_used_at"]),
        started_at=format_optional(times["started_at"]),
        suspended_at=format_optional(times["suspended_at"]),
        created_at=format_timestamp(row["created_at"]),
        updated_at=format_timestamp(row["updated_at"]),
    )


def apply_config(tx: Transaction, branch: Branch) -> Operation:
    """Start to apply a change of the branch's roles or databases. This uses its compute, if it has one."""
    endpoint = find_read_write(tx, branch.id)
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


def start(tx: Transaction, endpoint: Endpoint) -> Operation:
    """Start the compute. It is active when the operation is finished."""
    platform_activity.record_use(tx, endpoint.id)
    return change_state(tx, "start_compute", endpoint)


def suspend(tx: Transaction, endpoint: Endpoint) -> Operation:
    """Suspend the compute. It is idle when the operation is finished."""
    platform_activity.record_suspension(tx, endpoint.id)
    return change_state(tx, "suspend_compute", endpoint)


def restart(tx: Transaction, endpoint: Endpoint) -> list[Operation]:
    return [start_operation(tx, "suspend_compute", endpoint), start(tx, endpoint)]


def change_state(tx: Transaction, action: str, endpoint: Endpoint) -> Operation:
    """Start an operation that changes the compute's state, which stays until the operation is finished."""
    operation = start_operation(tx, action, endpoint)
    tx.db.execute(
        "UPDATE endpoints SET state = ?, change_id = ? WHERE id = ?",
        (endpoint.current_state, operation.id, endpoint.id),
    )
    return operation
