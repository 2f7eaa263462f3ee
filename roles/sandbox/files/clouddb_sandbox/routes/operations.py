# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""System operations (api.md, "GET /projects/{project_id}/operations" and the one below it)."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from .. import operations, projects
from ..resources import OneOperation, OperationPage
from ..sandbox import SandboxOfRequest
from .parameters import Cursor, ForcedLimit, errors, page_size

router = APIRouter(prefix="/projects/{project_id}/operations", tags=["Operations"])


@router.get("", responses=errors(400, 404), response_model_exclude_none=True)
def list_operations(
    sandbox: SandboxOfRequest,
    project_id: str,
    forced: ForcedLimit,
    limit: Annotated[int, Query(ge=1, le=1000)] = 50,
    cursor: Cursor = None,
) -> OperationPage:
    """Lists operations of a project, newest first. Those of a deleted project stay listed."""
    with sandbox.store.transaction() as tx:
        projects.require_known(tx, project_id)
        return operations.page(tx, project_id, cursor, page_size(limit, forced))


@router.get("/{operation_id}", responses=errors(404), response_model_exclude_none=True)
def get_operation(sandbox: SandboxOfRequest, project_id: str, operation_id: str) -> OneOperation:
    """Returns one operation."""
    with sandbox.store.transaction() as tx:
        projects.require_known(tx, project_id)
        return OneOperation(operation=operations.find(tx, project_id, operation_id))
