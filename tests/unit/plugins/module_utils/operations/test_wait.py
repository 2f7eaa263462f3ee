# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waits for many operations in many projects, with slow services, and in several runs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from threading import Barrier, Lock
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._clock import Deadline
from ansible_collections.clouddb.control.plugins.module_utils._errors import NotFound, ServiceUnreachable, StatusError
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.module_utils._http.connection import Connection
from ansible_collections.clouddb.control.plugins.module_utils._http.response import Response
from ansible_collections.clouddb.control.plugins.module_utils._operations.wait import (
    Limits,
    StopWhen,
    Wait,
    poll_interval,
)
from ansible_collections.clouddb.control.plugins.module_utils._operations.wait_failure import WaitFailed
from ansible_collections.clouddb.control.plugins.module_utils._operations.wait_state import (
    OperationRef,
    UnfinishedOperations,
    WaitState,
)
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import FakeClock

API_TIMEOUT = 30.0
TIMEOUT = 60.0
LIMITS = Limits(interval=5.0, failed_grace=0.0, workers=4)


class Service:
    """Responds to GET from a table of statuses, newest operation first; each response takes C(seconds) by the clock."""

    def __init__(
        self,
        clock: FakeClock,
        status: Callable[[str, float], str],
        projects: int = 1,
        operations: int = 1,
        seconds: float = 0.0,
    ):
        self.refs = [
            OperationRef(f"project-{project}", f"p{project}-op{number}")
            for project in range(projects)
            for number in range(operations)
        ]
        self.requests: list[str] = []
        self.unlisted: set[str] = set()
        self.deleted: set[str] = set()
        self.refuse: Callable[[str], None] = lambda path: None
        self.remaining: Callable[[], float] = lambda: 1e9
        self._clock = clock
        self._status = status
        self._seconds = seconds
        self._lock = Lock()

    def get(self, *segments: str | int, query: dict[str, Any] | None = None) -> Response:
        path = "/" + "/".join(map(str, segments))
        with self._lock:
            self.requests.append(path)
        self.refuse(path)
        limit = min(API_TIMEOUT, max(self.remaining(), 0.001))
        if self._seconds > limit:
            self._clock.elapsed += limit
            raise ServiceUnreachable("no answer within api_timeout", "GET", path, 1, "", sent=True, transient=True)
        self._clock.elapsed += self._seconds
        operations = [
            self._operation(ref) for ref in self.refs if ref.project_id == segments[1] and ref.id not in self.deleted
        ]
        if segments[-1] != "operations":
            operation = next((operation for operation in operations if operation["id"] == segments[-1]), None)
            if operation is None:
                raise NotFound(f"the service answered 404 Not Found to GET {path}", "GET", path, 1, "", 404, {})
            return Response({"operation": operation}, "GET", path, 1, "")
        begin = int((query or {}).get("cursor") or 0)
        end = begin + int((query or {})["limit"])
        pagination = {"pagination": {"cursor": str(end)}} if end < len(operations) else {}
        listed = [operation for operation in operations[begin:end] if operation["id"] not in self.unlisted]
        return Response({"operations": listed, **pagination}, "GET", path, 1, "")

    def _operation(self, ref: OperationRef) -> dict[str, Any]:
        status = self._status(ref.id, self._clock.elapsed)
        return {**ref._asdict(), "action": "start_compute", "status": status, "created_at": "2026-11-21T08:00:00Z"}


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def client(clock: FakeClock) -> Client:
    return Client(Connection("https://control.example.com/api/v2", "bearer-key", api_timeout=API_TIMEOUT), clock.clock)


@pytest.fixture
def service_of(clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Service]:
    """Create a service that every client is connected to."""

    def make(status: Callable[[str, float], str], **details: Any) -> Service:
        service = Service(clock, status, **details)

        def until(client: Client, deadline: Deadline) -> Client:
            service.remaining = deadline.remaining
            return client

        monkeypatch.setattr(Client, "get", lambda client, *segments, query=None: service.get(*segments, query=query))
        monkeypatch.setattr(Client, "until", until)
        return service

    return make


def wait_for(
    client: Client, wanted: list[OperationRef] | UnfinishedOperations, limits: Limits = LIMITS, timeout: float = TIMEOUT
) -> Wait:
    return Wait(client, limits, new_state(client, wanted, timeout))


def new_state(client: Client, wanted: list[OperationRef] | UnfinishedOperations, timeout: float = TIMEOUT) -> WaitState:
    if isinstance(wanted, UnfinishedOperations):
        return WaitState(client.clock, timeout, to_list=wanted)
    return WaitState(client.clock, timeout, wanted)


def running(name: str, elapsed: float) -> str:
    return "running"


def failed(name: str, elapsed: float) -> str:
    return "failed"


def finished_after(seconds: float) -> Callable[[str, float], str]:
    return lambda name, elapsed: "finished" if elapsed >= seconds else "running"


def statuses(result: dict[str, Any]) -> Counter[str]:
    return Counter(operation["status"] for operation in result["operations"])


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
        together.wait(30)
        return "finished"

    service = service_of(status, projects=4)
    assert statuses(wait_for(client, service.refs).run()) == {"finished": 4}


# When the polls are sent


def test_the_first_poll_intervals_are_well_under_a_second() -> None:
    assert [poll_interval(polls, 5) for polls in (1, 2, 3)] == pytest.approx([0.2, 0.3, 0.45])


def test_poll_intervals_grow_to_the_longest_and_stay_there() -> None:
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


def in_runs(
    client: Client,
    clock: FakeClock,
    wanted: list[OperationRef] | UnfinishedOperations,
    limits: Limits = LIMITS,
    start_up: float = 0.0,
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Wait in several runs, each as if by a process that takes C(start_up) seconds to start; all changes and the last result."""
    changes: list[dict[str, Any]] = []
    state = new_state(client, wanted)
    while True:
        result = Wait(client, limits, state).run(StopWhen(min_seconds=2.0, max_seconds=10.0))
        changes += result.pop("_changes")
        saved = result.pop("_state", None)
        if saved is None:
            return changes, result
        clock.elapsed += start_up
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
    with pytest.raises(WaitFailed, match="1 of 1 operation failed"):
        in_runs(client, clock, service.refs, LIMITS._replace(failed_grace=25.0))
    assert 30 <= clock.elapsed <= 36


@pytest.mark.parametrize("start_up", [0.0, 1.0, 4.9])
def test_the_time_between_runs_counts_and_the_last_poll_is_at_the_deadline(
    client: Client, clock: FakeClock, service_of: Callable[..., Service], start_up: float
) -> None:
    service = service_of(finished_after(59.5))
    _changes, result = in_runs(client, clock, service.refs, start_up=start_up)
    assert statuses(result) == {"finished": 1}
    service_of(running)
    clock.elapsed = 0.0
    with pytest.raises(WaitFailed, match="^Timed out after 60 s with 1 of 1 operation unfinished") as error:
        in_runs(client, clock, service.refs, start_up=start_up)
    assert error.value.result["elapsed"] == pytest.approx(60)
    assert clock.elapsed == pytest.approx(60)


def test_a_state_that_is_resumed_after_the_deadline_times_out(
    client: Client, clock: FakeClock, service_of: Callable[..., Service]
) -> None:
    service = service_of(running, seconds=0.1)
    with pytest.raises(WaitFailed, match="^Timed out after 60 s") as error:
        in_runs(client, clock, service.refs, start_up=3600.0)
    assert error.value.result["elapsed"] > 3600
    assert statuses(error.value.result) == {"running": 1}


def test_a_restart_of_the_machine_between_runs_does_not_turn_back_time(
    client: Client, clock: FakeClock, service_of: Callable[..., Service]
) -> None:
    service = service_of(running)
    saved = wait_for(client, service.refs).run(StopWhen(2.0, 10.0))["_state"]
    # The monotonic clock begins anew.
    clock.elapsed -= 900
    assert WaitState.from_json(client.clock, saved).elapsed() == pytest.approx(saved["elapsed"])


def test_a_saved_state_has_the_remaining_time(client: Client, clock: FakeClock) -> None:
    state = new_state(client, [])
    clock.elapsed = 20.0
    assert state.to_json()["remaining"] == pytest.approx(40)
    clock.elapsed = 70.0
    assert state.to_json()["remaining"] == 0


def test_the_changes_of_a_failed_run_are_returned(client: Client, service_of: Callable[..., Service]) -> None:
    service = service_of(lambda name, elapsed: "failed" if elapsed >= 1 else "running")
    with pytest.raises(WaitFailed) as error:
        wait_for(client, service.refs).run(StopWhen(2.0, 10.0))
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


def test_operations_that_could_not_be_listed_yet_are_listed_by_a_later_run(
    client: Client, clock: FakeClock, service_of: Callable[..., Service]
) -> None:
    service = service_of(finished_after(40))

    def refuse(path: str) -> None:
        if clock.elapsed < 25:
            raise StatusError("unavailable", "GET", path, 1, "", 503, {})

    service.refuse = refuse
    _changes, result = in_runs(client, clock, UnfinishedOperations("project-0", 0))
    assert statuses(result) == {"finished": 1}


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


def rate_limited(service: Service, clock: FakeClock, requests: int) -> None:
    """Accept C(requests) requests after each pause and refuse the others."""
    since_pause: Counter[int] = Counter()

    def refuse(path: str) -> None:
        since_pause[len(clock.pauses)] += 1
        if since_pause[len(clock.pauses)] > requests:
            refusal = StatusError(
                f"the service answered 429 Too Many Requests to GET {path}", "GET", path, 1, "", 429, {}
            )
            refusal.retry_after = 1.0
            raise refusal

    service.refuse = refuse


@pytest.mark.parametrize("several_runs", [False, True], ids=["one run", "several runs"])
def test_under_a_rate_limit_every_project_is_polled_in_turn(
    client: Client, clock: FakeClock, service_of: Callable[..., Service], several_runs: bool
) -> None:
    service = service_of(lambda name, elapsed: "running" if name < "p3" else "finished", projects=10)
    rate_limited(service, clock, requests=3)
    limits = LIMITS._replace(workers=1)
    with pytest.raises(WaitFailed) as error:
        if several_runs:
            in_runs(client, clock, service.refs, limits)
        else:
            wait_for(client, service.refs, limits).run()
    assert error.value.result["pending_ids"] == ["p0-op0", "p1-op0", "p2-op0"]


def test_after_a_429_the_rest_of_the_poll_is_not_sent(
    client: Client, clock: FakeClock, service_of: Callable[..., Service]
) -> None:
    service = service_of(running, projects=10, operations=2)
    rate_limited(service, clock, requests=3)
    with pytest.raises(WaitFailed, match="The last poll met an error: .*429") as error:
        wait_for(client, service.refs, LIMITS._replace(workers=1)).run()
    assert len(service.requests) == 4 * error.value.result["polls"]
    assert {operation["status"] for operation in error.value.result["operations"]} == {"running"}


def test_retry_after_is_honoured_by_the_next_run(
    client: Client, clock: FakeClock, service_of: Callable[..., Service]
) -> None:
    service = service_of(running, projects=10)
    rate_limited(service, clock, requests=3)
    limits = LIMITS._replace(workers=1)
    saved = wait_for(client, service.refs, limits).run(StopWhen(min_seconds=2.0, max_seconds=2.0))["_state"]
    assert saved["polled_at"].keys() == {f"project-{number}" for number in range(9)}
    assert clock.pauses == [1.0, 1.0]
    Wait(client, limits, WaitState.from_json(client.clock, saved)).run(StopWhen(0.0, 0.0))
    assert clock.pauses == [1.0, 1.0, 1.0]


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


@pytest.mark.parametrize(
    "course",
    [
        ["running", "scheduling", "running", "finished"],
        ["scheduling", "finished", "running", "failed"],
        ["failed", "scheduling", "failed", "running", "finished"],
        ["cancelling", "running", "skipped"],
        ["running", "resting", "scheduling", "finished"],
    ],
    ids="-".join,
)
@pytest.mark.parametrize("several_runs", [False, True], ids=["one run", "several runs"])
def test_statuses_may_change_in_any_order(
    client: Client, clock: FakeClock, service_of: Callable[..., Service], course: list[str], several_runs: bool
) -> None:
    """An operation has succeeded once a poll says so; each step takes longer than a poll interval."""
    service = service_of(lambda name, elapsed: course[min(int(elapsed / 6), len(course) - 1)])
    limits = LIMITS._replace(failed_grace=8.0)
    result = (
        in_runs(client, clock, service.refs, limits)[1]
        if several_runs
        else wait_for(client, service.refs, limits).run()
    )
    assert [operation["status"] for operation in result["operations"]] == [
        next(status for status in course if status in ("finished", "skipped"))
    ]
