# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The operations of every project of the account."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from itertools import chain
from typing import Any, Callable, NamedTuple, TypeVar

from .._errors import NotFound
from .._fields import Fields
from .._http.client import Client
from .._parallel import in_parallel
from .._projects import list_projects
from .api import Operation, Selection, Summary, count_operations, list_operations, newest_first, total

Result = TypeVar("Result")


class AccountOperations(NamedTuple):
    """The operations, newest first, and warnings about projects that could not be included."""

    operations: list[Operation]
    warnings: list[str]


class AccountSummary(NamedTuple):
    """The summary of the operations, and warnings about projects that could not be included."""

    summary: Summary
    warnings: list[str]


def list_account_operations(
    client: Client,
    selection: Selection,
    page_size: int,
    workers: int,
    fields: Fields | None = None,
    query: Mapping[str, Any] | None = None,
) -> AccountOperations:
    """The selected operations of all projects, fetched from C(workers) projects in parallel.

    C(query) is sent with each request for the list of projects. A project that is deleted meanwhile is left out with a warning; any other error is raised.
    """

    def operations_of(project_id: str) -> list[Operation]:
        return list_operations(client, project_id, selection, page_size, fields)

    lists, warnings = _results_by_project(client, operations_of, workers, query)
    return AccountOperations(newest_first(chain.from_iterable(lists), selection.max_results), warnings)


def count_account_operations(
    client: Client, selection: Selection, page_size: int, workers: int, query: Mapping[str, Any] | None = None
) -> AccountSummary:
    """The summary of the selected operations of all projects, fetched as list_account_operations() does.

    Of each of the projects that are listed in parallel, only one page of operations is in memory at a time.
    """

    def summary_of(project_id: str) -> Summary:
        return count_operations(client, project_id, selection, page_size)

    summaries, warnings = _results_by_project(client, summary_of, workers, query)
    return AccountSummary(total(summaries), warnings)


def _results_by_project(
    client: Client, function: Callable[[str], Result], workers: int, query: Mapping[str, Any] | None
) -> tuple[list[Result], list[str]]:
    """The function's results for the ids of all projects, without those that are deleted meanwhile; and the warnings."""
    found = list_projects(client, query=query, fields=Fields(["id"]))
    ids = [project["id"] for project in found.projects]
    results = in_parallel(partial(_result_or_none, function), ids, workers)
    deleted = [project_id for project_id, result in zip(ids, results) if result is None]
    warnings = found.warnings()
    if deleted:
        warnings.append(missing_operations(deleted))
    return [result for result in results if result is not None], warnings


def missing_operations(project_ids: Iterable[str]) -> str:
    """The warning about projects whose operations can't be listed any more."""
    return (
        f"The operations of these projects are missing, because the service returned 404 for them. "
        f"The projects were probably deleted while they were listed: {', '.join(project_ids)}."
    )


def _result_or_none(function: Callable[[str], Result], project_id: str) -> Result | None:
    try:
        return function(project_id)
    except NotFound:
        return None
