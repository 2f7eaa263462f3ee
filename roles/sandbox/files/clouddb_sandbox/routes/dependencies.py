# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Dependencies, parameters and error responses that several endpoints share."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from fastapi import Depends, HTTPException, Query, Request

from ..keys import Scope
from ..response_models import ErrorResponse
from ..state import SandboxState

Resource = TypeVar("Resource")


async def get_sandbox(request: Request) -> SandboxState:
    """Return the sandbox, which a fault can give another store for this request."""
    sandbox: SandboxState = getattr(request.state, "sandbox", request.app.state.sandbox)
    return sandbox


async def get_page_limit(request: Request) -> int | None:
    limit: int | None = request.state.page_limit
    return limit


async def get_unavailable_ids(request: Request) -> list[str]:
    ids: list[str] = request.state.unavailable_ids
    return ids


async def get_key(request: Request) -> Scope:
    key: Scope = request.state.key
    return key


def org_id_of(key: Scope, org_id: str | None) -> str | None:
    """Return the organization that a request is about. A key of an organization implies it. Raises a 404 error for another one."""
    if key.org_id and org_id not in (None, key.org_id):
        raise HTTPException(404, f"organization {org_id} not found")
    return key.org_id or org_id


SandboxDependency = Annotated[SandboxState, Depends(get_sandbox)]
KeyScope = Annotated[Scope, Depends(get_key)]
PageLimit = Annotated[int | None, Depends(get_page_limit)]
UnavailableIds = Annotated[list[str], Depends(get_unavailable_ids)]
Cursor = Annotated[str | None, Query(description="cursor of the previous page")]


def page_size(limit: int, page_limit: int | None) -> int:
    """Return the requested page size, or the limit that a fault sets if that is smaller."""
    return limit if page_limit is None else min(limit, page_limit)


def error_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Describe an endpoint's error responses for the OpenAPI document. Every endpoint has 401."""
    return {status: {"model": ErrorResponse} for status in (401, *statuses)}


def to_delete(found: Resource | None) -> Resource:
    """Return the resource that a request deletes. If there is none, the response is a 204, as that of the public service."""
    if found is None:
        raise HTTPException(204)
    return found


def deletion_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Describe the responses of an endpoint that uses to_delete(), other than its success."""
    return {204: {"description": "It does not exist, or has been deleted already"}, **error_responses(*statuses)}
