# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""operation_info against the sandbox."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.module_utils._http.errors import StatusError
from ansible_collections.clouddb.control.plugins.modules import operation_info
from ansible_collections.clouddb.control.tests.unit.support.module_main import defaults_of
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox

SHOP, BLOG = "wispy-lake-12345678", "red-moon-34567890"


def operation(name: str, age: str, action: str, status: str, **fields: Any) -> dict[str, Any]:
    return {"id": name, "age": age, "action": action, "status": status, **fields}


@pytest.fixture
def seed() -> dict[str, Any]:
    of_dev = {"branch_id": "br-dev", "endpoint_id": "ep-dev", "error": "no capacity"}
    shop = [
        operation("shop-1", "4d", "create_timeline", "finished", branch_id="br-main"),
        operation("shop-2", "50h", "create_branch", "finished", branch_id="br-dev"),
        operation("shop-3", "49h", "start_compute", "failed", **of_dev),
        operation("shop-4", "30m", "start_compute", "running", branch_id="br-main", endpoint_id="ep-main"),
    ]
    blog = [
        operation("blog-1", "51h", "create_timeline", "finished"),
        operation("blog-2", "20m", "apply_config", "failed"),
    ]
    return {
        "projects": [
            {"id": SHOP, "name": "shop", "age": "5d", "compute": False, "operations": shop},
            {"id": BLOG, "age": "4d", "compute": False, "operations": blog},
            {"id": "calm-hill-23456789", "age": "3d", "compute": False},
        ]
    }


def task(client: Client, check_mode: bool = False, **options: Any) -> dict[str, Any]:
    """The result of the module with these options."""
    return operation_info.run({**defaults_of(operation_info), **options}, client, check_mode)


def ids(result: dict[str, Any]) -> list[str]:
    return [operation["id"] for operation in result["operations"]]


@pytest.mark.parametrize("check_mode", [False, True])
def test_returns_operations_as_the_service_sends_them(sandbox: Sandbox, client: Client, check_mode: bool) -> None:
    operations = sandbox.api("GET", f"/projects/{SHOP}/operations")["operations"]
    assert task(client, check_mode, project_id=SHOP) == {
        "changed": False,
        "operations": operations,
        "summary": {
            "total": 4,
            "by_status": {"running": 1, "failed": 1, "finished": 2},
            "by_action": {"start_compute": 2, "create_branch": 1, "create_timeline": 1},
        },
        "unavailable_project_ids": [],
        "warnings": [],
    }
    assert [operation["id"] for operation in operations] == ["shop-4", "shop-3", "shop-2", "shop-1"]
    assert operations[1]["error"] == "no capacity"


BY_NAME = {"project": "shop", "query": {"search": "shop", "recoverable": False}}


@pytest.mark.parametrize(
    "selected, lookup",
    [(BY_NAME, ["GET /projects"]), ({"project": SHOP}, [f"GET /projects/{SHOP}"]), ({"project_id": SHOP}, [])],
)
def test_a_project_is_selected_by_name_or_id(sandbox: Sandbox, client: Client, selected: Any, lookup: Any) -> None:
    assert len(ids(task(client, **selected, page_size=10))) == 4
    assert list(dict.fromkeys(sandbox.sent())) == [*lookup, f"GET /projects/{SHOP}/operations"]
    assert "False" not in sandbox.requests()[0]["query"]


def test_projects_that_are_known_are_not_listed(sandbox: Sandbox, client: Client) -> None:
    result = task(client, project_ids=[BLOG, *["gone-lake-12345678"] * 2, "(not created)", BLOG], page_size=10)
    assert (ids(result), result["unavailable_project_ids"]) == (["blog-2", "blog-1"], ["gone-lake-12345678"])
    assert {*sandbox.sent()} == {f"GET /projects/{each}/operations" for each in (BLOG, "gone-lake-12345678")}
    assert ids(task(client, project_ids=[])) == []


@pytest.mark.parametrize(
    "options, expected",
    [
        ({}, ["blog-2", "shop-4", "shop-3", "shop-2", "blog-1", "shop-1"]),
        ({"status": ["running", "unsuccessful"]}, ["blog-2", "shop-4", "shop-3"]),
        ({"action": ["create_timeline", "create_branch"]}, ["shop-2", "blog-1", "shop-1"]),
        ({"branch_id": "br-dev"}, ["shop-3", "shop-2"]),
        ({"endpoint_id": "ep-main"}, ["shop-4"]),
        ({"created_after": "50.5h"}, ["blog-2", "shop-4", "shop-3", "shop-2"]),
        ({"max_results": 1, "status": ["finished"]}, ["shop-2"]),
    ],
)
def test_selects_in_all_projects_or_in_one(client: Client, options: dict[str, Any], expected: list[str]) -> None:
    result = task(client, **options)
    assert ids(result) == expected
    assert result["summary"]["total"] == len(expected)
    assert ids(task(client, project_id=SHOP, **options)) == [name for name in expected if name.startswith("shop")]
    if "max_results" not in options:
        assert task(client, **options, summary_only=True)["summary"] == result["summary"]


@pytest.mark.parametrize(
    "scope", [{}, {"project_id": SHOP}, {"project_id": SHOP, "operation_id": ["shop-3", "shop-4", "x"]}]
)
def test_fields_reduce_the_list_and_summary_only_leaves_it_out(sandbox: Sandbox, client: Client, scope: Any) -> None:
    complete = task(client, **scope)
    requests = sandbox.sent()
    result = task(client, **scope, summary_only=True)
    assert result == {field: value for field, value in complete.items() if field != "operations"}
    assert sorted(sandbox.sent()) == sorted(2 * requests)
    operations = [{"id": each["id"], "status": each["status"]} for each in complete["operations"]]
    assert task(client, **scope, fields=["status", "id"]) == {**complete, "operations": operations}


@pytest.mark.parametrize("status, cause", [(404, "404 for them"), (403, "404 or 403 for them")])
def test_a_project_of_refused_operations_is_named(sandbox: Sandbox, client: Client, status: int, cause: str) -> None:
    sandbox.fault("status", status=status, path=f"projects/{SHOP}/operations")
    result = task(client)
    assert (ids(result), result["unavailable_project_ids"]) == (["blog-2", "blog-1"], [SHOP])
    [warning] = result["warnings"]
    assert cause in warning and warning.endswith(f": {SHOP}.")


def test_a_key_that_may_read_no_operations_is_an_error(sandbox: Sandbox, client: Client) -> None:
    sandbox.fault("status", status=403, path="*/operations", times=None)
    with pytest.raises(StatusError) as error:
        task(client)
    assert error.value.status == 403


def test_unknown_statuses_and_actions_are_a_warning(client: Client) -> None:
    of_status, of_action = task(client, status=["failed", "deferred"], action=["delete_timeline"])["warnings"]
    assert of_status.startswith("status: 'deferred'")
    assert of_action.startswith("action: 'delete_timeline'")


def failing_after(hours: int) -> dict[str, Any]:
    """An account with an operation that was created 25 hours ago and failed after C(hours), and a later one that has finished."""
    slow = operation("slow", "25h", "create_branch", "failed", duration=3600 * hours)
    quick = operation("quick", "24.5h", "start_compute", "finished")
    return {"projects": [{"id": SHOP, "age": "5d", "compute": False, "operations": [slow, quick]}]}


@pytest.mark.parametrize(
    "seed, options, expected",
    [
        (failing_after(24), {}, ["slow"]),
        (failing_after(24), {"created_after": "24.9h"}, []),
        (failing_after(24), {"status": ["finished"]}, []),
        (failing_after(22), {}, []),
    ],
)
def test_updated_after_finds_what_began_long_ago(
    client: Client, seed: dict[str, Any], options: dict[str, Any], expected: list[str]
) -> None:
    assert ids(task(client, project_id=SHOP, page_size=1, updated_after="2h", **options)) == expected
    counted = task(client, updated_after="2h", summary_only=True, **options)
    assert counted["summary"]["total"] == len(expected)


@pytest.mark.parametrize("summary_only", [False, True])
def test_query_selects_the_projects_on_the_service(client: Client, summary_only: bool) -> None:
    """As in https://github.com/alchemy-run/alchemy/issues/509 and https://github.com/neondatabase/neonctl/issues/382"""
    assert task(client, query={"search": BLOG}, summary_only=summary_only)["summary"]["total"] == 2
