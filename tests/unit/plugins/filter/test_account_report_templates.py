# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page of the role account_report: its complete text, and that no value of the service is more than text."""

from __future__ import annotations

import re
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from ansible_collections.clouddb.control.plugins.filter.account_report import account_report
from ansible_collections.clouddb.control.tests.unit.plugins.filter.accounts import (
    NOW,
    account,
    ago,
    key,
    operation,
    project,
    stamp,
)

TEMPLATES = Path(__file__).parents[4] / "roles" / "account_report" / "templates"
MACRO_CALL = re.compile(r"(show\.)?\w+\([\w., ]*\)")
HOSTILE = """<script>alert(1)</script></style></title>"' onload='alert(2)' {{ 7*7 }}{% raw %} &lt;b>]]>-->"""
EMPTY = {"meta", "link"}
LINES = {"title", "header", "h1", "h2", "h3", "p", "li", "div", "tr", "summary", "article", "text", "section", "footer"}


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
        self.texts += ["\n"] if tag in LINES else ["| "] if tag in ("td", "th", "tspan", "dd") else []

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


def rendered(most_timelines: int = 20, title: str = "Account report", **source: Any) -> Parsed:
    page = account_report(account(**source), now=stamp(NOW), title=title, most_timelines=most_timelines)["page"]
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
    )
    return Parsed(environment.get_template("report.html.j2").render(account_report_page=page))


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


def test_every_value_is_escaped() -> None:
    expressions = [
        (path.name, found)
        for path in TEMPLATES.glob("*.html.j2")
        for found in re.findall(r"{{-?(.*?)-?}}", path.read_text(encoding="utf-8"), re.DOTALL)
    ]
    assert len(expressions) > 100
    assert [
        entry
        for entry in expressions
        if not entry[1].rstrip().endswith("| e") and not MACRO_CALL.fullmatch(entry[1].strip())
    ] == []
    text = "".join(path.read_text(encoding="utf-8") for path in TEMPLATES.glob("*.html.j2"))
    assert re.findall(r"=\s*{{", re.sub(r"{%.*?%}", "", text)) == [], "every attribute is quoted"


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
    assert any(f"Timeline of {HOSTILE}:" in label for label in page.values("aria-label"))
    assert not page.elements & {"script", "img", "iframe", "form", "input", "object"}
    names = {name for name, _value in page.attributes}
    assert not [name for name in names if name.startswith("on") or name in ("src", "action", "xlink:href", "style")]
    links, ids = page.values("href"), page.values("id")
    assert {link for link in links if not link.startswith("#")} == {"data:,"}
    assert {link[1:] for link in links if link.startswith("#")} <= set(ids)
    assert len(ids) == len(set(ids))
    assert "default-src 'none'; style-src 'unsafe-inline'; img-src data:" in page.values("content")


@pytest.mark.parametrize("projects, each", [(1000, 20), (20, 1000)])
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
    report = account_report(account([], [project(f"p{n}", "n" * 200) for n in range(projects)], operations), stamp(NOW))
    environment = Environment(loader=FileSystemLoader(TEMPLATES), trim_blocks=True, lstrip_blocks=True)
    html = environment.get_template("report.html.j2").render(account_report_page=report["page"])
    assert len(html.encode()) < 5_000_000
