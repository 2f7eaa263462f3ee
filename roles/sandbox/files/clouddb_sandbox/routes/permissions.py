# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Members of an organization, and whom a project is shared with. They change what is listed here, and nothing else."""

from __future__ import annotations

from fastapi import APIRouter

from .. import permissions, projects
from ..paths import BASE_PATH
from ..request_models import MemberUpdateRequest, PermissionRequest
from ..response_models import Member, MemberListResponse, ProjectPermission, ProjectPermissionListResponse
from .dependencies import SandboxDependency, error_responses

router = APIRouter(prefix=BASE_PATH, tags=["Permissions"])


@router.get("/organizations/{org_id}/members", responses=error_responses(404))
def list_members(sandbox: SandboxDependency, org_id: str) -> MemberListResponse:
    """Lists the members of an organization: the user of the account, and those of the seed."""
    with sandbox.store.transaction() as tx:
        projects.require_organization(tx, org_id)
        return MemberListResponse(members=permissions.list_members(tx, org_id))


@router.get("/organizations/{org_id}/members/{member_id}", responses=error_responses(404))
def get_member(sandbox: SandboxDependency, org_id: str, member_id: str) -> Member:
    """Returns one member."""
    with sandbox.store.transaction() as tx:
        return permissions.get_member(tx, org_id, member_id)


@router.patch("/organizations/{org_id}/members/{member_id}", responses=error_responses(400, 404))
def update_member(sandbox: SandboxDependency, org_id: str, member_id: str, body: MemberUpdateRequest) -> Member:
    """Changes the role of a member."""
    with sandbox.store.transaction() as tx:
        return permissions.set_role(tx, permissions.get_member(tx, org_id, member_id), body.role)


@router.delete("/organizations/{org_id}/members/{member_id}", responses=error_responses(404, 422))
def remove_member(sandbox: SandboxDependency, org_id: str, member_id: str) -> dict[str, str]:
    """Removes a member from the organization."""
    with sandbox.store.transaction() as tx:
        permissions.remove_member(tx, permissions.get_member(tx, org_id, member_id))
        return {}


@router.get("/projects/{project_id}/permissions", responses=error_responses(404), response_model_exclude_none=True)
def list_permissions(sandbox: SandboxDependency, project_id: str) -> ProjectPermissionListResponse:
    """Lists whom a project is shared with, without revoked permissions."""
    with sandbox.store.transaction() as tx:
        project = projects.get(tx, project_id)
        return ProjectPermissionListResponse(project_permissions=permissions.list_permissions(tx, project.id))


@router.post(
    "/projects/{project_id}/permissions", responses=error_responses(400, 404), response_model_exclude_none=True
)
def grant_permission(sandbox: SandboxDependency, project_id: str, body: PermissionRequest) -> ProjectPermission:
    """Shares a project with an email address."""
    with sandbox.store.transaction() as tx:
        return permissions.grant(tx, projects.get(tx, project_id).id, body.email)


@router.delete("/projects/{project_id}/permissions/{permission_id}", responses=error_responses(404))
def revoke_permission(sandbox: SandboxDependency, project_id: str, permission_id: str) -> ProjectPermission:
    """Ends a permission."""
    with sandbox.store.transaction() as tx:
        return permissions.revoke(tx, projects.get(tx, project_id).id, permission_id)
