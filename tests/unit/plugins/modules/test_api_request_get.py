# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""api_request with GET: what it sends, and what it returns of an object or a list."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.tests.unit.support.api_request_task import BLOG, SHOP, failing, task
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox


@pytest.fixture
def seed() -> dict[str, Any]:
    return {"projects": [{"id": SHOP, "name": "shop"}, {"id": BLOG, "name": "blog"}]}


def queries(sandbox: Sandbox) -> list[str]:
    return [entry["query"] for entry in sandbox.requests() if entry["user_agent"].startswith("clouddb.control/")]


def test_an_object_is_returned_with_its_status(sandbox: Sandbox, client: Client) -> None:
    result = task(client, path=f"projects/{SHOP}")
    project = sandbox.api("GET", f"/projects/{SHOP}")
    assert (result["changed"], result["status"], result["json"]) == (False, 200, project)
    assert result["object"] == project["project"]


@pytest.mark.parametrize("all_pages", [False, True])
def test_a_query_selects(sandbox: Sandbox, client: Client, all_pages: bool) -> None:
    sandbox.fault("page_limit", items=1, times=None)
    result = task(client, path="projects", query={"search": "o"}, all_pages=all_pages)
    names = [project["name"] for project in result["json"]["projects"]]
    assert (names, result["status"]) == (["blog", "shop"] if all_pages else ["blog"], 200)
    assert result["warnings"] == []
    assert all(query.startswith("search=o") for query in queries(sandbox))
    assert "cursor" not in queries(sandbox)[0]


def test_queries_of_the_request_and_of_find_are_combined(sandbox: Sandbox, client: Client) -> None:
    find = {"list": "projects", "match": {"name": "shop"}, "query": {"search": "sho"}}
    result = task(client, path="projects", query={"limit": 50}, find=find)
    assert [project["name"] for project in result["json"]["projects"]] == ["shop"]
    assert (result["object"]["id"], result["status"]) == (SHOP, 200)
    assert queries(sandbox)[0] == "limit=50&search=sho"


def test_a_response_that_is_a_list(sandbox: Sandbox, client: Client) -> None:
    keys = sandbox.api("GET", "/api_keys")
    for options in ({"all_pages": True}, {"find": {"match": {"name": keys[0]["name"]}}}, {}):
        found = task(client, path="api_keys", **options)["json"]
        assert [key["id"] for key in found] == [key["id"] for key in keys]


def test_the_only_array_of_a_response_is_its_list(sandbox: Sandbox, client: Client) -> None:
    pages = [{"items": [{"id": "b-1"}], "pagination": {"cursor": "2"}}, {"items": []}]
    for page in pages:
        sandbox.fault("status", status=200, method="GET", path=f"/projects/{SHOP}/branches", body=page)
    assert task(client, path=f"projects/{SHOP}/branches", all_pages=True)["json"] == {"items": [{"id": "b-1"}]}
    assert len(queries(sandbox)) == 2


def test_an_object_that_another_page_has_is_not_missing(sandbox: Sandbox, client: Client) -> None:
    pages = [
        {"projects": [{"id": BLOG}], "unavailable_project_ids": [SHOP], "pagination": {"cursor": "2"}},
        {"projects": [{"id": SHOP}], "unavailable_project_ids": [BLOG], "pagination": {"cursor": "3"}},
        {"projects": []},
    ]

    def respond_with_pages() -> None:
        for page in pages:
            sandbox.fault("status", status=200, method="GET", path="/projects", body=page)

    respond_with_pages()
    result = task(client, path="projects", all_pages=True)
    assert result["json"] == {"projects": [{"id": BLOG}, {"id": SHOP}], "unavailable_project_ids": []}
    assert result["warnings"] == []
    respond_with_pages()
    result = task(client, "DELETE", path="projects/{id}", find={"list": "projects", "match": {"id": "gone"}})
    assert (result["changed"], result["object"]) == (False, None)


@pytest.mark.parametrize(
    ("body", "kind"),
    [({"name": "shop"}, "unexpected_response"), ({"operations": [], "branches": []}, "invalid_option")],
)
def test_all_pages_of_something_else(sandbox: Sandbox, client: Client, body: dict[str, Any], kind: str) -> None:
    sandbox.fault("status", status=200, method="GET", body=body)
    assert failing(client, path="projects", all_pages=True)["failure"]["kind"] == kind
    sandbox.fault("status", status=200, method="GET", body={**body, "projects": [{"id": SHOP}]})
    assert task(client, path="projects", all_pages=True)["json"] == {**body, "projects": [{"id": SHOP}]}
