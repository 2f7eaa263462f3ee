# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The content of a page: numbers in words, which rows are folded or left out, and truncated texts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.plugin_utils._report import page
from ansible_collections.clouddb.control.plugins.plugin_utils._report.facts import ReportOptions, report_facts
from ansible_collections.clouddb.control.plugins.plugin_utils._report.page import PageLimits, report_page
from ansible_collections.clouddb.control.tests.unit.plugins.filter.accounts import (
    NOW,
    account,
    ago,
    key,
    operation,
    project,
    stamp,
)

LIMITS = PageLimits(1, 30)


def page_of(limits: PageLimits = LIMITS, days: int = 7, **source: Any) -> dict[str, Any]:
    return report_page(report_facts(account(**source), ReportOptions("Report", days, 90), stamp(NOW), ""), limits)


def test_one_of_each_is_singular() -> None:
    """The page with more of each is in page.txt of the templates."""
    content = page_of(
        api_keys=[key(1, "a"), key(2, "b", ago(days=91))],
        projects=[project("p", locked=True)],
        operations=[operation(1, "failed")],
        unavailable_project_ids=["lost"],
    )
    assert [f"{figure['value']} {figure['name']}" for figure in content["figures"]] == [
        *("2 API keys", "1 project", "1 operation", "1 Error")
    ]
    assert [f"{row['number']} {row['text']} ({row['id']})" for row in content["attention"]] == [
        "1 operation failed (errors)",
        "1 project could not be listed by the service (projects)",
        "1 project is locked (projects)",
        "1 API key was never used (keys)",
        "1 API key has not been used for 90 days or more (keys)",
    ]
    assert page_of()["attention"] == []


def texts(content: Any) -> list[Any]:
    items = content.values() if isinstance(content, dict) else content
    return [text for item in items for text in texts(item)] if isinstance(content, (dict, list)) else [content]


def test_every_text_is_displayable() -> None:
    bad = "\x1b[31m\x9b\u202e\n" + "x" * 300

    def hostile(item: dict[str, Any]) -> dict[str, Any]:
        kept = ("status", "created_at", "updated_at", "last_used_at")
        return {field: value if field in kept else bad for field, value in item.items()}

    found = page_of(
        api_keys=[hostile(key(1, "a", ago(days=100)))],
        projects=[hostile(project("p1"))],
        operations=[hostile(operation(1)), hostile(operation(2, "failed", error="x")), operation(3, bad)],
        unavailable_project_ids=[bad],
    )
    shown = [text for text in texts(found) if isinstance(text, str)]
    assert any(r"\x1b[31m" in text for text in shown)
    assert [text for text in shown if not text.replace("\u202f", "").isprintable()] == []


def test_most_urgent_projects_and_timelines_first() -> None:
    operations = [
        *(operation(number, project_id="many") for number in range(9)),
        *(operation(10, "failed", project_id="failing"), operation(11, project_id="few")),
    ]
    found = page_of(
        projects=[project("a", cpu_used_sec=5), project("many", "", cpu_used_sec=7), project("b", locked=True)],
        operations=operations,
    )
    assert [row["id"] for row in found["projects"]["rows"]] == ["b", "many", "a"]
    assert [row["name"] for row in found["timelines"]["projects"]] == ["failing"]
    assert [row["name"] for row in found["timelines"]["rest"]["folded"]] == ["many", "few"], "the id in place of a name"


@pytest.mark.parametrize("days, text", [(1, "24 hours"), (2, "2 days")])
def test_the_period(days: int, text: str) -> None:
    assert page_of(days=days)["days"] == text


@pytest.mark.parametrize(
    "number, rows, folded, omitted",
    [
        (0, 0, 0, ""),
        (25, 25, 0, ""),
        (26, 20, 6, ""),
        (31, 20, 10, "1"),
    ],
)
def test_folded_rows(number: int, rows: int, folded: int, omitted: str) -> None:
    table = page_of(api_keys=[key(each, f"ci-{each}") for each in range(1, number + 1)])["api_keys"]
    assert (len(table["rows"]), len(table["folded"]), table["omitted"]) == (rows, folded, omitted)
    assert table["folded_count"] == str(folded)


@pytest.mark.parametrize("number, names", [(8, 8), (9, 8)])
def test_rare_values_share_a_row(number: int, names: int) -> None:
    regions = [project(f"p{each}", region_id=f"region-{each}") for each in range(number)]
    breakdown = page_of(projects=[*regions, project("q", region_id="region-0")])["projects"]["breakdowns"][0]
    assert (breakdown["name"], len(breakdown["rows"])) == ("Region", names)
    assert breakdown["rows"][0] == {"name": "region-0", "count": "2", "width": 100.0}
    last = (
        {"name": "2 others", "count": "2", "width": 100.0}
        if number == 9
        else {"name": "region-7", "count": "1", "width": 50.0}
    )
    assert breakdown["rows"][-1] == last


@pytest.mark.parametrize("number, total, percent", [(0, 0, "0 %"), (1, 101, "< 1 %"), (1, 100, "1 %"), (2, 3, "67 %")])
def test_shares(number: int, total: int, percent: str) -> None:
    assert page._label("Running", number, total) == {
        "label": "Running",
        "kind": "running",
        "count": str(number),
        "percent": percent,
    }


def test_parts_of_a_bar_are_wide_enough_to_be_seen() -> None:
    labels = dict.fromkeys(page.LABELS, 0)
    assert page._parts(labels) == []
    first, second, *_others = page.LABELS
    assert page._parts({**labels, first: 3, second: 1}) == [
        {"kind": page.css_class(first), "x": 0.0, "width": 75.0},
        {"kind": page.css_class(second), "x": 75.0, "width": 25.0},
    ]
    wide, narrow = page._parts({**labels, first: 9999, second: 1})
    assert (wide["width"], narrow["x"], narrow["width"]) == (98.52, 98.52, 1.48)


@pytest.mark.parametrize("number, older", [(50, ""), (51, "1")])
def test_rows_of_a_timeline(number: int, older: str) -> None:
    operations = [operation(each, age=timedelta(minutes=each)) for each in range(1, number + 1)]
    [timeline] = page_of(operations=operations)["timelines"]["projects"]
    assert (len(timeline["rows"]), timeline["older"]) == (50, older)


@pytest.mark.parametrize("length", [120, 121])
def test_long_names_and_errors_are_truncated(length: int) -> None:
    long, error = "n" * length, "e" * (length + 280)
    content = page_of(
        projects=[project("p", long, region_id=long)],
        operations=[operation(1, "failed", action=long, project_id="p", endpoint_id=long, error=error)],
    )
    shown = long if length == 120 else f"{'n' * 119}…"
    row = (
        content["operations"]["slowest"][0]
        if content["operations"]["slowest"]
        else content["operations"]["failed"]["rows"][0]
    )
    assert (row["project"], row["action"], row["on"]) == (shown, shown, shown)
    assert row["error"] == (error if length == 120 else f"{'e' * 399}…")
    assert content["projects"]["rows"][0]["name"] == content["projects"]["rows"][0]["region"] == shown
    assert content["operations"]["actions"][0]["action"] == shown
