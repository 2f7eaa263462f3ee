# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The operations of all projects, several projects at a time."""

from __future__ import annotations

import threading
import weakref
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import NotFound, StatusError
from ansible_collections.clouddb.control.plugins.module_utils._fields import Fields
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.module_utils._http.response import Response
from ansible_collections.clouddb.control.plugins.module_utils._operations.account import (
    count_account_operations,
    list_account_operations,
)
from ansible_collections.clouddb.control.plugins.module_utils._operations.api import Selection
from ansible_collections.clouddb.control.tests.unit.support.scripted_client import Serve, page
from ansible_collections.clouddb.control.tests.unit.support.scripted_service import Reply, reply


def projects(*ids: str, **fields: Any) -> Reply:
    return reply({"projects": [{"id": project_id} for project_id in ids], **fields})


def operations(*ids_by_hour: str, cursor: str | None = None) -> Reply:
    """Operations named PROJECT-HOUR, created at that hour."""
    items = [{"id": each, "status": "finished", "created_at": f"2026-11-21T{each[-2:]}:00:00Z"} for each in ids_by_hour]
    return page("operations", items, cursor)


def listed(client: Client, workers: int = 1, page_size: int = 100, **selection: Any) -> list[str]:
    return [
        each["id"] for each in list_account_operations(client, Selection(**selection), page_size, workers).operations
    ]


def test_the_operations_of_all_projects_are_one_list_newest_first(serve: Serve) -> None:
    served = serve(
        projects("a", "b"), operations("a-09", "a-07", cursor="1"), operations("a-05"), operations("b-08", "b-06")
    )
    assert listed(served.client, page_size=2) == ["a-09", "b-08", "a-07", "b-06", "a-05"]
    assert served.targets == [
        "/projects",
        "/projects/a/operations?limit=2",
        "/projects/a/operations?limit=2&cursor=1",
        "/projects/b/operations?limit=2",
    ]


def test_max_results_are_the_newest_of_all(serve: Serve) -> None:
    served = serve(projects("a", "b"), operations("a-05", "a-04"), operations("b-09", "b-08"))
    assert listed(served.client, max_results=3) == ["b-09", "b-08", "a-05"]


def test_reads_every_page_of_the_project_list(serve: Serve) -> None:
    first = page("projects", [{"id": "a"}], "1")
    served = serve(first, projects("b"), operations("a-01"), operations("b-02"))
    assert listed(served.client) == ["b-02", "a-01"]


def test_an_account_without_projects_has_no_operations(serve: Serve) -> None:
    found = list_account_operations(serve(projects()).client, Selection(), 100, 4)
    assert (found.operations, found.warnings) == ([], [])


def test_a_project_that_is_deleted_meanwhile_is_left_out_with_a_warning(serve: Serve) -> None:
    served = serve(
        projects("a", "gone-1", "b", "gone-2"), operations("a-01"), reply({}, 404), operations("b-02"), reply({}, 404)
    )
    found = list_account_operations(served.client, Selection(), 100, 1)
    assert [each["id"] for each in found.operations] == ["b-02", "a-01"]
    [warning] = found.warnings
    assert "404" in warning
    assert warning.endswith("deleted while they were listed: gone-1, gone-2.")


def test_a_project_that_is_deleted_between_two_pages_is_left_out(serve: Serve) -> None:
    served = serve(projects("a"), operations("a-01", cursor="1"), reply({}, 404))
    found = list_account_operations(served.client, Selection(), 100, 1)
    assert (found.operations, len(found.warnings)) == ([], 1)


def test_projects_that_the_service_could_not_list_are_a_warning(serve: Serve) -> None:
    found = list_account_operations(serve(projects(unavailable_project_ids=["lost-1"])).client, Selection(), 100, 4)
    assert found.warnings == ["The project list is incomplete. The service could not include: lost-1. Try again later."]


@pytest.mark.parametrize("status", [401, 403, 500, 503])
def test_any_other_error_fails_the_list(serve: Serve, status: int) -> None:
    served = serve(projects("a", "b"), operations("a-01"), reply({}, status), api_retries=0)
    with pytest.raises(StatusError):
        listed(served.client)


def test_a_missing_project_list_is_an_error(serve: Serve) -> None:
    with pytest.raises(NotFound):
        listed(serve(reply({}, 404)).client)


def test_as_many_projects_as_workers_are_listed_in_parallel(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    together = threading.Barrier(3)

    def get(*segments: str, query: Any = None) -> Response:
        if segments == ("projects",):
            return Response({"projects": [{"id": project_id} for project_id in "abc"]}, "GET", "/projects", 1, "")
        together.wait(60)
        operation = {"id": segments[1], "status": "finished", "created_at": "2026-11-21T08:00:00Z"}
        return Response({"operations": [operation]}, "GET", "/" + "/".join(segments), 1, "")

    client = serve().client
    monkeypatch.setattr(client, "get", get)
    assert listed(client, workers=3) == ["a", "b", "c"]


def test_counting_returns_the_summary_and_the_warnings_of_the_list(serve: Serve) -> None:
    script = [projects("a", "gone", "b"), operations("a-01", "a-02"), reply({}, 404), operations("b-03")]
    counted = count_account_operations(serve(*script).client, Selection(), 100, 1)
    listed = list_account_operations(serve(*script).client, Selection(), 100, 1)
    assert counted.summary == {"total": 3, "by_status": {"finished": 3}, "by_action": {"None": 3}}
    assert counted.warnings == listed.warnings != []


def test_pages_have_the_requested_size_and_operations_the_requested_fields(serve: Serve) -> None:
    running = {"id": "1", "status": "running", "branch_id": "b", "created_at": "2026-11-21T08:00:00Z"}
    served = serve(projects("a"), page("operations", [running]), projects("a"), operations())
    [found] = list_account_operations(served.client, Selection(), 7, 1, Fields(["id"])).operations
    assert (found["id"], "branch_id" in found) == ("1", False)
    count_account_operations(served.client, Selection(), 7, 1)
    assert served.targets == ["/projects", "/projects/a/operations?limit=7"] * 2


def test_a_project_that_is_deleted_between_two_pages_is_not_counted(serve: Serve) -> None:
    served = serve(projects("a"), operations("a-01", cursor="1"), reply({}, 404))
    assert count_account_operations(served.client, Selection(), 100, 1).summary["total"] == 0


def test_counting_keeps_no_more_than_two_pages_in_memory(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    class Item(dict[str, str]):
        """A dictionary to which weak references are possible."""

    fetched: list[weakref.ref[Item]] = []
    most = 0

    def get(*segments: str, query: Any = None) -> Response:
        nonlocal most
        if segments == ("projects",):
            return Response({"projects": [{"id": f"p{number}"} for number in range(20)]}, "GET", "/projects", 1, "")
        most = max(most, sum(item() is not None for item in fetched))
        number = int(query.get("cursor", 0))
        items = [Item(id=f"{number}-{index}", status="finished") for index in range(10)] if number < 5 else []
        fetched.extend(map(weakref.ref, items))
        return Response({"operations": items, "pagination": {"cursor": str(number + 1)}}, "GET", "/", 1, "")

    client = serve().client
    monkeypatch.setattr(client, "get", get)
    assert count_account_operations(client, Selection(), 10, 1).summary["total"] == 1000
    assert len(fetched) == 1000
    assert 0 < most <= 20
