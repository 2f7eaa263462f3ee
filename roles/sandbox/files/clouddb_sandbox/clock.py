# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sandbox time, in integer microseconds since the epoch, from a clock that tests can stop, speed up and advance."""

from __future__ import annotations

import functools
import time
from datetime import datetime, timezone

SECOND = 1_000_000
# A day before the last date of datetime, so that every time can be formatted, however fast the clock runs.
MAX_TIME = 253_402_214_400 * SECOND
# The longest age or duration in seconds, 1000 years, so that times in the past and the future are dates as well.
MAX_SECONDS = 1000 * 365 * 86400
MAX_SPEED = 100_000


def system_time() -> int:
    return time.time_ns() // 1000


def format_timestamp(microseconds: int) -> str:
    """Format a time as the API sends it: ISO 8601, UTC, with microseconds and `Z`."""
    return format_iso(microseconds) + "Z"


def format_optional(microseconds: int | None) -> str | None:
    return None if microseconds is None else format_timestamp(microseconds)


@functools.lru_cache(maxsize=10_000)  # a response repeats the times of the one before
def format_iso(microseconds: int) -> str:
    """Format a time as ISO 8601 in UTC, without the time zone."""
    seconds, fraction = divmod(microseconds, SECOND)
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S") + f".{fraction:06d}"


def to_microseconds(date: datetime) -> int:
    """Convert a date with a time zone to microseconds since the epoch."""
    elapsed = date - datetime(1970, 1, 1, tzinfo=timezone.utc)
    return (elapsed.days * 86400 + elapsed.seconds) * SECOND + elapsed.microseconds


class Clock:
    """An origin plus the real time elapsed since then, multiplied by a speed. It never goes backwards."""

    def __init__(self, origin: int, speed: float) -> None:
        # A single tuple, so that other threads never see a mixture of old and new values.
        self._reference = (origin, time.monotonic(), speed)
        self._latest = origin

    @property
    def speed(self) -> float:
        return self._reference[2]

    def now(self) -> int:
        origin, since, speed = self._reference
        return min(max(origin + int((time.monotonic() - since) * speed * SECOND), self._latest), MAX_TIME)

    def unique_time(self) -> int:
        """Return the current time, or the next microsecond if a change has that time already."""
        self._latest = max(self.now(), self._latest + 1)
        return self._latest

    def set(self, speed: float, advance: float = 0) -> int:
        """Advance by `advance` seconds and continue at this speed. Returns the new origin."""
        origin = min(self.now() + int(advance * SECOND), MAX_TIME)
        self._reference = (origin, time.monotonic(), speed)
        return origin
