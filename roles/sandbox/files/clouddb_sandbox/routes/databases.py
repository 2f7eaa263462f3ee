# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Databases of a branch. Every change starts apply_config."""

from __future__ import annotations

from fastapi import APIRouter

from .. import branches, computes, databases, limits, roles
from ..paths import BASE_PATH
from ..request_models import DatabaseCreateRequest, DatabaseUpdateRequest
from ..response_models import DatabaseListResponse, DatabaseOperationsResponse, DatabaseResponse
from .dependencies import SandboxDependency, deletion_responses, error_responses, to_delete

router = APIRouter(prefix=BASE_PATH + "/projects/{project_id}/branches/{branch_id}/databases", tags=["Databases"])


@router.get("", responses=error_responses(404))
def list_databases(sandbox: SandboxDependency, project_id: str, branch_id: str) -> DatabaseListResponse:
    """Lists the databases of a branch, oldest first."""
    with sandbox.store.transaction() as tx:
        branch = branches.get(tx, project_id, branch_id)
        return DatabaseListResponse(databases=databases.list_all(tx, branch.id))


@router.post("", status_code=201, responses=error_responses(400, 404, 409, 422, 423), response_model_exclude_none=True)
def create_database(
    sandbox: SandboxDependency, project_id: str, branch_id: str, body: DatabaseCreateRequest
) -> DatabaseOperationsResponse:
    """Creates a database on a branch."""
    with sandbox.store.transaction() as tx:
        branch = branches.get_unlocked(tx, project_id, branch_id)
        limits.require_room(tx, "databases", branch.id)
        owner = roles.get(tx, branch.id, body.database.owner_name)
        database = databases.insert(tx, branch.id, body.database.name, owner.name)
        return DatabaseOperationsResponse(database=database, operations=[computes.apply_config(tx, branch)])


@router.get("/{database_name}", responses=error_responses(404))
def get_database(sandbox: SandboxDependency, project_id: str, branch_id: str, database_name: str) -> DatabaseResponse:
    """Returns one database."""
    with sandbox.store.transaction() as tx:
        branch = branches.get(tx, project_id, branch_id)
        return DatabaseResponse(database=databases.get(tx, branch.id, database_name))


@router.patch("/{database_name}", responses=error_responses(400, 404, 409, 422, 423), response_model_exclude_none=True)
def update_database(
    sandbox: SandboxDependency, project_id: str, branch_id: str, database_name: str, body: DatabaseUpdateRequest
) -> DatabaseOperationsResponse:
    """Renames a database, changes its owner, or both."""
    with sandbox.store.transaction() as tx:
        branch = branches.get_unlocked(tx, project_id, branch_id)
        database = databases.get(tx, branch.id, database_name)
        if body.database.owner_name:
            roles.get(tx, branch.id, body.database.owner_name)
        changed = databases.update(
            tx, database, body.database.name or database.name, body.database.owner_name or database.owner_name
        )
        return DatabaseOperationsResponse(database=changed, operations=[computes.apply_config(tx, branch)])


@router.delete("/{database_name}", responses=deletion_responses(404, 423), response_model_exclude_none=True)
def delete_database(
    sandbox: SandboxDependency, project_id: str, branch_id: str, database_name: str
) -> DatabaseOperationsResponse:
    """Deletes a database."""
    with sandbox.store.transaction() as tx:
        branch = branches.get(tx, project_id, branch_id)
        database = to_delete(databases.find(tx, branch.id, database_name))
        branches.refuse_if_locked(tx, branch)
        databases.delete(tx, database)
        return DatabaseOperationsResponse(database=database, operations=[computes.apply_config(tx, branch)])
