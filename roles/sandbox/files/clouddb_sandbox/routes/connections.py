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
    sandbox: SandboxDependency,
    project_id: str,
    database_name: str,
    role_name: str,
    branch_id: str | None = None,
    endpoint_id: str | None = None,
    pooled: bool = False,
) -> ConnectionUriResponse:
    """Returns the connection URI of a database, with the role's password.

    It is that of the default branch and of the read_write compute, unless the request names others.
    """
    with sandbox.store.transaction() as tx:
        branch = branches.get(tx, project_id, branch_id)
        details = connections.get(tx, branch, database_name, role_name, endpoint_id)
        uri, parameters = details.connection_uri, details.connection_parameters
        if pooled:
            uri = uri.replace(f"@{parameters.host}/", f"@{parameters.pooler_host}/")
        return ConnectionUriResponse(uri=uri)
