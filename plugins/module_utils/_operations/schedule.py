# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When to look again: short pauses that grow, and a deadline that no pause runs past."""

from __future__ import annotations

from .._clock import Clock

FIRST_PAUSE = 0.2
GROWTH = 1.5


class Schedule:
    """The looks of one wait: C(timeout) and C(interval) (the longest pause) in seconds, by the monotonic clock."""

    def __init__(
        self, clock: Clock, timeout: float, interval: float, elapsed: float = 0.0, next_pause: float = FIRST_PAUSE
    ):
        """C(elapsed) and C(next_pause) are for a wait that goes on where another process has left it."""
        self._clock = clock
        self._started = clock.monotonic() - elapsed
        self._timeout = timeout
        self._interval = interval
        self.next_pause = min(next_pause, interval)

    def elapsed(self) -> float:
        """Seconds since the wait began."""
        return self._clock.monotonic() - self._started

    def remaining(self) -> float:
        """Seconds until the deadline; 0 when it is past."""
        return max(0.0, self._timeout - self.elapsed())

    def pause(self, longer: float | None = None) -> bool:
        """Sleep until the next look, at least C(longer) seconds, yet not past the deadline.

        False when the deadline had come already, so that there is no next look.
        """
        remaining = self.remaining()
        if not remaining:
            return False
        self._clock.sleep(min(max(self.next_pause, longer or 0.0), remaining))
        self.next_pause = min(self.next_pause * GROWTH, self._interval)
        return True
