# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The bars, ticks and sparklines of timelines, at the limits of their cells and intervals."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.plugin_utils._report import timelines
from ansible_collections.clouddb.control.plugins.plugin_utils._report.timelines import LABELS, Window, sparkline, ticks
from ansible_collections.clouddb.control.tests.unit.plugins.filter.accounts import stamp

START = datetime(2026, 11, 1, tzinfo=timezone.utc)
HOUR = timedelta(hours=1)
# One hour for each of the 96 cells.
WINDOW = Window(START, START + 96 * HOUR)


def operation(hours: float = 0, label: str = "OK", action: str = "start_compute", **fields: Any) -> dict[str, Any]:
    created_at = stamp(START + hours * HOUR)
    return {
        **{"label": label, "action": action, "status": "finished", "created_at": created_at, "updated_at": created_at},
        **{"duration_seconds": None, "error": None},
        **fields,
    }


def lanes(*operations: dict[str, Any]) -> list[dict[str, Any]]:
    return list(timelines.timelines({"p1": operations}, WINDOW)["p1"]["lanes"])


@pytest.mark.parametrize(
    "hours, share, cell",
    [(-1, 0.0, 0), (0, 0.0, 0), (0.99, 0.0103125, 0), (1, 1 / 96, 1), (48, 0.5, 48), (96, 1.0, 95), (97, 1.0, 95)],
)
def test_position_of_a_time(hours: float, share: float, cell: int) -> None:
    moment = START + hours * HOUR
    assert (WINDOW.share(moment), WINDOW.cell(moment, 96)) == (share, cell)


@pytest.mark.parametrize("most, number", [(96, 96), (95, 48), (47, 24), (11, 12)])
def test_fewer_cells_for_many_bars(most: int, number: int) -> None:
    operations = [operation(hours) for hours in range(96)]
    with pytest.MonkeyPatch.context() as changes:
        changes.setattr(timelines, "MAX_BARS", most)
        [lane] = lanes(*operations)
    assert len(lane["bars"]) == number


def test_order_of_lanes_and_bars() -> None:
    """The most frequent action is first. Bars of errors are drawn last, over those of other labels."""
    operations = [operation(hours, label, "b") for hours in (2, 1) for label in reversed(LABELS)]
    found = lanes(operation(1, action="c"), *operations, operation(1, action="a"))
    assert [lane["action"] for lane in found] == ["b", "a", "c"]
    kinds = [kind for kind in ("ok", "scheduling", "in-progress", "error") for _each in range(2)]
    assert [drawn["kind"] for drawn in found[0]["bars"]] == kinds
    assert [drawn["x"] for drawn in found[0]["bars"]] == ["1.04%", "2.08%"] * 4


@pytest.mark.parametrize(
    "fields, width",
    [
        ({"updated_at": stamp(START + 72 * HOUR)}, "50%"),
        ({"updated_at": stamp(START + 200 * HOUR)}, "75%"),
        ({"updated_at": stamp(START + 25 * HOUR), "status": "skipped"}, "1.04%"),
        ({"updated_at": stamp(START + 72 * HOUR), "status": "running", "label": "In progress"}, "75%"),
        ({"updated_at": None}, "0.78%"),
        ({"updated_at": "soon", "status": "cancelled", "label": "Error"}, "0.78%"),
        ({"updated_at": None, "status": "running", "label": "In progress"}, "75%"),
    ],
)
def test_width_of_a_bar(fields: dict[str, Any], width: str) -> None:
    [lane] = lanes(operation(24, **fields))
    [drawn] = lane["bars"]
    assert (drawn["x"], drawn["width"], drawn["middle"]) == ("25%", width, "25.39%")


@pytest.mark.parametrize(
    "operations, what, when",
    [
        ([operation()], "start_compute · OK", "1 Nov 00:00:00"),
        ([operation(duration_seconds=0)], "start_compute · OK · 0.00 s", "1 Nov 00:00:00"),
        ([operation(status="paused")], "start_compute · OK (paused)", "1 Nov 00:00:00"),
        ([operation(status="s" * 41)], f"start_compute · OK ({'s' * 39}…)", "1 Nov 00:00:00"),
        ([operation(action="a" * 121)], f"{'a' * 119}… · OK", "1 Nov 00:00:00"),
        ([operation(), operation()], "start_compute · OK · 2 operations", "1 Nov 00:00:00"),
        (
            [
                operation(0.5, duration_seconds=2, error="e" * 71),
                operation(0.25, duration_seconds=3, error="earlier"),
                operation(0.75),
            ],
            "start_compute · OK · 3 operations · longest 3.00 s",
            f"1 Nov 00:15:00 – 1 Nov 00:45:00 · {'e' * 69}…",
        ),
    ],
)
def test_texts_of_a_bar(operations: list[dict[str, Any]], what: str, when: str) -> None:
    [lane] = lanes(*operations)
    [drawn] = lane["bars"]
    assert (drawn["what"], drawn["when"]) == (what, when)


@pytest.mark.parametrize("step, following", [(1, 3), (24, 48), (8928, 8928)])
def test_interval_of_ticks(step: int, following: int) -> None:
    """Eight intervals fit into the window; in a longer one, the next longer interval is used."""

    def positions(hours: int) -> list[str]:
        return [tick["x"] for tick in ticks(Window(START, START + hours * HOUR))]

    assert positions(8 * step) == ["0%", "12.5%", "25%", "37.5%", "50%", "62.5%", "75%", "87.5%"]
    assert positions(8 * step + 1)[1] == timelines._percent(following / (8 * step + 1))


@pytest.mark.parametrize(
    "start, hours, expected",
    [
        (timedelta(microseconds=1), 24, ["03:00 12.5%", "06:00 25% minor", "09:00 37.5%", "12:00 50% minor"]),
        (timedelta(minutes=59, seconds=59), 3, ["01:00 0.01%", "02:00 33.34% minor", "03:00 66.68%"]),
        (8 * HOUR, 100, ["2 Nov 16%", "3 Nov 40% minor", "4 Nov 64%", "5 Nov 88% minor"]),
        (8 * HOUR, 99, ["2 Nov 16.16%", "3 Nov 40.4% minor", "4 Nov 64.65%", "5 Nov 88.89% minor late"]),
    ],
)
def test_ticks_are_at_full_hours_and_days(start: timedelta, hours: int, expected: list[str]) -> None:
    found = ticks(Window(START + start, START + start + hours * HOUR))
    texts = [" ".join([tick["text"], tick["x"], *(mark for mark in ("minor", "late") if tick[mark])]) for tick in found]
    assert texts[:4] == expected


def test_heights_of_a_sparkline() -> None:
    """Relative to the highest column, but visible. Errors have a path of their own, which is drawn last."""
    operations = [operation(95, "Error"), *(operation(50) for _each in range(8)), *(operation(0) for _each in range(3))]
    assert sparkline(operations, WINDOW) == [
        {"kind": "other", "d": "M0 12v-4h.8V12zM21 12v-12h.8V12z"},
        {"kind": "error", "d": "M41 12v-2h.8V12z"},
    ]
    assert sparkline([operation()], WINDOW) == [{"kind": "other", "d": "M0 12v-12h.8V12z"}]
    assert sparkline([], WINDOW) == []
