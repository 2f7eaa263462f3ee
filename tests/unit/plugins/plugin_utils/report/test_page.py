# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The complete content of a page, its numbers in words, and which rows are folded or left out."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.clouddb.control.plugins.filter.account_report import account_report
from ansible_collections.clouddb.control.plugins.plugin_utils._report import page
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
    return report_page(account_report(account(**source), now=stamp(NOW), days=days), limits)


def test_complete_page() -> None:
    """As page.yml has it: three keys and projects, and operations of each kind."""
    content = page_of(
        api_keys=[key(1, "ci", ago(hours=5)), key(2, "ci", ago(days=200)), key(3, "")],
        projects=[
            project("p1", "shop", cpu_used_sec=1234567),
            project("p2", "blog", locked=True, region_id="azure-1", pg_version=16, cpu_used_sec=5),
            project("p3", branch_logical_size_limit=None, created_at="soon", platform_id=None),
        ],
        operations=[
            operation(1, seconds=0.5),
            operation(2, "failed", 75, error="no capacity.", failures_count=3),
            operation(3, "running", action="create_branch", failures_count=1),
            operation(4, "scheduling", action="create_branch", failures_count=2, endpoint_id=None),
            operation(5, "paused", action="create_branch", endpoint_id=None, branch_id=None),
            operation(6, "skipped", 4000, project_id="p2"),
            operation(7, "cancelled", project_id="p2", action="suspend_compute"),
            operation(8, "error", 90000, project_id="gone", age=timedelta(days=6, hours=23)),
        ],
        unavailable_project_ids=["p8", "p9"],
    )
    assert len(content.pop("fingerprint")) == 64
    expected = yaml.safe_load(Path(__file__).with_name("page.yml").read_text(encoding="utf-8"))
    for field, value in expected.items():
        assert content[field] == value, field
    assert content.keys() == expected.keys()


@pytest.mark.parametrize(
    "number, figures, attention",
    [
        (0, ["0 API keys", "0 projects", "0 operations", "0 Errors"], []),
        (
            1,
            ["1 API key", "1 project", "1 operation", "1 Error"],
            [
                "1 operation failed (errors)",
                "1 project could not be listed by the service (projects)",
                "1 project is locked (projects)",
                "1 API key was never used (keys)",
            ],
        ),
        (
            2,
            ["2 API keys", "2 projects", "2 operations", "2 Errors"],
            [
                "2 operations failed (errors)",
                "2 projects could not be listed by the service (projects)",
                "2 projects are locked (projects)",
                "2 API keys were never used (keys)",
                "2 API keys share their names with others (keys)",
            ],
        ),
    ],
)
def test_numbers_in_words(number: int, figures: list[str], attention: list[str]) -> None:
    content = page_of(
        api_keys=[key(each, "ci") for each in range(1, number + 1)],
        projects=[project(f"p{each}", locked=True) for each in range(number)],
        operations=[operation(each, "failed") for each in range(1, number + 1)],
        unavailable_project_ids=[f"lost-{each}" for each in range(number)],
    )
    assert [f"{figure['value']} {figure['name']}" for figure in content["figures"]] == figures
    assert [figure["id"] for figure in content["figures"]] == ["keys", "projects", "operations", "errors"]
    assert [f"{row['number']} {row['text']} ({row['id']})" for row in content["attention"]] == attention


@pytest.mark.parametrize(
    "number, text",
    [(1, "1 API key has not been used for 90 days or more"), (2, "2 API keys have not been used for 90 days or more")],
)
def test_keys_that_are_not_used(number: int, text: str) -> None:
    keys = [key(each, f"ci-{each}", ago(days=91)) for each in range(1, number + 1)]
    [row] = page_of(api_keys=keys)["attention"]
    assert (f"{row['number']} {row['text']}", row["id"]) == (text, "keys")


def test_one_duplicate_name() -> None:
    facts = account_report(account(), now=stamp(NOW))
    facts["api_keys"]["duplicate_names"] = 1
    [row] = report_page(facts, LIMITS)["attention"]
    assert row["text"] == "API key shares its name with another"


@pytest.mark.parametrize("days, text", [(1, "24 hours"), (2, "2 days")])
def test_the_period(days: int, text: str) -> None:
    assert page_of(days=days)["days"] == text


@pytest.mark.parametrize(
    "number, rows, folded, omitted",
    [
        (0, 0, 0, ""),
        (20, 20, 0, ""),
        (21, 21, 0, ""),
        (25, 25, 0, ""),
        (26, 20, 6, ""),
        (30, 20, 10, ""),
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


@pytest.mark.parametrize(
    "number, total, percent", [(0, 0, "0 %"), (0, 5, "0 %"), (1, 101, "< 1 %"), (1, 100, "1 %"), (2, 3, "67 %")]
)
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
    assert (len(timeline["rows"]), timeline["older"], timeline["count"]) == (50, older, f"{number} operations")


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
