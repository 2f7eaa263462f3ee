# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Projects (api.md, "GET /projects"), and the requests that start work on a whole project."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import Field

from .. import operations, projects
from ..bodies import Body
from ..resources import ChangedProject, CreatedProject, OneProject, ProjectPage
from ..sandbox import SandboxOfRequest
from .parameters import Cursor, ForcedLimit, errors, page_size

router = APIRouter(prefix="/projects", tags=["Projects"])

THIRTY_DAYS = 30 * 86400
Retention = Annotated[int, Field(ge=0, le=THIRTY_DAYS)]


class NewProjectFields(Body):
    name: str | None = Field(default=None, min_length=1)
    region_id: str | None = Field(default=None, min_length=1)
    pg_version: int | None = Field(default=None, ge=14, le=18)
    org_id: str | None = Field(default=None, min_length=1)
    history_retention_seconds: Retention | None = None


class NewProject(Body):
    project: NewProjectFields


class ProjectChange(Body):
    history_retention_seconds: Retention


class ProjectUpdate(Body):
    project: ProjectChange


@router.get("", responses=errors(400), response_model_exclude_none=True)
def list_projects(
    sandbox: SandboxOfRequest,
    request: Request,
    forced: ForcedLimit,
    limit: Annotated[int, Query(ge=1, le=400)] = 10,
    cursor: Cursor = None,
    search: Annotated[str | None, Query(description="part of a project's name or id")] = None,
    org_id: str | None = None,
) -> ProjectPage:
    """Returns the projects of the account, newest first."""
    with sandbox.store.transaction() as tx:
        return projects.page(
            tx,
            search=search,
            org_id=org_id,
            unavailable=request.state.unavailable,
            cursor=cursor,
            limit=page_size(limit, forced),
        )


@router.post("", status_code=201, responses=errors(400), response_model_exclude_none=True)
def create_project(sandbox: SandboxOfRequest, body: NewProject) -> CreatedProject:
    """Creates a project with a default branch and a compute."""
    with sandbox.store.transaction() as tx:
        project_id = projects.insert(tx, body.project.model_dump())
        branch = projects.insert_branch(tx, project_id, projects.DEFAULT_BRANCH)
        endpoint = projects.insert_endpoint(tx, branch)
        started = [
            operations.start(tx, "create_timeline", project_id=project_id, branch_id=branch.id),
            operations.start(tx, "start_compute", project_id=project_id, branch_id=branch.id, endpoint_id=endpoint.id),
        ]
        project = projects.find(tx, project_id)
        return CreatedProject(project=project, branch=branch, endpoints=[endpoint], operations=started)


@router.get("/{project_id}", responses=errors(404), response_model_exclude_none=True)
def get_project(sandbox: SandboxOfRequest, project_id: str) -> OneProject:
    """Returns one project."""
    with sandbox.store.transaction() as tx:
        return OneProject(project=projects.find(tx, project_id))


@router.patch("/{project_id}", responses=errors(400, 404, 423), response_model_exclude_none=True)
def update_project(sandbox: SandboxOfRequest, project_id: str, body: ProjectUpdate) -> ChangedProject:
    """Changes the project's history retention."""
    with sandbox.store.transaction() as tx:
        projects.find(tx, project_id)
        operations.refuse_if_busy(tx, project_id)
        projects.set_history_retention(tx, project_id, body.project.history_retention_seconds)
        branch = projects.find_branch(tx, project_id, None)
        started = operations.start(tx, "apply_storage_config", project_id=project_id, branch_id=branch.id)
        return ChangedProject(project=projects.find(tx, project_id), operations=[started])


@router.delete("/{project_id}", responses=errors(404, 423), response_model_exclude_none=True)
def delete_project(sandbox: SandboxOfRequest, project_id: str) -> ChangedProject:
    """Deletes a project. It is gone from the list; its operations can still be fetched."""
    with sandbox.store.transaction() as tx:
        project = projects.find(tx, project_id)
        operations.refuse_if_busy(tx, project_id)
        branch = projects.find_branch(tx, project_id, None)
        projects.delete(tx, project_id)
        started = operations.start(tx, "delete_tenant", project_id=project_id, branch_id=branch.id)
        return ChangedProject(project=project, operations=[started])
