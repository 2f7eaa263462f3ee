# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a wait knows of its operations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from .api import Operation
from .status import FAILED, PENDING, SUCCEEDED


class Target(NamedTuple):
    """One operation to wait for."""

    project_id: str
    id: str


class WaitState:
    """The last known state of each operation, in the order asked for, and what has led there.

    C(elapsed) always means seconds since the wait began. C(changes) holds one dictionary for each change of a status.
    """

    def __init__(self, targets: Iterable[Target] = ()):
        self.operations: dict[Target, Operation | None] = dict.fromkeys(targets)
        self.failed_since: dict[Target, float] = {}
        self.unknown_statuses: set[str] = set()
        self.polls = 0
        self.changes: list[dict[str, Any]] = []

    def note(self, target: Target, operation: Operation, elapsed: float) -> None:
        """Take in what a look has shown of one operation."""
        before = self.operations.get(target)
        self.operations[target] = operation
        status = operation["status"]
        if before and before["status"] != status:
            self.changes.append(
                {**operation, **target._asdict(), "previous_status": before["status"], "elapsed": round(elapsed, 3)}
            )
        if status == "failed":
            self.failed_since.setdefault(target, elapsed)
        else:
            self.failed_since.pop(target, None)
        if status not in SUCCEEDED | FAILED | PENDING:
            self.unknown_statuses.add(status)

    def has_seen_any(self) -> bool:
        """Whether any operation was looked at with success."""
        return any(self.operations.values())

    def pending(self) -> list[Target]:
        """The operations that have not ended well."""
        return [
            target
            for target, operation in self.operations.items()
            if operation is None or operation["status"] not in SUCCEEDED
        ]

    def failed(self, grace: float, elapsed: float) -> list[Target]:
        """The operations that have ended badly; one that is C(failed) counts once it has been so for C(grace) seconds."""
        bad = [target for target, operation in self.operations.items() if operation and operation["status"] in FAILED]
        return [
            target for target in bad if target not in self.failed_since or elapsed - self.failed_since[target] >= grace
        ]

    def warnings(self) -> list[str]:
        """One warning for each status that this collection does not know."""
        return [
            f"'{status}' is an operation status unknown to this collection; it is taken as still going."
            for status in sorted(self.unknown_statuses)
        ]

    def tell(self, target: Target) -> str:
        """One operation in words: action, id, project, status, failures_count and the service's error text."""
        operation = self.operations[target] or {}
        text = f"{operation.get('action', 'operation')} {target.id} of {target.project_id} is {operation.get('status', 'not known')}"
        if "failures_count" in operation:
            text += f" (failures_count {operation['failures_count']})"
        return text + (f": {operation['error']}" if operation.get("error") else "")

    def as_json(self) -> dict[str, Any]:
        """All but the changes, for a wait that another process goes on with."""
        return {
            "operations": [[*target, operation] for target, operation in self.operations.items()],
            "failed_since": [[*target, since] for target, since in self.failed_since.items()],
            "unknown_statuses": sorted(self.unknown_statuses),
            "polls": self.polls,
        }

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> WaitState:
        """What as_json() has saved."""
        state = cls()
        state.operations = {
            Target(project_id, operation_id): operation for project_id, operation_id, operation in saved["operations"]
        }
        state.failed_since = {
            Target(project_id, operation_id): since for project_id, operation_id, since in saved["failed_since"]
        }
        state.unknown_statuses = set(saved["unknown_statuses"])
        state.polls = saved["polls"]
        return state
