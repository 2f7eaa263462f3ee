# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How operations move (api.md, "States and transitions", "Operation").

An operation is stored with its whole timeline: `[[seconds since created_at, status], ...]`. Where it stands is a
function of that timeline and of the clock, worked out when somebody asks. So nothing has to run in the background,
and nothing is lost when the process is killed.
"""

from __future__ import annotations

from typing import NamedTuple

from .clock import SECOND

Timeline = list[tuple[float, str]]

# The four statuses of api.md, and those that the public service has been seen to send besides.
STATUSES = ("scheduling", "running", "finished", "failed", "error", "cancelling", "cancelled", "skipped")
SETTLED = frozenset({"finished", "failed", "error", "cancelled", "skipped"})
WITH_ERROR = frozenset({"failed", "error"})

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


class Standing(NamedTuple):
    status: str
    updated_at: int
    failures_count: int


def standing(timeline: Timeline, created_at: int, now: int) -> Standing:
    """Where an operation stands: its status, since when, and how often it has failed so far."""
    reached = [entry for entry in timeline if created_at + int(entry[0] * SECOND) <= now] or timeline[:1]
    offset, status = reached[-1]
    return Standing(status, created_at + int(offset * SECOND), sum(entry[1] == "failed" for entry in reached))


def settled_at(timeline: Timeline, created_at: int) -> int | None:
    """When nothing further happens to the operation; None if it never gets there."""
    offset, status = timeline[-1]
    return created_at + int(offset * SECOND) if status in SETTLED else None


def timeline_to(status: str, duration: float) -> Timeline:
    """A timeline that ends in this status after so many seconds, by way of the ones before it."""
    if status == "scheduling":
        return [(0, "scheduling")]
    if status in SETTLED:
        return [(0, "scheduling"), (duration / 4, "running"), (duration, status)]
    return [(0, "scheduling"), (duration / 4, status)]


def check_timeline(timeline: Timeline) -> Timeline:
    """Refuse what cannot be a timeline, with a ValueError that says why."""
    if not timeline or timeline[0][0] != 0:
        raise ValueError("the first entry's offset must be 0")
    offsets = [offset for offset, _status in timeline]
    if offsets != sorted(set(offsets)):
        raise ValueError("the offsets must increase")
    unknown = sorted({status for _offset, status in timeline} - set(STATUSES))
    if unknown:
        raise ValueError(f"unknown status {', '.join(unknown)}; there are {', '.join(STATUSES)}")
    return timeline
