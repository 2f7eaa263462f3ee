# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What shows that an action was carried out whose response was lost, and what does not."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import ClouddbError
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.tests.unit.support.resource_task import SHOP, failing, task, writes
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox

PROJECT = f"/projects/{SHOP}"
ACTIONS: dict[str, dict[str, Any]] = {
    "reset_password": {"module": "database_user", "branch": "dev", "name": "app", "update_password": "always"},
    "restore": {"module": "branch_restore", "name": "dev", "preserve_as": "dev-before", "timestamp": "1s"},
    "restart": {"module": "compute", "branch": "dev", "state": "restarted"},
    "suspend": {"module": "compute", "branch": "dev", "state": "suspended"},
}


@pytest.fixture(autouse=True)
def dev(sandbox: Sandbox, client: Client) -> str:
    """The id of a branch with a compute and a user."""
    branch = task(client, "branch", name="dev")["branch"]["id"]
    task(client, "database_user", branch="dev", name="app")
    sandbox.advance(5)
    return str(branch)


def work_of_others(sandbox: Sandbox, branch_id: str, path: str) -> None:
    """Operations about the same branch that the task has not started."""
    if path == "restart":
        sandbox.api(
            "POST", f"{PROJECT}/branches/{branch_id}/databases", {"database": {"name": "x", "owner_name": "app"}}
        )
    else:
        computes = sandbox.api("GET", f"{PROJECT}/endpoints")["endpoints"]
        [compute] = [each["id"] for each in computes if each["branch_id"] == branch_id]
        sandbox.api("POST", f"{PROJECT}/endpoints/{compute}/{'restart' if path == 'suspend' else 'suspend'}")


@pytest.mark.parametrize("path", ACTIONS)
@pytest.mark.parametrize("wait", [True, False])
def test_the_operations_of_others_do_not(sandbox: Sandbox, client: Client, dev: str, path: str, wait: bool) -> None:
    """As in https://github.com/cyrilgdn/terraform-provider-postgresql/issues/557"""
    work_of_others(sandbox, dev, path)
    sandbox.fault("status", status=502, method="POST", path=f"*/{path}")
    failure = failing(client, **ACTIONS[path], wait=wait)
    assert (failure["kind"], failure["status"]) == ("unknown_outcome", 502)


@pytest.mark.parametrize("path", ACTIONS)
@pytest.mark.parametrize("wait", [True, False])
@pytest.mark.parametrize("late", [True, False])
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
    sandbox.api("POST", "/projects", {"project": {"name": "other"}})
    sandbox.advance(60)
    other = next(each["id"] for each in sandbox.api("GET", "/projects")["projects"] if each["name"] == "other")
    sandbox.fault("unavailable_projects", ids=[other], times=None)
    assert failing(client, module="project", name="shop", state="absent")["kind"] == "incomplete_list"
    assert failing(client, module="project", name="other", state="absent")["kind"] == "incomplete_list"
    assert failing(client, module="branch", name="x")["kind"] == "incomplete_list"
    before = len(writes(sandbox))
    assert task(client, "project", name=None, id=SHOP, state="absent")["changed"] is True
    assert writes(sandbox)[before:] == [f"DELETE {PROJECT}"]
