# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Branches (api.md, "Operations returned by other requests")."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from .. import branches, computes, connections, databases, operations, roles
from ..paths import BASE_PATH
from ..request_models import BranchCreateRequest, BranchUpdateRequest
from ..response_models import (
    AnnotatedObject,
    Annotation,
    BranchCreateResponse,
    BranchDetailsResponse,
    BranchListResponse,
    BranchOperationsResponse,
)
from .dependencies import (
    Cursor,
    PageLimit,
    SandboxDependency,
    deletion_responses,
    error_responses,
    page_size,
    to_delete,
)

router = APIRouter(prefix=BASE_PATH + "/projects/{project_id}/branches", tags=["Branches"])


@router.get("", responses=error_responses(400, 404), response_model_exclude_none=True)
def list_branches(
    sandbox: SandboxDependency,
    project_id: str,
    page_limit: PageLimit,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 100,
    cursor: Cursor = None,
) -> BranchListResponse:
    """Lists the branches of a project, oldest first."""
    with sandbox.store.transaction() as tx:
        return branches.list_page(tx, project_id, cursor, page_size(limit, page_limit))


@router.post("", status_code=201, responses=error_responses(400, 404, 409, 422, 423), response_model_exclude_none=True)
def create_branch(
    sandbox: SandboxDependency, project_id: str, body: BranchCreateRequest | None = None
) -> BranchCreateResponse:
    """Creates a branch with a compute, or without one if `endpoints` is an empty list."""
    body = body or BranchCreateRequest()
    with sandbox.store.transaction() as tx:
        parent = branches.get_unlocked(tx, project_id, body.branch.parent_id)
        branch = branches.insert(tx, parent, body.branch)
        started = [branches.start_creation(tx, branch, "create_branch")]
        endpoints = [computes.insert(tx, branch) for _endpoint in body.endpoints]
        started += [computes.start_operation(tx, "start_compute", endpoint) for endpoint in endpoints]
        return BranchCreateResponse(
            branch=branches.get(tx, project_id, branch.id),
            endpoints=endpoints,
            operations=started,
            roles=roles.list_all(tx, branch.id),
            databases=databases.list_all(tx, branch.id),
            connection_uris=connections.list_of_new_branch(tx, branch),
        )


@router.get("/{branch_id}", responses=error_responses(404), response_model_exclude_none=True)
def get_branch(sandbox: SandboxDependency, project_id: str, branch_id: str) -> BranchDetailsResponse:
    """Returns one branch."""
    with sandbox.store.transaction() as tx:
        branch = branches.get(tx, project_id, branch_id)
        return BranchDetailsResponse(branch=branch, annotation=Annotation(object=AnnotatedObject(id=branch.id)))


@router.patch("/{branch_id}", responses=error_responses(400, 404, 409, 422, 423), response_model_exclude_none=True)
def update_branch(
    sandbox: SandboxDependency, project_id: str, branch_id: str, body: BranchUpdateRequest
) -> BranchOperationsResponse:
    """Changes the name, the protection and the expiration of a branch. This starts no operations."""
    with sandbox.store.transaction() as tx:
        branch = branches.get_unlocked(tx, project_id, branch_id)
        return BranchOperationsResponse(branch=branches.update(tx, branch, body.branch), operations=[])


@router.delete("/{branch_id}", responses=deletion_responses(404, 422, 423), response_model_exclude_none=True)
def delete_branch(sandbox: SandboxDependency, project_id: str, branch_id: str) -> BranchOperationsResponse:
    """Deletes a branch with its compute, databases and roles. The default branch and parents cannot be deleted."""
    with sandbox.store.transaction() as tx:
        branch = to_delete(branches.find(tx, project_id, branch_id))
        branches.require_deletable(tx, branch)
        operations.refuse_if_locked(tx, project_id, branch.id)
        started = computes.suspend(tx, branch)
        if tx.lingering and tx.lingering.operations_run:
            started.append(operations.start(tx, "delete_timeline", project_id=project_id, branch_id=branch.id))
        return BranchOperationsResponse(branch=branches.delete(tx, branch), operations=started)
