# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The layout of project timelines: lanes, bars and ticks, in percent of the width and in pixels of the height. Keeps P3.

Operations take seconds, and a timeline shows days. Each lane is therefore divided into cells, and operations with the
same action and label that start in the same cell are one bar, almost as wide as the cell or wider.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from ...module_utils._timestamps import parse_timestamp, timestamp_of
from .operations import ERROR, EXECUTED_STATUSES, LABELS, grouped
from .text import (
    count_text,
    day_text,
    duration_text,
    time_text,
    truncated,
)

CELLS = (96, 48, 24, 12)
MAX_BARS = 6000
SPARKLINE_WIDTH = 42
SPARKLINE_HEIGHT = 12

LANE_HEIGHT = 34
BAR_TOP = 16
MAX_TICKS = 8
LATE = 0.88  # a tick label that starts further to the right does not fit on a phone
TICK_HOURS = (1, 3, 6, 12, 24, 48, 96, 168, 336, 744, 1488, 2976, 8928)
MAX_NAME_LENGTH = 120
MAX_ERROR_LENGTH = 70


class Window(NamedTuple):
    """The period that a timeline shows."""

    start: datetime
    end: datetime

    def share(self, moment: datetime) -> float:
        """The position of the time within the window, from 0 to 1. A time outside is moved to the edge."""
        return min(1.0, max(0.0, (moment - self.start) / (self.end - self.start)))

    def cell(self, moment: datetime, cells: int) -> int:
        """The index of the cell that contains the time."""
        return min(cells - 1, int(self.share(moment) * cells))


class Bar(NamedTuple):
    """Operations that are drawn as one bar."""

    label: str
    cell: int
    operations: Sequence[Mapping[str, Any]]


def timelines(projects: Mapping[str, Sequence[Mapping[str, Any]]], window: Window) -> dict[str, dict[str, Any]]:
    """A timeline for each project id, all with the same cell width, which is chosen so that at most MAX_BARS are drawn if possible."""
    for cells in CELLS:
        lanes = {project_id: _lanes(operations, window, cells) for project_id, operations in projects.items()}
        if sum(len(bars) for project_lanes in lanes.values() for bars in project_lanes.values()) <= MAX_BARS:
            break
    return {project_id: _timeline(project_lanes, window, cells) for project_id, project_lanes in lanes.items()}


def ticks(window: Window) -> list[dict[str, Any]]:
    """At most MAX_TICKS vertical lines at full hours or days (UTC)."""
    hours = (window.end - window.start) / timedelta(hours=1)
    step = next((step for step in TICK_HOURS if hours / step <= MAX_TICKS), TICK_HOURS[-1])
    moment = window.start.replace(hour=0, minute=0, second=0, microsecond=0)
    found: list[dict[str, Any]] = []
    while moment < window.end:
        if moment >= window.start:
            text = day_text(moment) if moment.hour == 0 else f"{moment:%H:%M}"
            share = window.share(moment)
            found.append({"x": _percent(share), "text": text, "minor": len(found) % 2 == 1, "late": share > LATE})
        moment += timedelta(hours=step)
    return found


def sparkline(operations: Sequence[Mapping[str, Any]], window: Window) -> list[dict[str, str]]:
    """The number of operations over time as SVG paths, errors apart, in a viewBox of SPARKLINE_WIDTH by SPARKLINE_HEIGHT."""
    counts: dict[bool, dict[int, int]] = {False: {}, True: {}}
    for operation in operations:
        count_by_cell = counts[operation["label"] == ERROR]
        cell = window.cell(parse_timestamp(operation["created_at"]), SPARKLINE_WIDTH)
        count_by_cell[cell] = count_by_cell.get(cell, 0) + 1
    highest = max([1, *(number for count_by_cell in counts.values() for number in count_by_cell.values())])
    paths = []
    for is_error, count_by_cell in counts.items():
        columns = [
            f"M{cell} {SPARKLINE_HEIGHT}v-{max(2, round(SPARKLINE_HEIGHT * number / highest))}h.8V{SPARKLINE_HEIGHT}z"
            for cell, number in sorted(count_by_cell.items())
        ]
        if columns:
            paths.append({"kind": "error" if is_error else "other", "d": "".join(columns)})
    return paths


def _lanes(operations: Sequence[Mapping[str, Any]], window: Window, cells: int) -> dict[str, list[Bar]]:
    """The bars of each action, the most frequent action first. Errors are last, so that they are drawn on top."""
    operations_by_action = grouped(operations, "action")
    lanes = {}
    for action in sorted(operations_by_action, key=lambda name: (-len(operations_by_action[name]), name)):
        bars: dict[tuple[int, int], list[Mapping[str, Any]]] = {}
        for operation in operations_by_action[action]:
            cell = window.cell(parse_timestamp(operation["created_at"]), cells)
            bars.setdefault((LABELS.index(operation["label"]), cell), []).append(operation)
        lanes[action] = [Bar(LABELS[label], cell, bars[label, cell]) for label, cell in sorted(bars)]
    return lanes


def _timeline(lanes: Mapping[str, Sequence[Bar]], window: Window, cells: int) -> dict[str, Any]:
    height = len(lanes) * LANE_HEIGHT
    return {
        "height": height + 34,
        "axis": height,
        "text_y": height + 13,
        "lanes": [
            {
                "action": truncated(action, MAX_NAME_LENGTH),
                "count": count_text(sum(len(group.operations) for group in bars), "operation"),
                "text_y": number * LANE_HEIGHT + 11,
                "rail_y": number * LANE_HEIGHT + BAR_TOP + 5,
                "bar_y": number * LANE_HEIGHT + BAR_TOP,
                "bars": [_bar(group, action, window, cells) for group in bars],
            }
            for number, (action, bars) in enumerate(lanes.items())
        ],
    }


def _bar(group: Bar, action: str, window: Window, cells: int) -> dict[str, str]:
    start = group.cell / cells
    end = max(start + 0.75 / cells, *(window.share(_end(operation, window)) for operation in group.operations))
    return {
        "kind": css_class(group.label),
        "x": _percent(start),
        "width": _percent(end - start),
        "middle": _percent(start + 0.375 / cells),
        "what": _bar_title(group, action),
        "when": _bar_times(group),
    }


def _end(operation: Mapping[str, Any], window: Window) -> datetime:
    """The end of the operation; the end of the window while it is in progress."""
    ended = operation["label"] == ERROR or operation["status"] in EXECUTED_STATUSES or operation["status"] == "skipped"
    updated_at = timestamp_of(operation, "updated_at")
    return updated_at if ended and updated_at else parse_timestamp(operation["created_at"]) if ended else window.end


def _bar_title(group: Bar, action: str) -> str:
    name = truncated(action, MAX_NAME_LENGTH)
    seconds = [
        operation["duration_seconds"] for operation in group.operations if operation["duration_seconds"] is not None
    ]
    if len(group.operations) == 1:
        (operation,) = group.operations
        duration = [duration_text(seconds[0])] if seconds else []
        return " · ".join([name, status_text(operation), *duration])
    longest = [f"longest {duration_text(max(seconds))}"] if seconds else []
    return " · ".join([name, group.label, count_text(len(group.operations), "operation"), *longest])


def _bar_times(group: Bar) -> str:
    """The start of the first and of the last operation, and the latest error text."""
    times = sorted(parse_timestamp(operation["created_at"]) for operation in group.operations)
    texts = list(dict.fromkeys(time_text(moment) for moment in (times[0], times[-1])))
    errors = [truncated(operation["error"], MAX_ERROR_LENGTH) for operation in group.operations if operation["error"]][
        :1
    ]
    return " · ".join([" – ".join(texts), *errors])


def status_text(operation: Mapping[str, Any]) -> str:
    """The label, followed by the status for statuses that are not in api.md."""
    documented = {"finished", "scheduling", "running", "failed"}
    return (
        operation["label"]
        if operation["status"] in documented
        else f"{operation['label']} ({truncated(operation['status'], 40)})"
    )


def css_class(label: str) -> str:
    """The CSS class of a label."""
    return label.lower().replace(" ", "-")


def _percent(share: float) -> str:
    return f"{share * 100:.2f}".rstrip("0").rstrip(".") + "%"
