# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Branches and databases: the requests of api.md, "Operations returned by other requests"."""

from __future__ import annotations

from fastapi import APIRouter

from .. import branches, operations, platform_activity, projects
from ..request_models import BranchCreateRequest, DatabaseCreateRequest
from ..response_models import BranchCreateResponse, BranchListResponse, DatabaseCreateResponse, DatabaseListResponse
from .dependencies import SandboxDependency, error_responses

router = APIRouter(prefix="/projects/{project_id}/branches", tags=["Branches"])


@router.get("", responses=error_responses(404), response_model_exclude_none=True)
def list_branches(sandbox: SandboxDependency, project_id: str) -> BranchListResponse:
    """Lists the branches of a project, oldest first."""
    with sandbox.store.transaction() as tx:
        projects.get(tx, project_id)
        return BranchListResponse(branches=branches.list_all(tx, project_id))


@router.post("", status_code=201, responses=error_responses(400, 404, 409, 423), response_model_exclude_none=True)
def create_branch(
    sandbox: SandboxDependency, project_id: str, body: BranchCreateRequest | None = None
) -> BranchCreateResponse:
    """Creates a branch with a compute, or without one if `endpoints` is an empty list."""
    body = body or BranchCreateRequest()
    with sandbox.store.transaction() as tx:
        projects.get(tx, project_id)
        parent = branches.get(tx, project_id, body.branch.parent_id)
        operations.refuse_if_locked(tx, project_id, parent.id)
        branch = branches.insert(tx, project_id, body.branch.name, parent.id)
        started = [operations.start(tx, "create_branch", project_id=project_id, branch_id=branch.id)]
        endpoints = [branches.insert_endpoint(tx, branch) for _endpoint in body.endpoints]
        started += [
            operations.start(tx, "start_compute", project_id=project_id, branch_id=branch.id, endpoint_id=endpoint.id)
            for endpoint in endpoints
        ]
        return BranchCreateResponse(branch=branch, endpoints=endpoints, operations=started)


@router.get("/{branch_id}/databases", responses=error_responses(404))
def list_databases(sandbox: SandboxDependency, project_id: str, branch_id: str) -> DatabaseListResponse:
    """Lists the databases of a branch."""
    with sandbox.store.transaction() as tx:
        projects.get(tx, project_id)
        branch = branches.get(tx, project_id, branch_id)
        return DatabaseListResponse(databases=branches.list_databases(tx, branch.id))


@router.post(
    "/{branch_id}/databases",
    status_code=201,
    responses=error_responses(400, 404, 409, 423),
    response_model_exclude_none=True,
)
def create_database(
    sandbox: SandboxDependency, project_id: str, branch_id: str, body: DatabaseCreateRequest
) -> DatabaseCreateResponse:
    """Creates a database on a branch."""
    with sandbox.store.transaction() as tx:
        projects.get(tx, project_id)
        branch = branches.get(tx, project_id, branch_id)
        operations.refuse_if_locked(tx, project_id, branch.id)
        database = branches.insert_database(tx, branch.id, body.database.name, body.database.owner_name)
        endpoint_id = branches.endpoint_id_of(tx, branch.id)
        if endpoint_id:
            platform_activity.record_use(tx, endpoint_id)
        started = operations.start(
            tx, "apply_config", project_id=project_id, branch_id=branch.id, endpoint_id=endpoint_id
        )
        return DatabaseCreateResponse(database=database, operations=[started])
