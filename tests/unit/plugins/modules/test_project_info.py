# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""project_info against the sandbox."""

from __future__ import annotations

import re
from typing import Any
from unittest.mock import ANY

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import ClouddbError
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
    "options, hint",
    [
        ({"name": "shpo"}, "Did you mean shop?"),
        ({"name": "SHOP"}, "Did you mean shop or shop-blog?"),
        ({"name": "shop", "region_id": "aws-eu-central"}, ""),
        ({"project_id": "wispy-lake-1234567"}, ""),
        ({"project_id": "shop"}, "If this is the name of a project, set name."),
        ({"query": {"search": "nowhere"}}, ""),
    ],
)
def test_required_project_that_is_missing_fails(client: Client, options: dict[str, Any], hint: str) -> None:
    assert task(client, **options)["projects"] == []
    with pytest.raises(ClouddbError) as error:
        task(client, **options, required=True)
    assert error.value.as_result()["failure"] == {"kind": "not_found", **options}
    assert hint in str(error.value)
    assert bool(re.search("Did you mean|If this is", str(error.value))) is bool(hint)


def test_required_project_may_be_created_earlier_in_check_mode(client: Client) -> None:
    result = task(client, True, name="new", required=True)
    assert (result["projects"], len(result["warnings"])) == ([{"id": None, "name": "new", "region_id": None}], 1)
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


@pytest.mark.parametrize("project_id, org_id", [(SHOP["id"], None), (SHOP["id"], "org-a"), ("no-12345678", None)])
def test_by_its_id_a_project_takes_one_request(sandbox: Sandbox, client: Client, project_id: str, org_id: Any) -> None:
    found = task(client, project_id=project_id, org_id=org_id)["projects"]
    assert sandbox.sent() == [f"GET /projects/{project_id}"]
    shop = sandbox.api("GET", f"/projects/{SHOP['id']}")["project"]
    assert found == ([shop] if project_id == SHOP["id"] else [])


def test_fields_reduce_each_project(client: Client) -> None:
    result = task(client, name="shop-blog", fields=["name", "id"])
    assert (result["projects"], result["warnings"]) == ([{"id": BLOG["id"], "name": "shop-blog"}], [])
