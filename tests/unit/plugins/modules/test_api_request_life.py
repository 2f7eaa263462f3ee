# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""api_request in the life of a service: lists that lag, deletions that linger, creations that fail, projects that are locked."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import FakeClock
from ansible_collections.clouddb.control.tests.unit.support.progress import Progress
from ansible_collections.clouddb.control.tests.unit.support.resource_task import BRANCHES, PREVIEW, SHOP
from ansible_collections.clouddb.control.tests.unit.support.resource_task import api_request_task as task
from ansible_collections.clouddb.control.tests.unit.support.resource_task import failing_api_request as failing
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox

Branch = dict[str, Any]
ITEM: dict[str, Any] = {"path": f"{BRANCHES}/{{id}}", "find": PREVIEW["find"]}
REVIEW = {**ITEM, "body": {"branch": {"name": "review"}}}
CREATE_PROJECT: dict[str, Any] = {
    "path": "projects",
    "find": {"list": "projects", "match": {"name": "new"}},
    "body": {"project": {"name": "new"}},
}
RENAME = {"path": f"projects/{SHOP}", "body": {"project": {"history_retention_seconds": 3600}}}


@pytest.fixture
def branch(sandbox: Sandbox) -> Branch:
    """The branch preview, whose operations have finished."""
    created: Branch = sandbox.api("POST", f"/{BRANCHES}", PREVIEW["body"])["branch"]
    sandbox.advance(60)
    return created


def ids(sandbox: Sandbox) -> list[str]:
    return [each["id"] for each in sandbox.api("GET", f"/{BRANCHES}")["branches"] if each["name"] == "preview"]


def number_of(sandbox: Sandbox, method: str) -> int:
    return sum(line.startswith(method) for line in sandbox.sent())


def during_first_pause(clock: FakeClock, action: Callable[[], Any]) -> None:
    """Have somebody else act while the task pauses."""
    advance = clock.on_sleep
    assert advance

    def act(seconds: float) -> None:
        advance(seconds)
        clock.on_sleep = advance
        action()

    clock.on_sleep = act


def test_a_branch_on_the_third_page_is_found(sandbox: Sandbox, client: Client) -> None:
    """The list of branches is paged by C(pagination.next): https://github.com/ansible/ansible/issues/57759"""
    for name in ("preview", "two", "three", "four", "five"):
        sandbox.api("POST", f"/{BRANCHES}", {"branch": {"name": name}, "endpoints": []})
        sandbox.advance(10)
    sandbox.fault("page_limit", items=2, times=None)
    assert len(task(client, path=BRANCHES, all_pages=True)["json"]["branches"]) == 6
    assert task(client, "POST", **PREVIEW)["changed"] is False
    assert task(client, "DELETE", **ITEM)["changed"] is True
    assert ids(sandbox) == []


def test_a_list_that_lags_shows_the_new_branch_in_the_end(sandbox: Sandbox, client: Client, progress: Progress) -> None:
    """As in https://github.com/ansible-collections/community.general/pull/831

    The progress has the changes of the operations, and later that the list lags.
    """
    sandbox.fault("list_lag", seconds=120, method="POST")
    result = task(client, "POST", **PREVIEW)
    assert (result["changed"], [result["object"]["id"]], number_of(sandbox, "POST")) == (True, ids(sandbox), 1)
    lines = progress()
    assert all(f"{each['action']} {each['id'][:8]}" in "".join(lines) for each in result["operations"])
    assert re.fullmatch(r"clouddb: waiting for the service \(\d+ s\)", lines[-1])


def test_of_two_tasks_that_create_at_once_one_changes_something(sandbox: Sandbox, client: Client) -> None:
    """The second one gets 409 while the list lags: https://github.com/neondatabase/neon-pkgs/pull/307"""
    sandbox.fault("list_lag", seconds=3, method="POST")
    first = sandbox.api("POST", f"/{BRANCHES}", PREVIEW["body"])["branch"]
    second = task(client, "POST", **PREVIEW)
    assert (second["changed"], second["object"]["id"], second["warnings"]) == (False, first["id"], [])
    assert number_of(sandbox, "POST") == 1


def test_a_resource_without_a_project_has_no_operations(sandbox: Sandbox, client: Client) -> None:
    options = {"path": "api_keys", "find": {"match": {"name": "deploy"}}, "body": {"key_name": "deploy"}}
    assert [task(client, "POST", **options)["changed"] for _run in range(2)] == [True, False]
    assert set(sandbox.sent()) == {"GET /api_keys", "POST /api_keys"}


@pytest.mark.parametrize("status, operations, seconds", [(200, "running", 5), (202, "absent", 60), (200, "empty", 5)])
def test_a_deletion_is_over_when_the_branch_is_gone(
    sandbox: Sandbox, client: Client, clock: FakeClock, branch: Branch, status: int, operations: str, seconds: float
) -> None:
    """As in https://github.com/authzed/terraform-provider-authzed/pull/64"""
    sandbox.fault("lingering_deletion", seconds=seconds, status=status, operations=operations)
    result = task(client, "DELETE", **ITEM)
    assert (result["changed"], result["object"], result["warnings"]) == (True, None, [])
    assert (ids(sandbox), number_of(sandbox, "DELETE"), clock.elapsed >= seconds - 1) == ([], 1, True)


@pytest.mark.parametrize("wait", [True, False])
def test_what_is_being_deleted_is_not_deleted_again(
    sandbox: Sandbox, client: Client, clock: FakeClock, branch: Branch, wait: bool
) -> None:
    """As in https://github.com/Azure/ARO-RP/pull/67"""
    sandbox.fault("lingering_deletion", seconds=40, operations="absent")
    sandbox.api("DELETE", f"/{BRANCHES}/{branch['id']}")
    assert (task(client, "DELETE", wait=wait, **ITEM)["changed"], number_of(sandbox, "DELETE")) == (False, 0)
    assert (ids(sandbox) == []) is (clock.elapsed > 0) is wait


def test_a_deletion_that_its_operation_shows_is_not_repeated(sandbox: Sandbox, client: Client, branch: Branch) -> None:
    sandbox.fault("lingering_deletion", seconds=12, operations="running")
    sandbox.api("DELETE", f"/{BRANCHES}/{branch['id']}")
    listed = {"branches": [{**branch, "current_state": "ready"}]}
    sandbox.fault("status", status=200, method="GET", path=f"/{BRANCHES}", body=listed)
    result = task(client, "DELETE", **ITEM)
    assert (result["changed"], number_of(sandbox, "DELETE"), ids(sandbox)) == (False, 0, [])


@pytest.mark.parametrize(("again", "seconds"), [(404, 45), (412, 20)])
def test_a_refused_deletion_of_what_seems_present_waits_until_it_is_gone(
    sandbox: Sandbox, client: Client, clock: FakeClock, branch: Branch, again: int, seconds: float
) -> None:
    """A role has no state of its own."""
    roles = f"{BRANCHES}/{branch['id']}/roles"
    sandbox.api("POST", f"/{roles}", {"role": {"name": "app"}})
    sandbox.advance(60)
    sandbox.fault("lingering_deletion", seconds=seconds, operations="absent", again=again)
    sandbox.api("DELETE", f"/{roles}/app")
    result = task(client, "DELETE", path=f"{roles}/{{name}}", find={"list": "roles", "match": {"name": "app"}})
    assert (result["changed"], result["object"], clock.elapsed > seconds - 1) == (False, None, True)


def test_a_branch_is_created_when_the_old_one_is_gone(sandbox: Sandbox, client: Client, branch: Branch) -> None:
    """A pull request was closed and opened again. A failed operation of the old branch does not fail the creation.

    As in https://github.com/ansible/ansible-modules-core/issues/2402
    """
    sandbox.plan((0, "running"), (5, "failed"), times=2)
    sandbox.fault("lingering_deletion", seconds=12)
    sandbox.api("DELETE", f"/{BRANCHES}/{branch['id']}")
    foreseen, result = (task(client, "POST", check_mode, **PREVIEW) for check_mode in (True, False))
    assert (foreseen["changed"], foreseen["object"]) == (True, {"id": None, "name": "preview"})
    assert foreseen["diff"]["before"] == {}
    assert (result["changed"], [result["object"]["id"]]) == (True, ids(sandbox)) != (True, [branch["id"]])


def test_the_old_branch_has_to_be_gone_within_the_timeout(
    sandbox: Sandbox, client: Client, clock: FakeClock, branch: Branch
) -> None:
    sandbox.fault("lingering_deletion", seconds=100)
    sandbox.api("DELETE", f"/{BRANCHES}/{branch['id']}")
    result = failing(client, "POST", timeout=30, **PREVIEW)
    assert (result["failure"]["kind"], branch["id"] in result["msg"]) == ("wait_failed", True)
    assert (number_of(sandbox, "POST"), 30 <= round(clock.elapsed, 6) <= 32) == (0, True)


@pytest.mark.parametrize("age", [60, 3 * 86400])
def test_a_failed_creation_is_not_green_in_the_next_run(sandbox: Sandbox, client: Client, age: float) -> None:
    """As in https://github.com/hashicorp/terraform/issues/7581, and its removal as in https://github.com/scylladb/terraform-provider-scylladbcloud/issues/34"""
    sandbox.plan((0, "running"), (2, "failed"), action="create_branch", error="no capacity left")
    first = failing(client, "POST", **PREVIEW)
    sandbox.advance(age)
    again = failing(client, "POST", **PREVIEW)
    for result in (first, again):
        assert (result["failure"]["kind"], result["failed_ids"]) == ("wait_failed", first["failed_ids"])
        assert "no capacity left. This creation left br-" in result["msg"]
    assert (first["status"], first["object"]["name"]) == (201, "preview")
    assert (first["changed"], again["changed"], number_of(sandbox, "POST")) == (True, False, 1)
    checked = task(client, "POST", check_mode=True, **PREVIEW)
    assert (checked["changed"], "will fail" in checked["warnings"][0]) == (False, True)
    assert task(client, "DELETE", **ITEM)["changed"] is True
    assert task(client, "POST", **PREVIEW)["changed"] is True


@pytest.mark.parametrize("operations", ["null", "empty"])
def test_operations_that_the_response_lacks_are_waited_for(sandbox: Sandbox, client: Client, operations: str) -> None:
    """As in https://github.com/ansible/ansible/issues/20040"""
    sandbox.fault("missing_operations", operations=operations, method="POST")
    ended = {each["action"]: each["status"] for each in task(client, "POST", **PREVIEW)["operations"]}
    assert ended == {"create_branch": "finished", "start_compute": "finished"}


def test_somebody_elses_failed_operation_does_not_fail_the_task(sandbox: Sandbox, client: Client) -> None:
    """As in https://github.com/linode/linodego/pull/267"""
    sandbox.fault("lost_answer", method="POST")
    sandbox.plan((0, "running"), (1, "failed"), times=1, action="create_branch")
    sandbox.plan((0, "running"), (30, "finished"), times=1, action="create_branch")
    other = {"branch": {"name": "other"}, "endpoints": []}
    with pytest.raises(OSError):
        sandbox.api("POST", f"/{BRANCHES}", other)
    sandbox.fault("lost_answer", method="POST")
    result = task(client, "POST", **PREVIEW)
    assert (result["changed"], result["status"]) == (True, None)
    ended = {(each["branch_id"], each["status"]) for each in result["operations"]}
    assert ended == {(result["object"]["id"], "finished")}


def test_an_interrupted_request_is_not_sent_again(sandbox: Sandbox, client: Client, clock: FakeClock) -> None:
    """The service carries it out later: https://github.com/IBM-Cloud/terraform-provider-ibm/issues/3178"""
    sandbox.fault("reset", method="POST")
    during_first_pause(clock, lambda: sandbox.api("POST", f"/{BRANCHES}", PREVIEW["body"]))
    result = task(client, "POST", **PREVIEW)
    assert (result["changed"], [result["object"]["id"]], len(result["warnings"])) == (True, ids(sandbox), 1)


@pytest.mark.parametrize("field", ["name", "nmae"])
def test_a_change_that_the_service_ignores_is_a_warning(
    sandbox: Sandbox, client: Client, clock: FakeClock, branch: Branch, field: str
) -> None:
    """As in https://github.com/open-mercato/open-mercato/issues/5776"""
    sandbox.fault("ignored_change", method="PATCH")
    result = task(client, "PATCH", body={"branch": {field: "review"}}, **ITEM)
    assert (result["changed"], result["status"], result["object"]["id"]) == (False, 200, branch["id"])
    assert (len(result["warnings"]), field in result["warnings"][0], clock.pauses) == (1, True, [])


def test_a_branch_that_is_gone_after_its_change_was_changed(sandbox: Sandbox, client: Client, branch: Branch) -> None:
    gone = {"kind": "status", "method": "GET", "times": None}
    sandbox.fault(**gone, path=f"{BRANCHES}/*", status=404)
    sandbox.fault(**gone, path=BRANCHES, status=200, body={"branches": []}, skip=1)
    result = failing(client, "PATCH", timeout=5.0, **REVIEW)
    assert (result["failure"]["kind"], result["changed"]) == ("wait_failed", True)


def test_a_change_that_a_list_shows_late_is_a_change(sandbox: Sandbox, client: Client, branch: Branch) -> None:
    sandbox.fault("list_lag", seconds=3, method="PATCH")
    result = task(client, "PATCH", **REVIEW)
    assert (result["changed"], result["object"]["name"], result["warnings"]) == (True, "review", [])
    before = result["diff"]["before"]
    assert (before["name"], "id" in before) == ("preview", False)


def test_a_nested_field_that_is_removed_is_a_change(sandbox: Sandbox, client: Client) -> None:
    """As in https://github.com/netbox-community/ansible_modules/issues/1159"""
    before, after = ({"id": SHOP, "name": "shop", "settings": {"ips": [1], **more}} for more in ({"lag": 3}, {}))
    sandbox.fault("status", status=200, method="GET", path="/projects", body={"projects": [before]})
    sandbox.fault("status", status=200, path=f"/projects/{SHOP}", body={"project": after}, times=2)
    find = {"list": "projects", "match": {"name": "shop"}}
    result = task(client, "PATCH", path="projects/{id}", find=find, body={"project": {"settings": {"lag": None}}})
    assert (result["changed"], result["diff"]["before"]["settings"], result["warnings"]) == (True, {"lag": 3}, [])


def test_another_form_of_the_same_value_is_no_change(sandbox: Sandbox, client: Client) -> None:
    before, after = ({"id": SHOP, "name": "shop", "until": f"2026-01-01T00:00:00{end}"} for end in ("Z", ".0Z"))
    sandbox.fault("status", status=200, method="GET", path="/projects", body={"projects": [before]})
    sandbox.fault("status", status=200, path=f"/projects/{SHOP}", body={"project": after}, times=2)
    find = {"list": "projects", "match": {"name": "shop"}}
    result = task(client, "PATCH", path="projects/{id}", find=find, body={"project": {"until": "2027-01-01T00:00:00Z"}})
    assert (result["changed"], len(result["warnings"])) == (False, 1)


@pytest.mark.parametrize("echo", [False, True])
def test_a_name_that_the_service_changes_is_an_error(sandbox: Sandbox, client: Client, echo: bool) -> None:
    """As in https://github.com/achikin/testrail-jenkins-plugin/pull/1"""
    sandbox.fault("normalized_name", lower_case=True, echo=echo, method="POST", times=None)
    options = {"path": BRANCHES, "find": {"list": "branches", "match": {"name": "PR-1"}}}
    result = failing(client, "POST", body={"branch": {"name": "PR-1"}}, **options)
    assert (result["failure"]["kind"], result["changed"], "'pr-1'" in result["msg"]) == ("no_match", True, True)


def test_without_waiting_a_branch_that_is_being_created_is_deleted(sandbox: Sandbox, client: Client) -> None:
    sandbox.api("POST", f"/{BRANCHES}", PREVIEW["body"])
    assert (task(client, "DELETE", wait=False, **ITEM)["changed"], ids(sandbox)) == (True, [])


def test_a_blip_after_a_lost_response_decides_nothing(sandbox: Sandbox, client: Client) -> None:
    sandbox.fault("reset", method="POST")
    sandbox.fault("status", status=503, method="GET", path=f"/{BRANCHES}", skip=2, times=None)
    result = failing(client, "POST", wait=False, **PREVIEW)
    sandbox.control("DELETE", "/faults")
    assert (result["failure"]["kind"], ids(sandbox)) == ("unknown_outcome", [])


def test_without_find_a_deletion_is_awaited(sandbox: Sandbox, client: Client, clock: FakeClock, branch: Branch) -> None:
    sandbox.fault("lingering_deletion", seconds=12, operations="absent")
    assert task(client, "DELETE", path=f"{BRANCHES}/{branch['id']}")["changed"] is True
    assert (ids(sandbox), clock.elapsed >= 11) == ([], True)


def test_without_find_the_resource_is_as_it_is_after_the_wait(sandbox: Sandbox, client: Client) -> None:
    result = task(client, "POST", path=BRANCHES, body=PREVIEW["body"])
    assert (result["changed"], result["object"]["current_state"]) == (True, "ready")
    path = f"{BRANCHES}/{result['object']['id']}/restore"
    restored = {"branch": {**result["object"], "current_state": "restoring"}}
    sandbox.fault("status", status=200, method="POST", body=restored)
    assert task(client, "POST", path=path, body={})["object"]["current_state"] == "ready"


def test_a_field_of_this_name_that_is_no_list_names_no_operations(sandbox: Sandbox, client: Client) -> None:
    sandbox.fault("status", status=201, method="POST", body={"kind": "lingering_deletion", "operations": "running"})
    result = task(client, "POST", path="faults", body={"kind": "lingering_deletion"})
    assert (result["changed"], result["status"], result["object"], result["operations"]) == (True, 201, None, [])


def test_without_a_project_the_pauses_grow_to_the_interval(sandbox: Sandbox, client: Client, clock: FakeClock) -> None:
    sandbox.fault("status", status=423, method="POST", times=7)
    assert task(client, "POST", wait=False, interval=1.0, **CREATE_PROJECT)["status"] == 201
    assert {line for line in sandbox.sent() if line.startswith("GET")} == {"GET /projects"}
    assert clock.pauses == pytest.approx([*(0.4 * 1.25**poll for poll in range(5)), 1.0, 1.0])


def test_the_last_pause_ends_at_the_deadline(sandbox: Sandbox, client: Client, clock: FakeClock) -> None:
    sandbox.fault("status", status=423, method="POST", times=None, retry_after=7)
    result = failing(client, "POST", lock_timeout=10, **CREATE_PROJECT)
    assert clock.pauses == [7.0, 3.0]
    assert (result["failure"]["kind"], result["failure"]["status"]) == ("locked", 423)
    assert number_of(sandbox, "POST") == 3


def test_the_unfinished_operations_are_named(sandbox: Sandbox, client: Client, clock: FakeClock) -> None:
    sandbox.plan((0, "running"), (1000, "finished"), action="create_branch")
    [first, *later] = sandbox.api("POST", f"/{BRANCHES}", {"branch": {"name": "other"}})["operations"]
    message = failing(client, "PATCH", lock_timeout=10, **RENAME)["msg"]
    # The others start when the first one is finished. The service's own message names none.
    assert (message.count(first["id"]), [each["id"] in message for each in later]) == (1, [False])
    assert clock.elapsed == pytest.approx(10.0)


def test_what_another_client_creates_meanwhile_is_no_change(sandbox: Sandbox, client: Client, clock: FakeClock) -> None:
    sandbox.fault("status", status=423, method="POST")
    during_first_pause(clock, lambda: sandbox.api("POST", "/projects", CREATE_PROJECT["body"]))
    result = task(client, "POST", wait=False, **CREATE_PROJECT)
    assert (result["changed"], result.get("warnings", [])) == (False, [])


def test_a_failed_operation_ends_the_wait_for_the_lock(sandbox: Sandbox, client: Client) -> None:
    sandbox.plan((0, "running"), (3, "failed"), action="create_branch")
    sandbox.api("POST", f"/{BRANCHES}", {"branch": {"name": "other"}})
    assert task(client, "PATCH", **RENAME)["status"] == 200


def test_without_a_list_of_operations_a_change_is_repeated(sandbox: Sandbox, client: Client, clock: FakeClock) -> None:
    sandbox.fault("status", status=423, method="PATCH", times=2)
    sandbox.fault("status", status=404, method="GET", path=f"/projects/{SHOP}/operations", times=None)
    assert task(client, "PATCH", wait=False, **RENAME)["status"] == 200
    assert clock.pauses == pytest.approx([0.4, 0.5])


def test_another_error_of_the_list_ends_the_task(sandbox: Sandbox, client: Client) -> None:
    sandbox.fault("status", status=423, method="PATCH")
    sandbox.fault("status", status=403, method="GET", path=f"/projects/{SHOP}/operations", times=None)
    assert failing(client, "PATCH", **RENAME)["failure"]["status"] == 403
    assert [line.split()[0] for line in sandbox.sent()] == ["PATCH", "GET"]


def test_without_waiting_a_response_without_the_name_is_followed_by_a_look_up(sandbox: Sandbox, client: Client) -> None:
    sandbox.fault("rewrite", omit=["branch.name"], method="POST")
    created = task(client, "POST", wait=False, **PREVIEW)
    assert (created["changed"], [created["object"]["id"]]) == (True, ids(sandbox))


def test_a_branch_that_is_as_wanted_has_to_be_finished(sandbox: Sandbox, client: Client) -> None:
    sandbox.plan((0, "running"), (2, "failed"), action="create_branch")
    sandbox.api("POST", f"/{BRANCHES}", PREVIEW["body"])
    assert failing(client, "PATCH", **{**PREVIEW, **ITEM})["failure"]["kind"] == "wait_failed"
    assert number_of(sandbox, "PATCH") == 0


def test_a_gateway_may_show_another_branch_at_the_path(sandbox: Sandbox, client: Client, branch: Branch) -> None:
    other = {"branch": {**branch, "id": "br-another-one-00000000", "name": "other"}}
    sandbox.fault("status", status=200, method="GET", path=f"{BRANCHES}/{branch['id']}", body=other, times=None)
    changed = task(client, "PATCH", **REVIEW)
    assert (changed["changed"], changed["object"]["id"], changed["warnings"]) == (True, branch["id"], [])


def test_what_fails_while_the_project_is_locked_is_no_part_of_the_request(
    sandbox: Sandbox, client: Client, clock: FakeClock, branch: Branch
) -> None:
    def fail() -> None:
        sandbox.plan((0, "failed"), times=1, action="apply_config")
        database = {"database": {"name": "orders", "owner_name": "clouddb_owner"}}
        sandbox.api("POST", f"/{BRANCHES}/{branch['id']}/databases", database)
        sandbox.advance(5)

    sandbox.fault("status", status=423, method="PATCH")
    during_first_pause(clock, fail)
    changed = task(client, "PATCH", **REVIEW)
    assert (changed["changed"], changed["object"]["name"], number_of(sandbox, "PATCH")) == (True, "review", 2)


def test_a_field_that_only_the_deleted_branch_had_is_known(sandbox: Sandbox, client: Client, branch: Branch) -> None:
    find = {"list": "branches", "match": {"name": "preview", "parent_id": branch["parent_id"]}}
    deleted = task(client, "DELETE", path=f"{BRANCHES}/{{id}}", find=find)
    assert (deleted["changed"], deleted["warnings"], ids(sandbox)) == (True, [], [])
