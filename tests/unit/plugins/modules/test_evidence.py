# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What shows that an action was carried out whose response was lost, and what does not."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import product
from threading import Barrier
from typing import Any
from unittest import mock

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import ClouddbError
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.module_utils._operations import waiting
from ansible_collections.clouddb.control.tests.unit.support.each_module import sampled
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import FakeClock
from ansible_collections.clouddb.control.tests.unit.support.resource_task import SHOP, failing, task, writes
from ansible_collections.clouddb.control.tests.unit.support.resource_task import api_request_task as api_request
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox

PROJECT = f"/projects/{SHOP}"
OfSixHosts = Callable[..., list[dict[str, Any]]]
ACTIONS: dict[str, dict[str, Any]] = {
    "reset_password": {"module": "database_user", "branch": "dev", "name": "app", "update_password": "always"},
    "restore": {"module": "branch_restore", "name": "dev", "preserve_as": "dev-before", "timestamp": "1s"},
    "restart": {"module": "compute", "branch": "dev", "state": "restarted"},
    "suspend": {"module": "compute", "branch": "dev", "state": "suspended"},
}


@pytest.fixture(autouse=True)
def dev(sandbox: Sandbox) -> str:
    """The id of a branch with a compute and a user."""
    branch: str = sandbox.api("POST", f"{PROJECT}/branches", {"branch": {"name": "dev"}})["branch"]["id"]
    sandbox.advance(5)
    sandbox.api("POST", f"{PROJECT}/branches/{branch}/roles", {"role": {"name": "app"}})
    sandbox.advance(5)
    return branch


@pytest.mark.parametrize("path", ACTIONS)
@pytest.mark.parametrize("wait", [True, False])
def test_the_operations_of_others_do_not(sandbox: Sandbox, client: Client, dev: str, path: str, wait: bool) -> None:
    """Even of the same branch: https://github.com/cyrilgdn/terraform-provider-postgresql/issues/557"""
    if path == "restart":
        database = {"database": {"name": "x", "owner_name": "app"}}
        sandbox.api("POST", f"{PROJECT}/branches/{dev}/databases", database)
    else:
        computes = sandbox.api("GET", f"{PROJECT}/endpoints")["endpoints"]
        [compute] = [each["id"] for each in computes if each["branch_id"] == dev]
        sandbox.api("POST", f"{PROJECT}/endpoints/{compute}/{'restart' if path == 'suspend' else 'suspend'}")
    sandbox.fault("status", status=502, method="POST", path=f"*/{path}")
    failure = failing(client, **ACTIONS[path], wait=wait)
    assert (failure["kind"], failure["status"]) == ("unknown_outcome", 502)


@pytest.mark.parametrize(("path", "wait", "late"), sampled(*product(ACTIONS, (True, False), (True, False)), stride=3))
def test_the_resource_does(sandbox: Sandbox, client: Client, path: str, wait: bool, late: bool) -> None:
    if late:
        sandbox.fault("late_operations", seconds=90)
    sandbox.fault("lost_answer", method="POST", path=f"*/{path}")
    result = task(client, **ACTIONS[path], wait=wait)
    assert (result["changed"], len([line for line in writes(sandbox) if line.endswith(path)])) == (True, 1)
    assert "was lost" in result["warnings"][0]


def test_an_error_after_a_write_says_that_something_has_changed(sandbox: Sandbox, client: Client) -> None:
    sandbox.fault("status", status=401, method="GET", path="*/roles", skip=1, times=None)
    with pytest.raises(ClouddbError) as error:
        task(client, "database_user", branch="dev", name="new")
    assert error.value.as_result()["changed"] is True


def test_a_deletion_is_not_repeated_for_a_list_that_became_incomplete(sandbox: Sandbox, client: Client) -> None:
    other = sandbox.api("POST", "/projects", {"project": {"name": "other"}})["project"]["id"]
    sandbox.advance(60)
    sandbox.fault("unavailable_projects", ids=[other], times=None)
    assert failing(client, module="project", name="shop", state="absent")["kind"] == "incomplete_list"
    assert failing(client, module="project", name="other", state="absent")["kind"] == "incomplete_list"
    assert failing(client, module="branch", name="x")["kind"] == "incomplete_list"
    before = len(writes(sandbox))
    assert task(client, "project", name=None, id=SHOP, state="absent")["changed"] is True
    assert writes(sandbox)[before:] == [f"DELETE {PROJECT}"]


@pytest.mark.parametrize("check_mode", [True, False])
@pytest.mark.parametrize(
    "module, options",
    [
        ("branch", {"name": "new"}),
        ("branch", {"name": None, "name_pattern": "pr-*", "state": "absent"}),
        ("compute", {"branch": "dev", "max_cu": 4}),
        ("database", {"branch": "dev", "name": "orders", "owner": "app"}),
        ("database_user", {"branch": "dev", "name": "other"}),
        ("branch_restore", {"name": "dev"}),
    ],
)
def test_look_ups_count_for_the_timeout(
    sandbox: Sandbox, client: Client, clock: FakeClock, module: str, options: Any, check_mode: bool
) -> None:
    sandbox.fault("status", status=429, retry_after=60, method="GET", times=None)
    with mock.patch.object(waiting, "LAST_POLL_SECONDS", 1.0), pytest.raises(ClouddbError):
        task(client, module, check_mode, **options, timeout=10)
    assert (clock.elapsed <= 12, writes(sandbox)) == (True, [])


def test_what_is_not_ready_is_waited_for(sandbox: Sandbox, client: Client) -> None:
    """As the service's own test client does: the request was not carried out."""
    answer = {"message": "branch not ready yet", "code": ""}
    fault = {"status": 422, "body": answer, "method": "POST", "path": "*/databases"}
    sandbox.fault("status", **fault, times=3)
    assert task(client, "database", branch="dev", name="orders", owner="app")["changed"] is True
    sandbox.fault("status", **fault, times=None)
    failure = failing(client, module="database", branch="dev", name="later", owner="app", timeout=10)
    assert failure["kind"] == "locked"


def test_a_user_with_a_changed_name_is_an_error_at_once(sandbox: Sandbox, client: Client, clock: FakeClock) -> None:
    """As in https://github.com/vercel/terraform-provider-vercel/issues/76"""
    sandbox.fault("normalized_name", lower_case=True, path="*/roles")
    failure = failing(client, module="database_user", branch="dev", name="AppUser")
    assert (failure["kind"], clock.elapsed < 5) == ("no_match", True)


@pytest.mark.parametrize(
    "value, check_mode",
    [
        *product(({}, [], {"a": {}}, {"a": []}, [{}]), (False, True)),
        *((each, False) for each in (None, " ", [None], {"a": ""})),
    ],
)
def test_what_is_empty_selects_nothing(sandbox: Sandbox, client: Client, value: Any, check_mode: bool) -> None:
    find = {"list": "projects", "match": {"settings": value}}
    with pytest.raises(ClouddbError) as error:
        api_request(client, "DELETE", check_mode=check_mode, path="projects/{id}", find=find)
    assert (error.value.kind, writes(sandbox)[2:]) == ("invalid_option", [])


@pytest.fixture
def of_six_hosts(client: Client, clock: FakeClock) -> OfSixHosts:
    """Runs a task on six hosts at once, and returns the results."""
    barrier = Barrier(6)

    def run(module: str, **options: Any) -> list[dict[str, Any]]:
        def run_on_host(_number: int) -> dict[str, Any]:
            barrier.wait(10)
            return task(Client(client.connection, clock.clock), module, **options)

        with ThreadPoolExecutor(6) as pool:
            return [*pool.map(run_on_host, range(6))]

    return run


def test_one_deletion_of_many_is_a_change(of_six_hosts: OfSixHosts) -> None:
    """Each of these hosts has seen the branch, and sends its deletion."""
    assert sum(each["changed"] for each in of_six_hosts("branch", name="dev", state="absent")) == 1


@pytest.mark.parametrize("wait", [True, False])
def test_a_deletion_whose_first_response_is_lost_is_a_change(sandbox: Sandbox, client: Client, wait: bool) -> None:
    """The second one finds nothing more to delete, and says so."""
    sandbox.fault("lost_answer", method="DELETE", path="*/branches/*")
    assert task(client, "branch", name="dev", state="absent", wait=wait)["changed"] is True
    assert [line.split()[0] for line in writes(sandbox)][-2:] == ["DELETE"] * 2


@pytest.mark.parametrize("lags", [False, True])
def test_a_deletion_whose_repetition_finds_the_project_locked_returns_its_operations(
    sandbox: Sandbox, client: Client, dev: str, lags: bool
) -> None:
    """With C(lags), it is sent again, because the branch still seems to be there."""
    branch = sandbox.api("GET", f"{PROJECT}/branches/{dev}")
    sandbox.fault("lost_answer", method="DELETE", path="*/branches/*")
    sandbox.fault("status", status=423, method="DELETE", path="*/branches/*")
    if lags:
        sandbox.fault("status", status=200, method="GET", path=f"*/branches/{dev}", body=branch)
    result = task(client, "branch", name="dev", state="absent")
    assert (result["changed"], [each["action"] for each in result["operations"]]) == (True, ["suspend_compute"])
    assert len([line for line in writes(sandbox) if line.startswith("DELETE")]) == (3 if lags else 2)


def test_a_name_that_a_deletion_still_takes_is_in_use(sandbox: Sandbox, client: Client, dev: str) -> None:
    """The list shows it only after the creation was refused."""
    sandbox.fault("lingering_deletion", seconds=600)
    sandbox.fault("status", status=200, method="GET", path="*/branches", body={"branches": []}, times=2)
    sandbox.api("DELETE", f"{PROJECT}/branches/{dev}")
    sandbox.fault("status", status=409, method="POST", path="*/branches")
    with pytest.raises(ClouddbError, match=f"^{dev} is still being deleted after 20 s") as error:
        task(client, "branch", name="dev", timeout=20)
    assert error.value.kind == "wait_failed"


def test_the_response_to_a_creation_may_be_that_of_a_gateway(sandbox: Sandbox, client: Client) -> None:
    sandbox.fault("rewrite", set={"branch.id": "br-gateway"}, method="POST", path="*/branches")
    created = task(client, "branch", name="new")["branch"]
    assert created["id"] in [each["id"] for each in sandbox.api("GET", f"{PROJECT}/branches")["branches"]]


def test_a_path_without_get_does_not_show_that_a_resource_is_gone(sandbox: Sandbox, client: Client) -> None:
    """Of the paths of api_request, it is not known which have one: their list decides."""
    sandbox.fault("status", status=404, method="GET", path="*/branches/br-*", times=None)
    path, find = f"{PROJECT}/branches/{{id}}", {"list": "branches", "match": {"name": "dev"}}
    assert api_request(client, "DELETE", path=path, find=find)["changed"] is True
    assert sandbox.sent()[-1] == f"GET {PROJECT}/branches"


def test_of_projects_that_hosts_create_at_once_one_stays(sandbox: Sandbox, of_six_hosts: OfSixHosts) -> None:
    results = of_six_hosts("project", name="dup")
    sandbox.advance(60)
    [created] = [each["id"] for each in sandbox.api("GET", "/projects")["projects"] if each["name"] == "dup"]
    assert {each["project"]["id"] for each in results} == {created}
    assert sum(each["changed"] for each in results) == 1


def test_an_observation_that_failed_decides_nothing(sandbox: Sandbox, client: Client) -> None:
    """After a locked project, the list fails for a while: somebody else may have created the branch meanwhile."""
    sandbox.fault("status", status=423, method="POST", path="*/branches")
    sandbox.fault("status", status=503, method="GET", path="*/branches", skip=1, times=7)
    before = len(sandbox.sent())
    assert task(client, "branch", name="new")["changed"] is True
    lines = sandbox.sent()[before:]
    first, second = (index for index, line in enumerate(lines) if line.startswith("POST"))
    assert lines[first:second].count(f"GET {PROJECT}/branches") > 7


@pytest.mark.parametrize("days", [-30, 30])
def test_the_clock_of_the_service_counts(sandbox: Sandbox, client: Client, clock: FakeClock, days: int) -> None:
    """A lost response has no Date: that of an earlier request counts, and not the clock of the controller."""
    wrong = clock.clock._replace(utcnow=lambda: clock.clock.utcnow() + timedelta(days=days))
    sandbox.fault("lost_answer", method="POST", path="*/restart")
    assert task(Client(client.connection, wrong), **ACTIONS["restart"])["changed"] is True


def test_a_success_needs_no_evidence(sandbox: Sandbox, client: Client) -> None:
    """A service need not have the field that shows an action. What the response says of the wait is not in the result."""
    compute = task(client, "compute", branch="dev")["compute"]
    body = {"endpoint": {**compute, "pending_state": "active"}, "operations": []}
    sandbox.fault("status", status=200, method="POST", path="*/restart", body=body)
    result = task(client, **ACTIONS["restart"])
    assert (result["changed"], result["compute"]) == (True, compute)


def test_the_time_of_an_earlier_action_is_no_evidence(sandbox: Sandbox, client: Client) -> None:
    """Even if it is of the second in which the request was sent."""
    task(client, "branch_restore", name="dev", wait=False)
    sandbox.fault("status", status=502, method="POST", path="*/restore")
    assert failing(client, module="branch_restore", name="dev", wait=False)["kind"] == "unknown_outcome"


def test_an_earlier_time_that_a_list_shows_late_is_no_evidence(sandbox: Sandbox, client: Client) -> None:
    compute = task(client, **ACTIONS["restart"])["compute"]
    sandbox.advance(60)
    lagging = {"endpoints": [{**compute, "started_at": None}]}
    sandbox.fault("status", status=200, method="GET", path="*/endpoints", body=lagging)
    sandbox.fault("status", status=502, method="POST", path="*/restart")
    assert failing(client, **ACTIONS["restart"])["kind"] == "unknown_outcome"


OF_DEFAULT_BRANCH: list[dict[str, Any]] = [
    {"module": "compute"},
    {"module": "database", "name": "clouddb", "owner": "clouddb_owner"},
    {"module": "database_user", "name": "clouddb_owner"},
]


@pytest.mark.parametrize("state", ["present", "absent"])
@pytest.mark.parametrize("options", OF_DEFAULT_BRANCH)
def test_without_a_default_branch_nothing_is_absent(sandbox: Sandbox, client: Client, options: Any, state: str) -> None:
    branches = [{**each, "default": False} for each in sandbox.api("GET", f"{PROJECT}/branches")["branches"]]
    sandbox.fault("status", status=200, method="GET", path="*/branches", body={"branches": branches}, times=None)
    failure = failing(client, state=state, **options)
    assert (failure["kind"], failure["option"]) == ("not_found", "branch")
