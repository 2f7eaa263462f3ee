# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds out the states of a project's operations with as few requests as can be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from .._errors import REFUSED_STATUSES, RequestFailed, StatusError
from .._http.client import Client
from .._timestamps import parse_timestamp
from .api import (
    PAGE_SIZE,
    Operation,
    Selection,
    get_operation,
    list_operations,
    operation_pages,
)
from .status import FAILED, SUCCEEDED

SMALLEST_PAGE = 20


def unfinished_operations(
    client: Client, project_id: str, lookback: float, failed_within: float | None = None
) -> list[Operation]:
    """The project's operations that are still going, or have ended badly within the last C(failed_within) seconds, newest first.

    Only those created within C(lookback) seconds; 0 stands for all. Both are by the service's clock.
    """
    selection = Selection(created_after=timedelta(seconds=lookback) if lookback else None)
    operations = list_operations(client, project_id, selection)
    since = None if failed_within is None else client.service_now() - timedelta(seconds=failed_within)
    return [
        operation
        for operation in operations
        if operation["status"] not in SUCCEEDED | FAILED or _has_failed_since(operation, since)
    ]


def _has_failed_since(operation: Operation, since: datetime | None) -> bool:
    try:
        return since is not None and operation["status"] in FAILED and parse_timestamp(operation["updated_at"]) >= since
    except (KeyError, ValueError, AttributeError):
        return False


def poll_operations(client: Client, project_id: str, operation_ids: Sequence[str]) -> Iterator[Operation]:
    """The present state of these operations of one project, one after the other as they are seen.

    Several are read from the operation list, newest first, as long as its pages show any of them; the rest one by
    one. Raises NotFound when one does not exist, and a transient fault once the others have been seen.
    """
    wanted = dict.fromkeys(operation_ids)
    fault: RequestFailed | None = None
    if len(wanted) > 1:
        page_size = min(PAGE_SIZE, max(SMALLEST_PAGE, 2 * len(wanted)))
        try:
            for page in operation_pages(client, project_id, page_size):
                shown = [operation for operation in page.items if operation["id"] in wanted]
                for operation in shown:
                    del wanted[operation["id"]]
                yield from shown
                if not shown or not wanted:
                    break
        except StatusError as error:
            fault = _passing(error)
    for operation_id in wanted:
        try:
            yield get_operation(client, project_id, operation_id)
        except StatusError as error:
            fault = fault or _passing(error)
    if fault:
        raise fault


def _passing(fault: StatusError) -> StatusError:
    """The fault, if the next request may do better; one that says to leave the service alone is raised."""
    if not fault.transient or fault.status in REFUSED_STATUSES:
        raise fault
    return fault
