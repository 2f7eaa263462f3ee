# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What has changed about a project's operations since they were last polled. Keeps P1 and P2.

The operation list is newest first. The operations that have been seen reach down from the newest without a gap, so a poll
reads pages until it meets one of them. Changes are therefore reported and remembered oldest first.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from ...module_utils._errors import NotFound
from ...module_utils._http.client import Client
from ...module_utils._operations.api import Operation, get_operation, operation_pages
from ...module_utils._operations.status import FAILED, SUCCEEDED
from ...module_utils._timestamps import BEGINNING, parse_timestamp
from ...module_utils._untrusted import is_id

PAGE_SIZE = 50
# How many ended operations of a project are remembered.
MAX_REMEMBERED = 2 * PAGE_SIZE
# How far back the first poll searches for unfinished operations.
LOOKBACK = timedelta(days=1)
# Up to this many unfinished operations are fetched one by one, rather than by reading more pages.
MAX_SINGLE_FETCHES = 2


class SeenOperation(NamedTuple):
    """What is remembered of an operation."""

    status: str
    action: str
    created_at: str


class Change(NamedTuple):
    """An operation with a new status; C(previous_status) is None for an operation that is new itself."""

    operation: Operation
    previous_status: str | None


class PollResult(NamedTuple):
    """The operations that a poll has read, oldest first, and the ids of seen ones that the service no longer has.

    When there may be older operations in the list, C(unread_before) is the creation of the oldest one read from it.
    """

    operations: list[Operation]
    missing_ids: list[str]
    unread_before: datetime | None


class SeenOperations:
    """What is remembered of one project's operations.

    Until the first poll is complete, operations created since C(new_since) are new. Afterwards C(new_since) is None, and every
    operation that is not remembered is new, except those created no later than C(forgotten_until), which were not read by the
    first poll or are forgotten.
    """

    def __init__(self, new_since: datetime | None):
        self.new_since = new_since
        self.forgotten_until: datetime | None = None
        self.remembered: dict[str, SeenOperation] = {}

    def unfinished(self, actions: Collection[str]) -> list[str]:
        """The ids of the unfinished operations, with one of these actions if there are any."""
        return [
            operation_id
            for operation_id, seen in self.remembered.items()
            if seen.status not in SUCCEEDED | FAILED and (not actions or seen.action in actions)
        ]

    def remember_past(self, result: PollResult) -> None:
        """In the first poll, remember the operations that are not new, of which nothing is reported."""
        if self.new_since:
            for operation in result.operations:
                if operation["id"] not in self.remembered and self._is_past(operation):
                    self.remember(operation)

    def changes(self, result: PollResult) -> list[Change]:
        """The changes that a poll has found, oldest first. Call remember() for each in this order, after it was reported."""
        changes = []
        for operation in result.operations:
            seen = self.remembered.get(operation["id"])
            if seen is None:
                if not self._is_past(operation):
                    changes.append(Change(operation, None))
            elif seen.status != operation["status"]:
                changes.append(Change(operation, seen.status))
        return changes

    def remember(self, operation: Mapping[str, Any]) -> None:
        """Remember the operation's status."""
        seen = SeenOperation(operation["status"], str(operation.get("action")), operation["created_at"])
        self.remembered[operation["id"]] = seen

    def revert(self, change: Change) -> None:
        """Undo remember() for the latest change, so that the next poll finds it again."""
        if change.previous_status is None:
            self.remembered.pop(change.operation["id"], None)
        else:
            self.remember({**change.operation, "status": change.previous_status})

    def complete(self, result: PollResult) -> bool:
        """End a poll after its changes were remembered. Returns whether what is remembered has changed."""
        is_first = self.new_since is not None
        if is_first:
            self.new_since, self.forgotten_until = None, result.unread_before
        for operation_id in result.missing_ids:
            del self.remembered[operation_id]
        ended = [operation_id for operation_id, seen in self.remembered.items() if seen.status in SUCCEEDED | FAILED]
        for operation_id in ended[:-MAX_REMEMBERED]:
            created_at = parse_timestamp(self.remembered.pop(operation_id).created_at)
            self.forgotten_until = max(created_at, self.forgotten_until or created_at)
        return is_first or bool(result.missing_ids) or len(ended) > MAX_REMEMBERED

    def is_reached(self, operation: Operation) -> bool:
        """Whether every older operation has been seen before, or is too old."""
        if self.new_since:
            return parse_timestamp(operation["created_at"]) < self.new_since - LOOKBACK
        return operation["id"] in self.remembered or self._is_past(operation)

    def _is_past(self, operation: Operation) -> bool:
        created_at = parse_timestamp(operation["created_at"])
        if self.new_since:
            return created_at < self.new_since
        return self.forgotten_until is not None and created_at <= self.forgotten_until

    def as_json(self) -> dict[str, Any]:
        return {
            "new_since": self.new_since and self.new_since.isoformat(),
            "forgotten_until": self.forgotten_until and self.forgotten_until.isoformat(),
            "operations": [[operation_id, *seen] for operation_id, seen in self.remembered.items()],
        }

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> SeenOperations:
        """The inverse of as_json(). Raises KeyError, TypeError, ValueError or AttributeError for anything else."""
        seen = cls(saved["new_since"] and saved_beginning(saved["new_since"]))
        seen.forgotten_until = saved["forgotten_until"] and parse_timestamp(saved["forgotten_until"])
        for operation_id, status, action, created_at in saved["operations"]:
            parse_timestamp(created_at)
            if not is_id(operation_id) or not isinstance(status, str) or not isinstance(action, str):
                raise ValueError
            seen.remembered[operation_id] = SeenOperation(status, action, created_at)
        return seen


def saved_beginning(saved: str) -> datetime:
    """A saved time since when operations are new, from which LOOKBACK can be subtracted. Raises what from_json() raises."""
    beginning = parse_timestamp(saved)
    if beginning - BEGINNING < LOOKBACK:
        raise ValueError
    return beginning


def read_operations(client: Client, project_id: str, seen: SeenOperations, actions: Collection[str]) -> PollResult:
    """Read the operation list as far as it may hold something new, and the unfinished operations beyond; changes nothing.

    Raises NotFound when there is no such project, and what Client raises.
    """
    missing = set(seen.unfinished(actions))
    found: dict[str, Operation] = {}
    unread_before: datetime | None = None
    for page in operation_pages(client, project_id, PAGE_SIZE):
        for operation in page.items:
            try:
                parse_timestamp(page.response.require(operation, created_at=str)["created_at"])
            except ValueError as error:
                raise page.response.unexpected(f"the operation {operation['id']} has no readable created_at") from error
        listed = {operation["id"]: operation for operation in page.items}
        found.update(listed)
        needs_next_page = len(missing) > MAX_SINGLE_FETCHES and not missing.isdisjoint(listed)
        missing.difference_update(listed)
        if any(seen.is_reached(operation) for operation in page.items) and not (missing and needs_next_page):
            unread_before = parse_timestamp(page.items[-1]["created_at"])
            break
    missing_ids = []
    for operation_id in sorted(missing):
        try:
            fetched = get_operation(client, project_id, operation_id)
            # The time that is known to be readable.
            found[operation_id] = {**fetched, "created_at": seen.remembered[operation_id].created_at}
        except NotFound:
            missing_ids.append(operation_id)
    return PollResult(list(reversed(found.values())), missing_ids, unread_before)
