# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A clock that only sleep() advances."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Callable

from ansible_collections.clouddb.control.plugins.module_utils._clock import Clock

EPOCH = datetime(2026, 11, 21, 8, 0, tzinfo=timezone.utc)


class FakeClock:
    """C(clock) is what the code under test gets; C(pauses) are the sleeps it asked for, in seconds."""

    def __init__(self, on_sleep: Callable[[float], None] | None = None):
        self.elapsed = 0.0
        self.pauses: list[float] = []
        self.on_sleep = on_sleep
        self.clock = Clock(lambda: 1000.0 + self.elapsed, self.sleep, lambda: EPOCH + timedelta(seconds=self.elapsed))

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.elapsed += seconds
        if self.on_sleep:
            self.on_sleep(seconds)
