# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waits in several runs of the module, each of which resumes from the state of the previous one."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.module_utils._operations.wait import (
    Limits,
    StopWhen,
    Wait,
)
from ansible_collections.clouddb.control.plugins.module_utils._operations.wait_failure import WaitFailed
from ansible_collections.clouddb.control.plugins.module_utils._operations.wait_state import (
    OperationRef,
    UnfinishedOperations,
    WaitState,
)
from ansible_collections.clouddb.control.tests.unit.plugins.module_utils.operations.simulated_service import (
    LIMITS,
    Service,
    finished_after,
    new_state,
    rate_limited,
    running,
    statuses,
    wait_for,
)
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import FakeClock


def in_runs(
    client: Client,
    clock: FakeClock,
    wanted: list[OperationRef] | UnfinishedOperations,
    limits: Limits = LIMITS,
    startup_seconds: float = 0.0,
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Wait in several runs, each as if by a process that takes C(startup_seconds) seconds to start; all changes and the last result."""
    changes: list[dict[str, Any]] = []
    state, limits = new_state(client, wanted), limits._replace(stop_when=StopWhen(min_seconds=2.0, max_seconds=10.0))
    while True:
        result = Wait(client, limits, state).run()
        changes += result.pop("_changes")
        saved = result.pop("_state", None)
        if saved is None:
            return changes, result
        clock.elapsed += startup_seconds
        state = WaitState.from_json(client.clock, json.loads(json.dumps(saved)))


def test_several_runs_have_the_same_result_as_one(
    client: Client, clock: FakeClock, service_of: Callable[..., Service]
) -> None:
    service = service_of(
        lambda name, elapsed: "finished" if elapsed >= (5 if name == "p0-op0" else 33) else "dreaming", operations=2
    )
    changes, result = in_runs(client, clock, service.refs)
    assert [(change["id"], change["previous_status"], change["status"]) for change in changes] == [
        ("p0-op0", "dreaming", "finished"),
        ("p0-op1", "dreaming", "finished"),
    ]
    first, second = (change["elapsed"] for change in changes)
    assert 5 <= first <= 10 and 33 <= second <= 38
    assert first == round(first, 3) != round(first)  # to the millisecond
    assert len(result["warnings"]) == 1
    clock.elapsed = 0.0
    assert result == wait_for(client, service.refs).run()


def test_runs_share_the_deadline_and_failed_grace(
    client: Client, clock: FakeClock, service_of: Callable[..., Service]
) -> None:
    service = service_of(lambda name, elapsed: "failed" if elapsed >= 5 else "running")
    with pytest.raises(WaitFailed) as error:
        in_runs(client, clock, service.refs, LIMITS._replace(failed_grace=25.0))
    assert error.value.result["failed_ids"] == ["p0-op0"]
    assert 30 <= clock.elapsed <= 36


@pytest.mark.parametrize("startup_seconds", [0.0, 4.9])
def test_the_time_between_runs_counts_and_the_last_poll_is_at_the_deadline(
    client: Client, clock: FakeClock, service_of: Callable[..., Service], startup_seconds: float
) -> None:
    service = service_of(finished_after(59.5))
    _changes, result = in_runs(client, clock, service.refs, startup_seconds=startup_seconds)
    assert statuses(result) == {"finished": 1}
    service_of(running)
    clock.elapsed = 0.0
    with pytest.raises(WaitFailed) as error:
        in_runs(client, clock, service.refs, startup_seconds=startup_seconds)
    assert (error.value.result["elapsed"], error.value.result["pending_ids"]) == (pytest.approx(60), ["p0-op0"])
    assert clock.elapsed == pytest.approx(60)


def test_a_state_that_is_resumed_after_the_deadline_times_out(
    client: Client, clock: FakeClock, service_of: Callable[..., Service]
) -> None:
    service = service_of(running, seconds=0.1)
    with pytest.raises(WaitFailed) as error:
        in_runs(client, clock, service.refs, startup_seconds=3600.0)
    assert error.value.result["elapsed"] > 3600
    assert statuses(error.value.result) == {"running": 1}


def test_requests_of_a_later_run_end_a_second_after_the_deadline_at_most(
    client: Client, clock: FakeClock, service_of: Callable[..., Service]
) -> None:
    service = service_of(running)
    state = new_state(client, service.refs)
    clock.elapsed = 20.0
    Wait(client, LIMITS._replace(stop_when=StopWhen(0.0, 0.0)), state).run()
    assert service.remaining() == 41.0


@pytest.mark.parametrize(("timeout", "returns"), [(5.0, True), (4.9, False)])
def test_a_run_returns_early_if_five_seconds_remain(
    client: Client, service_of: Callable[..., Service], timeout: float, returns: bool
) -> None:
    wait = wait_for(client, service_of(running).refs, timeout=timeout, stop_when=StopWhen(0.0, 0.0))
    if returns:
        assert wait.run()["_state"]["remaining"] == timeout
    else:
        with pytest.raises(WaitFailed) as error:
            wait.run()
        assert error.value.result["elapsed"] == timeout


def test_the_changes_of_a_failed_run_are_returned(client: Client, service_of: Callable[..., Service]) -> None:
    service = service_of(lambda name, elapsed: "failed" if elapsed >= 1 else "running")
    with pytest.raises(WaitFailed) as error:
        wait_for(client, service.refs, stop_when=StopWhen(2.0, 10.0)).run()
    assert [change["status"] for change in error.value.result["_changes"]] == ["failed"]
    assert "_state" not in error.value.result


def test_unfinished_operations_are_listed_once(
    client: Client, clock: FakeClock, service_of: Callable[..., Service]
) -> None:
    service = service_of(
        lambda name, elapsed: "finished" if elapsed >= 30 or name != "p0-op1" else "running", operations=3
    )
    _changes, result = in_runs(client, clock, UnfinishedOperations("project-0", 0))
    assert [operation["id"] for operation in result["operations"]] == ["p0-op1"]
    assert service.requests[0] == "/projects/project-0/operations"
    assert set(service.requests[1:]) == {"/projects/project-0/operations/p0-op1"}


@pytest.mark.parametrize("several_runs", [False, True], ids=["one run", "several runs"])
def test_under_a_rate_limit_every_operation_of_a_project_is_polled_in_turn(
    client: Client, clock: FakeClock, service_of: Callable[..., Service], several_runs: bool
) -> None:
    """Three hundred of one project, none of which is among the newest ones, and one of another project."""
    service = service_of(
        lambda name, elapsed: "failed" if elapsed >= 1 and name == "p0-op380" else "running", projects=2, operations=400
    )
    rate_limited(service, clock, requests=40)
    refs = [*service.refs[100:400], service.refs[400]]
    limits = LIMITS._replace(workers=1)
    with pytest.raises(WaitFailed) as error:
        if several_runs:
            in_runs(client, clock, refs, limits)
        else:
            wait_for(client, refs, limits).run()
    assert error.value.result["failed_ids"] == ["p0-op380"]
    assert clock.elapsed <= 20


def test_retry_after_is_honored_by_the_next_run(
    client: Client, clock: FakeClock, service_of: Callable[..., Service]
) -> None:
    service = service_of(running, projects=10)
    rate_limited(service, clock, requests=3)
    limits = LIMITS._replace(workers=1, stop_when=StopWhen(min_seconds=2.0, max_seconds=2.0))
    saved = wait_for(client, service.refs, limits).run()["_state"]
    assert {project_id for project_id, _id, _moment in saved["recorded_at"]} == {
        f"project-{number}" for number in range(9)
    }
    assert clock.pauses == [1.0, 1.0]
    Wait(client, limits, WaitState.from_json(client.clock, saved)).run()
    assert clock.pauses == [1.0, 1.0, 1.0, 1.0]


def test_a_run_ends_between_two_polls_that_are_far_apart(
    client: Client, clock: FakeClock, service_of: Callable[..., Service]
) -> None:
    service = service_of(finished_after(400))
    limits = LIMITS._replace(timeout=900.0, interval=300.0, stop_when=StopWhen(min_seconds=2.0, max_seconds=60.0))
    runs = [wait_for(client, service.refs, limits).run()]
    while "_state" in runs[-1]:
        runs.append(Wait(client, limits, WaitState.from_json(client.clock, runs[-1]["_state"])).run())
    # A minute each. The polls are those of a single run.
    assert [run["elapsed"] for run in runs[:-1]] == [60.0 * number for number in range(1, len(runs))]
    requests, pauses = len(service.requests), len(clock.pauses)
    assert pauses > requests
    service.requests.clear()
    clock.elapsed = 0.0
    result = wait_for(client, service.refs, limits, stop_when=None).run()
    assert len(service.requests) == requests
    assert result["elapsed"] == pytest.approx(runs[-1]["elapsed"])


def test_a_restart_of_the_machine_between_runs_does_not_reset_the_elapsed_time(
    client: Client, clock: FakeClock, service_of: Callable[..., Service]
) -> None:
    service = service_of(running)
    saved = wait_for(client, service.refs, stop_when=StopWhen(2.0, 10.0)).run()["_state"]
    # The monotonic clock starts at 0 again.
    clock.elapsed -= 900
    assert WaitState.from_json(client.clock, saved).elapsed() == pytest.approx(saved["elapsed"])


def test_a_run_with_a_change_ends_after_min_seconds_even_if_no_poll_is_due(
    client: Client, clock: FakeClock, service_of: Callable[..., Service]
) -> None:
    service = service_of(
        lambda name, elapsed: "running" if name == "p0-op0" or elapsed < 0.4 else "finished", operations=2
    )
    result = wait_for(client, service.refs, interval=300.0, stop_when=StopWhen(20.0, 60.0)).run()
    assert [change["id"] for change in result["_changes"]] == ["p0-op1"]
    assert result["elapsed"] == 20.0


def test_other_threads_may_record_operations_while_a_404_is_classified(client: Client) -> None:
    refs = [OperationRef("proj-1", f"op-{number}") for number in range(3)]
    state = new_state(client, refs)
    state.record(refs[0], {"id": "op-0", "status": "running"})

    class Path(str):
        def endswith(self, *suffix: Any) -> bool:
            state.record(refs[1], {"id": "op-1", "status": "running"})
            return super().endswith(*suffix)

    assert state.may_be_unknown(Path("/projects/proj-1/operations/op-2"))
    assert not state.may_be_unknown(Path("/projects/proj-1/operations/op-1"))
