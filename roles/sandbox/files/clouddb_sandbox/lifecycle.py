# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lifecycle of operations (api.md, "States and transitions", "Operation").

An operation is stored with its complete timeline: `[[seconds since created_at, status], ...]`. Its current state is
computed from that timeline and the clock when it is requested. So there are no background jobs, and no state is lost
when the process is killed.
"""

from __future__ import annotations

from typing import NamedTuple

from .clock import MAX_SECONDS, SECOND

Timeline = list[tuple[float, str]]

# The four statuses of api.md, and those that the public service sends in addition.
STATUSES = ("scheduling", "running", "finished", "failed", "error", "cancelling", "cancelled", "skipped")
TERMINAL_STATUSES = frozenset({"finished", "failed", "error", "cancelled", "skipped"})
ERROR_STATUSES = frozenset({"failed", "error"})

DEFAULT_TIMELINES: dict[str, Timeline] = {
    "apply_config": [(0, "scheduling"), (0.2, "running"), (0.8, "finished")],
    "apply_storage_config": [(0, "scheduling"), (0.2, "running"), (0.6, "finished")],
    "check_availability": [(0, "scheduling"), (0.5, "running"), (2.5, "finished")],
    "create_branch": [(0, "running"), (0.5, "finished")],
    "create_timeline": [(0, "running"), (0.8, "finished")],
    "delete_tenant": [(0, "scheduling"), (0.1, "running"), (0.5, "finished")],
    "start_compute": [(0, "scheduling"), (0.5, "running"), (1.5, "finished")],
    "suspend_compute": [(0, "scheduling"), (0.1, "running"), (0.4, "finished")],
}
ACTIONS = tuple(DEFAULT_TIMELINES)
# Of what a branch was before a restore, or was deleted with; beyond api.md.
DELETE_TIMELINE: Timeline = [(0, "scheduling"), (0.1, "running"), (0.5, "finished")]


class OperationState(NamedTuple):
    status: str
    updated_at: int
    failures_count: int


def state_at(timeline: Timeline, created_at: int, now: int) -> OperationState:
    """Return an operation's status, the time of its last status change, and its number of failures so far."""
    reached = [entry for entry in timeline if created_at + int(entry[0] * SECOND) <= now] or timeline[:1]
    offset, status = reached[-1]
    return OperationState(
        status, created_at + int(offset * SECOND), sum(entry_status == "failed" for _offset, entry_status in reached)
    )


def is_finished(timeline: Timeline, created_at: int, now: int) -> bool:
    return state_at(timeline, created_at, now).status == "finished"


def completion_time(timeline: Timeline, created_at: int) -> int | None:
    """Return when the operation reaches its last status, or None if that is not a terminal one."""
    offset, status = timeline[-1]
    return created_at + int(offset * SECOND) if status in TERMINAL_STATUSES else None


def timeline_to(status: str, duration: float) -> Timeline:
    """Build a timeline that passes through the preceding statuses and reaches `status` after `duration` seconds."""
    if status == "scheduling":
        return [(0, "scheduling")]
    if status in TERMINAL_STATUSES:
        return [(0, "scheduling"), (duration / 4, "running"), (duration, status)]
    return [(0, "scheduling"), (duration / 4, status)]


def check_timeline(timeline: Timeline) -> Timeline:
    """Return the timeline if it is valid. Raises ValueError otherwise."""
    if not timeline or timeline[0][0] != 0:
        raise ValueError("the first entry's offset must be 0")
    offsets = [offset for offset, _status in timeline]
    if offsets != sorted(set(offsets)):
        raise ValueError("the offsets must increase")
    if not all(offset <= MAX_SECONDS for offset in offsets):
        raise ValueError(f"the offsets must not exceed {MAX_SECONDS} seconds")
    unknown = sorted({status for _offset, status in timeline} - set(STATUSES))
    if unknown:
        raise ValueError(f"unknown status {', '.join(unknown)}; expected one of {', '.join(STATUSES)}")
    return timeline
