# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from datetime import timedelta

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.clouddb.control.plugins.filter.account_report import account_report
from ansible_collections.clouddb.control.plugins.filter.account_report_page import FilterModule
from ansible_collections.clouddb.control.plugins.plugin_utils._report import text as report_text
from ansible_collections.clouddb.control.plugins.plugin_utils._report import timelines as report_timelines
from ansible_collections.clouddb.control.plugins.plugin_utils._report.timelines import (
    Window,
    sparkline,
    ticks,
    timelines,
)
from ansible_collections.clouddb.control.tests.unit.plugins.filter.accounts import (
    NOW,
    account,
    ago,
    key,
    operation,
    project,
    stamp,
)

account_report_page = FilterModule().filters()["account_report_page"]
WEEK = Window(NOW - timedelta(days=7), NOW)


def page(limits=None, days=7, **source):
    return account_report_page(account_report(account(**source), now=stamp(NOW), days=days), **limits or {})


def facts_of(operations):
    return account_report(account(operations=operations), now=stamp(NOW))["operations"]["list"]


class TestTexts:
    @pytest.mark.parametrize(
        "seconds, text",
        [
            (None, "–"),
            (0, "0.00 s"),
            (9.994, "9.99 s"),
            (9.996, "10.0 s"),
            (59.94, "59.9 s"),
            (59.96, "1 min 0 s"),
            (3599.4, "59 min 59 s"),
            (3599.6, "1 h 0 min"),
            (86399, "23 h 59 min"),
            (180000, "2 d 2 h"),
        ],
    )
    def test_duration(self, seconds, text):
        assert report_text.duration_text(seconds) == text

    @pytest.mark.parametrize(
        "days, text",
        [
            (None, "–"),
            (0, "< 1 day"),
            (1, "1 day"),
            (89, "89 days"),
            (90, "3 months"),
            (729, "24 months"),
            (730, "2 years"),
        ],
    )
    def test_days(self, days, text):
        assert report_text.days_text(days) == text

    @pytest.mark.parametrize(
        "number, text", [(None, "–"), (0, "0"), (1234567, "1\u202f234\u202f567"), (True, "True"), ("many", "many")]
    )
    def test_number(self, number, text):
        assert report_text.number_text(number) == text

    def test_shortened(self):
        assert report_text.truncated("a\n b\t c", 5) == "a b c"
        assert report_text.truncated("abcdef", 5) == "abcd…"


class TestHostileTexts:
    HOSTILE = "\x1b[31m\x9b\u202e\n" + "x" * 300

    def texts(self, content):
        if isinstance(content, dict):
            content = list(content.values())
        return [text for item in content for text in self.texts(item)] if isinstance(content, list) else [content]

    def test_every_text_is_displayable(self):
        def hostile(item):
            kept = ("status", "created_at", "updated_at", "last_used_at", "duplicate")
            return {field: value if field in kept else self.HOSTILE for field, value in item.items()}

        operations = [
            operation(1),
            operation(2, "failed", error="x"),
            operation(3, self.HOSTILE),
            operation(4, "running"),
        ]
        found = page(
            {"most_timelines": 1},
            api_keys=[hostile(key(1, "a", ago(days=100)))],
            projects=[hostile(project("p1"))],
            operations=[*map(hostile, operations), operation(5)],
            unavailable_project_ids=[self.HOSTILE],
        )
        texts = [text for text in self.texts(found) if isinstance(text, str)]
        assert any(r"\x1b[31m" in text for text in texts)
        assert [text for text in texts if not text.replace("\u202f", "").isprintable()] == []
        (lane,) = found["timelines"]["projects"][0]["lanes"]
        assert lane["action"].startswith(r"\x1b[31m\x9b\u202e")
        assert len(lane["action"]) == 120
        assert max(len(row["status"]) for row in found["operations"]["statuses"]) == 40

    def test_usual_texts_stay_as_they_are(self):
        title = "Bericht – " + "é" * 600
        facts = account_report(account(projects=[project("p1", cpu_used_sec=1234567)]), now=stamp(NOW), title=title)
        found = account_report_page(facts)
        assert found["title"] == title
        assert found["projects"]["cpu_used_sec"] == "1\u202f234\u202f567"


class TestTables:
    def test_most_urgent_rows_first(self):
        found = page(
            api_keys=[
                key(1, "used", ago(days=1)),
                *(key(number, "twice", ago(days=1)) for number in (3, 2)),
                key(4, "zero"),
                key(5, "idle", ago(days=91)),
            ],
            projects=[
                project("p1", cpu_used_sec=5),
                project("p2", cpu_used_sec=7),
                project("p3", cpu_used_sec=1, locked=True),
            ],
        )
        assert [row["name"] for row in found["api_keys"]["rows"]] == ["idle", "twice", "twice", "zero", "used"]
        assert [row["name"] for row in found["projects"]["rows"]] == ["p3", "p2", "p1"]

    @pytest.mark.parametrize("option", ["most_rows", "most_timelines"])
    @pytest.mark.parametrize("value, problem", [(-1, "0 or more, not -1"), ("all", "an integer, not 'all'")])
    def test_limits(self, option, value, problem):
        with pytest.raises(AnsibleFilterError, match=f"^account_report_page: {option}: must be {problem}.$"):
            page({option: value})

    @pytest.mark.parametrize("most", [0, "0"])
    def test_without_rows_and_timelines(self, most):
        found = page({"most_rows": most, "most_timelines": most}, projects=[project("p1")], operations=[operation(1)])
        assert (found["projects"]["rows"], found["projects"]["omitted"]) == ([], "1")
        assert (found["timelines"]["projects"], found["timelines"]["count"]) == ([], "1")

    @pytest.mark.parametrize(
        "number, unfolded, folded, omitted", [(0, 0, 0, ""), (25, 25, 0, ""), (26, 20, 6, ""), (35, 20, 10, "5")]
    )
    def test_long_tables_are_folded_and_truncated(self, number, unfolded, folded, omitted):
        table = page({"most_rows": 30}, projects=[project(f"p{n}") for n in range(number)])["projects"]
        assert (len(table["rows"]), len(table["folded"]), table["omitted"]) == (unfolded, folded, omitted)

    def test_breakdowns(self):
        found = page(projects=[project(f"p{n}", region_id=f"r{n % 10}") for n in range(20)])["projects"]["breakdowns"][
            0
        ]
        assert [row["name"] for row in found["rows"]] == ["r0", "r1", "r2", "r3", "r4", "r5", "r6", "3 others"]
        assert sum(int(row["count"]) for row in found["rows"]) == 20
        assert [row["width"] for row in found["rows"]] == [*[33.3] * 7, 100.0]

    def test_attention(self):
        found = page(
            api_keys=[key(1, "a"), key(2, "a", ago(days=91))],
            projects=[project("p1", locked=True)],
            operations=[operation(1, "failed"), operation(2, "cancelled")],
            unavailable_project_ids=["p9"],
        )["attention"]
        assert [(row["number"], row["text"]) for row in found] == [
            ("2", "operations failed"),
            ("1", "project could not be listed by the service"),
            ("1", "project is locked"),
            ("1", "API key was never used"),
            ("1", "API key has not been used for 90 days or more"),
            ("2", "API keys share their names with others"),
        ]
        assert page()["attention"] == []

    def test_statuses_not_in_the_api_document_are_named(self):
        found = page(operations=[operation(1, "cancelled"), operation(2, "failed"), operation(3, "error")])
        assert [row["label"] for row in found["operations"]["failed"]["rows"]] == [
            "Error (cancelled)",
            "Error",
            "Error (error)",
        ]

    def test_parts_of_the_stacked_bar_add_up(self):
        operations = [operation(n) for n in range(999)] + [operation(1000, "failed", age=timedelta(hours=1))]
        parts = page(operations=operations, days=99)["operations"]["parts"]
        assert [part["kind"] for part in parts] == ["ok", "error"]
        assert parts[1]["width"] > 1
        assert parts[0]["width"] + parts[1]["width"] == pytest.approx(100, abs=0.02)


class TestTimelines:
    def test_projects_with_errors_come_first(self):
        operations = [
            *(operation(n, project_id="many") for n in range(9)),
            operation(10, "failed", project_id="failing"),
            operation(11, project_id="few"),
        ]
        found = page({"most_timelines": 2}, projects=[project("many", "Many"), project("idle")], operations=operations)[
            "timelines"
        ]
        assert [row["name"] for row in found["projects"]] == ["failing", "Many"]
        assert [row["name"] for row in found["rest"]["folded"]] == ["few"]
        assert found["count"] == "3"

    @pytest.mark.parametrize("name", [None, ""])
    def test_operations_of_a_project_without_a_name_have_its_id(self, name):
        source = {"projects": [project("p1", name)], "operations": [operation(1, "failed")]}
        (failed,) = page(**source)["operations"]["failed"]["rows"]
        (drawn,) = page(**source)["timelines"]["projects"]
        (left,) = page({"most_timelines": 0}, **source)["timelines"]["rest"]["folded"]
        assert [failed["project"], drawn["name"], left["name"]] == ["p1"] * 3

    def bars(self, *operations):
        (lane,) = timelines({"p1": facts_of(operations)}, WEEK)["p1"]["lanes"]
        return lane["bars"]

    def test_position(self):
        (mark,) = self.bars(operation(1, age=timedelta(days=3.5), seconds=86400))
        assert (mark["x"], mark["kind"]) == ("50%", "ok")
        assert float(mark["width"][:-1]) == pytest.approx(100 / 7, abs=0.01)
        assert mark["what"] == "start_compute · OK · 1 d 0 h"
        assert mark["when"] == "18 Nov 00:00:00"

    def test_short_operations_are_visible(self):
        (mark,) = self.bars(operation(1, seconds=0.001))
        assert float(mark["width"][:-1]) > 0.5

    @pytest.mark.parametrize(
        "status", ["running", "scheduling", "cancelling", "finished", "failed", "cancelled", "skipped"]
    )
    def test_unfinished_operations_end_now(self, status):
        (mark,) = self.bars(operation(1, status, age=timedelta(days=3.5)))
        assert (float(mark["x"][:-1]) + float(mark["width"][:-1]) > 99.9) == (
            status in ("running", "scheduling", "cancelling")
        )

    def test_created_after_now(self):
        (mark,) = self.bars(operation(1, age=timedelta(seconds=-90)))
        assert 0 < float(mark["x"][:-1]) + float(mark["width"][:-1]) <= 100

    def test_operations_in_one_cell_are_one_bar_for_each_label(self):
        bars = self.bars(
            operation(1, seconds=1, age=timedelta(days=3.49)),
            operation(2, seconds=4, age=timedelta(days=3.48)),
            operation(3, "failed", age=timedelta(days=3.47), error="no\nspace"),
        )
        assert [mark["what"] for mark in bars] == [
            "start_compute · OK · 2 operations · longest 4.00 s",
            "start_compute · Error · 1.00 s",
        ]
        assert bars[0]["when"] == "18 Nov 00:14:24 – 18 Nov 00:28:48"
        assert bars[1]["when"] == "18 Nov 00:43:12 · no space"

    def test_too_many_bars(self, monkeypatch):
        operations = facts_of([operation(n, age=timedelta(minutes=50 * n)) for n in range(200)])
        monkeypatch.setattr(report_timelines, "MAX_BARS", 30)
        (lane,) = timelines({"p1": operations}, WEEK)["p1"]["lanes"]
        assert len(lane["bars"]) == 24
        assert lane["count"] == "200 operations"

    @pytest.mark.parametrize(
        "days, first, number", [(1, "12:00", 8), (7, "15 Nov", 7), (30, "26 Oct", 7), (365, "22 Jan", 5)]
    )
    def test_ticks(self, days, first, number):
        found = ticks(Window(NOW - timedelta(days=days), NOW))
        assert (found[0]["text"], len(found)) == (first, number)

    def test_sparkline(self):
        operations = facts_of([operation(1), operation(2), operation(3, "failed", age=timedelta(days=6.9))])
        assert [path["kind"] for path in sparkline(operations, WEEK)] == ["other", "error"]
        assert sparkline(operations, WEEK)[1]["d"] == "M0 12v-6h.8V12z"
        assert sparkline([], WEEK) == []


class TestInvalidInput:
    @pytest.mark.parametrize("facts", [None, {}, [], {"format": 1}, "facts"])
    def test_invalid_facts(self, facts):
        expected = "^account_report_page: the input must be the result of the filter account_report: (?!None)."
        with pytest.raises(AnsibleFilterError, match=expected):
            account_report_page(facts)

    def test_other_format(self):
        with pytest.raises(AnsibleFilterError, match="format 2"):
            account_report_page({"format": 2})

    def test_a_long_format_is_shortened(self):
        with pytest.raises(AnsibleFilterError, match=r"the facts have format x{49}…, not 1\."):
            account_report_page({"format": "x" * 51})

    def test_facts_read_from_json(self):
        facts = account_report(account([key(1, "a")], [project("p1")], [operation(1)]), now=stamp(NOW))
        assert account_report_page(json.loads(json.dumps(facts))) == account_report_page(facts)
