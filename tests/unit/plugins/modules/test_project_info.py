# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""project_info against the sandbox."""

from __future__ import annotations

from typing import Any
from unittest.mock import ANY

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import ClouddbError, InvalidOption
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.modules import project_info
from ansible_collections.clouddb.control.tests.unit.support.module_main import defaults_of
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox

SHOP = {"id": "wispy-lake-12345678", "name": "shop", "region_id": "aws-eu-central-1", "org_id": "org-a", "age": "3d"}
SHOP_TWO = {"id": "calm-hill-23456789", "name": "shop", "region_id": "azure-westus3", "org_id": "org-a", "age": "2d"}
BLOG = {"id": "red-moon-34567890", "name": "shop-blog", "region_id": "aws-eu-central-1", "org_id": "org-b", "age": "1d"}


@pytest.fixture
def seed() -> dict[str, Any]:
    return {"projects": [SHOP, SHOP_TWO, BLOG]}


def task(client: Client, check_mode: bool = False, **options: Any) -> dict[str, Any]:
    """The result of the module with these options."""
    return project_info.run({**defaults_of(project_info), **options}, client, check_mode)


@pytest.mark.parametrize("check_mode", [False, True], ids=["real", "check mode"])
def test_returns_every_project_with_every_field(sandbox: Sandbox, client: Client, check_mode: bool) -> None:
    projects = sandbox.api("GET", "/projects")["projects"]
    assert task(client, check_mode) == {
        "changed": False,
        "service_time": ANY,
        "base_url": sandbox.base_url,
        "projects": projects,
        "unavailable_project_ids": [],
        "warnings": [],
    }
    assert len(projects) == 3


@pytest.mark.parametrize(
    "options, near",
    [
        ({"name": "shpo"}, ["Did you mean shop?"]),
        ({"name": "SHOP"}, ["Did you mean shop or shop-blog?"]),
        ({"name": "shop", "region_id": "aws-eu-central"}, []),
        ({"project_id": "wispy-lake-1234567"}, []),
        ({"query": {"search": "nowhere"}}, []),
    ],
)
def test_required_project_that_is_missing_fails(client: Client, options: dict[str, Any], near: list[str]) -> None:
    assert task(client, **options)["projects"] == []
    with pytest.raises(ClouddbError) as error:
        task(client, **options, required=True)
    assert error.value.as_result()["failure"] == {"kind": "not_found", **options}
    assert all(hint in str(error.value) for hint in near)
    assert ("Did you mean" in str(error.value)) is bool(near)


def test_a_name_in_place_of_an_id_is_recognized(client: Client) -> None:
    with pytest.raises(ClouddbError, match="If this is the name of a project, set name\\."):
        task(client, project_id="shop", required=True)


def test_required_project_may_be_created_earlier_in_check_mode(client: Client) -> None:
    result = task(client, True, name="new", required=True)
    assert result["projects"] == [{"id": None, "name": "new", "region_id": None}]
    assert len(result["warnings"]) == 1
    with pytest.raises(ClouddbError):
        task(client, True, project_id="wispy-lake-1234567", required=True)


def test_required_project_may_be_among_those_that_the_service_left_out(sandbox: Sandbox, client: Client) -> None:
    sandbox.fault("unavailable_projects", ids=[BLOG["id"]], times=None)
    with pytest.raises(ClouddbError) as error:
        task(client, name="shop-blog", required=True)
    # One that was found may not be the only one.
    with pytest.raises(ClouddbError, match="incomplete"):
        task(client, name="shop")
    failure = {"kind": "incomplete_list", "name": "shop-blog", "unavailable_project_ids": [BLOG["id"]]}
    assert error.value.as_result()["failure"] == failure


@pytest.mark.parametrize(
    "options, requests",
    [
        ({"project_id": SHOP["id"]}, 1),
        ({"project_id": SHOP["id"], "org_id": "org-a"}, 1),
        ({"project_id": "no-12345678"}, 1),
    ],
)
def test_by_its_id_a_project_takes_one_request(
    sandbox: Sandbox, client: Client, options: dict[str, Any], requests: int
) -> None:
    found = task(client, **options)["projects"]
    assert sandbox.sent() == [f"GET /projects/{options['project_id']}"] * requests
    assert found == (
        [sandbox.api("GET", f"/projects/{SHOP['id']}")["project"]] if SHOP["id"] in options.values() else []
    )


def test_fields_reduce_each_project(client: Client) -> None:
    result = task(client, name="shop-blog", fields=["name", "id"])
    assert result["projects"] == [{"id": BLOG["id"], "name": "shop-blog"}]
    assert result["warnings"] == []


def test_two_organizations_are_refused(sandbox: Sandbox, client: Client) -> None:
    with pytest.raises(InvalidOption) as error:
        task(client, org_id="org-a", query={"org_id": "org-b"})
    assert (error.value.details["option"], sandbox.sent()) == ("query", [])
    assert task(client, org_id="org-b", query={"org_id": "org-b"})["projects"]
