# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""API keys (api.md, "POST /api_keys", "GET /api_keys", "DELETE /api_keys/{key_id}")."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path

from .. import keys
from ..paths import BASE_PATH
from ..request_models import MAX_INTEGER, ApiKeyCreateRequest
from ..response_models import ApiKey, ApiKeyCreateResponse, ApiKeyRevokeResponse
from .dependencies import SandboxDependency, error_responses

router = APIRouter(prefix=BASE_PATH, tags=["API keys"])


@router.post("/api_keys", responses=error_responses(400))
def create_api_key(sandbox: SandboxDependency, body: ApiKeyCreateRequest) -> ApiKeyCreateResponse:
    """Creates an API key. Only this response contains its secret."""
    with sandbox.store.transaction() as tx:
        return keys.create(tx, body.key_name)


@router.get("/api_keys", responses=error_responses())
def list_api_keys(sandbox: SandboxDependency) -> list[ApiKey]:
    """Lists the account's API keys."""
    with sandbox.store.transaction() as tx:
        return keys.list_active(tx)


@router.delete("/api_keys/{key_id}", responses=error_responses(400, 404))
def revoke_api_key(
    sandbox: SandboxDependency, key_id: Annotated[int, Path(ge=-MAX_INTEGER, le=MAX_INTEGER)]
) -> ApiKeyRevokeResponse:
    """Revokes a key, effective immediately. This cannot be reversed."""
    with sandbox.store.transaction() as tx:
        return keys.revoke(tx, key_id)
