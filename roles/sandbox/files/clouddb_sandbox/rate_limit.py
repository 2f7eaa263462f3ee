# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The account's rate limit, a token bucket in real time. Tests enable it with /_sandbox/rate_limit."""

from __future__ import annotations

import time
from collections.abc import Callable

from pydantic import Field

from .request_models import ControlRequestModel


class RateLimit(ControlRequestModel):
    """Sustained requests per minute, and the burst allowed after a pause. The defaults are the public service's."""

    per_minute: int = Field(default=700, ge=1)
    burst: int = Field(default=40, ge=1)


class RateLimiter:
    """Token bucket for the requests of the account. Used on the event loop only; not persisted."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self.set(None)

    def set(self, limit: RateLimit | None) -> None:
        """Start with a full bucket. None disables the limit."""
        self.limit = limit
        self._tokens = float(limit.burst) if limit else 0.0
        self._filled_at = self._monotonic()

    def consume(self) -> float:
        """Consume a token and return 0; without a token, return the seconds until the next one."""
        if self.limit is None:
            return 0.0
        now, per_second = self._monotonic(), self.limit.per_minute / 60
        self._tokens = min(self._tokens + (now - self._filled_at) * per_second, self.limit.burst)
        self._filled_at = now
        if self._tokens < 1:
            return (1 - self._tokens) / per_second
        self._tokens -= 1
        return 0.0
