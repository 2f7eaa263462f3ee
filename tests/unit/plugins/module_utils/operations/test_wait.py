# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waits for many operations in many projects, and with slow services."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.module_utils._http.errors import StatusError
from ansible_collections.clouddb.control.plugins.module_utils._http.session import Request
from ansible_collections.clouddb.control.plugins.module_utils._operations.wait import (
    poll_interval,
)
from ansible_collections.clouddb.control.plugins.module_utils._operations.wait_failure import WaitFailed
from ansible_collections.clouddb.control.plugins.module_utils._operations.wait_state import (
    OperationRef,
    UnfinishedOperations,
)
from ansible_collections.clouddb.control.tests.unit.plugins.module_utils.operations.simulated_service import (
    LIMITS,
    Service,
    finished_after,
    rate_limited,
    running,
    statuses,
    wait_for,
)
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import EPOCH, FakeClock


def test_each_poll_is_one_request_per_project(client: Client, service_of: Callable[..., Service]) -> None:
    service = service_of(finished_after(20), projects=10, operations=30)
    result = wait_for(client, service.refs).run()
    assert statuses(result) == {"finished": 300}
    assert [
        OperationRef(operation["project_id"], operation["id"]) for operation in result["operations"]
    ] == service.refs
    assert Counter(service.requests) == {
        f"/projects/project-{number}/operations": result["polls"] for number in range(10)
    }


# When the polls are sent


@pytest.mark.parametrize("timeout", [0.0, 7.3, 300])
@pytest.mark.parametrize("interval", [5.0, 1000.0])
def test_the_last_poll_is_at_the_deadline(
    client: Client, clock: FakeClock, service_of: Callable[..., Service], timeout: float, interval: float
) -> None:
    service = service_of(running)
    with pytest.raises(WaitFailed):
        wait_for(client, service.refs, LIMITS, interval=interval, timeout=timeout).run()
    assert clock.elapsed == pytest.approx(timeout)
    assert len(clock.pauses) == len(service.requests) - 1
    assert clock.pauses[:-1] == pytest.approx([poll_interval(polls, interval) for polls in range(1, len(clock.pauses))])


@pytest.mark.parametrize(
    ("retry_after", "pauses"), [(25.0, [25, 25, 10]), (0.001, [0.2, 0.2, 0.2])], ids=["longer", "shorter"]
)
def test_retry_after_can_only_lengthen_an_interval(
    client: Client, clock: FakeClock, service_of: Callable[..., Service], retry_after: float, pauses: list[float]
) -> None:
    service = service_of(running)

    def refuse(path: str) -> None:
        refusal = StatusError("too many requests", Request("GET", path, ""), 1, 429)
        refusal.retry_after = retry_after
        raise refusal

    service.refuse = refuse
    with pytest.raises(WaitFailed):
        wait_for(client, service.refs).run()
    assert clock.pauses[:3] == pytest.approx(pauses)
    assert sum(clock.pauses) == pytest.approx(60)


# The deadline


@pytest.mark.parametrize("seconds", [0.4, 1000.0], ids=lambda seconds: f"{seconds:g} s each")
@pytest.mark.parametrize("operations", [1, 5])
def test_slow_responses_do_not_delay_the_deadline(
    client: Client, clock: FakeClock, service_of: Callable[..., Service], operations: int, seconds: float
) -> None:
    service = service_of(running, operations=operations, seconds=seconds)
    with pytest.raises(WaitFailed) as error:
        wait_for(client, service.refs).run()
    assert 60 <= clock.elapsed <= 61.001
    assert len(error.value.result["pending_ids"]) == operations


def test_an_operation_that_finishes_during_the_last_poll_is_recorded(
    client: Client, service_of: Callable[..., Service]
) -> None:
    service = service_of(finished_after(60.05), seconds=0.1)
    assert statuses(wait_for(client, service.refs).run()) == {"finished": 1}


def test_a_long_history_does_not_delay_the_deadline(
    client: Client, clock: FakeClock, service_of: Callable[..., Service]
) -> None:
    service_of(running, operations=20000, seconds=0.9)
    with pytest.raises(WaitFailed):
        wait_for(client, UnfinishedOperations("project-0", 0)).run()
    assert clock.elapsed <= 61.001


def test_after_a_429_the_rest_of_the_poll_is_not_sent(
    client: Client, clock: FakeClock, service_of: Callable[..., Service]
) -> None:
    service = service_of(running, projects=10, operations=2)
    rate_limited(service, clock, requests=3)
    with pytest.raises(WaitFailed) as error:
        wait_for(client, service.refs, LIMITS._replace(workers=1)).run()
    assert len(service.requests) == 4 * error.value.result["polls"]
    assert (error.value.details["status"], statuses(error.value.result)) == (429, {"running": 20})


def test_an_operation_that_is_deleted_during_the_wait_aborts_it(
    client: Client, clock: FakeClock, service_of: Callable[..., Service]
) -> None:
    service = service_of(
        lambda name, elapsed: "failed" if name == "p1-op2" and elapsed > 5 else "running", projects=2, operations=3
    )
    service.refuse = lambda path: service.delete("p0-op1") if clock.elapsed > 10 else None
    with pytest.raises(WaitFailed) as error:
        wait_for(client, service.refs, LIMITS._replace(failed_grace=30.0)).run()
    assert 10 < clock.elapsed < 17
    assert (error.value.kind, error.value.details["path"]) == ("not_found", "/projects/project-0/operations/p0-op1")
    assert error.value.result["failed_ids"] == []
    assert len(error.value.result["pending_ids"]) == 6
    assert [operation["status"] for operation in error.value.result["operations"]] == ["running"] * 5 + ["failed"]


# All unfinished operations of a project


def at(seconds: float) -> str:
    """The timestamp of C(seconds) after the call."""
    return (EPOCH + timedelta(seconds=seconds)).isoformat()
