# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waits until operations have succeeded (api.md, Operations returned by other requests). Keeps P1, P3, P4 and P11."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, Callable, NamedTuple

from .._clock import Deadline
from .._http.client import Client
from .._http.errors import NotFound, RequestFailed, StatusError, UnexpectedResponse
from .._parallel import in_parallel
from .._timestamps import duration
from .operations import PAGE_SIZE, Selection, selected_pages
from .poll import poll_operations
from .progress import Progress
from .status import ENDED
from .wait_failure import aborted, operations_failed, timed_out
from .wait_state import OperationRef, UnfinishedOperations, WaitState

FIRST_POLL_INTERVAL = 0.2
# Most operations take about a second: intervals grow after that.
POLLS_BEFORE_GROWTH = 5
POLL_INTERVAL_GROWTH = 1.25
# How long after the deadline the last poll may end, so that it still sees what finished since the poll before.
LAST_POLL_SECONDS = 1.0

# The one place of types and defaults; the argument specs are made of it.
WAIT_OPTIONS: dict[str, dict[str, Any]] = {
    "timeout": {"type": "raw", "default": 300},
    "interval": {"type": "raw", "default": 5},
    "failed_grace": {"type": "raw", "default": 0},
    "progress": {"type": "bool"},
}


class Limits(NamedTuple):
    """C(timeout): seconds until the deadline. C(interval): maximum seconds between polls. C(failed_grace): seconds that a failed
    operation has to be retried by the platform. C(workers): projects polled in parallel."""

    timeout: float
    interval: float
    failed_grace: float
    workers: int = 1


def limits_from(params: Mapping[str, Any], workers: int = 1) -> Limits:
    """The limits in the options of a wait that polls this number of projects in parallel. Raises InvalidOption."""
    return Limits(
        duration(params, "timeout"), duration(params, "interval", zero=False), duration(params, "failed_grace"), workers
    )


def poll_interval(polls: int, longest: float) -> float:
    """Seconds between the last of this number of polls and the next one: short at first, growing to C(longest)."""
    # The exponent is bounded because a float overflows; by then every interval is the longest.
    growths = min(max(0, polls - POLLS_BEFORE_GROWTH), 60)
    return min(FIRST_POLL_INTERVAL * POLL_INTERVAL_GROWTH**growths, longest)


class Wait:
    """Polls the operations of C(state) and records in it what the service returns. Writes the changes to C(progress)."""

    def __init__(self, client: Client, limits: Limits, state: WaitState, progress: Progress | None = None):
        self._limits, self._state, self._clock = limits, state, client.clock
        self._progress = progress or Progress(client.clock)
        deadline = Deadline.after(client.clock, state.remaining() + LAST_POLL_SECONDS)
        # The next poll is the retry, whatever api_retries says, so that the deadline holds.
        self._client = client.with_deadline(deadline)
        self._retrying_client = client.with_deadline(deadline, retries=True)

    def run(self) -> dict[str, Any]:
        """Poll until all operations have succeeded; the task's result. Raises WaitFailed."""
        state = self._state
        while not state.has_succeeded():
            pause = state.next_poll_at - state.elapsed()
            if pause > 0:
                self._clock.sleep(pause)
            errors = self._poll(self._client)
            if not state.has_succeeded() and max(state.next_poll_at, state.elapsed()) >= state.timeout:
                raise timed_out(state, errors[-1] if errors else None, self._limits.timeout)
            interval = poll_interval(state.polls, self._limits.interval)
            interval = max([interval, *(error.retry_after or 0.0 for error in errors)])
            state.next_poll_at = min(state.elapsed() + interval, state.timeout)
        return state.result()

    def poll_once(self) -> dict[str, Any]:
        """Poll once, and retry each request until the deadline; the task's result.

        Unfinished operations are no failure. Raises WaitFailed, and what Client raises.
        """
        errors = [] if self._state.has_succeeded() else self._poll(self._retrying_client)
        if errors:
            raise errors[0]
        return self._state.result()

    def _poll(self, client: Client) -> list[RequestFailed]:
        """Poll all that has not succeeded; the transient errors. Raises WaitFailed."""
        self._state.polls += 1
        fetches: list[Callable[[], None]] = (
            [partial(self._list_unfinished, self._state.unlisted)]
            if self._state.unlisted
            else [partial(self._poll_project, client, *project) for project in self._state.to_poll()]
        )
        transient: list[RequestFailed] = []
        permanent: list[RequestFailed] = []
        # All of them end by the deadline, and the states that they record belong to the result.
        in_parallel(partial(self._fetch, transient, permanent), fetches, self._limits.workers)
        self._progress.report(self._state)
        failed = self._state.failed(self._limits.failed_grace)
        if permanent:
            raise aborted(self._state, failed, permanent[0]) from permanent[0]
        if failed:
            raise operations_failed(self._state, failed)
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
            is_passing = isinstance(error, UnexpectedResponse) and any(self._state.operations.values())
            is_early = isinstance(error, NotFound) and self._state.may_be_unknown(error.details["path"])
            (transient if error.transient or is_passing or is_early else permanent).append(error)

    def _list_unfinished(self, unlisted: UnfinishedOperations) -> None:
        # With its retries, a long list does not begin anew after each error.
        selection = Selection(created_after=timedelta(seconds=unlisted.lookback) if unlisted.lookback else None)
        for page in selected_pages(self._retrying_client, unlisted.project_id, selection, PAGE_SIZE):
            for operation in page.items:
                if operation["status"] not in ENDED:
                    self._state.record(OperationRef(unlisted.project_id, operation["id"]), operation)
        self._state.unlisted = None

    def _poll_project(self, client: Client, project_id: str, operation_ids: Sequence[str]) -> None:
        for operation in poll_operations(client, project_id, operation_ids):
            self._state.record(OperationRef(project_id, operation["id"]), operation)
