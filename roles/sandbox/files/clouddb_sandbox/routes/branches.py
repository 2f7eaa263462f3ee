# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Branches (api.md, "Operations returned by other requests")."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query

from .. import branches, computes, connections, databases, limits, operations, recovery, roles
from ..paths import BASE_PATH
from ..request_models import BranchCreateRequest, BranchRestoreRequest, BranchUpdateRequest
from ..response_models import (
    AnnotatedObject,
    Annotation,
    BranchCreateResponse,
    BranchDetailsResponse,
    BranchListResponse,
    BranchOperationsResponse,
    BranchRecoverResponse,
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
    search: Annotated[str | None, Query(description="part of a branch's name or id")] = None,
    sort_by: Literal["name", "created_at", "updated_at"] = "updated_at",
    sort_order: Literal["asc", "desc"] = "desc",
    include_deleted: Annotated[bool, Query(description="list deleted branches that can be recovered, too")] = False,
) -> BranchListResponse:
    """Lists the branches of a project, by default the last updated first. Deleted ones are at the end of the last page."""
    with sandbox.store.transaction() as tx:
        page = branches.list_page(
            tx,
            project_id,
            search=search,
            sort_by=sort_by,
            sort_order=sort_order,
            cursor=cursor,
            limit=page_size(limit, page_limit),
        )
        if include_deleted and page.pagination.next is None:
            page.branches += recovery.list_branches(tx, project_id, search)
        return page


@router.post("", status_code=201, responses=error_responses(400, 404, 409, 422, 423), response_model_exclude_none=True)
def create_branch(
    sandbox: SandboxDependency, project_id: str, body: BranchCreateRequest | None = None
) -> BranchCreateResponse:
    """Creates a branch with a compute, or without one if `endpoints` is an empty list."""
    body = body or BranchCreateRequest()
    with sandbox.store.transaction() as tx:
        parent = branches.get_unlocked(tx, project_id, body.branch.parent_id or None)
        limits.require_room(tx, "branches", project_id)
        limits.require_room(tx, "root_branches", project_id, more=body.branch.init_source == "schema-only")
        limits.require_room(tx, "computes", project_id, more=len(body.endpoints))
        branch = branches.insert(tx, parent, body.branch)
        creation = branches.start_creation(tx, branch, "create_branch")
        created = [computes.create(tx, branch, options) for options in body.endpoints]
        return BranchCreateResponse(
            branch=branches.get(tx, project_id, branch.id),
            endpoints=[endpoint for endpoint, _start in created],
            operations=[creation, *(start for _endpoint, start in created)],
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


@router.post(
    "/{branch_id}/restore", responses=error_responses(400, 404, 409, 422, 423), response_model_exclude_none=True
)
def restore_branch(
    sandbox: SandboxDependency, project_id: str, branch_id: str, body: BranchRestoreRequest
) -> BranchOperationsResponse:
    """Replaces the content of a branch by that of its parent, of another branch, or of its own history."""
    with sandbox.store.transaction() as tx:
        branch = branches.get_unlocked(tx, project_id, branch_id)
        limits.require_room(tx, "branches", project_id, more=bool(body.preserve_under_name))
        branches.restore(tx, branch, branches.get_unlocked(tx, project_id, body.source_branch_id), body)
        started = [branches.start_creation(tx, branch, "create_branch")]
        if not body.preserve_under_name:
            started.append(operations.start(tx, "delete_timeline", project_id=project_id, branch_id=branch_id))
        for endpoint in computes.list_of_branch(tx, branch.id):
            started += computes.restart(tx, endpoint) if endpoint.current_state == "active" else []
        return BranchOperationsResponse(branch=branches.get(tx, project_id, branch_id), operations=started)


@router.post("/{branch_id}/set_as_default", responses=error_responses(404, 422, 423), response_model_exclude_none=True)
def set_default_branch(sandbox: SandboxDependency, project_id: str, branch_id: str) -> BranchOperationsResponse:
    """Makes a branch the default branch of the project. This starts no operations."""
    with sandbox.store.transaction() as tx:
        branch = branches.set_as_default(tx, branches.get_unlocked(tx, project_id, branch_id))
        return BranchOperationsResponse(branch=branch, operations=[])


@router.delete("/{branch_id}", responses=deletion_responses(400, 404, 422, 423), response_model_exclude_none=True)
def delete_branch(
    sandbox: SandboxDependency, project_id: str, branch_id: str, hard_delete: bool = False
) -> BranchOperationsResponse:
    """Deletes a branch with its computes, databases and roles. The default branch and parents cannot be deleted."""
    with sandbox.store.transaction() as tx:
        branch = to_delete(branches.find(tx, project_id, branch_id))
        branches.require_deletable(tx, branch)
        branches.refuse_if_locked(tx, branch)
        started = [computes.suspend(tx, endpoint) for endpoint in computes.list_of_branch(tx, branch.id)]
        if tx.lingering and tx.lingering.operations_run:
            started.append(operations.start(tx, "delete_timeline", project_id=project_id, branch_id=branch.id))
        return BranchOperationsResponse(branch=branches.delete(tx, branch, is_hard=hard_delete), operations=started)


@router.post("/{branch_id}/recover", responses=error_responses(404, 409, 422), response_model_exclude_none=True)
def recover_branch(sandbox: SandboxDependency, project_id: str, branch_id: str) -> BranchRecoverResponse:
    """Recovers a deleted branch. This starts no operations."""
    with sandbox.store.transaction() as tx:
        limits.require_room(tx, "branches", project_id)
        branch = recovery.recover_branch(tx, project_id, branch_id)
        return BranchRecoverResponse(branch=branch, endpoints=computes.list_of_branch(tx, branch.id))
