# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import sys
from datetime import timedelta

import pytest
from ansible.errors import AnsibleFilterError
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as prometheus_text

from ansible_collections.clouddb.control.plugins.filter.account_report import FilterModule as ReportFilterModule
from ansible_collections.clouddb.control.plugins.filter.account_report_metrics import FilterModule
from ansible_collections.clouddb.control.plugins.module_utils._operations.status import ACTIONS, STATUSES
from ansible_collections.clouddb.control.tests.unit.plugins.filter.accounts import (
    NOW,
    account,
    ago,
    key,
    operation,
    project,
    stamp,
)

account_report = ReportFilterModule().filters()["account_report"]
account_report_metrics = FilterModule().filters()["account_report_metrics"]

HOSTILE = 'a "quoted" \\ {{ name }}\n# EOF\x1b[2J\u202e\ud800'


def text_of(name="production", now=NOW, **source):
    return account_report_metrics(account_report(account(**source), now=stamp(NOW)), account=name, now=stamp(now))


def samples(text):
    """The samples by name and by the values of their labels, without the account. Both parsers read the same."""
    read = [
        [
            (
                (sample.name, *(value for label, value in sorted(sample.labels.items()) if label != "account")),
                sample.value,
            )
            for family in parse(text)
            for sample in family.samples
        ]
        for parse in (openmetrics, prometheus_text)
    ]
    assert read[0] == read[1]
    assert len(dict(read[0])) == len(read[0]), "each sample is unique"
    return dict(read[0])


def not_zero(found, metric):
    """The samples of a metric that are not 0, by the values of their labels."""
    return {
        labels: number
        for (name, *values), number in found.items()
        if name == metric and number
        for labels in [tuple(values)]
    }


class TestKeys:
    def test_states(self):
        found = samples(
            text_of(
                api_keys=[
                    key(1, "never"),
                    key(2, "stale", ago(days=90)),
                    key(3, "a", ago(days=1)),
                    key(4, "b", ago(days=1)),
                ]
            )
        )
        assert not_zero(found, "clouddb_api_keys") == {("never_used",): 1, ("stale",): 1, ("used",): 2}

    def test_oldest(self):
        keys = [
            key(1, "new"),
            key(2, "malformed", created_at="soon"),
            key(3, "old", created_at="2025-01-02T03:04:05.5Z"),
        ]
        assert samples(text_of(api_keys=keys))[("clouddb_api_key_oldest_created_timestamp_seconds",)] == 1735787045.5


class TestProjects:
    def test_regions(self):
        projects = [project("p1"), project("p2"), project("p3", region_id=None), project("p4", region_id="")]
        found = samples(text_of(projects=projects, unavailable_project_ids=["p8", "p9"]))
        assert not_zero(found, "clouddb_projects") == {("aws-eu-central-1",): 2, ("unknown",): 2}
        assert found[("clouddb_unavailable_projects",)] == 2


class TestOperations:
    def test_counts(self):
        found = samples(
            text_of(
                operations=[
                    operation(1),
                    operation(2),
                    operation(3, "failed"),
                    operation(4, "running", action="create_branch"),
                    operation(5, "never heard of", action="new_action"),
                    operation(6, age=timedelta(days=8)),
                ]
            )
        )
        assert not_zero(found, "clouddb_operations") == {
            ("start_compute", "finished"): 2,
            ("start_compute", "failed"): 1,
            ("create_branch", "running"): 1,
            ("new_action", "never heard of"): 1,
        }
        assert not_zero(found, "clouddb_unfinished_operations") == {("create_branch",): 1, ("new_action",): 1}

    def test_known_actions_and_statuses_are_always_present(self):
        found = samples(text_of())
        for name, labels in {
            "clouddb_api_keys": {("never_used",), ("stale",), ("used",)},
            "clouddb_operations": {(action, status) for action in ACTIONS for status in STATUSES},
            "clouddb_unfinished_operations": {(action,) for action in ACTIONS},
            "clouddb_operation_duration_seconds_count": {(action,) for action in ACTIONS},
        }.items():
            assert {tuple(values) for metric, *values in found if metric == name} == labels
            assert not_zero(found, name) == {}

    def test_unknown_actions_have_all_statuses(self):
        found = samples(text_of(operations=[operation(1, action="new_action")]))
        assert {
            status
            for name, *labels in found
            if labels[:1] == ["new_action"] and name == "clouddb_operations"
            for status in labels[1:]
        } == STATUSES

    def test_oldest_unfinished_operation_of_each_action(self):
        found = samples(
            text_of(
                operations=[
                    operation(1, "running"),
                    operation(3, "scheduling"),
                    operation(9, "finished"),
                    operation(2, "cancelling", action="create_branch"),
                ]
            )
        )
        assert not_zero(found, "clouddb_unfinished_operation_oldest_created_timestamp_seconds") == {
            ("start_compute",): (NOW - timedelta(hours=3)).timestamp(),
            ("create_branch",): (NOW - timedelta(hours=2)).timestamp(),
        }

    def test_durations(self):
        found = samples(
            text_of(
                operations=[
                    operation(1, seconds=0.5),
                    operation(2, seconds=1),
                    operation(3, seconds=1.5),
                    operation(4, "failed", seconds=4000),
                    operation(5, "running", seconds=50),
                    operation(6, "skipped", seconds=50),
                    operation(7, updated_at="soon"),
                ]
            )
        )
        name = "clouddb_operation_duration_seconds"
        buckets = {bound: number for (_action, bound), number in not_zero(found, f"{name}_bucket").items()}
        assert buckets == {
            "1.0": 2,
            **dict.fromkeys(["2.0", "5.0", "10.0", "30.0", "60.0", "120.0", "300.0", "600.0", "1800.0", "3600.0"], 3),
            "+Inf": 4,
        }
        assert found[(f"{name}_count", "start_compute")] == 4
        assert found[(f"{name}_sum", "start_compute")] == 4003


class TestTime:
    def test_time_of_the_report_and_period(self):
        found = samples(text_of(now=NOW + timedelta(hours=1)))
        assert found[("clouddb_account_report_last_success_timestamp_seconds",)] == NOW.timestamp() + 3600
        assert found[("clouddb_account_report_period_seconds",)] == 7 * 86400

    def test_without_objects_there_are_no_times(self):
        assert [name for name, *_labels in samples(text_of()) if name.endswith("created_timestamp_seconds")] == []


class TestText:
    def test_every_sample_has_the_account(self):
        families = list(openmetrics(text_of("staging", api_keys=[key(1, "a")], operations=[operation(1, "running")])))
        assert {sample.labels["account"] for family in families for sample in family.samples} == {"staging"}

    def test_only_types_that_both_formats_have(self):
        text = text_of(operations=[operation(1)])
        assert {family.type for family in openmetrics(text)} == {"gauge", "histogram"}
        assert text.endswith("\n# EOF\n")

    def test_labels_and_descriptions(self):
        """Without quotes, for which the older format has no escape."""
        text = text_of(api_keys=[key(1, "a")], projects=[project("p1")], operations=[operation(1, "running")])
        found = {
            family.name.removeprefix("clouddb_"): (" ".join(family.samples[0].labels), family.documentation)
            for family in openmetrics(text)
        }
        assert found == {
            "account_report_last_success_timestamp_seconds": (
                "account",
                "Unix time of the last report that succeeded.",
            ),
            "account_report_period_seconds": (
                "account",
                "Length of the period before the report whose operations are counted.",
            ),
            "api_keys": (
                "account state",
                "Number of API keys that were never used, that are stale because of a long time without use, and of all others.",
            ),
            "api_key_oldest_created_timestamp_seconds": (
                "account",
                "Unix time at which the oldest API key was created. An account without keys has no such sample.",
            ),
            "projects": ("account region_id", "Number of projects in each region."),
            "unavailable_projects": (
                "account",
                "Number of projects that the service could not list. The other metrics do not include them.",
            ),
            "operations": ("account action status", "Number of operations that were created in the period."),
            "unfinished_operations": (
                "account action",
                "Number of operations of the period that have neither succeeded nor failed.",
            ),
            "unfinished_operation_oldest_created_timestamp_seconds": (
                "account action",
                "Unix time at which the oldest unfinished operation was created. "
                "Actions without unfinished operations have no such sample.",
            ),
            "operation_duration_seconds": (
                "account action le",
                "Time from the creation to the last update of the operations of the period that were executed.",
            ),
        }

    def test_hostile_values(self):
        text = text_of(
            HOSTILE,
            projects=[project("p1", region_id=HOSTILE)],
            operations=[operation(1, HOSTILE, action=HOSTILE), operation(2, "", action="")],
        )
        assert all(line.isprintable() for line in text.splitlines())
        shown = 'a "quoted" \\ {{ name }}\\n# EOF\\x1b[2J\\u202e\\ud800'
        found = samples(text)
        assert not_zero(found, "clouddb_projects") == {(shown,): 1}
        assert not_zero(found, "clouddb_operations") == {(shown, shown): 1, ("unknown", "unknown"): 1}
        assert {family.samples[0].labels["account"] for family in openmetrics(text) if family.samples} == {shown}

    def test_values_that_are_shown_the_same_are_one_series(self):
        """Labels show a line break like the two characters of its escape."""
        found = samples(
            text_of(
                projects=[project("p1", region_id="a\nb"), project("p2", region_id="a\\nb")],
                operations=[
                    operation(1, action="x\ty"),
                    operation(2, "failed", action="x\\ty"),
                    operation(3, "failed", action="x\ty"),
                ],
            )
        )
        assert not_zero(found, "clouddb_projects") == {("a\\nb",): 2}
        assert not_zero(found, "clouddb_operations") == {("x\\ty", "finished"): 1, ("x\\ty", "failed"): 2}
        assert found[("clouddb_operation_duration_seconds_count", "x\\ty")] == 3

    def test_facts_from_json_have_the_same_metrics(self):
        facts = account_report(account([key(1, "a")], [project("p1")], [operation(1, "running")]), now=stamp(NOW))
        texts = [account_report_metrics(each, "a", stamp(NOW)) for each in (facts, json.loads(json.dumps(facts)))]
        assert texts[0] == texts[1]


class TestErrors:
    def test_without_prometheus_client(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "prometheus_client", None)
        with pytest.raises(AnsibleFilterError) as caught:
            text_of()
        assert str(caught.value).startswith(
            "account_report_metrics: the Python library prometheus_client cannot be imported on the controller. "
            f"Install it with '{sys.executable} -m pip install prometheus_client', or do not set account_report_metrics_dest"
        )

    @pytest.mark.parametrize("facts", [None, {}, [], {"format": 1}, {"format": 1, "days": 7, "api_keys": {}}])
    def test_other_input(self, facts):
        expected = r"^account_report_metrics: the input must be the result of the filter account_report: (?!None)."
        with pytest.raises(AnsibleFilterError, match=expected):
            account_report_metrics(facts, "a", stamp(NOW))

    def test_other_format(self):
        facts = {**account_report(account(), now=stamp(NOW)), "format": 2}
        with pytest.raises(AnsibleFilterError, match=r"the facts have format 2, not 1\. Create the report again\."):
            account_report_metrics(facts, "a", stamp(NOW))

    def test_a_long_format_is_shortened(self):
        with pytest.raises(AnsibleFilterError, match=r"the facts have format x{49}…, not 1\."):
            account_report_metrics({"format": "x" * 51}, "a", stamp(NOW))

    def test_datetime(self):
        facts = account_report(account(), now=stamp(NOW))
        assert account_report_metrics(facts, "a", NOW) == account_report_metrics(facts, "a", stamp(NOW))

    def test_malformed_time(self):
        facts = account_report(account(), now=stamp(NOW))
        with pytest.raises(AnsibleFilterError, match="'soon' is not an ISO 8601 timestamp"):
            account_report_metrics(facts, "a", "soon")
