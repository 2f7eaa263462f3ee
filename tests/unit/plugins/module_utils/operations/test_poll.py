# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The states of a project's operations, found out with as few requests as can be."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import NotFound, StatusError
from ansible_collections.clouddb.control.plugins.module_utils._operations.poll import (
    poll_operations,
    unfinished_operations,
)
from ansible_collections.clouddb.control.plugins.module_utils._operations.status import FAILED, PENDING, SUCCEEDED
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import EPOCH
from ansible_collections.clouddb.control.tests.unit.support.scripted_client import Scripted, Serve, page
from ansible_collections.clouddb.control.tests.unit.support.scripted_service import Reply, reply


def operation(name: str, status: str = "running", **fields: Any) -> dict[str, Any]:
    return {"id": name, "status": status, "created_at": "2026-11-21T07:00:00Z", **fields}


def listing(*names: str, cursor: str | None = None) -> Reply:
    return page("operations", [operation(name) for name in names], cursor)


def single(name: str) -> Reply:
    return reply({"operation": operation(name)})


def looked_at(served: Scripted, *names: str) -> list[str]:
    return [each["id"] for each in poll_operations(served.client, "p", names)]


def test_one_operation_is_fetched_by_its_id(serve: Serve) -> None:
    served = serve(single("a"))
    assert looked_at(served, "a") == ["a"]
    assert served.targets == ["/projects/p/operations/a"]


def test_no_operation_is_no_request(serve: Serve) -> None:
    served = serve()
    assert looked_at(served) == []
    assert served.requests == []


def test_several_that_a_page_covers_are_one_request(serve: Serve) -> None:
    served = serve(listing("x", "b", "y", "a", cursor="1"))
    assert sorted(looked_at(served, "a", "b")) == ["a", "b"]
    assert served.targets == ["/projects/p/operations?limit=20"]


@pytest.mark.parametrize("number, limit", [(2, 20), (10, 20), (11, 22), (50, 100), (51, 100), (90, 100)])
def test_the_page_has_room_for_twice_as_many_up_to_a_hundred(serve: Serve, number: int, limit: int) -> None:
    names = [f"o{each}" for each in range(number)]
    served = serve(listing(*names, cursor="1"))
    assert looked_at(served, *names) == names
    assert served.requests[0].query == [("limit", str(limit))]


def test_goes_on_to_the_next_page_while_pages_show_some(serve: Serve) -> None:
    served = serve(listing("a", "x", cursor="1"), listing("b", "c", cursor="2"))
    assert looked_at(served, "a", "b", "c") == ["a", "b", "c"]


def test_what_the_pages_do_not_show_is_fetched_one_by_one(serve: Serve) -> None:
    served = serve(listing("a", "x", cursor="1"), listing("y", cursor="2"), single("b"), single("c"))
    assert looked_at(served, "b", "a", "c") == ["a", "b", "c"]
    assert served.targets[2:] == ["/projects/p/operations/b", "/projects/p/operations/c"]


def test_old_operations_cost_one_request_more_and_not_all_of_the_history(serve: Serve) -> None:
    served = serve(listing("x", "y", cursor="1"), single("a"), single("b"))
    assert looked_at(served, "a", "b") == ["a", "b"]


def test_an_operation_named_twice_is_looked_at_once(serve: Serve) -> None:
    served = serve(single("a"))
    assert looked_at(served, "a", "a") == ["a"]


def test_keeps_every_field(serve: Serve) -> None:
    sent = operation("a", "failed", error="no room", later=1)
    assert list(poll_operations(serve(reply({"operation": sent})).client, "p", ["a"])) == [sent]


def test_an_operation_that_does_not_exist_is_told(serve: Serve) -> None:
    with pytest.raises(NotFound):
        looked_at(serve(listing("a"), reply({}, 404)), "a", "b")


def test_a_fault_of_the_list_is_not_hidden_by_fetching_one_by_one(serve: Serve) -> None:
    served = serve(reply({}, 403))
    with pytest.raises(StatusError):
        looked_at(served, "a", "b")
    assert len(served.requests) == 1


# Unfinished ones


@pytest.mark.parametrize(
    "status, unfinished",
    [
        ("scheduling", True),
        ("running", True),
        ("cancelling", True),
        ("a new status", True),
        ("finished", False),
        ("skipped", False),
        ("failed", False),
        ("error", False),
        ("cancelled", False),
    ],
)
def test_every_status_that_is_no_end_is_unfinished(serve: Serve, status: str, unfinished: bool) -> None:
    served = serve(page("operations", [operation("a", status)]))
    assert bool(unfinished_operations(served.client, "p", 0)) is unfinished


def test_no_status_means_two_things() -> None:
    assert not (SUCCEEDED & FAILED or SUCCEEDED & PENDING or FAILED & PENDING)


def aged(hours: float, status: str = "running") -> dict[str, Any]:
    return operation(f"{hours}h", status, created_at=(EPOCH - timedelta(hours=hours)).isoformat())


def test_lookback_ends_the_reading(serve: Serve) -> None:
    served = serve(
        page("operations", [aged(1), aged(2, "finished")], "1"), page("operations", [aged(3), aged(25)], "2")
    )
    assert [each["id"] for each in unfinished_operations(served.client, "p", 86400)] == ["1h", "3h"]


def test_without_lookback_all_of_the_history_counts(serve: Serve) -> None:
    served = serve(page("operations", [aged(1)], "1"), page("operations", [aged(9000)]))
    assert [each["id"] for each in unfinished_operations(served.client, "p", 0)] == ["1h", "9000h"]


def test_lookback_counts_by_the_clock_of_the_service(serve: Serve) -> None:
    response = page(
        "operations", [aged(1), aged(3)], Date=(EPOCH - timedelta(hours=2)).strftime("%a, %d %b %Y %H:%M:%S GMT")
    )
    assert [each["id"] for each in unfinished_operations(serve(response).client, "p", 3600)] == ["1h", "3h"]


@pytest.mark.parametrize(
    "fields, counts",
    [
        ({"updated_at": (EPOCH - timedelta(seconds=60)).isoformat()}, True),
        ({"updated_at": (EPOCH - timedelta(seconds=60.001)).isoformat()}, False),
        ({"updated_at": "yesterday"}, False),
        ({"updated_at": None}, False),
        ({}, False),
    ],
    ids=["just within", "just before", "no timestamp", "null", "missing"],
)
def test_a_recent_failure_counts_when_its_time_is_known(serve: Serve, fields: dict[str, Any], counts: bool) -> None:
    served = serve(page("operations", [operation("a", "failed", **fields)]))
    assert bool(unfinished_operations(served.client, "p", 0, failed_within=60)) is counts
