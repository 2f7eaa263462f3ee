# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What has changed about a project's operations since they were last polled. Keeps P1 and P2.

The operation list is newest first. The operations that have been seen reach down from the newest without a gap, so a poll
reads pages until it meets one of them. Changes are therefore reported and remembered oldest first.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from ...module_utils._http.client import Client
from ...module_utils._http.errors import NotFound
from ...module_utils._operations.operations import Operation, get_operation, operation_pages, require_time
from ...module_utils._operations.status import ENDED, STATUSES
from ...module_utils._timestamps import parse_timestamp, timestamp_of

PAGE_SIZE = 50
# How many ended operations of a project are remembered.
MAX_REMEMBERED = 2 * PAGE_SIZE
# How many operations of a project with a status that is unknown today are taken for unfinished.
MAX_UNKNOWN = 10
# For how many seconds in a row the service must lack an operation that it had. One replica may lag behind.
MISSING_SECONDS = 5.0
# How far back the first poll searches for unfinished operations.
LOOKBACK = timedelta(days=1)
# What rules may show of a project before it is listed again, and what shows whether it has changed since.
SAVED_FIELDS = ("name", "updated_at")


class SeenOperation(NamedTuple):
    """What is remembered of an operation: its status, and C(number), which differs for each change that led to it.

    When C(updated_at) is known, a status that is older comes from a replica that lags behind.
    """

    status: str
    created_at: str
    number: int = 0
    updated_at: str | None = None


class Change(NamedTuple):
    """An operation with a new status, and what was remembered of it; C(previous) is None for an operation that is new itself."""

    operation: Operation
    previous: SeenOperation | None

    @property
    def number(self) -> int:
        """Differs for each change of the operation, and is the same if a change is found again after a crash."""
        return self.previous.number + 1 if self.previous else 0


class OperationPoll(NamedTuple):
    """The operations that a poll has read, oldest first, and the ids of seen ones that the service no longer has.

    When there may be older operations in the list, C(unread_before) is the creation of the oldest one read from it.
    """

    operations: list[Operation]
    missing_ids: list[str]
    unread_before: datetime | None


class FollowedProject:
    """A project as the service last listed it, and what is remembered of its operations.

    Until the first poll is complete, operations created since C(new_since) are new. From then on it is None, and an operation is
    new if it is not remembered and was created after C(forgotten_until): older ones are forgotten, or were never read.
    """

    def __init__(self, project: dict[str, Any], new_since: datetime | None):
        self.project = project
        # How many complete lists in a row lack it.
        self.missing_lists = 0
        self.new_since = new_since
        self.forgotten_until: datetime | None = None
        self.remembered: dict[str, SeenOperation] = {}
        # Since when the service lacks operations, by the monotonic clock.
        self._missing_since: dict[str, float] = {}
        self._is_updated = False

    def update(self, project: dict[str, Any] | None) -> bool:
        """Update it from a complete list; None if the list lacks it. Returns whether its operations are likely to have changed."""
        if project is None:
            self.missing_lists += 1
            return True
        before, was_updated = self.project.get("updated_at"), self._is_updated
        self.project, self.missing_lists = project, 0
        self._is_updated = before not in (None, project.get("updated_at"))
        # A field that changes from list to list says nothing.
        return self._is_updated and not was_updated

    def unfinished(self) -> list[str]:
        """The ids of the unfinished operations. An unknown status may be a final one, so only the latest of them count."""
        unknown = [each for each, seen in self.remembered.items() if seen.status not in STATUSES]
        ended = {*unknown[:-MAX_UNKNOWN]}
        return [each for each, seen in self.remembered.items() if seen.status not in ENDED and each not in ended]

    def changes(self, result: OperationPoll) -> list[Change]:
        """The changes that a poll has found, oldest first. Call remember() for each in this order, after it was reported.

        In the first poll, operations that are not new are remembered here, and nothing is reported of them.
        """
        changes = []
        for operation in result.operations:
            seen = self.remembered.get(operation["id"])
            if seen is None and self._is_past(operation):
                if self.new_since:
                    # If it changes without a state file, another run may have seen this change as the first one, too.
                    updated_at = timestamp_of(operation, "updated_at")
                    self.remember(operation, int(updated_at.timestamp()) if updated_at else 0)
            elif seen is None or (seen.status != operation["status"] and not _is_stale(operation, seen)):
                changes.append(Change(operation, seen))
        return changes

    def remember(self, operation: Mapping[str, Any], number: int = 0) -> None:
        """Remember the operation's status, to which the change with this number led."""
        updated_at = operation["updated_at"] if timestamp_of({**operation}, "updated_at") else None
        seen = SeenOperation(operation["status"], operation["created_at"], number, updated_at)
        self.remembered[operation["id"]] = seen

    def revert(self, change: Change) -> None:
        """Undo remember() for the latest change, so that the next poll finds it again."""
        if change.previous is None:
            self.remembered.pop(change.operation["id"], None)
        else:
            self.remembered[change.operation["id"]] = change.previous

    def complete(self, result: OperationPoll, now: float) -> bool:
        """End a poll after its changes were remembered. Returns whether what is remembered has changed.

        C(now) is by the monotonic clock. An operation that the service lacks is forgotten once it has lacked it for MISSING_SECONDS.
        """
        is_first = self.new_since is not None
        if is_first:
            self.new_since, self.forgotten_until = None, result.unread_before
        self._missing_since = {each: self._missing_since.get(each, now) for each in result.missing_ids}
        gone = [each for each, since in self._missing_since.items() if now - since >= MISSING_SECONDS]
        for operation_id in gone:
            del self.remembered[operation_id], self._missing_since[operation_id]
        unfinished = {*self.unfinished()}
        ended = [operation_id for operation_id in self.remembered if operation_id not in unfinished]
        oldest = ended[:-MAX_REMEMBERED]
        for operation_id in oldest:
            created_at = parse_timestamp(self.remembered.pop(operation_id).created_at)
            self.forgotten_until = max(created_at, self.forgotten_until or created_at)
        return is_first or bool(gone or oldest)

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
            "project": {field: self.project[field] for field in SAVED_FIELDS if field in self.project},
            "new_since": self.new_since and self.new_since.isoformat(),
            "forgotten_until": self.forgotten_until and self.forgotten_until.isoformat(),
            "operations": [[operation_id, *seen] for operation_id, seen in self.remembered.items()],
        }

    @classmethod
    def from_json(cls, project_id: str, saved: Mapping[str, Any]) -> FollowedProject:
        """The inverse of as_json(). Raises KeyError, TypeError, ValueError or AttributeError for anything else."""
        new_since, forgotten_until = (
            saved[field] and parse_timestamp(saved[field]) for field in ("new_since", "forgotten_until")
        )
        followed = cls({**saved["project"], "id": project_id}, new_since)
        followed.forgotten_until = forgotten_until
        followed.remembered = {each: SeenOperation(*seen) for each, *seen in saved["operations"]}
        return followed


def _is_stale(operation: Operation, seen: SeenOperation) -> bool:
    """Whether the operation is older than what was seen of it."""
    updated_at = timestamp_of(operation, "updated_at")
    return bool(updated_at and seen.updated_at and updated_at < parse_timestamp(seen.updated_at))


def read_operations(client: Client, followed: FollowedProject) -> OperationPoll:
    """Read the operation list as far as it may hold something new, and the unfinished operations beyond; changes nothing.

    Raises NotFound when there is no such project, and what Client raises.
    """
    project_id = followed.project["id"]
    found: dict[str, Operation] = {}
    unread_before: datetime | None = None
    for page in operation_pages(client, project_id, PAGE_SIZE):
        for operation in page.items:
            require_time(page.response, operation, "created_at")
            found[operation["id"]] = operation
        if any(map(followed.is_reached, page.items)):
            unread_before = parse_timestamp(page.items[-1]["created_at"])
            break
    missing_ids = []
    oldest_unknown = client.service_now() - LOOKBACK
    for operation_id in sorted({*followed.unfinished()} - {*found}):
        seen = followed.remembered[operation_id]
        if seen.status not in STATUSES and parse_timestamp(seen.created_at) < oldest_unknown:
            continue
        try:
            fetched = get_operation(client, project_id, operation_id)
            # The time that is known to be readable.
            found[operation_id] = {**fetched, "created_at": seen.created_at}
        except NotFound:
            missing_ids.append(operation_id)
    return OperationPoll(list(reversed(found.values())), missing_ids, unread_before)
