# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What has changed about a project's operations since the last look at them.

The operation list is newest first. What is known of it always reaches down from somewhere without a gap, so a look reads
pages until it meets something known. That is why changes are to be told, and noted, oldest first.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from ...module_utils._errors import NotFound
from ...module_utils._http.client import Client
from ...module_utils._operations.api import Operation, get_operation, operation_pages
from ...module_utils._operations.status import FAILED, SUCCEEDED
from ...module_utils._timestamps import parse_timestamp

PAGE_SIZE = 50
# How many ended operations of a project are remembered.
MAX_REMEMBERED = 2 * PAGE_SIZE
# How far before its beginning the first look searches for operations that are still going.
LOOKBACK = timedelta(days=1)
# With so few operations left to look for, they are fetched one by one instead of reading on.
FEW = 2


class Known(NamedTuple):
    """What is remembered of an operation."""

    status: str
    action: str
    created_at: str


class Change(NamedTuple):
    """An operation with a new status; C(previous_status) is None for an operation that is new itself."""

    operation: Operation
    previous_status: str | None


class Look(NamedTuple):
    """The operations that a look has shown, oldest first, and the ids of known ones that are gone.

    C(left_out) is the creation of the oldest one read from the list, when there may be older ones.
    """

    operations: list[Operation]
    gone: list[str]
    left_out: datetime | None


class SeenOperations:
    """What is known of one project's operations.

    Until the first look is told, C(since) says which operations are new; those created before it are noted in silence.
    Afterwards every unknown operation is new, but for those created no later than C(floor), which were left out or forgotten.
    """

    def __init__(self, since: datetime | None):
        self.since = since
        self.floor: datetime | None = None
        self.known: dict[str, Known] = {}

    def followed(self, actions: Collection[str]) -> list[str]:
        """The ids of the unfinished operations, with one of these actions if there are any."""
        return [
            name
            for name, known in self.known.items()
            if known.status not in SUCCEEDED | FAILED and (not actions or known.action in actions)
        ]

    def changes(self, look: Look) -> list[Change]:
        """What the look has shown, oldest first; each change is to be noted once it is told, in this order."""
        changes = []
        for operation in look.operations:
            known = self.known.get(operation["id"])
            if known is None and self._is_past(operation):
                if self.since:
                    self.note(operation)
            elif known is None or known.status != operation["status"]:
                changes.append(Change(operation, known.status if known else None))
        return changes

    def note(self, operation: Mapping[str, Any]) -> None:
        """Remember the operation's status."""
        self.known[operation["id"]] = Known(operation["status"], str(operation.get("action")), operation["created_at"])

    def all_told(self, look: Look) -> None:
        """Everything that the look has shown is noted; forget what is no longer needed."""
        if self.since:
            self.since, self.floor = None, look.left_out
        for name in look.gone:
            del self.known[name]
        ended = [name for name, known in self.known.items() if known.status in SUCCEEDED | FAILED]
        for name in ended[:-MAX_REMEMBERED]:
            created_at = parse_timestamp(self.known.pop(name).created_at)
            self.floor = max(created_at, self.floor or created_at)

    def is_reached(self, operation: Operation) -> bool:
        """Whether everything older than this operation has been seen before, or is too old."""
        if self.since:
            return parse_timestamp(operation["created_at"]) < self.since - LOOKBACK
        return operation["id"] in self.known or self._is_past(operation)

    def _is_past(self, operation: Operation) -> bool:
        created_at = parse_timestamp(operation["created_at"])
        if self.since:
            return created_at < self.since
        return self.floor is not None and created_at <= self.floor

    def as_json(self) -> dict[str, Any]:
        return {
            "since": self.since and self.since.isoformat(),
            "floor": self.floor and self.floor.isoformat(),
            "known": [[name, *known] for name, known in self.known.items()],
        }

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> SeenOperations:
        """What as_json() has saved."""
        memory = cls(parse_timestamp(saved["since"]) if saved["since"] else None)
        memory.floor = parse_timestamp(saved["floor"]) if saved["floor"] else None
        memory.known = {name: Known(status, action, created_at) for name, status, action, created_at in saved["known"]}
        return memory


def poll_changes(client: Client, project_id: str, memory: SeenOperations, actions: Collection[str]) -> Look:
    """Read the operation list as far as there may be something new, and the followed operations beyond it; changes nothing.

    Raises NotFound when there is no such project, and what Client raises.
    """
    missing = set(memory.followed(actions))
    found: dict[str, Operation] = {}
    left_out: datetime | None = None
    for page in operation_pages(client, project_id, PAGE_SIZE):
        for operation in page.items:
            try:
                parse_timestamp(page.response.require(operation, created_at=str)["created_at"])
            except ValueError as error:
                raise page.response.unexpected(f"the operation {operation['id']} has no readable created_at") from error
        shown = {operation["id"]: operation for operation in page.items}
        found.update(shown)
        is_helpful = len(missing) > FEW and not missing.isdisjoint(shown)
        missing.difference_update(shown)
        if any(memory.is_reached(operation) for operation in page.items) and not (missing and is_helpful):
            left_out = parse_timestamp(page.items[-1]["created_at"])
            break
    gone = []
    for name in sorted(missing):
        try:
            found[name] = get_operation(client, project_id, name)
        except NotFound:
            gone.append(name)
    return Look(list(reversed(found.values())), gone, left_out)
