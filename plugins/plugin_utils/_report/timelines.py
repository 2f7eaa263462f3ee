# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where everything is in a project's timeline: lanes, bars and ticks, in percent of the width and in pixels of height.

Operations take seconds and a timeline shows days. So a lane is cut into cells; what has the same action and label and
begins in the same cell is one bar, which is at least as wide as its cell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from ...module_utils._timestamps import parse_timestamp
from .operations import ERROR, LABELS, TIMED, grouped
from .text import (
    counted,
    day_text,
    duration_text,
    moment_or_none,
    second_text,
    shortened,
)

CELLS = (96, 48, 24, 12)
MAX_BARS = 6000
STRIP_CELLS = 42
STRIP_HEIGHT = 12

LANE_HEIGHT = 34
BAR_TOP = 16
MAX_TICKS = 8
LATE = 0.88  # a text that begins further to the right would not fit on a phone
TICK_HOURS = (1, 3, 6, 12, 24, 48, 96, 168, 336, 744, 1488, 2976, 8928)
ERROR_LENGTH = 70


class Window(NamedTuple):
    """The stretch of time that a timeline shows."""

    start: datetime
    end: datetime

    def share(self, moment: datetime) -> float:
        """How far into the window the moment is, from 0 to 1; what is outside is at its edge."""
        return min(1.0, max(0.0, (moment - self.start) / (self.end - self.start)))

    def cell(self, moment: datetime, cells: int) -> int:
        """The cell that the moment is in."""
        return min(cells - 1, int(self.share(moment) * cells))


class Bar(NamedTuple):
    """Operations that are drawn as one."""

    label: str
    cell: int
    operations: Sequence[Mapping[str, Any]]


def timelines(projects: Mapping[str, Sequence[Mapping[str, Any]]], window: Window) -> dict[str, dict[str, Any]]:
    """A timeline for each project id, all with cells of the same width; wider ones where there would be too many bars."""
    for cells in CELLS:
        lanes = {project_id: _lanes(operations, window, cells) for project_id, operations in projects.items()}
        if sum(len(bars) for of_project in lanes.values() for bars in of_project.values()) <= MAX_BARS:
            break
    return {
        project_id: _timeline(of_project, projects[project_id], window, cells)
        for project_id, of_project in lanes.items()
    }


def ticks(window: Window) -> list[dict[str, Any]]:
    """Vertical lines at round times (UTC), at most MAX_TICKS of them."""
    hours = (window.end - window.start) / timedelta(hours=1)
    step = next((step for step in TICK_HOURS if hours / step <= MAX_TICKS), TICK_HOURS[-1])
    day = window.start.replace(hour=0, minute=0, second=0, microsecond=0)
    found: list[dict[str, Any]] = []
    for number in range(int((hours + 24) / step) + 1):
        moment = day + timedelta(hours=number * step)
        if window.start <= moment < window.end:
            text = day_text(moment) if moment.hour == 0 else f"{moment:%H:%M}"
            share = window.share(moment)
            found.append({"x": _percent(share), "text": text, "minor": len(found) % 2 == 1, "late": share > LATE})
    return found


def strip(operations: Sequence[Mapping[str, Any]], window: Window) -> list[dict[str, str]]:
    """A small chart of how many operations there were when: paths for a viewBox of STRIP_CELLS by STRIP_HEIGHT, errors apart."""
    counts: dict[bool, dict[int, int]] = {False: {}, True: {}}
    for operation in operations:
        of_kind = counts[operation["label"] == ERROR]
        cell = window.cell(parse_timestamp(operation["created_at"]), STRIP_CELLS)
        of_kind[cell] = of_kind.get(cell, 0) + 1
    most = max((number for of_kind in counts.values() for number in of_kind.values()), default=1)
    paths = []
    for is_error, of_kind in counts.items():
        columns = [
            f"M{cell} {STRIP_HEIGHT}v-{max(2, round(STRIP_HEIGHT * number / most))}h.8V{STRIP_HEIGHT}z"
            for cell, number in sorted(of_kind.items())
        ]
        if columns:
            paths.append({"kind": "error" if is_error else "other", "d": "".join(columns)})
    return paths


def _lanes(operations: Sequence[Mapping[str, Any]], window: Window, cells: int) -> dict[str, list[Bar]]:
    """The bars of each action, the most frequent action first, errors after the others so that they are drawn on top."""
    of_actions = grouped(operations, "action")
    lanes = {}
    for action in sorted(of_actions, key=lambda name: (-len(of_actions[name]), name)):
        bars: dict[tuple[int, int], list[Mapping[str, Any]]] = {}
        for operation in of_actions[action]:
            cell = window.cell(parse_timestamp(operation["created_at"]), cells)
            bars.setdefault((LABELS.index(operation["label"]), cell), []).append(operation)
        lanes[action] = [Bar(LABELS[label], cell, bars[label, cell]) for label, cell in sorted(bars)]
    return lanes


def _timeline(
    lanes: Mapping[str, Sequence[Bar]], operations: Sequence[Mapping[str, Any]], window: Window, cells: int
) -> dict[str, Any]:
    height = len(lanes) * LANE_HEIGHT
    return {
        "height": height + 34,
        "axis": height,
        "text_y": height + 13,
        "lanes": [
            {
                "action": action,
                "count": counted(sum(len(mark.operations) for mark in bars), "operation"),
                "text_y": number * LANE_HEIGHT + 11,
                "rail_y": number * LANE_HEIGHT + BAR_TOP + 5,
                "bar_y": number * LANE_HEIGHT + BAR_TOP,
                "bars": [_bar(mark, action, window, cells) for mark in bars],
            }
            for number, (action, bars) in enumerate(lanes.items())
        ],
    }


def _bar(mark: Bar, action: str, window: Window, cells: int) -> dict[str, str]:
    start = mark.cell / cells
    end = max(start + 0.75 / cells, *(window.share(_end(operation, window)) for operation in mark.operations))
    return {
        "kind": kind_of(mark.label),
        "x": _percent(start),
        "width": _percent(min(end, 1.0) - start),
        "middle": _percent(start + 0.375 / cells),
        "what": _what(mark, action),
        "when": _when(mark),
    }


def _end(operation: Mapping[str, Any], window: Window) -> datetime:
    """When it ended; what is still going has not ended."""
    ended = operation["label"] == ERROR or operation["status"] in TIMED or operation["status"] == "skipped"
    updated_at = moment_or_none(operation["updated_at"])
    return updated_at if ended and updated_at else parse_timestamp(operation["created_at"]) if ended else window.end


def _what(mark: Bar, action: str) -> str:
    seconds = [
        operation["duration_seconds"] for operation in mark.operations if operation["duration_seconds"] is not None
    ]
    if len(mark.operations) == 1:
        (operation,) = mark.operations
        duration = [duration_text(seconds[0])] if seconds else []
        return " · ".join([action, label_text(operation), *duration])
    longest = [f"longest {duration_text(max(seconds))}"] if seconds else []
    return " · ".join([action, mark.label, counted(len(mark.operations), "operation"), *longest])


def _when(mark: Bar) -> str:
    """From the first to the last, and the newest error."""
    times = sorted(parse_timestamp(operation["created_at"]) for operation in mark.operations)
    texts = list(dict.fromkeys(second_text(moment) for moment in (times[0], times[-1])))
    errors = [shortened(operation["error"], ERROR_LENGTH) for operation in mark.operations if operation["error"]][:1]
    return " · ".join([" – ".join(texts), *errors])


def label_text(operation: Mapping[str, Any]) -> str:
    """The console's label, and the service's status where the label is not the usual one of it."""
    usual = {"finished", "scheduling", "running", "failed"}
    return (
        operation["label"]
        if operation["status"] in usual
        else f"{operation['label']} ({shortened(operation['status'], 40)})"
    )


def kind_of(label: str) -> str:
    """The name that the style sheet knows a label by."""
    return label.lower().replace(" ", "-")


def _percent(share: float) -> str:
    return f"{share * 100:.2f}".rstrip("0").rstrip(".") + "%"
