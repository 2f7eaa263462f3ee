# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What api_request returns of an object before and after, with which operations, and what its failures say."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.module_utils._resources.engine import SETTLING_SECONDS
from ansible_collections.clouddb.control.tests.unit.support.api_request_task import (
    BRANCHES,
    PREVIEW,
    SHOP,
    failing,
    task,
)
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import FakeClock
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox

FIND = {"path": f"{BRANCHES}/{{id}}", "find": PREVIEW["find"]}


@pytest.fixture
def seed() -> dict[str, Any]:
    return {"projects": [{"id": SHOP, "name": "shop"}]}


@pytest.mark.parametrize("check_mode", [False, True])
def test_an_object_that_is_there_is_the_same_before_and_after(
    sandbox: Sandbox, client: Client, check_mode: bool
) -> None:
    task(client, "POST", **PREVIEW)
    result = task(client, "POST", check_mode, **PREVIEW)
    assert result["object"]["name"] == "preview"
    assert result["diff"] == {"before": {}, "after": {}}


def test_a_predicted_change_keeps_the_other_fields(sandbox: Sandbox, client: Client) -> None:
    created = task(client, "POST", **PREVIEW)["object"]
    result = task(client, "PATCH", True, body={"branch": {"name": "review"}}, **FIND)
    assert (result["changed"], result["diff"]) == (True, {"before": {"name": "preview"}, "after": {"name": "review"}})
    assert (result["object"]["id"], result["object"]["name"]) == (created["id"], "review")


def test_a_predicted_deletion_shows_what_is_deleted(sandbox: Sandbox, client: Client) -> None:
    created = task(client, "POST", **PREVIEW)["object"]
    result = task(client, "DELETE", True, **FIND)
    assert (result["changed"], result["object"]) == (True, None)
    assert (result["diff"]["before"]["id"], result["diff"]["after"]) == (created["id"], {})


def test_a_predicted_request_about_an_unknown_object_is_a_warning(sandbox: Sandbox, client: Client) -> None:
    result = task(client, "GET", True, path=f"{BRANCHES}//roles")
    assert (result["changed"], result["json"]) == (False, None)
    assert result["warnings"] == [
        f"GET /{BRANCHES}//roles was not sent, because a value in it is not known. An earlier task would create the resource."
    ]
    result = task(client, "GET", True, **FIND)
    assert result["changed"] is False
    assert result["warnings"] == [
        f"No resource matches find. Unless an earlier task creates it, GET /{BRANCHES}/{{id}} will fail."
    ]


def test_nothing_is_looked_up_by_a_value_that_is_not_known(sandbox: Sandbox, client: Client) -> None:
    find = {"list": "branches", "match": {"parent_id": None}}
    assert task(client, "DELETE", True, path=f"{BRANCHES}/{{id}}", find=find)["changed"] is True
    assert sandbox.sent() == []


def test_an_accepted_refusal_shows_the_object_that_was_not_changed(sandbox: Sandbox, client: Client) -> None:
    created = task(client, "POST", **PREVIEW)["object"]
    sandbox.fault("status", status=409, method="PATCH", body={"message": "no"})
    result = task(client, "PATCH", body={"branch": {"name": "review"}}, status_code=[409], **FIND)
    assert (result["changed"], result["status"], result["json"]) == (False, 409, {"message": "no"})
    assert (result["object"]["id"], result["operations"]) == (created["id"], [])
    assert result["diff"] == {"before": {}, "after": {}}


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_operations_before_a_request_whose_response_was_lost_are_left_out(
    sandbox: Sandbox, client: Client, method: str
) -> None:
    task(client, "POST", path=BRANCHES, body={"branch": {"name": "other"}})
    if method == "DELETE":
        task(client, "POST", **PREVIEW)
    sandbox.advance(3600)
    sandbox.fault("lost_answer", method=method)
    options = PREVIEW if method == "POST" else FIND
    actions = [operation["action"] for operation in task(client, method, **options)["operations"]]
    assert sorted(actions) == (["create_branch", "start_compute"] if method == "POST" else ["suspend_compute"])


def test_a_lost_request_is_looked_up_for_as_long_as_a_list_may_lag(
    sandbox: Sandbox, client: Client, clock: FakeClock
) -> None:
    sandbox.fault("reset", method="POST")
    assert failing(client, "POST", **PREVIEW)["failure"]["kind"] == "unknown_outcome"
    assert sum(clock.pauses) == pytest.approx(SETTLING_SECONDS)


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_the_query_is_sent(sandbox: Sandbox, client: Client, method: str) -> None:
    if method == "POST":
        task(client, "POST", path="projects", body={"project": {"name": "new"}}, query={"notify": True})
    else:
        task(client, "DELETE", path=f"projects/{SHOP}", query={"notify": True})
    [sent] = [entry for entry in sandbox.requests() if entry["method"] == method]
    assert sent["query"] == "notify=true"
