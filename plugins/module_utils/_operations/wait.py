# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waits until operations have ended (api.md, Operations returned by other requests)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Callable, NamedTuple

from .._clock import Deadline
from .._errors import ClouddbError, RequestFailed, StatusError, UnexpectedResponse
from .._http.client import Client
from .._parallel import in_parallel
from .api import Operation
from .poll import poll_operations, unfinished_operations
from .schedule import Schedule
from .wait_state import Target, WaitState

# What the look at the deadline may take: an operation that ended during the last pause is still seen.
LAST_LOOK_SECONDS = 1.0
MAX_TOLD = 20


class Unfinished(NamedTuple):
    """All operations of a project that are unfinished at the call and were created within C(lookback) seconds (0: ever)."""

    project_id: str
    lookback: float


class Limits(NamedTuple):
    """In seconds: the deadline, the longest pause, and how long a failed operation may take to be retried by the platform."""

    timeout: float
    interval: float
    failed_grace: float
    workers: int


class Part(NamedTuple):
    """A part of a wait, by a process that then gives way to the next one, so that somebody can be told how it goes.

    It lasts C(at_least) so many seconds, ends when a status has changed, and lasts C(at_most) so many. C(elapsed) seconds
    of the wait were over when it began, and C(left) is what the part before it has left.
    """

    at_least: float
    at_most: float
    elapsed: float = 0.0
    left: dict[str, Any] | None = None


class WaitFailed(ClouddbError):
    """An operation ended badly, the deadline came, or the service ended the wait by a fault that does not pass."""

    kind = "wait_failed"


class Wait:
    """One wait for some operations."""

    def __init__(self, client: Client, wanted: Sequence[Target] | Unfinished, limits: Limits, part: Part | None = None):
        self._client = client
        self._limits = limits
        self._part = part
        self._schedule = Schedule(client.clock, limits.timeout, limits.interval)
        self._to_find = wanted if isinstance(wanted, Unfinished) else None
        self._state = WaitState(() if isinstance(wanted, Unfinished) else wanted)
        self._looked_at: dict[str, float] = {}
        self._is_refused = False
        if part and part.left:
            self._schedule = Schedule(
                client.clock, limits.timeout, limits.interval, part.elapsed, part.left["next_pause"]
            )
            self._to_find = self._to_find if part.left["to_find"] else None
            self._state = WaitState.from_json(part.left["state"])
            self._looked_at = part.left["looked_at"]

    def until_ended(self) -> dict[str, Any]:
        """Look again and again until all operations have ended well; the result of the task.

        Transient faults are ridden out until the deadline. Raises WaitFailed, which carries the last known states. A
        part of a wait may end earlier; its result then holds C(_left) for the next part.
        """
        # Looking again is the retry here, so that the deadline holds whatever api_retries says.
        remaining = self._limits.timeout + LAST_LOOK_SECONDS - self._schedule.elapsed()
        self._client = self._client.until(Deadline.after(self._client.clock, remaining))
        while self._is_going():
            faults = self._look()
            if not self._is_going():
                break
            is_over = self._part_is_over()
            asked_for = max((fault.retry_after or 0.0 for fault in faults), default=0.0)
            # The next part looks at once, so a pause that the service asks for belongs to this one.
            if (asked_for or not is_over) and not self._schedule.pause(asked_for):
                raise self._timed_out(faults)
            if is_over:
                return {**self.result(), "_left": self._left()}
        return self.result()

    def once(self) -> dict[str, Any]:
        """Look a single time; the result of the task. Raises WaitFailed when an operation has ended badly."""
        if self._is_going():
            for fault in self._look():
                raise self._ended_by(fault)
        return self.result()

    def result(self) -> dict[str, Any]:
        """C(operations) (last known states, in the order asked for), C(elapsed) seconds, C(polls) and C(warnings).

        That of a part also holds C(_changes), the changes of statuses that it has seen.
        """
        known = self._state.operations
        return {
            "operations": [operation or {**target._asdict(), "status": None} for target, operation in known.items()],
            "elapsed": round(self._schedule.elapsed(), 3),
            "polls": self._state.polls,
            "warnings": self._state.warnings(),
            **({"_changes": self._state.changes} if self._part else {}),
        }

    def _part_is_over(self) -> bool:
        if self._part is None:
            return False
        lasted = self._schedule.elapsed() - self._part.elapsed
        return lasted >= (self._part.at_least if self._state.changes else self._part.at_most)

    def _left(self) -> dict[str, Any]:
        return {
            "state": self._state.as_json(),
            "next_pause": self._schedule.next_pause,
            "to_find": self._to_find is not None,
            "looked_at": self._looked_at,
        }

    def _is_going(self) -> bool:
        return self._to_find is not None or bool(self._state.pending())

    def _look(self) -> list[RequestFailed]:
        """One look at all that is pending; the transient faults met. Raises WaitFailed."""
        self._state.polls += 1
        self._is_refused = False
        pending: dict[str, list[str]] = {}
        for target in self._state.pending():
            pending.setdefault(target.project_id, []).append(target.id)
        # A look that was cut short is gone on with where it stopped.
        in_turn = sorted(pending, key=lambda project_id: self._looked_at.get(project_id, -1.0))
        looks: list[Callable[[], None]] = [
            partial(self._look_at, project_id, pending[project_id]) for project_id in in_turn
        ]
        try:
            outcomes = in_parallel(self._fault_of, [self._find] if self._to_find else looks, self._limits.workers)
        except RequestFailed as fault:
            raise self._ended_by(fault) from fault
        failed = self._failed(self._limits.failed_grace)
        if failed:
            raise self._failure(f"{self._count(failed)} failed", failed, failed)
        return [fault for fault in outcomes if fault]

    def _fault_of(self, look: Callable[[], None]) -> RequestFailed | None:
        """The fault that kept this look from ending, if it may pass; others are raised."""
        if self._is_refused:
            return None
        try:
            look()
        except RequestFailed as fault:
            # The rate limit is the whole account's, so what is left of this look would be refused as well.
            self._is_refused = self._is_refused or (isinstance(fault, StatusError) and fault.status == 429)
            # A service that was understood before and is not now may be having a bad moment behind some gateway.
            if fault.transient or (isinstance(fault, UnexpectedResponse) and self._state.has_seen_any()):
                return fault
            raise
        return None

    def _find(self) -> None:
        if self._to_find:
            project_id = self._to_find.project_id
            # After a fault, the call was a while ago: what has failed since then was unfinished at the call.
            since_call = self._schedule.elapsed() if self._state.polls > 1 else None
            for operation in unfinished_operations(self._client, project_id, self._to_find.lookback, since_call):
                self._note(project_id, operation)
            self._to_find = None

    def _look_at(self, project_id: str, operation_ids: Sequence[str]) -> None:
        for operation in poll_operations(self._client, project_id, operation_ids):
            self._note(project_id, operation)
        self._looked_at[project_id] = self._schedule.elapsed()

    def _note(self, project_id: str, operation: Operation) -> None:
        self._state.note(Target(project_id, operation["id"]), operation, self._schedule.elapsed())

    def _failed(self, grace: float) -> list[Target]:
        return self._state.failed(grace, self._schedule.elapsed())

    def _timed_out(self, faults: Sequence[RequestFailed]) -> WaitFailed:
        pending = self._state.pending()
        problem = f"timed out after {self._limits.timeout:g} s: {self._count(pending)} unfinished"
        if self._to_find:
            problem = f"timed out after {self._limits.timeout:g} s: the unfinished operations of {self._to_find.project_id} could not be listed"
        return self._failure(
            problem, pending, self._failed(grace=0), next(iter(faults), None), "; the last answer was a fault"
        )

    def _ended_by(self, fault: RequestFailed) -> WaitFailed:
        return self._failure("the wait was ended by a fault", (), self._failed(self._limits.failed_grace), fault)

    def _failure(
        self,
        problem: str,
        told: Sequence[Target],
        failed: Sequence[Target],
        fault: RequestFailed | None = None,
        introduction: str = "",
    ) -> WaitFailed:
        sentences = [self._state.tell(target) for target in told[:MAX_TOLD]]
        if len(told) > MAX_TOLD:
            sentences.append(f"and {len(told) - MAX_TOLD} more (see operations)")
        message = (
            problem + (": " + "; ".join(sentences) if sentences else "") + (f"{introduction}: {fault}" if fault else "")
        )
        pending = [target for target in self._state.pending() if target not in failed]
        ids = {"failed_ids": [target.id for target in failed], "pending_ids": [target.id for target in pending]}
        error = WaitFailed(message, fault.details if fault else {}, {**self.result(), **ids})
        if fault:
            error.kind = fault.kind
        return error

    def _count(self, some: Sequence[Target]) -> str:
        total = len(self._state.operations)
        return f"{len(some)} of {total} operation{'s' if total != 1 else ''}"
