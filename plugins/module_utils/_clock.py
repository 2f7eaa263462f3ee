# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The clocks that the client and the wait go by, in one place, so that tests can hand in their own."""

from __future__ import annotations

import time
from datetime import datetime, timezone
from typing import Callable, NamedTuple


class Clock(NamedTuple):
    """Three functions: seconds that never go back, a pause of seconds, and the time of day (aware, UTC)."""

    monotonic: Callable[[], float]
    sleep: Callable[[float], None]
    utcnow: Callable[[], datetime]


SYSTEM_CLOCK = Clock(time.monotonic, time.sleep, lambda: datetime.now(timezone.utc))
