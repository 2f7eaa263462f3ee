# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What every project of the account has, for example its operations. Keeps P1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Callable, TypeVar

from .._errors import NotFound
from .._http.client import Client
from .._options import Fields
from .._parallel import in_parallel
from .._projects import list_projects

Result = TypeVar("Result")


def of_account(
    client: Client, function: Callable[[str], Result], workers: int, query: Mapping[str, Any] | None
) -> tuple[list[Result], list[str]]:
    """The function's result for the id of each project of the account, and warnings about projects that are missing.

    C(query) is sent with each request for the list of projects.
    """
    found = list_projects(client, query=query, fields=Fields(["id"]))
    results, warnings = of_projects([project["id"] for project in found.projects], function, workers)
    return list(results.values()), found.warnings() + warnings


def of_projects(
    project_ids: Sequence[str], function: Callable[[str], Result], workers: int
) -> tuple[dict[str, Result], list[str]]:
    """The function's result by the id of each project, C(workers) of them in parallel.

    A project that is deleted meanwhile is left out with a warning; any other error is raised.
    """
    found = zip(project_ids, in_parallel(partial(_result_or_none, function), project_ids, workers))
    results = {project_id: result for project_id, result in found if result is not None}
    deleted = [project_id for project_id in project_ids if project_id not in results]
    if not deleted:
        return results, []
    return results, [
        f"The operations of these projects are missing, because the service returned 404 for them. "
        f"The projects were probably deleted while they were listed: {', '.join(deleted)}."
    ]


def _result_or_none(function: Callable[[str], Result], project_id: str) -> Result | None:
    try:
        return function(project_id)
    except NotFound:
        return None
