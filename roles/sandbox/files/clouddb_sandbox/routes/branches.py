# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Branches and databases: the requests of api.md, "Operations returned by other requests"."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from pydantic import Field

from .. import operations, platform_activity, projects
from ..bodies import Body
from ..resources import BranchList, CreatedBranch, CreatedDatabase, DatabaseList
from ..sandbox import SandboxOfRequest
from .parameters import errors

router = APIRouter(prefix="/projects/{project_id}/branches", tags=["Branches"])


class NewBranchFields(Body):
    name: str | None = Field(default=None, min_length=1)
    parent_id: str | None = None


class NewBranch(Body):
    branch: NewBranchFields = NewBranchFields()
    endpoints: list[dict[str, Any]] = Field(default=[{}], max_length=1, description="none, or the branch's compute")


class NewDatabaseFields(Body):
    name: str = Field(min_length=1)
    owner_name: str = Field(min_length=1)


class NewDatabase(Body):
    database: NewDatabaseFields


@router.get("", responses=errors(404), response_model_exclude_none=True)
def list_branches(sandbox: SandboxOfRequest, project_id: str) -> BranchList:
    """Lists the branches of a project, oldest first."""
    with sandbox.store.transaction() as tx:
        projects.find(tx, project_id)
        return BranchList(branches=projects.branches(tx, project_id))


@router.post("", status_code=201, responses=errors(400, 404, 409, 423), response_model_exclude_none=True)
def create_branch(sandbox: SandboxOfRequest, project_id: str, body: NewBranch | None = None) -> CreatedBranch:
    """Creates a branch with a compute, or without one where `endpoints` is an empty list."""
    body = body or NewBranch()
    with sandbox.store.transaction() as tx:
        projects.find(tx, project_id)
        parent = projects.find_branch(tx, project_id, body.branch.parent_id)
        operations.refuse_if_busy(tx, project_id, parent.id)
        branch = projects.insert_branch(tx, project_id, body.branch.name, parent.id)
        started = [operations.start(tx, "create_branch", project_id=project_id, branch_id=branch.id)]
        endpoints = [projects.insert_endpoint(tx, branch) for _endpoint in body.endpoints]
        started += [
            operations.start(tx, "start_compute", project_id=project_id, branch_id=branch.id, endpoint_id=endpoint.id)
            for endpoint in endpoints
        ]
        return CreatedBranch(branch=branch, endpoints=endpoints, operations=started)


@router.get("/{branch_id}/databases", responses=errors(404))
def list_databases(sandbox: SandboxOfRequest, project_id: str, branch_id: str) -> DatabaseList:
    """Lists the databases of a branch."""
    with sandbox.store.transaction() as tx:
        projects.find(tx, project_id)
        branch = projects.find_branch(tx, project_id, branch_id)
        return DatabaseList(databases=projects.databases(tx, branch.id))


@router.post(
    "/{branch_id}/databases",
    status_code=201,
    responses=errors(400, 404, 409, 423),
    response_model_exclude_none=True,
)
def create_database(sandbox: SandboxOfRequest, project_id: str, branch_id: str, body: NewDatabase) -> CreatedDatabase:
    """Creates a database on a branch."""
    with sandbox.store.transaction() as tx:
        projects.find(tx, project_id)
        branch = projects.find_branch(tx, project_id, branch_id)
        operations.refuse_if_busy(tx, project_id, branch.id)
        database = projects.insert_database(tx, branch.id, body.database.name, body.database.owner_name)
        endpoint_id = projects.endpoint_of(tx, branch.id)
        if endpoint_id:
            platform_activity.used(tx, endpoint_id)
        started = operations.start(
            tx, "apply_config", project_id=project_id, branch_id=branch.id, endpoint_id=endpoint_id
        )
        return CreatedDatabase(database=database, operations=[started])
