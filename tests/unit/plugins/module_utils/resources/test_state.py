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


def operation(action: str, status: str, minutes: float = 0, **fields: Any) -> dict[str, Any]:
    """An operation on the branch br-1, created this many minutes before now."""
    created_at = (EPOCH - timedelta(minutes=minutes)).isoformat()
    return {
        "id": action,
        "project_id": "p",
        "branch_id": "br-1",
        "action": action,
        "status": status,
        "created_at": created_at,
        **fields,
    }


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
        # https://github.com/Arubacloud/terraform-provider-arubacloud/pull/69
        ({"state": "Deleted"}, ABSENT),
        # https://github.com/resmo/ansible-cloudstack/pull/36
        ({"state": "Destroyed"}, ABSENT),
        # https://github.com/hashicorp/terraform/issues/11567
        ({"state": "removed"}, ABSENT),
        # https://github.com/saltstack/salt/issues/27532
        ({"state": "terminated"}, ABSENT),
    ],
)
def test_state_by_its_own_fields(fields: dict[str, Any], state: str) -> None:
    assert own_state(fields) == state


@pytest.mark.parametrize(
    ("resource", "about", "state", "awaited"),
    [
        (BRANCH, [], PRESENT, []),
        (BRANCH, [operation("create_branch", "finished")], PRESENT, []),
        (BRANCH, [operation("create_branch", "running")], UNFINISHED, ["create_branch"]),
        (BRANCH, [operation("create_branch", "failed")], BROKEN, ["create_branch"]),
        # Its compute was scheduled together with the branch.
        (
            BRANCH,
            [operation("start_compute", "finished", 9), operation("create_branch", "failed", 9)],
            BROKEN,
            ["create_branch"],
        ),
        # https://github.com/kubernetes-sigs/cluster-api-provider-openstack/issues/2622: the platform has recovered it.
        (BRANCH, [operation("apply_config", "finished", 1), operation("create_branch", "error", 9)], PRESENT, []),
        (BRANCH, [operation("start_compute", "failed", 1), operation("create_branch", "finished", 9)], PRESENT, []),
        (BRANCH, [operation("check_availability", "running")], PRESENT, []),
        (
            BRANCH,
            [operation("check_availability", "finished", 1), operation("create_branch", "failed", 9)],
            PRESENT,
            [],
        ),
        (BRANCH, [operation("create_compute", "failed", endpoint_id="ep-1")], PRESENT, []),
        (
            BRANCH,
            [operation("delete_timeline", "running"), operation("suspend_compute", "running")],
            DELETING,
            ["delete_timeline"],
        ),
        (BRANCH, [operation("delete_timeline", "finished")], DELETING, []),
        (BRANCH, [operation("delete_timeline", "failed")], PRESENT, []),
        (BRANCH, [operation("delete_endpoint", "running", endpoint_id="ep-1")], UNFINISHED, ["delete_endpoint"]),
        # What has been unfinished for days is not waited for.
        (BRANCH, [operation("apply_config", "running", 2 * 24 * 60)], PRESENT, []),
        # The operation that creates a database is one of its branch.
        (DATABASE, [operation("create_branch", "failed")], PRESENT, []),
        (PROJECT, [operation("delete_tenant", "running")], DELETING, ["delete_tenant"]),
        (PROJECT, [operation("delete_timeline", "running")], UNFINISHED, ["delete_timeline"]),
        (PROJECT, [operation("create_timeline", "failed")], BROKEN, ["create_timeline"]),
        (PROJECT, [operation("create_branch", "failed")], PRESENT, []),
    ],
)
def test_state_by_its_operations(
    resource: dict[str, Any], about: list[dict[str, Any]], state: str, awaited: list[str]
) -> None:
    judged, operations = state_and_reasons(resource, about, EPOCH)
    assert (judged, [each["action"] for each in operations]) == (state, awaited)


def test_operations_since_the_request_are_awaited_also_if_they_have_ended() -> None:
    about = [
        operation("apply_config", "failed", 1),
        operation("start_compute", "finished", 2),
        operation("x", "failed", 9),
    ]
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


# Comparison


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
        # https://github.com/mpyw/suve/pull/342
        (9007199254740993, 9007199254740992),
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
