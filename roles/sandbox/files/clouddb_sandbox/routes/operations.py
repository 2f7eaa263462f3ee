# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""System operations (api.md, "GET /projects/{project_id}/operations" and the one below it)."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from .. import operations, projects
from ..paths import BASE_PATH
from ..response_models import OperationListResponse, OperationResponse
from .dependencies import Cursor, PageLimit, SandboxDependency, error_responses, page_size

router = APIRouter(prefix=BASE_PATH + "/projects/{project_id}/operations", tags=["Operations"])


@router.get("", responses=error_responses(400, 404), response_model_exclude_none=True)
def list_operations(
    sandbox: SandboxDependency,
    project_id: str,
    page_limit: PageLimit,
    limit: Annotated[int, Query(ge=1, le=1000)] = 50,
    cursor: Cursor = None,
) -> OperationListResponse:
    """Lists operations of a project, newest first, even of a deleted one."""
    with sandbox.store.transaction() as tx:
        projects.require_known(tx, project_id)
        return operations.list_page(tx, project_id, cursor, page_size(limit, page_limit))


@router.get("/{operation_id}", responses=error_responses(404), response_model_exclude_none=True)
def get_operation(sandbox: SandboxDependency, project_id: str, operation_id: str) -> OperationResponse:
    """Returns one operation."""
    with sandbox.store.transaction() as tx:
        projects.require_known(tx, project_id)
        return OperationResponse(operation=operations.get(tx, project_id, operation_id))
