# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""API keys (api.md, "POST /api_keys", "GET /api_keys", "DELETE /api_keys/{key_id}")."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path

from .. import keys, projects
from ..paths import BASE_PATH
from ..request_models import MAX_INTEGER, ApiKeyCreateRequest, OrgApiKeyCreateRequest
from ..response_models import (
    ApiKey,
    ApiKeyCreateResponse,
    ApiKeyRevokeResponse,
    OrgApiKey,
    OrgApiKeyCreateResponse,
    OrgApiKeyRevokeResponse,
)
from .dependencies import SandboxDependency, error_responses

router = APIRouter(prefix=BASE_PATH, tags=["API keys"])

KeyId = Annotated[int, Path(ge=-MAX_INTEGER, le=MAX_INTEGER)]


@router.post("/api_keys", responses=error_responses(400))
def create_api_key(sandbox: SandboxDependency, body: ApiKeyCreateRequest) -> ApiKeyCreateResponse:
    """Creates an API key. Only this response contains its secret."""
    with sandbox.store.transaction() as tx:
        return keys.create(tx, body.key_name)


@router.get("/api_keys", responses=error_responses(), response_model=list[ApiKey])
def list_api_keys(sandbox: SandboxDependency) -> list[OrgApiKey]:
    """Lists the user's API keys, without those of the organization."""
    with sandbox.store.transaction() as tx:
        return keys.list_active(tx)


@router.delete("/api_keys/{key_id}", responses=error_responses(400, 404))
def revoke_api_key(sandbox: SandboxDependency, key_id: KeyId) -> ApiKeyRevokeResponse:
    """Revokes a key, effective immediately. This cannot be reversed."""
    with sandbox.store.transaction() as tx:
        return keys.revoke(tx, key_id)


@router.post("/organizations/{org_id}/api_keys", responses=error_responses(400, 404), response_model_exclude_none=True)
def create_org_api_key(
    sandbox: SandboxDependency, org_id: str, body: OrgApiKeyCreateRequest
) -> OrgApiKeyCreateResponse:
    """Creates an API key of the organization, which can be limited to a project."""
    with sandbox.store.transaction() as tx:
        projects.require_organization(tx, org_id)
        if body.project_id is not None:
            projects.get(tx, body.project_id)
        return keys.create(tx, body.key_name, scope=keys.Scope(org_id, body.project_id))


@router.get("/organizations/{org_id}/api_keys", responses=error_responses(404), response_model_exclude_none=True)
def list_org_api_keys(sandbox: SandboxDependency, org_id: str) -> list[OrgApiKey]:
    """Lists the API keys of the organization. Those that were never used have no `last_used_at`."""
    with sandbox.store.transaction() as tx:
        projects.require_organization(tx, org_id)
        return keys.list_active(tx, org_id)


@router.delete(
    "/organizations/{org_id}/api_keys/{key_id}", responses=error_responses(400, 404), response_model_exclude_none=True
)
def revoke_org_api_key(sandbox: SandboxDependency, org_id: str, key_id: KeyId) -> OrgApiKeyRevokeResponse:
    """Revokes a key of the organization, effective immediately. This cannot be reversed."""
    with sandbox.store.transaction() as tx:
        projects.require_organization(tx, org_id)
        return keys.revoke(tx, key_id, org_id)
