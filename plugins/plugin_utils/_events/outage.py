# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many polls may run, and when the next one may begin, while polls fail."""

from __future__ import annotations

from ...module_utils._clock import Clock

# Polls that run at the same time.
MAX_PARALLEL = 4
# The growth of pauses from one failed poll to the next.
GROWTH = 1.5


class Outage:
    """When as many polls in a row have failed as run at the same time, the service is down.

    Then one poll at a time runs, after pauses that grow from C(interval) to C(max_interval) seconds.
    """

    def __init__(self, interval: float, max_interval: float, clock: Clock):
        self._interval = interval
        self._max_interval = max_interval
        self._clock = clock
        self._failures = 0
        self._resume = clock.monotonic()

    def limit(self) -> int:
        """How many polls may run at the same time."""
        return 1 if self._is_down() else MAX_PARALLEL

    def pause(self) -> float:
        """The seconds until the next poll may begin."""
        return max(0.0, self._resume - self._clock.monotonic())

    def seconds_since_pause(self) -> float:
        """How long polls have been allowed."""
        return max(0.0, self._clock.monotonic() - self._resume)

    def succeeded(self) -> None:
        """A poll has succeeded."""
        self._failures = 0

    def failed(self, retry_after: float) -> None:
        """A poll has failed; none begins within C(retry_after) seconds."""
        now = self._clock.monotonic()
        # During a pause, polls end that began before it: theirs is the failure that the pause is for.
        if now >= self._resume:
            if self._is_down():
                # The exponent is bounded, as a float is.
                backoff = self._interval * GROWTH ** min(self._failures - MAX_PARALLEL, 30)
                self._resume = now + min(backoff, self._max_interval)
            self._failures += 1
        self._resume = max(self._resume, now + retry_after)

    def _is_down(self) -> bool:
        return self._failures >= MAX_PARALLEL
