# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The states of a project's operations, fetched with few requests."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._http.errors import StatusError
from ansible_collections.clouddb.control.plugins.module_utils._operations.poll import (
    poll_operations,
)
from ansible_collections.clouddb.control.tests.unit.support.scripted_client import Scripted, Serve, page
from ansible_collections.clouddb.control.tests.unit.support.scripted_service import Reply, reply


def operation(name: str, status: str = "running", **fields: Any) -> dict[str, Any]:
    return {"id": name, "status": status, "created_at": "2026-11-21T07:00:00Z", **fields}


def listing(*names: str, cursor: str | None = None) -> Reply:
    return page("operations", [operation(name) for name in names], cursor)


def single(name: str) -> Reply:
    return reply({"operation": operation(name)})


def polled(served: Scripted, *names: str) -> list[str]:
    return [each["id"] for each in poll_operations(served.client, "p", names)]


def test_several_operations_on_one_page_are_one_request(serve: Serve) -> None:
    served = serve(listing("x", "b", "y", "a", cursor="1"))
    assert sorted(polled(served, "a", "b")) == ["a", "b"]
    assert served.targets == ["/projects/p/operations?limit=20"]


@pytest.mark.parametrize("number, limit", [(2, 20), (11, 22), (90, 100)])
def test_the_page_has_room_for_twice_as_many_up_to_a_hundred(serve: Serve, number: int, limit: int) -> None:
    names = [f"o{each}" for each in range(number)]
    served = serve(listing(*names, cursor="1"))
    assert polled(served, *names) == names
    assert served.requests[0].query == [("limit", str(limit))]


def test_fetches_the_next_page_while_pages_have_some_of_them(serve: Serve) -> None:
    served = serve(listing("a", "x", cursor="1"), listing("b", "c", cursor="2"))
    assert polled(served, "a", "b", "c") == ["a", "b", "c"]


def test_operations_missing_from_the_pages_are_fetched_one_by_one(serve: Serve) -> None:
    served = serve(listing("a", "x", cursor="1"), listing("y", cursor="2"), single("b"), single("c"))
    assert polled(served, "b", "a", "c") == ["a", "b", "c"]
    assert served.targets[2:] == ["/projects/p/operations/b", "/projects/p/operations/c"]


def test_an_error_of_the_list_is_raised_before_any_other_request(serve: Serve) -> None:
    served = serve(reply({}, 403))
    with pytest.raises(StatusError):
        polled(served, "a", "b")
    assert len(served.requests) == 1


@pytest.mark.parametrize("status", [401, 429])
def test_an_error_that_other_requests_would_meet_is_raised_at_once(serve: Serve, status: int) -> None:
    served = serve(reply({}, 500), single("a"), reply({}, status), api_retries=0)
    names = []
    with pytest.raises(StatusError) as error:
        for each in poll_operations(served.client, "p", ["a", "b", "c"]):
            names.append(each["id"])
    assert (names, error.value.status, len(served.requests)) == (["a"], status, 3)


@pytest.mark.parametrize("status", [500, 504])
def test_a_transient_error_is_raised_after_the_other_operations_were_polled(serve: Serve, status: int) -> None:
    served = serve(listing("x"), reply({}, status), single("b"), api_retries=0)
    names = []
    with pytest.raises(StatusError) as error:
        for each in poll_operations(served.client, "p", ["a", "b"]):
            names.append(each["id"])
    assert (names, error.value.status) == (["b"], status)
