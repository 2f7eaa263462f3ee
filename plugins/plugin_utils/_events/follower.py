# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Follows the operations of an account: polls its projects, emits an event for each change, saves what was reported.

Keeps P1, P2, P3 and P11: each change is one event, over restarts and errors, and an outage is logged when it begins and ends.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import math
from collections.abc import Awaitable
from contextlib import closing, suppress
from datetime import datetime, timedelta
from typing import Callable, NamedTuple, Union

from ...module_utils._clock import SYSTEM_CLOCK, Clock
from ...module_utils._http.client import Client
from ...module_utils._http.errors import NotFound, RequestFailed, Unauthorized
from ...module_utils._lists import Listed
from ...module_utils._operations.operations import Operation
from ...module_utils._parallel import Worker
from ...module_utils._projects import list_projects
from ...module_utils._timestamps import timestamp_of
from .changes import Change, FollowedProject, OperationPoll, read_operations
from .checkpoint import Checkpoint, State
from .emitter import Queue, event_of, is_delivered, wait_until_delivered
from .options import SourceOptions, is_selected
from .rate_limit import PacedClient
from .schedule import GROWTH, TOLERANCE, Schedule

# The name under which the list of projects is polled, which is no project's id.
PROJECT_LIST = ""
# Polls that run at the same time. When as many in a row have failed, the service is down.
MAX_PARALLEL = 4
# The pause after a list of projects is at least as many times as long as the list took, so that projects get most requests.
PAUSE_AFTER_LIST = 3
# For how long lists may lack a new project, and the clocks of the service's machines may differ.
LIST_LAG = timedelta(minutes=5)
# A project is deleted if this number of complete lists in a row lack it. One may lack it by mistake.
MISSING_LISTS_OF_DELETED = 2
# What was seen of this number of deleted projects is kept, in case one of them comes back.
MAX_DELETED = 100
# A key that is refused is tried again after a pause, because a single 401 may be a mistake of the service; in seconds.
PAUSE_AFTER_REFUSAL = 10.0
# As many refusals within a minute end the event source.
MAX_REFUSALS = 3

logger = logging.getLogger("clouddb.control.operations")


class ProjectPoll(NamedTuple):
    """All projects that are listed; C(began_at) is when the list began, by the service's clock, and C(seconds) how long it took."""

    found: Listed
    began_at: datetime
    seconds: float


# None: there is no such project.
Polled = Union[ProjectPoll, OperationPoll, RequestFailed, None]


class Follower:
    """Emits an event for each change that it finds; only the requests are sent in threads, and they change nothing here."""

    def __init__(
        self,
        options: SourceOptions,
        queue: Queue,
        clock: Clock = SYSTEM_CLOCK,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ):
        self._options = options
        self._clock = clock
        self._sleep = sleep
        self._client = PacedClient(options.connection, clock, options.requests_per_minute)
        self._schedule = Schedule(options.interval, options.max_interval, clock)
        self._queue = queue
        selection = {name: sorted({*getattr(options, name)}) for name in ("project_ids", "actions", "statuses")}
        self._checkpoint = Checkpoint(options.state_file, options.connection.base_url, selection, clock)
        self._projects: dict[str, FollowedProject] = {}
        self._deleted: dict[str, FollowedProject] = {}
        self._running: dict[asyncio.Future[Polled], str] = {}
        # The failures in a row, and when the next poll may begin.
        self._failures = 0
        self._resume_at = clock.monotonic()
        self._refusals: list[float] = []
        # The local time when the monotonic clock was 0: the local clock may be set before the service responds.
        self._local_zero = clock.utcnow() - timedelta(seconds=clock.monotonic())
        # What can't be polled at present.
        self._failing: set[str] = set()
        # Whether the service has responded to a request, and whether the first list of projects is complete.
        self._is_connected = False
        self._is_listed = False
        self._latest: tuple[FollowedProject, Change] | None = None

    async def run(self) -> None:
        """Emit events until cancelled. Raises ClouddbError when it can't go on."""
        with closing(self._checkpoint):
            self._start()
            await self._follow_until_cancelled()

    async def _follow_until_cancelled(self) -> None:
        try:
            while True:
                pause = self._seconds_to_next_poll()
                is_idle = not self._running and pause > 0
                await self._save(is_idle)
                await self._sleep(pause if is_idle else 0.0)
                while self._seconds_to_next_poll() <= TOLERANCE and (name := self._schedule.start()) is not None:
                    self._running[asyncio.ensure_future(in_thread(self._poll, name))] = name
                if self._running:
                    await self._process_ended()
        finally:
            for poll in self._running:
                poll.cancel()
            self._save_finally()

    async def _process_ended(self) -> None:
        """Process the polls that have ended, once there is one, or until the next one can begin."""
        pause = self._seconds_to_next_poll()
        ended, _running = await asyncio.wait(
            self._running, timeout=None if pause == math.inf else pause, return_when=asyncio.FIRST_COMPLETED
        )
        # In the order in which they were sent.
        for poll in [poll for poll in self._running if poll in ended]:
            await self._process(self._running.pop(poll), poll.result())

    def _seconds_to_next_poll(self) -> float:
        """The seconds until another poll is due and may run; infinite if one has to end before."""
        if len(self._running) >= (1 if self._is_down() else MAX_PARALLEL):
            return math.inf
        return max(0.0, max(self._resume_at, self._schedule.due()) - self._clock.monotonic())

    def _start(self) -> None:
        """Load the saved state, and schedule the polls of the list and of the projects that are known from it."""
        state = self._checkpoint.load(State(self._clock.utcnow() - self._options.backfill, {}, is_local_time=True))
        self._new_since, self._is_local_time = state.new_since, state.is_local_time
        self._projects = {
            name: each for name, each in state.projects.items() if is_selected(name, self._options.project_ids)
        }
        self._schedule.add_busy(PROJECT_LIST)
        self._follow(list(self._projects))
        for warning in self._options.warnings:
            logger.warning("%s", warning)

    # Poll

    def _poll(self, name: str) -> Polled:
        """Send the requests of one poll, in a thread of its own; changes nothing."""
        try:
            return self._list() if name == PROJECT_LIST else read_operations(self._client, self._projects[name])
        except NotFound as error:
            return error if name == PROJECT_LIST else None
        except RequestFailed as error:
            return error

    def _list(self) -> ProjectPoll:
        started = self._clock.monotonic()
        found = _projects(self._client, self._options, bool(self._projects))
        if self._is_local_time and abs(self._client.service_now() - self._local_now()) > LIST_LAG:
            # One of the clocks is wrong: a second response shows whether it is a single Date.
            found = _projects(self._client, self._options, bool(self._projects))
        seconds = self._clock.monotonic() - started
        # The service's clock may be unknown before.
        return ProjectPoll(found, self._client.service_now() - timedelta(seconds=seconds), seconds)

    def _local_now(self) -> datetime:
        return self._local_zero + timedelta(seconds=self._clock.monotonic())

    async def _process(self, name: str, result: Polled) -> None:
        """Act on the result of a poll. Raises an error that retrying can't fix."""
        if isinstance(result, RequestFailed):
            is_first_list = name == PROJECT_LIST and not self._is_connected
            if isinstance(result, Unauthorized):
                self._refused(name, result)
                return
            if is_first_list and not result.transient:
                raise result
            self._failed(name, result)
            return
        if result is not None:
            self._connected()
        self._succeeded(name)
        if isinstance(result, ProjectPoll):
            self._update_projects(result)
            self._schedule.poll_after(name, max(self._options.max_interval, PAUSE_AFTER_LIST * result.seconds))
            return
        followed = self._projects[name]
        since_change = None if result is None else await self._report(followed, result)
        if self._is_deleted(name, result):
            self._forget(name)
        else:
            self._schedule.polled(name, since_change, bool(followed.unfinished()))

    def _connected(self) -> None:
        """The service has responded, so its clock is known."""
        if self._is_connected:
            return
        self._is_connected = True
        if self._is_local_time:
            self._is_local_time = False
            self._new_since += self._client.service_now() - self._local_now()
        # A saved state may be the result of a wrong clock.
        self._new_since = min(self._new_since, self._client.service_now())
        self._checkpoint.mark_changed()

    def _refused(self, name: str, error: Unauthorized) -> None:
        """The service has refused the key. Raises the error if it has done so several times within a minute."""
        now = self._clock.monotonic()
        latest = max(self._refusals, default=-math.inf)
        # Other polls that began before the pause say nothing more.
        if now - latest >= PAUSE_AFTER_REFUSAL - TOLERANCE:
            self._refusals = [each for each in self._refusals if now - each < 60] + [now]
            if len(self._refusals) >= MAX_REFUSALS:
                raise error
            self._resume_at = max(self._resume_at, now + PAUSE_AFTER_REFUSAL)
        self._failed(name, error)
        self._schedule.retry(name, PAUSE_AFTER_REFUSAL)

    def _failed(self, name: str, error: RequestFailed) -> None:
        if not self._failing:
            self._failing_since = self._clock.monotonic()
            logger.warning("Polling failed. It is retried until it succeeds. %s", error)
        self._failing.add(name)
        self._schedule.failed(name)
        self._back_off()

    def _succeeded(self, name: str) -> None:
        if self._failing == {name}:
            logger.warning("Polling succeeds again, after %.0f s.", self._clock.monotonic() - self._failing_since)
        self._failing.discard(name)
        self._failures = 0

    def _is_down(self) -> bool:
        return self._failures >= MAX_PARALLEL

    def _back_off(self) -> None:
        """After a failure: while the service is down, one poll runs at a time, after pauses that grow up to C(max_interval)."""
        if self._clock.monotonic() < self._resume_at:
            # The poll began before the pause.
            return
        if self._is_down():
            # The exponent is bounded because a float overflows.
            seconds = self._options.interval * GROWTH ** min(self._failures - MAX_PARALLEL, 30)
            self._resume_at = self._clock.monotonic() + min(seconds, self._options.max_interval)
        self._failures += 1

    # Projects

    def _is_deleted(self, project_id: str, result: OperationPoll | None) -> bool:
        """Whether a project is deleted and has nothing more to report, by a poll that began after the lists that lack it.

        A single list or response may lack a project that exists. If it were forgotten, its latest events would be repeated.
        """
        followed = self._projects[project_id]
        is_unlisted = followed.missing_lists >= MISSING_LISTS_OF_DELETED and not self._schedule.polls_again(project_id)
        return is_unlisted and (result is None or not followed.unfinished())

    def _forget(self, project_id: str) -> None:
        """Poll a deleted project no more. If it comes back after all, its earlier events are not repeated."""
        self._schedule.remove(project_id)
        self._deleted[project_id] = self._projects.pop(project_id)
        if len(self._deleted) > MAX_DELETED:
            del self._deleted[next(iter(self._deleted))]
        self._checkpoint.mark_changed()

    def _update_projects(self, complete: ProjectPoll) -> None:
        """Follow new projects, and poll soon those that are likely to have changed or are missing."""
        listed = {project["id"]: project for project in complete.found.items}
        # Of a project that the service could not list, only the id is known, or what it listed earlier.
        for project_id in complete.found.unavailable_ids:
            known = self._projects.get(project_id)
            listed[project_id] = known.project if known else {"id": project_id}
        for project_id, followed in self._projects.items():
            if followed.update(listed.get(project_id)):
                self._schedule.poll_soon(project_id)
        new = [name for name in listed if name not in self._projects and is_selected(name, self._options.project_ids)]
        for project_id in new:
            deleted = self._deleted.pop(project_id, None)
            self._projects[project_id] = deleted or FollowedProject(listed[project_id], self._new_since)
            self._projects[project_id].update(listed[project_id])
        self._follow(new)
        self._new_since = max(self._new_since, complete.began_at - LIST_LAG)
        unknown = sorted(set(self._options.project_ids) - set(self._projects)) if not self._is_listed else []
        self._is_listed = True
        if unknown:
            logger.warning("project_ids: The account has no project %s at present.", ", ".join(unknown))

    def _follow(self, project_ids: list[str]) -> None:
        """Poll projects that were not polled before: those with unfinished operations first, then the latest updated ones."""

        def order(project_id: str) -> tuple[bool, str]:
            followed = self._projects[project_id]
            return bool(followed.unfinished()), str(followed.project.get("updated_at"))

        self._schedule.add(sorted(project_ids, key=order, reverse=True))
        if project_ids:
            self._checkpoint.mark_changed()

    # Emit

    async def _report(self, followed: FollowedProject, result: OperationPoll) -> float | None:
        """Emit an event for each wanted change, and remember it. Returns the seconds since the latest change, if there was any."""
        seconds_since: list[float] = []
        for change in followed.changes(result):
            if is_selected(change.operation.get("action"), self._options.actions):
                seconds_since.append(self._seconds_since(change.operation))
                if is_selected(change.operation["status"], self._options.statuses):
                    await self._queue.put(event_of(change, followed.project))
                    self._latest = followed, change
            followed.remember(change.operation, change.number)
            self._checkpoint.mark_changed()
            await self._save(is_idle=False)
        if followed.complete(result, self._clock.monotonic()):
            self._checkpoint.mark_changed()
        return min(seconds_since, default=None)

    def _seconds_since(self, operation: Operation) -> float:
        """How long ago the operation was updated, by the service's clock; 0 if that is unknown."""
        now = self._client.service_now()
        return max(0.0, (now - (timestamp_of(operation, "updated_at") or now)).total_seconds())

    # Save

    async def _save(self, is_idle: bool) -> None:
        """Save the state if it is due, after every event that it counts as reported was delivered."""
        if self._checkpoint.is_due(is_idle):
            await wait_until_delivered(self._queue)
            await self._checkpoint.save(self._state())

    def _save_finally(self) -> None:
        """Save the state; the latest event counts as not emitted if it was not delivered."""
        if self._latest and not is_delivered(self._queue):
            followed, change = self._latest
            followed.revert(change)
        self._checkpoint.save_now(self._state())

    def _state(self) -> State:
        return State(self._new_since, {**self._deleted, **self._projects}, self._is_local_time)


def _projects(client: Client, options: SourceOptions, has_followed: bool) -> Listed:
    """The projects to follow; those that are selected by their ids are fetched by them, as some keys may not list others.

    C(has_followed) says that some were found before. Raises what Client raises.
    """
    if not options.project_ids:
        return list_projects(client, query=options.query, page_size=options.page_size)
    found, unavailable = [], []
    failure: RequestFailed | None = None
    for project_id in options.project_ids:
        try:
            found.append(client.get("projects", project_id).object("project", id=str))
        except Unauthorized:
            raise
        except RequestFailed as error:
            failure = error
            if not isinstance(error, NotFound):
                unavailable.append(project_id)
    if failure and not found and not (isinstance(failure, NotFound) and has_followed):
        raise failure
    return Listed(found, unavailable, [], set())


async def in_thread(function: Callable[[str], Polled], name: str) -> Polled:
    """The function's result. Unlike that of asyncio.to_thread, the thread is abandoned when the caller is cancelled."""
    outcome: concurrent.futures.Future[Polled] = concurrent.futures.Future()

    def work() -> None:
        # It is cancelled with the caller.
        with suppress(concurrent.futures.InvalidStateError):
            try:
                outcome.set_result(function(name))
            except BaseException as error:  # pylint: disable=broad-except
                outcome.set_exception(error)

    thread = Worker(work)
    thread.start()
    try:
        return await asyncio.wrap_future(outcome)
    finally:
        thread.is_abandoned = True
