# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When each project is polled: a queue by due time, and one of the quiet projects. Keeps P12 (quick) for accounts of any size."""

from __future__ import annotations

import heapq
import math
from collections import OrderedDict
from dataclasses import dataclass
from typing import NamedTuple

from ...module_utils._clock import Clock

# A project is busy for this many seconds after a change.
BUSY_SECONDS = 300.0
# With unfinished operations, the interval is at least this share of the time since the last change.
SHARE_OF_LONG_OPERATION = 1 / 60
# After this many polls of others, a quiet project is polled, although others are due.
POLLS_PER_QUIET_ONE = 2
# The growth of intervals from one failed poll to the next.
GROWTH = 1.5
# A poll is due this many seconds early, because a sleep or a rounded sum may end a little too early.
TOLERANCE = 0.001


@dataclass
class _Project:
    """When the next poll is due (infinite while one is running) and after which interval; when a change was last seen.

    A project with C(is_soon) is polled again at once, because its running poll may have begun before the change.
    """

    due: float
    interval: float
    changed_at: float | None = None
    is_quiet: bool = True
    is_soon: bool = False


class _Entry(NamedTuple):
    due: float
    number: int
    name: str


class Schedule:
    """Which project to poll next. It is not polled again before its poll has ended.

    - A project is busy for BUSY_SECONDS after a change, and polled every C(interval) seconds. With unfinished operations it remains
      so, but the interval grows to a sixtieth of the time since the last change, and to C(max_interval).
    - The others are quiet. They are polled in turn, every C(max_interval) seconds, or as often as the requests allow that the busy
      ones leave.
    """

    def __init__(self, interval: float, max_interval: float, clock: Clock):
        self._interval = interval
        self._max_interval = max_interval
        self._clock = clock
        self._projects: dict[str, _Project] = {}
        # The moments when the quiet projects are due, in the order in which they are polled.
        self._quiet: OrderedDict[str, float] = OrderedDict()
        # The other ones. An entry counts if the project is still due then; the others are dropped when they come first.
        self._queue: list[_Entry] = []
        self._entries = 0
        self._polls_since_quiet_one = 0

    def __contains__(self, name: str) -> bool:
        return name in self._projects

    def add(self, names: list[str]) -> None:
        """Poll new projects as soon as possible, in this order, without delaying busy ones."""
        now = self._clock.monotonic()
        for name in reversed(names):
            self._projects[name] = _Project(now, self._max_interval)
            self._quiet[name] = now
            self._quiet.move_to_end(name, last=False)

    def poll_soon(self, name: str) -> None:
        """Poll this project, which is likely to have changed, before the other quiet ones; busy ones are polled soon anyway."""
        if self._projects[name].due == math.inf:
            self._projects[name].is_soon = True
        elif self._quiet.pop(name, None) is not None:
            self._push(name, self._clock.monotonic())

    def remove(self, name: str) -> None:
        """Poll this project no more."""
        del self._projects[name]
        self._quiet.pop(name, None)

    def due(self) -> float:
        """The moment when start() returns a name; infinite if there is none, or a poll has to end before."""
        return min(self._queue_due(), self._quiet_due())

    def start(self) -> str | None:
        """Start a poll, if any is due: the project's name. Call polled(), failed() or remove() once it was polled."""
        latest = self._clock.monotonic() + TOLERANCE
        if self.due() > latest:
            return None
        is_turn_of_quiet = self._polls_since_quiet_one >= POLLS_PER_QUIET_ONE or self._queue_due() > latest
        if is_turn_of_quiet and self._quiet_due() <= latest:
            name, _due = self._quiet.popitem(last=False)
            self._polls_since_quiet_one = 0
        else:
            name = heapq.heappop(self._queue).name
            self._polls_since_quiet_one += 1
        self._projects[name].due = math.inf
        return name

    def polled(self, name: str, seconds_since_change: float | None, has_unfinished: bool) -> None:
        """Set the next poll of this project after a poll that has succeeded, and may have found a change."""
        now, project = self._clock.monotonic(), self._projects[name]
        if seconds_since_change is not None:
            project.changed_at = now - seconds_since_change
        elif has_unfinished and project.changed_at is None:
            project.changed_at = now
        quiet = math.inf if project.changed_at is None else now - project.changed_at
        project.is_quiet = not has_unfinished and quiet >= BUSY_SECONDS
        project.interval = self._interval
        if project.is_quiet:
            project.interval = self._max_interval
        elif has_unfinished:
            project.interval = max(self._interval, min(quiet * SHARE_OF_LONG_OPERATION, self._max_interval))
        self._wait(name)

    def failed(self, name: str) -> None:
        """Set the next poll of this project after a poll that has failed."""
        project = self._projects[name]
        project.interval = min(project.interval * GROWTH, self._max_interval)
        self._wait(name)

    def _wait(self, name: str) -> None:
        project, now = self._projects[name], self._clock.monotonic()
        if project.is_quiet and not project.is_soon:
            project.due = self._quiet[name] = now + project.interval
        else:
            self._push(name, now if project.is_quiet else now + project.interval)
        project.is_soon = False

    def _push(self, name: str, due: float) -> None:
        self._projects[name].due = due
        self._entries += 1
        heapq.heappush(self._queue, _Entry(due, self._entries, name))

    def _quiet_due(self) -> float:
        return next(iter(self._quiet.values()), math.inf)

    def _queue_due(self) -> float:
        while self._queue:
            entry = self._queue[0]
            if entry.name in self._projects and self._projects[entry.name].due == entry.due:
                return entry.due
            heapq.heappop(self._queue)
        return math.inf
