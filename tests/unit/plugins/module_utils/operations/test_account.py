# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A function's results for all projects, several projects at a time."""

from __future__ import annotations

import weakref
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._http.errors import NotFound, StatusError
from ansible_collections.clouddb.control.plugins.module_utils._http.response import Response
from ansible_collections.clouddb.control.plugins.module_utils._http.session import Request
from ansible_collections.clouddb.control.plugins.module_utils._operations.operations import (
    Selection,
    count_operations,
    list_operations,
    map_account,
    map_projects,
    summed,
)
from ansible_collections.clouddb.control.tests.unit.support.scripted_client import Scripted, Serve, page
from ansible_collections.clouddb.control.tests.unit.support.scripted_service import Reply, reply


def operations(*ids: str, cursor: str | None = None) -> Reply:
    return page("operations", [{"id": each, "status": "finished"} for each in ids], cursor)


def listed(served: Scripted, query: Any = None) -> tuple[list[list[str]], list[str]]:
    """The ids of the operations of each project, one project after the other, and the warnings."""

    def ids_of(project_id: str) -> list[str]:
        return [each["id"] for each in list_operations(served.client, project_id, Selection())]

    return map_account(served.client, ids_of, 1, query)


def test_projects_that_are_deleted_meanwhile_are_left_out_with_a_warning(serve: Serve) -> None:
    """Also one that is deleted between two pages."""
    projects = page("projects", [{"id": each} for each in ("a", "gone-1", "b", "gone-2")])
    last = [operations("1", cursor="1"), reply({}, 404)]
    found, [warning] = listed(serve(projects, operations("a"), reply({}, 404), operations("b"), *last))
    assert found == [["a"], ["b"]]
    assert warning.endswith(": gone-1, gone-2.")


def test_any_other_error_is_raised(serve: Serve) -> None:
    with pytest.raises(StatusError):
        listed(serve(page("projects", [{"id": "a"}, {"id": "b"}]), operations("a"), reply({}, 403)))
    with pytest.raises(NotFound):
        listed(serve(reply({}, 404)))


def test_counting_keeps_no_more_than_two_pages_in_memory(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    class Item(dict[str, str]):
        """A dictionary to which weak references are possible."""

    fetched: list[weakref.ref[Item]] = []
    most = 0

    def get(*segments: str, query: Any = None) -> Response:
        nonlocal most
        most = max(most, sum(item() is not None for item in fetched))
        number = int(query.get("cursor", 0))
        items = [Item(id=f"{number}-{index}", status="finished") for index in range(10)] if number < 5 else []
        fetched.extend(map(weakref.ref, items))
        return Response({"operations": items, "pagination": {"cursor": str(number + 1)}}, Request("GET", "/", ""))

    client = serve().client
    monkeypatch.setattr(client, "get", get)
    counts, _warnings = map_projects(
        [f"p{number}" for number in range(20)], lambda each: count_operations(client, each, Selection(), 10), 1
    )
    assert summed(counts.values())["total"] == len(fetched) == 1000
    assert 0 < most <= 20


def test_projects_that_the_service_could_not_list_are_a_warning(serve: Serve) -> None:
    _found, [warning] = listed(serve(reply({"projects": [], "unavailable_project_ids": ["lost-1"]})))
    assert "lost-1" in warning
