# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sandbox's own endpoints, for tests: faults, rate limit, operation plans, clock, request log.

Neither faults nor the rate limit hit them.
"""

from __future__ import annotations

import json
import sqlite3
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import AfterValidator, BeforeValidator, Field

from ..bodies import LARGEST_INTEGER, ControlBody
from ..clock import timestamp
from ..faults import Fault
from ..lifecycle import ACTIONS, Timeline, check_timeline
from ..rate_limit import RateLimit
from ..sandbox import CONTROL_PATH, SandboxOfRequest
from ..store import Transaction
from .parameters import errors

router = APIRouter(prefix=CONTROL_PATH, tags=["Sandbox"], responses=errors(400))

TEN_YEARS = 10 * 366 * 86400


def check_action(action: str) -> str:
    if action not in ACTIONS:
        raise ValueError(f"unknown action; there are {', '.join(ACTIONS)}")
    return action


def pairs(timeline: Any) -> Any:
    """JSON has no tuples."""
    return (
        [tuple(entry) if isinstance(entry, list) else entry for entry in timeline]
        if isinstance(timeline, list)
        else timeline
    )


class OperationPlan(ControlBody):
    """How the next operations go that fit: of this action, or any that a request starts; in this project, or any."""

    action: Annotated[str, AfterValidator(check_action)] | None = None
    project_id: str | None = None
    times: int | None = Field(
        default=1, ge=1, le=LARGEST_INTEGER, description="how many operations follow it; null: all, until cleared"
    )
    timeline: Annotated[Timeline, BeforeValidator(pairs), AfterValidator(check_timeline)]
    error: str | None = Field(default=None, description="the text of `error` while the operation is failed")


class ClockChange(ControlBody):
    speed: float | None = Field(default=None, ge=0, le=100_000, description="sandbox seconds in a real second")
    advance: float = Field(default=0, ge=0, le=TEN_YEARS, description="seconds to leap ahead")


# The faults, the rate limit and the request log belong to the event loop, so their endpoints are coroutines.


@router.get("/faults")
async def list_faults(sandbox: SandboxOfRequest) -> dict[str, Any]:
    return {"faults": sandbox.faults.remaining()}


@router.post("/faults", status_code=201)
async def add_fault(sandbox: SandboxOfRequest, body: Fault) -> dict[str, Any]:
    return sandbox.faults.add(body)


@router.delete("/faults")
async def clear_faults(sandbox: SandboxOfRequest) -> dict[str, Any]:
    sandbox.faults.clear()
    return {"faults": sandbox.faults.remaining()}


@router.get("/rate_limit")
async def get_rate_limit(sandbox: SandboxOfRequest) -> dict[str, RateLimit | None]:
    return {"rate_limit": sandbox.limiter.limit}


@router.put("/rate_limit")
async def set_rate_limit(sandbox: SandboxOfRequest, body: RateLimit) -> dict[str, RateLimit | None]:
    sandbox.limiter.set(body)
    return await get_rate_limit(sandbox)


@router.delete("/rate_limit")
async def clear_rate_limit(sandbox: SandboxOfRequest) -> dict[str, RateLimit | None]:
    sandbox.limiter.set(None)
    return await get_rate_limit(sandbox)


@router.get("/requests")
async def list_requests(sandbox: SandboxOfRequest) -> dict[str, Any]:
    return {"requests": list(sandbox.requests)}


@router.delete("/requests")
async def clear_requests(sandbox: SandboxOfRequest) -> dict[str, Any]:
    sandbox.requests.clear()
    return {"requests": []}


@router.get("/operation_plans")
def list_operation_plans(sandbox: SandboxOfRequest) -> dict[str, Any]:
    with sandbox.store.transaction() as tx:
        return {"operation_plans": plans(tx)}


@router.post("/operation_plans", status_code=201)
def add_operation_plan(sandbox: SandboxOfRequest, body: OperationPlan) -> dict[str, Any]:
    with sandbox.store.transaction() as tx:
        tx.db.execute(
            "INSERT INTO operation_plans (action, project_id, times, timeline, error) VALUES (?, ?, ?, ?, ?)",
            (body.action, body.project_id, body.times, json.dumps(body.timeline), body.error),
        )
        return plans(tx)[-1]


@router.delete("/operation_plans")
def clear_operation_plans(sandbox: SandboxOfRequest) -> dict[str, Any]:
    with sandbox.store.transaction() as tx:
        tx.db.execute("DELETE FROM operation_plans")
        return {"operation_plans": plans(tx)}


@router.get("/clock")
def get_clock(sandbox: SandboxOfRequest) -> dict[str, Any]:
    return {"now": timestamp(sandbox.store.clock.now()), "speed": sandbox.store.clock.speed}


@router.put("/clock")
def set_clock(sandbox: SandboxOfRequest, body: ClockChange) -> dict[str, Any]:
    sandbox.store.set_clock(body.speed, body.advance)
    return get_clock(sandbox)


def plans(tx: Transaction) -> list[dict[str, Any]]:
    return [plan_of(row) for row in tx.db.execute("SELECT * FROM operation_plans ORDER BY id")]


def plan_of(row: sqlite3.Row) -> dict[str, Any]:
    return {**dict(row), "timeline": json.loads(row["timeline"])}
