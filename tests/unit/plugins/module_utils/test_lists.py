# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Resources are found by their names with few requests, whatever the service makes of search, and never in incomplete lists."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils import _projects
from ansible_collections.clouddb.control.plugins.module_utils._errors import ClouddbError
from ansible_collections.clouddb.control.plugins.module_utils._http.errors import StatusError
from ansible_collections.clouddb.control.plugins.module_utils._lists import Listed, search_named
from ansible_collections.clouddb.control.plugins.module_utils._options import NOT_CREATED_ID
from ansible_collections.clouddb.control.tests.unit.support.scripted_client import Scripted, Serve, page
from ansible_collections.clouddb.control.tests.unit.support.scripted_service import Reply, reply

SHOP = {"id": "wispy-lake-12345678", "name": "shop"}
BLOG = {"id": "red-moon-34567890", "name": "shop-blog"}
OTHER = {"id": "calm-hill-23456789", "name": "other"}
DEV = page("branches", [{"id": "br-2", "name": "dev"}])


def projects(*items: dict[str, Any], **fields: Any) -> Reply:
    return reply({"projects": list(items), **fields})


def search(served: Scripted, name: str, **query: str) -> Listed:
    return search_named(served.client, ("projects",), "projects", name, query)


def searches(served: Scripted) -> list[str | None]:
    """What each request searches for."""
    return [dict(request.query).get("search") for request in served.requests]


@pytest.mark.parametrize(
    "name, script, sent",
    [
        ("shop", [projects(SHOP, BLOG)], ["shop"]),
        # Nothing of exactly this name: the complete list has the names that are near.
        ("Sho", [projects(SHOP, BLOG), projects(SHOP, BLOG, OTHER)], ["Sho", None]),
        ("shpo", [projects(), projects(SHOP, BLOG, OTHER)], ["shpo", None]),
        # A service that ignores the parameter, and one that refuses it.
        ("shpo", [projects(SHOP, BLOG, OTHER)], ["shpo"]),
        ("shop", [reply({"message": "too short"}, 400)] * 2 + [projects(SHOP, OTHER)], ["shop", "shop", None]),
        # By the id.
        (SHOP["id"], [projects(SHOP)], [SHOP["id"]]),
    ],
)
def test_a_name_takes_few_requests(serve: Serve, name: str, script: list[Reply], sent: list[str | None]) -> None:
    served = serve(*script)
    listed = search(served, name, org_id="org-1")
    assert searches(served) == sent
    assert all(dict(request.query)["org_id"] == "org-1" for request in served.requests)
    is_there = name in SHOP.values()
    assert (name in listed.names or any(item["id"] == name for item in listed.items)) is is_there
    assert is_there or OTHER["name"] in listed.names


def test_a_search_of_the_user_is_not_replaced(serve: Serve) -> None:
    served = serve(projects(SHOP))
    search(served, "shop", search="sh")
    assert searches(served) == ["sh"]


def test_a_list_without_search_is_read(serve: Serve) -> None:
    served = serve(reply({"databases": [{"name": "app"}, {"name": "orders"}]}))
    assert search_named(served.client, ("projects", "p", "databases"), "databases", "app").names == {"app", "orders"}
    assert served.requests[0].query == []


@pytest.mark.parametrize("check_mode", [False, True], ids=["real", "check mode"])
@pytest.mark.parametrize("found", [[SHOP], []], ids=["found", "missing"])
def test_an_incomplete_list_decides_nothing_by_name(serve: Serve, found: list[Any], check_mode: bool) -> None:
    script = [projects(*found, unavailable_project_ids=["lost-1"])] * (1 if found else 2)
    with pytest.raises(ClouddbError) as error:
        _projects.project_id_from({"project": "shop"}, serve(*script).client, may_be_missing=check_mode)
    assert (error.value.kind, error.value.details["unavailable_project_ids"]) == ("incomplete_list", ["lost-1"])


def test_what_looks_like_an_id_may_be_a_name(serve: Serve) -> None:
    served = serve(reply({}, 404), projects({"id": "p-1", "name": BLOG["id"]}))
    assert _projects.project_id_from({"project": BLOG["id"]}, served.client, may_be_missing=False) == "p-1"


def test_the_branches_show_whether_a_project_has_the_id(serve: Serve) -> None:
    options = {"project": BLOG["id"], "branch": "dev"}
    assert _projects.branch_from(options, serve(DEV).client, may_be_missing=False) == (BLOG["id"], "br-2")
    served = serve(*[reply({}, 404)] * 2, projects({"id": "p-1", "name": BLOG["id"]}), DEV)
    assert _projects.branch_from(options, served.client, may_be_missing=False) == ("p-1", "br-2")


def test_two_organizations_are_refused_before_a_request(serve: Serve) -> None:
    params = {"project": "shop", "org_id": "org-1", "query": {"org_id": "org-2"}}
    with pytest.raises(ClouddbError, match="CLOUDDB_ORG_ID"):
        _projects.project_id_from(params, serve().client, may_be_missing=False)


def test_a_missing_organization_is_one_request(serve: Serve) -> None:
    served = serve(reply({"message": "org_id is required"}, 400))
    with pytest.raises(StatusError):
        search(served, "shop")
    assert len(served.requests) == 1


@pytest.mark.parametrize(
    "branch, branches",
    [
        ("dev", DEV),
        ("br-2", DEV),
        # The default branch ends the list.
        (None, page("branches", [{"id": "br-1"}, {"id": "br-2", "default": True}], "more")),
    ],
)
def test_a_branch_takes_one_request(serve: Serve, branch: str | None, branches: Reply) -> None:
    assert _projects.branch_id_from(branch, serve(branches).client, "p", may_be_missing=False) == "br-2"


def test_the_few_that_there_are_are_named(serve: Serve) -> None:
    branches = page("branches", [{"id": "br-1", "name": "main"}, {"id": "br-2", "name": "stage"}, {"id": "br-3"}])
    with pytest.raises(ClouddbError, match="parent: there is no branch 'xyz'\\. There are: main, stage\\."):
        _projects.branch_id_from("xyz", serve(branches).client, "p", may_be_missing=False, option="parent")


@pytest.mark.parametrize("name, text", [("dev", "there is no branch 'dev'"), (None, "project p has no default branch")])
def test_a_resource_without_an_id_is_none(serve: Serve, name: str | None, text: str) -> None:
    branches = page("branches", [{"name": "dev", "default": True}])
    with pytest.raises(ClouddbError, match=text):
        _projects.branch_id_from(name, serve(branches).client, "p", may_be_missing=False)


NO_ORGANIZATIONS = reply({}, 403)  # as with the key of an organization


@pytest.mark.parametrize("shown", [reply({"id": "org-1"}), reply({}, 403)], ids=["shown", "forbidden"])
def test_an_organization_that_there_is_may_have_no_projects(serve: Serve, shown: Reply) -> None:
    served = serve(projects(), NO_ORGANIZATIONS, shown)
    assert _projects.list_projects(served.client, query={"org_id": "org-1"}).items == []
    assert served.targets[1:] == ["/users/me/organizations", "/organizations/org-1"]


@pytest.mark.parametrize(
    "script, advice",
    [
        ([reply({"organizations": [{"id": "org-2"}]})], "Set org_id to one of: org-2."),
        ([NO_ORGANIZATIONS, reply({}, 404)], "Check org_id, and base_url. "),
        ([reply({"organizations": [{"name": "a"}]}), reply({}, 404)], "Check org_id, and base_url. "),
    ],
)
def test_an_organization_that_is_not_there_is_an_error(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, script: list[Reply], advice: str
) -> None:
    monkeypatch.setenv(_projects.ORGANIZATION_VARIABLE, "org-9")  # which is not where this one comes from
    with pytest.raises(ClouddbError, match=f"^org_id: there is no organization org-1, or .* {advice}") as error:
        _projects.list_projects(serve(projects(), *script).client, query={"org_id": "org-1"})
    assert error.value.details == {"option": "org_id"}


def test_an_organization_that_cannot_be_looked_up_for_a_moment_is_an_error(serve: Serve) -> None:
    served = serve(projects(), NO_ORGANIZATIONS, reply({}, 503), api_retries=0)
    with pytest.raises(StatusError, match="503"):
        _projects.list_projects(served.client, query={"org_id": "org-1"})


@pytest.mark.parametrize("status, message", [(403, "org_id is not allowed"), (400, "name is too long")])
def test_only_an_error_about_a_missing_organization_names_them(serve: Serve, status: int, message: str) -> None:
    served = serve(reply({"message": message}, status))
    with pytest.raises(StatusError) as error:
        served.client.get("projects")
    before = str(error.value)
    _projects.add_organizations(error.value, served.client)
    assert (str(error.value), len(served.requests)) == (before, 1)


def test_an_empty_variable_of_the_environment_is_no_organization(monkeypatch: pytest.MonkeyPatch) -> None:
    """AWX sets all variables of a credential."""
    monkeypatch.setenv(_projects.ORGANIZATION_VARIABLE, "")
    read, arguments = _projects.ORGANIZATION_OPTIONS["org_id"]["fallback"]
    assert read(*arguments) is None


def test_the_organization_is_named_once() -> None:
    message = str(
        _projects.no_project(
            Listed([], [], [], set()), _projects.ProjectFilter(name="x"), {"org_id": "org-1", "tag": "a"}
        )
    )
    assert message.startswith("There is no project with name 'x' and query tag=a in the organization org-1 (org_id).")


def test_a_project_that_does_not_exist_yet_takes_no_request(serve: Serve) -> None:
    assert _projects.list_projects(serve().client, _projects.ProjectFilter(NOT_CREATED_ID)).items == []


@pytest.mark.parametrize("project_id, is_name", [(SHOP["id"], False), ("shop", True)])
def test_what_may_be_a_name_is_no_id(project_id: str, is_name: bool) -> None:
    error = _projects.no_project(Listed([], [], [], set()), _projects.ProjectFilter(project_id), {})
    assert ("If this is the name of a project, set name." in str(error)) is is_name
