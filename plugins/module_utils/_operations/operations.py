# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Operations of the service: listing, selecting and polling those of a project, or of the account (api.md, Operation). Keeps P1 and P4."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Callable, NamedTuple, TypeVar

from .._http.client import Client
from .._http.errors import NotFound, StatusError
from .._http.message import LOCKED, UNAVAILABLE
from .._http.pages import Page, pages
from .._http.response import Response
from .._options import Fields
from .._parallel import in_parallel
from .._projects import list_projects
from .._timestamps import BEGINNING, timestamp_of
from .._untrusted import displayable, is_id, without_templates

Value = TypeVar("Value")
Operation = dict[str, Any]
Summary = dict[str, Any]
# Of a list that is read for the operations of a poll.
MIN_POLLED, MAX_POLLED = 20, 100
# Unfinished operations that are older are not waited for.
LOOKBACK = timedelta(days=1)
# How many of many a message names.
MAX_NAMED = 10
# Operations without a compute lack the first one, those that have not failed the second one.
OPTIONAL_FIELDS = ("endpoint_id", "error")
# Needed to sort operations and to count them.
WORKING_FIELDS = ("created_at", "status", "action")


class OperationRef(NamedTuple):
    """Identifies one operation."""

    project_id: str
    id: str


class Selection(NamedTuple):
    """The operations to return; a field that is None or empty selects all.

    C(created_after) and C(updated_after) can be ages by the service's clock.
    """

    statuses: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()
    branch_id: str | None = None
    endpoint_id: str | None = None
    created_after: datetime | timedelta | None = None
    max_results: int | None = None
    updated_after: datetime | timedelta | None = None

    def matches(self, operation: Operation) -> bool:
        """Whether status, action, branch and compute are selected; times are not compared."""
        return (
            (not self.statuses or operation.get("status") in self.statuses)
            and (not self.actions or operation.get("action") in self.actions)
            and self.branch_id in (None, operation.get("branch_id"))
            and self.endpoint_id in (None, operation.get("endpoint_id"))
        )


def selected_pages(client: Client, project_id: str, selection: Selection, page_size: int | None) -> Iterator[Page]:
    """The pages with their selected operations, newest first (api.md, GET /projects/{project_id}/operations).

    An age in the selection is that when the page arrives, by the service's clock. No page is fetched after C(created_after);
    C(max_results) is up to the caller. Raises NotFound for an unknown project.
    """
    for page in operation_pages(client, project_id, page_size):
        now = client.service_now()
        recent = _since(page, "created_at", selection.created_after, now)
        # An operation that was created long ago can be updated at any time, so the list goes on.
        updated = _since(page._replace(items=recent), "updated_at", selection.updated_after, now)
        yield page._replace(items=[operation for operation in updated if selection.matches(operation)])
        if len(recent) < len(page.items):
            return


def _since(page: Page, field: str, earliest: datetime | timedelta | None, now: datetime) -> list[Operation]:
    """The operations whose time in this field is not before C(earliest), which can be an age; None: all."""
    try:
        oldest = now - earliest if isinstance(earliest, timedelta) else earliest
    except OverflowError:
        oldest = None
    return [each for each in page.items if oldest is None or require_time(page.response, each, field) >= oldest]


def list_operations(
    client: Client,
    project_id: str,
    selection: Selection,
    page_size: int | None = None,
    fields: Fields | None = None,
) -> list[Operation]:
    """A project's selected operations, newest first. They keep WORKING_FIELDS, whatever C(fields) says.

    Fetches no more pages than the selection needs. Raises NotFound for an unknown project.
    """
    fields = fields or Fields()
    selected: list[Operation] = []
    for page in selected_pages(client, project_id, selection, page_size):
        selected += fields.reduce(page.items, *WORKING_FIELDS)
        if selection.max_results and len(selected) >= selection.max_results:
            break
    return newest_first(selected, selection.max_results)


def count_operations(client: Client, project_id: str, selection: Selection, page_size: int | None) -> Summary:
    """The summary of a project's selected operations, of which only one page is in memory at a time."""
    return summed(summary(page.items) for page in selected_pages(client, project_id, selection, page_size))


def operation_pages(client: Client, project_id: str, page_size: int | None) -> Iterator[Page]:
    """The pages of a project's operation list, newest first; C(page_size) None: as large as the service takes.

    Raises UnexpectedResponse for an operation of another project.
    """
    path = ("projects", project_id, "operations")
    for page in pages(client, *path, field="operations", page_size=page_size, id=str, status=str):
        for operation in page.items:
            _require_project(page.response, operation, project_id)
        yield page


def _require_project(response: Response, operation: Operation, project_id: str) -> None:
    if operation.get("project_id") not in (None, project_id):
        raise response.unexpected(f"it has an operation of another project, {displayable(operation['project_id'])}")


def require_time(response: Response, operation: Operation, field: str) -> datetime:
    """The timestamp in this field of an operation in the response. Raises UnexpectedResponse if it is not readable."""
    found = timestamp_of(operation, field)
    if found is None:
        raise response.unexpected(f"the operation {operation['id']} has no readable {field}")
    return found


def newest_first(operations: Iterable[Operation], max_results: int | None = None) -> list[Operation]:
    """The operations by C(created_at), newest first, at most C(max_results) of them."""
    return sorted(operations, key=time_of_creation, reverse=True)[:max_results]


def time_of_creation(item: Mapping[str, Any], default: datetime = BEGINNING) -> datetime:
    """The C(created_at) of an operation or a resource; C(default) if it has none that is readable."""
    return timestamp_of(item, "created_at") or default


def get_operation(client: Client, project_id: str, operation_id: str) -> Operation:
    """One operation (api.md, GET /projects/{project_id}/operations/{operation_id}). Raises NotFound."""
    response = client.get("projects", project_id, "operations", operation_id)
    operation = response.object("operation", id=str, status=str)
    _require_project(response, operation, project_id)
    if operation["id"] != operation_id:
        raise response.unexpected(f"it is about another operation, {operation['id']}")
    return operation


def find_operations(client: Client, project_id: str, operation_ids: Sequence[str], workers: int) -> list[Operation]:
    """The project's operations with these ids, newest first; without those that it does not have.

    Raises NotFound for an unknown project.
    """
    ids = list(dict.fromkeys(operation_ids))
    found = in_parallel(partial(_result_or_none, partial(get_operation, client, project_id)), ids, workers)
    if ids and not any(found):
        # A wrong base_url or project_id leads to a 404 as well, so check that the project exists.
        next(operation_pages(client, project_id, page_size=1))
    return newest_first(operation for operation in found if operation)


def _result_or_none(function: Callable[[str], Value], argument: str) -> Value | None:
    try:
        return function(argument)
    except NotFound:
        return None


def poll_operations(client: Client, project_id: str, operation_ids: Sequence[str]) -> Iterator[Operation]:
    """The current state of each of these operations of one project, yielded as it is fetched.

    Several operations are read from the operation list, newest first, for as long as each page has one of them; the
    rest are fetched one by one, in the given order. An error after which other requests may succeed is raised after the
    other operations have been yielded, NotFound for an operation that does not exist before a transient one.
    """
    missing = dict.fromkeys(operation_ids)
    errors: list[StatusError] = []
    if len(missing) > 1:
        page_size = min(MAX_POLLED, max(MIN_POLLED, 2 * len(missing)))
        try:
            for page in operation_pages(client, project_id, page_size):
                found = [operation for operation in page.items if operation["id"] in missing]
                for operation in found:
                    del missing[operation["id"]]
                yield from found
                if not found or not missing:
                    break
        except StatusError as error:
            if not _allows_other_requests(error):
                raise
            errors.append(error)
    for operation_id in missing:
        try:
            yield get_operation(client, project_id, operation_id)
        except StatusError as error:
            if not (_allows_other_requests(error) or isinstance(error, NotFound)):
                raise
            errors.append(error)
    if errors:
        raise next((error for error in errors if not error.transient), errors[0])


def _allows_other_requests(error: StatusError) -> bool:
    """Whether requests for other operations may succeed at once; not if the service refuses requests for now."""
    return error.transient and error.status not in (LOCKED, 429, UNAVAILABLE)


def project_in_path(segments: Sequence[str]) -> str | None:
    """The project that the path is about (api.md, GET /projects/{project_id}/operations); None without one."""
    return segments[1] if len(segments) > 1 and segments[0] == "projects" and is_id(segments[1]) else None


def summary(operations: Sequence[Operation]) -> Summary:
    """Numbers of operations: C(total), C(by_status), C(by_action)."""
    by_status, by_action = (
        Counter(without_templates(str(operation.get(field))) for operation in operations)
        for field in ("status", "action")
    )
    return summed([{"by_status": by_status, "by_action": by_action}])


def summed(summaries: Iterable[Summary]) -> Summary:
    """The sum of these summaries."""
    by_status: Counter[str] = Counter()
    by_action: Counter[str] = Counter()
    for each in summaries:
        by_status.update(each["by_status"])
        by_action.update(each["by_action"])
    return {"total": sum(by_status.values()), "by_status": dict(by_status), "by_action": dict(by_action)}


# The operations of several projects


def map_account(
    client: Client,
    function: Callable[[str], Value],
    workers: int,
    query: Mapping[str, Any] | None,
    project_ids: Sequence[str] | None = None,
) -> tuple[list[Value], list[str], list[str]]:
    """The function's result for each of these projects, and the ids of those that are missing, with warnings about them.

    Without C(project_ids), these are all projects of the account; C(query) is sent with each request for their list.
    """
    unavailable: list[str] = []
    listed_warnings: list[str] = []
    if project_ids is None:
        found = list_projects(client, query=query, fields=Fields(["id"]))
        project_ids, unavailable = [project["id"] for project in found.items], found.unavailable_ids
        listed_warnings = found.warnings
    results, warnings = map_projects(project_ids, function, workers)
    missing = unavailable + [project_id for project_id in project_ids if project_id not in results]
    return list(results.values()), missing, listed_warnings + warnings


def map_projects(
    project_ids: Sequence[str], function: Callable[[str], Value], workers: int
) -> tuple[dict[str, Value], list[str]]:
    """The function's result by the id of each project, C(workers) of them in parallel.

    A project that is deleted meanwhile, or that the key may not read, is left out with a warning; any other error is
    raised, and so is a 403 if the key may read none.
    """
    found = dict(zip(project_ids, in_parallel(partial(_result_or_refusal, function), project_ids, workers)))
    refusals = {project_id: result for project_id, result in found.items() if isinstance(result, StatusError)}
    results = {project_id: result for project_id, result in found.items() if not isinstance(result, StatusError)}
    forbidden = [refusal for refusal in refusals.values() if refusal.status == 403]
    if forbidden and not results:
        raise forbidden[0]
    warning = (
        f"The operations of these projects are missing, because the service returned {'404 or 403' if forbidden else '404'} for them. "
        f"The projects were probably deleted while they were listed{', or the key may not read them' if forbidden else ''}: "
        f"{', '.join(refusals)}."
    )
    return results, [warning] if refusals else []


def _result_or_refusal(function: Callable[[str], Value], project_id: str) -> Value | StatusError:
    try:
        return function(project_id)
    except StatusError as error:
        if error.status not in (403, 404):
            raise
        return error
