# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state of a running sandbox, which the middleware and the endpoints share."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

from .faults import FaultRegistry
from .rate_limit import RateLimiter
from .store import Store

MAX_LOGGED_REQUESTS = 10_000


@dataclass
class SandboxState:
    store: Store
    faults: FaultRegistry = field(default_factory=FaultRegistry)
    rate_limiter: RateLimiter = field(default_factory=RateLimiter)
    request_log: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=MAX_LOGGED_REQUESTS))
