# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fetches the states of a project's operations with few requests. Keeps P1 and P4."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .._http.client import Client
from .._http.errors import NotFound, StatusError
from .._http.message import LOCKED, UNAVAILABLE
from .operations import PAGE_SIZE, Operation, get_operation, operation_pages

MIN_PAGE_SIZE = 20


def poll_operations(client: Client, project_id: str, operation_ids: Sequence[str]) -> Iterator[Operation]:
    """The current state of each of these operations of one project, yielded as it is fetched.

    Several operations are read from the operation list, newest first, for as long as each page has one of them; the
    rest are fetched one by one, in the given order. An error after which other requests may succeed is raised after the
    other operations have been yielded, NotFound for an operation that does not exist before a transient one.
    """
    missing = dict.fromkeys(operation_ids)
    errors: list[StatusError] = []
    if len(missing) > 1:
        page_size = min(PAGE_SIZE, max(MIN_PAGE_SIZE, 2 * len(missing)))
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
