# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The marks and ticks of timelines, which show the period from the first operation to the report."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.plugin_utils._report import timelines
from ansible_collections.clouddb.control.plugins.plugin_utils._report.timelines import Window, ticks
from ansible_collections.clouddb.control.tests.unit.plugins.filter.accounts import stamp

START = datetime(2026, 11, 1, tzinfo=timezone.utc)
HOUR = timedelta(hours=1)


def operation(hours: float = 0, label: str = "OK", action: str = "start_compute", **fields: Any) -> dict[str, Any]:
    created_at = stamp(START + hours * HOUR)
    return {
        **{"label": label, "action": action, "status": "finished", "created_at": created_at, "updated_at": created_at},
        **{"duration_seconds": None, "error": None},
        **fields,
    }


def drawn(*operations: dict[str, Any], hours: float = 100) -> dict[str, Any]:
    """The timeline of a project at the end of a period of 100 hours, which starts with the first operation."""
    [project] = timelines.timelines([operations], START, START + hours * HOUR)["projects"]
    return dict(project)


def marks(*operations: dict[str, Any]) -> list[dict[str, Any]]:
    """The marks of start_compute, after another operation at the start of the period."""
    [lane] = [lane for lane in drawn(*operations, operation(action="a"))["lanes"] if lane["action"] == "start_compute"]
    return list(lane["marks"])


@pytest.mark.parametrize("hours", [100, 1, 0.001])
def test_the_period_starts_with_the_first_operation_and_no_mark_touches_an_edge(hours: float) -> None:
    found = drawn(operation(hours), operation(0), hours=hours)["lanes"][0]["marks"]
    assert all(mark["x"] >= 2 and mark["x"] + mark["width"] <= 99 for mark in found)
    assert max(mark["x"] for mark in found) > 95


def test_order_of_lanes_and_tracks() -> None:
    """The most frequent action is first. Each label has a track."""
    labels = ("OK", "Scheduling", "In progress", "Error")
    found = drawn(operation(1, action="c"), *(operation(2, label, "b") for label in labels), operation(1, "Error", "a"))
    assert [(lane["action"], lane["y"]) for lane in found["lanes"]] == [("b", 0), ("a", 79), ("c", 113)]
    assert found["height"] == 147
    tracks = {mark["label"]: mark["y"] for mark in found["lanes"][0]["marks"]}
    assert tracks == {"OK": 16, "Scheduling": 31, "In progress": 46, "Error": 61}
    assert found["lanes"][1]["marks"][0]["y"] == 79 + 16


@pytest.mark.parametrize(
    "fields, hours",
    [
        ({"updated_at": stamp(START + 72 * HOUR)}, 72),
        ({"updated_at": stamp(START + 25 * HOUR), "status": "skipped"}, 25),
        ({"status": "running", "label": "In progress"}, 100),
        ({"updated_at": None}, 24),
        ({"updated_at": "soon", "status": "cancelled", "label": "Error"}, 24),
    ],
)
def test_end_of_a_mark(fields: dict[str, Any], hours: float) -> None:
    """The end of the operation, at least most of a cell after its start; the report while it is in progress."""
    [mark] = marks(operation(24, **fields))
    assert mark["x"] == pytest.approx(100 * (24 + 2.5) / 105, abs=1)
    assert mark["x"] + mark["width"] == pytest.approx(max(100 * (hours + 2.5) / 105, mark["x"] + 0.78), abs=0.01)


def test_operations_that_start_in_one_cell_are_one_mark() -> None:
    [mark] = marks(
        operation(50.75, duration_seconds=2, error="latest"),
        operation(50.5, duration_seconds=3, error="earlier"),
        operation(50.3),
    )
    assert mark["title"] == "OK, 3 operations · 3 Nov 02:18:00 – 3 Nov 02:45:00 · longest 3.00 s · latest"


@pytest.mark.parametrize(
    "fields, title",
    [
        ({"error": 503}, "OK · 3 Nov 02:00:00 · 503"),
        ({"duration_seconds": 0, "status": "paused"}, "OK (paused) · 3 Nov 02:00:00 · 0.00 s"),
    ],
)
def test_title_of_one_operation(fields: dict[str, Any], title: str) -> None:
    [mark] = marks(operation(50, **fields))
    assert mark["title"] == title


def test_fewer_marks_of_many_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timelines, "MAX_OPERATIONS", 95)
    assert len(drawn(*(operation(hours) for hours in range(96)))["lanes"][0]["marks"]) == 23


@pytest.mark.parametrize(
    "start, hours, expected",
    [
        (0, 1, ["1 Nov", "00:10", "00:20", "00:30"]),
        (0, 2, ["1 Nov", "00:30", "01:00", "01:30"]),
        (23.9, 24, ["2 Nov", "03:00", "06:00", "09:00"]),
        (8, 8 * 24, ["2 Nov", "3 Nov", "4 Nov", "5 Nov"]),
        (0, 8 * 24 + 1, ["1 Nov", "3 Nov", "5 Nov", "7 Nov"]),
    ],
)
def test_ticks_are_at_full_hours_and_days(start: float, hours: int, expected: list[str]) -> None:
    begin = START + start * HOUR
    found = ticks(Window(begin, begin + hours * HOUR, begin))
    assert [text for _x, text in found][:4] == expected
    assert len(found) <= 9


def test_an_operation_from_before_the_period_does_not_stretch_it() -> None:
    operations = [operation(), operation(-1000, "In progress", status="running")]
    found = timelines.timelines([operations], START, START + 10 * HOUR)
    marks = {mark["label"]: mark for lane in found["projects"][0]["lanes"] for mark in lane["marks"]}
    assert marks["In progress"]["x"] == 0
    assert marks["OK"]["x"] < 5
