# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Computes, which the API calls endpoints."""

from __future__ import annotations

from fastapi import APIRouter, HTTPException

from .. import branches, computes, limits, projects
from ..paths import BASE_PATH
from ..request_models import ComputeCreateRequest, ComputeUpdateRequest
from ..response_models import (
    Endpoint,
    EndpointListResponse,
    EndpointOperationsResponse,
    EndpointResponse,
    Operation,
)
from ..store import Transaction
from .dependencies import SandboxDependency, deletion_responses, error_responses, to_delete

router = APIRouter(prefix=BASE_PATH + "/projects/{project_id}", tags=["Endpoints"])


def get_unlocked(tx: Transaction, project_id: str, endpoint_id: str) -> Endpoint:
    """Return the compute, for a request that changes it. Raises a 404 error, and a 423 error if its branch is locked."""
    endpoint = computes.get(tx, project_id, endpoint_id)
    branches.get_unlocked(tx, project_id, endpoint.branch_id)
    return endpoint


def changed(tx: Transaction, endpoint: Endpoint, *started: Operation) -> EndpointOperationsResponse:
    """Return the response to a request that has changed the compute."""
    current = computes.get(tx, endpoint.project_id, endpoint.id)
    return EndpointOperationsResponse(endpoint=current, operations=list(started))


@router.get("/endpoints", responses=error_responses(404), response_model_exclude_none=True)
def list_endpoints(sandbox: SandboxDependency, project_id: str) -> EndpointListResponse:
    """Lists the computes of a project, oldest first."""
    with sandbox.store.transaction() as tx:
        return EndpointListResponse(endpoints=computes.list_of_project(tx, project_id))


@router.post(
    "/endpoints", status_code=201, responses=error_responses(400, 404, 409, 422, 423), response_model_exclude_none=True
)
def create_endpoint(
    sandbox: SandboxDependency, project_id: str, body: ComputeCreateRequest
) -> EndpointOperationsResponse:
    """Creates a compute of a branch, and starts it. A branch has at most one that is read_write."""
    with sandbox.store.transaction() as tx:
        branch = branches.get_unlocked(tx, project_id, body.endpoint.branch_id)
        if body.endpoint.region_id not in (None, projects.get(tx, project_id).region_id):
            raise HTTPException(422, "region_id must be that of the project")
        limits.require_room(tx, "computes", project_id)
        return changed(tx, *computes.create(tx, branch, body.endpoint))


@router.get("/endpoints/{endpoint_id}", responses=error_responses(404), response_model_exclude_none=True)
def get_endpoint(sandbox: SandboxDependency, project_id: str, endpoint_id: str) -> EndpointResponse:
    """Returns one compute."""
    with sandbox.store.transaction() as tx:
        return EndpointResponse(endpoint=computes.get(tx, project_id, endpoint_id))


@router.patch(
    "/endpoints/{endpoint_id}", responses=error_responses(400, 404, 422, 423), response_model_exclude_none=True
)
def update_endpoint(
    sandbox: SandboxDependency, project_id: str, endpoint_id: str, body: ComputeUpdateRequest
) -> EndpointOperationsResponse:
    """Changes the settings of a compute."""
    with sandbox.store.transaction() as tx:
        endpoint = get_unlocked(tx, project_id, endpoint_id)
        return changed(tx, endpoint, *computes.update(tx, endpoint, body.endpoint))


@router.delete(
    "/endpoints/{endpoint_id}", responses=deletion_responses(404, 422, 423), response_model_exclude_none=True
)
def delete_endpoint(sandbox: SandboxDependency, project_id: str, endpoint_id: str) -> EndpointOperationsResponse:
    """Deletes a compute."""
    with sandbox.store.transaction() as tx:
        endpoint = to_delete(computes.find(tx, project_id, endpoint_id))
        if branches.get_unlocked(tx, project_id, endpoint.branch_id).protected:
            raise HTTPException(422, f"endpoint {endpoint_id} cannot be deleted: its branch is protected")
        response = changed(tx, endpoint, computes.suspend(tx, endpoint))
        computes.delete(tx, endpoint)
        return response


@router.post("/endpoints/{endpoint_id}/start", responses=error_responses(404, 423), response_model_exclude_none=True)
def start_endpoint(sandbox: SandboxDependency, project_id: str, endpoint_id: str) -> EndpointOperationsResponse:
    """Starts a compute, unless it is active."""
    with sandbox.store.transaction() as tx:
        endpoint = get_unlocked(tx, project_id, endpoint_id)
        return changed(tx, endpoint, *([] if endpoint.current_state == "active" else [computes.start(tx, endpoint)]))


@router.post("/endpoints/{endpoint_id}/suspend", responses=error_responses(404, 423), response_model_exclude_none=True)
def suspend_endpoint(sandbox: SandboxDependency, project_id: str, endpoint_id: str) -> EndpointOperationsResponse:
    """Suspends a compute, unless it is idle."""
    with sandbox.store.transaction() as tx:
        endpoint = get_unlocked(tx, project_id, endpoint_id)
        return changed(tx, endpoint, *([] if endpoint.current_state == "idle" else [computes.suspend(tx, endpoint)]))


@router.post("/endpoints/{endpoint_id}/restart", responses=error_responses(404, 423), response_model_exclude_none=True)
def restart_endpoint(sandbox: SandboxDependency, project_id: str, endpoint_id: str) -> EndpointOperationsResponse:
    """Suspends a compute, then starts it."""
    with sandbox.store.transaction() as tx:
        endpoint = get_unlocked(tx, project_id, endpoint_id)
        return changed(tx, endpoint, *computes.restart(tx, endpoint))


@router.get("/branches/{branch_id}/endpoints", responses=error_responses(404), response_model_exclude_none=True)
def list_endpoints_of_branch(sandbox: SandboxDependency, project_id: str, branch_id: str) -> EndpointListResponse:
    """Lists the computes of a branch, oldest first."""
    with sandbox.store.transaction() as tx:
        branch = branches.get(tx, project_id, branch_id)
        return EndpointListResponse(endpoints=computes.list_of_branch(tx, branch.id))
