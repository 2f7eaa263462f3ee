# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When each project is polled: one queue by due time. Keeps P12 (quick) for accounts of any size."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from typing import NamedTuple

from ...module_utils._clock import Clock

# A project is busy for this many seconds after a change.
BUSY_SECONDS = 300.0
# Later on, the interval without unfinished operations, as a share of the time since the last change.
SHARE_OF_QUIET_TIME = 1 / 4
# The same with unfinished operations.
SHARE_OF_LONG_OPERATION = 1 / 60
# The share of the requests that is left to the quiet projects, whatever the others need.
MIN_SHARE_OF_QUIET = 1 / 4
# The rest is for the project list, and for polls that take several requests.
SHARE_OF_PROJECTS = 0.85
# The growth of intervals from one failed poll to the next.
GROWTH = 1.5
# A poll is due this many seconds early, because a sleep or a rounded sum may end a little too early.
TOLERANCE = 0.001


@dataclass
class _Project:
    """When the next poll is due (infinite while one is running) and after which interval; when a change was last seen.

    A project with C(is_quiet) is polled in a round through all that are. One with C(is_soon) is polled again at once, because
    its running poll may have begun before the change.
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

    - A project is busy for BUSY_SECONDS after a change, and polled every C(interval) seconds. Afterwards, the interval grows with
      the time since the last change: to a quarter of it, or with unfinished operations to a sixtieth of it and to C(max_interval).
    - Once the interval is as long as a round through all quiet projects, the project is polled at the end of the next one. A round
      takes C(max_interval), or what it takes with the requests that the others leave, which are at least MIN_SHARE_OF_QUIET.
    """

    def __init__(self, interval: float, max_interval: float, spacing: float, clock: Clock):
        self._interval = interval
        self._max_interval = max_interval
        self._requests_per_second = 1 / spacing
        self._clock = clock
        self._projects: dict[str, _Project] = {}
        # An entry counts if the project is still due then; the others are dropped when they come first.
        self._queue: list[_Entry] = []
        self._entries = 0
        # The polls per second of the projects that are not quiet, and when the last one of the others is due.
        self._demand = 0.0
        self._last_of_round = clock.monotonic()

    def __contains__(self, name: str) -> bool:
        return name in self._projects

    def add(self, names: list[str]) -> None:
        """Poll new projects as soon as possible, in this order, without delaying others."""
        now = self._clock.monotonic()
        for number, name in enumerate(names):
            self._projects[name] = _Project(now, self._max_interval)
            self._push(name, now + number * self._spacing_of_quiet())
            self._last_of_round = max(self._last_of_round, self._projects[name].due)

    def poll_soon(self, name: str) -> None:
        """Poll this project, which is likely to have changed, at once."""
        project, now = self._projects[name], self._clock.monotonic()
        if project.due == math.inf:
            project.is_soon = True
        elif project.due > now:
            self._push(name, now)

    def remove(self, name: str) -> None:
        """Poll this project no more."""
        self._count(self._projects.pop(name), -1)

    def due(self) -> float:
        """The moment when start() returns a name; infinite if there is none, or a poll has to end before."""
        while self._queue:
            entry = self._queue[0]
            if entry.name in self._projects and self._projects[entry.name].due == entry.due:
                return entry.due
            heapq.heappop(self._queue)
        return math.inf

    def start(self) -> str | None:
        """Start a poll, if any is due: the project's name. Call polled(), failed() or remove() once it was polled."""
        if self.due() > self._clock.monotonic() + TOLERANCE:
            return None
        name = heapq.heappop(self._queue).name
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
        self._count(project, -1)
        if has_unfinished:
            interval = max(self._interval, min(quiet * SHARE_OF_LONG_OPERATION, self._max_interval))
        else:
            interval = self._interval if quiet < BUSY_SECONDS else max(self._interval, quiet * SHARE_OF_QUIET_TIME)
        last_of_round = max(now + self._max_interval, self._last_of_round + self._spacing_of_quiet())
        project.is_quiet = not has_unfinished and now + interval >= last_of_round
        if project.is_quiet:
            self._last_of_round = last_of_round
        project.interval = last_of_round - now if project.is_quiet else interval
        self._count(project, 1)
        self._push(name, now + project.interval)

    def failed(self, name: str) -> None:
        """Set the next poll of this project after a poll that has failed."""
        project = self._projects[name]
        self._count(project, -1)
        project.interval = min(project.interval * GROWTH, self._max_interval)
        self._count(project, 1)
        self._push(name, self._clock.monotonic() + project.interval)

    def _count(self, project: _Project, number: int) -> None:
        if not project.is_quiet:
            self._demand += number / project.interval

    def _spacing_of_quiet(self) -> float:
        """The seconds from the poll of one quiet project to that of the next one."""
        left = self._requests_per_second * SHARE_OF_PROJECTS - self._demand
        return 1 / max(left, self._requests_per_second * MIN_SHARE_OF_QUIET)

    def _push(self, name: str, due: float) -> None:
        project = self._projects[name]
        project.due = self._clock.monotonic() if project.is_soon else due
        project.is_soon = False
        self._entries += 1
        heapq.heappush(self._queue, _Entry(project.due, self._entries, name))
