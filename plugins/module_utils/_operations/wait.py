# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waits until operations have succeeded (api.md, Operations returned by other requests). Keeps P1, P3, P4, P10 and P11."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, Callable, NamedTuple

from .._clock import Deadline
from .._errors import ClouddbError, sentence
from .._http.client import Client
from .._http.errors import NotFound, RequestFailed, StatusError, UnexpectedResponse
from .._parallel import in_parallel
from .._timestamps import duration
from .._untrusted import displayable
from .operations import LOOKBACK, Operation, OperationRef, Selection, poll_operations, selected_pages
from .progress import Progress
from .status import ENDED, FAILED, STATUSES, SUCCEEDED

# Most operations take about a second, and each poll counts against the account's rate limit.
FIRST_POLL_INTERVAL = 0.4
POLL_INTERVAL_GROWTH = 1.25
# How long after the deadline the last poll may end, so that it still sees what finished since the poll before.
LAST_POLL_SECONDS = 1.0

# After a response has named an operation, the service may return 404 for it for so long.
MAX_SECONDS_UNKNOWN = 10.0
# How many operations an error describes.
MAX_DESCRIBED = 20

# The one place of types and defaults; the argument specs are made of it.
WAIT_OPTIONS: dict[str, dict[str, Any]] = {
    "timeout": {"type": "raw", "default": 300},
    "interval": {"type": "raw", "default": 5},
    "failed_grace": {"type": "raw", "default": 0},
    "progress": {"type": "bool"},
}


class WaitOptions(NamedTuple):
    """C(timeout): seconds until the deadline. C(interval): maximum seconds between polls. C(failed_grace): seconds that a failed
    operation has to be retried by the platform. C(workers): projects polled in parallel."""

    timeout: float
    interval: float
    failed_grace: float
    workers: int = 1


def wait_options(params: Mapping[str, Any], workers: int = 1) -> WaitOptions:
    """The checked options of a wait that polls this number of projects in parallel. Raises InvalidOption."""
    return WaitOptions(
        duration(params, "timeout"), duration(params, "interval", zero=False), duration(params, "failed_grace"), workers
    )


def poll_interval(polls: int, longest: float) -> float:
    """Seconds between the last of this number of polls and the next one: short at first, growing to C(longest)."""
    # The exponent is bounded because a float overflows; by then every interval is the longest.
    return min(FIRST_POLL_INTERVAL * POLL_INTERVAL_GROWTH ** min(polls, 60), longest)


class WaitFailed(ClouddbError):
    """Operations failed, the deadline passed, or an error aborted the wait. C(result) holds the last known states."""


class Wait:
    """A wait for operations: polls them, and knows what the service has returned. Times are seconds since the wait began.

    - C(operations): the last known state of each operation, in the order asked for; None until it has been polled.
    - C(unlisted): the project whose unfinished operations have still to be listed, those that were created within C(lookback)
      seconds (0: ever); None once they have been.
    - C(accepts_failure): whether the wait is over, and has succeeded, once no operation is unfinished.
    - C(timeout): until its deadline. A task may wait several times, so that it is less than that of C(options).
    - C(polls), C(_next_poll_at): number of polls so far, and when the next one is due.
    - C(_failed_since): when an operation was first seen C(failed). C(_recorded_at): when its state was last polled.
    """

    def __init__(
        self,
        client: Client,
        options: WaitOptions,
        timeout: float | None = None,
        accepts_failure: bool = False,
        progress: Progress | None = None,
    ) -> None:
        self._options, self._clock = options, client.clock
        self._started = client.clock.monotonic()
        self.timeout = options.timeout if timeout is None else timeout
        self.accepts_failure = accepts_failure
        self.operations: dict[OperationRef, Operation | None] = {}
        self.unlisted: str | None = None
        self.lookback = LOOKBACK.total_seconds()
        self.polls = 0
        self._next_poll_at = 0.0
        self._failed_since: dict[OperationRef, float] = {}
        self._recorded_at: dict[OperationRef, float] = {}
        self._unknown_statuses: set[str] = set()
        self._changes: list[dict[str, Any]] = []
        self._progress = progress or Progress(client.clock)
        deadline = Deadline.after(client.clock, self.timeout + LAST_POLL_SECONDS)
        # The next poll is the retry, whatever api_retries says, so that the deadline holds.
        self._client = client.with_deadline(deadline)
        self._retrying_client = client.with_deadline(deadline, retries=True)

    def run(self) -> dict[str, Any]:
        """Poll until all operations have succeeded; the task's result. Raises WaitFailed."""
        while not self.has_succeeded():
            pause = self._next_poll_at - self.elapsed()
            if pause > 0:
                self._clock.sleep(pause)
            errors = self._poll(self._client)
            if not self.has_succeeded() and max(self._next_poll_at, self.elapsed()) >= self.timeout:
                raise self.timed_out(errors[-1] if errors else None)
            interval = poll_interval(self.polls, self._options.interval)
            interval = max([interval, *(error.retry_after or 0.0 for error in errors)])
            self._next_poll_at = min(self.elapsed() + interval, self.timeout)
        return self.result()

    def poll_once(self) -> dict[str, Any]:
        """Poll once, and retry each request until the deadline; the task's result.

        Unfinished operations are no failure. Raises WaitFailed, and what Client raises.
        """
        errors = [] if self.has_succeeded() else self._poll(self._retrying_client)
        if errors:
            raise errors[0]
        return self.result()

    def _poll(self, client: Client) -> list[RequestFailed]:
        """Poll all that has not succeeded; the transient errors. Raises WaitFailed."""
        self.polls += 1
        fetches: list[Callable[[], None]] = (
            [partial(self._list_unfinished, self.unlisted)]
            if self.unlisted
            else [partial(self._poll_project, client, *project) for project in self.to_poll()]
        )
        transient: list[RequestFailed] = []
        permanent: list[RequestFailed] = []
        # All of them end by the deadline, and the states that they record belong to the result.
        in_parallel(partial(self._fetch, transient, permanent), fetches, self._options.workers)
        changes, self._changes = self._changes, []
        self._progress.report(self.operations, changes, self.awaited())
        failed = self.failed(self._options.failed_grace)
        if permanent:
            message = f"The wait stopped at a permanent error: {sentence(permanent[0])}"
            raise self._failure(message, failed, permanent[0]) from permanent[0]
        if failed:
            raise self.operations_failed(failed)
        return transient

    def _fetch(self, transient: list[RequestFailed], permanent: list[RequestFailed], fetch: Callable[[], None]) -> None:
        """Call C(fetch). Its error is appended to C(permanent) if it ends the wait, to C(transient) otherwise."""
        # The rate limit is the account's: the rest of this poll would be refused as well, and comes first in the next.
        if permanent or any(isinstance(error, StatusError) and error.status == 429 for error in transient):
            return
        try:
            fetch()
        except RequestFailed as error:
            # After a valid response, an invalid one is likely to come from a gateway whose service is down for a moment.
            is_passing = isinstance(error, UnexpectedResponse) and any(self.operations.values())
            is_early = isinstance(error, NotFound) and self.may_be_unknown(error.details["path"])
            (transient if error.transient or is_passing or is_early else permanent).append(error)

    def _list_unfinished(self, project_id: str) -> None:
        # With its retries, a long list does not begin anew after each error.
        selection = Selection(created_after=timedelta(seconds=self.lookback) if self.lookback else None)
        for page in selected_pages(self._retrying_client, project_id, selection, None):
            for operation in page.items:
                if operation["status"] not in ENDED:
                    self.record(OperationRef(project_id, operation["id"]), operation)
        self.unlisted = None

    def _poll_project(self, client: Client, project_id: str, operation_ids: Sequence[str]) -> None:
        for operation in poll_operations(client, project_id, operation_ids):
            self.record(OperationRef(project_id, operation["id"]), operation)

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
        self._recorded_at[ref] = elapsed
        if previous and previous["status"] != status:
            self._changes.append({**operation, **ref._asdict(), "previous_status": previous["status"]})
        if status == "failed":
            self._failed_since.setdefault(ref, elapsed)
        else:
            self._failed_since.pop(ref, None)
        if status not in STATUSES:
            self._unknown_statuses.add(status)

    def expect(self, operation: Operation) -> None:
        """Wait for an operation that a response has named a moment ago; it has not been polled."""
        ref = OperationRef(operation["project_id"], operation["id"])
        self.record(ref, operation)
        del self._recorded_at[ref]
        self._next_poll_at = min(poll_interval(0, self._options.interval), self.timeout)

    def may_be_unknown(self, path: str) -> bool:
        """Whether a 404 for C(path) may pass: what it is about was named a moment ago, and no poll has found it yet."""
        # Not _recorded_at itself, which grows while other threads poll.
        was_found = any(ref in self._recorded_at and path.endswith(f"/{ref.id}") for ref in self.operations)
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
            and (ref not in self._failed_since or self.elapsed() - self._failed_since[ref] >= grace)
        ]

    def to_poll(self) -> list[tuple[str, list[str]]]:
        """The ids of the operations to poll, by project; those that were recorded longest ago, or never, come first."""
        ids: dict[str, list[str]] = {}
        for ref in sorted(self.awaited(), key=lambda ref: self._recorded_at.get(ref, -1.0)):
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
                for status in sorted(self._unknown_statuses)
            ],
        }

    # How it fails

    def operations_failed(self, failed: Sequence[OperationRef]) -> WaitFailed:
        """At least one operation has failed."""
        return self._failure(f"{self._count(failed)} failed: {self._describe(failed)}.", failed)

    def timed_out(self, error: RequestFailed | None) -> WaitFailed:
        """The deadline has passed; C(error) is one that the last poll met."""
        failed = self.failed(grace=0)
        unfinished = [ref for ref in self.awaited() if ref not in failed]
        after = f"Timed out after {round(self._options.timeout, 1):g} s"
        if self.unlisted:
            message = f"{after} before the unfinished operations of {self.unlisted} could be listed."
        else:
            counts = [
                f"{self._count(refs)} {how}" for refs, how in ((unfinished, "unfinished"), (failed, "failed")) if refs
            ]
            message = f"{after} with {' and '.join(counts)}: {self._describe([*failed, *unfinished])}."
        if error:
            message += f" The last poll met an error: {sentence(error)}"
        elif unfinished:
            message += " Unfinished operations continue on the service. Run the task again, or increase timeout."
        return self._failure(message, failed, error)

    def _failure(self, message: str, failed: Sequence[OperationRef], error: RequestFailed | None = None) -> WaitFailed:
        ids = {
            "failed_ids": [ref.id for ref in failed],
            "pending_ids": [ref.id for ref in self.awaited() if ref not in failed],
        }
        kind, details = (error.kind, error.details) if error else ("wait_failed", {})
        return WaitFailed(kind, message, details, {**self.result(), **ids})

    def _count(self, refs: Sequence[OperationRef]) -> str:
        """For example C(2 of 3 operations)."""
        total = len(self.operations)
        return f"{len(refs)} of {total} operation{'' if total == 1 else 's'}"

    def _describe(self, refs: Sequence[OperationRef]) -> str:
        """Each operation with its status, its failures_count and the service's error text."""
        descriptions = [_description(ref, self.operations[ref]) for ref in refs[:MAX_DESCRIBED]]
        if len(refs) > MAX_DESCRIBED:
            descriptions.append(f"and {len(refs) - MAX_DESCRIBED} more (see operations)")
        return "; ".join(descriptions)


def _description(ref: OperationRef, operation: Operation | None) -> str:
    if operation is None:
        return f"operation {ref.id} of {ref.project_id} could not be polled"
    action, status = (displayable(operation.get(field, "operation"), 100) for field in ("action", "status"))
    text = f"{action} {ref.id} of {ref.project_id} is {status}"
    if "failures_count" in operation:
        text += f" (failures_count {displayable(operation['failures_count'], 20)})"
    return f"{text}: {displayable(operation['error']).rstrip('.')}" if operation.get("error") else text
