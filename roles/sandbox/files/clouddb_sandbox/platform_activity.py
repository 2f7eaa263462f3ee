# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the platform does by itself (api.md, "Action values and meaning").

A compute that nobody uses is suspended, later its branch's availability is checked, then something connects and it is
started, and so on. The n-th of these is a function of n and of the compute's last use, so they can be caught up with
whenever a request comes, and come out the same however often that happens.
"""

from __future__ import annotations

from . import operations
from .clock import SECOND
from .store import Transaction

CYCLE = ((300 * SECOND, "suspend_compute"), (3600 * SECOND, "check_availability"), (7200 * SECOND, "start_compute"))
PERIOD = CYCLE[-1][0]
# Of a long time that went by at once, a compute shows no more than its latest operations.
LATEST = 12


def event(active_at: int, step: int) -> tuple[int, str]:
    """When the step-th thing happens to a compute last used at `active_at`, and which."""
    offset, action = CYCLE[step % len(CYCLE)]
    return active_at + step // len(CYCLE) * PERIOD + offset, action


def used(tx: Transaction, endpoint_id: str) -> None:
    """The compute is used now: the time until its suspension starts anew."""
    tx.db.execute(
        "UPDATE endpoints SET active_at = ?, step = 0, next_at = ? WHERE id = ?",
        (tx.now, event(tx.now, 0)[0], endpoint_id),
    )


def catch_up(tx: Transaction) -> None:
    """Record what the platform has done since the last request."""
    due = tx.db.execute("SELECT * FROM endpoints WHERE next_at <= ? ORDER BY next_at, id", (tx.now,)).fetchall()
    for row in due:
        complete_cycles = (tx.now - row["active_at"]) // PERIOD
        step = max(row["step"], complete_cycles * len(CYCLE) - LATEST)
        while (next_event := event(row["active_at"], step))[0] <= tx.now:
            moment, action = next_event
            operations.start(
                tx,
                action,
                project_id=row["project_id"],
                branch_id=row["branch_id"],
                endpoint_id=row["id"],
                platform_at=moment,
            )
            step += 1
        tx.db.execute("UPDATE endpoints SET step = ?, next_at = ? WHERE id = ?", (step, next_event[0], row["id"]))
