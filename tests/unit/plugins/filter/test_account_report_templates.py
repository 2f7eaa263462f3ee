# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The templates of the role account_report escape every value of the service."""

from __future__ import annotations

import re
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path

import pytest
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from ansible_collections.clouddb.control.plugins.filter.account_report import account_report
from ansible_collections.clouddb.control.plugins.filter.account_report_page import account_report_page
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
ELEMENTS = {
    "html",
    "head",
    "meta",
    "link",
    "title",
    "style",
    "body",
    "header",
    "main",
    "section",
    "article",
    "nav",
    "footer",
    "h1",
    "h2",
    "h3",
    "p",
    "ul",
    "li",
    "dl",
    "dt",
    "dd",
    "div",
    "span",
    "a",
    "b",
    "small",
    "bdi",
    "code",
    "br",
    "time",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "details",
    "summary",
    "svg",
    "g",
    "rect",
    "line",
    "path",
    "circle",
    "use",
    "text",
    "tspan",
    "symbol",
    "pattern",
}
EMPTY = {"meta", "link", "br"}


class Parsed(HTMLParser):
    """The elements, attributes and texts of a page; asserts that tags are balanced."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.attributes, self.texts, self.ids, self.links = set(), [], [], [], []
        self._open = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        if tag not in EMPTY:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.add(tag)
        self.attributes += attrs
        self.ids += [value for name, value in attrs if name == "id"]
        self.links += [value for name, value in attrs if name == "href"]

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def rendered(limits=None, **source):
    title = source.pop("title", HOSTILE)
    facts = account_report(account(**source), now=stamp(NOW), title=title)
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
    )
    return environment.get_template("report.html.j2").render(
        account_report_page=account_report_page(facts, **limits or {})
    )


def hostile(record, *but):
    """The record with the hostile text in every string field and in some others."""
    numbers = {"pg_version", "branch_logical_size_limit"}
    return {
        name: HOSTILE if name not in but and (isinstance(value, str) or name in numbers) else value
        for name, value in record.items()
    }


@pytest.fixture(scope="module")
def hostile_page():
    times = ("created_at", "updated_at", "last_used_at")
    return rendered(
        {"most_timelines": 1},
        api_keys=[hostile(key(n, "x", ago(days=1)), *times) for n in range(30)] + [hostile(key(99, "x"))],
        projects=[hostile(project(f"p{n}"), *(["id"] if n else [])) for n in range(30)],
        unavailable_project_ids=[HOSTILE],
        operations=[
            *(hostile(operation(n, error="x", failures_count=2), *times) for n in range(3)),
            *(hostile(operation(n + 10, "failed", error="x"), *times, "status", "project_id") for n in range(30)),
            hostile(operation(50, "failed", error="x", project_id="p2"), *times, "status", "project_id", "endpoint_id"),
        ],
    )


def test_every_value_is_escaped():
    expressions = [
        (path.name, found)
        for path in TEMPLATES.glob("*.html.j2")
        for found in re.findall(r"{{-?(.*?)-?}}", path.read_text(encoding="utf-8"), re.S)
    ]
    assert len(expressions) > 100
    assert [
        entry
        for entry in expressions
        if not entry[1].rstrip().endswith("| e") and not MACRO_CALL.fullmatch(entry[1].strip())
    ] == []


def test_every_attribute_is_quoted():
    text = "".join(path.read_text(encoding="utf-8") for path in TEMPLATES.glob("*.html.j2"))
    assert re.findall(r"=\s*{{", re.sub(r"{%.*?%}", "", text)) == []


class TestHostile:
    def test_no_injected_element(self, hostile_page):
        assert Parsed(hostile_page).elements <= ELEMENTS

    def test_no_injected_attribute(self, hostile_page):
        names = {name for name, _value in Parsed(hostile_page).attributes}
        assert not [
            name
            for name in names
            if name.startswith("on") or name in ("src", "srcset", "action", "xlink:href", "style")
        ]

    def test_no_injected_link(self, hostile_page):
        page = Parsed(hostile_page)
        assert {link for link in page.links if not link.startswith("#")} == {"data:,"}
        assert {link[1:] for link in page.links if link.startswith("#")} <= set(page.ids)

    def test_text_is_shown_unchanged(self, hostile_page):
        page = Parsed(hostile_page)
        assert sum(text.startswith(HOSTILE) for text in page.texts) > 200
        assert f"Timeline of {HOSTILE}:" in "".join(value for name, value in page.attributes if name == "aria-label")


class TestPage:
    def test_empty_account(self):
        page = Parsed(rendered(title="Mine"))
        text = " ".join(page.texts)
        for sentence in (
            "Mine",
            "Nothing needs attention.",
            "There are no keys.",
            "There are no projects.",
            "There were no operations.",
        ):
            assert sentence in text
        assert {link[1:] for link in page.links if link.startswith("#")} <= set(page.ids)

    def test_ids_are_unique(self):
        operations = [
            operation(n, status) for n, status in enumerate(["failed", "finished", "running", "scheduling"] * 9)
        ]
        page = Parsed(rendered(api_keys=[key(1, "a")], projects=[project("p1", locked=True)], operations=operations))
        assert len(page.ids) == len(set(page.ids))

    def test_policy_forbids_scripts(self):
        policies = [
            value
            for name, value in Parsed(rendered()).attributes
            if name == "content" and "default-src" in (value or "")
        ]
        assert policies == ["default-src 'none'; style-src 'unsafe-inline'; img-src data:"]

    @pytest.mark.parametrize("projects, each", [(1000, 20), (20, 1000)])
    def test_size(self, projects, each):
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
        text = rendered(
            api_keys=[key(n, "key") for n in range(500)],
            projects=[project(f"p{n}", "n" * 200) for n in range(projects)],
            operations=operations,
        )
        assert len(text.encode()) < 5_000_000
