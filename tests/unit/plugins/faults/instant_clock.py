# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The system clock, except that a sleep returns at once and only moves the monotonic time on."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timezone

from ansible_collections.clouddb.control.plugins.module_utils._clock import Clock


class InstantClock:
    """C(clock) is what the code under test gets; C(pauses) are the sleeps it asked for, C(on_sleep) is called at each."""

    def __init__(self) -> None:
        self.pauses: list[float] = []
        self.on_sleep: Callable[[], None] = lambda: None
        self.clock = Clock(
            lambda: time.monotonic() + sum(self.pauses),
            self._sleep,
            lambda: datetime.now(timezone.utc),
        )

    def _sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.on_sleep()
