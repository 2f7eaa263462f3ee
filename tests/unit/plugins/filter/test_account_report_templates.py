# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page of the role account_report: its complete text, and that no value of the service is more than text."""

from __future__ import annotations

from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.filter.account_report import account_report

from .accounts import NOW, account, ago, key, operation, project, stamp

HOSTILE = """<script>alert(1)</script></style></title>"' onload='alert(2)' {{ 7*7 }}{% raw %} &lt;b>]]>-->"""
EMPTY = {"meta", "link"}
LINES = {"h1", "h2", "h3", "p", "li", "ul", "div", "nav", "tr", "text", "rect", "title"}
LINES |= {"header", "summary", "article", "section", "footer"}


class Parsed(HTMLParser):
    """The elements, attributes and visible texts of a page; fails if tags are not balanced."""

    def __init__(self, html: str):
        super().__init__(convert_charrefs=True)
        self.elements: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in EMPTY:
            self._open.append(tag)
        self.texts += ["\n"] if tag in LINES else ["| "] if tag in ("td", "th", "dd") else []

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] != "style":
            self.texts.append(data.replace("\n", " "))

    def values(self, attribute: str) -> list[str]:
        return [value or "" for name, value in self.attributes if name == attribute]

    def lines(self) -> str:
        """The visible text, with a line for each paragraph, row and label."""
        lines = (" ".join(line.split()) for line in "".join(self.texts).split("\n"))
        return "".join(f"{line}\n" for line in lines if line)


def rendered(now: str = stamp(NOW), **source: Any) -> Parsed:
    names = ("title", "most_timelines", "most_rows", "project_url", "days", "limits")
    options = {name: source.pop(name) for name in names if name in source}
    return Parsed(account_report(account(**source), now=now, **options)["page"])


def test_complete_text() -> None:
    """As page.txt has it: keys and projects with each mark, and operations of each kind."""
    page = rendered(
        most_timelines=1,
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
    assert page.lines() == Path(__file__).with_name("page.txt").read_text(encoding="utf-8")


def test_empty_account() -> None:
    text = rendered().lines()
    for sentence in ("Nothing needs attention.", "There are no keys.", "There are no projects.", "no operations."):
        assert sentence in text


def hostile(record: dict[str, Any], *but: str) -> dict[str, Any]:
    """The record with the hostile text in every string field and in some others."""
    numbers = {"pg_version", "branch_logical_size_limit"}
    kept = {"created_at", "updated_at", "last_used_at", *but}
    return {
        name: HOSTILE if name not in kept and (isinstance(value, str) or name in numbers) else value
        for name, value in record.items()
    }


def test_hostile_values_are_only_text() -> None:
    page = rendered(
        most_timelines=1,
        title=HOSTILE,
        api_keys=[hostile(key(n, "x", ago(days=1))) for n in range(30)],
        projects=[hostile(project(f"p{n}"), *(["id"] if n else [])) for n in range(30)],
        unavailable_project_ids=[HOSTILE],
        operations=[
            *(hostile(operation(n, error="x", failures_count=2)) for n in range(3)),
            *(hostile(operation(n + 10, "failed", error="x"), "status", "project_id") for n in range(30)),
            hostile(operation(50, "failed", error="x", project_id="p2"), "status", "project_id", "endpoint_id"),
        ],
    )
    assert sum(text.startswith(HOSTILE) for text in page.texts) > 200
    assert any(f"Timeline of {HOSTILE}" in label for label in page.values("aria-label"))
    assert not page.elements & {"script", "img", "iframe", "form", "input", "object"}
    names = {name for name, _value in page.attributes}
    assert not [name for name in names if name.startswith("on") or name in ("src", "action", "xlink:href", "style")]
    links, ids = page.values("href"), page.values("id")
    assert {link for link in links if not link.startswith("#")} == {"data:,"}
    assert {link[1:] for link in links if link.startswith("#")} <= set(ids)
    assert len(ids) == len(set(ids))
    assert "default-src 'none'; style-src 'unsafe-inline'; img-src data:" in page.values("content")


@pytest.mark.soak
@pytest.mark.parametrize("projects, each", [(400, 20), (20, 400)])
def test_size(projects: int, each: int) -> None:
    operations = [
        operation(
            f"{number}-{n}",
            "failed" if n % 2 else "finished",
            age=timedelta(minutes=10000 * n / each + number),
            action=f"action_{n % 8}",
            project_id=f"p{number}",
            error="x" * 1000 if n % 2 else None,
        )
        for number in range(projects)
        for n in range(each)
    ]
    source = account([], [project(f"p{n}", "n" * 200) for n in range(projects)], operations)
    assert len(account_report(source, stamp(NOW))["page"].encode()) < 3_000_000


@pytest.mark.parametrize(
    "number, rows, more",
    [(25, 25, []), (26, 26, ["6 more"]), (31, 30, ["10 more", "1 more in the JSON of this report."])],
)
def test_folded_rows(number: int, rows: int, more: list[str]) -> None:
    page = rendered(api_keys=[key(each, f"ci-{each}") for each in range(number)], most_rows=30)
    lines = page.lines().splitlines()
    assert sum(line.startswith("| ci-") for line in lines) == rows
    assert [line for line in lines if " more" in line and "or more" not in line] == more


@pytest.mark.parametrize("length", [120, 121])
def test_long_texts_are_truncated(length: int) -> None:
    long, error = "n" * length, "e" * (length + 280)
    lines = rendered(
        projects=[project("p", long, region_id=long)],
        operations=[operation(1, "failed", action=long, project_id="p", endpoint_id=long, error=error)],
    ).lines()
    assert (long in lines, error in lines) == (length == 120, length == 120)
    assert (f"{'n' * 119}…" in lines, f"{'e' * 399}…" in lines) == (length > 120, length > 120)


def test_control_characters_are_shown_as_escapes() -> None:
    bad = "\x1b[31m\x9b\u202e\ud800"
    page = rendered(
        title=bad,
        api_keys=[key(1, bad)],
        projects=[project(bad, region_id=bad)],
        operations=[operation(2, "failed", project_id=bad, action=bad, error=bad), operation(3, bad)],
    )
    assert page.lines().count(r"\x1b[31m\x9b\u202e\ud800") > 10
    assert all(line.isprintable() for line in page.lines().splitlines())
    assert all((value or "").isprintable() for _name, value in page.attributes)


def test_links_to_the_console() -> None:
    url = "https://console.example.com/?a=1&id={project_id}#x"
    page = rendered(project_url=url, projects=[project("p 1/2", "shop")], operations=[operation(1, project_id="p 1/2")])
    assert {link for link in page.values("href") if link.startswith("https")} == {
        "https://console.example.com/?a=1&id=p%201%2F2#x"
    }


def test_equal_rows_of_the_slowest_operations_are_one() -> None:
    operations = [
        *(operation(n, seconds=1.5) for n in range(8)),
        operation(9, seconds=2),
        operation(10, project_id="p2", seconds=1.5),
    ]
    lines = rendered(operations=operations).lines().rsplit("Slowest", maxsplit=1)[-1].split("Timelines")[0].splitlines()
    assert [line for line in lines if line.startswith("| p")] == [
        "| p1 | start_compute | OK | 21 Nov 03:00:00 | 2.00 s",
        "| p1 | start_compute | OK | 21 Nov 12:00:00 and 7 others | 1.50 s",
        "| p2 | start_compute | OK | 21 Nov 02:00:00 | 1.50 s",
    ]


def test_labels_and_columns_without_operations_are_left_out() -> None:
    lines = rendered(operations=[operation(1)]).lines()
    assert "| Action| Total| OK| Median" in lines and "Scheduling" not in lines and "| Failed" not in lines


@pytest.mark.parametrize("days, text", [(1, "the last 24 hours"), (2, "the last 2 days")])
def test_the_period(days: int, text: str) -> None:
    assert text in rendered(days=days).lines()


def test_usage_and_what_could_not_be_read() -> None:
    period = {"consumption_period_start": "2026-11-01T00:00:00Z", "consumption_period_end": "2026-12-01T00:00:00Z"}
    quota = {"quota": {"active_time_seconds": 100}}
    projects = [project("p1", "shop", active_time=70, cpu_used_sec=20, settings=quota, **period), project("p2")]
    limits = {"active_time_seconds": 60, "compute_time_seconds": 15}
    text = rendered(projects=projects, unread_project_ids=["p2"], limits=limits).lines()
    for line in (
        "1 project has operations that could not be fetched",
        "1 project exceeds a limit of usage: shop (active_time_seconds 70 of 60); shop (compute_time_seconds 20 of 15)",
        "The operations of these projects could not be fetched: p2",
        "| shop over a limit p1 | active_time_seconds 70 of 100, compute_time_seconds 20 | 1 Nov 2026, 00:00 – 1 Dec 2026, 00:00",
    ):
        assert f"{line}\n" in text
    assert text.count("over a limit p") == 1


def test_links_of_what_needs_attention() -> None:
    operations = [operation(2, "failed"), operation(3, "running")]
    page = rendered(api_keys=[key(1, "ci")], projects=[project("p1", locked=True)], operations=operations)
    # The last two of the four figures, then the list.
    assert "#operations #failed #failed #unfinished #projects #keys" in " ".join(page.values("href"))
    assert {link for link in page.values("href") if "icon" in link} >= {"#icon-in-progress", "#icon-error"}
    assert "#icon-ok" not in page.values("href")


@pytest.mark.parametrize("number, more", [(50, None), (51, "1 older operation in the JSON of this report.")])
def test_older_operations_of_a_project(number: int, more: str | None) -> None:
    text = rendered(operations=[operation(n) for n in range(number)]).lines()
    assert text.count(" in the JSON of this report.") == bool(more) and (more or "") in text


def test_parts_of_a_bar_are_wide_enough_to_be_seen() -> None:
    page = rendered(operations=[operation(n, "failed" if n < 1 else "finished", age=NOW - NOW) for n in range(1000)])
    assert {"98.52", "1.48"} <= {*page.values("width")}
