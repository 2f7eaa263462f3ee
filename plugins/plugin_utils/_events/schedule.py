# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""When each project is polled: the busy ones by due time, the quiet ones in turn. Keeps P12 (quick) for accounts of any size."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import islice

from ...module_utils._clock import Clock

# A project is busy for this many seconds after a change.
BUSY_SECONDS = 300.0
# After this many polls of others, a quiet project is polled, although others are due.
POLLS_PER_QUIET_ONE = 2
# The growth of intervals from one failed poll to the next.
GROWTH = 1.5
# A poll is due this many seconds early, because a sleep or a rounded sum may end a little too early.
TOLERANCE = 0.001


@dataclass
class _Project:
    """C(polls_again): it is polled again at once, because its running poll may have begun before the change."""

    interval: float
    is_quiet: bool
    changed_at: float = -math.inf
    polls_again: bool = False


class Schedule:
    """Which project to poll next. It is not polled again before its poll has ended.

    - A project is busy for BUSY_SECONDS after a change, and polled every C(interval) seconds. With unfinished operations it
      remains so, but is polled every C(max_interval) seconds.
    - The others are quiet. They are polled in turn, every C(max_interval) seconds, or as often as the requests allow that the
      busy ones leave.
    """

    def __init__(self, interval: float, max_interval: float, clock: Clock):
        self._interval = interval
        self._max_interval = max_interval
        self._clock = clock
        self._projects: dict[str, _Project] = {}
        # When the busy projects are due, and the quiet ones in the order of their turns. Those in neither are being polled.
        self._busy: dict[str, float] = {}
        self._quiet: dict[str, float] = {}
        self._polls_since_quiet_one = 0

    def add(self, names: list[str]) -> None:
        """Poll new projects as soon as possible, in this order, without delaying busy ones."""
        now = self._clock.monotonic()
        self._projects.update((name, _Project(self._max_interval, is_quiet=True)) for name in names)
        self._quiet = {**dict.fromkeys(names, now), **self._quiet}

    def add_busy(self, name: str) -> None:
        """Poll this name at once. It is no project, so call poll_after() rather than polled() afterwards."""
        self._projects[name] = _Project(self._interval, is_quiet=False)
        self._busy[name] = self._clock.monotonic()

    def poll_soon(self, name: str) -> None:
        """Poll this project, which is likely to have changed, before the other quiet ones; busy ones are polled soon anyway."""
        if self._quiet.pop(name, None) is not None:
            self._busy[name] = self._clock.monotonic()
        elif name not in self._busy:
            self._projects[name].polls_again = True

    def polls_again(self, name: str) -> bool:
        """Whether poll_soon() was called while this project was being polled."""
        return self._projects[name].polls_again

    def remove(self, name: str) -> None:
        """Poll this project no more after its poll has ended."""
        del self._projects[name]

    def due(self) -> float:
        """The moment when start() returns a name; infinite if there is none, or a poll has to end before."""
        return min([*self._busy.values(), *islice(self._quiet.values(), 1)], default=math.inf)

    def start(self) -> str | None:
        """Start a poll, if any is due: the project's name. Call polled(), failed() or remove() once it was polled."""
        latest = self._clock.monotonic() + TOLERANCE
        busy = min((name for name, at in self._busy.items() if at <= latest), key=self._busy.__getitem__, default=None)
        quiet = next((name for name, at in islice(self._quiet.items(), 1) if at <= latest), None)
        if quiet is not None and (busy is None or self._polls_since_quiet_one >= POLLS_PER_QUIET_ONE):
            self._polls_since_quiet_one = 0
            del self._quiet[quiet]
            return quiet
        if busy is not None:
            self._polls_since_quiet_one += 1
            del self._busy[busy]
        return busy

    def polled(self, name: str, seconds_since_change: float | None, has_unfinished: bool) -> None:
        """Set the next poll of this project after a poll that has succeeded, and may have found a change."""
        now, project = self._clock.monotonic(), self._projects[name]
        if seconds_since_change is not None:
            project.changed_at = now - seconds_since_change
        has_changed = now - project.changed_at < BUSY_SECONDS
        project.is_quiet = not has_changed and not has_unfinished
        self.poll_after(name, self._interval if has_changed else self._max_interval)

    def failed(self, name: str) -> None:
        """Set the next poll of this project after a poll that has failed."""
        self.poll_after(name, min(self._projects[name].interval * GROWTH, self._max_interval))

    def retry(self, name: str, pause: float) -> None:
        """Poll this name again after this pause, even if failed() has set a longer one."""
        self._quiet.pop(name, None)
        self._busy[name] = self._clock.monotonic() + pause

    def poll_after(self, name: str, interval: float) -> None:
        """Poll this name again after this interval."""
        project = self._projects[name]
        project.interval = interval
        queue = self._quiet if project.is_quiet and not project.polls_again else self._busy
        queue[name] = self._clock.monotonic() + (0.0 if project.polls_again else interval)
        project.polls_again = False
