# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Roles of a branch. Every change starts apply_config.

A password is only in the responses to requests that create, reset or reveal it.
"""

from __future__ import annotations

from fastapi import APIRouter, HTTPException

from .. import branches, computes, limits, projects, roles
from ..paths import BASE_PATH
from ..request_models import RoleCreateRequest
from ..response_models import (
    RoleListResponse,
    RoleOperationsResponse,
    RolePasswordOperationsResponse,
    RolePasswordResponse,
    RoleResponse,
)
from .dependencies import SandboxDependency, deletion_responses, error_responses, to_delete

router = APIRouter(prefix=BASE_PATH + "/projects/{project_id}/branches/{branch_id}/roles", tags=["Roles"])


@router.get("", responses=error_responses(404))
def list_roles(sandbox: SandboxDependency, project_id: str, branch_id: str) -> RoleListResponse:
    """Lists the roles of a branch, oldest first, without their passwords."""
    with sandbox.store.transaction() as tx:
        branch = branches.get(tx, project_id, branch_id)
        return RoleListResponse(roles=roles.list_all(tx, branch.id))


@router.post(
    "",
    status_code=201,
    responses=error_responses(400, 404, 409, 422, 423),
    response_model_exclude_none=True,
)
def create_role(
    sandbox: SandboxDependency, project_id: str, branch_id: str, body: RoleCreateRequest
) -> RolePasswordOperationsResponse:
    """Creates a role with a random password."""
    with sandbox.store.transaction() as tx:
        branch = branches.get_unlocked(tx, project_id, branch_id)
        limits.require_room(tx, "users", branch.id)
        role = roles.insert(tx, branch.id, body.role.name)
        return RolePasswordOperationsResponse(role=role, operations=[computes.apply_config(tx, branch)])


@router.get("/{role_name}", responses=error_responses(404))
def get_role(sandbox: SandboxDependency, project_id: str, branch_id: str, role_name: str) -> RoleResponse:
    """Returns one role, without its password."""
    with sandbox.store.transaction() as tx:
        branch = branches.get(tx, project_id, branch_id)
        return RoleResponse(role=roles.get(tx, branch.id, role_name))


@router.delete("/{role_name}", responses=deletion_responses(404, 422, 423), response_model_exclude_none=True)
def delete_role(sandbox: SandboxDependency, project_id: str, branch_id: str, role_name: str) -> RoleOperationsResponse:
    """Deletes a role that owns no database."""
    with sandbox.store.transaction() as tx:
        branch = branches.get(tx, project_id, branch_id)
        role = to_delete(roles.find(tx, branch.id, role_name))
        branches.refuse_if_locked(tx, branch)
        roles.delete(tx, role)
        return RoleOperationsResponse(role=role, operations=[computes.apply_config(tx, branch)])


@router.post(
    "/{role_name}/reset_password",
    responses=error_responses(404, 423),
    response_model_exclude_none=True,
)
def reset_password(
    sandbox: SandboxDependency, project_id: str, branch_id: str, role_name: str
) -> RolePasswordOperationsResponse:
    """Gives a role a new random password."""
    with sandbox.store.transaction() as tx:
        branch = branches.get_unlocked(tx, project_id, branch_id)
        role = roles.reset_password(tx, roles.get(tx, branch.id, role_name))
        return RolePasswordOperationsResponse(role=role, operations=[computes.apply_config(tx, branch)])


@router.get("/{role_name}/reveal_password", responses=error_responses(404, 412))
def reveal_password(
    sandbox: SandboxDependency, project_id: str, branch_id: str, role_name: str
) -> RolePasswordResponse:
    """Returns a role's password."""
    with sandbox.store.transaction() as tx:
        branch = branches.get(tx, project_id, branch_id)
        if not projects.get(tx, project_id).store_passwords:
            raise HTTPException(412, f"the passwords of project {project_id} are not stored")
        return RolePasswordResponse(password=roles.get(tx, branch.id, role_name).password)
