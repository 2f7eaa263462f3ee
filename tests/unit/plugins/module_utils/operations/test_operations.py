# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A project's operations: newest first, and no page fetched that the selection does not need."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._http.errors import NotFound, UnexpectedResponse
from ansible_collections.clouddb.control.plugins.module_utils._operations.operations import (
    Selection,
    find_operations,
    get_operation,
    list_operations,
    newest_first,
    summary,
)
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import EPOCH
from ansible_collections.clouddb.control.tests.unit.support.scripted_client import Serve, page
from ansible_collections.clouddb.control.tests.unit.support.scripted_service import Reply, reply


def operation(age_in_hours: float, **fields: Any) -> dict[str, Any]:
    """An operation of this age at EPOCH, after which it is named."""
    created_at = (EPOCH - timedelta(hours=age_in_hours)).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "id": f"{age_in_hours}h",
        "status": "finished",
        "action": "start_compute",
        "created_at": created_at,
        **fields,
    }


def operations(*hours: float, cursor: str | None = None, **fields: Any) -> Reply:
    return page("operations", [operation(age, **fields) for age in hours], cursor)


def listed(serve: Serve, *script: Reply, page_size: int = 100, **selection: Any) -> list[str]:
    found = list_operations(serve(*script).client, "p_1", Selection(**selection), page_size)
    return [each["id"] for each in found]


def test_reads_all_pages_of_the_project(serve: Serve) -> None:
    served = serve(operations(1, 2, cursor="a b"), operations(3, cursor="c"), operations(cursor="d"))
    assert [each["id"] for each in list_operations(served.client, "p_1", Selection(), 2)] == ["1h", "2h", "3h"]
    assert served.targets == [
        "/projects/p_1/operations?limit=2",
        "/projects/p_1/operations?limit=2&cursor=a+b",
        "/projects/p_1/operations?limit=2&cursor=c",
    ]


def test_newest_come_first_even_when_the_pages_overlap(serve: Serve) -> None:
    assert listed(serve, operations(2, 1, cursor="1"), operations(1, 3, 2.5)) == ["1h", "2h", "2.5h", "3h"]


def test_an_operation_without_a_readable_timestamp_comes_last() -> None:
    ordered = newest_first(
        [{"id": "none"}, {"id": "null", "created_at": None}, {"id": "bad", "created_at": "soon"}, operation(5)]
    )
    assert [each["id"] for each in ordered] == ["5h", "none", "null", "bad"]


# Selecting


def test_fetches_no_more_pages_than_max_results_needs(serve: Serve) -> None:
    # The script has no third page: the service would respond 599 to a third request.
    assert listed(serve, operations(1, 2, cursor="1"), operations(3, 4, cursor="2"), max_results=3) == [
        "1h",
        "2h",
        "3h",
    ]


@pytest.mark.parametrize("created_after", [timedelta(hours=2), EPOCH - timedelta(hours=2)])
def test_fetches_no_more_pages_than_created_after_needs(serve: Serve, created_after: Any) -> None:
    script = operations(0.5, 1, cursor="1"), operations(1.5, 2, 2.1, cursor="2")
    assert listed(serve, *script, created_after=created_after) == ["0.5h", "1h", "1.5h", "2h"]


@pytest.mark.parametrize("hours_off", [-7, 1])
def test_an_age_is_measured_by_the_clock_of_the_service(serve: Serve, hours_off: int) -> None:
    service_time = EPOCH + timedelta(hours=hours_off)
    ages = (-hours_off + 0.5, -hours_off + 1.5, -hours_off + 2.5)
    response = page(
        "operations", [operation(age) for age in ages], Date=service_time.strftime("%a, %d %b %Y %H:%M:%S GMT")
    )
    assert listed(serve, response, created_after=timedelta(hours=2)) == [f"{age}h" for age in ages[:2]]


@pytest.mark.parametrize("created_at", [None, "soon"])
def test_with_created_after_an_unreadable_timestamp_is_an_error(serve: Serve, created_at: Any) -> None:
    response = page("operations", [operation(1), operation(2, id="odd", created_at=created_at)])
    with pytest.raises(UnexpectedResponse):
        listed(serve, response, created_after=timedelta(hours=24))


# One operation


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        {"operation": []},
        {"operation": {"id": "o", "status": None}},
        {"operation": {"id": 7, "status": "running"}},
        {"operation": {"id": "another", "status": "running"}},
    ],
)
def test_a_response_about_another_operation_is_an_error(serve: Serve, body: Any) -> None:
    with pytest.raises(UnexpectedResponse):
        get_operation(serve(reply(body)).client, "p", "o")


def test_an_unknown_operation_of_a_known_project_is_an_empty_list(serve: Serve) -> None:
    served = serve(reply({}, 404), page("operations", []))
    assert find_operations(served.client, "p", ["o"], 1) == []
    assert served.requests[1].query == [("limit", "1")]


def test_an_operation_of_an_unknown_project_is_not_found(serve: Serve) -> None:
    with pytest.raises(NotFound):
        find_operations(serve(reply({}, 404), reply({}, 404)).client, "p", ["o"], 1)


def test_operations_of_another_project_are_refused(serve: Serve) -> None:
    other = {"id": "a", "project_id": "other", "status": "running"}
    with pytest.raises(UnexpectedResponse):
        get_operation(serve(reply({"operation": other})).client, "p", "a")
    with pytest.raises(UnexpectedResponse):
        list_operations(serve(reply({"operations": [other]})).client, "p", Selection())


def test_the_names_in_a_summary_hold_no_templates() -> None:
    assert summary([{"status": "{{ x }}", "action": ["{%"]}]) == {
        "total": 1,
        "by_status": {"{ { x }}": 1},
        "by_action": {"['{ %']": 1},
    }
    assert summary([{"status": "{{ x }}"}, {"status": "{ { x }}"}])["by_status"] == {"{ { x }}": 2}
