# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Follows the operations of an account: polls its projects, emits an event for each change, saves what was reported."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Callable, Union

from ...module_utils._clock import SYSTEM_CLOCK, Clock
from ...module_utils._errors import NotFound, RequestFailed, Unauthorized
from ...module_utils._operations.api import Operation
from ...module_utils._timestamps import parse_timestamp
from .changes import Change, PollResult, SeenOperations, poll_operations
from .checkpoint import SAVE_INTERVAL, Checkpoint, State
from .emitter import EventEmitter, EventQueue, event_of
from .error_log import ErrorLog, OverloadLog
from .listing import CompleteList, Listing, changed_hints
from .options import SourceOptions
from .outage import Outage
from .rate_limit import RateLimitedClient
from .schedule import TOLERANCE, Group, Schedule
from .threads import in_thread

# The name under which the list of projects is polled, which is no project's id.
PROJECT_LIST = ""
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
    # The hints that have changed in the latest list of projects.
    changed_hints: frozenset[str] = frozenset()


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
        self._outage = Outage(options.interval, options.max_interval, clock)
        self._listing = Listing(self._client, options)
        self._schedule = Schedule(options.interval, options.max_interval, clock)
        self._error_log = ErrorLog(clock)
        self._overload_log = OverloadLog(options.interval)
        self._emitter = EventEmitter(queue, feedback)
        self._checkpoint = Checkpoint(options.state_file, options.connection.base_url, clock)
        self._projects: dict[str, FollowedProject] = {}
        self._deleted: dict[str, SeenOperations] = {}
        self._running: dict[asyncio.Future[Result], str] = {}
        self._started, self._started_at = clock.monotonic(), clock.utcnow()
        self._first_started_at: datetime | None = None
        # Whether the service has responded to a request, and whether the first list of projects is complete.
        self._is_connected = False
        self._is_listed = False
        self._was_list_polled = False
        self._latest: tuple[SeenOperations, Change] | None = None

    async def run(self) -> None:
        """Emit events until cancelled. Raises ClouddbError when it can't go on."""
        self._load()
        try:
            while True:
                pause = self._seconds_to_next_poll()
                is_idle = not self._running and pause > 0
                await self._save(is_idle)
                await self._pause(pause if is_idle else 0.0)
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
        if len(self._running) >= self._outage.limit():
            return math.inf
        return max(self._outage.pause(), min(self._schedule.pause(), self._listing.pause()))

    def _start(self) -> str | None:
        """Start a poll, if any is due and may run: its name."""
        if self._seconds_to_next_poll() > TOLERANCE:
            return None
        # During an outage, one of them at a time is polled, and either may be what keeps failing.
        is_turn_of_list = not self._was_list_polled or self._schedule.pause() > TOLERANCE
        self._was_list_polled = is_turn_of_list and self._listing.pause() <= TOLERANCE
        if self._was_list_polled:
            self._listing.start()
            return PROJECT_LIST
        name = self._schedule.start()
        if name is not None:
            followed = self._projects[name]
            followed.missing_lists_before_poll = followed.missing_lists
        return name

    # Load

    def _load(self) -> None:
        state = self._checkpoint.load(State([self._beginning()], {}, first_started_at=self._started_at))
        self._lists_began_at, self._first_started_at = state.lists_began_at, state.first_started_at
        self._deleted = dict(state.deleted)
        for project_id, seen in state.projects.items():
            if self._options.wants_project(project_id):
                project = {**state.listed.get(project_id, {}), "id": project_id}
                self._projects[project_id] = FollowedProject(project, seen)
        self._follow(list(self._projects))

    def _beginning(self) -> datetime:
        """When the projects would have been listed for operations to be new since the start, or for as long as C(backfill)."""
        running = timedelta(seconds=self._clock.monotonic() - self._started)
        if self._first_started_at:
            running += max(timedelta(), self._started_at - self._first_started_at)
        return self._client.service_now() - running - self._options.backfill + CLOCK_TOLERANCE

    # Poll

    def _poll(self, name: str) -> Result:
        """Send the requests of one poll, in a thread of its own; changes nothing but the unfinished list of projects."""
        try:
            if name == PROJECT_LIST:
                return self._listing.fetch()
            return poll_operations(self._client, name, self._projects[name].seen, self._options.actions)
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
            self._outage.failed(result.retry_after or 0.0)
            if name == PROJECT_LIST:
                self._listing.page_failed()
            else:
                self._schedule.failed(name)
            return
        if not self._is_connected and (result or name == PROJECT_LIST):
            self._connected()
        self._error_log.succeeded(name)
        self._outage.succeeded()
        self._overload_log.note(min(self._schedule.delay(), self._outage.seconds_since_pause()))
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

    def _connected(self) -> None:
        """The service has responded for the first time, so that its clock is known."""
        self._is_connected = True
        if self._first_started_at:
            self._lists_began_at = [self._beginning()]
            self._first_started_at = None
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
            # A field that changes from list to list says nothing.
            changed_before, followed.changed_hints = followed.changed_hints, changed_hints(followed.project, project)
            is_missing = project_id not in listed and project_id not in found.unavailable_ids
            followed.missing_lists = followed.missing_lists + 1 if is_missing else 0
            followed.project = project
            if (is_missing or followed.changed_hints - changed_before) and project_id in self._schedule:
                self._schedule.poll_soon(project_id)
        self._follow(new)
        if not self._is_listed:
            self._is_listed = True
            self._warn_of_unknown_values()
        self._lists_began_at = [*self._lists_began_at, found.began_at][-MISSING_LISTS_OF_DELETED - 1 :]

    def _follow(self, project_ids: list[str]) -> None:
        """Poll projects that were not polled before: those with unfinished operations first, then the latest updated ones."""
        for project_id in sorted(project_ids, key=self._updated_at, reverse=True):
            idle = Group.RECENT if self._is_listed else Group.IDLE
            self._schedule.add(project_id, Group.BUSY if self._unfinished(project_id) else idle)
        if project_ids:
            self._checkpoint.mark_changed()

    def _updated_at(self, project_id: str) -> str:
        return str(self._projects[project_id].project.get("updated_at"))

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

    async def _pause(self, seconds: float) -> None:
        """Sleep; a state that could not be saved is saved meanwhile, as soon as that succeeds."""
        while self._checkpoint.is_failing() and seconds > SAVE_INTERVAL:
            await self._sleep(SAVE_INTERVAL)
            seconds -= SAVE_INTERVAL
            await self._save(is_idle=True)
        await self._sleep(seconds)

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
            self._first_started_at,
        )
