# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Snapshots, and the backup schedules of branches, which take none here."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import AwareDatetime

from .. import branches, computes, limits, operations, snapshots
from ..paths import BASE_PATH
from ..request_models import (
    BackupSchedule,
    FinalizeRestoreRequest,
    Lsn,
    Name,
    SnapshotRestoreRequest,
    SnapshotUpdateRequest,
)
from ..response_models import (
    Operation,
    OperationsResponse,
    RestoredSnapshotResponse,
    SnapshotListResponse,
    SnapshotOperationsResponse,
    SnapshotResponse,
)
from .dependencies import SandboxDependency, error_responses

router = APIRouter(prefix=BASE_PATH + "/projects/{project_id}", tags=["Snapshots"])


@router.get("/snapshots", responses=error_responses(404), response_model_exclude_none=True)
def list_snapshots(sandbox: SandboxDependency, project_id: str) -> SnapshotListResponse:
    """Lists the snapshots of a project, newest first."""
    with sandbox.store.transaction() as tx:
        return SnapshotListResponse(snapshots=snapshots.list_all(tx, project_id))


@router.post(
    "/branches/{branch_id}/snapshot", responses=error_responses(400, 404, 422, 423), response_model_exclude_none=True
)
def create_snapshot(
    sandbox: SandboxDependency,
    project_id: str,
    branch_id: str,
    name: Annotated[Name | None, Query()] = None,
    timestamp: Annotated[AwareDatetime | None, Query()] = None,
    lsn: Annotated[Lsn | None, Query()] = None,
    expires_at: Annotated[AwareDatetime | None, Query()] = None,
) -> SnapshotOperationsResponse:
    """Takes a snapshot of a root branch."""
    with sandbox.store.transaction() as tx:
        branch = branches.get_unlocked(tx, project_id, branch_id)
        limits.require_room(tx, "snapshots", project_id)
        snapshot = snapshots.create(tx, branch, name=name, timestamp=timestamp, lsn=lsn, expires_at=expires_at)
        own_id = snapshots.branch_id_of(snapshot.id)
        started = [
            operations.start(tx, action, project_id=project_id, branch_id=own_id)
            for action in ("create_branch", "timeline_archive")
        ]
        return SnapshotOperationsResponse(snapshot=snapshot, operations=started)


@router.patch("/snapshots/{snapshot_id}", responses=error_responses(400, 404, 422), response_model_exclude_none=True)
def update_snapshot(
    sandbox: SandboxDependency, project_id: str, snapshot_id: str, body: SnapshotUpdateRequest
) -> SnapshotResponse:
    """Changes the name and the expiration of a snapshot. This starts no operations."""
    with sandbox.store.transaction() as tx:
        return SnapshotResponse(snapshot=snapshots.update(tx, project_id, snapshot_id, body.snapshot))


@router.delete(
    "/snapshots/{snapshot_id}", status_code=202, responses=error_responses(404, 423), response_model_exclude_none=True
)
def delete_snapshot(sandbox: SandboxDependency, project_id: str, snapshot_id: str) -> OperationsResponse:
    """Deletes a snapshot. Branches that were restored from it stay."""
    with sandbox.store.transaction() as tx:
        branch_id = snapshots.branch_id_of(snapshots.row_of(tx, project_id, snapshot_id)["id"])
        operations.refuse_if_locked(tx, project_id, branch_id)
        snapshots.delete(tx, snapshot_id)
        started = operations.start(tx, "delete_timeline", project_id=project_id, branch_id=branch_id)
        return OperationsResponse(operations=[started])


@router.post(
    "/snapshots/{snapshot_id}/restore",
    responses=error_responses(400, 404, 409, 422, 423),
    response_model_exclude_none=True,
)
def restore_snapshot(
    sandbox: SandboxDependency, project_id: str, snapshot_id: str, body: SnapshotRestoreRequest | None = None
) -> RestoredSnapshotResponse:
    """Restores a snapshot to a new root branch, which replaces the target at once, or when its restore is finalized."""
    body = body or SnapshotRestoreRequest()
    with sandbox.store.transaction() as tx:
        snapshot = snapshots.row_of(tx, project_id, snapshot_id)
        target = branches.get_unlocked(tx, project_id, body.target_branch_id or snapshot["source_branch_id"])
        for limit in ("branches", "root_branches"):
            limits.require_room(tx, limit, project_id)
        branch = snapshots.restore(tx, snapshot, target, body.name)
        started: list[Operation] = []
        if body.finalize_restore:
            branch, started = snapshots.finalize(tx, branch, None)
        else:
            limits.require_room(tx, "computes", project_id)
            started.append(computes.create(tx, branch)[1])
        started.insert(0, branches.start_creation(tx, branch, "create_branch"))
        return RestoredSnapshotResponse(
            branch=branches.get(tx, project_id, branch.id),
            endpoints=computes.list_of_branch(tx, branch.id),
            operations=started,
        )


@router.post(
    "/branches/{branch_id}/finalize_restore",
    responses=error_responses(400, 404, 409, 422, 423),
    response_model_exclude_none=True,
)
def finalize_restore(
    sandbox: SandboxDependency, project_id: str, branch_id: str, body: FinalizeRestoreRequest | None = None
) -> OperationsResponse:
    """Puts a branch that was restored from a snapshot in the place of the one that it replaces."""
    with sandbox.store.transaction() as tx:
        branch = branches.get_unlocked(tx, project_id, branch_id)
        _branch, started = snapshots.finalize(tx, branch, body.name if body else None)
        return OperationsResponse(operations=started)


@router.get("/branches/{branch_id}/backup_schedule", responses=error_responses(404), response_model_exclude_none=True)
def get_backup_schedule(sandbox: SandboxDependency, project_id: str, branch_id: str) -> BackupSchedule:
    """Returns the backup schedule of a branch."""
    with sandbox.store.transaction() as tx:
        return snapshots.schedule_of(tx, branches.get(tx, project_id, branch_id))


@router.put("/branches/{branch_id}/backup_schedule", responses=error_responses(400, 404, 422, 423))
def set_backup_schedule(
    sandbox: SandboxDependency, project_id: str, branch_id: str, body: BackupSchedule
) -> dict[str, str]:
    """Replaces the backup schedule of a root branch. An empty list ends it."""
    with sandbox.store.transaction() as tx:
        snapshots.set_schedule(tx, branches.get_unlocked(tx, project_id, branch_id), body)
        return {}
