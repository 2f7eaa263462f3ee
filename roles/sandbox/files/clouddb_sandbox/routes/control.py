# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The control endpoints, for tests: faults, rate limit, operation plans, clock, request log.

Faults and the rate limit do not apply to them.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from pydantic import Field

from .. import operation_plans, platform_activity
from ..clock import MAX_SPEED, format_timestamp
from ..faults import Fault
from ..limits import Limits
from ..operation_plans import OperationPlan
from ..paths import CONTROL_PATH
from ..rate_limit import RateLimit
from ..request_models import ControlRequestModel
from .dependencies import SandboxDependency, error_responses

router = APIRouter(prefix=CONTROL_PATH, tags=["Sandbox"], responses=error_responses(400))

MAX_ADVANCE = 10 * 366 * 86400


class ClockUpdateRequest(ControlRequestModel):
    speed: float | None = Field(default=None, ge=0, le=MAX_SPEED, description="sandbox seconds per real second")
    advance: float = Field(default=0, ge=0, le=MAX_ADVANCE, description="seconds to advance the clock by")


# Faults, rate limit and request log are used on the event loop only, so their endpoints are coroutines.


@router.get("/faults")
async def list_faults(sandbox: SandboxDependency) -> dict[str, Any]:
    return {"faults": sandbox.faults.remaining()}


@router.post("/faults", status_code=201)
async def add_fault(sandbox: SandboxDependency, body: Fault) -> dict[str, Any]:
    return sandbox.faults.add(body)


@router.delete("/faults")
async def clear_faults(sandbox: SandboxDependency) -> dict[str, Any]:
    sandbox.faults.clear()
    return {"faults": sandbox.faults.remaining()}


@router.get("/rate_limit")
async def get_rate_limit(sandbox: SandboxDependency) -> dict[str, RateLimit | None]:
    return {"rate_limit": sandbox.rate_limiter.limit}


@router.put("/rate_limit")
async def set_rate_limit(sandbox: SandboxDependency, body: RateLimit) -> dict[str, RateLimit | None]:
    sandbox.rate_limiter.set(body)
    return await get_rate_limit(sandbox)


@router.delete("/rate_limit")
async def clear_rate_limit(sandbox: SandboxDependency) -> dict[str, RateLimit | None]:
    sandbox.rate_limiter.set(None)
    return await get_rate_limit(sandbox)


@router.get("/limits")
def get_limits(sandbox: SandboxDependency) -> Limits:
    return Limits.model_validate(sandbox.store.limits)


@router.put("/limits")
def set_limits(sandbox: SandboxDependency, body: Limits) -> Limits:
    sandbox.store.limits = body.model_dump()
    return body


@router.get("/requests")
async def list_requests(sandbox: SandboxDependency) -> dict[str, Any]:
    return {"requests": list(sandbox.request_log)}


@router.delete("/requests")
async def clear_requests(sandbox: SandboxDependency) -> dict[str, Any]:
    sandbox.request_log.clear()
    return {"requests": []}


@router.get("/operation_plans")
def list_operation_plans(sandbox: SandboxDependency) -> dict[str, Any]:
    with sandbox.store.transaction() as tx:
        return {"operation_plans": operation_plans.remaining(tx)}


@router.post("/operation_plans", status_code=201)
def add_operation_plan(sandbox: SandboxDependency, body: OperationPlan) -> dict[str, Any]:
    with sandbox.store.transaction() as tx:
        platform_activity.catch_up(tx)
        return operation_plans.add(tx, body)


@router.delete("/operation_plans")
def clear_operation_plans(sandbox: SandboxDependency) -> dict[str, Any]:
    with sandbox.store.transaction() as tx:
        operation_plans.clear(tx)
        return {"operation_plans": operation_plans.remaining(tx)}


@router.get("/clock")
def get_clock(sandbox: SandboxDependency) -> dict[str, Any]:
    return {"now": format_timestamp(sandbox.store.clock.now()), "speed": sandbox.store.clock.speed}


@router.put("/clock")
def set_clock(sandbox: SandboxDependency, body: ClockUpdateRequest) -> dict[str, Any]:
    sandbox.store.set_clock(body.speed, body.advance)
    return get_clock(sandbox)
