# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Connection details of databases, with the passwords of roles."""

from __future__ import annotations

from urllib.parse import quote

from fastapi import HTTPException

from . import computes, databases, roles
from .response_models import Branch, ConnectionDetails, ConnectionParameters
from .store import Transaction


def get(
    tx: Transaction, branch: Branch, database_name: str, role_name: str, endpoint_id: str | None = None
) -> ConnectionDetails:
    """Return the connection details. Raises a 404 error if the branch lacks the database, the role or the compute."""
    database = databases.get(tx, branch.id, database_name)
    role = roles.get(tx, branch.id, role_name)
    endpoint = (
        computes.get(tx, branch.project_id, endpoint_id) if endpoint_id else computes.find_read_write(tx, branch.id)
    )
    if endpoint is None or endpoint.branch_id != branch.id:
        raise HTTPException(404, f"branch {branch.id} has no such compute to connect to")
    user, password, name = (quote(text, safe="") for text in (role.name, role.password, database.name))
    return ConnectionDetails(
        connection_uri=f"postgresql://{user}:{password}@{endpoint.host}/{name}?sslmode=require",
        connection_parameters=ConnectionParameters(
            database=database.name,
            password=role.password,
            role=role.name,
            host=endpoint.host,
            pooler_host=endpoint.host.replace(".", "-pooler.", 1),
        ),
    )


def list_of_new_branch(tx: Transaction, branch: Branch) -> list[ConnectionDetails] | None:
    """Return the connection details that the response to a branch's creation contains.

    Like the public service's, it contains none unless the branch has a compute, one role and one database.
    """
    branch_databases, branch_roles = databases.list_all(tx, branch.id), roles.list_all(tx, branch.id)
    if len(branch_databases) != 1 or len(branch_roles) != 1 or computes.find_read_write(tx, branch.id) is None:
        return None
    return [get(tx, branch, branch_databases[0].name, branch_roles[0].name)]
