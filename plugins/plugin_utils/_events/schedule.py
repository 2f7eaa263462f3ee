# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When each project is polled."""

from __future__ import annotations

import heapq
import math
from enum import Enum
from typing import NamedTuple

from ...module_utils._clock import Clock
from .outage import GROWTH

# A project is busy for this many seconds after a change.
BUSY_SECONDS = 300.0
# Up to this many intervals, a project is busy. It is late if it was polled longer ago, but for a reserve.
BUSY_INTERVALS = 2
RESERVED_INTERVALS = 0.5
# Later on, the interval without unfinished operations, as a share of the time since the last change.
SHARE_OF_QUIET_TIME = 1 / 4
# The same with unfinished operations.
SHARE_OF_LONG_OPERATION = 1 / 60
# A poll is due this many seconds early, because a sleep or a rounded sum may end a little too early.
TOLERANCE = 0.001


class Group(Enum):
    """Projects are busy (polled every few intervals), have changed before that, or are idle and are polled in turn."""

    BUSY = 1
    RECENT = 2
    IDLE = 3


BUSY_FIRST = (Group.BUSY, Group.RECENT, Group.IDLE)
RECENT_FIRST = (Group.RECENT, Group.IDLE, Group.BUSY)
IDLE_FIRST = (Group.IDLE, Group.RECENT, Group.BUSY)
# The order of the groups for each poll, in turn: three of five polls are those of busy projects, if there are as many, or four
# of five while busy projects are late. No group starves another one.
TURNS = (
    BUSY_FIRST,
    RECENT_FIRST,
    BUSY_FIRST,
    IDLE_FIRST,
    BUSY_FIRST,
    BUSY_FIRST,
    IDLE_FIRST,
    BUSY_FIRST,
    RECENT_FIRST,
    BUSY_FIRST,
)
TURNS_OF_LATE = (1, 6)


class _Poll(NamedTuple):
    """What is known of a name: C(changed_at) is when a change was last seen, C(number) that of its entry in the queue.

    C(moment) is when the next poll is due, or for an idle project when the previous one was.
    """

    group: Group
    moment: float
    interval: float
    changed_at: float | None
    number: int = 0


class _Entry(NamedTuple):
    """A name in the queue of its group."""

    moment: float
    number: int
    name: str


class Schedule:
    """Which name to poll next. A name is not polled again before its poll has ended.

    - A project is busy for BUSY_SECONDS after a change, and polled every C(interval) seconds, or up to about 2 * C(interval) when
      there are many. Afterwards, the interval grows with the time since the last change: to a quarter of it, or with unfinished
      operations to a sixtieth of it and to C(max_interval).
    - A project whose interval would be longer than a round through the idle ones is idle. These are polled in turn, no more
      often than every C(max_interval) seconds, with all polls that the others leave.
    - When more polls are due than can be sent, three of five are for busy projects, or four of five while these are late.
    """

    def __init__(self, interval: float, max_interval: float, clock: Clock):
        self._interval = interval
        self._max_interval = max_interval
        self._clock = clock
        self._polls: dict[str, _Poll] = {}
        # A name whose entry was replaced keeps the old one until that comes first.
        self._queues: dict[Group, list[_Entry]] = {group: [] for group in Group}
        self._running: set[str] = set()
        # Those whose running poll may have begun before the change.
        self._polled_soon_again: set[str] = set()
        self._entries = 0
        self._turn = 0

    def __contains__(self, name: str) -> bool:
        return name in self._polls

    def add(self, name: str, group: Group) -> None:
        """Poll a new name as soon as it is the turn of this group."""
        now = self._clock.monotonic()
        changed_at = now if group is Group.BUSY else None
        moment = now - self._max_interval if group is Group.IDLE else now
        self._push(name, _Poll(group, moment, self._interval, changed_at))

    def poll_soon(self, name: str) -> None:
        """Poll this name, which is likely to have changed, before the idle ones."""
        now, poll = self._clock.monotonic(), self._polls[name]
        if name in self._running:
            self._polled_soon_again.add(name)
        # It keeps its place among those that are due.
        elif poll.group is Group.IDLE or poll.moment > now:
            self._push(name, poll._replace(group=poll.group if poll.group is Group.BUSY else Group.RECENT, moment=now))

    def remove(self, name: str) -> None:
        """Poll this name no more."""
        del self._polls[name]
        self._running.discard(name)
        self._polled_soon_again.discard(name)

    def start(self) -> str | None:
        """Start a poll, if any is due: its name. Call polled(), failed() or remove() once it was polled."""
        now = self._clock.monotonic()
        turn = self._turn % len(TURNS)
        for group in BUSY_FIRST if turn in TURNS_OF_LATE and self._is_late() else TURNS[turn]:
            if self._due(group) <= now + TOLERANCE:
                entry = heapq.heappop(self._queues[group])
                self._running.add(entry.name)
                self._turn += 1
                return entry.name
        return None

    def delay(self) -> float:
        """The seconds by which the next poll of a busy project is overdue."""
        return max(0.0, self._clock.monotonic() - self._due(Group.BUSY))

    def _is_late(self) -> bool:
        return self.delay() >= self._interval * (BUSY_INTERVALS - 1 - RESERVED_INTERVALS)

    def pause(self) -> float:
        """The seconds until start() returns a name; infinite if there is none, or a poll has to end before."""
        return max(0.0, min(map(self._due, Group)) - self._clock.monotonic())

    def polled(self, name: str, seconds_since_change: float | None, has_unfinished: bool) -> None:
        """Set the next poll of this project after a poll that has succeeded, and may have found a change."""
        now = self._clock.monotonic()
        changed_at = self._polls[name].changed_at
        if seconds_since_change is not None:
            changed_at = now - seconds_since_change
        elif has_unfinished and changed_at is None:
            changed_at = now
        quiet = math.inf if changed_at is None else now - changed_at
        interval = self._interval
        if has_unfinished:
            interval = max(interval, min(quiet * SHARE_OF_LONG_OPERATION, self._max_interval))
        elif quiet >= BUSY_SECONDS:
            interval = max(interval, quiet * SHARE_OF_QUIET_TIME)
        if interval >= self._round_through_idle() and not has_unfinished:
            self._push(name, _Poll(Group.IDLE, now, self._max_interval, changed_at))
        else:
            self._push(name, _Poll(self._group(interval), now + interval, interval, changed_at))

    def failed(self, name: str) -> None:
        """Set the next poll of this project after a poll that has failed."""
        now = self._clock.monotonic()
        poll = self._polls[name]
        interval = min(poll.interval * GROWTH, self._max_interval)
        moment = now if poll.group is Group.IDLE else now + interval
        self._push(name, poll._replace(moment=moment, interval=interval))

    def _group(self, interval: float) -> Group:
        return Group.BUSY if interval <= self._interval * BUSY_INTERVALS else Group.RECENT

    def _push(self, name: str, poll: _Poll) -> None:
        self._running.discard(name)
        self._entries += 1
        self._polls[name] = poll._replace(number=self._entries)
        heapq.heappush(self._queues[poll.group], _Entry(poll.moment, self._entries, name))
        if name in self._polled_soon_again:
            self._polled_soon_again.remove(name)
            self.poll_soon(name)

    def _head(self, group: Group) -> _Entry | None:
        """The first entry of a queue that was not replaced; those before it are dropped."""
        queue = self._queues[group]
        while queue:
            poll = self._polls.get(queue[0].name)
            if poll and poll.number == queue[0].number:
                return queue[0]
            heapq.heappop(queue)
        return None

    def _due(self, group: Group) -> float:
        """When the next poll of this group is due."""
        entry = self._head(group)
        if entry is None:
            return math.inf
        return entry.moment + (self._max_interval if group is Group.IDLE else 0.0)

    def _round_through_idle(self) -> float:
        """The seconds that a round through the idle projects takes: how long ago the next one was polled."""
        entry = self._head(Group.IDLE)
        return max(self._max_interval, self._clock.monotonic() - entry.moment) if entry else self._max_interval
