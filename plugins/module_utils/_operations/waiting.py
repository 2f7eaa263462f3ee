# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The time of a task about a resource, and its waits: between observations, for operations, for a locked project. Keeps P4 and P11."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from .._clock import Deadline
from .._errors import ClouddbError
from .._http.client import Client
from .._http.errors import StatusError
from .operations import MAX_NAMED, Operation, project_in_path
from .progress import Progress
from .wait import LAST_POLL_SECONDS, Wait, WaitFailed, WaitOptions, poll_interval


class Waiting:
    """The waits of one task, which share its timeout.

    C(lock_timeout) bounds the wait for a locked project; None: the timeout does.
    """

    def __init__(self, client: Client, options: WaitOptions, lock_timeout: float | None = None) -> None:
        self._client, self._options, self._lock_timeout = client, options, lock_timeout
        self._started = client.clock.monotonic()
        self.timeout = options.timeout
        # By the monotonic clock.
        self._deadline = self._started + options.timeout
        self._lock_deadline: float | None = None
        # Until the first wait, an error that may pass is retried by api_retries only.
        self._has_begun = False
        self._settled_at = math.inf
        # The unfinished operations of a locked project.
        self._locking: list[str] = []
        self._pauses = 0
        self._progress = Progress(client.clock)
        self.polls = 0

    def elapsed(self) -> float:
        """Seconds since the task began."""
        return round(self._client.clock.monotonic() - self._started, 3)

    def begin(self, seconds_to_settle: float) -> None:
        """Begin to wait after a request. What happened to it has to be known after C(seconds_to_settle)."""
        self.begin_once()
        self._settled_at = self._client.clock.monotonic() + seconds_to_settle
        self._pauses = 0

    def begin_once(self) -> None:
        """Begin to wait, unless the task has begun already."""
        self._has_begun = True

    def seconds_left(self) -> float:
        """Seconds until the deadline, which is the timeout after the start of the task; 0 before the first wait."""
        return self._deadline - self._client.clock.monotonic() if self._has_begun else 0.0

    def seconds_to_settle(self) -> float:
        """Seconds until it has to be known what happened to a request, at most until the deadline."""
        return min(self._settled_at - self._client.clock.monotonic(), self.seconds_left())

    def bounded_client(self) -> Client:
        """The client, whose requests end by the deadline."""
        deadline = Deadline(self._client.clock, self._deadline + LAST_POLL_SECONDS)
        return self._client.with_deadline(deadline, retries=True)

    def pause(self, longest: float, shortest: float = 0.0) -> None:
        """Pause before the next observation or attempt."""
        interval = poll_interval(self._pauses, self._options.interval)
        self._pauses += 1
        self._client.clock.sleep(max(0.0, min(max(interval, shortest), longest)))
        self._progress.report()

    def wait_for(self, operations: Iterable[Operation], accepts_failure: bool, accepts_gone: bool) -> Wait:
        """Wait until these operations have succeeded or, with C(accepts_failure), ended. Raises WaitFailed.

        With C(accepts_gone), their project may be deleted meanwhile.
        """
        wait = Wait(self._client, self._options, max(0.0, self.seconds_left()), accepts_failure, self._progress)
        for operation in {operation["id"]: operation for operation in operations}.values():
            wait.expect(operation)
        self._run(wait, accepts_gone)
        return wait

    def _run(self, wait: Wait, accepts_gone: bool = True) -> None:
        try:
            wait.run()
        except WaitFailed as failure:
            is_gone = accepts_gone and failure.kind == "not_found"
            # At the deadline of a wait for others' operations, the request is sent once more.
            is_over = wait.accepts_failure and wait.remaining() <= 0
            if not (is_gone or is_over):
                raise
        finally:
            self.polls += wait.polls

    def wait_until_unlocked(self, error: StatusError, may_have_acted: bool) -> None:
        """Wait for the unfinished operations of the project that C(error) is about. Raises ClouddbError and WaitFailed.

        The time of a wait that C(lock_timeout) bounds does not count against the timeout.
        """
        clock, option, seconds = self._client.clock, "lock_timeout", self._lock_timeout
        began = clock.monotonic()
        if seconds is None:
            option, seconds, self._lock_deadline = "timeout", self.timeout, self._deadline
        self._lock_deadline = self._lock_deadline or began + seconds
        self.begin_once()
        try:
            self._wait_for_lock(error, option, seconds, may_have_acted)
        finally:
            if self._lock_timeout is not None:
                self._deadline += clock.monotonic() - began

    def _wait_for_lock(self, error: StatusError, option: str, seconds: float, may_have_acted: bool) -> None:
        clock = self._client.clock
        lock_deadline = self._lock_deadline or 0.0
        remaining = lock_deadline - clock.monotonic()
        if remaining <= 0:
            raise _locked(error, option, seconds, self._locking, may_have_acted)
        if project_id := project_in_path(error.details["path"].split("/")[1:]):
            wait = Wait(self._client, self._options, remaining, True, self._progress)
            wait.unlisted = project_id
            self._run(wait)
            self._locking = [ref.id for ref in wait.awaited()]
            if wait.operations:
                return
        self.pause(lock_deadline - clock.monotonic(), shortest=error.retry_after or 0.0)


def _locked(
    error: StatusError, option: str, seconds: float, locking: Sequence[str], may_have_acted: bool
) -> ClouddbError:
    """The error for a project that stayed locked, with the ids of its unfinished operations; C(option) bounds the wait."""
    message = f"{error} The project stayed locked for {round(seconds, 1):g} s ({option})"
    message += "." if may_have_acted else ", so the request was not carried out."
    if locking:
        message += f" Unfinished operations of the project: {', '.join(locking[:MAX_NAMED])}."
    return ClouddbError("locked", f"{message} Run the task again later, or increase {option}.", error.details)
