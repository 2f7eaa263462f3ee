# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""compute, against a sandbox."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import ClouddbError
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.module_utils._options import NOT_CREATED_ID
from ansible_collections.clouddb.control.tests.unit.support.resource_task import SHOP, failing, task, writes
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox

Options = dict[str, Any]
BRANCHES, COMPUTES = f"/projects/{SHOP}/branches", f"/projects/{SHOP}/endpoints"
DEV = {"module": "compute", "branch": "dev"}
REPLICA = {**DEV, "type": "read_only"}


@pytest.fixture(autouse=True)
def dev(sandbox: Sandbox) -> str:
    """The id of a branch without a compute, of a project whose default branch has one."""
    created = sandbox.api("POST", BRANCHES, {"branch": {"name": "dev"}, "endpoints": []})
    sandbox.advance(60)
    return str(created["branch"]["id"])


def computes(sandbox: Sandbox, branch_id: str) -> list[dict[str, Any]]:
    return [each for each in sandbox.api("GET", COMPUTES)["endpoints"] if each["branch_id"] == branch_id]


@pytest.mark.parametrize("resource", [DEV, REPLICA])
def test_present_creates_and_absent_deletes_once(sandbox: Sandbox, client: Client, dev: str, resource: Options) -> None:
    sized = {**resource, "min_cu": 0.5, "max_cu": 2.0, "suspend_timeout": "5m"}
    planned = task(client, check_mode=True, **sized)
    assert (planned["changed"], planned["compute"]["id"], writes(sandbox)) == (True, None, [])
    created = task(client, **sized)
    [compute] = computes(sandbox, dev)
    assert (created["changed"], created["compute"]) == (True, compute)
    wanted = {"branch_id": dev, "type": resource.get("type", "read_write"), "current_state": "active"}
    sizes = {"autoscaling_limit_min_cu": 0.5, "autoscaling_limit_max_cu": 2, "suspend_timeout_seconds": 300}
    assert {**wanted, **sizes}.items() <= compute.items()
    assert created.keys() == planned.keys()
    assert task(client, **sized)["changed"] is False
    assert (writes(sandbox), computes(sandbox, dev)) == ([f"POST {COMPUTES}"], [compute])
    for check_mode in (True, False):
        assert task(client, check_mode=check_mode, **resource, state="absent")["changed"] is True
    assert computes(sandbox, dev) == []
    assert task(client, **resource, state="absent")["changed"] is False
    assert len(writes(sandbox)) == 2


@pytest.mark.parametrize(
    ("option", "value", "field", "stored"),
    [
        ("min_cu", 1.0, "autoscaling_limit_min_cu", 1),
        ("max_cu", 8.0, "autoscaling_limit_max_cu", 8),
        ("suspend_timeout", "1h", "suspend_timeout_seconds", 3600),
        # As in https://github.com/kislerdm/terraform-provider-neon/pull/220, which lost the -1
        ("suspend_timeout", -1, "suspend_timeout_seconds", -1),
        ("suspend_timeout", "-1", "suspend_timeout_seconds", -1),
        ("suspend_timeout", 0, "suspend_timeout_seconds", 0),
    ],
)
def test_a_new_value_is_set(sandbox: Sandbox, client: Client, option: str, value: Any, field: str, stored: Any) -> None:
    before = {**DEV, "max_cu": 4.0, "suspend_timeout": 300}
    compute = task(client, **before)["compute"]
    wanted = {**before, option: value}
    planned, changed = (task(client, check_mode=check_mode, **wanted) for check_mode in (True, False))
    assert planned["diff"]["after"] == {field: stored}
    assert (changed["changed"], changed["compute"]["id"], changed["compute"][field]) == (True, compute["id"], stored)
    assert task(client, **wanted)["changed"] is False
    assert writes(sandbox) == [f"POST {COMPUTES}", f"PATCH {COMPUTES}/{compute['id']}"]


@pytest.mark.parametrize(
    "option, value",
    [
        *((name, 1) for name in ("min_cu", "max_cu", "suspend_timeout")),
        ("name", "x"),
        ("pg_settings", {}),
        ("disabled", False),
    ],
)
def test_settings_are_for_the_state_present(sandbox: Sandbox, client: Client, option: str, value: Any) -> None:
    for state in ("started", "suspended", "restarted", "absent"):
        message = f"{option}: requires state: present. To change it and set state: {state}"
        with pytest.raises(ClouddbError, match=message):
            task(client, **{**DEV, "state": state, option: value})
    assert sandbox.sent() == []


def test_states_are_reached_once_and_a_restart_each_time(sandbox: Sandbox, client: Client) -> None:
    compute = task(client, **DEV)["compute"]
    path = f"POST {COMPUTES}/{compute['id']}"
    for state, current in (("suspended", "idle"), ("started", "active")):
        planned, reached = (task(client, check_mode=check_mode, **DEV, state=state) for check_mode in (True, False))
        assert (planned["changed"], planned["compute"]["current_state"]) == (True, current)
        assert (reached["changed"], reached["compute"]["current_state"]) == (True, current)
        assert {each["status"] for each in reached["operations"]} == {"finished"}
        assert task(client, **DEV, state=state)["changed"] is False
    for check_mode in (True, False, False):
        assert task(client, check_mode=check_mode, **DEV, state="restarted")["changed"] is True
    actions = ("suspend", "start", "restart", "restart")
    assert writes(sandbox)[1:] == [f"{path}/{action}" for action in actions]


def test_without_waiting_the_diff_has_what_operations_are_still_to_set(sandbox: Sandbox, client: Client) -> None:
    compute = task(client, **DEV)["compute"]
    running = {"id": "op-1", "project_id": SHOP, "action": "apply_config", "status": "running"}
    body = {"endpoint": compute, "operations": [running]}
    sandbox.fault("status", status=200, method="PATCH", path="*/endpoints/*", body=body)
    result = task(client, **DEV, max_cu=4.0, wait=False)
    assert (result["changed"], result["warnings"]) == (True, [])
    assert result["diff"]["after"] == {"autoscaling_limit_max_cu": 4}


def test_present_does_not_start_a_compute_that_is_suspended(client: Client) -> None:
    task(client, **DEV)
    task(client, **DEV, state="suspended")
    again = task(client, **DEV)
    assert (again["changed"], again["compute"]["current_state"]) == (False, "idle")
    resized = task(client, **DEV, max_cu=2.0)
    assert (resized["changed"], resized["compute"]["current_state"]) == (True, "idle")


def test_a_missing_compute_is_an_error_except_in_check_mode(sandbox: Sandbox, client: Client, dev: str) -> None:
    for state in ("started", "suspended", "restarted"):
        message = "^branch: dev has no compute of type read_write. Create it with state: present.$"
        with pytest.raises(ClouddbError, match=message) as error:
            task(client, **DEV, state=state)
        assert error.value.kind == "not_found"
        planned = task(client, check_mode=True, **DEV, state=state)
        assert (planned["changed"], len(planned["warnings"])) == (True, 1)
    assert writes(sandbox) == []


def test_a_compute_is_selected_by_its_id(sandbox: Sandbox, client: Client, dev: str) -> None:
    replicas = [task(client, **REPLICA)["compute"]["id"]]
    replicas += [sandbox.api("POST", COMPUTES, {"endpoint": {"branch_id": dev, "type": "read_only"}})["endpoint"]["id"]]
    sandbox.advance(60)
    assert failing(client, **REPLICA)["kind"] == "ambiguous_match"
    by_id = {"module": "compute", "id": replicas[1]}
    assert [task(client, **by_id, max_cu=2.0)["changed"] for _run in range(2)] == [True, False]
    assert [task(client, **by_id, state="suspended")["changed"] for _run in range(2)] == [True, False]
    assert [task(client, **by_id, state="absent")["changed"] for _run in range(2)] == [True, False]
    assert [each["id"] for each in computes(sandbox, dev)] == replicas[:1]
    failure = failing(client, module="compute", id="ep-gone-12345678")
    assert failure == {"kind": "not_found", "option": "id"}


def test_without_a_branch_it_is_that_of_the_default_branch(sandbox: Sandbox, client: Client, dev: str) -> None:
    result = task(client, "compute")
    assert (result["changed"], writes(sandbox)) == (False, [])
    assert result["compute"]["branch_id"] != dev


@pytest.mark.parametrize(
    "options", [{"project": NOT_CREATED_ID}, {"branch": NOT_CREATED_ID}, {"branch": "later"}, {"id": NOT_CREATED_ID}]
)
def test_what_an_earlier_task_would_create(client: Client, options: Options) -> None:
    for state in ("present", "started", "suspended", "restarted"):
        planned = task(client, check_mode=True, **{**DEV, **options, "state": state})
        # A name that is not there is a warning, because it may be misspelled.
        assert (planned["changed"], len(planned["warnings"])) == (True, int("later" in options.values()))
        assert planned["compute"]["id"] is None
        assert NOT_CREATED_ID not in str(planned)


def test_an_action_whose_response_is_lost_is_not_sent_again(sandbox: Sandbox, client: Client) -> None:
    task(client, **DEV)
    task(client, **DEV, state="suspended")
    sandbox.fault("lost_answer", method="POST", path="*/restart")
    result = task(client, **DEV, state="restarted")
    assert (result["changed"], result["compute"]["current_state"], len(writes(sandbox))) == (True, "active", 3)


def test_a_task_that_waits_twice_returns_the_operations_of_both(sandbox: Sandbox, client: Client, dev: str) -> None:
    body = {"endpoint": {"branch_id": dev, "type": "read_only"}}
    started = sandbox.api("POST", COMPUTES, body)["operations"]
    changed = task(client, **REPLICA, max_cu=4)
    ids = {each["id"] for each in changed["operations"]}
    assert (changed["changed"], ids > {each["id"] for each in started}) == (True, True)
