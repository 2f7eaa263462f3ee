# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Operations that the platform starts by itself (api.md, "Action values and meaning").

An unused compute is suspended, then its branch's availability is checked, then the compute is started, and the cycle
repeats. The n-th step is a function of n and of the compute's last use. So the steps can be recorded when the next
request arrives, with the same result however often that happens.
"""

from __future__ import annotations

from . import operations
from .clock import SECOND
from .store import Transaction

CYCLE = ((300 * SECOND, "suspend_compute"), (3600 * SECOND, "check_availability"), (7200 * SECOND, "start_compute"))
CYCLE_LENGTH = CYCLE[-1][0]
# The maximum number of operations per compute that one catch-up records, the latest ones.
MAX_STEPS = 12


def step_of_cycle(last_used_at: int, step: int) -> tuple[int, str]:
    """Return the time and the action of a step, counted from the compute's last use."""
    offset, action = CYCLE[step % len(CYCLE)]
    return last_used_at + step // len(CYCLE) * CYCLE_LENGTH + offset, action


def is_suspended(next_step: int) -> bool:
    """Return whether a compute with this next step is suspended: in each cycle, the first step suspends it."""
    return next_step % len(CYCLE) != 0


def record_use(tx: Transaction, endpoint_id: str) -> None:
    """Record that the compute is used now, which restarts its cycle."""
    tx.db.execute(
        "UPDATE endpoints SET last_used_at = ?, step = 0, next_step_at = ? WHERE id = ?",
        (tx.now, step_of_cycle(tx.now, 0)[0], endpoint_id),
    )


def catch_up(tx: Transaction) -> None:
    """Record the operations that the platform has started since the last request."""
    due = tx.db.execute(
        "SELECT * FROM endpoints WHERE next_step_at <= ? ORDER BY next_step_at, id", (tx.now,)
    ).fetchall()
    for row in due:
        complete_cycles = (tx.now - row["last_used_at"]) // CYCLE_LENGTH
        step = max(row["step"], complete_cycles * len(CYCLE) - MAX_STEPS)
        while (next_step := step_of_cycle(row["last_used_at"], step))[0] <= tx.now:
            started_at, action = next_step
            operations.start(
                tx,
                action,
                project_id=row["project_id"],
                branch_id=row["branch_id"],
                endpoint_id=row["id"],
                platform_time=started_at,
            )
            step += 1
        tx.db.execute("UPDATE endpoints SET step = ?, next_step_at = ? WHERE id = ?", (step, next_step[0], row["id"]))
