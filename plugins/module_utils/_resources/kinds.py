# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kinds of resources that have a module of their own, each a row. Keeps P2, P3 and P9.

The paths and fields are those of the published API document, because api.md names these resources without them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable, NamedTuple

from .._errors import ClouddbError
from .._http.client import Client
from .goal import Find
from .refusals import branch_refusal, database_refusal


class Kind(NamedTuple):
    """A kind of resource, whose list C(plural) is below that of its C(parents), each named by the option of that name.

    Bodies and responses have it in the field C(wrapper), and its result is C(result). Paths name it by the field C(key).
    C(changeable) and C(fixed) are the fields that requests may change, and that only its creation sets, by option.
    C(rest) are the further fields of the request that creates it. C(refusal) returns the error for a request, by its C(find)
    and body, that the service's lists show to be refused.
    """

    plural: str
    wrapper: str
    result: str
    key: str
    parents: tuple[str, ...] = ()
    changeable: Mapping[str, str] = {}
    fixed: Mapping[str, str] = {}
    rest: Mapping[str, Any] = {}
    refusal: Callable[[Client, Find, Mapping[str, Any] | None], ClouddbError | None] | None = None

    @property
    def fields(self) -> dict[str, str]:
        """All fields that options set, by option."""
        return {**self.changeable, **self.fixed}


PROJECT = Kind(
    plural="projects",
    wrapper="project",
    result="project",
    key="id",
    changeable={"name": "name", "history_retention": "history_retention_seconds"},
    fixed={"region_id": "region_id", "pg_version": "pg_version", "org_id": "org_id"},
)
BRANCH = Kind(
    plural="branches",
    wrapper="branch",
    result="branch",
    key="id",
    parents=("project",),
    changeable={"expires_at": "expires_at", "protected": "protected"},
    fixed={"parent": "parent_id"},
    # The service creates no compute unless it is asked to.
    rest={"endpoints": [{"type": "read_write"}]},
    refusal=branch_refusal,
)
DATABASE = Kind(
    plural="databases",
    wrapper="database",
    result="database",
    key="name",
    parents=("project", "branch"),
    changeable={"owner": "owner_name"},
    refusal=database_refusal,
)
DATABASE_USER = Kind(plural="roles", wrapper="role", result="database_user", key="name", parents=("project", "branch"))
