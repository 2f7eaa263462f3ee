# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""api_request with a service that responds 423: when the request is sent again, and what the failure says."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.tests.unit.support.api_request_task import (
    BRANCHES,
    PREVIEW,
    SHOP,
    failing,
    task,
)
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import FakeClock
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox

CREATE_PROJECT: dict[str, Any] = {
    "path": "projects",
    "find": {"list": "projects", "match": {"name": "new"}},
    "body": {"project": {"name": "new"}},
}
RENAME = {"path": f"projects/{SHOP}", "body": {"project": {"history_retention_seconds": 3600}}}


@pytest.fixture
def seed() -> dict[str, Any]:
    return {"projects": [{"id": SHOP, "name": "shop"}]}


def test_without_a_project_the_pauses_grow_up_to_the_interval(
    sandbox: Sandbox, client: Client, clock: FakeClock
) -> None:
    sandbox.fault("status", status=423, method="POST", times=10)
    assert task(client, "POST", wait=False, **CREATE_PROJECT)["status"] == 201
    assert {line for line in sandbox.sent() if line.startswith("GET")} == {"GET /projects"}
    assert clock.pauses == pytest.approx([0.2, 0.3, 0.45, 0.675, 1.0125, 1.51875, 2.278125, 3.4171875, 5.0, 5.0])


def test_the_last_pause_ends_at_the_deadline(sandbox: Sandbox, client: Client, clock: FakeClock) -> None:
    sandbox.fault("status", status=423, method="POST", times=None, retry_after=7)
    result = failing(client, "POST", lock_timeout=10, **CREATE_PROJECT)
    assert clock.pauses == [7.0, 3.0]
    assert result["failure"]["kind"] == "locked"
    assert result["failure"]["status"] == 423
    assert len([line for line in sandbox.sent() if line.startswith("POST")]) == 3


@pytest.fixture
def locked(sandbox: Sandbox) -> list[dict[str, Any]]:
    """Operations that the project is locked by for a long time."""
    sandbox.plan((0, "running"), (1000, "finished"), action="create_branch")
    operations: list[dict[str, Any]] = sandbox.api("POST", f"/{BRANCHES}", {"branch": {"name": "other"}})["operations"]
    return operations


def test_the_unfinished_operations_are_named(
    sandbox: Sandbox, client: Client, clock: FakeClock, locked: list[dict[str, Any]]
) -> None:
    result = failing(client, "PATCH", lock_timeout=10, **RENAME)
    # The others start when the first one is finished.
    ids = [operation["id"] for operation in locked]
    assert [each in result["msg"] for each in ids] == [True, *[False] * (len(ids) - 1)]
    assert clock.elapsed == pytest.approx(10.0)


def test_the_time_before_a_second_refusal_counts(sandbox: Sandbox, client: Client, clock: FakeClock) -> None:
    """It is not the whole time again for the operations that another client has started meanwhile."""
    sandbox.plan((0, "running"), (6, "finished"), action="create_branch")
    sandbox.plan((0, "running"), (1000, "finished"), action="start_compute")
    sandbox.api("POST", f"/{BRANCHES}", {"branch": {"name": "other"}, "endpoints": [{"type": "read_write"}]})
    assert failing(client, "PATCH", lock_timeout=10, **RENAME)["failure"]["kind"] == "locked"
    assert clock.elapsed == pytest.approx(10.0)


def test_a_refused_request_is_not_reported_as_the_change_of_another_client(
    sandbox: Sandbox, client: Client, clock: FakeClock
) -> None:
    sandbox.fault("status", status=423, method="POST")
    sleep = clock.on_sleep

    def create(seconds: float) -> None:
        sleep(seconds)
        sandbox.api("POST", "/projects", CREATE_PROJECT["body"])

    clock.on_sleep = create
    result = task(client, "POST", wait=False, **CREATE_PROJECT)
    assert (result["changed"], result.get("warnings", [])) == (False, [])


def test_only_operations_of_the_last_day_are_waited_for(sandbox: Sandbox, client: Client, clock: FakeClock) -> None:
    sandbox.plan((0, "running"), action="create_branch")
    sandbox.api("POST", f"/{BRANCHES}", {"branch": {"name": "other"}})
    sandbox.advance(86400 + 60)
    assert "Unfinished operations" not in failing(client, "PATCH", lock_timeout=1, **RENAME)["msg"]
    assert clock.pauses == pytest.approx([0.2, 0.3, 0.45, 0.05])


def test_a_failed_operation_ends_the_wait_for_the_lock(sandbox: Sandbox, client: Client) -> None:
    sandbox.plan((0, "running"), (3, "failed"), action="create_branch")
    sandbox.api("POST", f"/{BRANCHES}", {"branch": {"name": "other"}})
    assert task(client, "PATCH", **RENAME)["status"] == 200


def test_a_project_whose_operations_cannot_be_listed_is_tried_again(
    sandbox: Sandbox, client: Client, clock: FakeClock
) -> None:
    sandbox.fault("status", status=423, method="PATCH", times=2)
    sandbox.fault("status", status=404, method="GET", path=f"/projects/{SHOP}/operations", times=None)
    assert task(client, "PATCH", wait=False, **RENAME)["status"] == 200
    assert clock.pauses == pytest.approx([0.2, 0.3])


def test_another_error_of_the_list_ends_the_task(sandbox: Sandbox, client: Client) -> None:
    sandbox.fault("status", status=423, method="PATCH")
    sandbox.fault("status", status=403, method="GET", path=f"/projects/{SHOP}/operations", times=None)
    assert failing(client, "PATCH", **RENAME)["failure"]["status"] == 403
    assert [line.split()[0] for line in sandbox.sent()] == ["PATCH", "GET"]


def test_a_resumed_task_knows_that_an_earlier_attempt_may_have_been_carried_out(
    sandbox: Sandbox, client: Client, clock: FakeClock
) -> None:
    task(client, "POST", **PREVIEW)
    # Operations of the same second could belong to the request.
    clock.sleep(2)
    # The first attempt deletes the branch, whose operation locks the project for the second one.
    sandbox.plan((0, "running"), (20, "finished"), action="suspend_compute")
    sandbox.fault("lost_answer", method="DELETE")
    sandbox.fault("status", status=503, method="DELETE", retry_after=7)
    sandbox.fault("status", status=423, method="DELETE")
    options = {"path": f"{BRANCHES}/{{id}}", "find": PREVIEW["find"]}
    options["_stop_when"] = {"min_seconds": 0.0, "max_seconds": 0.0}
    runs = [task(client, "DELETE", **options)]
    assert not runs[0]["_state"]["is_sent"]
    while "_state" in runs[-1]:
        runs.append(task(client, "DELETE", _state=runs[-1]["_state"], **options))
    assert runs[-1]["changed"]
    assert [operation["action"] for operation in runs[-1]["operations"]] == ["suspend_compute"]
    assert "was lost" in runs[-1]["warnings"][0]
