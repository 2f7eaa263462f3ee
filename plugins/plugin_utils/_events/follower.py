# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Follows the operations of an account: polls its projects, emits an event for each change, saves what was reported.

Keeps P2 and P3: each change is one event, over restarts and errors.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import math
from collections.abc import Awaitable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Callable, Union

from ...module_utils._clock import SYSTEM_CLOCK, Clock
from ...module_utils._errors import NotFound, RequestFailed, Unauthorized
from ...module_utils._operations.api import Operation
from ...module_utils._parallel import Worker
from ...module_utils._timestamps import parse_timestamp
from .changes import Change, PollResult, SeenOperations, read_operations
from .checkpoint import Checkpoint, State
from .emitter import EventEmitter, EventQueue, event_of
from .error_log import ErrorLog
from .listing import CompleteList, Listing
from .options import SourceOptions
from .rate_limit import RateLimitedClient
from .schedule import GROWTH, TOLERANCE, Schedule

# The name under which the list of projects is polled, which is no project's id.
PROJECT_LIST = ""
# Polls that run at the same time. When as many in a row have failed, the service is down.
MAX_PARALLEL = 4
# How much the clocks of the service's machines may differ.
CLOCK_TOLERANCE = timedelta(seconds=60)
# A project is deleted if this number of complete lists in a row lack it. They may also lack a new project by mistake.
MISSING_LISTS_OF_DELETED = 2
# What was seen of this number of deleted projects is kept, in case one of them comes back.
MAX_DELETED = 100

# None: there is no such project, or the project list is not complete yet.
Result = Union[CompleteList, PollResult, RequestFailed, None]

logger = logging.getLogger("clouddb.control.operations")


@dataclass
class FollowedProject:
    """A project as the service lists it, or what the state holds of it, and what was seen of its operations."""

    project: dict[str, Any]
    seen: SeenOperations
    # In how many complete lists in a row it was missing: by now, and when its latest poll began.
    missing_lists: int = 0
    missing_lists_before_poll: int = 0
    # Whether the latest list had another updated_at than the one before.
    is_updated: bool = False


class Follower:
    """Emits an event for each change that it finds; only the requests are sent in threads, and they change nothing here."""

    def __init__(
        self,
        options: SourceOptions,
        queue: EventQueue,
        feedback: asyncio.Queue[Any] | None = None,
        clock: Clock = SYSTEM_CLOCK,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ):
        self._options = options
        self._clock = clock
        self._sleep = sleep
        self._client = RateLimitedClient(options.connection, clock, options.requests_per_minute)
        self._listing = Listing(self._client, options)
        self._schedule = Schedule(options.interval, options.max_interval, clock)
        self._error_log = ErrorLog(clock)
        self._emitter = EventEmitter(queue, feedback)
        self._checkpoint = Checkpoint(options.state_file, options.connection.base_url, clock)
        self._projects: dict[str, FollowedProject] = {}
        self._deleted: dict[str, SeenOperations] = {}
        self._running: dict[asyncio.Future[Result], str] = {}
        # The failures in a row, and when the next poll may begin.
        self._failures = 0
        self._resume = self._started = clock.monotonic()
        # Whether the service has responded to a request, and whether the first list of projects is complete.
        self._is_connected = False
        self._is_listed = False
        self._latest: tuple[SeenOperations, Change] | None = None

    async def run(self) -> None:
        """Emit events until cancelled. Raises ClouddbError when it can't go on."""
        self._load()
        try:
            while True:
                pause = self._seconds_to_next_poll()
                is_idle = not self._running and pause > 0
                await self._save(is_idle)
                await self._sleep(pause if is_idle else 0.0)
                while (name := self._start()) is not None:
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
        due = max(self._resume, min(self._schedule.due(), self._listing.due))
        return max(0.0, due - self._clock.monotonic())

    def _start(self) -> str | None:
        """Start a poll, if any is due and may run: its name."""
        if self._seconds_to_next_poll() > TOLERANCE:
            return None
        # Projects can be overdue for long, and the list takes few requests, unless it fails again and again.
        if self._listing.due <= (self._schedule.due() if self._failures else self._clock.monotonic() + TOLERANCE):
            self._listing.start()
            return PROJECT_LIST
        name = self._schedule.start()
        if name is not None:
            followed = self._projects[name]
            followed.missing_lists_before_poll = followed.missing_lists
        return name

    # Load

    def _load(self) -> None:
        state = self._checkpoint.load()
        self._lists_began_at, self._deleted = state.lists_began_at, dict(state.deleted)
        for project_id, seen in state.projects.items():
            if self._options.wants_project(project_id):
                project = {**state.listed.get(project_id, {}), "id": project_id}
                self._projects[project_id] = FollowedProject(project, seen)
        self._follow(list(self._projects))

    # Poll

    def _poll(self, name: str) -> Result:
        """Send the requests of one poll, in a thread of its own; changes nothing but the unfinished list of projects."""
        try:
            if name == PROJECT_LIST:
                return self._listing.fetch()
            return read_operations(self._client, name, self._projects[name].seen, self._options.actions)
        except NotFound as error:
            return error if name == PROJECT_LIST else None
        except RequestFailed as error:
            return error

    async def _process(self, name: str, result: Result) -> None:
        """Act on the result of a poll. Raises an error that retrying can't fix."""
        if isinstance(result, RequestFailed):
            if isinstance(result, Unauthorized) or (
                name == PROJECT_LIST and not (self._is_connected or result.transient)
            ):
                raise result
            self._error_log.failed(name, result)
            self._back_off()
            if name == PROJECT_LIST:
                self._listing.page_failed()
            else:
                self._schedule.failed(name)
            return
        if not self._is_connected and (result or name == PROJECT_LIST):
            self._connected()
        self._error_log.succeeded(name)
        self._failures = 0
        if name == PROJECT_LIST:
            is_complete = isinstance(result, CompleteList)
            if isinstance(result, CompleteList):
                self._update_projects(result)
            self._listing.page_ended(is_complete, is_alone=not self._projects)
        else:
            since_change = await self._report(self._projects[name], result) if isinstance(result, PollResult) else None
            if self._is_over(name, result):
                self._forget(name)
            else:
                self._schedule.polled(name, since_change, bool(self._unfinished(name)))

    def _is_down(self) -> bool:
        return self._failures >= MAX_PARALLEL

    def _back_off(self) -> None:
        """After a failure: while the service is down, one poll runs at a time, after pauses that grow up to C(max_interval)."""
        if self._clock.monotonic() < self._resume:
            # The poll began before the pause.
            return
        if self._is_down():
            # The exponent is bounded because a float overflows.
            seconds = self._options.interval * GROWTH ** min(self._failures - MAX_PARALLEL, 30)
            self._resume = self._clock.monotonic() + min(seconds, self._options.max_interval)
        self._failures += 1

    def _connected(self) -> None:
        """The service has responded for the first time, so that its clock is known. At a first start, operations are new since then."""
        self._is_connected = True
        if not self._lists_began_at:
            running = timedelta(seconds=self._clock.monotonic() - self._started)
            beginning = self._client.service_now() - running - self._options.backfill
            self._lists_began_at = [beginning + CLOCK_TOLERANCE]
            self._checkpoint.mark_changed()

    def _unfinished(self, project_id: str) -> list[str]:
        return self._projects[project_id].seen.unfinished(self._options.actions)

    def _is_over(self, project_id: str, result: Result) -> bool:
        """Whether a project is deleted and has nothing more to report.

        A single list or response may lack a project that exists. If it were forgotten, its latest events would be repeated.
        """
        is_deleted = self._projects[project_id].missing_lists_before_poll >= MISSING_LISTS_OF_DELETED
        return is_deleted and (result is None or not self._unfinished(project_id))

    def _forget(self, project_id: str) -> None:
        """Poll a deleted project no more. If it comes back after all, its earlier events are not repeated."""
        self._schedule.remove(project_id)
        self._deleted[project_id] = self._projects.pop(project_id).seen
        if len(self._deleted) > MAX_DELETED:
            del self._deleted[next(iter(self._deleted))]
        self._checkpoint.mark_changed()

    def _add(self, project: dict[str, Any]) -> None:
        """Follow this project from now on, unless it is followed already."""
        if project["id"] not in self._projects:
            seen = self._deleted.pop(project["id"], None) or SeenOperations(self._lists_began_at[0] - CLOCK_TOLERANCE)
            self._projects[project["id"]] = FollowedProject(project, seen)

    def _update_projects(self, found: CompleteList) -> None:
        """Follow new projects, and poll soon those that are likely to have changed or are missing."""
        listed = {
            project_id: project
            for project_id, project in found.projects.items()
            if self._options.wants_project(project_id)
        }
        for project in listed.values():
            self._add(project)
        # Of a project that the service could not list, only the id is known.
        for project_id in filter(self._options.wants_project, found.unavailable_ids):
            self._add({"id": project_id})
        new = [project_id for project_id in self._projects if project_id not in self._schedule]
        for project_id, followed in self._projects.items():
            project = listed.get(project_id, followed.project)
            before = followed.project.get("updated_at")
            # A field that changes from list to list says nothing.
            was_updated, followed.is_updated = followed.is_updated, before not in (None, project.get("updated_at"))
            is_missing = project_id not in listed and project_id not in found.unavailable_ids
            followed.missing_lists = followed.missing_lists + 1 if is_missing else 0
            followed.project = project
            if (is_missing or (followed.is_updated and not was_updated)) and project_id in self._schedule:
                self._schedule.poll_soon(project_id)
        self._follow(new)
        if not self._is_listed:
            self._is_listed = True
            self._warn_of_unknown_values()
        self._lists_began_at = [*self._lists_began_at, found.began_at][-MISSING_LISTS_OF_DELETED - 1 :]

    def _follow(self, project_ids: list[str]) -> None:
        """Poll projects that were not polled before: those with unfinished operations first, then the latest updated ones."""

        def order(project_id: str) -> tuple[bool, str]:
            return bool(self._unfinished(project_id)), str(self._projects[project_id].project.get("updated_at"))

        self._schedule.add(sorted(project_ids, key=order, reverse=True))
        if project_ids:
            self._checkpoint.mark_changed()

    def _warn_of_unknown_values(self) -> None:
        for warning in self._options.warnings():
            logger.warning("%s", warning)
        unknown = sorted(set(self._options.project_ids) - set(self._projects))
        if unknown:
            logger.warning("project_ids: The account has no project %s at present.", ", ".join(unknown))

    # Emit

    async def _report(self, followed: FollowedProject, result: PollResult) -> float | None:
        """Emit an event for each wanted change, and remember it. Returns the seconds since the latest change, if there was any."""
        seconds_since: list[float] = []
        seen = followed.seen
        seen.remember_past(result)
        for change in seen.changes(result):
            if self._options.wants_action(change.operation.get("action")):
                seconds_since.append(self._seconds_since(change.operation))
                if self._options.wants_status(change.operation["status"]):
                    await self._emitter.emit(event_of(change, followed.project))
                    self._latest = seen, change
            seen.remember(change.operation)
            self._checkpoint.mark_changed()
            await self._save(is_idle=False)
        if seen.complete(result):
            self._checkpoint.mark_changed()
        return min(seconds_since, default=None)

    def _seconds_since(self, operation: Operation) -> float:
        """How long ago the operation was updated, by the service's clock; 0 if that is unknown."""
        try:
            updated_at = parse_timestamp(operation["updated_at"])
        except (KeyError, ValueError, AttributeError):
            return 0.0
        return max(0.0, (self._client.service_now() - updated_at).total_seconds())

    # Save

    async def _save(self, is_idle: bool) -> None:
        """Save the state if it is due, after every event that it counts as reported was delivered."""
        if self._checkpoint.is_due(is_idle):
            await self._emitter.wait_until_delivered()
            await self._checkpoint.save(self._state())

    def _save_finally(self) -> None:
        """Save the state; the latest event counts as not emitted if it was not delivered."""
        if self._latest and not self._emitter.is_delivered():
            seen, change = self._latest
            seen.revert(change)
        self._checkpoint.save_now(self._state())

    def _state(self) -> State:
        return State(
            self._lists_began_at,
            {project_id: followed.seen for project_id, followed in self._projects.items()},
            {project_id: followed.project for project_id, followed in self._projects.items()},
            self._deleted,
        )


async def in_thread(function: Callable[[str], Result], name: str) -> Result:
    """The function's result. Unlike that of asyncio.to_thread, the thread is abandoned when the caller is cancelled."""
    outcome: concurrent.futures.Future[Result] = concurrent.futures.Future()

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
