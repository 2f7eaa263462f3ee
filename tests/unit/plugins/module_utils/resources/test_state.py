# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state of a resource by its own fields and by the operations about it, and its comparison with what a task asks for."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._resources.state import (
    ABSENT,
    BROKEN,
    DELETING,
    PRESENT,
    UNFINISHED,
    changed_fields,
    contains,
    is_about,
    own_state,
    state_and_reasons,
)
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import EPOCH

BRANCH = {"id": "br-1", "project_id": "p"}
DATABASE = {"id": 7, "branch_id": "br-1"}
PROJECT = {"id": "p"}


def operation(action: str, status: str, minutes: str = "0", **fields: Any) -> dict[str, Any]:
    """An operation on the branch br-1, created this many minutes before now."""
    created_at = (EPOCH - timedelta(minutes=int(minutes))).isoformat()
    common = {"id": action, "project_id": "p", "branch_id": "br-1", "created_at": created_at}
    return {**common, "action": action, "status": status, **fields}


def operations(text: str, **fields: Any) -> list[dict[str, Any]]:
    """Those of C(ACTION STATUS MINUTES, …)."""
    return [operation(*each.split(), **fields) for each in text.split(", ") if text]


@pytest.mark.parametrize(
    ("fields", "state"),
    [
        ({}, PRESENT),
        ({"current_state": "ready"}, PRESENT),
        ({"state": 7, "status": None}, PRESENT),
        ({"current_state": "init"}, UNFINISHED),
        ({"status": "pending"}, UNFINISHED),
        ({"current_state": "deleting"}, DELETING),
        ({"status": "pending", "state": "TERMINATING"}, DELETING),
        ({"state": "Deleted"}, ABSENT),  # https://github.com/Arubacloud/terraform-provider-arubacloud/pull/69
        ({"state": "Destroyed"}, ABSENT),  # https://github.com/resmo/ansible-cloudstack/pull/36
        ({"state": "removed"}, ABSENT),  # https://github.com/hashicorp/terraform/issues/11567
        ({"state": "terminated"}, ABSENT),  # https://github.com/saltstack/salt/issues/27532
    ],
)
def test_state_by_its_own_fields(fields: dict[str, Any], state: str) -> None:
    assert own_state(fields) == state


@pytest.mark.parametrize(
    ("resource", "about", "state", "awaited"),
    [
        (BRANCH, "", PRESENT, []),
        (BRANCH, "create_branch finished", PRESENT, []),
        (BRANCH, "create_branch running", UNFINISHED, ["create_branch"]),
        (BRANCH, "create_branch failed", BROKEN, ["create_branch"]),
        # Its compute was scheduled together with the branch.
        (BRANCH, "start_compute finished 9, create_branch failed 9", BROKEN, ["create_branch"]),
        # https://github.com/kubernetes-sigs/cluster-api-provider-openstack/issues/2622: the platform has recovered it.
        (BRANCH, "apply_config finished 1, create_branch error 9", PRESENT, []),
        (BRANCH, "start_compute failed 1, create_branch finished 9", PRESENT, []),
        (BRANCH, "check_availability running", PRESENT, []),
        (BRANCH, "check_availability finished 1, create_branch failed 9", PRESENT, []),
        (BRANCH, "create_compute failed", PRESENT, []),
        (BRANCH, "delete_timeline running, suspend_compute running", DELETING, ["delete_timeline"]),
        (BRANCH, "delete_timeline finished", DELETING, []),
        (BRANCH, "delete_timeline failed", PRESENT, []),
        (BRANCH, "delete_endpoint running", UNFINISHED, ["delete_endpoint"]),
        # What has been unfinished for days is not waited for.
        (BRANCH, "apply_config running 2880", PRESENT, []),
        # The operation that creates a database is one of its branch.
        (DATABASE, "create_branch failed", PRESENT, []),
        (PROJECT, "delete_tenant running", DELETING, ["delete_tenant"]),
        (PROJECT, "delete_timeline running", UNFINISHED, ["delete_timeline"]),
        (PROJECT, "create_timeline failed", BROKEN, ["create_timeline"]),
        (PROJECT, "create_branch failed", PRESENT, []),
    ],
)
def test_state_by_its_operations(resource: dict[str, Any], about: str, state: str, awaited: list[str]) -> None:
    of_compute = {"endpoint_id": "ep-1"} if about in ("create_compute failed", "delete_endpoint running") else {}
    judged, reasons = state_and_reasons(resource, operations(about, **of_compute), EPOCH)
    assert (judged, [each["action"] for each in reasons]) == (state, awaited)


def test_operations_since_the_request_are_awaited_also_if_they_have_ended() -> None:
    about = operations("apply_config failed 1, start_compute finished 2, x failed 9")
    assert state_and_reasons(BRANCH, about, EPOCH, EPOCH - timedelta(minutes=3)) == (UNFINISHED, about[:2])


@pytest.mark.parametrize(
    ("each", "resource", "expected"),
    [
        (operation("apply_config", "running"), BRANCH, True),
        (operation("apply_config", "running"), DATABASE, True),
        (operation("apply_config", "running", branch_id="br-2"), BRANCH, False),
        (operation("start_compute", "running", branch_id="br-2", endpoint_id="ep-1"), {"id": "ep-1"}, True),
        (operation("apply_config", "running", branch_id="br-2"), PROJECT, True),
    ],
)
def test_operations_about_a_resource(each: dict[str, Any], resource: dict[str, Any], expected: bool) -> None:
    assert is_about(each, resource, "p") is expected


@pytest.mark.parametrize(
    "actual, wanted",
    [
        ("a", "a"),
        (17, "17"),
        (17.0, 17),
        (1209600, "1209600.0"),
        (1000, "1e3"),
        ("17", 17),
        # https://github.com/coralogix/terraform-provider-coralogix/pull/470
        ("2026-11-21T08:00:00.000", "2026-11-21T08:00:00Z"),
        # https://github.com/CrowdStrike/terraform-provider-crowdstrike/pull/395
        ("2026-11-21T08:00:00Z", "2026-11-21T09:00:00+01:00"),
        ("2026-11-21T08:00:00.000000Z", "2026-11-21T08:00:00Z"),
        (True, "True"),
        ("False", False),
        ("true", True),
        (None, None),
        ({"a": 1}, {"a": 1, "b": None}),
        ({"a": {"b": [1, 2], "c": 3}}, {"a": {"b": [1, 2]}}),
        ([{"a": 1, "b": 2}], [{"a": 1}]),
    ],
)
def test_what_is_wanted_is_there(actual: Any, wanted: Any) -> None:
    assert contains(actual, wanted)


@pytest.mark.parametrize(
    "actual, wanted",
    [
        ("a", "b"),
        (10000000.0, 10000001.0),
        (9007199254740993, 9007199254740992),  # https://github.com/mpyw/suve/pull/342
        (9007199254740993, 9007199254740992.0),
        ("17", "17.0"),
        # Python's numbers, but not JSON's.
        *((1000, text) for text in ("1_000", "01000", "+1000", " 1000", "1000.", "१०००")),
        # Text that is there is text.
        ("1.10", 1.1),
        ("1.1", 1.1),
        ("017", 17),
        ("1", True),
        ("2026-11-21T08:00:00Z", "2026-11-21T08:00:01Z"),
        ("2026-11-21", "20261121"),
        (17, "17x"),
        (1, True),
        (None, "None"),
        ("None", None),
        (None, ""),
        ("", None),
        ({"a": 1}, {"a": {"b": 1}}),
        ({"a": {"b": 1}}, {"a": 1}),
        ([1, 2], [1]),
        ([1, 2], [2, 1]),
        ([1], 1),
        (1, [1]),
    ],
)
def test_what_is_wanted_is_not_there(actual: Any, wanted: Any) -> None:
    assert not contains(actual, wanted)


def test_a_diff_has_only_the_fields_that_changed() -> None:
    before = {"name": "a", "size": 1, "settings": {"quota": 1, "rate": 2}, "gone": 1}
    after = {"name": "a", "size": 2, "settings": {"quota": 1, "rate": 3}, "new": None}
    assert changed_fields(before, after) == {
        "before": {"size": 1, "settings": {"rate": 2}, "gone": 1},
        "after": {"size": 2, "settings": {"rate": 3}, "new": None},
    }
