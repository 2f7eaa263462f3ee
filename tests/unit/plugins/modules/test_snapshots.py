# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Snapshots, their restore, backup schedules, and the recovery of what was deleted, against a sandbox."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import ClouddbError
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.tests.unit.support.resource_task import SHOP, failing, task, writes
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox

Options = dict[str, Any]
BLOG = "red-moon-34567890"
PROJECT = f"/projects/{SHOP}"
NIGHTLY = {"module": "snapshot", "name": "nightly"}
RESTORE = {"module": "branch_restore", "name": "main", "snapshot": "nightly"}
DEV = {"module": "branch", "name": "dev"}
SCHEDULE = [{"frequency": "daily", "hour": 3, "retention": "7d"}]
STORED = [{"frequency": "daily", "hour": 3, "retention_seconds": 604_800}]


def snapshots(sandbox: Sandbox) -> list[dict[str, Any]]:
    return list(sandbox.api("GET", f"{PROJECT}/snapshots")["snapshots"])


def branches(sandbox: Sandbox) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in sandbox.api("GET", f"{PROJECT}/branches")["branches"]}


def schedule(sandbox: Sandbox, name: str = "main") -> Any:
    return sandbox.api("GET", f"{PROJECT}/branches/{branches(sandbox)[name]['id']}/backup_schedule")["schedule"]


def test_a_snapshot_is_of_a_branch_at_a_time(sandbox: Sandbox, client: Client) -> None:
    task(client, **DEV, schema_only=True)
    sandbox.advance(60)
    taken = task(client, **NIGHTLY, branch="dev", timestamp="30s", expires_at="90d")["snapshot"]
    assert taken["source_branch_id"] == branches(sandbox)["dev"]["id"]
    assert taken["timestamp"] < taken["created_at"] < taken["expires_at"]
    assert task(client, **NIGHTLY, lsn="0/1")["changed"] is False
    assert task(client, module="snapshot", name="early", lsn="0/1")["snapshot"]["lsn"] == "0/1"
    for branch, names in ((None, ["early", "nightly"]), ("dev", ["nightly"]), ("main", ["early"])):
        listed = task(client, "snapshot_info", branch=branch)["snapshots"]
        assert [each["name"] for each in listed] == names
    assert task(client, "snapshot_info", branch="kid", check_mode=True)["snapshots"] == []


@pytest.mark.parametrize("wait", [True, False])
def test_a_snapshot_is_taken_once_when_the_answer_is_lost(sandbox: Sandbox, client: Client, wait: bool) -> None:
    sandbox.fault("lost_answer", method="POST", path="*/snapshot")
    result = task(client, **NIGHTLY, wait=wait)
    assert (result["changed"], [each["id"] for each in snapshots(sandbox)]) == (True, [result["snapshot"]["id"]])


def test_of_snapshots_that_several_hosts_take_at_once_the_first_stays(sandbox: Sandbox, client: Client) -> None:
    first = task(client, **NIGHTLY)["snapshot"]
    sandbox.fault("status", status=200, method="GET", path=f"{PROJECT}/snapshots", body={"snapshots": []})
    second = task(client, **NIGHTLY)
    assert (second["changed"], second["snapshot"], len(second["warnings"])) == (False, first, 1)
    assert snapshots(sandbox) == [first]


def test_a_snapshot_that_failed_is_to_be_deleted_and_not_its_branch(sandbox: Sandbox, client: Client) -> None:
    sandbox.plan((0, "running"), (1, "failed"), action="create_branch")
    with pytest.raises(ClouddbError) as error:
        task(client, **NIGHTLY)
    assert f"This creation left {snapshots(sandbox)[0]['id']}, which is not usable." in str(error.value)
    assert task(client, module="branch", name="main", protected=True)["changed"] is True


def test_a_default_branch_that_failed_is_to_be_replaced(sandbox: Sandbox, client: Client) -> None:
    task(client, **NIGHTLY)
    sandbox.plan((0, "running"), (1, "failed"), action="create_branch")
    with pytest.raises(ClouddbError, match="not usable. Make another branch the default, delete it, then"):
        task(client, **RESTORE)


def test_a_snapshot_that_takes_long_may_be_usable(sandbox: Sandbox, client: Client) -> None:
    sandbox.plan((0, "running"), action="create_branch")
    with pytest.raises(ClouddbError) as error:
        task(client, **NIGHTLY, timeout=30)
    assert (error.value.kind, "not usable" in str(error.value)) == ("wait_failed", False)


def test_the_branch_of_a_deleted_snapshot_is_not_being_deleted(sandbox: Sandbox, client: Client) -> None:
    for name in ("nightly", "old"):
        task(client, module="snapshot", name=name)
        sandbox.advance(60)
    task(client, module="snapshot", name="old", state="absent")
    for check_mode in (True, False):
        assert task(client, check_mode=check_mode, **RESTORE)["warnings"] == []


def test_no_request_is_about_one_snapshot_but_to_change_it(sandbox: Sandbox, client: Client) -> None:
    """The service has no GET for it, and no operations about it."""
    task(client, **NIGHTLY)
    before = len(sandbox.sent())
    task(client, **NIGHTLY, expires_at="7d")
    task(client, **NIGHTLY, state="absent", wait=False)
    own = [line for line in sandbox.sent()[before:] if "/snapshots/" in line or line.endswith("/operations")]
    assert [line.split()[0] for line in own] == ["PATCH", "DELETE"]


@pytest.mark.parametrize("by_id", [True, False])
@pytest.mark.parametrize("wait", [True, False])
def test_a_snapshot_takes_the_place_of_a_branch(sandbox: Sandbox, client: Client, by_id: bool, wait: bool) -> None:
    taken = task(client, **NIGHTLY)["snapshot"]
    before = branches(sandbox)["main"]["id"]
    result = task(client, **{**RESTORE, "snapshot": taken["id" if by_id else "name"]}, wait=wait)
    shown = result["branch"]
    assert (result["changed"], shown["name"], shown["restored_from"]) == (True, "main", taken["id"])
    assert shown["restored_as"] == branches(sandbox)["main (old)"]["id"] == before
    assert shown["id"] == branches(sandbox)["main"]["id"]
    assert (len(result["operations"]) > 0, result["diff"]["after"].keys()) == (True, {"created_at"})
    sent = sandbox.sent()
    posted = next(index for index, line in enumerate(sent) if line.endswith("/restore"))
    assert f"GET {PROJECT}/branches" not in sent[posted:]
    sandbox.advance(60)
    old = {"module": "branch", "name": "main (old)", "state": "absent"}
    assert [task(client, check_mode=check_mode, **old)["changed"] for check_mode in (True, False)] == [True, True]


@pytest.mark.parametrize("wait", [True, False])
def test_the_restored_branch_shows_a_restore_whose_answer_is_lost(sandbox: Sandbox, client: Client, wait: bool) -> None:
    """But not one of before."""
    task(client, **NIGHTLY)
    task(client, **RESTORE)
    sandbox.advance(60)
    sandbox.fault("status", status=502, method="POST", path="*/restore")
    assert failing(client, **RESTORE, wait=wait)["kind"] == "unknown_outcome"
    sandbox.fault("lost_answer", method="POST", path="*/restore")
    result = task(client, **RESTORE, wait=wait)
    assert (result["changed"], result["branch"]["id"]) == (True, branches(sandbox)["main"]["id"])
    assert sorted(branches(sandbox)) == ["main", "main (old 2)", "main (old)"]


def test_a_branch_restored_earlier_is_no_evidence(sandbox: Sandbox, client: Client) -> None:
    taken = task(client, **NIGHTLY)["snapshot"]
    sandbox.api("POST", f"{PROJECT}/snapshots/{taken['id']}/restore", {"name": "preview"})
    sandbox.advance(60)
    sandbox.fault("lost_answer", method="POST", path="*/restore")
    assert task(client, **RESTORE)["branch"]["id"] == branches(sandbox)["main"]["id"]


@pytest.mark.parametrize("check_mode", [False, True])
@pytest.mark.parametrize("parent", [None, "main"])
def test_a_new_branch_with_a_parent_gets_none(
    sandbox: Sandbox, client: Client, parent: str | None, check_mode: bool
) -> None:
    """And nothing is created: the branch would stay without its schedule. Nor is one that is there changed."""
    for written in ([], [f"POST {PROJECT}/branches"]):
        failure = failing(client, check_mode=check_mode, **DEV, parent=parent, backup_schedule=SCHEDULE, protected=True)
        assert (failure, writes(sandbox)) == ({"kind": "invalid_option", "option": "backup_schedule"}, written)
        if not written:
            task(client, **DEV)


@pytest.mark.parametrize("check_mode", [True, False])
def test_a_new_branch_may_have_an_empty_one(sandbox: Sandbox, client: Client, check_mode: bool) -> None:
    assert task(client, check_mode=check_mode, **DEV, backup_schedule=[])["changed"] is True


def test_a_schedule_is_compared_by_what_is_given(sandbox: Sandbox, client: Client) -> None:
    main = {"module": "branch", "name": "main"}
    task(client, **main, backup_schedule=SCHEDULE)
    assert task(client, **main, backup_schedule=[{"frequency": "daily", "hour": 3}])["changed"] is False
    assert task(client, **main)["changed"] is False
    assert schedule(sandbox) == STORED
    ended = task(client, **main, backup_schedule=[])
    assert (ended["changed"], ended["diff"]) == (True, {"before": {"schedule": STORED}, "after": {"schedule": []}})
    assert (task(client, **main, backup_schedule=[])["changed"], schedule(sandbox)) == (False, [])
    twice = [{"frequency": "monthly", "hour": 0, "day": 31, "retention": each} for each in ("1h", "35d")]
    changed = task(client, **main, backup_schedule=twice)
    assert changed["diff"] == {"before": {"schedule": []}, "after": {"schedule": schedule(sandbox)}}
    wrong = [("retention", each) for each in ("soon", "30m", "36d")] + [
        ("hour", 24),
        ("hour", -1),
        ("day", 0),
        ("day", 32),
    ]
    for item in [*({"frequency": "monthly", name: value} for name, value in wrong), {"frequency": "weekly", "day": 8}]:
        failure = failing(client, check_mode=True, **main, backup_schedule=[item])
        assert failure == {"kind": "invalid_option", "option": "backup_schedule"}


@pytest.mark.parametrize("kind", ["lost_answer", "status"])
def test_a_schedule_is_set_after_all(sandbox: Sandbox, client: Client, kind: str) -> None:
    details = {"status": 503} if kind == "status" else {}
    sandbox.fault(kind, method="PUT", path="*/backup_schedule", **details)
    assert task(client, module="branch", name="main", backup_schedule=SCHEDULE)["changed"] is True
    assert schedule(sandbox) == STORED


def deleted(sandbox: Sandbox, client: Client, **resource: Any) -> None:
    task(client, **resource, state="absent")
    sandbox.advance(5)


@pytest.mark.parametrize("fault", [None, "lost_answer"])
@pytest.mark.parametrize("wait", [True, False])
def test_a_branch_is_recovered_with_its_id(sandbox: Sandbox, client: Client, fault: str | None, wait: bool) -> None:
    branch = task(client, **DEV)["branch"]
    deleted(sandbox, client, **DEV)
    if fault:
        sandbox.fault(fault, method="POST", path="*/recover")
    result = task(client, **DEV, state="recovered", wait=wait)
    assert (result["changed"], result["branch"]["id"], "recovery" in result["branch"]) == (True, branch["id"], False)
    assert list(result["diff"]["before"]) == list(result["diff"]["after"]) == ["recovery"]
    assert task(client, **DEV, state="recovered")["changed"] is False
    assert len([line for line in writes(sandbox) if line.endswith("/recover")]) == 1


def test_what_is_not_deleted_or_too_long_ago_cannot_be_recovered(sandbox: Sandbox, client: Client) -> None:
    assert failing(client, **DEV, state="recovered") == {"kind": "not_found", "option": "name"}
    planned = task(client, **DEV, state="recovered", check_mode=True)
    assert (planned["changed"], len(planned["warnings"])) == (True, 1)
    task(client, **DEV)
    deleted(sandbox, client, **DEV)
    sandbox.advance(7 * 86400)
    assert failing(client, **DEV, state="recovered")["kind"] == "not_found"
    for option in ({"name_pattern": "dev-*", "name": None}, {"new_name": "kid"}):
        assert failing(client, **{**DEV, **option}, state="recovered")["kind"] == "invalid_option"


@pytest.mark.parametrize("which", [0, 1])
def test_of_several_deleted_branches_the_id_selects_one(sandbox: Sandbox, client: Client, which: int) -> None:
    """As in https://github.com/neondatabase/neon-pkgs/pull/269"""
    ids = []
    for _run in range(2):
        ids.append(task(client, **DEV)["branch"]["id"])
        deleted(sandbox, client, **DEV)
    for check_mode in (True, False):
        assert failing(client, check_mode=check_mode, **DEV, state="recovered")["kind"] == "ambiguous_match"
    by_id = {"module": "branch", "name": ids[which], "state": "recovered"}
    done = [task(client, check_mode=mode, **by_id) for mode in (True, False, True, False)]
    assert [each["changed"] for each in done] == [True, True, False, False]
    assert {each["branch"]["id"] for each in done} == {ids[which]}


@pytest.mark.parametrize("selected", [{"name": "blog"}, {"name": None, "id": BLOG}])
def test_a_project_is_recovered_and_can_be_changed_then(sandbox: Sandbox, client: Client, selected: Options) -> None:
    """The operation that has deleted it is in the history, where it is not taken for one that goes on."""
    deleted(sandbox, client, module="project", name="blog")
    result = task(client, "project", **selected, state="recovered")
    assert (result["changed"], result["project"]["id"]) == (True, BLOG)
    assert "deleted_at" not in result["project"]
    assert task(client, "project", **selected, state="recovered")["changed"] is False
    sandbox.advance(120)
    assert task(client, "project", name="blog", history_retention="3d")["changed"] is True


def test_of_several_deleted_projects_the_id_selects_one(sandbox: Sandbox, client: Client) -> None:
    deleted(sandbox, client, module="project", name="blog")
    other = task(client, "project", name="blog")["project"]["id"]
    deleted(sandbox, client, module="project", name="blog")
    assert failing(client, module="project", name="blog", state="recovered")["kind"] == "ambiguous_match"
    assert task(client, "project", name=None, id=other, state="recovered")["project"]["id"] == other
