# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The modules of projects, branches, databases and database users, against a sandbox."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import ClouddbError
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.module_utils._timestamps import parse_timestamp
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import FakeClock
from ansible_collections.clouddb.control.tests.unit.support.progress import Progress
from ansible_collections.clouddb.control.tests.unit.support.resource_task import SHOP, failing, task, writes
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox
from ansible_collections.clouddb.control.tests.unit.support.scripted_client import Serve
from ansible_collections.clouddb.control.tests.unit.support.scripted_service import reply

Options = dict[str, Any]
BLOG = "red-moon-34567890"
PREVIEW = {"module": "branch", "name": "preview"}
ORDERS = {"module": "database", "name": "orders", "owner": "clouddb_owner"}
APP = {"module": "database_user", "name": "app"}
STORE = {"module": "project", "name": "store"}
BRANCHES = f"/projects/{SHOP}/branches"
PROJECT = reply({"project": {"id": SHOP}})


def create_branch(sandbox: Sandbox, name: str = "preview", **fields: Any) -> dict[str, Any]:
    """A new branch without a compute."""
    created = sandbox.api("POST", BRANCHES, {"branch": {"name": name, **fields}, "endpoints": []})
    return dict(created["branch"])


def listed(sandbox: Sandbox, module: str) -> list[str]:
    """The names of the resources that the service lists."""
    path = {"project": "/projects", "branch": BRANCHES}[module]
    return [each["name"] for each in sandbox.api("GET", path)[path.rpartition("/")[2]]]


class TestExpiration:
    """As in https://github.com/neondatabase/website/pull/3776, whose example has a time in the past"""

    @pytest.mark.parametrize("value", ["x", "2024-12-15T00:00Z", "2999-01-01T00:00Z", "0s", "31d", "99999999w", True])
    def test_an_invalid_past_or_too_late_one_is_refused(self, sandbox: Sandbox, client: Client, value: Any) -> None:
        task(client, **PREVIEW)
        for name, check_mode in (("new", True), ("new", False), ("preview", False)):
            failure = failing(client, module="branch", name=name, check_mode=check_mode, expires_at=value)
            assert failure == {"kind": "invalid_option", "option": "expires_at"}
        assert len(writes(sandbox)) == 1

    def test_the_past_is_by_the_clock_of_the_service(self, sandbox: Sandbox, client: Client, clock: FakeClock) -> None:
        clock.elapsed = -10 * 365 * 86400.0
        created_at = task(client, **PREVIEW)["branch"]["created_at"]
        sandbox.advance(60)
        assert failing(client, **PREVIEW, expires_at=created_at) == {"kind": "invalid_option", "option": "expires_at"}

    @pytest.mark.parametrize("is_there", [False, True])
    def test_an_age_sets_a_time_once(self, sandbox: Sandbox, client: Client, is_there: bool) -> None:
        if is_there:
            task(client, **PREVIEW)
        wanted = {**PREVIEW, "expires_at": "7d"}
        planned, result = (task(client, check_mode=mode, **wanted) for mode in (True, False))
        expires_at, now = (parse_timestamp(result["branch"][name]) for name in ("expires_at", "created_at"))
        assert timedelta(days=7, minutes=-1) < expires_at - now < timedelta(days=7, minutes=1)
        assert (planned["changed"], result["changed"]) == (True, True)
        sandbox.advance(3600)
        again = task(client, **{**wanted, "expires_at": "14d"})
        assert (again["changed"], again["branch"]["expires_at"]) == (False, result["branch"]["expires_at"])
        assert task(client, check_mode=True, **wanted)["changed"] is False
        later = f"{(expires_at + timedelta(days=7)).date()}T00:00:00Z"
        assert task(client, **{**wanted, "expires_at": later})["changed"] is True


def test_what_another_task_creates_first_is_changed(sandbox: Sandbox, client: Client) -> None:
    """The service refuses to create it again, while its list does not show it yet."""
    sandbox.fault("list_lag", seconds=3, method="POST")
    sandbox.api("POST", BRANCHES, {"branch": {"name": "preview"}})
    result = task(client, **PREVIEW, protected=True)
    assert (result["changed"], result["branch"]["protected"]) == (True, True)
    assert [line.split()[0] for line in writes(sandbox)] == ["POST", "PATCH"]


def test_a_project_that_is_gone_has_no_operations(sandbox: Sandbox, client: Client) -> None:
    sandbox.fault("missing_operations", method="DELETE")
    sandbox.fault("status", status=404, method="GET", path=f"/projects/{SHOP}/operations", skip=1, times=None)
    result = task(client, "project", name="shop", state="absent")
    assert (result["changed"], result["project"]) == (True, None)


@pytest.mark.parametrize("status", [200, 400, 403])
def test_a_project_that_the_list_leaves_out_is_found_by_its_id(sandbox: Sandbox, client: Client, status: int) -> None:
    """As in https://github.com/neondatabase/neonctl/issues/198, /379 and /382"""
    sandbox.fault("status", status=status, method="GET", path="/projects", body={"projects": []}, times=None)
    named = {"module": "project", "id": SHOP, "name": None}
    assert [task(client, **named, history_retention="2h")["changed"] for _run in range(2)] == [True, False]
    assert [task(client, **named, state="absent")["changed"] for _run in range(2)] == [True, False]
    assert writes(sandbox) == [f"PATCH /projects/{SHOP}", f"DELETE /projects/{SHOP}"]


class TestParents:
    @pytest.mark.parametrize("project", ["shop", SHOP])
    def test_they_are_named_by_id_or_name(self, client: Client, project: str) -> None:
        branch = task(client, project=project, **PREVIEW)["branch"]
        for named in ("preview", branch["id"]):
            database = task(client, project=project, branch=named, **ORDERS)["database"]
            assert database["branch_id"] == branch["id"]

    def test_below_one_that_does_not_exist_there_is_nothing_to_delete(self, client: Client) -> None:
        result = task(client, branch="preview", state="absent", **ORDERS)
        assert (result["changed"], len(result["warnings"])) == (False, 1)

    def test_one_that_fits_several_is_an_error(self, sandbox: Sandbox, client: Client) -> None:
        sandbox.api("POST", "/projects", {"project": {"name": BLOG}})
        sandbox.api("POST", "/projects", {"project": {"name": "shop"}})
        assert failing(client, **PREVIEW) == {"kind": "invalid_option", "option": "project"}

    @pytest.mark.parametrize("name", ["tidy-fox-34567890", "quiet-sea-123456"])
    def test_a_name_that_looks_like_an_id_is_a_name(self, sandbox: Sandbox, client: Client, name: str) -> None:
        created = sandbox.api("POST", "/projects", {"project": {"name": name}})["project"]["id"]
        sandbox.advance(60)
        assert task(client, **{**PREVIEW, "project": name})["branch"]["project_id"] == created

    def test_one_that_an_incomplete_list_may_lack_is_an_error(self, sandbox: Sandbox, client: Client) -> None:
        sandbox.fault("unavailable_projects", ids=[SHOP], times=None)
        assert failing(client, **PREVIEW)["kind"] == "incomplete_list"
        with pytest.raises(ClouddbError, match="incomplete"):
            task(client, check_mode=True, **PREVIEW)

    def test_several_projects_of_a_name_are_an_error(self, sandbox: Sandbox, client: Client) -> None:
        sandbox.api("POST", "/projects", {"project": {"name": "shop"}})
        assert failing(client, module="project", name="shop", state="absent")["kind"] == "ambiguous_match"
        assert "limit=400" in sandbox.requests()[-2]["query"]
        assert task(client, "project", name=None, id=SHOP, state="absent")["changed"] is True
        assert writes(sandbox) == [f"DELETE /projects/{SHOP}"]


class TestRefusals:
    @pytest.fixture(autouse=True)
    def branches(self, sandbox: Sandbox) -> None:
        parent = create_branch(sandbox, "parent")["id"]
        sandbox.advance(60)
        create_branch(sandbox, "child", parent_id=parent)
        sandbox.advance(60)

    def test_a_child_that_is_being_deleted_is_no_reason(self, sandbox: Sandbox, client: Client) -> None:
        sandbox.fault("lingering_deletion", seconds=600)
        task(client, module="branch", name="child", state="absent", wait=False)
        planned = task(client, check_mode=True, module="branch", name="parent", state="absent")
        assert (planned["changed"], planned["warnings"]) == (True, [])

    def test_what_the_service_accepts_nevertheless_is_done(self, sandbox: Sandbox, client: Client) -> None:
        """A list may lag."""
        sandbox.fault("list_lag", seconds=30, method="DELETE")
        task(client, "branch", name="child", state="absent", wait=False)
        assert task(client, "branch", name="parent", state="absent")["changed"] is True

    def test_lists_that_cannot_be_fetched_show_nothing(self, sandbox: Sandbox, client: Client) -> None:
        sandbox.fault("status", status=403, method="GET", path="*/roles", times=None)
        assert task(client, check_mode=True, **{**ORDERS, "owner": "app"})["changed"] is True
        assert failing(client, **{**ORDERS, "owner": "app"})["status"] == 404

    def test_an_ordinary_run_does_not_look_for_them(self, sandbox: Sandbox, client: Client) -> None:
        task(client, **ORDERS)
        assert not any(line.endswith("/roles") for line in sandbox.sent())


ONLY_IN_API_REQUEST = re.compile(r"\bfind\b|\bbody\b|lock_timeout|owner_name|_seconds")
RENAMED = {"kind": "normalized_name", "lower_case": True, "method": "POST"}


@pytest.mark.parametrize(
    ("kind", "faults", "options"),
    [
        ("ambiguous_match", [], {"module": "project", "name": "twice"}),
        ("incomplete_list", [{"kind": "unavailable_projects", "ids": [BLOG], "times": 9}], STORE),
        ("locked", [{"kind": "status", "status": 423, "method": "POST", "times": 9}], {**PREVIEW, "timeout": 1}),
        ("no_match", [RENAMED], {**PREVIEW, "name": "PREVIEW"}),
    ],
)
def test_messages_name_the_options_of_the_module(
    sandbox: Sandbox, client: Client, kind: str, faults: list[dict[str, Any]], options: Options
) -> None:
    for name in ("twice", "twice"):
        sandbox.api("POST", "/projects", {"project": {"name": name}})
    for fault in faults:
        sandbox.fault(**fault)
    with pytest.raises(ClouddbError) as error:
        task(client, **options)
    assert error.value.kind == kind
    assert not ONLY_IN_API_REQUEST.search(str(error.value))


def test_warnings_name_the_options_of_the_module(sandbox: Sandbox, client: Client) -> None:
    missing = task(client, "project", check_mode=True, id="gone-lake-12345678", name="web-shop")["warnings"]
    body = {"project": {**sandbox.api("GET", f"/projects/{SHOP}")["project"], "history_retention_seconds": 1}}
    sandbox.fault("status", status=200, method="PATCH", body=body)
    ignored = task(client, "project", name=None, id=SHOP, history_retention="7d")["warnings"]
    assert (len(missing), len(ignored), "history_retention" in ignored[0]) == (1, 1, True)
    assert writes(sandbox) == [f"PATCH /projects/{SHOP}"]
    assert not ONLY_IN_API_REQUEST.search(missing[0] + ignored[0])


def test_waiting_before_a_change_is_shown(
    sandbox: Sandbox, client: Client, clock: FakeClock, progress: Progress
) -> None:
    sandbox.plan((0, "running"), (20, "finished"), action="create_branch")
    create_branch(sandbox)
    result = task(client, **PREVIEW, protected=True)
    [operation], [line] = result["operations"], progress()
    assert (result["changed"], result["elapsed"]) == (True, round(clock.elapsed, 3))
    assert operation["id"][:8] in line


def test_a_lock_does_not_prolong_the_timeout(sandbox: Sandbox, client: Client, clock: FakeClock) -> None:
    for action in ("create_branch", "apply_storage_config"):
        sandbox.plan((0, "running"), (20, "finished"), action=action)
    create_branch(sandbox, "other")
    with pytest.raises(ClouddbError, match="Timed out after 30 s") as error:
        task(client, "project", id=SHOP, name=None, history_retention="3d", timeout=30)
    assert (error.value.kind, len(writes(sandbox)), round(clock.elapsed)) == ("wait_failed", 2, 30)


@pytest.mark.parametrize(
    "is_there, option, fault",
    [(True, "protected", {"method": "PATCH"}), (False, "default", {"path": "*/set_as_default"})],
)
def test_a_wait_before_a_request_counts_against_its_timeout(
    sandbox: Sandbox, client: Client, clock: FakeClock, is_there: bool, option: str, fault: Options
) -> None:
    sandbox.plan((0, "running"), (20, "finished"), action="create_branch")
    if is_there:
        create_branch(sandbox)
    sandbox.fault("status", status=423, times=None, **fault)
    assert failing(client, **PREVIEW, **{option: True}, timeout=30)["kind"] == "locked"
    assert 20 < clock.elapsed <= 32


def test_an_operation_in_whole_seconds_belongs_to_the_request_of_that_second(serve: Serve) -> None:
    """Which the response to the request does not name."""
    common = {"project_id": SHOP, "created_at": "2026-11-21T08:00:00Z"}
    branch = {"id": "br-1", "name": "preview", "current_state": "ready", **common}
    operation = {"id": "op-1", "branch_id": "br-1", "action": "apply_config", "status": "failed", **common}
    created = [reply({"branch": branch}, 201), reply({"branches": [branch]})]
    polls = [reply({"operations": [operation]}), reply({"operation": operation})]
    served = serve(PROJECT, reply({"branches": []}), reply({"branches": []}), *created, *polls)
    served.clock.elapsed = 0.5
    assert failing(served.client, **PREVIEW, project=SHOP)["kind"] == "wait_failed"


def test_a_creation_that_failed_is_found_if_it_was_recorded_before_the_branch(sandbox: Sandbox, client: Client) -> None:
    sandbox.plan((0, "running"), (5, "failed"), action="create_branch")
    branch = create_branch(sandbox)
    later = (parse_timestamp(branch["created_at"]) + timedelta(seconds=2)).isoformat()
    sandbox.advance(60)
    body = {"branches": [{**branch, "created_at": later, "current_state": "ready"}]}
    sandbox.fault("status", status=200, method="GET", path=BRANCHES, body=body, times=None)
    assert failing(client, **PREVIEW)["kind"] == "wait_failed"
    assert writes(sandbox) == []


@pytest.mark.parametrize("state", ["present", "absent"])
def test_a_list_that_fails_does_not_show_that_a_project_is_absent(sandbox: Sandbox, client: Client, state: str) -> None:
    sandbox.fault("status", status=500, method="GET", path="/projects", times=None)
    named = {"module": "project", "id": "gone-lake-12345678", "name": None, "history_retention": "7d"}
    assert failing(client, **named, state=state)["status"] == 500


@pytest.mark.parametrize("state", ["present", "absent"])
def test_a_namesake_that_is_being_deleted_does_not_count(sandbox: Sandbox, client: Client, state: str) -> None:
    branch = create_branch(sandbox)
    sandbox.advance(60)
    body = {"branches": [{**branch, "id": "br-old", "current_state": "deleting"}, {**branch, "current_state": "ready"}]}
    sandbox.fault("status", status=200, method="GET", path=BRANCHES, body=body)
    assert task(client, **PREVIEW, state=state)["changed"] is (state == "absent")
    assert writes(sandbox) == ([f"DELETE {BRANCHES}/{branch['id']}"] if state == "absent" else [])


def test_each_run_replaces_the_password_of_a_user_that_exists(sandbox: Sandbox, client: Client) -> None:
    """As in https://github.com/stackitcloud/terraform-provider-stackit/issues/563, where only a new user has a new password"""
    [branch] = sandbox.api("GET", BRANCHES)["branches"]
    passwords = []
    for changes in (1, 2, 3):
        assert task(client, check_mode=True, **APP, update_password="always")["changed"] is True
        assert len(writes(sandbox)) == changes - 1
        result = task(client, **APP, update_password="always")
        assert (result["changed"], result["database_user"].get("password")) == (True, "********")
        assert [each["status"] for each in result["operations"]] == ["finished"]
        assert task(client, **APP)["changed"] is False
        passwords.append(sandbox.api("GET", f"{BRANCHES}/{branch['id']}/roles/app/reveal_password")["password"])
    assert len({*passwords}) == 3
    assert [line.split("/")[-1] for line in writes(sandbox)] == ["roles", "reset_password", "reset_password"]


def test_settings_of_a_project_are_compared_by_what_is_given(sandbox: Sandbox, client: Client) -> None:
    """As in https://github.com/kislerdm/terraform-provider-neon/issues/133, which cleared what was not given"""
    quota = {"quota": {"active_time_seconds": 3600}}
    both = {"quota": {**quota["quota"], "written_data_bytes": 1000}, "allowed_ips": {"ips": ["192.0.2.1", "192.0.2.2"]}}
    wanted = {**STORE, "settings": both}
    planned, created, again = (task(client, check_mode=mode, **wanted) for mode in (True, False, False))
    assert [each["changed"] for each in (planned, created, again)] == [True, True, False]
    assert task(client, **STORE, settings=quota)["changed"] is False
    changed = task(client, **STORE, settings={"allowed_ips": {"ips": ["192.0.2.1"]}})
    assert changed["diff"]["after"]["settings"] == {"allowed_ips": {"ips": ["192.0.2.1"]}}
    assert [line.split()[0] for line in writes(sandbox)] == ["POST", "PATCH"]


def test_a_failed_wait_names_its_operations(sandbox: Sandbox, client: Client) -> None:
    sandbox.plan((0, "running"), (5, "failed"), action="create_branch")
    with pytest.raises(ClouddbError) as error:
        task(client, **PREVIEW)
    result = error.value.as_result()
    assert (result["changed"], result["branch"]["name"], len(result["failed_ids"])) == (True, "preview", 1)
    assert "object" not in result


@pytest.mark.parametrize("name", ["rel[1]", "why?", "[WIP] login", "*", "pr-*"])
def test_a_name_is_no_pattern(sandbox: Sandbox, client: Client, name: str) -> None:
    """As in https://github.com/squell/id3/issues/7 and https://github.com/nushell/nushell/issues/9790"""
    for other in ("rel1", "why1", "W login", "pr-1"):
        create_branch(sandbox, other)
    before = {*listed(sandbox, "branch")}
    named = {"module": "branch", "name": name}
    assert [task(client, **named)["changed"] for _run in range(2)] == [True, False]
    assert {*listed(sandbox, "branch")} == {*before, name}
    assert [task(client, **named, state="absent")["changed"] for _run in range(2)] == [True, False]
    assert {*listed(sandbox, "branch")} == before


def test_an_action_that_fails_does_not_hide_that_the_branch_was_created(sandbox: Sandbox, client: Client) -> None:
    sandbox.fault("status", status=422, method="POST", path=f"{BRANCHES}/*/set_as_default")
    with pytest.raises(ClouddbError) as error:
        task(client, **PREVIEW, default=True, timeout=5)
    assert error.value.result["changed"] is True


def test_a_created_branch_is_as_the_service_shows_it_in_the_end(sandbox: Sandbox, client: Client) -> None:
    created = task(client, **PREVIEW)["branch"]
    assert created == sandbox.api("GET", f"{BRANCHES}/{created['id']}")["branch"]


def test_what_the_service_stores_otherwise_is_not_changed_by_its_creation(sandbox: Sandbox, client: Client) -> None:
    sandbox.fault("rewrite", set={"branches.*.protected": False}, method="GET", path=BRANCHES, times=None)
    assert task(client, **PREVIEW, protected=True)["changed"] is True
    assert writes(sandbox) == [f"POST {BRANCHES}"]


def test_without_waiting_an_unfinished_branch_is_changed(sandbox: Sandbox, client: Client) -> None:
    task(client, **PREVIEW, wait=False)
    changed = task(client, **PREVIEW, protected=True, wait=False)
    assert (changed["changed"], changed["branch"]["protected"]) == (True, True)


def test_before_a_task_waits_a_failure_ends_it_after_api_retries(
    sandbox: Sandbox, client: Client, clock: FakeClock
) -> None:
    sandbox.fault("status", status=503, times=None, path=f"/projects/{SHOP}/branches")
    assert failing(client, module="branch", name="dev")["status"] == 503
    assert clock.elapsed < 60


def test_a_lost_creation_that_the_last_look_shows_failed_names_its_operation(sandbox: Sandbox, client: Client) -> None:
    sandbox.fault("list_lag", seconds=29.9)
    sandbox.fault("lost_answer", method="POST")
    sandbox.plan((0, "running"), (5, "failed"), action="create_branch")
    assert failing(client, **PREVIEW)["kind"] == "wait_failed"
