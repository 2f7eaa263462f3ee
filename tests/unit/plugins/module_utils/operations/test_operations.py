# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The operations of projects: newest first, with no page fetched that nobody needs, and of many projects; and the list of projects."""

from __future__ import annotations

import weakref
from contextlib import nullcontext
from datetime import timedelta
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import InvalidOption
from ansible_collections.clouddb.control.plugins.module_utils._http.errors import (
    NotFound,
    StatusError,
    UnexpectedResponse,
)
from ansible_collections.clouddb.control.plugins.module_utils._http.message import Request
from ansible_collections.clouddb.control.plugins.module_utils._http.response import Response
from ansible_collections.clouddb.control.plugins.module_utils._operations import operations as ops
from ansible_collections.clouddb.control.plugins.module_utils._projects import (
    ProjectFilter,
    checked_query,
    list_projects,
)
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import EPOCH
from ansible_collections.clouddb.control.tests.unit.support.scripted_client import Scripted, Serve, page
from ansible_collections.clouddb.control.tests.unit.support.scripted_service import Reply, reply


def operation(age_in_hours: float, **fields: Any) -> dict[str, Any]:
    """An operation of this age at EPOCH, after which it is named."""
    created_at = (EPOCH - timedelta(hours=age_in_hours)).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"id": f"{age_in_hours}h", "status": "finished", "action": "start", "created_at": created_at, **fields}


def operations(*hours: float, cursor: str | None = None, **fields: Any) -> Reply:
    return page("operations", [operation(age, **fields) for age in hours], cursor)


def listed(serve: Serve, *script: Reply, page_size: int = 100, **selection: Any) -> list[str]:
    found = ops.list_operations(serve(*script).client, "p_1", ops.Selection(**selection), page_size)
    return [each["id"] for each in found]


def test_newest_come_first_even_when_the_pages_overlap(serve: Serve) -> None:
    assert listed(serve, operations(2, 1, cursor="1"), operations(1, 3, 2.5)) == ["1h", "2h", "2.5h", "3h"]


def test_an_operation_without_a_readable_timestamp_comes_last() -> None:
    others = [{"id": "none"}, {"id": "null", "created_at": None}, {"id": "bad", "created_at": "soon"}]
    assert ops.newest_first([*others, operation(5)]) == [operation(5), *others]


# Selecting


@pytest.mark.parametrize(
    "selection, number",
    [
        ({"max_results": 3}, 3),
        *(({"created_after": since}, 4) for since in (timedelta(hours=2), EPOCH - timedelta(hours=2))),
    ],
)
def test_fetches_no_more_pages_than_it_needs(serve: Serve, selection: dict[str, Any], number: int) -> None:
    # The script has no third page: the service would respond 599 to a third request.
    script = operations(0.5, 1, cursor="1"), operations(1.5, 2, 2.1, cursor="2")
    assert listed(serve, *script, **selection) == ["0.5h", "1h", "1.5h", "2h"][:number]


@pytest.mark.parametrize("hours_off", [-7, 1])
def test_an_age_is_measured_by_the_clock_of_the_service(serve: Serve, hours_off: int) -> None:
    date = (EPOCH + timedelta(hours=hours_off)).strftime("%a, %d %b %Y %H:%M:%S GMT")
    ages = (-hours_off + 0.5, -hours_off + 1.5, -hours_off + 2.5)
    response = page("operations", [operation(age) for age in ages], Date=date)
    assert listed(serve, response, created_after=timedelta(hours=2)) == [f"{age}h" for age in ages[:2]]


@pytest.mark.parametrize("created_at", [None, "soon"])
def test_with_created_after_an_unreadable_timestamp_is_an_error(serve: Serve, created_at: Any) -> None:
    response = page("operations", [operation(1), operation(2, id="odd", created_at=created_at)])
    with pytest.raises(UnexpectedResponse):
        listed(serve, response, created_after=timedelta(hours=24))


# One operation


OF_ANOTHER_PROJECT = {"id": "o", "project_id": "other", "status": "running"}


@pytest.mark.parametrize(
    "body",
    [
        *({}, [], {"operation": []}, {"operation": {"id": "o", "status": None}}),
        *({"operation": {"id": each, "status": "running"}} for each in (7, "another")),
        {"operation": OF_ANOTHER_PROJECT},
    ],
)
def test_a_response_about_another_operation_is_an_error(serve: Serve, body: Any) -> None:
    with pytest.raises(UnexpectedResponse):
        ops.get_operation(serve(reply(body)).client, "p", "o")


def test_a_list_with_operations_of_another_project_is_an_error(serve: Serve) -> None:
    with pytest.raises(UnexpectedResponse):
        listed(serve, reply({"operations": [OF_ANOTHER_PROJECT]}))


@pytest.mark.parametrize("is_project_known", [True, False])
def test_an_unknown_operation_is_an_error_only_if_its_project_is_unknown(serve: Serve, is_project_known: bool) -> None:
    served = serve(reply({}, 404), page("operations", []) if is_project_known else reply({}, 404))
    with nullcontext() if is_project_known else pytest.raises(NotFound):
        assert ops.find_operations(served.client, "p", ["o"], 1) == []
    assert served.requests[1].query == [("limit", "1")]


def test_the_names_in_a_summary_hold_no_templates() -> None:
    found = ops.summary([{"status": "{{ x }}", "action": ["{%"]}, {"status": "{ { x }}", "action": ["{%"]}])
    assert found == {"total": 2, "by_status": {"{ { x }}": 2}, "by_action": {"['{ %']": 2}}


# The states of some operations


def named(*names: str, cursor: str | None = None) -> Reply:
    return page("operations", [operation(1, id=name) for name in names], cursor)


def single(name: str) -> Reply:
    return reply({"operation": operation(1, id=name)})


@pytest.mark.parametrize("number, limit", [(2, 20), (11, 22), (90, 100)])
def test_several_operations_are_one_page_with_room_for_twice_as_many(serve: Serve, number: int, limit: int) -> None:
    """Up to a hundred."""
    names = [f"o{each}" for each in range(number)]
    served = serve(named("x", *names, "y", cursor="1"))
    assert [each["id"] for each in ops.poll_operations(served.client, "p", names)] == names
    assert served.targets == [f"/projects/p/operations?limit={limit}"]


@pytest.mark.parametrize(
    "script, found, status",
    [
        # The next page as long as pages have some of them, and the others one by one.
        ([named("a", "x", cursor="1"), named("b", "y"), single("c")], "abc", None),
        ([named("a", "x", cursor="1"), named("y", cursor="2"), single("b"), single("c")], "abc", None),
        ([named("a", "x"), single("b"), single("c")], "abc", None),
        # Nothing after an error of the list or one that others would get, but the others after a transient error.
        ([reply({}, 403)], "", 403),
        *(([reply({}, 500), single("b"), reply({}, status)], "b", status) for status in (401, 429)),
        *(([named("x"), reply({}, status), single("a"), single("c")], "ac", status) for status in (500, 504)),
    ],
)
def test_what_a_poll_requests(serve: Serve, script: list[Reply], found: str, status: int | None) -> None:
    served, polled = serve(*script, api_retries=0), []
    with pytest.raises(StatusError) if status else nullcontext() as error:
        polled.extend(each["id"] for each in ops.poll_operations(served.client, "p", ["b", "a", "c"]))
    assert (polled, error and error.value.status, len(served.requests)) == ([*found], status, len(script))


# All projects


def of_account(served: Scripted) -> tuple[list[list[str]], list[str]]:
    """The ids of the operations of each project, one project after the other, and of the projects that are missing."""

    def ids_of(project_id: str) -> list[str]:
        return [each["id"] for each in ops.list_operations(served.client, project_id, ops.Selection())]

    found, missing, warnings = ops.map_account(served.client, ids_of, 1, None)
    assert len(warnings) == bool(missing) and all(project_id in warnings[0] for project_id in missing)
    return found, missing


def test_projects_that_are_deleted_meanwhile_are_left_out_with_a_warning(serve: Serve) -> None:
    """Also one that is deleted between two pages."""
    projects = page("projects", [{"id": each} for each in ("a", "gone-1", "b", "gone-2")])
    last = [named("1", cursor="1"), reply({}, 404)]
    served = serve(projects, named("a"), reply({}, 404), named("b"), *last)
    assert of_account(served) == ([["a"], ["b"]], ["gone-1", "gone-2"])


def test_any_other_error_is_raised(serve: Serve) -> None:
    with pytest.raises(StatusError):
        of_account(serve(page("projects", [{"id": "a"}, {"id": "b"}]), named("a"), reply({}, 409)))
    with pytest.raises(NotFound):
        of_account(serve(reply({}, 404)))


def test_counting_keeps_no_more_than_two_pages_in_memory(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    class Item(dict[str, str]):
        """A dictionary to which weak references are possible."""

    fetched: list[weakref.ref[Item]] = []
    in_memory: list[int] = []

    def get(*segments: str, query: Any = None) -> Response:
        in_memory.append(sum(item() is not None for item in fetched))
        number = int(query.get("cursor", 0))
        items = [Item(id=f"{number}-{index}", status="finished") for index in range(10)] if number < 5 else []
        fetched.extend(map(weakref.ref, items))
        return Response({"operations": items, "pagination": {"cursor": str(number + 1)}}, Request("GET", "/", ""))

    client = serve().client
    monkeypatch.setattr(client, "get", get)
    project_ids = [f"p{number}" for number in range(20)]
    counts, _warnings = ops.map_projects(
        project_ids, lambda each: ops.count_operations(client, each, ops.Selection(), 10), 1
    )
    assert ops.summed(counts.values())["total"] == len(fetched) == 1000
    assert 0 < max(in_memory) <= 20


def test_projects_that_the_service_could_not_list_are_a_warning(serve: Serve) -> None:
    assert of_account(serve(reply({"projects": [], "unavailable_project_ids": ["lost-1"]}))) == ([], ["lost-1"])


# The list of projects: filters, query parameters, and the warning if it is incomplete


SHOP = {"id": "shop-1", "name": "shop", "pg_version": 17, "unknown today": {"is": "kept"}}
BLOG = {"id": "blog-1", "name": "blog"}


@pytest.mark.parametrize(
    "of_first_page, of_second_page, missing",
    [
        (["lost-1", "lost-2"], ["lost-2", "lost-3"], ["lost-1", "lost-2", "lost-3"]),
        # What another page lists is not missing, whether the filters match it or not, and whichever page is first.
        (["blog-1", "lost-1"], ["shop-1"], ["lost-1"]),
    ],
)
def test_an_incomplete_list_warns(serve: Serve, of_first_page: Any, of_second_page: Any, missing: list[str]) -> None:
    first = {"projects": [SHOP], "unavailable_project_ids": of_first_page, "pagination": {"cursor": "1"}}
    second = {"projects": [BLOG], "unavailable_project_ids": of_second_page}
    found = list_projects(serve(reply(first), reply(second)).client, ProjectFilter(name="shop"))
    assert (found.items, found.unavailable_ids) == ([SHOP], missing)
    [warning] = found.warnings
    assert ", ".join(missing) in warning


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
    served = serve(page("projects", [SHOP]))
    list_projects(served.client, query=checked_query({"query": query}))
    assert served.requests[0].query == [*sent, ("limit", "400")]


@pytest.mark.parametrize("query", [None, {}, {"org_id": "org-1"}])
def test_the_organization_is_sent_once(query: dict[str, Any] | None) -> None:
    assert checked_query({"query": query, "org_id": "org-1"}) == {"org_id": ["org-1"]}


@pytest.mark.parametrize(
    "query", [{"limit": 5}, {"cursor": "1"}, {"tag": {"a": 1}}, {"tag": None}, {"tag": ["a", None]}], ids=str
)
def test_invalid_query_raises(query: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption) as error:
        checked_query({"query": query})
    assert error.value.details == {"option": "query"}
