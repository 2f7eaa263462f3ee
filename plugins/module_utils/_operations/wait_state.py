# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state of a wait. Keeps P3, P4 and P10."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from .._clock import Clock
from .._untrusted import displayable
from .operations import Operation
from .status import ENDED, FAILED, STATUSES, SUCCEEDED

# After a response has named an operation, the service may return 404 for it for so long.
MAX_SECONDS_UNKNOWN = 10.0


class OperationRef(NamedTuple):
    """Identifies one operation."""

    project_id: str
    id: str


class UnfinishedOperations(NamedTuple):
    """All operations of a project that are unfinished when they are listed and were created within C(lookback) seconds (0: ever)."""

    project_id: str
    lookback: float


class WaitState:
    """All that a wait knows and that changes while it lasts. Times are seconds since the wait began.

    - C(operations): the last known state of each operation, in the order asked for; None until it has been polled.
    - C(unlisted): the unfinished operations that have still to be listed; None once they have been.
    - C(failed_since): when an operation was first seen C(failed).
    - C(accepts_failure): whether the wait is over, and has succeeded, once no operation is unfinished.
    - C(recorded_at): when the state of an operation was last polled.
    - C(polls), C(next_poll_at): number of polls so far, and when the next one is due.
    """

    def __init__(
        self,
        clock: Clock,
        timeout: float,
        operations: Iterable[OperationRef] = (),
        unlisted: UnfinishedOperations | None = None,
        accepts_failure: bool = False,
    ):
        self.timeout = timeout
        self.accepts_failure = accepts_failure
        self.operations: dict[OperationRef, Operation | None] = dict.fromkeys(operations)
        self.unlisted = unlisted
        self.failed_since: dict[OperationRef, float] = {}
        self.recorded_at: dict[OperationRef, float] = {}
        self.unknown_statuses: set[str] = set()
        self.polls = 0
        self.next_poll_at = 0.0
        self._changes: list[dict[str, Any]] = []
        self._clock = clock
        self._started = clock.monotonic()

    def elapsed(self) -> float:
        """Seconds since the wait began."""
        return self._clock.monotonic() - self._started

    def remaining(self) -> float:
        """Seconds until the deadline; 0 once it has passed."""
        return max(0.0, self.timeout - self.elapsed())

    def record(self, ref: OperationRef, operation: Operation) -> None:
        """Store the state of an operation that a poll has returned."""
        previous = self.operations.get(ref)
        status, elapsed = operation["status"], self.elapsed()
        self.operations[ref] = operation
        self.recorded_at[ref] = elapsed
        if previous and previous["status"] != status:
            self._changes.append({**operation, **ref._asdict(), "previous_status": previous["status"]})
        if status == "failed":
            self.failed_since.setdefault(ref, elapsed)
        else:
            self.failed_since.pop(ref, None)
        if status not in STATUSES:
            self.unknown_statuses.add(status)

    def new_changes(self) -> list[dict[str, Any]]:
        """The status changes since the last call, each the operation with C(previous_status)."""
        changes, self._changes = self._changes, []
        return changes

    def expect(self, operation: Operation) -> None:
        """Wait for an operation that a response has named; it has not been polled."""
        ref = OperationRef(operation["project_id"], operation["id"])
        self.record(ref, operation)
        del self.recorded_at[ref]

    def may_be_unknown(self, path: str) -> bool:
        """Whether a 404 for C(path) may pass: what it is about was named a moment ago, and no poll has found it yet."""
        # Not recorded_at itself, which grows while other threads poll.
        was_found = any(ref in self.recorded_at and path.endswith(f"/{ref.id}") for ref in self.operations)
        return self.unlisted is None and not was_found and self.elapsed() < MAX_SECONDS_UNKNOWN

    def has_succeeded(self) -> bool:
        """Whether the wait is over, and has succeeded: all operations are known, and none is awaited any more."""
        return self.unlisted is None and not self.awaited()

    def awaited(self) -> list[OperationRef]:
        """The operations that are unfinished, not polled yet, or failed if that is not accepted."""
        ended = ENDED if self.accepts_failure else SUCCEEDED
        return [
            ref for ref, operation in self.operations.items() if operation is None or operation["status"] not in ended
        ]

    def failed(self, grace: float) -> list[OperationRef]:
        """The operations that count as failed; for one in C(failed), after C(grace) seconds in that status."""
        return [
            ref
            for ref, operation in self.operations.items()
            if operation
            and not self.accepts_failure
            and operation["status"] in FAILED
            and (ref not in self.failed_since or self.elapsed() - self.failed_since[ref] >= grace)
        ]

    def to_poll(self) -> list[tuple[str, list[str]]]:
        """The ids of the operations to poll, by project; those that were recorded longest ago, or never, come first."""
        ids: dict[str, list[str]] = {}
        for ref in sorted(self.awaited(), key=lambda ref: self.recorded_at.get(ref, -1.0)):
            ids.setdefault(ref.project_id, []).append(ref.id)
        return list(ids.items())

    def result(self) -> dict[str, Any]:
        """The task's result: C(operations), C(elapsed), C(polls) and C(warnings)."""
        return {
            "operations": [
                operation or {**ref._asdict(), "status": None} for ref, operation in self.operations.items()
            ],
            "elapsed": round(self.elapsed(), 3),
            "polls": self.polls,
            "warnings": [
                f"The operation status '{displayable(status, 100)}' is unknown to this collection. It is treated as unfinished."
                for status in sorted(self.unknown_statuses)
            ],
        }
