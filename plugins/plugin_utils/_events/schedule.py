# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When the project list and each project are polled."""

from __future__ import annotations

from typing import NamedTuple

from ...module_utils._clock import Clock

# Polls that are sent at the same time.
MAX_PARALLEL = 4
GROWTH = 1.5


class Round(NamedTuple):
    """The seconds to sleep, and the names to poll then."""

    pause: float
    names: list[str]


class _Poll(NamedTuple):
    """The next poll of something: its moment on the monotonic clock, and the seconds between polls."""

    due: float
    interval: float


class Schedule:
    """Polls each name after C(interval) seconds when it has changed, and less often, up to C(max_interval), when it has not.

    While the service is down, it polls one name at a time, with pauses that grow to C(max_interval) in the same way.
    """

    def __init__(self, interval: float, max_interval: float, clock: Clock):
        self._interval = interval
        self._max_interval = max_interval
        self._clock = clock
        self._polls: dict[str, _Poll] = {}
        self._failed_rounds = 0
        self._resume = clock.monotonic()

    def __contains__(self, name: str) -> bool:
        return name in self._polls

    def poll_now(self, name: str) -> None:
        """Poll this name, which may be a new one, as soon as possible."""
        interval = self._polls[name].interval if name in self._polls else self._interval
        self._polls[name] = _Poll(self._clock.monotonic(), interval)

    def remove(self, name: str) -> None:
        """Poll this name no more."""
        del self._polls[name]

    def next_round(self) -> Round:
        """What to poll next, those that have waited longest."""
        now = self._clock.monotonic()
        start = max(now, self._resume, min(poll.due for poll in self._polls.values()))
        names = [name for name, poll in self._polls.items() if poll.due <= start]
        names.sort(key=lambda name: self._polls[name].due)
        return Round(start - now, names[: 1 if self._failed_rounds else MAX_PARALLEL])

    def polled(self, name: str, has_changed: bool) -> None:
        """Set the next poll of this name."""
        longer = min(self._polls[name].interval * GROWTH, self._max_interval)
        interval = self._interval if has_changed else longer
        self._polls[name] = _Poll(self._clock.monotonic() + interval, interval)

    def end_round(self, is_service_down: bool, retry_after: float) -> None:
        """Delay the next round by C(retry_after) seconds, and by a growing pause when every poll of this one has failed."""
        pause = retry_after
        if is_service_down:
            # The exponent is bounded, as a float is.
            backoff = self._interval * GROWTH ** min(self._failed_rounds, 30)
            pause = max(pause, min(backoff, self._max_interval))
        self._failed_rounds = self._failed_rounds + 1 if is_service_down else 0
        self._resume = max(self._resume, self._clock.monotonic() + pause)
