# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Connection URIs, which contain passwords."""

from __future__ import annotations

from fastapi import APIRouter

from .. import branches, connections
from ..paths import BASE_PATH
from ..response_models import ConnectionUriResponse
from .dependencies import SandboxDependency, error_responses

router = APIRouter(prefix=BASE_PATH + "/projects/{project_id}/connection_uri", tags=["Connections"])


@router.get("", responses=error_responses(400, 404))
def get_connection_uri(
    sandbox: SandboxDependency, project_id: str, database_name: str, role_name: str, branch_id: str | None = None
) -> ConnectionUriResponse:
    """Returns the connection URI of a database, by default on the default branch, with the role's password."""
    with sandbox.store.transaction() as tx:
        branch = branches.get(tx, project_id, branch_id)
        return ConnectionUriResponse(uri=connections.get(tx, branch, database_name, role_name).connection_uri)
