# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Projects (api.md, "GET /projects"), and the requests that start operations on a project."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from .. import branches, computes, connections, databases, limits, operations, projects, recovery, roles
from ..paths import BASE_PATH
from ..request_models import ProjectCreateRequest, ProjectUpdateRequest
from ..response_models import (
    ProjectCreateResponse,
    ProjectListResponse,
    ProjectOperationsResponse,
    ProjectRecoverResponse,
    ProjectResponse,
)
from .dependencies import (
    Cursor,
    KeyScope,
    PageLimit,
    SandboxDependency,
    UnavailableIds,
    error_responses,
    org_id_of,
    page_size,
)

router = APIRouter(prefix=BASE_PATH + "/projects", tags=["Projects"])


@router.get("", responses=error_responses(400, 404), response_model_exclude_none=True)
def list_projects(
    sandbox: SandboxDependency,
    key: KeyScope,
    page_limit: PageLimit,
    unavailable_ids: UnavailableIds,
    limit: Annotated[int, Query(ge=1, le=400)] = 10,
    cursor: Cursor = None,
    search: Annotated[str | None, Query(description="part of a project's name or id")] = None,
    org_id: Annotated[str | None, Query(pattern="^[a-z0-9-]{1,60}$")] = None,
    recoverable: Annotated[bool, Query(description="list deleted projects that can be recovered")] = False,
) -> ProjectListResponse:
    """Returns the projects of the account, newest first."""
    with sandbox.store.transaction() as tx:
        return projects.list_page(
            tx,
            search=search,
            org_id=org_id_of(key, org_id),
            recoverable=recoverable,
            unavailable_ids=unavailable_ids,
            cursor=cursor,
            limit=page_size(limit, page_limit),
        )


@router.post("", status_code=201, responses=error_responses(400, 404, 422), response_model_exclude_none=True)
def create_project(sandbox: SandboxDependency, key: KeyScope, body: ProjectCreateRequest) -> ProjectCreateResponse:
    """Creates a project with a default branch, which has a compute, a database and a role that owns it."""
    with sandbox.store.transaction() as tx:
        limits.require_room(tx, "projects")
        projects.require_region(body.project.region_id)
        projects.require_organization(tx, body.project.org_id)
        project_id = projects.insert(tx, {**body.project.columns(), "org_id": org_id_of(key, body.project.org_id)})
        branch = branches.insert_default(tx, project_id, body.project.branch)
        creation = branches.start_creation(tx, branch, "create_timeline")
        endpoint, start = computes.create(tx, branch)
        [database] = databases.list_all(tx, branch.id)
        return ProjectCreateResponse(
            project=projects.get(tx, project_id),
            branch=branches.get(tx, project_id, branch.id),
            endpoints=[endpoint],
            operations=[creation, start],
            roles=[roles.get(tx, branch.id, database.owner_name)],
            databases=[database],
            connection_uris=[connections.get(tx, branch, database.name, database.owner_name)],
        )


@router.get("/{project_id}", responses=error_responses(404), response_model_exclude_none=True)
def get_project(sandbox: SandboxDependency, project_id: str) -> ProjectResponse:
    """Returns one project."""
    with sandbox.store.transaction() as tx:
        return ProjectResponse(project=projects.get(tx, project_id))


@router.patch("/{project_id}", responses=error_responses(400, 404, 422, 423), response_model_exclude_none=True)
def update_project(
    sandbox: SandboxDependency, project_id: str, body: ProjectUpdateRequest
) -> ProjectOperationsResponse:
    """Changes the project's name, which starts no operation, its history retention, or its settings."""
    with sandbox.store.transaction() as tx:
        project = projects.get(tx, project_id)
        operations.refuse_if_locked(tx, project_id)
        changes = body.project
        projects.update(tx, project, changes)
        if changes.default_endpoint_settings:
            computes.options_of(projects.get(tx, project_id).default_endpoint_settings, computes.READ_WRITE)
        branch, started = branches.get(tx, project_id, None), []
        if changes.history_retention_seconds is not None:
            started.append(operations.start(tx, "apply_storage_config", project_id=project_id, branch_id=branch.id))
        if changes.settings:
            started.append(computes.apply_config(tx, branch))
        return ProjectOperationsResponse(project=projects.get(tx, project_id), operations=started)


@router.delete("/{project_id}", responses=error_responses(404, 422, 423), response_model_exclude_none=True)
def delete_project(sandbox: SandboxDependency, project_id: str) -> ProjectOperationsResponse:
    """Deletes a project. It is no longer listed; its operations can still be fetched."""
    with sandbox.store.transaction() as tx:
        project = projects.get(tx, project_id)
        operations.refuse_if_locked(tx, project_id)
        branch = branches.get(tx, project_id, None)
        projects.delete(tx, project_id)
        started = operations.start(tx, "delete_tenant", project_id=project_id, branch_id=branch.id)
        return ProjectOperationsResponse(project=project, operations=[started])


@router.post("/{project_id}/recover", responses=error_responses(404, 422, 423), response_model_exclude_none=True)
def recover_project(sandbox: SandboxDependency, project_id: str) -> ProjectRecoverResponse:
    """Recovers a deleted project. This starts no operations."""
    with sandbox.store.transaction() as tx:
        operations.refuse_if_locked(tx, project_id)
        limits.require_room(tx, "projects")
        recovered = recovery.recover_project(tx, project_id)
        return ProjectRecoverResponse(project=projects.get(tx, project_id), branches=recovered)
