# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Follows the operations of an account: polls its projects, emits an event for each change, saves what was reported."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Callable, Union

from ...module_utils._clock import SYSTEM_CLOCK, Clock
from ...module_utils._errors import NotFound, RequestFailed, Unauthorized
from ...module_utils._projects import Projects, list_projects
from .changes import Change, PollResult, SeenOperations, poll_operations
from .checkpoint import SAVE_INTERVAL, Checkpoint, State
from .emitter import EventEmitter, EventQueue, event_of
from .error_log import ErrorLog
from .options import SourceOptions
from .rate_limit import RateLimitedClient
from .schedule import Schedule
from .threads import in_thread

# The name under which the list of projects is polled, which is no project's id.
PROJECT_LIST = ""
# How much the clocks of the service's machines may differ.
CLOCK_TOLERANCE = timedelta(seconds=60)

# None: there is no such project.
Result = Union[Projects, PollResult, RequestFailed, None]

logger = logging.getLogger("clouddb.control.operations")


@dataclass
class FollowedProject:
    """A project as the service lists it (only its id if it was not listed yet), and what was seen of its operations."""

    project: dict[str, Any]
    seen: SeenOperations
    is_listed: bool = True


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
        self._schedule = Schedule(options.interval, options.max_interval, clock)
        self._error_log = ErrorLog(options.max_interval, clock)
        self._emitter = EventEmitter(queue, feedback)
        self._checkpoint = Checkpoint(options.state_file, options.connection.base_url, clock)
        self._projects: dict[str, FollowedProject] = {}
        self._listed_at: datetime | None = None
        self._started = clock.monotonic()
        self._is_connected = False
        self._latest: tuple[SeenOperations, Change] | None = None

    async def run(self) -> None:
        """Emit events until cancelled. Raises ClouddbError when it can't go on."""
        self._load()
        self._schedule.poll_now(PROJECT_LIST)
        try:
            while True:
                pause, names = self._schedule.next_round()
                await self._save(is_idle=pause > 0)
                await self._pause(pause)
                results = await asyncio.gather(*(in_thread(self._poll, name) for name in names))
                for name, result in zip(names, results):
                    await self._process(name, result)
                errors = [result for result in results if isinstance(result, RequestFailed)]
                self._schedule.end_round(
                    is_service_down=len(errors) == len(results),
                    retry_after=max((error.retry_after or 0.0 for error in errors), default=0.0),
                )
        finally:
            self._save_finally()

    # Load

    def _load(self) -> None:
        state = self._checkpoint.load()
        self._listed_at = state.listed_at
        for project_id, seen in state.projects.items():
            if self._options.wants_project(project_id):
                self._projects[project_id] = FollowedProject({"id": project_id}, seen)

    # Poll

    def _poll(self, name: str) -> Result:
        """Send the requests of one poll, in a thread of its own; changes nothing."""
        try:
            if name == PROJECT_LIST:
                return list_projects(self._client, page_size=self._options.page_size)
            return poll_operations(self._client, name, self._projects[name].seen, self._options.actions)
        except NotFound as error:
            return error if name == PROJECT_LIST else None
        except RequestFailed as error:
            return error

    async def _process(self, name: str, result: Result) -> None:
        """Act on the result of a poll. Raises an error that retrying can't fix."""
        has_changed = False
        if isinstance(result, RequestFailed):
            if isinstance(result, Unauthorized) or not (self._is_connected or result.transient):
                raise result
            self._error_log.failed(name, result)
        else:
            self._error_log.succeeded(name)
            if isinstance(result, Projects):
                has_changed = self._update_projects(result)
            elif result:
                has_changed = await self._report(self._projects[name], result)
        if self._is_over(name, result):
            self._schedule.remove(name)
            del self._projects[name]
            self._checkpoint.mark_changed()
        else:
            self._schedule.polled(name, has_changed)

    def _is_over(self, name: str, result: Result) -> bool:
        """Whether a project is deleted and has nothing more to report."""
        if name == PROJECT_LIST or isinstance(result, RequestFailed) or self._projects[name].is_listed:
            return False
        return result is None or not self._projects[name].seen.unfinished(self._options.actions)

    def _update_projects(self, found: Projects) -> bool:
        """Follow new projects, poll deleted ones once more; returns whether there are new ones."""
        listed = {project["id"]: project for project in found.projects if self._options.wants_project(project["id"])}
        new_since = self._new_since()
        for project_id, project in listed.items():
            self._projects.setdefault(project_id, FollowedProject(project, SeenOperations(new_since)))
        new = [project_id for project_id in self._projects if project_id not in self._schedule]
        for project_id, followed in self._projects.items():
            was_listed = followed.is_listed
            followed.is_listed = project_id in listed or project_id in found.unavailable_ids
            followed.project = listed.get(project_id, followed.project)
            if project_id in new or (was_listed and not followed.is_listed):
                self._schedule.poll_now(project_id)
        if new:
            self._checkpoint.mark_changed()
        if not self._is_connected:
            self._is_connected = True
            self._warn_of_unknown_values()
        self._listed_at = self._client.service_now()
        return bool(new)

    def _new_since(self) -> datetime:
        """Since when operations of a project that was not listed before are new, by the service's clock."""
        if self._listed_at:
            return self._listed_at - CLOCK_TOLERANCE
        running = timedelta(seconds=self._clock.monotonic() - self._started)
        return self._client.service_now() - running - self._options.backfill

    def _warn_of_unknown_values(self) -> None:
        for warning in self._options.warnings():
            logger.warning("%s", warning)
        unknown = sorted(set(self._options.project_ids) - set(self._projects))
        if unknown:
            logger.warning("project_ids: The account has no project %s at present.", ", ".join(unknown))

    # Emit

    async def _report(self, followed: FollowedProject, result: PollResult) -> bool:
        """Emit an event for each wanted change, and remember it. Returns whether there were changes."""
        has_changed = False
        seen = followed.seen
        seen.remember_past(result)
        for change in seen.changes(result):
            if self._options.wants_action(change.operation.get("action")):
                has_changed = True
                if self._options.wants_status(change.operation["status"]):
                    await self._emitter.emit(event_of(change, followed.project))
                    self._latest = seen, change
            seen.remember(change.operation)
            self._checkpoint.mark_changed()
            await self._save(is_idle=False)
        if seen.complete(result):
            self._checkpoint.mark_changed()
        return has_changed

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
        return State(self._listed_at, {project_id: followed.seen for project_id, followed in self._projects.items()})
