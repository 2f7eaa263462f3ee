# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the API sends: api.md, "Resources and their fields", and the objects that requests start work on."""

from __future__ import annotations

from pydantic import BaseModel


class Error(BaseModel):
    message: str
    code: str
    request_id: str


class ApiKey(BaseModel):
    """API key (list item). The times are null, the address empty, as long as the key has not been used."""

    id: int
    name: str
    created_at: str
    last_used_at: str | None
    last_used_from_addr: str


class CreatedApiKey(BaseModel):
    """API key (creation result), with the fields that the public service sends besides."""

    id: int
    key: str
    name: str
    created_at: str


class RevokedApiKey(BaseModel):
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
    """Operation. `endpoint_id` and `error` are left out where there is nothing to say."""

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
    created_at: str


class Endpoint(BaseModel):
    id: str
    project_id: str
    branch_id: str


class Database(BaseModel):
    id: int
    branch_id: str
    name: str
    owner_name: str
    created_at: str


class Pagination(BaseModel):
    """Pagination object; an empty page has none."""

    cursor: str


class ProjectPage(BaseModel):
    projects: list[Project]
    unavailable_project_ids: list[str] | None = None
    pagination: Pagination | None = None


class OperationPage(BaseModel):
    operations: list[Operation]
    pagination: Pagination | None = None


class OneOperation(BaseModel):
    operation: Operation


class OneProject(BaseModel):
    project: ProjectDetails


class ChangedProject(OneProject):
    operations: list[Operation]


class CreatedProject(ChangedProject):
    branch: Branch
    endpoints: list[Endpoint]


class BranchList(BaseModel):
    branches: list[Branch]


class CreatedBranch(BaseModel):
    branch: Branch
    endpoints: list[Endpoint]
    operations: list[Operation]


class DatabaseList(BaseModel):
    databases: list[Database]


class CreatedDatabase(BaseModel):
    database: Database
    operations: list[Operation]
