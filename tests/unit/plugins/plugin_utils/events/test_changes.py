# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What has changed since the last poll, and how far a poll reads."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._http.errors import UnexpectedResponse
from ansible_collections.clouddb.control.plugins.plugin_utils._events.changes import (
    Change,
    FollowedProject,
    OperationPoll,
    read_operations,
)
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import EPOCH
from ansible_collections.clouddb.control.tests.unit.support.scripted_client import Serve, page
from ansible_collections.clouddb.control.tests.unit.support.scripted_service import reply


def operation(number: int, status: str = "finished", **fields: Any) -> dict[str, Any]:
    """The operation C(o<number>), created C(number) minutes after EPOCH."""
    created_at = (EPOCH + timedelta(minutes=number)).isoformat()
    return {"id": f"o{number}", "status": status, "action": "apply_config", "created_at": created_at, **fields}


def project_of(new_since: datetime | None) -> FollowedProject:
    return FollowedProject({"id": "p"}, new_since)


def seen_operations(*operations: dict[str, Any]) -> FollowedProject:
    """As they are after a first poll that has read these operations."""
    seen = project_of(None)
    for each in operations:
        seen.remember(each)
    return seen


def report(
    seen: FollowedProject, *operations: dict[str, Any], unread_before: Any = None
) -> list[tuple[str, str | None, str]]:
    """Report all changes of a poll that has read these; id, previous status and status of each."""
    result = OperationPoll(list(operations), [], unread_before)
    changes = seen.changes(result)
    for change in changes:
        seen.remember(change.operation, change.number)
    seen.complete(result, 0.0)
    return [
        (change.operation["id"], change.previous and change.previous.status, change.operation["status"])
        for change in changes
    ]


def test_first_poll_reports_only_new_operations() -> None:
    seen = project_of(EPOCH)
    assert report(seen, operation(-2, "running"), operation(-1), operation(0)) == [("o0", None, "finished")]
    assert report(seen, operation(-2, "failed"), operation(-1), operation(0)) == [("o-2", "running", "failed")]


def test_unknown_operation_is_new_after_the_first_poll() -> None:
    seen = project_of(EPOCH)
    report(seen, operation(-3))
    assert report(seen, operation(-3), operation(-2)) == [("o-2", None, "finished")]


def test_operations_not_read_by_the_first_poll_are_not_reported() -> None:
    seen = project_of(EPOCH)
    report(seen, operation(-5), unread_before=EPOCH - timedelta(minutes=5))
    assert report(seen, operation(-7), operation(-6)) == []


def test_forgotten_operations_are_not_reported_again() -> None:
    seen = seen_operations(operation(0, "running"))
    many = [operation(number) for number in range(1, 151)]
    assert len(report(seen, *many)) == len(many)
    assert len(seen.remembered) == 101
    assert seen.forgotten_until == EPOCH + timedelta(minutes=50)
    assert report(seen, operation(0, "running"), *many) == []
    assert seen.unfinished() == ["o0"]


def test_operation_with_an_unknown_status_is_unfinished() -> None:
    assert seen_operations(operation(1), operation(2, "failed"), operation(3, "unheard_of")).unfinished() == ["o3"]


def test_poll_stops_at_a_seen_operation(serve: Serve) -> None:
    served = serve(page("operations", [operation(3), operation(2), operation(1)], "c"))
    result = read_operations(served.client, seen_operations(operation(2), operation(1)))
    assert [each["id"] for each in result.operations] == ["o1", "o2", "o3"]
    assert result.unread_before == EPOCH + timedelta(minutes=1)
    assert served.targets == ["/projects/p/operations?limit=50"]


def test_poll_reads_more_pages_while_all_operations_are_new(serve: Serve) -> None:
    served = serve(
        page("operations", [operation(4), operation(3)], "c"), page("operations", [operation(2), operation(1)], "d")
    )
    result = read_operations(served.client, seen_operations(operation(1)))
    assert [each["id"] for each in result.operations] == ["o1", "o2", "o3", "o4"]


def test_few_unlisted_operations_are_fetched_one_by_one(serve: Serve) -> None:
    served = serve(
        page("operations", [operation(9)], "c"), reply({"operation": operation(1, "failed")}), reply({}, 404)
    )
    result = read_operations(
        served.client, seen_operations(operation(1, "running"), operation(2, "running"), operation(9))
    )
    assert [each["id"] for each in result.operations] == ["o1", "o9"]
    assert result.missing_ids == ["o2"]
    assert served.targets[1:] == ["/projects/p/operations/o1", "/projects/p/operations/o2"]


def test_first_poll_reads_operations_of_the_day_before() -> None:
    seen = project_of(EPOCH)
    assert (seen.is_reached(operation(-24 * 60)), seen.is_reached(operation(-24 * 60 - 1))) == (False, True)


@pytest.mark.parametrize("created_at", [None, "yesterday"])
def test_operation_without_created_at_is_unexpected(serve: Serve, created_at: Any) -> None:
    served = serve(page("operations", [operation(1, created_at=created_at)]))
    with pytest.raises(UnexpectedResponse, match="created_at"):
        read_operations(served.client, project_of(EPOCH))


@pytest.mark.parametrize("before", [[], [operation(1, "running")]])
def test_reverted_change_is_found_again(before: list[dict[str, Any]]) -> None:
    seen = seen_operations(*before)
    result = OperationPoll([operation(1, "failed")], [], None)
    (change,) = seen.changes(result)
    seen.remember(change.operation, change.number)
    assert seen.changes(result) == []
    seen.revert(change)
    assert seen.changes(result) == [change] == [Change(operation(1, "failed"), change.previous)]
    assert (change.previous and change.previous.status) == ("running" if before else None)


def test_an_operation_is_forgotten_once_the_service_lacks_it_for_some_seconds() -> None:
    seen = seen_operations(operation(1, "running"))
    missing = OperationPoll([], ["o1"], None)
    assert not seen.complete(missing, 100.0)
    assert not seen.complete(missing, 104.9)
    assert not seen.complete(OperationPoll([], [], None), 106.0), "it is there again"
    assert not seen.complete(missing, 107.0)
    assert seen.unfinished() == ["o1"]
    assert seen.complete(missing, 112.0)
    assert seen.remembered == {}


def test_an_older_status_of_a_stale_replica_is_no_change() -> None:
    def at(status: str, minute: int) -> dict[str, Any]:
        return operation(1, status, updated_at=(EPOCH + timedelta(minutes=minute)).isoformat())

    seen = seen_operations(at("running", 2))
    assert report(seen, at("failed", 3)) == [("o1", "running", "failed")]
    assert report(seen, at("running", 2)) == []
    assert report(seen, at("failed", 3)) == []
    assert report(seen, at("running", 4)) == [("o1", "failed", "running")]


def test_only_the_latest_operations_with_an_unknown_status_are_polled(serve: Serve) -> None:
    seen = seen_operations(*[operation(number, "unheard_of") for number in range(-1, 15)], operation(99))
    assert seen.unfinished() == [f"o{number}" for number in range(5, 15)]
    old = seen_operations(operation(-3000, "unheard_of"), operation(99))
    served = serve(page("operations", [operation(99)], "c"))
    served.client.service_now = lambda: EPOCH  # type: ignore[method-assign]
    assert read_operations(served.client, old).missing_ids == []
    assert len(served.targets) == 1


def test_many_operations_with_an_unknown_status_are_forgotten() -> None:
    seen = seen_operations()
    report(seen, *[operation(number, "unheard_of") for number in range(300)])
    assert len(seen.remembered) == 110


def test_a_change_has_the_same_number_after_a_crash() -> None:
    """Whatever happened to C(updated_at) meanwhile, and another one when the status comes back."""
    seen = project_of(EPOCH)
    report(seen, operation(-1, "running", updated_at=EPOCH.isoformat()))
    saved = seen.as_json()
    numbers = []
    for minute in (1, 2):
        again = FollowedProject.from_json("p", saved)
        updated_at = (EPOCH + timedelta(minutes=minute)).isoformat()
        [change] = again.changes(OperationPoll([operation(-1, "failed", updated_at=updated_at)], [], None))
        numbers.append(change.number)
        again.remember(change.operation, change.number)
    assert numbers[0] == numbers[1]
    other = project_of(EPOCH)
    report(other, operation(-1, "running", updated_at=(EPOCH + timedelta(minutes=1)).isoformat()))
    [change] = other.changes(OperationPoll([operation(-1, "failed")], [], None))
    assert change.number != numbers[0], "another change, which a source without a state file meets first"
    later = (EPOCH + timedelta(minutes=3)).isoformat()
    for status in ("running", "failed"):
        [change] = again.changes(OperationPoll([operation(-1, status, updated_at=later)], [], None))
        again.remember(change.operation, change.number)
    assert change.number == numbers[0] + 2
