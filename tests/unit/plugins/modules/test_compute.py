# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""compute, against a sandbox."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import ClouddbError
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
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


def test_without_waiting_the_diff_has_what_operations_are_still_to_set(sandbox: Sandbox, client: Client) -> None:
    compute = task(client, **DEV)["compute"]
    running = {"id": "op-1", "project_id": SHOP, "action": "apply_config", "status": "running"}
    body = {"endpoint": compute, "operations": [running]}
    sandbox.fault("status", status=200, method="PATCH", path="*/endpoints/*", body=body)
    result = task(client, **DEV, max_cu=4.0, wait=False)
    assert (result["changed"], result["warnings"]) == (True, [])
    assert result["diff"]["after"] == {"autoscaling_limit_max_cu": 4}


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
