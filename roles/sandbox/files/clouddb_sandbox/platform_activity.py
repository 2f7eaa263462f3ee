# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Operations that the platform starts by itself (api.md, "Action values and meaning").

A compute that is unused for `suspend_timeout_seconds` is suspended, then its branch's availability is checked, then the
compute is started, and the cycle repeats. With -1, this never happens. The n-th step is a function of n and of the
compute's last use. So the steps can be recorded when the next request arrives, with the same result however often that
happens.
"""

from __future__ import annotations

import json
import sqlite3

from . import lifecycle, operation_plans, operations
from .clock import SECOND
from .store import Transaction

ACTIONS = ("suspend_compute", "check_availability", "start_compute")
TIME_OF_ACTION = {"suspend_compute": "suspended_at", "start_compute": "started_at"}
# Seconds after the suspension.
OFFSETS = (0, 3300, 6900)
DEFAULT_TIMEOUT = 300
# The maximum number of operations per compute that one catch-up records, the latest ones.
MAX_STEPS = 12


def timeout_of(tx: Transaction, endpoint_id: str) -> int:
    """Return after how many seconds without use the compute is suspended; -1 is never."""
    row = tx.db.execute("SELECT options FROM endpoints WHERE id = ?", (endpoint_id,)).fetchone()
    return json.loads(row["options"]).get("suspend_timeout_seconds") or DEFAULT_TIMEOUT


def step_of_cycle(last_used_at: int, step: int, timeout: int) -> tuple[int, str]:
    """Return the time and the action of a step, counted from the compute's last use."""
    cycle, number = divmod(step, len(ACTIONS))
    seconds = cycle * (timeout + OFFSETS[-1]) + timeout + OFFSETS[number]
    return last_used_at + seconds * SECOND, ACTIONS[number]


def is_suspended(next_step: int) -> bool:
    """Return whether a compute with this next step is suspended: in each cycle, the first step suspends it."""
    return next_step % len(ACTIONS) != 0


def record_use(tx: Transaction, endpoint_id: str) -> None:
    """Record that the compute is used now, which restarts its cycle."""
    schedule(tx, endpoint_id, tx.now, 0)


def record_suspension(tx: Transaction, endpoint_id: str) -> None:
    """Record that a request suspends the compute now, in place of the first step of its cycle."""
    schedule(tx, endpoint_id, tx.now, 1)


def schedule(tx: Transaction, endpoint_id: str, last_used_at: int, step: int) -> None:
    """Record the next step of the compute, which determines its state from now on."""
    timeout = timeout_of(tx, endpoint_id)
    next_step_at = None if timeout < 0 else step_of_cycle(last_used_at, step, timeout)[0]
    record_change(tx, endpoint_id)
    tx.db.execute(
        "UPDATE endpoints SET last_used_at = ?, step = ?, next_step_at = ?, change_id = NULL WHERE id = ?",
        (last_used_at, step, next_step_at, endpoint_id),
    )


def change_of(row: sqlite3.Row, now: int) -> tuple[str, int] | None:
    """Return what the compute's last change was, started_at or suspended_at, and its time, unless it has failed."""
    if row["timeline"] is None:
        return None
    change = lifecycle.state_at(json.loads(row["timeline"]), row["change_started_at"], now)
    name = "suspended_at" if row["change_action"] == "suspend_compute" else "started_at"
    return None if change.status in lifecycle.ERROR_STATUSES else (name, change.updated_at)


def record_change(tx: Transaction, endpoint_id: str) -> None:
    """Keep the time of the compute's last change, before another one takes its place."""
    row = tx.db.execute(
        "SELECT timeline, action AS change_action, operations.created_at AS change_started_at"
        " FROM endpoints JOIN operations ON operations.id = change_id WHERE endpoints.id = ?",
        (endpoint_id,),
    ).fetchone()
    if row and (change := change_of(row, tx.now)):
        record_time(tx, endpoint_id, *change)


def record_time(tx: Transaction, endpoint_id: str, name: str, time: int) -> None:
    tx.db.execute(f"UPDATE endpoints SET {name} = ? WHERE id = ?", (time, endpoint_id))


def catch_up(tx: Transaction, project_id: str | None = None) -> None:
    """Record the operations that the platform has started since the last request, in this project or in all.

    As operation plans apply to the next operations of any project, they need those of all.
    """
    is_complete = project_id is None or operation_plans.remaining(tx) != []
    due = tx.db.execute(
        "SELECT * FROM endpoints WHERE next_step_at <= ? AND (? OR project_id = ?) ORDER BY next_step_at, id",
        (tx.now, is_complete, project_id),
    ).fetchall()
    for row in due:
        timeout, times = timeout_of(tx, row["id"]), dict[str, int]()
        complete_cycles = (tx.now - row["last_used_at"]) // ((timeout + OFFSETS[-1]) * SECOND)
        step = max(row["step"], complete_cycles * len(ACTIONS) - MAX_STEPS)
        while (next_step := step_of_cycle(row["last_used_at"], step, timeout))[0] <= tx.now:
            started_at, action = next_step
            operations.start(
                tx,
                action,
                project_id=row["project_id"],
                branch_id=row["branch_id"],
                endpoint_id=row["id"],
                platform_time=started_at,
            )
            times[TIME_OF_ACTION.get(action, "")] = started_at
            step += 1
        schedule(tx, row["id"], row["last_used_at"], step)
        for name in times.keys() - {""}:
            record_time(tx, row["id"], name, times[name])
