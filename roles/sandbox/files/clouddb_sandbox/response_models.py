# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The bodies of the API's responses (api.md, "Resources and their fields"), and the objects they contain."""

from __future__ import annotations

from pydantic import BaseModel


class ErrorResponse(BaseModel):
    message: str
    code: str
    request_id: str


class ApiKey(BaseModel):
    """API key (list item). Until the key is used, `last_used_at` is null and `last_used_from_addr` is empty."""

    id: int
    name: str
    created_at: str
    last_used_at: str | None
    last_used_from_addr: str


class ApiKeyCreateResponse(BaseModel):
    """API key (creation result), with the additional fields that the public service sends."""

    id: int
    key: str
    name: str
    created_at: str


class ApiKeyRevokeResponse(BaseModel):
    """API key (revocation result)."""

    id: int
    name: str
    revoked: bool
    last_used_at: str | None
    last_used_from_addr: str


class Project(BaseModel):
    """Project (item of the project list)."""

    id: str
    name: str
    platform_id: str
    region_id: str
    provisioner: str
    pg_version: int
    locked: bool
    cpu_used_sec: int
    proxy_host: str
    branch_logical_size_limit: int
    org_id: str | None = None
    created_at: str
    updated_at: str


class ProjectDetails(Project):
    history_retention_seconds: int


class Operation(BaseModel):
    """Operation. `endpoint_id` and `error` are absent where they do not apply."""

    id: str
    project_id: str
    branch_id: str
    endpoint_id: str | None = None
    action: str
    status: str
    error: str | None = None
    failures_count: int
    created_at: str
    updated_at: str


class Branch(BaseModel):
    id: str
    project_id: str
    parent_id: str | None = None
    name: str
    default: bool
    current_state: str
    created_at: str
    updated_at: str


class Endpoint(BaseModel):
    """Compute of a branch."""

    id: str
    project_id: str
    branch_id: str
    host: str


class Role(BaseModel):
    """Role of a branch, without its password."""

    branch_id: str
    name: str
    protected: bool
    created_at: str
    updated_at: str


class RoleWithPassword(Role):
    password: str


class Database(BaseModel):
    id: int
    branch_id: str
    name: str
    owner_name: str
    created_at: str
    updated_at: str


class ConnectionParameters(BaseModel):
    database: str
    password: str
    role: str
    host: str
    pooler_host: str


class ConnectionDetails(BaseModel):
    """How to connect to a database. `connection_uri` contains the role's password."""

    connection_uri: str
    connection_parameters: ConnectionParameters


class Pagination(BaseModel):
    """Pagination object; absent from an empty page."""

    cursor: str


class NextPagination(BaseModel):
    """Pagination object of branch lists; `next` is absent from the last page."""

    next: str | None = None
    sort_by: str
    sort_order: str


class ProjectListResponse(BaseModel):
    projects: list[Project]
    unavailable_project_ids: list[str] | None = None
    pagination: Pagination | None = None


class OperationListResponse(BaseModel):
    operations: list[Operation]
    pagination: Pagination | None = None


class OperationResponse(BaseModel):
    operation: Operation


class ProjectResponse(BaseModel):
    project: ProjectDetails


class ProjectOperationsResponse(ProjectResponse):
    operations: list[Operation]


class ProjectCreateResponse(ProjectOperationsResponse):
    branch: Branch
    endpoints: list[Endpoint]
    roles: list[RoleWithPassword]
    databases: list[Database]
    connection_uris: list[ConnectionDetails]


class ConnectionUriResponse(BaseModel):
    uri: str


class BranchListResponse(BaseModel):
    branches: list[Branch]
    pagination: NextPagination


class BranchResponse(BaseModel):
    branch: Branch


class BranchOperationsResponse(BranchResponse):
    operations: list[Operation]


class BranchCreateResponse(BranchOperationsResponse):
    """`connection_uris` is absent unless the branch has a compute, one role and one database."""

    endpoints: list[Endpoint]
    roles: list[Role]
    databases: list[Database]
    connection_uris: list[ConnectionDetails] | None = None


class EndpointListResponse(BaseModel):
    endpoints: list[Endpoint]


class DatabaseListResponse(BaseModel):
    databases: list[Database]


class DatabaseResponse(BaseModel):
    database: Database


class DatabaseOperationsResponse(DatabaseResponse):
    operations: list[Operation]


class RoleListResponse(BaseModel):
    roles: list[Role]


class RoleResponse(BaseModel):
    role: Role


class RoleOperationsResponse(RoleResponse):
    operations: list[Operation]


class RolePasswordOperationsResponse(BaseModel):
    role: RoleWithPassword
    operations: list[Operation]


class RolePasswordResponse(BaseModel):
    password: str
