# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Snapshots of root branches, and the branches that are restored from them. A snapshot outlives its branch."""

from __future__ import annotations

import itertools
import json
import sqlite3
from datetime import datetime
from typing import Any

from fastapi import HTTPException

from . import branches, computes, identifiers, projects
from .clock import format_optional, format_timestamp, to_microseconds
from .request_models import BackupSchedule, SnapshotChanges
from .response_models import Branch, Operation, Snapshot
from .responses import unique_name
from .store import Transaction

TABLES = ("roles", "databases")


def create(
    tx: Transaction,
    branch: Branch,
    *,
    name: str | None,
    timestamp: datetime | None,
    lsn: str | None,
    expires_at: datetime | None,
) -> Snapshot:
    """Take a snapshot of the branch, as it is now or was at a time in its history. Raises a 422 error."""
    require_root(branch, "a snapshot")
    time = branches.time_in_history(tx, branch, timestamp, lsn)
    snapshot_id = identifiers.snapshot_id()
    content = {
        table: [row for row in tx.rows(table, "branch_id", branch.id) if row["created_at"] <= time] for table in TABLES
    }
    row = {
        "id": snapshot_id,
        "project_id": branch.project_id,
        "source_branch_id": branch.id,
        "name": name or snapshot_id,
        "lsn": lsn,
        "timestamp": time if timestamp else None,
        "created_at": tx.unique_time(),
        "expires_at": expiration(tx, expires_at),
        "content": json.dumps(content),
    }
    tx.insert("snapshots", row)
    return from_row(row)


def branch_id_of(snapshot_id: str) -> str:
    """Return the id of the branch that holds a snapshot, which no list shows."""
    return f"br-{snapshot_id.removeprefix('snap-')}"


def require_root(branch: Branch, what: str) -> None:
    """Raise a 422 error unless the branch is a root branch, which alone can have it."""
    if branch.parent_id:
        raise HTTPException(422, f"branch {branch.id} cannot have {what}: it is not a root branch")


def expiration(tx: Transaction, expires_at: datetime | None) -> int | None:
    """Return when a snapshot expires. Raises a 422 error unless that is in the future."""
    time = to_microseconds(expires_at) if expires_at else None
    if time is not None and time <= tx.now:
        raise HTTPException(422, "expires_at must be in the future")
    return time


def list_all(tx: Transaction, project_id: str) -> list[Snapshot]:
    """Return the snapshots of a project, newest first. Raises a 404 error if the project does not exist."""
    projects.get(tx, project_id)
    rows = tx.db.execute("SELECT * FROM snapshots WHERE project_id = ? ORDER BY seq DESC", (project_id,))
    return [from_row(row) for row in rows]


def row_of(tx: Transaction, project_id: str, snapshot_id: str) -> dict[str, Any]:
    """Return the row of the snapshot. Raises a 404 error if it or the project does not exist."""
    projects.get(tx, project_id)
    found = [row for row in tx.rows("snapshots", "id", snapshot_id) if row["project_id"] == project_id]
    if not found:
        raise HTTPException(404, f"snapshot {snapshot_id} not found in project {project_id}")
    return found[0]


def update(tx: Transaction, project_id: str, snapshot_id: str, changes: SnapshotChanges) -> Snapshot:
    """Change the fields that are given. Raises a 404 error, and a 422 error if it would expire in the past."""
    row = row_of(tx, project_id, snapshot_id)
    expires_at = row["expires_at"]
    if "expires_at" in changes.model_fields_set:
        expires_at = expiration(tx, changes.expires_at)
    tx.db.execute(
        "UPDATE snapshots SET name = coalesce(?, name), expires_at = ? WHERE id = ?",
        (changes.name, expires_at, snapshot_id),
    )
    return from_row(row_of(tx, project_id, snapshot_id))


def delete(tx: Transaction, snapshot_id: str) -> None:
    tx.delete(snapshot_id, "DELETE FROM snapshots WHERE id = ?", snapshot_id)


def restore(tx: Transaction, snapshot: dict[str, Any], target: Branch, name: str | None) -> Branch:
    """Insert a root branch with what is in the snapshot, which can replace the target. Raises a 409 error if the name exists."""
    status = {"restored_from": snapshot["id"], "restored_as": target.id, "restore_status": "restored"}
    branch = branches.insert_row(tx, target.project_id, name, **status)
    for table, rows in json.loads(snapshot["content"]).items():
        for row in rows:
            numbered = "id" if table == "databases" else "seq"
            tx.insert(table, {**{name: row[name] for name in row if name != numbered}, "branch_id": branch.id})
    return branch


def finalize(tx: Transaction, branch: Branch, name: str | None) -> tuple[Branch, list[Operation]]:
    """Put a restored branch in the place of its target, which gets another name. Raises 409 and 422 errors.

    The branch gets the name, the computes, the protection and the backup schedule of its target.
    """
    target = branches.find(tx, branch.project_id, branch.restored_as or "")
    if branch.restore_status != "restored" or target is None:
        raise HTTPException(422, f"branch {branch.id} is not one that was restored from a snapshot to replace another")
    branches.refuse_if_locked(tx, target)
    name = name or free_name(tx, target)
    with unique_name(f"project {branch.project_id}", "branch", name):
        tx.db.execute("UPDATE branches SET name = ? WHERE id = ?", (name, target.id))
    tx.db.execute(
        "UPDATE branches SET (name, is_default, protected, schedule) = (SELECT ?, is_default, protected, schedule"
        " FROM branches WHERE id = ?), restore_status = 'finalized', updated_at = ? WHERE id = ?",
        (target.name, target.id, tx.unique_time(), branch.id),
    )
    tx.db.execute("UPDATE branches SET is_default = 0, protected = 0, schedule = '[]' WHERE id = ?", (target.id,))
    tx.db.execute("DELETE FROM endpoints WHERE branch_id = ?", (branch.id,))
    tx.db.execute("UPDATE endpoints SET branch_id = ? WHERE branch_id = ?", (branch.id, target.id))
    started = []
    for endpoint in computes.list_of_branch(tx, branch.id):
        started += computes.restart(tx, endpoint) if endpoint.current_state == "active" else []
    return branches.get(tx, branch.project_id, branch.id), started


def free_name(tx: Transaction, branch: Branch) -> str:
    """Return the name of a branch that a restore has replaced."""
    taken = {row["name"] for row in tx.rows("branches", "project_id", branch.project_id)}
    names = (f"{branch.name} (old{f' {number}' if number > 1 else ''})" for number in itertools.count(1))
    return next(name for name in names if name not in taken)


def schedule_of(tx: Transaction, branch: Branch) -> BackupSchedule:
    return BackupSchedule(schedule=json.loads(tx.rows("branches", "id", branch.id)[0]["schedule"]))


def set_schedule(tx: Transaction, branch: Branch, schedule: BackupSchedule) -> None:
    """Set the backup schedule, which is recorded only. Raises a 422 error unless the branch is a root branch."""
    require_root(branch, "a backup schedule")
    items = json.dumps(schedule.model_dump(exclude_none=True)["schedule"])
    tx.db.execute("UPDATE branches SET schedule = ? WHERE id = ?", (items, branch.id))


def from_row(row: sqlite3.Row | dict[str, Any]) -> Snapshot:
    return Snapshot(
        id=row["id"],
        name=row["name"],
        lsn=row["lsn"],
        timestamp=format_optional(row["timestamp"]),
        source_branch_id=row["source_branch_id"],
        created_at=format_timestamp(row["created_at"]),
        expires_at=format_optional(row["expires_at"]),
    )
