# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The operations of every project of the account."""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import NamedTuple

from .._errors import NotFound
from .._http.client import Client
from .._parallel import in_parallel
from .._projects import list_projects
from .api import Operation, Selection, list_operations, newest_first


class AccountOperations(NamedTuple):
    """The operations, newest first, and warnings about projects that could not be included."""

    operations: list[Operation]
    warnings: list[str]


def list_account_operations(client: Client, selection: Selection, page_size: int, workers: int) -> AccountOperations:
    """The selected operations of all projects, fetched from C(workers) projects in parallel.

    A project that is deleted meanwhile is left out with a warning; any other error is raised.
    """
    found = list_projects(client)
    ids = [project["id"] for project in found.projects]
    lists = in_parallel(partial(_list_or_none, client, selection, page_size), ids, workers)
    deleted = [project_id for project_id, operations in zip(ids, lists) if operations is None]
    warnings = found.warnings()
    if deleted:
        warnings.append(
            f"The operations of these projects are missing, because the service returned 404 for them. "
            f"The projects were probably deleted while they were listed: {', '.join(deleted)}."
        )
    operations = newest_first(chain.from_iterable(operations or [] for operations in lists), selection.max_results)
    return AccountOperations(operations, warnings)


def _list_or_none(client: Client, selection: Selection, page_size: int, project_id: str) -> list[Operation] | None:
    try:
        return list_operations(client, project_id, selection, page_size)
    except NotFound:
        return None
