# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Computes, which the API calls endpoints."""

from __future__ import annotations

from fastapi import APIRouter

from .. import branches, computes, projects
from ..paths import BASE_PATH
from ..response_models import EndpointListResponse
from .dependencies import SandboxDependency, error_responses

router = APIRouter(prefix=BASE_PATH + "/projects/{project_id}", tags=["Endpoints"])


@router.get("/endpoints", responses=error_responses(404))
def list_endpoints(sandbox: SandboxDependency, project_id: str) -> EndpointListResponse:
    """Lists the computes of a project, oldest first."""
    with sandbox.store.transaction() as tx:
        projects.get(tx, project_id)
        return EndpointListResponse(endpoints=computes.list_of_project(tx, project_id))


@router.get("/branches/{branch_id}/endpoints", responses=error_responses(404))
def list_endpoints_of_branch(sandbox: SandboxDependency, project_id: str, branch_id: str) -> EndpointListResponse:
    """Lists the branch's compute, if it has one."""
    with sandbox.store.transaction() as tx:
        endpoint = computes.find(tx, branches.get(tx, project_id, branch_id).id)
        return EndpointListResponse(endpoints=[endpoint] if endpoint else [])
