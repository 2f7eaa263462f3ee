# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""operation_wait against the sandbox, whose clock moves with the pauses of the wait."""

from __future__ import annotations

import re
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.module_utils._http.connection import Connection
from ansible_collections.clouddb.control.plugins.module_utils._http.errors import StatusError
from ansible_collections.clouddb.control.plugins.module_utils._operations.status import ENDED
from ansible_collections.clouddb.control.plugins.module_utils._operations.wait import MAX_SECONDS_UNKNOWN, WaitFailed
from ansible_collections.clouddb.control.plugins.modules import operation_wait
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import FakeClock
from ansible_collections.clouddb.control.tests.unit.support.module_main import defaults_of
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox

SHOP, BLOG = "wispy-lake-12345678", "red-moon-34567890"


def operation(name: str, *timeline: tuple[float, str], age: float = 0, **fields: str) -> dict[str, Any]:
    """An operation for the seed, with its statuses by seconds from now."""
    statuses = [(0, "scheduling"), *((age + after, status) for after, status in timeline)]
    return {"id": name, "action": "start_compute", "age": float(age), "timeline": statuses, **fields}


@pytest.fixture
def seed() -> dict[str, Any]:
    shop = [
        operation("quick", (1, "running"), (2, "finished")),
        operation("slow", (5, "running"), (100, "finished")),
        operation("skipped", (1, "skipped")),
        operation("fails", (3, "failed"), error="no capacity left"),
        operation("retried", (3, "failed"), (8, "running"), (12, "finished")),
        operation("breaks", (3, "error"), error="out of disk"),
        operation("cancelled", (1, "cancelling"), (3, "cancelled")),
        operation("endless"),
    ]
    blog = [
        operation("old", (0, "finished"), age=1000),
        operation("young", (4, "finished"), age=100),
        operation("ancient", (20, "finished"), age=2 * 86400),
    ]
    return {
        "projects": [
            {"id": SHOP, "name": "shop", "compute": False, "operations": shop},
            {"id": BLOG, "compute": False, "operations": blog},
        ]
    }


def task(client: Client, check_mode: bool = False, **options: Any) -> dict[str, Any]:
    """The result of the module with these options; C(names) are operations of SHOP."""
    if "names" in options:
        options["operations"] = [{"id": name, "project_id": SHOP} for name in options.pop("names")]
    return operation_wait.run({**defaults_of(operation_wait), **options}, client, check_mode)


def failing(client: Client, check_mode: bool = False, **options: Any) -> dict[str, Any]:
    """The result of the module when it fails with these options."""
    with pytest.raises(WaitFailed) as error:
        task(client, check_mode, **options)
    return error.value.as_result()


def statuses(result: dict[str, Any]) -> dict[str, str]:
    return {operation["id"]: operation["status"] for operation in result["operations"]}


def test_waits_for_the_operations_of_a_response(sandbox: Sandbox, client: Client, clock: FakeClock) -> None:
    project = sandbox.api("POST", "/projects", {"project": {"name": "fresh"}})["project"]["id"]
    sandbox.advance(10)
    started = sandbox.api("POST", f"/projects/{project}/branches", {"branch": {"name": "preview"}})["operations"]
    result = task(client, operations=started)
    operations = f"/projects/{project}/operations"
    assert result == {
        "changed": False,
        "operations": [sandbox.api("GET", f"{operations}/{each['id']}")["operation"] for each in started],
        "elapsed": round(clock.elapsed, 3),
        "polls": len(clock.pauses) + 1,
        "warnings": [],
    }
    assert [each["action"] for each in started] == ["create_branch", "start_compute"]
    assert {*statuses(result).values()} == {"finished"} and clock.elapsed >= 1.5


@pytest.mark.parametrize("name, lookup", [("shop", "GET /projects"), (SHOP, f"GET /projects/{SHOP}")])
def test_a_project_is_selected_by_name_or_id(sandbox: Sandbox, client: Client, name: str, lookup: str) -> None:
    assert statuses(task(client, project=name, operation_id=["quick"])) == {"quick": "finished"}
    assert list(dict.fromkeys(sandbox.sent())) == [lookup, f"GET /projects/{SHOP}/operations/quick"]


@pytest.mark.parametrize("options", [{"operations": []}, {"project_id": SHOP, "operation_id": []}])
def test_an_empty_list_returns_at_once(sandbox: Sandbox, client: Client, options: dict[str, Any]) -> None:
    expected = {"changed": False, "operations": [], "elapsed": 0.0, "polls": 0, "warnings": []}
    assert (task(client, **options), sandbox.sent()) == (expected, [])


def test_a_project_alone_means_its_unfinished_operations_of_the_last_day(client: Client) -> None:
    assert statuses(task(client, project_id=BLOG)) == {"young": "finished"}


def test_lookback_0_includes_all_operations(sandbox: Sandbox, client: Client) -> None:
    """Even if a page fails, which does not begin the list anew."""
    sandbox.fault("page_limit", items=1, times=None)
    sandbox.fault("status", status=503, path=f"/projects/{BLOG}/operations", skip=1, times=3)
    assert statuses(task(client, project_id=BLOG, lookback=0.0)) == {"young": "finished", "ancient": "finished"}
    assert [request["query"] for request in sandbox.requests()].count("limit=1000") == 1


@pytest.mark.parametrize(("name", "status"), [("fails", "failed"), ("breaks", "error"), ("cancelled", "cancelled")])
def test_a_failed_operation_fails_at_once(client: Client, clock: FakeClock, name: str, status: str) -> None:
    failure = failing(client, names=["endless", name, "skipped"])
    assert (failure["failed_ids"], failure["pending_ids"]) == ([name], ["endless"])
    assert statuses(failure) == {"endless": "scheduling", name: status, "skipped": "skipped"}
    assert (failure["failure"]["kind"], clock.elapsed < 5) == ("wait_failed", True)
    assert set(failure) == {"operations", "elapsed", "polls", "warnings", "failed_ids", "pending_ids", "msg", "failure"}


def test_within_failed_grace_a_failed_operation_may_be_retried(client: Client, clock: FakeClock) -> None:
    assert statuses(task(client, names=["retried"], failed_grace=10.0)) == {"retried": "finished"}
    assert clock.elapsed >= 12


def test_api_retries_does_not_add_requests(sandbox: Sandbox, clock: FakeClock) -> None:
    sandbox.fault("status", status=503, times=None)
    client = Client(Connection(sandbox.base_url, sandbox.api_key, api_retries=50), clock.clock)
    failure = failing(client, names=["quick"], timeout=10.0)
    assert len(sandbox.sent()) == failure["polls"]


@pytest.mark.parametrize("status", [401, 404])
def test_an_error_that_stays_aborts_the_wait(sandbox: Sandbox, client: Client, clock: FakeClock, status: int) -> None:
    sandbox.fault("status", status=status, skip=2, times=None)
    failure = failing(client, names=["endless"])
    assert (failure["polls"], len(clock.pauses), failure["failure"]["status"]) == (3, 2, status)
    assert statuses(failure) == {"endless": "scheduling"}


def test_check_mode_polls_once_and_accepts_unfinished_operations(client: Client, clock: FakeClock) -> None:
    assert statuses(task(client, check_mode=True, project_id=BLOG)) == {"young": "scheduling"}
    result = task(client, check_mode=True, names=["quick", "endless"])
    assert statuses(result) == {"quick": "scheduling", "endless": "scheduling"}
    assert (result["changed"], result["polls"], clock.pauses) == (False, 1, [])
    assert set(result) == {"changed", "operations", "elapsed", "polls", "warnings"}


def test_check_mode_fails_for_failed_operations(sandbox: Sandbox, client: Client) -> None:
    sandbox.advance(5)
    assert failing(client, check_mode=True, names=["fails", "endless"])["failed_ids"] == ["fails"]


def test_an_unknown_status_is_unfinished_and_warns_once(sandbox: Sandbox, client: Client) -> None:
    unknown = {"operation": {"id": "quick", "project_id": SHOP, "status": "pausing"}}
    sandbox.fault("status", status=200, body=unknown, times=4)
    result = task(client, names=["quick"])
    assert (statuses(result), result["polls"] >= 5) == ({"quick": "finished"}, True)
    warning = "The operation status 'pausing' is unknown to this collection. It is treated as unfinished."
    assert result["warnings"] == [warning]


@pytest.mark.parametrize(
    "options, seconds", [({"names": ["nothing"]}, MAX_SECONDS_UNKNOWN), ({"project_id": "nowhere"}, 0)]
)
def test_what_is_unknown_aborts_the_wait(client: Client, clock: FakeClock, options: Any, seconds: float) -> None:
    assert failing(client, **options)["failure"]["kind"] == "not_found"
    assert seconds <= clock.elapsed <= 1.5 * seconds


def test_the_documentation_names_the_statuses_that_end_a_wait() -> None:
    assert set(re.findall(r"V\((\w+)\)", operation_wait.DOCUMENTATION)) >= ENDED


def test_the_lookup_of_the_project_ends_with_the_timeout(sandbox: Sandbox, client: Client, clock: FakeClock) -> None:
    sandbox.fault("status", status=429, path="/projects", retry_after=60, times=None)
    with pytest.raises(StatusError, match="timeout \\(10 s\\) ended while the project 'shop' was looked up") as error:
        task(client, project="shop", timeout=10)
    assert error.value.out_of_time and clock.elapsed <= 12
