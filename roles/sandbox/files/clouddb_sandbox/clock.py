# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sandbox time: microseconds since the epoch, as fast or as slow as the tests want it."""

from __future__ import annotations

import time
from datetime import UTC, datetime

SECOND = 1_000_000
# Where datetime ends, less a day: the clock stays below, however fast it is told to run.
END_OF_TIME = 253_402_214_400 * SECOND


def real_now() -> int:
    return time.time_ns() // 1000


def timestamp(moment: int) -> str:
    """The moment as the API writes it: ISO 8601, UTC, microseconds."""
    return iso(moment) + "Z"


def iso(moment: int) -> str:
    seconds, fraction = divmod(moment, SECOND)
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S") + f".{fraction:06d}"


def moment_of(date: datetime) -> int:
    """The inverse of iso(), for a time with a time zone."""
    elapsed = date - datetime(1970, 1, 1, tzinfo=UTC)
    return (elapsed.days * 86400 + elapsed.seconds) * SECOND + elapsed.microseconds


class Clock:
    """An origin plus the real time since then, times a speed. It never goes back."""

    def __init__(self, origin: int, speed: float) -> None:
        # One tuple, replaced as a whole: other threads see the old line or the new one, never a mixture.
        self._line = (origin, time.monotonic(), speed)
        self._latest = origin

    @property
    def speed(self) -> float:
        return self._line[2]

    def now(self) -> int:
        origin, since, speed = self._line
        return min(max(origin + int((time.monotonic() - since) * speed * SECOND), self._latest), END_OF_TIME)

    def stamp(self) -> int:
        """The time of a change: now, or just later, so that no two changes share a time even if the clock stands."""
        self._latest = max(self.now(), self._latest + 1)
        return self._latest

    def set(self, speed: float, advance: float = 0) -> int:
        """Go on from now, plus `advance` seconds, at this speed. Returns the new origin."""
        origin = min(self.now() + int(advance * SECOND), END_OF_TIME)
        self._line = (origin, time.monotonic(), speed)
        return origin
