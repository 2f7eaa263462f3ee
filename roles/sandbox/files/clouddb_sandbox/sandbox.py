# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the parts of one running sandbox share, and how a route gets at it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import Depends, Request

from .faults import Faults
from .rate_limit import Limiter
from .store import Store

BASE_PATH = "/api/v2"
CONTROL_PATH = "/_sandbox"
LOGGED_REQUESTS = 10_000


@dataclass
class Sandbox:
    store: Store
    faults: Faults = field(default_factory=Faults)
    limiter: Limiter = field(default_factory=Limiter)
    requests: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=LOGGED_REQUESTS))


async def sandbox_of(request: Request) -> Sandbox:
    sandbox: Sandbox = request.app.state.sandbox
    return sandbox


SandboxOfRequest = Annotated[Sandbox, Depends(sandbox_of)]
