# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import random
from collections import UserString
from datetime import timedelta, timezone

import pytest

from ansible_collections.clouddb.control.plugins.filter.account_report import account_report
from ansible_collections.clouddb.control.plugins.plugin_utils._report.operations import console_label
from ansible_collections.clouddb.control.plugins.plugin_utils._versions import FilterFailed

from .accounts import NOW, account, ago, key, operation, project, stamp


def report(now=NOW, **source):
    options = {name: source.pop(name) for name in ("days", "stale_days", "title", "previous") if name in source}
    return account_report(account(**source), now=stamp(now), **options)["facts"]


class TestKeys:
    def test_marks(self):
        used = [key(1, "ci", ago(days=89, hours=23)), key(2, "ci", ago(days=90)), key(4, "Backup", ago(seconds=1))]
        keys = report(api_keys=[*used, key(3, "deploy")])["api_keys"]
        counts = {"total": 4, "never_used": 1, "stale": 1, "duplicate_names": 2}
        assert {name: keys[name] for name in counts} == counts
        marks = {k["id"]: [name for name in ("never_used", "stale", "duplicate_name") if k[name]] for k in keys["list"]}
        assert marks == {4: [], 2: ["stale", "duplicate_name"], 1: ["duplicate_name"], 3: ["never_used"]}
        assert list(marks) == [4, 2, 1, 3], "sorted by name, then by creation time"

    def test_ages(self):
        (found,) = report(api_keys=[key(1, "ci", "2026-11-19T23:59:59Z")])["api_keys"]["list"]
        assert (found["age_days"], found["unused_days"], found["last_used_on"]) == (100, 1, "2026-11-19")
        assert found["last_used_from_addr"] == "192.0.2.1"

    @pytest.mark.parametrize(
        "value, never_used",
        [(None, True), ("", True), ("0001-01-01T00:00:00Z", True), ("1970-01-01T00:00:00Z", True), ("soon", False)],
    )
    def test_what_is_no_time(self, value, never_used):
        """https://github.com/coder/coder/pull/28453, https://github.com/fleetdm/fleet/issues/43622"""
        keys = report(api_keys=[key(1, "ci", value, created_at=value)])["api_keys"]
        (found,) = keys["list"]
        assert (found["age_days"], found["unused_days"], found["never_used"]) == (None, None, never_used)
        assert (keys["never_used"], keys["stale"]) == (int(never_used), 0)

    def test_a_last_use_before_the_creation_is_not_known(self):
        (found,) = report(api_keys=[key(1, "ci", ago(days=200), created_at=ago(days=100))])["api_keys"]["list"]
        assert (found["unused_days"], found["last_used_on"]) == (None, None)
        assert (found["never_used"], found["stale"]) == (False, False)

    def test_last_use_after_now(self):
        (found,) = report(api_keys=[key(1, "ci", ago(seconds=-60), created_at=ago(seconds=-30))])["api_keys"]["list"]
        assert (found["age_days"], found["unused_days"]) == (0, 0)


class TestProjects:
    def test_complete_facts(self):
        nothing = {"usage": {}, "quota": {}, "consumption_period_start": None, "consumption_period_end": None}
        described = {
            **{"id": "p3", "name": "shop", "region_id": "eu", "platform_id": "aws", "pg_version": 17, "locked": True},
            **{"cpu_used_sec": 7, "branch_logical_size_limit": 100, "created_at": "2026-11-01T00:00:00Z"},
        }
        without_usage = dict(described)
        missing = {**dict.fromkeys(described), **nothing}
        described.update({**nothing, "usage": {"compute_time_seconds": 7}})
        source = [
            {**without_usage, "proxy_host": "eu.example"},
            {"id": "p2", "name": "Shop", "region_id": "{{ us }}", "platform_id": "", "pg_version": 16},
            {"id": "p1", "name": "Shop", "region_id": "eu", "pg_version": 16, "cpu_used_sec": 5},
            {"id": "p4", "name": "Blog", "pg_version": ["new"]},
        ]
        facts = report(projects=source, unavailable_project_ids=["p9", "p8"])["projects"]
        assert {name: list(value.items()) for name, value in facts.items() if name.startswith("by_")} == {
            "by_region": [("eu", 2), ("unknown", 1), ("{ { us }}", 1)],
            "by_version": [("16", 2), ("17", 1), ("['new']", 1)],
            "by_platform": [("unknown", 3), ("aws", 1)],
        }
        assert {name: value for name, value in facts.items() if not name.startswith("by_")} == {
            "total": 4,
            "locked": 1,
            "cpu_used_sec": 12,
            "unavailable_ids": ["p8", "p9"],
            "unreadable_ids": [],
            "limits": {},
            "over_limits": [],
            "list": [
                {**missing, "id": "p4", "name": "Blog", "pg_version": "['new']"},
                {**missing, **source[2], "usage": {"compute_time_seconds": 5}},
                {**missing, **source[1]},
                described,
            ],
        }

    def test_what_could_not_be_read(self):
        """A project is unreadable if only its operations are missing; one of another list is unavailable."""
        unread = {"unavailable_project_ids": ["p8"], "unread_project_ids": ["p2", "p9", "p2"]}
        facts = report(projects=[project("p1"), project("p2")], **unread)
        assert facts["projects"]["unreadable_ids"] == ["p2"]
        assert facts["projects"]["unavailable_ids"] == ["p8", "p9"]

    @pytest.mark.parametrize(
        "fields, usage",
        [
            ({"active_time": 5}, {"active_time_seconds": 5, "compute_time_seconds": 10}),
            ({"active_time": 5, "active_time_seconds": 6}, {"active_time_seconds": 6, "compute_time_seconds": 10}),
            ({"compute_time_seconds": 7}, {"compute_time_seconds": 7}),
            ({"written_data_bytes": None}, {"compute_time_seconds": 10, "written_data_bytes": 0}),
            ({"synthetic_storage_size": 9}, {"compute_time_seconds": 10, "synthetic_storage_size": 9}),
        ],
    )
    def test_usage_is_what_the_list_shows(self, fields, usage):
        [found] = report(projects=[project("p1", **fields)])["projects"]["list"]
        assert (found["usage"], found["quota"]) == (usage, {})

    @pytest.mark.parametrize(
        "settings, quota",
        [
            ({"quota": {"active_time_seconds": 60, "written_data_bytes": 0}}, {"active_time_seconds": 60}),
            ({"quota": {"active_time_seconds": 60, "logical_size_bytes": 5}}, {"active_time_seconds": 60}),
            ({"quota": None}, {}),
            ([1], {}),
        ],
    )
    def test_quota(self, settings, quota):
        assert report(projects=[project("p1", settings=settings)])["projects"]["list"][0]["quota"] == quota

    def test_what_a_list_has_twice_counts_once(self):
        """Two samples of the same series would be an error of the complete file of metrics."""
        keys, projects = [key(1, "ci", ago(days=1)), key(1, "ci", ago(hours=1))], 2 * [project("p1", locked=True)]
        found = account_report(account(keys, projects), NOW)
        assert (found["facts"]["api_keys"]["total"], found["facts"]["projects"]["total"]) == (1, 1)
        assert found["summary"][1:] == ["1 project is locked"]
        assert found["metrics"].count("clouddb_project_usage{") == 1

    def test_limits(self):
        """A project needs attention when it exceeds a limit, not when it reaches it."""
        projects = [project("p1", active_time=60), project("p2", "shop", active_time=61)]
        options = {"limits": {"active_time_seconds": 60, "compute_time_seconds": 10}}
        found = account_report(account(projects=projects), NOW, **options)
        assert found["facts"]["projects"]["over_limits"] == [
            {"id": "p2", "name": "shop", "field": "active_time_seconds", "used": 61, "limit": 60}
        ]
        assert found["summary"][1:] == ["1 project exceeds a limit of usage: shop (active_time_seconds 61 of 60)"]

    @pytest.mark.parametrize(
        "limits, problem",
        [
            ({"active_time": 1}, "there is no active_time. The fields are active_time_seconds, "),
            ({"active_time_seconds": True}, "must be a number"),
            ({"active_time_seconds": "1h"}, "must be a number"),
            ({"active_time_seconds": float("nan")}, "must be a number"),
            ({"written_data_bytes": 1}, "the list of projects shows no written_data_bytes"),
        ],
    )
    def test_a_limit_that_nothing_can_exceed_is_an_error(self, limits, problem):
        with pytest.raises(FilterFailed, match=problem):
            account_report(account(projects=[project("p1")]), NOW, limits=limits)

    @pytest.mark.parametrize("malformed", [1e308, 10**400, float("nan"), "many", [1]])
    def test_sums_are_json(self, malformed):
        facts = report(projects=[project(f"p{n}", cpu_used_sec=malformed) for n in range(20)])
        json.dumps(facts, allow_nan=False)
        assert abs(facts["projects"]["cpu_used_sec"]) <= 20 * 2**63


class TestOperations:
    @pytest.mark.parametrize(
        "status, label",
        [("skipped", "OK"), ("scheduling", "Scheduling"), ("never heard of", "In progress"), ("cancelled", "Error")],
    )
    def test_labels(self, status, label):
        assert console_label(status) == label

    def test_counts(self):
        cancelled = operation(3, "cancelled", action="apply_config")
        source = [operation(1), operation(2, "failed", error="no"), cancelled, operation(4, "running")]
        operations = report(operations=source)["operations"]
        assert operations["by_label"] == {"OK": 1, "Scheduling": 0, "In progress": 1, "Error": 2}
        assert operations["by_status"] == {"cancelled": 1, "failed": 1, "finished": 1, "running": 1}
        assert [(row["action"], row["total"], row["by_label"]["Error"]) for row in operations["by_action"]] == [
            ("start_compute", 3, 1),
            ("apply_config", 1, 1),
        ]
        assert [row["id"] for row in operations["failed"]] == ["op-2", "op-3"]
        assert operations["failed"][0]["error"] == "no"

    def test_only_executed_operations_have_a_duration(self):
        of_status = ("finished", "failed", "error", "skipped", "cancelled", "running", "scheduling")
        found = report(operations=[operation(n, status, 2.5) for n, status in enumerate(of_status)])["operations"]
        durations = {row["status"]: row["duration_seconds"] for row in found["list"]}
        assert durations == {status: 2.5 if status in ("finished", "failed", "error") else None for status in of_status}
        assert found["by_action"][0]["timed"] == 3

    @pytest.mark.parametrize("updated_at, seconds", [(None, None), ("late", None), (ago(days=400), 0)])
    def test_malformed_updated_at(self, updated_at, seconds):
        (found,) = report(operations=[operation(1, updated_at=updated_at)])["operations"]["list"]
        assert found["duration_seconds"] == seconds

    @pytest.mark.parametrize("seconds, median", [((0.1, 0.2), 0.15), ((0.000002, 0.000005), 0.000004)])
    def test_medians_are_rounded_to_microseconds(self, seconds, median):
        operations = [operation(n, seconds=each) for n, each in enumerate(seconds)]
        assert report(operations=operations)["operations"]["by_action"][0]["median_seconds"] == median

    def test_statistics(self):
        seconds = [float(number) for number in range(1, 21)]
        random.Random(1).shuffle(seconds)
        found = report(operations=[operation(n, seconds=s) for n, s in enumerate(seconds)])["operations"]
        (row,) = found["by_action"]
        assert (row["median_seconds"], row["p95_seconds"], row["longest_seconds"]) == (10.5, 19.0, 20.0)
        assert [row["duration_seconds"] for row in found["slowest"]] == [20.0 - n for n in range(10)]

    def test_period(self):
        """It ends an hour after now, as the clocks of the service and of the controller may differ."""
        hour = timedelta(hours=1)
        ages = [timedelta(days=2), timedelta(days=2, seconds=1), -hour, -hour - timedelta(microseconds=1)]
        found = report(days=2, operations=[operation(n, age=age) for n, age in enumerate(ages)])
        assert found["since"] == "2026-11-19T12:00:00Z"
        assert [row["id"] for row in found["operations"]["list"]] == ["op-2", "op-0"]

    @pytest.mark.parametrize("status", ["scheduling", "running", "never heard of"])
    def test_unfinished_ones_are_reported_however_old(self, status):
        old = operation(1, status, age=timedelta(days=200))
        found = report(operations=[old, operation(2, age=timedelta(days=8)), operation(0.5, "running")])["operations"]
        assert {row["id"] for row in found["list"]} == {"op-1", "op-0.5"}
        assert [row["id"] for row in found["long_unfinished"]] == ["op-1"]

    @pytest.mark.parametrize(
        "updated, is_found", [({"minutes": 1}, True), ({"days": 7}, True), ({"days": 7, "seconds": 1}, False)]
    )
    def test_an_operation_that_has_failed_in_the_period_was_created_whenever(self, updated, is_found):
        operations = [operation(1, "failed", age=timedelta(days=9), updated_at=ago(**updated))]
        assert bool(report(operations=operations)["operations"]["failed"]) == is_found

    def test_the_later_state_of_an_operation_counts(self):
        found = report(operations=[operation(1, "running"), operation(1, "failed")])["operations"]
        assert found["by_status"] == {"failed": 1}

    @pytest.mark.parametrize(
        "fields, name",
        [({"name": "shop"}, "shop"), ({"name": None}, None), ({}, None), ({"name": ""}, ""), ({"name": 5}, "5")],
    )
    def test_name_of_a_project(self, fields, name):
        found = report(projects=[{"id": "p1", **fields}], operations=[operation(1)])
        assert [row["project_name"] for row in found["operations"]["list"]] == [name]


class TestPrevious:
    SOURCE = {
        "api_keys": [key(1, "ci", ago(minutes=5))],
        "projects": [project("p1")],
        "operations": [operation(0.1), operation(0.2, "running")],
    }

    def again(self, minutes=30, **changes):
        first = report(**self.SOURCE)
        second = report(now=NOW + timedelta(minutes=minutes), previous=json.dumps(first), **{**self.SOURCE, **changes})
        return first, second

    def test_unchanged_facts_keep_the_earlier_time(self):
        """A later use of a key on the same day is no change either, as the report itself uses a key."""
        first, second = self.again(api_keys=[key(1, "ci", ago(minutes=-29))])
        assert second == first

    def test_fingerprint_is_the_same_in_all_versions_with_this_format(self):
        """Otherwise, the first report of a new version would always be a change."""
        facts = report(**self.SOURCE)
        assert (facts["format"], facts["fingerprint"]) == (
            2,
            "39311538c448502881ed0ccc88050e0835f1f61c5585467d58cd38811207615e",
        )

    @pytest.mark.parametrize(
        "change",
        [
            {"minutes": 24 * 60},
            {"title": "Other"},
            # Up to ansible-core 2.18, values with !vault are objects like this one.
            {"title": UserString("Vaulted")},
            {"days": 8},
            {"stale_days": 91},
            {"operations": [operation(0.1), operation(0.2)]},
            # The operation is now unfinished for more than an hour.
            {"minutes": 60},
            {"projects": [project("p1", cpu_used_sec=11)]},
            {"api_keys": []},
        ],
    )
    def test_changed_facts_have_the_new_time(self, change):
        first, second = self.again(**change)
        assert second["generated_at"] > first["generated_at"]
        assert second["fingerprint"] != first["fingerprint"]

    def test_report_with_a_long_integer_is_read(self):
        first = report(**self.SOURCE)
        previous = json.dumps(first)[:-1] + f', "n": {"9" * 10_000}}}'
        assert report(now=NOW + timedelta(minutes=30), previous=previous, **self.SOURCE) == first

    @pytest.mark.parametrize(
        "previous",
        [
            "",
            "null",
            '{"generated_at": "then"}',
            "[" * 100_000,
            '{"generated_at": "2026-11-21T11:00:00Z", "fingerprint": ["x"]}',
            '{"generated_at": "\\ud800", "fingerprint": "\\ud800"}',
            "\ufeff{}",
        ],
    )
    def test_invalid_previous_report_is_ignored(self, previous):
        assert report(previous=previous)["generated_at"] == "2026-11-21T12:00:00Z"

    @pytest.mark.parametrize("generated_at", ["0001-01-01T00:00:00Z", "2026-11-21T12:00:01Z", ""])
    def test_earlier_report_of_an_impossible_time_is_ignored(self, generated_at):
        first = report(**self.SOURCE)
        assert report(previous=json.dumps({**first, "generated_at": generated_at}), **self.SOURCE) == first


# YAML and Ansible's now() return these types.
@pytest.mark.parametrize(
    "now, hour",
    [(NOW, 12), (NOW.replace(tzinfo=None), 12), (NOW.astimezone(timezone(-timedelta(hours=9))), 12), (NOW.date(), 0)],
)
def test_now_is_a_date_or_datetime(now, hour):
    assert account_report(account(), now=now)["facts"]["generated_at"] == f"2026-11-21T{hour:02}:00:00Z"


def test_projects_that_share_a_name_are_named_each():
    projects = [project("p1", "shop"), project("p2", "shop")]
    operations = [operation(1, "failed"), operation(2, "failed", project_id="p2"), operation(3, "failed")]
    assert account_report(account(projects=projects, operations=operations), NOW)["summary"][1] == (
        "3 operations failed: start_compute of shop since 21 Nov 2026, 09:00; start_compute of shop since 21 Nov 2026, 10:00"
    )


def test_summary():
    """The most urgent first, in the singular and in the plural."""

    def summary(n):
        return account_report(
            account(
                [
                    *(key(each, f"new {each}") for each in range(n)),
                    *(key(9 + each, "old", ago(days=91)) for each in range(n)),
                ],
                [project(f"p{each}", locked=True) for each in range(n)],
                [operation(each, "failed", project_id="p", error=f"no {each}") for each in range(n)],
                unavailable_project_ids=list(range(n)),
            ),
            NOW,
        )["summary"]

    assert summary(0) == ["0 API keys, 0 projects, 0 operations"]
    assert summary(1) == [
        "2 API keys, 1 project, 1 operation",
        "1 operation failed: start_compute of p since 21 Nov 2026, 12:00 (no 0)",
        "1 project could not be listed by the service",
        "1 project is locked",
        "1 API key was never used",
        "1 API key has not been used for 90 days or more",
    ]
    assert summary(2) == [
        "4 API keys, 2 projects, 2 operations",
        "2 operations failed: start_compute of p since 21 Nov 2026, 12:00 (no 0); start_compute of p since 21 Nov 2026, 11:00 (no 1)",
        "2 projects could not be listed by the service",
        "2 projects are locked",
        "2 API keys were never used",
        "2 API keys have not been used for 90 days or more",
        "2 API keys share their names with others",
    ]


class TestInvalidInput:
    """The role passes what its user has set, so the message names the option."""

    @pytest.mark.parametrize(
        "option, value",
        [
            ("days", 0),
            ("days", 10**6),
            ("stale_days", 0),
            ("most_rows", -1),
            ("most_timelines", -1),
            ("interval", 0),
            ("interval", "daily"),
        ],
    )
    def test_numbers_and_interval(self, option, value):
        with pytest.raises(FilterFailed, match=f"^account_report: {option}: must be "):
            account_report(account(), NOW, **{option: value})

    @pytest.mark.parametrize("now", ["today", "2026-13-01", None])
    def test_now(self, now):
        with pytest.raises(FilterFailed, match=f"^account_report: '{now}' is "):
            account_report(account(), now=now)

    @pytest.mark.parametrize(
        "source", [None, {}, {**account(), "projects": ["text"]}, account(operations=[operation(1, created_at="then")])]
    )
    def test_account(self, source):
        with pytest.raises(FilterFailed, match="^account_report: "):
            account_report(source, NOW)


@pytest.mark.parametrize(
    "difference, shown",
    [(172800, "2 d 0 h ahead of the service's"), (-301, "5 min 1 s behind the service's"), (300, None), (-300, None)],
)
def test_a_wrong_clock_is_a_warning(difference, shown, monkeypatch):
    warnings = []
    monkeypatch.setattr("ansible.utils.display.Display.warning", lambda self, text, **options: warnings.append(text))
    account_report(account(), NOW, clock_difference=difference)
    assert [shown in text for text in warnings] == ([True] if shown else [])


@pytest.mark.parametrize("projects, limit", [([], 1), ([{"id": "p1", "active_time": 0}], 0)], ids=["no project", "0"])
def test_a_limit_that_no_project_exceeds(projects, limit):
    source = account(projects=projects)
    facts = account_report(source, now=stamp(NOW), limits={"active_time_seconds": limit})["facts"]
    assert facts["projects"]["over_limits"] == []


def test_an_operation_is_long_unfinished_after_more_than_an_hour():
    ages = {"edge": timedelta(hours=1), "later": timedelta(hours=1, seconds=1)}
    found = report(operations=[operation(name, "running", age=age) for name, age in ages.items()])["operations"]
    assert [row["id"] for row in found["long_unfinished"]] == ["op-later"]
