# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Projects of the account: paging, filters, query parameters, and the warning about an incomplete list."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import InvalidOption
from ansible_collections.clouddb.control.plugins.module_utils._http.errors import UnexpectedResponse
from ansible_collections.clouddb.control.plugins.module_utils._projects import Filters, checked_query, list_projects
from ansible_collections.clouddb.control.tests.unit.support.scripted_client import Serve, page
from ansible_collections.clouddb.control.tests.unit.support.scripted_service import reply

SHOP = {
    "id": "shop-1",
    "name": "shop",
    "region_id": "aws-eu-central-1",
    "pg_version": 17,
    "unknown today": {"is": "kept"},
}
BLOG = {"id": "blog-1", "name": "blog", "region_id": "aws-eu-central-1"}


def test_incomplete_list_warns_with_the_ids_of_all_pages(serve: Serve) -> None:
    first = reply({"projects": [SHOP], "unavailable_project_ids": ["lost-1", "lost-2"], "pagination": {"cursor": "1"}})
    second = reply({"projects": [BLOG], "unavailable_project_ids": ["lost-2", "lost-3"]})
    found = list_projects(serve(first, second).client, Filters(name="shop"))
    assert found.items == [SHOP]
    assert found.unavailable_ids == ["lost-1", "lost-2", "lost-3"]
    [warning] = found.warnings
    assert "lost-1, lost-2, lost-3" in warning


def test_project_that_another_page_lists_is_not_missing(serve: Serve) -> None:
    """Whether the filters match it or not, and whichever page is first."""
    first = reply(
        {"projects": [SHOP], "unavailable_project_ids": [BLOG["id"], "lost-1"], "pagination": {"cursor": "1"}}
    )
    second = reply({"projects": [BLOG], "unavailable_project_ids": [SHOP["id"]]})
    found = list_projects(serve(first, second).client, Filters(name="shop"))
    assert found.items == [SHOP]
    assert found.unavailable_ids == ["lost-1"]


@pytest.mark.parametrize("ids", ["lost-1", {"lost-1": 1}, [7], ["../x"]])
def test_malformed_unavailable_project_ids_raise(serve: Serve, ids: Any) -> None:
    with pytest.raises(UnexpectedResponse):
        list_projects(serve(reply({"projects": [], "unavailable_project_ids": ids})).client)


@pytest.mark.parametrize(
    "query, sent",
    [
        (None, []),
        ({"org_id": "o 1", "search": "a&b"}, [("org_id", "o 1"), ("search", "a&b")]),
        ({"number": 7, "deleted": True, "locked": False}, [("number", "7"), ("deleted", "true"), ("locked", "false")]),
        ({"tag": ["a", "b", 3]}, [("tag", "a"), ("tag", "b"), ("tag", "3")]),
    ],
)
def test_query_parameters_are_sent(serve: Serve, query: Any, sent: list[tuple[str, str]]) -> None:
    served = serve(page("projects", []))
    list_projects(served.client, query=checked_query({"query": query}))
    assert served.requests[0].query == sent


@pytest.mark.parametrize("query", [None, {}, {"org_id": "org-1"}])
def test_the_organization_is_sent_once(query: dict[str, Any] | None) -> None:
    assert checked_query({"query": query, "org_id": "org-1"}) == {"org_id": ["org-1"]}


def test_two_organizations_raise() -> None:
    with pytest.raises(InvalidOption, match="CLOUDDB_ORG_ID"):
        checked_query({"query": {"org_id": "org-2"}, "org_id": "org-1"})


@pytest.mark.parametrize(
    "query", [{"limit": 5}, {"cursor": "1"}, {"tag": {"a": 1}}, {"tag": None}, {"tag": ["a", None]}], ids=str
)
def test_invalid_query_raises(query: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption) as error:
        checked_query({"query": query})
    assert error.value.details == {"option": "query"}
