# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waits for many operations in many projects, and with slow services."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from threading import Barrier

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import StatusError
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
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
    failed,
    finished_after,
    rate_limited,
    running,
    statuses,
    unavailable,
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


def test_more_operations_than_fit_on_a_page_are_read_page_by_page(
    client: Client, service_of: Callable[..., Service]
) -> None:
    service = service_of(finished_after(0), operations=250)
    assert statuses(wait_for(client, service.refs).run()) == {"finished": 250}
    assert service.requests == ["/projects/project-0/operations"] * 3


def test_operations_far_down_the_list_are_fetched_one_by_one(
    client: Client, service_of: Callable[..., Service]
) -> None:
    service = service_of(finished_after(0), operations=1000)
    wait_for(client, service.refs[-3:]).run()
    assert service.requests == [
        "/projects/project-0/operations",
        *(f"/projects/project-0/operations/p0-op{number}" for number in (997, 998, 999)),
    ]


def test_an_operation_that_is_not_in_the_list_yet_is_fetched_by_its_id(
    client: Client, service_of: Callable[..., Service]
) -> None:
    service = service_of(finished_after(0), operations=3)
    service.unlisted.add("p0-op1")
    assert statuses(wait_for(client, service.refs).run()) == {"finished": 3}
    assert service.requests == ["/projects/project-0/operations", "/projects/project-0/operations/p0-op1"]


def test_the_message_describes_at_most_twenty_failed_operations(
    client: Client, service_of: Callable[..., Service]
) -> None:
    service = service_of(failed, operations=27)
    with pytest.raises(WaitFailed) as error:
        wait_for(client, service.refs).run()
    message = str(error.value)
    assert message.startswith("27 of 27 operations failed: start_compute p0-op0 of project-0 is failed; ")
    assert message.count("is failed") == 20
    assert message.endswith("; and 7 more (see operations).")
    assert len(error.value.result["failed_ids"]) == len(error.value.result["operations"]) == 27


def test_the_message_describes_at_most_twenty_unfinished_operations(
    client: Client, service_of: Callable[..., Service]
) -> None:
    service = service_of(running, projects=3, operations=7)
    with pytest.raises(WaitFailed) as error:
        wait_for(client, service.refs).run()
    message = str(error.value)
    assert message.startswith("Timed out after 60 s with 21 of 21 operations unfinished: ")
    assert message.count("is running") == 20
    assert "; and 1 more (see operations). Unfinished operations continue" in message
    assert len(error.value.result["pending_ids"]) == 21


def test_as_many_projects_as_workers_are_polled_in_parallel(client: Client, service_of: Callable[..., Service]) -> None:
    together = Barrier(4)

    def status(name: str, elapsed: float) -> str:
        together.wait(60)
        return "finished"

    service = service_of(status, projects=4)
    assert statuses(wait_for(client, service.refs).run()) == {"finished": 4}


# When the polls are sent


def test_the_first_poll_intervals_are_well_under_a_second() -> None:
    assert [poll_interval(polls, 5) for polls in (1, 2, 3)] == pytest.approx([0.2, 0.3, 0.45])


def test_poll_intervals_grow_to_interval() -> None:
    intervals = [poll_interval(polls, 5) for polls in range(1, 100_000)]
    assert intervals == sorted(intervals)
    assert intervals.index(5) == 8
    assert intervals[-1] == 5


@pytest.mark.parametrize("longest", [0.05, 0.2, 0.21])
def test_a_short_interval_limits_even_the_first(longest: float) -> None:
    assert poll_interval(1, longest) == pytest.approx(min(0.2, longest))
    assert poll_interval(9, longest) == longest


@pytest.mark.parametrize("timeout", [0.1, 1, 7.0, 7.3, 300])
@pytest.mark.parametrize("interval", [5.0, 1000.0])
def test_the_last_poll_is_at_the_deadline(
    client: Client, clock: FakeClock, service_of: Callable[..., Service], timeout: float, interval: float
) -> None:
    service = service_of(running)
    with pytest.raises(WaitFailed):
        wait_for(client, service.refs, LIMITS._replace(interval=interval), timeout).run()
    assert clock.elapsed == pytest.approx(timeout)
    assert len(clock.pauses) == len(service.requests) - 1
    assert clock.pauses[:-1] == pytest.approx([poll_interval(polls, interval) for polls in range(1, len(clock.pauses))])


def test_without_time_there_is_one_poll(client: Client, clock: FakeClock, service_of: Callable[..., Service]) -> None:
    service = service_of(running)
    with pytest.raises(WaitFailed):
        wait_for(client, service.refs, timeout=0.0).run()
    assert (len(service.requests), clock.pauses) == (1, [])


@pytest.mark.parametrize(
    ("retry_after", "pauses"), [(25.0, [25, 25, 10]), (0.001, [0.2, 0.3, 0.45])], ids=["longer", "shorter"]
)
def test_retry_after_can_only_lengthen_an_interval(
    client: Client, clock: FakeClock, service_of: Callable[..., Service], retry_after: float, pauses: list[float]
) -> None:
    service = service_of(running)

    def refuse(path: str) -> None:
        refusal = StatusError("too many requests", "GET", path, 1, "", 429, {})
        refusal.retry_after = retry_after
        raise refusal

    service.refuse = refuse
    with pytest.raises(WaitFailed):
        wait_for(client, service.refs).run()
    assert clock.pauses[:3] == pytest.approx(pauses)
    assert sum(clock.pauses) == pytest.approx(60)


def test_time_that_passes_between_two_readings_of_the_clock_is_never_slept_negatively(
    client: Client, clock: FakeClock, service_of: Callable[..., Service]
) -> None:
    service = service_of(finished_after(20))

    def monotonic() -> float:
        clock.elapsed += 0.15
        return clock.elapsed

    client.clock = clock.clock._replace(monotonic=monotonic)
    wait_for(client, service.refs, LIMITS._replace(interval=0.2)).run()
    assert len(service.requests) > 10
    assert min(clock.pauses, default=0.0) >= 0


# The deadline


@pytest.mark.parametrize("seconds", [0.4, 2.0, 20.0, 1000.0], ids=lambda seconds: f"{seconds:g} s each")
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


def test_on_a_timeout_an_operation_within_failed_grace_counts_as_failed(
    client: Client, service_of: Callable[..., Service]
) -> None:
    service = service_of(lambda name, elapsed: "failed" if elapsed >= 60 else "running")
    with pytest.raises(
        WaitFailed, match="^Timed out after 60 s, within failed_grace, with 1 of 1 operation failed: "
    ) as error:
        wait_for(client, service.refs, LIMITS._replace(failed_grace=30.0)).run()
    assert (error.value.result["failed_ids"], error.value.result["pending_ids"]) == (["p0-op0"], [])


def test_a_poll_is_due_at_the_end_of_failed_grace(
    client: Client, clock: FakeClock, service_of: Callable[..., Service]
) -> None:
    service = service_of(lambda name, elapsed: "failed" if elapsed >= 60 else "running")
    with pytest.raises(WaitFailed, match="1 of 1 operation failed"):
        wait_for(client, service.refs, LIMITS._replace(interval=300.0, failed_grace=10.0), timeout=900.0).run()
    first_failed = sum(clock.pauses[:-1])
    assert first_failed >= 60
    assert clock.elapsed == pytest.approx(first_failed + 10, abs=0.01)


def test_an_operation_that_is_retried_within_failed_grace_is_polled_at_its_end(
    client: Client, clock: FakeClock, service_of: Callable[..., Service]
) -> None:
    service = service_of(lambda name, elapsed: "failed" if elapsed < 3 else "running" if elapsed < 20 else "finished")
    result = wait_for(client, service.refs, LIMITS._replace(interval=300.0, failed_grace=4.0), timeout=900.0).run()
    assert statuses(result) == {"finished": 1}


def test_the_end_of_failed_grace_does_not_shorten_retry_after(
    client: Client, clock: FakeClock, service_of: Callable[..., Service]
) -> None:
    service = service_of(failed)

    def refuse(path: str) -> None:
        if len(service.requests) == 2:
            refusal = StatusError("too many requests", "GET", path, 1, "", 429, {})
            refusal.retry_after = 25.0
            raise refusal

    service.refuse = refuse
    with pytest.raises(WaitFailed, match="1 of 1 operation failed"):
        wait_for(client, service.refs, LIMITS._replace(failed_grace=10.0)).run()
    assert clock.pauses == pytest.approx([0.2, 25.0])


@pytest.mark.parametrize("seconds", [0.4, 0.9, 20.0, 1000.0])
def test_many_projects_do_not_delay_the_deadline(
    client: Client, clock: FakeClock, service_of: Callable[..., Service], seconds: float
) -> None:
    service = service_of(running, projects=40, seconds=seconds)
    with pytest.raises(WaitFailed):
        wait_for(client, service.refs, LIMITS._replace(workers=1)).run()
    assert clock.elapsed <= 61.001 + 0.001 * 40


@pytest.mark.parametrize("seconds", [0.1, 0.9])
def test_operations_far_down_the_list_do_not_delay_the_deadline(
    client: Client, clock: FakeClock, service_of: Callable[..., Service], seconds: float
) -> None:
    service = service_of(running, operations=1000, seconds=seconds)
    with pytest.raises(WaitFailed):
        wait_for(client, service.refs[-40:]).run()
    assert clock.elapsed <= 61.001


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
    with pytest.raises(WaitFailed, match="The last poll met an error: .*429") as error:
        wait_for(client, service.refs, LIMITS._replace(workers=1)).run()
    assert len(service.requests) == 4 * error.value.result["polls"]
    assert {operation["status"] for operation in error.value.result["operations"]} == {"running"}


def test_an_operation_that_is_deleted_during_the_wait_aborts_it(
    client: Client, clock: FakeClock, service_of: Callable[..., Service]
) -> None:
    def status(name: str, elapsed: float) -> str:
        if elapsed > 10:
            service.deleted.add("p0-op1")
        return "failed" if name == "p1-op2" and elapsed > 5 else "running"

    service = service_of(status, projects=2, operations=3)
    with pytest.raises(
        WaitFailed, match="aborted by an error that retrying cannot fix: .*/projects/project-0/operations/p0-op1.$"
    ) as error:
        wait_for(client, service.refs, LIMITS._replace(failed_grace=30.0)).run()
    assert 10 < clock.elapsed < 17
    assert error.value.as_result()["failure"]["kind"] == "not_found"
    assert error.value.result["failed_ids"] == []
    assert len(error.value.result["pending_ids"]) == 6
    assert [operation["status"] for operation in error.value.result["operations"]] == ["running"] * 5 + ["failed"]


# All unfinished operations of a project


def at(seconds: float) -> str:
    """The timestamp of C(seconds) after the call."""
    return (EPOCH + timedelta(seconds=seconds)).isoformat()


def test_lookback_counts_from_the_call(client: Client, clock: FakeClock, service_of: Callable[..., Service]) -> None:
    service = service_of(finished_after(40), operations=2)
    service.fields = lambda name: {"created_at": at(-5 if name == "p0-op0" else -10.1)}
    service.refuse = unavailable(lambda: clock.elapsed >= 12)
    result = wait_for(client, UnfinishedOperations("project-0", 10)).run()
    assert [operation["id"] for operation in result["operations"]] == ["p0-op0"]


def test_an_operation_that_fails_while_the_first_list_is_fetched_is_reported(
    client: Client, service_of: Callable[..., Service]
) -> None:
    service = service_of(lambda name, elapsed: "failed" if elapsed >= 2 else "running", seconds=4.0)
    service.fields = lambda name: {"updated_at": at(2)}
    with pytest.raises(WaitFailed, match="1 of 1 operation failed"):
        wait_for(client, UnfinishedOperations("project-0", 0)).run()


@pytest.mark.parametrize("failed_at", [-1, -0.1, 0])
def test_a_failure_immediately_before_the_call_does_not_count(
    client: Client, service_of: Callable[..., Service], failed_at: float
) -> None:
    service = service_of(failed, seconds=0.5)
    service.fields = lambda name: {"updated_at": at(failed_at)}
    client._service_ahead = timedelta(seconds=-0.999)
    assert wait_for(client, UnfinishedOperations("project-0", 0)).run()["operations"] == []


@pytest.mark.parametrize("date", [0.0, -0.999], ids=["exact", "a second late"])
@pytest.mark.parametrize(
    ("updated_at", "reported"),
    [(at(0.5), True), ("2026-11-21T08:00:00Z", True), (at(-2), False), (at(-3600), False)],
    ids=["after the call", "whole seconds", "before the call", "long before the call"],
)
def test_a_failure_counts_if_it_is_not_older_than_the_call(
    client: Client, clock: FakeClock, service_of: Callable[..., Service], updated_at: str, reported: bool, date: float
) -> None:
    """A Date header is in whole seconds, so that the time of the service seems to be up to a second earlier."""
    clock.elapsed = 0.2
    service = service_of(failed, seconds=1.5)
    service.fields = lambda name: {"updated_at": updated_at}
    client._service_ahead = timedelta(seconds=date)
    wait = wait_for(client, UnfinishedOperations("project-0", 0))
    if reported:
        with pytest.raises(WaitFailed, match="1 of 1 operation failed"):
            wait.run()
    else:
        assert wait.run()["operations"] == []
