# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The account's rate limit, which tests switch on over /_sandbox/rate_limit: a token bucket, by real time."""

from __future__ import annotations

import time
from collections.abc import Callable

from pydantic import Field

from .bodies import ControlBody


class RateLimit(ControlBody):
    """So many requests a minute in the long run, and so many at once after a pause; by default the public service's."""

    per_minute: int = Field(default=700, ge=1)
    burst: int = Field(default=40, ge=1)


class Limiter:
    """Counts the account's requests. It is used on the event loop only, and lives as long as the process."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self.set(None)

    def set(self, limit: RateLimit | None) -> None:
        """Begin with a full bucket; None lets every request pass."""
        self.limit = limit
        self._tokens = float(limit.burst) if limit else 0.0
        self._filled_at = self._monotonic()

    def take(self) -> float:
        """0 for a request that may pass; otherwise the seconds until the next one may. A refused request costs nothing."""
        if self.limit is None:
            return 0.0
        now, a_second = self._monotonic(), self.limit.per_minute / 60
        self._tokens = min(self._tokens + (now - self._filled_at) * a_second, self.limit.burst)
        self._filled_at = now
        if self._tokens < 1:
            return (1 - self._tokens) / a_second
        self._tokens -= 1
        return 0.0
