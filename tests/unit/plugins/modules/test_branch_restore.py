# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""branch_restore, and what a new branch starts with, against a sandbox."""

from __future__ import annotations

import re
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import ClouddbError
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.tests.unit.support.resource_task import SHOP, failing, task, writes
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox

BRANCHES = f"/projects/{SHOP}/branches"
DEV = {"module": "branch_restore", "name": "dev"}
EARLIER = {"timestamp": "1m", "preserve_as": "dev-before"}


@pytest.fixture
def seed() -> dict[str, Any]:
    return {"projects": [{"id": SHOP, "name": "shop", "age": "1d"}]}


@pytest.fixture(autouse=True)
def dev(sandbox: Sandbox) -> str:
    """The id of a branch of main with a compute, two minutes old, and a database of its own that is newer."""
    branch_id = str(sandbox.api("POST", BRANCHES, {"branch": {"name": "dev"}})["branch"]["id"])
    sandbox.advance(120)
    database = {"database": {"name": "new", "owner_name": "clouddb_owner"}}
    sandbox.api("POST", f"{BRANCHES}/{branch_id}/databases", database)
    sandbox.advance(30)
    return branch_id


def databases(sandbox: Sandbox, branch_id: str) -> list[str]:
    return [each["name"] for each in sandbox.api("GET", f"{BRANCHES}/{branch_id}/databases")["databases"]]


def named(sandbox: Sandbox, name: str) -> dict[str, Any]:
    [branch] = [each for each in sandbox.api("GET", BRANCHES)["branches"] if each["name"] == name]
    return dict(branch)


def connection_uri(sandbox: Sandbox, branch_id: str) -> str:
    query = f"branch_id={branch_id}&database_name=clouddb&role_name=clouddb_owner"
    return str(sandbox.api("GET", f"/projects/{SHOP}/connection_uri?{query}")["uri"])


def test_each_run_resets_the_branch_to_its_parent(sandbox: Sandbox, client: Client, dev: str) -> None:
    """As in https://github.com/neondatabase/mcp-server-neon/issues/113: the connection string stays."""
    before = connection_uri(sandbox, dev)
    planned = task(client, check_mode=True, **DEV)
    assert (planned["changed"], planned["branch"]["id"], writes(sandbox)) == (True, dev, [])
    restored = task(client, **DEV)
    assert (restored["changed"], restored["branch"]["id"], restored.keys()) == (True, dev, planned.keys())
    assert {each["status"] for each in restored["operations"]} == {"finished"}
    assert (databases(sandbox, dev), connection_uri(sandbox, dev)) == (["clouddb"], before)
    again = task(client, **{**DEV, "name": dev})
    assert (again["changed"], again["branch"]["parent_id"]) == (True, named(sandbox, "main")["id"])
    assert writes(sandbox) == [f"POST {BRANCHES}/{dev}/restore"] * 2


@pytest.mark.parametrize("source", [None, "dev"])
def test_an_earlier_time_is_one_of_its_own(sandbox: Sandbox, client: Client, dev: str, source: str | None) -> None:
    result = task(client, **DEV, **EARLIER, source=source)
    assert (result["changed"], databases(sandbox, dev)) == (True, ["clouddb"])
    assert databases(sandbox, named(sandbox, "dev-before")["id"]) == ["clouddb", "new"]
    assert result["branch"]["parent_id"] == named(sandbox, "dev-before")["id"]


def test_a_name_in_braces_is_a_name(sandbox: Sandbox, client: Client, dev: str) -> None:
    task(client, **DEV, preserve_as="{parent_id}")
    assert named(sandbox, "{parent_id}")["id"] != dev


def test_a_root_branch_has_no_parent_to_be_reset_to(sandbox: Sandbox, client: Client) -> None:
    """As in https://github.com/neondatabase/website/pull/2991"""
    message = (
        "source: branch main has no parent to restore it from. Set source to another branch, or set timestamp or lsn and"
        " preserve_as to restore it from its own history."
    )
    for check_mode in (True, False):
        with pytest.raises(ClouddbError, match=f"^{re.escape(message)}$") as error:
            task(client, check_mode=check_mode, module="branch_restore", name="main")
        assert error.value.as_result()["failure"] == {"kind": "invalid_option", "option": "source"}
    assert writes(sandbox) == []


def test_a_root_branch_is_restored_to_an_earlier_time(sandbox: Sandbox, client: Client) -> None:
    assert task(client, **{**DEV, **EARLIER, "name": "main"})["changed"] is True
    assert named(sandbox, "main").get("parent_id") is None


def test_the_present_data_of_a_branch_with_children_is_preserved(client: Client) -> None:
    message = "preserve_as: is required, because other branches were created from this one: dev."
    options = {**DEV, "name": "main", "source": "dev"}
    with pytest.raises(ClouddbError, match=f"^{message}$") as error:
        task(client, **options)
    assert error.value.as_result()["failure"].items() >= {"kind": "invalid_option", "option": "preserve_as"}.items()
    # An earlier task may delete the children.
    assert message in task(client, check_mode=True, **options)["warnings"][0]


def test_a_restore_whose_response_is_lost_is_not_sent_again(sandbox: Sandbox, client: Client, dev: str) -> None:
    sandbox.fault("lost_answer", method="POST", path="*/restore")
    result = task(client, **DEV)
    assert (result["changed"], len(writes(sandbox))) == (True, 1)
    assert databases(sandbox, dev) == ["clouddb"]


def test_unfinished_operations_do_not_replace_a_restore(sandbox: Sandbox, client: Client, dev: str) -> None:
    for wait in (True, False):
        sandbox.plan((0, "running"), (20, "finished"), action="apply_config")
        database = {"database": {"name": f"later-{wait}".lower(), "owner_name": "clouddb_owner"}}
        sandbox.api("POST", f"{BRANCHES}/{dev}/databases", database)
        assert task(client, **DEV, wait=wait)["changed"] is True
        sandbox.advance(120)
    carried_out = [each for each in sandbox.requests() if each["path"].endswith("/restore") and each["status"] == 200]
    assert len(carried_out) == 2


class TestNewBranch:
    """What the options of a new branch make of it"""

    @pytest.mark.parametrize("compute", [True, False])
    @pytest.mark.parametrize("schema_only", [True, False])
    def test_a_compute_is_optional(self, sandbox: Sandbox, client: Client, compute: bool, schema_only: bool) -> None:
        new = {"module": "branch", "name": "new", "compute": compute, "schema_only": schema_only, "default": True}
        results = [task(client, **new) for _run in range(2)]
        assert [each["changed"] for each in results] == [True, False]
        listed = sandbox.api("GET", f"{BRANCHES}/{results[0]['branch']['id']}/endpoints")["endpoints"]
        assert [each["type"] for each in listed] == ["read_write"] * compute
        actions = [each["action"] for each in results[0]["operations"]]
        assert actions == ["create_branch", *["start_compute"] * compute]

    def test_it_starts_with_the_data_of_an_earlier_time(self, sandbox: Sandbox, client: Client) -> None:
        new = {"module": "branch", "name": "earlier", "parent": "dev", "from_timestamp": "1m"}
        planned, created, again = (task(client, check_mode=mode, **new) for mode in (True, False, False))
        assert [each["changed"] for each in (planned, created, again)] == [True, True, False]
        assert databases(sandbox, created["branch"]["id"]) == ["clouddb"]
        assert failing(client, **{**new, "from_timestamp": "2099-01-01"})["option"] == "from_timestamp"

    @pytest.mark.parametrize("has_field", [True, False])
    def test_one_with_the_schema_only_has_no_parent(self, sandbox: Sandbox, client: Client, has_field: bool) -> None:
        new = {"module": "branch", "name": "empty", "parent": "main", "schema_only": True}
        created = task(client, **new)
        assert (created["branch"].get("parent_id"), created["branch"]["init_source"]) == (None, "schema-only")
        if has_field:
            body = {"branches": [{**created["branch"], "parent_id": None}, named(sandbox, "main")]}
            sandbox.fault("status", status=200, method="GET", path=BRANCHES, body=body, times=None)
        assert task(client, **new)["changed"] is False
