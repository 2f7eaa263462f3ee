# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""project_info against the sandbox."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import (
    ClouddbError,
    InvalidOption,
    StatusError,
    UnexpectedResponse,
)
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.modules import project_info
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox

SHOP = {"id": "wispy-lake-12345678", "name": "shop", "region_id": "aws-eu-central-1", "org_id": "org-a", "age": "3d"}
SHOP_TWO = {"id": "calm-hill-23456789", "name": "shop", "region_id": "azure-westus3", "org_id": "org-a", "age": "2d"}
BLOG = {"id": "red-moon-34567890", "name": "shop-blog", "region_id": "aws-eu-central-1", "org_id": "org-b", "age": "1d"}

large_account = pytest.mark.parametrize("seed", [{"generate": {"projects": 120}}], ids=["120 projects"])


@pytest.fixture
def seed() -> dict[str, Any]:
    return {"projects": [SHOP, SHOP_TWO, BLOG]}


def task(client: Client, check_mode: bool = False, **options: Any) -> dict[str, Any]:
    """The result of the module with these options."""
    names = ("project_id", "name", "region_id", "page_size", "query", "fields")
    return project_info.run({**dict.fromkeys(names), "required": False, **options}, client, check_mode)


def ids(result: dict[str, Any]) -> list[str]:
    return [project["id"] for project in result["projects"]]


def queries(sandbox: Sandbox) -> list[dict[str, list[str]]]:
    """The query parameters of each request to the project list."""
    return [
        parse_qs(entry["query"], keep_blank_values=True)
        for entry in sandbox.requests()
        if entry["path"] == "/api/v2/projects"
    ]


@pytest.mark.parametrize("check_mode", [False, True], ids=["real", "check mode"])
def test_returns_every_project_with_every_field(sandbox: Sandbox, client: Client, check_mode: bool) -> None:
    projects = sandbox.api("GET", "/projects")["projects"]
    assert task(client, check_mode) == {
        "changed": False,
        "projects": projects,
        "unavailable_project_ids": [],
        "warnings": [],
    }
    assert len(projects) == 3


@pytest.mark.parametrize("seed", [{}], ids=["no projects"])
def test_empty_account_has_no_projects(client: Client) -> None:
    assert task(client)["projects"] == []


def test_unknown_fields_are_kept(sandbox: Sandbox, client: Client) -> None:
    project = {"id": "p", "temperature": {"unit": "K", "value": 4.2}, "name": None}
    sandbox.fault("status", status=200, body={"projects": [project]})
    assert task(client)["projects"] == [project]


@large_account
def test_short_pages_do_not_end_the_list(sandbox: Sandbox, client: Client) -> None:
    expected = sandbox.api("GET", "/projects?limit=400")["projects"]
    sandbox.fault("page_limit", items=7, times=None)
    assert task(client, page_size=50)["projects"] == expected
    assert len(expected) == 120


@large_account
def test_limit_is_not_sent_without_page_size(sandbox: Sandbox, client: Client) -> None:
    assert len(task(client)["projects"]) == 120
    assert len(queries(sandbox)) >= 12
    assert not any("limit" in query for query in queries(sandbox))


@large_account
def test_page_size_is_sent_with_each_request(sandbox: Sandbox, client: Client) -> None:
    assert len(task(client, page_size=50)["projects"]) == 120
    assert {query["limit"][0] for query in queries(sandbox)} == {"50"}
    assert len(queries(sandbox)) <= 4


@large_account
def test_permanent_error_of_a_page_fails_the_task(sandbox: Sandbox, client: Client) -> None:
    sandbox.fault("status", path="/projects", status=500, skip=2, times=None)
    with pytest.raises(StatusError) as error:
        task(client, page_size=50)
    assert error.value.status == 500


@large_account
def test_transient_error_of_a_page_is_retried(sandbox: Sandbox, client: Client) -> None:
    for kind in ("reset", "truncate", "lost_answer"):
        sandbox.fault(kind, path="/projects", skip=1)
    assert len(set(ids(task(client, page_size=50)))) == 120


@pytest.mark.parametrize(
    "options, expected",
    [
        ({"project_id": SHOP["id"]}, [SHOP]),
        ({"project_id": "wispy-lake"}, []),
        ({"name": "shop"}, [SHOP_TWO, SHOP]),
        ({"name": "SHOP"}, []),
        ({"region_id": "aws-eu-central-1"}, [BLOG, SHOP]),
        ({"region_id": "aws"}, []),
        ({"name": "shop", "region_id": "aws-eu-central-1"}, [SHOP]),
        ({"project_id": SHOP["id"], "name": "shop-blog"}, []),
    ],
)
def test_filters_are_exact_and_combined_with_and(
    client: Client, options: dict[str, Any], expected: list[dict[str, str]]
) -> None:
    assert ids(task(client, **options)) == [project["id"] for project in expected]


@pytest.mark.parametrize(
    "query, expected",
    [
        ({"org_id": "org-a"}, [SHOP_TWO, SHOP]),
        ({"search": "blog"}, [BLOG]),
        ({"org_id": "org-b", "search": "lake"}, []),
        ({}, [BLOG, SHOP_TWO, SHOP]),
    ],
)
def test_query_selects_on_the_service(client: Client, query: dict[str, str], expected: list[dict[str, str]]) -> None:
    assert ids(task(client, query=query)) == [project["id"] for project in expected]


def test_query_is_sent_encoded_with_each_page(sandbox: Sandbox, client: Client) -> None:
    sandbox.fault("page_limit", items=1, times=None)
    query = {"org_id": "org-a", "note": "a&b=c/ü +", "tags": ["x", 2], "limit_to": 7, "share": 0.5, "verbose": True}
    assert len(task(client, query=query)["projects"]) == 2
    sent = queries(sandbox)
    assert len(sent) == 3
    for parameters in sent:
        parameters.pop("cursor", None)
        assert parameters == {
            "org_id": ["org-a"],
            "note": ["a&b=c/ü +"],
            "tags": ["x", "2"],
            "limit_to": ["7"],
            "share": ["0.5"],
            "verbose": ["true"],
        }


@pytest.mark.parametrize(
    "query, message",
    [
        ({"limit": 5}, "must not contain limit"),
        ({"cursor": "x"}, "must not contain cursor"),
        ({"search": None}, "the value of search must be a string, a number"),
        ({"search": {"a": 1}}, "the value of search must be a string, a number"),
        ({"search": ["a", None]}, "the value of search must be a string, a number"),
    ],
)
def test_invalid_query_fails_before_any_request(
    sandbox: Sandbox, client: Client, query: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidOption, match=f"^query: {message}"):
        task(client, query=query)
    assert sandbox.sent() == []


def test_projects_missing_from_the_list_are_named_in_a_warning(sandbox: Sandbox, client: Client) -> None:
    sandbox.fault("page_limit", items=1, times=None)
    sandbox.fault("unavailable_projects", ids=[SHOP["id"], "lost-sea-45678901"], times=None)
    result = task(client)
    assert ids(result) == [BLOG["id"], SHOP_TWO["id"]]
    assert result["unavailable_project_ids"] == [SHOP["id"], "lost-sea-45678901"]
    [warning] = result["warnings"]
    assert "incomplete" in warning
    assert f"{SHOP['id']}, lost-sea-45678901" in warning


CHECK = "Check the options, and whether the API key may access the project."


@pytest.mark.parametrize(
    "options, message",
    [
        ({"name": "shpo"}, f"There is no project with name 'shpo'. Did you mean name 'shop'? {CHECK}"),
        ({"name": "SHOP"}, f"There is no project with name 'SHOP'. Did you mean name 'shop' or 'shop-blog'? {CHECK}"),
        ({"name": "nothing like it"}, f"There is no project with name 'nothing like it'. {CHECK}"),
        (
            {"project_id": "wispy-lake-1234567"},
            f"There is no project with project_id 'wispy-lake-1234567'. Did you mean project_id '{SHOP['id']}'? {CHECK}",
        ),
        (
            {"name": "shop-blog", "region_id": "azure-westus3"},
            "There is no project with name 'shop-blog' and region_id 'azure-westus3'. "
            f"A project with name 'shop-blog' has region_id '{BLOG['region_id']}'. {CHECK}",
        ),
        (
            {"name": "shop", "region_id": "aws-eu-central"},
            "There is no project with name 'shop' and region_id 'aws-eu-central'. "
            f"Projects with name 'shop' have region_id 'aws-eu-central-1' or 'azure-westus3'. {CHECK}",
        ),
        (
            {"name": "shpo", "region_id": "aws-eu-central"},
            "There is no project with name 'shpo' and region_id 'aws-eu-central'. "
            f"Did you mean name 'shop'? Did you mean region_id 'aws-eu-central-1'? {CHECK}",
        ),
        (
            {"name": "blog", "query": {"search": "shop"}},
            f"There is no project with name 'blog' and query search=shop. Did you mean name 'shop-blog'? {CHECK}",
        ),
        ({"query": {"search": "nowhere"}}, f"There is no project with query search=nowhere. {CHECK}"),
    ],
)
@pytest.mark.parametrize("check_mode", [False, True])
def test_required_project_that_is_missing_fails_with_similar_ones(
    client: Client, options: dict[str, Any], message: str, check_mode: bool
) -> None:
    assert task(client, check_mode, **options)["projects"] == []
    with pytest.raises(ClouddbError) as error:
        task(client, check_mode, **options, required=True)
    assert str(error.value) == message
    assert error.value.as_result()["failure"] == {"kind": "not_found", **options}


@pytest.mark.parametrize("options", [{}, {"name": "shop"}, {"query": {"search": "blog"}}])
def test_required_changes_nothing_when_a_project_matches(client: Client, options: dict[str, Any]) -> None:
    assert task(client, **options, required=True) == task(client, **options)


@pytest.mark.parametrize("seed", [{}], ids=["no projects"])
def test_required_project_of_an_empty_account(client: Client) -> None:
    with pytest.raises(ClouddbError, match=f"^There are no projects. {CHECK}$"):
        task(client, required=True)


def test_required_project_may_be_among_those_that_the_service_left_out(sandbox: Sandbox, client: Client) -> None:
    sandbox.fault("unavailable_projects", ids=[BLOG["id"]], times=None)
    with pytest.raises(ClouddbError) as error:
        task(client, name="shop-blog", required=True)
    assert str(error.value).endswith(
        f"The project list is incomplete. The service could not include: {BLOG['id']}. Try again later."
    )
    assert error.value.details == {"name": "shop-blog", "unavailable_project_ids": [BLOG["id"]]}


@large_account
def test_similar_names_are_those_of_all_pages(sandbox: Sandbox, client: Client) -> None:
    last = sandbox.api("GET", "/projects?limit=400")["projects"][-1]
    with pytest.raises(ClouddbError, match=f"project_id '{last['id']}'"):
        task(client, project_id=f"{last['id']}0", page_size=50, required=True)


def test_fields_reduce_each_project(client: Client) -> None:
    result = task(client, name="shop-blog", fields=["name", "id"])
    assert result["projects"] == [{"id": BLOG["id"], "name": "shop-blog"}]
    assert result["warnings"] == []


def test_a_field_that_no_project_has_is_a_warning(client: Client) -> None:
    [warning] = task(client, fields=["id", "regoin"])["warnings"]
    assert warning.startswith("fields: no item has 'regoin'. The fields are ")
    assert "region_id" in warning
    assert task(client, name="nothing", fields=["regoin"])["warnings"] == []


@pytest.mark.parametrize(
    "body",
    [
        [],
        {},
        {"projects": None},
        {"projects": {}},
        {"projects": ["p"]},
        {"projects": [{"name": "p"}]},
        {"projects": [{"id": 7}]},
        {"projects": [], "unavailable_project_ids": "p"},
    ],
    ids=str,
)
def test_malformed_response_raises(sandbox: Sandbox, client: Client, body: Any) -> None:
    sandbox.fault("status", status=200, body=body)
    with pytest.raises(UnexpectedResponse, match="GET /projects"):
        task(client)
