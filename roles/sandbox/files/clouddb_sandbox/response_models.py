# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The bodies of the API's responses (api.md, "Resources and their fields"), and what they contain.

They also have the fields that the OpenAPI document of the public service requires, most of them constant.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

USER_ID = "5f0c9d3e-2b7a-4c1d-8e6f-7a9b0c1d2e3f"
USER_NAME = "sandbox"
DEFAULT_COMPUTE_UNITS = 0.25
ORGANIZATION_ID = "org-sandbox-12345678"


class ErrorResponse(BaseModel):
    message: str
    code: str
    request_id: str


class KeyCreator(BaseModel):
    id: str = USER_ID
    name: str = USER_NAME
    image: str = ""


class ApiKey(BaseModel):
    """API key (list item). Until the key is used, `last_used_at` is null and `last_used_from_addr` is empty."""

    id: int
    name: str
    created_at: str
    created_by: KeyCreator = KeyCreator()
    last_used_at: str | None
    last_used_from_addr: str


class ApiKeyCreateResponse(BaseModel):
    """API key (creation result), with the additional fields that the public service sends."""

    id: int
    key: str
    name: str
    created_at: str
    created_by: str = USER_ID


class ApiKeyRevokeResponse(BaseModel):
    """API key (revocation result)."""

    id: int
    name: str
    created_at: str
    created_by: str = USER_ID
    revoked: bool
    last_used_at: str | None
    last_used_from_addr: str


class OrgApiKey(ApiKey):
    """A key of the organization. `project_id` is absent unless it is limited to this project."""

    project_id: str | None = None


class OrgApiKeyCreateResponse(ApiKeyCreateResponse):
    project_id: str | None = None


class OrgApiKeyRevokeResponse(ApiKeyRevokeResponse):
    project_id: str | None = None


class Organization(BaseModel):
    """The organization that all projects belong to, unless the seed says otherwise."""

    id: str = ORGANIZATION_ID
    name: str = USER_NAME
    handle: str = ORGANIZATION_ID
    plan: str = "free_v3"
    managed_by: str = "console"
    created_at: str = "2026-01-01T00:00:00.000000Z"
    updated_at: str = "2026-01-01T00:00:00.000000Z"


class OrganizationListResponse(BaseModel):
    organizations: list[Organization]


class Member(BaseModel):
    id: str
    user_id: str
    org_id: str
    role: str
    joined_at: str


class MemberUser(BaseModel):
    email: str
    has_mfa: bool = False


class MemberWithUser(BaseModel):
    member: Member
    user: MemberUser


class MemberListResponse(BaseModel):
    members: list[MemberWithUser]


class ProjectPermission(BaseModel):
    """Whom a project is shared with. Only the response to its revocation has `revoked_at`."""

    id: str
    granted_to_email: str
    granted_at: str
    revoked_at: str | None = None


class ProjectPermissionListResponse(BaseModel):
    project_permissions: list[ProjectPermission]


class Region(BaseModel):
    region_id: str
    name: str
    default: bool
    geo_lat: str = ""
    geo_long: str = ""


class RegionListResponse(BaseModel):
    regions: list[Region]


class User(BaseModel):
    """The user of the account. A limit of 0 is none."""

    id: str = USER_ID
    login: str = USER_NAME
    name: str = USER_NAME
    last_name: str = ""
    email: str = "sandbox@clouddb.example"
    image: str = ""
    plan: str = "free_v3"
    auth_accounts: list[dict[str, str]] = []
    active_seconds_limit: int = 0
    projects_limit: int = 0
    branches_limit: int = 0
    max_autoscaling_limit: float = 0


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
    branch_logical_size_limit_bytes: int
    active_time: int = 0
    creation_source: str = "console"
    store_passwords: bool = True
    owner_id: str = USER_ID
    org_id: str
    settings: dict[str, Any]
    default_endpoint_settings: dict[str, Any]
    created_at: str
    updated_at: str
    deleted_at: str | None = None
    recoverable_until: str | None = None


class ProjectDetails(Project):
    history_retention_seconds: int
    consumption_period_start: str
    consumption_period_end: str
    active_time_seconds: int = 0
    compute_time_seconds: int = 0
    written_data_bytes: int = 0
    data_transfer_bytes: int = 0
    data_storage_bytes_hour: int = 0


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
    total_duration_ms: int
    created_at: str
    updated_at: str


class RestrictedAction(BaseModel):
    """An action that is refused for the branch now, and why."""

    name: str
    reason: str


class BranchRecovery(BaseModel):
    """Of a deleted branch: until when it can be recovered, and whether a user has deleted it, or its expiration."""

    deleted_at: str
    recoverable_until: str
    deletion_method: str


class Branch(BaseModel):
    id: str
    project_id: str
    parent_id: str | None = None
    parent_timestamp: str | None = None
    parent_lsn: str | None = None
    init_source: str
    name: str
    default: bool
    protected: bool = False
    expires_at: str | None = None
    last_reset_at: str | None = None
    current_state: str
    state_changed_at: str
    ttl_interval_seconds: int | None = None
    restricted_actions: list[RestrictedAction] | None = None
    restore_status: str | None = None
    restored_from: str | None = None
    restored_as: str | None = None
    recovery: BranchRecovery | None = None
    creation_source: str = "console"
    cpu_used_sec: int = 0
    active_time_seconds: int = 0
    compute_time_seconds: int = 0
    written_data_bytes: int = 0
    data_transfer_bytes: int = 0
    created_at: str
    updated_at: str


class Endpoint(BaseModel):
    """Compute of a branch. `suspend_timeout_seconds` 0 is the default, five minutes."""

    id: str
    project_id: str
    branch_id: str
    host: str
    proxy_host: str
    region_id: str
    provisioner: str
    type: str
    name: str | None = None
    current_state: str
    disabled: bool = False
    autoscaling_limit_min_cu: float = DEFAULT_COMPUTE_UNITS
    autoscaling_limit_max_cu: float = DEFAULT_COMPUTE_UNITS
    suspend_timeout_seconds: int = 0
    pooler_enabled: bool = False
    pooler_mode: str = "transaction"
    passwordless_access: bool = True
    settings: dict[str, Any] = {}
    last_active: str | None = None
    started_at: str | None = None
    suspended_at: str | None = None
    creation_source: str = "console"
    created_at: str
    updated_at: str


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


class SharedProjectsResponse(BaseModel):
    projects: list[Project] = []


class ProjectListResponse(BaseModel):
    projects: list[Project]
    applications: dict[str, list[str]] = {}
    integrations: dict[str, list[str]] = {}
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


class AnnotatedObject(BaseModel):
    type: str = "console/branch"
    id: str


class Annotation(BaseModel):
    object: AnnotatedObject
    value: dict[str, str] = {}


class BranchListResponse(BaseModel):
    branches: list[Branch]
    pagination: NextPagination
    annotations: dict[str, Annotation] = {}


class BranchResponse(BaseModel):
    branch: Branch


class BranchDetailsResponse(BranchResponse):
    annotation: Annotation


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


class EndpointResponse(BaseModel):
    endpoint: Endpoint


class EndpointOperationsResponse(EndpointResponse):
    operations: list[Operation]


class Snapshot(BaseModel):
    id: str
    name: str
    lsn: str | None = None
    timestamp: str | None = None
    source_branch_id: str
    created_at: str
    expires_at: str | None = None
    manual: bool = True
    full_size: int = 0


class SnapshotListResponse(BaseModel):
    snapshots: list[Snapshot]


class SnapshotResponse(BaseModel):
    snapshot: Snapshot


class SnapshotOperationsResponse(SnapshotResponse):
    operations: list[Operation]


class RestoredSnapshotResponse(BranchOperationsResponse):
    endpoints: list[Endpoint]


class BranchRecoverResponse(BranchResponse):
    endpoints: list[Endpoint]


class OperationsResponse(BaseModel):
    operations: list[Operation]


class ProjectRecoverResponse(ProjectResponse):
    branches: list[Branch]


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
