# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""API keys (api.md, "POST /api_keys", "GET /api_keys", "DELETE /api_keys/{key_id}")."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, HTTPException, Path
from pydantic import Field

from .. import keys
from ..bodies import LARGEST_INTEGER, Body
from ..resources import ApiKey, CreatedApiKey, RevokedApiKey
from ..sandbox import SandboxOfRequest
from .parameters import errors

router = APIRouter(tags=["API keys"])


class NewApiKey(Body):
    key_name: str = Field(min_length=1)


@router.post("/api_keys", responses=errors(400))
def create_api_key(sandbox: SandboxOfRequest, body: NewApiKey) -> CreatedApiKey:
    """Creates an API key. Its secret is in this answer and nowhere else."""
    with sandbox.store.transaction() as tx:
        return keys.create(tx, body.key_name)


@router.get("/api_keys", responses=errors())
def list_api_keys(sandbox: SandboxOfRequest) -> list[ApiKey]:
    """Lists the account's API keys."""
    with sandbox.store.transaction() as tx:
        return keys.active(tx)


@router.delete("/api_keys/{key_id}", responses=errors(400, 404))
def revoke_api_key(
    sandbox: SandboxOfRequest, key_id: Annotated[int, Path(ge=-LARGEST_INTEGER, le=LARGEST_INTEGER)]
) -> RevokedApiKey:
    """Revokes a key: at once, and for good."""
    with sandbox.store.transaction() as tx:
        revoked = keys.revoke(tx, key_id)
        if revoked is None:
            raise HTTPException(404, f"API key {key_id} not found")
        return revoked
