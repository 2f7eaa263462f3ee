# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The layout of project timelines: lanes, marks and ticks, in percent of the width and in pixels of the height. Keeps P3.

Operations take seconds, and a timeline can show days. Each lane is therefore divided into cells, and operations with the
same action and label that start in the same cell are one mark, almost as wide as the cell or wider.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from ...module_utils._timestamps import parse_timestamp, timestamp_of
from .operations import ERROR, EXECUTED_STATUSES, by_label, grouped, word
from .text import count_text, day_text, duration_text, time_text, truncated

Operation = Mapping[str, Any]

CELLS = 96
# With more operations, the marks of fewer cells keep the page small.
MAX_OPERATIONS = 6000
MIN_PERIOD = timedelta(hours=1)
# Free space at both ends, as a share of the period.
MARGIN = 0.025
LANE_HEIGHT = 34
TRACK_HEIGHT = 15
MAX_TICKS = 8
DAY = 24 * 60
TICK_MINUTES = (10, 30, 60, 180, 360, 720, *(days * DAY for days in (1, 2, 4, 7, 14, 31, 62, 124, 372)))
MAX_STATUS_LENGTH = 40


class Window(NamedTuple):
    """The period that the timelines show."""

    start: datetime
    end: datetime
    now: datetime

    def percent(self, moment: datetime) -> float:
        """The position of the time, from 0 to 100."""
        return round(100 * min(1.0, max(0.0, (moment - self.start) / (self.end - self.start))), 2)


def timelines(projects: Sequence[Sequence[Operation]], since: datetime, now: datetime) -> dict[str, Any]:
    """The timelines of these projects' operations, all from the first operation since C(since) to C(now), and their ticks.

    The marks of earlier operations, which are unfinished or have failed since then, are at the left edge.
    """
    starts = [parse_timestamp(operation["created_at"]) for operations in projects for operation in operations]
    first, last = max(since, min(starts, default=now)), max([now, *starts])
    period = max(last - first, MIN_PERIOD)
    window = Window(last - period * (1 + MARGIN), last + period * MARGIN, now)
    cells = CELLS if len(starts) <= MAX_OPERATIONS else CELLS // 4
    return {
        "projects": [{"operations": operations, **_lanes(operations, window, cells)} for operations in projects],
        "ticks": ticks(window),
    }


def ticks(window: Window) -> list[tuple[float, str]]:
    """The positions and texts of at most MAX_TICKS lines at full hours or days (UTC)."""
    minutes = (window.end - window.start) / timedelta(minutes=1)
    step = timedelta(minutes=next((step for step in TICK_MINUTES if minutes / step <= MAX_TICKS), TICK_MINUTES[-1]))
    moment = window.start.replace(hour=0, minute=0, second=0, microsecond=0)
    found = []
    while moment < window.end:
        if moment >= window.start:
            is_midnight = moment.hour == moment.minute == 0
            found.append((window.percent(moment), day_text(moment) if is_midnight else f"{moment:%H:%M}"))
        moment += step
    return found


def _lanes(operations: Sequence[Operation], window: Window, cells: int) -> dict[str, Any]:
    """A lane for each action, the most frequent first, with a track for each label, so that no mark covers another."""
    lanes: list[dict[str, Any]] = []
    y = 0
    for action, group in grouped(operations, "action").items():
        marks: dict[tuple[str, int], list[Operation]] = {}
        for operation in group:
            cell = int(window.percent(parse_timestamp(operation["created_at"])) * cells / 100)
            marks.setdefault((operation["label"], cell), []).append(operation)
        labels = [label for label, number in by_label(group).items() if number]
        drawn: list[dict[str, Any]] = []
        for (label, cell), found in marks.items():
            x = 100 * cell / cells
            end = max(window.percent(_end(operation, window.now)) for operation in found)
            # A mark is at least three quarters of a cell wide.
            extent = {"x": round(x, 2), "width": round(max(75 / cells, end - x), 2)}
            top = y + 16 + labels.index(label) * TRACK_HEIGHT
            drawn.append({**extent, "label": label, "y": top, "title": _title(found)})
        # The widest first, because one that takes long may last until after the next one.
        drawn.sort(key=lambda mark: -mark["width"])
        lanes.append({"action": action, "total": len(group), "y": y, "marks": drawn})
        y += LANE_HEIGHT + (len(labels) - 1) * TRACK_HEIGHT
    return {"lanes": lanes, "height": y}


def _end(operation: Operation, now: datetime) -> datetime:
    """The end of the operation; C(now) while it is in progress."""
    created_at = parse_timestamp(operation["created_at"])
    if operation["label"] == ERROR or operation["status"] in (*EXECUTED_STATUSES, "skipped"):
        return timestamp_of(operation, "updated_at") or created_at
    return max(created_at, now)


def _title(operations: Sequence[Operation]) -> str:
    """The status or the number of operations, their time, the longest duration, and the latest error text."""
    newest, oldest = operations[0], operations[-1]
    times = [time_text(operation["created_at"]) for operation in (oldest, newest)]
    seconds = [each["duration_seconds"] for each in operations if each["duration_seconds"] is not None]
    errors = [str(each["error"]) for each in operations if each["error"]]
    is_one = len(operations) == 1
    texts = [
        status_text(newest) if is_one else f"{word(newest['label'])}, {count_text(len(operations), 'operation')}",
        " – ".join(dict.fromkeys(times)),
        *([("" if is_one else "longest ") + duration_text(max(seconds))] if seconds else []),
        *errors[:1],
    ]
    return " · ".join(texts)


def status_text(operation: Operation) -> str:
    """The label, followed by the status for statuses that are not in api.md."""
    label = word(operation["label"])
    is_documented = operation["status"] in ("finished", "scheduling", "running", "failed")
    return label if is_documented else f"{label} ({truncated(operation['status'], MAX_STATUS_LENGTH)})"
