# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Clocks and deadlines, passed in explicitly so that tests can supply their own. Keeps P4."""

from __future__ import annotations

import time
from datetime import datetime, timezone
from typing import Callable, NamedTuple


class Clock(NamedTuple):
    """Three functions: monotonic seconds, a sleep of some seconds, and the current time (aware, UTC)."""

    monotonic: Callable[[], float]
    sleep: Callable[[float], None]
    utcnow: Callable[[], datetime]


SYSTEM_CLOCK = Clock(time.monotonic, time.sleep, lambda: datetime.now(timezone.utc))


class Deadline(NamedTuple):
    """A moment of the monotonic clock by which something has to end."""

    clock: Clock
    at: float

    @classmethod
    def after(cls, clock: Clock, seconds: float) -> Deadline:
        """The deadline that is C(seconds) from now."""
        return cls(clock, clock.monotonic() + seconds)

    def remaining(self) -> float:
        """Seconds until the deadline; 0 once it has passed."""
        return max(0.0, self.at - self.clock.monotonic())
