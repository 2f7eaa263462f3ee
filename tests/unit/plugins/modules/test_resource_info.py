# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""branch_info, compute_info, database_info and database_user_info, against a sandbox."""

from __future__ import annotations

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import ClouddbError
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.module_utils._options import NOT_CREATED_ID
from ansible_collections.clouddb.control.tests.unit.support.resource_task import SHOP, failing, task
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox

# The list in the result, and the path below a branch and the list of the service.
LISTS = {
    "branch_info": ("branches", "", "branches"),
    "compute_info": ("computes", "/{}/endpoints", "endpoints"),
    "database_info": ("databases", "/{}/databases", "databases"),
    "database_user_info": ("database_users", "/{}/roles", "roles"),
}
each_module = pytest.mark.parametrize("module", LISTS)


@pytest.fixture(autouse=True)
def dev(sandbox: Sandbox) -> str:
    """The id of a branch with a database and a user of its own."""
    path = f"/projects/{SHOP}/branches"
    branch_id = str(sandbox.api("POST", path, {"branch": {"name": "dev"}})["branch"]["id"])
    for field, body in (("roles", {"name": "app"}), ("databases", {"name": "orders", "owner_name": "app"})):
        sandbox.advance(60)
        sandbox.api("POST", f"{path}/{branch_id}/{field}", {field[:-1]: body})
    sandbox.advance(60)
    return branch_id


@each_module
def test_the_list_is_as_the_service_sends_it(sandbox: Sandbox, client: Client, dev: str, module: str) -> None:
    name, path, field = LISTS[module]
    listed = sandbox.api("GET", f"/projects/{SHOP}/branches{path.format(dev)}")[field]
    for check_mode, branch in ((False, "dev"), (True, dev)):
        options = {"branch": branch} if name != "branches" else {}
        assert task(client, module, check_mode, **options) == {"changed": False, name: listed, "warnings": []}
    assert len(listed) == {"computes": 1}.get(name, 2)


def test_without_a_branch_it_is_the_default_branch(client: Client) -> None:
    assert [each["name"] for each in task(client, "database_info")["databases"]] == ["clouddb"]


def test_computes_without_a_branch_are_those_of_the_project(sandbox: Sandbox, client: Client) -> None:
    computes = task(client, "compute_info")["computes"]
    assert computes == sandbox.api("GET", f"/projects/{SHOP}/endpoints")["endpoints"]
    assert len(computes) == 2


@each_module
def test_secrets_are_not_in_results(sandbox: Sandbox, client: Client, module: str) -> None:
    secret = "npg_0123456789abcdef"
    fields = {"id": "a", "name": "a", "default": True, "branch_id": "a", "password": secret}
    body = {name: [fields] for name in ("branches", "endpoints", "databases", "roles")}
    sandbox.fault("status", status=200, method="GET", path=f"/projects/{SHOP}/*", body=body, times=None)
    [item] = task(client, module)[LISTS[module][0]]
    assert item == {**fields, "password": "********"}


@each_module
def test_a_project_that_does_not_exist_is_an_error_except_in_check_mode(client: Client, module: str) -> None:
    name = LISTS[module][0]
    with pytest.raises(ClouddbError, match="project: there is no project 'shopp'. Did you mean shop?"):
        task(client, module, project="shopp")
    planned = task(client, module, True, project="shopp")
    assert (planned["changed"], planned[name], len(planned["warnings"])) == (False, [], 1)
    assert task(client, module, True, project=NOT_CREATED_ID) == {"changed": False, name: [], "warnings": []}


@pytest.mark.parametrize("module", [*LISTS][1:])
def test_a_branch_that_does_not_exist_is_an_error_except_in_check_mode(client: Client, module: str) -> None:
    with pytest.raises(ClouddbError, match="branch: there is no branch 'dve'. Did you mean dev?"):
        task(client, module, branch="dve")
    for branch in ("dve", NOT_CREATED_ID):
        assert task(client, module, True, branch=branch)[LISTS[module][0]] == []


def test_a_name_that_looks_like_an_id(sandbox: Sandbox, client: Client) -> None:
    options = {"module": "database_info", "project": "calm-lake-12345678"}
    assert failing(client, **options) == {"kind": "not_found", "option": "project"}
    sandbox.api("POST", "/projects", {"project": {"name": options["project"], "branch": {"database_name": "own"}}})
    assert [each["name"] for each in task(client, **options)["databases"]] == ["own"]
