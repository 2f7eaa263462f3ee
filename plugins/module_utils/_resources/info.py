# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lists the resources of a kind. Keeps P1, P5 and P9."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._errors import Result
from .._http.client import Client
from .._lists import list_resources
from .._options import NOT_CREATED_ID
from .declared import list_of, missing_project
from .kinds import Kind
from .lookup import branch_id_from


def info(kind: Kind, name: str, params: Mapping[str, Any], client: Client, check_mode: bool) -> Result:
    """The result of the module that returns all resources of this kind as C(name), those of C(branch) if it is set.

    In check mode, what an earlier task would create has none. Raises what Client raises, and ResourceNotFound.
    """
    segments, query = list_of(kind, params, client, may_be_missing=check_mode)
    branch_id = None
    if "branch" not in kind.parents and params.get("branch"):
        branch_id = branch_id_from(params["branch"], client, segments[1], may_be_missing=check_mode)
    is_created = NOT_CREATED_ID not in (*segments, branch_id)
    items = list_resources(client, segments, kind.plural, query).items if is_created else []
    return {
        "changed": False,
        name: [each for each in items if branch_id in (None, each.get("branch_id"))],
        "warnings": missing_project(segments, params),
    }
