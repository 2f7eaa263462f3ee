# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Turns changes of operations into events, for as long as it is let (used by the event source)."""

from __future__ import annotations

import asyncio
import copy
import logging
import threading
import time
import uuid
from collections.abc import Awaitable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Callable, Protocol, Union

from ...module_utils._clock import SYSTEM_CLOCK, Clock
from ...module_utils._errors import InvalidOption, NotFound, RequestFailed, Unauthorized
from ...module_utils._http.client import Client
from ...module_utils._http.connection import Connection
from ...module_utils._http.response import Response
from ...module_utils._projects import Projects, list_projects
from ...module_utils._timestamps import parse_timestamp
from .changes import Change, Known, Look, SeenOperations, poll_changes
from .options import ChangeOptions
from .state_file import StateFile

WORKERS = 4
GROWTH = 1.5
# The clocks of the service's machines may differ by so much.
CLOCK_TOLERANCE = timedelta(seconds=60)
SECONDS_BETWEEN_SAVES = 1.0
# How long the rules may take to take an event.
PATIENCE = 60.0
EVENT_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "clouddb.control.operations")

Outcome = Union[Projects, Look, RequestFailed]

logger = logging.getLogger("clouddb.control.operations")


class EventQueue(Protocol):
    """What a rulebook gives an event source to put its events in."""

    async def put(self, event: Any, /) -> None:
        """Put one event there."""


class PacedClient(Client):
    """Spaces its requests evenly, so that there are never more than so many a minute."""

    def __init__(self, connection: Connection, clock: Clock, requests_per_minute: int):
        super().__init__(connection, clock)
        self._space = 60 / requests_per_minute
        self._next = clock.monotonic()
        self._lock = threading.Lock()

    def get(self, *segments: str | int, query: Mapping[str, Any] | None = None) -> Response:
        with self._lock:
            pause = self._next - self.clock.monotonic()
            if pause > 0:
                self.clock.sleep(pause)
            self._next = max(self._next, self.clock.monotonic()) + self._space
        return super().get(*segments, query=query)


class Target:
    """What is looked at again and again: a project's operations, or (without a memory) the list of projects.

    C(pause) and C(due) are seconds, of the monotonic clock.
    """

    def __init__(self, project: dict[str, Any], memory: SeenOperations | None, due: float, pause: float):
        self.project = project
        self.memory = memory
        self.due = due
        self.pause = pause
        self.is_listed = True


class ChangeSource:
    """Follows the operations of the account's projects."""

    def __init__(
        self,
        options: ChangeOptions,
        queue: EventQueue,
        feedback: asyncio.Queue[Any] | None = None,
        clock: Clock = SYSTEM_CLOCK,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ):
        """C(feedback) brings back each event that the rules have taken in, where the rulebook asks for that."""
        self._options = options
        self._queue = queue
        self._feedback = feedback
        self._clock = clock
        self._sleep = sleep
        self._client = PacedClient(options.connection, clock, options.requests_per_minute)
        self._list = Target({}, None, clock.monotonic(), options.interval)
        self._targets: dict[str, Target] = {}
        self._loaded: dict[str, SeenOperations] = {}
        self._listed_at: datetime | None = None
        self._began = clock.monotonic()
        self._is_connected = False
        self._failing: set[str] = set()
        self._failing_since = 0.0
        self._failures = 0
        self._resume = clock.monotonic()
        self._file = StateFile(options.state_file) if options.state_file else None
        self._is_saved = True
        self._saved = clock.monotonic()
        self._last_put: tuple[SeenOperations, str, Known | None] | None = None

    async def run(self) -> None:
        """Put events into the queue until cancelled. Raises ClouddbError when there is no use in going on."""
        self._load()
        try:
            while True:
                await self._pause()
                batch = self._due()
                outcomes = await asyncio.gather(*(asyncio.to_thread(self._look, target) for target in batch))
                for target, outcome in zip(batch, outcomes):
                    await self._take(target, outcome)
                self._note_service(outcomes)
        finally:
            self._save()

    # When to look

    async def _pause(self) -> None:
        targets = [self._list, *self._targets.values()]
        pause = max(self._resume, min(target.due for target in targets)) - self._clock.monotonic()
        await self._checkpoint(at_once=pause > 0)
        await self._sleep(max(0.0, pause))

    def _due(self) -> list[Target]:
        """Those that have waited longest; only one while the service does not respond."""
        now = self._clock.monotonic()
        due = [target for target in [self._list, *self._targets.values()] if target.due <= now]
        return sorted(due, key=lambda target: target.due)[: 1 if self._failures else WORKERS]

    def _set_due(self, target: Target, has_changed: bool) -> None:
        target.pause = self._options.interval if has_changed else min(target.pause * GROWTH, self._options.max_interval)
        target.due = self._clock.monotonic() + target.pause

    # Faults

    def _note_fault(self, target: Target, fault: RequestFailed) -> None:
        """Try again later, and say so once; raises a fault that does not pass."""
        if isinstance(fault, Unauthorized) or not (self._is_connected or fault.transient):
            raise fault
        now = self._clock.monotonic()
        name = target.project.get("id", "")
        if not self._failing:
            self._failing_since = now
            logger.warning("%s; trying again, with pauses that grow to %g s", fault, self._options.max_interval)
        self._failing.add(name)
        self._set_due(target, has_changed=False)
        self._resume = max(self._resume, now + (fault.retry_after or 0.0))

    def _note_service(self, outcomes: Sequence[Outcome]) -> None:
        """Slow down while nothing at all is answered."""
        if not outcomes or any(isinstance(outcome, (Projects, Look, NotFound)) for outcome in outcomes):
            self._failures = 0
            return
        pause = min(self._options.interval * GROWTH ** min(self._failures, 30), self._options.max_interval)
        self._failures += 1
        self._resume = max(self._resume, self._clock.monotonic() + pause)

    def _note_recovery(self, target: Target) -> None:
        name = target.project.get("id", "")
        if name in self._failing:
            self._failing.remove(name)
            if not self._failing:
                logger.warning("the service answers again, after %.0f s", self._clock.monotonic() - self._failing_since)

    # What a look has brought

    def _look(self, target: Target) -> Outcome:
        """One look, in a thread of its own; changes nothing here."""
        try:
            if target.memory is None:
                return list_projects(self._client, page_size=self._options.page_size)
            return poll_changes(self._client, target.project["id"], target.memory, self._options.actions)
        except RequestFailed as fault:
            return fault

    async def _take(self, target: Target, outcome: Outcome) -> None:
        if target.memory and isinstance(outcome, NotFound):
            # It is being deleted; the next list of projects will tell.
            self._set_due(target, has_changed=False)
            if not target.is_listed:
                self._forget(target)
        elif isinstance(outcome, RequestFailed):
            self._note_fault(target, outcome)
        elif isinstance(outcome, Projects):
            self._take_projects(outcome)
            self._note_recovery(target)
        elif target.memory:
            await self._tell(target, target.memory, outcome)
            self._note_recovery(target)

    def _take_projects(self, found: Projects) -> None:
        """Begin to follow new projects; have a last look at those that are gone."""
        now = self._clock.monotonic()
        listed = {project["id"]: project for project in found.projects if self._is_wanted(project["id"])}
        service_now = self._client.service_now()
        if self._listed_at:
            beginning = self._listed_at - CLOCK_TOLERANCE
        else:
            beginning = service_now - timedelta(seconds=now - self._began) - self._options.backfill
        new = {
            name: Target({"id": name}, memory, now, self._options.interval)
            for name, memory in self._loaded.items()
            if self._is_wanted(name)
        }
        for name in listed:
            if name not in self._targets and name not in new:
                new[name] = Target({}, SeenOperations(beginning), now, self._options.interval)
        self._targets.update(new)
        self._loaded = {}
        for name, target in self._targets.items():
            target.project = listed.get(name, target.project)
            is_listed = name in listed or name in found.unavailable_ids
            if target.is_listed and not is_listed:
                target.due = now
            target.is_listed = is_listed
        if not self._is_connected:
            self._is_connected = True
            unknown = sorted(set(self._options.project_ids) - set(self._targets))
            if unknown:
                logger.warning("project_ids: the account has no project %s at present", ", ".join(unknown))
        self._listed_at = service_now
        self._is_saved = self._is_saved and not new
        self._set_due(self._list, has_changed=bool(new))

    def _is_wanted(self, project_id: str) -> bool:
        return not self._options.project_ids or project_id in self._options.project_ids

    async def _tell(self, target: Target, memory: SeenOperations, look: Look) -> None:
        """Put an event into the queue for each change, and remember it as told as soon as it is."""
        has_changed = False
        self._is_saved = self._is_saved and not (memory.since or look.gone)
        for change in memory.changes(look):
            if self._options.wants_action(change.operation.get("action")):
                has_changed = True
                if self._options.wants_status(change.operation["status"]):
                    await self._put(event_of(change, target.project))
                    self._last_put = (memory, change.operation["id"], memory.known.get(change.operation["id"]))
            memory.note(change.operation)
            self._is_saved = False
            await self._checkpoint()
        memory.all_told(look)
        self._set_due(target, has_changed)
        if not target.is_listed and not memory.followed(self._options.actions):
            self._forget(target)

    def _forget(self, target: Target) -> None:
        """Let go of a project that is gone and has nothing more to tell."""
        self._note_recovery(target)
        del self._targets[target.project["id"]]
        self._is_saved = False

    async def _put(self, event: dict[str, Any]) -> None:
        told = event["meta"]["uuid"]
        await self._queue.put(event)
        if self._feedback is None:
            return
        try:
            while (await asyncio.wait_for(self._feedback.get(), PATIENCE))["meta"]["uuid"] != told:
                pass
        except asyncio.TimeoutError:
            logger.warning("the rules have not confirmed an event within %g s; going on without", PATIENCE)

    # What outlives a restart

    def _load(self) -> None:
        """Take up what another run has left. Raises InvalidOption when the file is of no use, or can't be written."""
        if self._file is None:
            return
        state = self._file.read()
        if state is not None:
            try:
                self._loaded = {name: SeenOperations.from_json(saved) for name, saved in state["projects"].items()}
                self._listed_at = state["listed_at"] and parse_timestamp(state["listed_at"])
                base_url = state["base_url"]
            except (AttributeError, KeyError, TypeError, ValueError):
                raise InvalidOption(
                    "state_file", f"{self._file.path} does not hold the state of this event source"
                ) from None
            if base_url != self._options.connection.base_url:
                raise InvalidOption(
                    "state_file", f"{self._file.path} is about another base_url, {base_url}; name another file"
                )
        self._file.write(self._state())

    def _state(self) -> dict[str, Any]:
        memories = {**self._loaded, **{name: target.memory for name, target in self._targets.items() if target.memory}}
        return {
            "base_url": self._options.connection.base_url,
            "listed_at": self._listed_at and self._listed_at.isoformat(),
            "projects": {name: memory.as_json() for name, memory in memories.items()},
        }

    async def _checkpoint(self, at_once: bool = False) -> None:
        """Save what is new, once the rules have taken it; not more than once a second, unless there is time for it."""
        if (
            self._file
            and not self._is_saved
            and (at_once or self._clock.monotonic() >= self._saved + SECONDS_BETWEEN_SAVES)
        ):
            give_up = time.monotonic() + PATIENCE
            while self._is_queue_filled() and time.monotonic() < give_up:
                await asyncio.sleep(0.02)
            self._is_saved = True
            await asyncio.to_thread(self._file.write, self._state())
            self._saved = self._clock.monotonic()

    def _save(self) -> None:
        """The last time, while everything ends: an event that is still in the queue is not told."""
        if self._file is None:
            return
        if self._last_put and self._is_queue_filled():
            memory, name, before = self._last_put
            if before:
                memory.known[name] = before
            else:
                memory.known.pop(name, None)
        self._file.write(self._state())

    def _is_queue_filled(self) -> bool:
        """Whether an event may wait to be taken; ansible-rulebook's queue, within the one with its filters, holds a single one."""
        empty = getattr(getattr(self._queue, "queue", self._queue), "empty", None)
        return empty is not None and not empty()


def event_of(change: Change, project: Mapping[str, Any]) -> dict[str, Any]:
    """The event that tells of a change; told again after a crash, it has the same C(meta.uuid).

    It is a copy, because filters of a rulebook may change it.
    """
    operation = change.operation
    name = " ".join(
        str(part)
        for part in (operation["id"], change.previous_status, operation["status"], operation.get("updated_at"))
    )
    told = {
        "operation": operation,
        "previous_status": change.previous_status,
        "project": project,
        "seconds": _seconds(operation),
    }
    return {"clouddb": copy.deepcopy(told), "meta": {"uuid": str(uuid.uuid5(EVENT_NAMESPACE, name))}}


def _seconds(operation: Mapping[str, Any]) -> float | None:
    """From its creation to its latest update, where the service tells both."""
    try:
        return (parse_timestamp(operation["updated_at"]) - parse_timestamp(operation["created_at"])).total_seconds()
    except (KeyError, ValueError, AttributeError):
        return None
