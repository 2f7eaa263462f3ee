# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The limits of a plan, off by default. Reaching one has a published code, such as BRANCHES_LIMIT_EXCEEDED."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from .request_models import MAX_INTEGER, ControlRequestModel
from .responses import LimitExceeded
from .store import Transaction

Limit = Annotated[int, Field(ge=0, le=MAX_INTEGER)] | None


class Limits(ControlRequestModel):
    """How many there may be: projects of the account; branches, computes and snapshots of a project; databases and users of a branch."""

    projects: Limit = None
    branches: Limit = None
    root_branches: Limit = None
    computes: Limit = None
    snapshots: Limit = None
    databases: Limit = None
    users: Limit = None


# What the service calls it, and what counts.
COUNTED = {
    "projects": ("projects", "projects WHERE deleted_at IS NULL"),
    "branches": ("branches", "branches WHERE project_id = ?"),
    "root_branches": ("root branches", "branches WHERE project_id = ? AND parent_id IS NULL"),
    "computes": ("endpoints", "endpoints WHERE project_id = ?"),
    "snapshots": ("snapshots", "snapshots WHERE project_id = ?"),
    "databases": ("databases", "databases WHERE branch_id = ?"),
    "users": ("roles", "roles WHERE branch_id = ?"),
}


def require_room(tx: Transaction, name: str, *parent: str, more: int = 1) -> None:
    """Raise a 422 error if this many more exceed the limit of this name, in their parent."""
    limit = tx.limits.get(name)
    if limit is not None and more:
        kind, counted = COUNTED[name]
        if tx.db.execute(f"SELECT count(*) FROM {counted}", parent).fetchone()[0] + more > limit:
            raise LimitExceeded(kind)
