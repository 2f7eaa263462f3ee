# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waits for many operations in many projects, with slow services, and in several runs."""

from __future__ import annotations

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
    Wait,
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
    """Answers GET from a table of statuses, newest operation first; each answer takes C(seconds) by the clock."""

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
    """Make a service and let every client ask it."""

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


def test_each_look_is_one_request_for_each_project(client: Client, service_of: Callable[..., Service]) -> None:
    service = service_of(finished_after(20), projects=10, operations=30)
    result = wait_for(client, service.refs).run()
    assert statuses(result) == {"finished": 300}
    assert [
        OperationRef(operation["project_id"], operation["id"]) for operation in result["operations"]
    ] == service.refs
    assert Counter(service.requests) == {
        f"/projects/project-{number}/operations": result["polls"] for number in range(10)
    }


def test_more_operations_than_a_page_holds_are_read_page_by_page(
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


def test_an_operation_that_the_list_does_not_show_yet_is_fetched(
    client: Client, service_of: Callable[..., Service]
) -> None:
    service = service_of(finished_after(0), operations=3)
    service.unlisted.add("p0-op1")
    assert statuses(wait_for(client, service.refs).run()) == {"finished": 3}
    assert service.requests == ["/projects/project-0/operations", "/projects/project-0/operations/p0-op1"]


def test_of_many_failures_the_message_tells_twenty(client: Client, service_of: Callable[..., Service]) -> None:
    service = service_of(failed, operations=27)
    with pytest.raises(WaitFailed) as error:
        wait_for(client, service.refs).run()
    message = str(error.value)
    assert message.startswith("27 of 27 operations failed: start_compute p0-op0 of project-0 is failed; ")
    assert message.count("is failed") == 20
    assert message.endswith("; and 7 more (see operations)")
    assert len(error.value.result["failed_ids"]) == len(error.value.result["operations"]) == 27


def test_of_many_unfinished_ones_the_message_tells_twenty(client: Client, service_of: Callable[..., Service]) -> None:
    service = service_of(running, projects=3, operations=7)
    with pytest.raises(WaitFailed) as error:
        wait_for(client, service.refs).run()
    message = str(error.value)
    assert message.startswith("timed out after 60 s: 21 of 21 operations unfinished: ")
    assert message.count("is running") == 20
    assert message.endswith("; and 1 more (see operations)")
    assert len(error.value.result["pending_ids"]) == 21


def test_as_many_projects_as_workers_are_looked_at_together(client: Client, service_of: Callable[..., Service]) -> None:
    together = Barrier(4)

    def status(name: str, elapsed: float) -> str:
        together.wait(30)
        return "finished"

    service = service_of(status, projects=4)
    assert statuses(wait_for(client, service.refs).run()) == {"finished": 4}


def test_the_pause_never_runs_past_the_deadline(
    client: Client, clock: FakeClock, service_of: Callable[..., Service]
) -> None:
    service = service_of(running)
    with pytest.raises(WaitFailed):
        wait_for(client, service.refs, LIMITS._replace(interval=1000.0), timeout=7.0).run()
    assert clock.elapsed == pytest.approx(7)
    assert len(clock.pauses) < 15


@pytest.mark.parametrize("seconds", [0.4, 2.0, 20.0, 1000.0], ids=lambda seconds: f"{seconds:g} s each")
@pytest.mark.parametrize("operations", [1, 5])
def test_answers_that_take_long_do_not_push_the_deadline(
    client: Client, clock: FakeClock, service_of: Callable[..., Service], operations: int, seconds: float
) -> None:
    service = service_of(running, operations=operations, seconds=seconds)
    with pytest.raises(WaitFailed) as error:
        wait_for(client, service.refs).run()
    assert 60 <= clock.elapsed <= 61.001
    assert len(error.value.result["pending_ids"]) == operations


def test_what_ends_during_the_last_look_is_seen(client: Client, service_of: Callable[..., Service]) -> None:
    service = service_of(finished_after(60.05), seconds=0.1)
    assert statuses(wait_for(client, service.refs).run()) == {"finished": 1}


def test_what_failed_in_the_end_has_failed_though_its_grace_goes_on(
    client: Client, service_of: Callable[..., Service]
) -> None:
    service = service_of(lambda name, elapsed: "failed" if elapsed >= 60 else "running")
    with pytest.raises(WaitFailed, match="^timed out after 60 s") as error:
        wait_for(client, service.refs, LIMITS._replace(failed_grace=30.0)).run()
    assert (error.value.result["failed_ids"], error.value.result["pending_ids"]) == (["p0-op0"], [])


def in_parts(
    client: Client, clock: FakeClock, wanted: list[Target] | Unfinished, limits: Limits
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Wait part by part, each as if by a process of its own: the changes that the parts tell, and the last result."""
    changes: list[dict[str, Any]] = []
    left: dict[str, Any] | None = None
    while True:
        result = Wait(
            client, wanted, limits, Part(at_least=2.0, at_most=10.0, elapsed=clock.elapsed if left else 0.0, left=left)
        ).until_ended()
        changes += result.pop("_changes")
        left = result.pop("_left", None)
        if left is None:
            return changes, result


def test_parts_of_a_wait_come_to_the_same_as_the_whole(
    client: Client, clock: FakeClock, service_of: Callable[..., Service]
) -> None:
    service = service_of(
        lambda name, elapsed: "finished" if elapsed >= (5 if name == "p0-op0" else 33) else "dreaming", operations=2
    )
    changes, result = in_parts(client, clock, service.refs, LIMITS)
    assert [(change["id"], change["previous_status"], change["status"]) for change in changes] == [
        ("p0-op0", "dreaming", "finished"),
        ("p0-op1", "dreaming", "finished"),
    ]
    first, second = (change["elapsed"] for change in changes)
    assert 5 <= first <= 10 and 33 <= second <= 38
    assert first == round(first, 3) != round(first)  # to the millisecond
    clock.elapsed, pauses = 0.0, len(clock.pauses)
    whole = wait_for(client, service.refs).run()
    assert {**result, "elapsed": None} == {**whole, "elapsed": None, "polls": result["polls"]}
    assert 0 <= result["polls"] - whole["polls"] <= 10
    assert pauses <= len(clock.pauses)


def test_parts_share_the_deadline_and_the_grace(
    client: Client, clock: FakeClock, service_of: Callable[..., Service]
) -> None:
    service = service_of(lambda name, elapsed: "failed" if elapsed >= 5 else "running")
    with pytest.raises(WaitFailed, match="1 of 1 operation failed"):
        in_parts(client, clock, service.refs, LIMITS._replace(failed_grace=25.0))
    assert 30 <= clock.elapsed <= 36


def test_parts_look_for_the_unfinished_ones_once(
    client: Client, clock: FakeClock, service_of: Callable[..., Service]
) -> None:
    service = service_of(
        lambda name, elapsed: "finished" if elapsed >= 30 or name != "p0-op1" else "running", operations=3
    )
    _changes, result = in_parts(client, clock, UnfinishedOperations("project-0", 0), LIMITS)
    assert [operation["id"] for operation in result["operations"]] == ["p0-op1"]
    assert service.requests[0] == "/projects/project-0/operations"
    assert set(service.requests[1:]) == {"/projects/project-0/operations/p0-op1"}


@pytest.mark.parametrize("seconds", [0.4, 0.9, 20.0, 1000.0])
def test_many_projects_do_not_push_the_deadline(
    client: Client, clock: FakeClock, service_of: Callable[..., Service], seconds: float
) -> None:
    service = service_of(running, projects=40, seconds=seconds)
    with pytest.raises(WaitFailed):
        wait_for(client, service.refs, LIMITS._replace(workers=1)).run()
    assert clock.elapsed <= 61.001 + 0.001 * 40


@pytest.mark.parametrize("seconds", [0.1, 0.9])
def test_operations_far_down_the_list_do_not_push_the_deadline(
    client: Client, clock: FakeClock, service_of: Callable[..., Service], seconds: float
) -> None:
    service = service_of(running, operations=1000, seconds=seconds)
    with pytest.raises(WaitFailed):
        wait_for(client, service.refs[-40:]).run()
    assert clock.elapsed <= 61.001


def test_a_long_history_does_not_push_the_deadline(
    client: Client, clock: FakeClock, service_of: Callable[..., Service]
) -> None:
    service_of(running, operations=20000, seconds=0.9)
    with pytest.raises(WaitFailed):
        wait_for(client, UnfinishedOperations("project-0", 0)).run()
    assert clock.elapsed <= 61.001


def rate_limited(service: Service, clock: FakeClock, requests: int) -> None:
    """Let so many requests pass after each pause; the others are refused."""
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


@pytest.mark.parametrize("parts", [False, True], ids=["at once", "in parts"])
def test_under_a_rate_limit_each_project_has_its_turn(
    client: Client, clock: FakeClock, service_of: Callable[..., Service], parts: bool
) -> None:
    service = service_of(lambda name, elapsed: "running" if name < "p3" else "finished", projects=10)
    rate_limited(service, clock, requests=3)
    limits = LIMITS._replace(workers=1)
    with pytest.raises(WaitFailed) as error:
        if parts:
            in_parts(client, clock, service.refs, limits)
        else:
            wait_for(client, service.refs, limits).run()
    assert error.value.result["pending_ids"] == ["p0-op0", "p1-op0", "p2-op0"]


def test_after_a_refusal_for_the_rate_limit_the_rest_of_the_look_is_not_sent(
    client: Client, clock: FakeClock, service_of: Callable[..., Service]
) -> None:
    service = service_of(running, projects=10, operations=2)
    rate_limited(service, clock, requests=3)
    with pytest.raises(WaitFailed, match="the last answer was a fault: the service answered 429") as error:
        wait_for(client, service.refs, LIMITS._replace(workers=1)).run()
    assert len(service.requests) == 4 * error.value.result["polls"]
    assert {operation["status"] for operation in error.value.result["operations"]} == {"running"}


def test_a_part_ends_under_a_rate_limit_too_after_the_pause_that_is_asked_for(
    client: Client, clock: FakeClock, service_of: Callable[..., Service]
) -> None:
    service = service_of(running, projects=10)
    rate_limited(service, clock, requests=3)
    result = Wait(client, service.refs, LIMITS._replace(workers=1), Part(at_least=2.0, at_most=2.0)).until_ended()
    assert result["_left"]["looked_at"].keys() == {f"project-{number}" for number in range(9)}
    assert clock.pauses == [1.0, 1.0, 1.0]


def test_an_operation_that_is_deleted_during_the_wait_ends_it(
    client: Client, clock: FakeClock, service_of: Callable[..., Service]
) -> None:
    def status(name: str, elapsed: float) -> str:
        if elapsed > 10:
            service.deleted.add("p0-op1")
        return "failed" if name == "p1-op2" and elapsed > 5 else "running"

    service = service_of(status, projects=2, operations=3)
    with pytest.raises(
        WaitFailed, match="ended by a fault: the service answered 404 .*/projects/project-0/operations/p0-op1$"
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
@pytest.mark.parametrize("parts", [False, True], ids=["at once", "in parts"])
def test_statuses_may_come_in_any_order(
    client: Client, clock: FakeClock, service_of: Callable[..., Service], course: list[str], parts: bool
) -> None:
    """An operation has ended once it was seen to; each step takes longer than a pause."""
    service = service_of(lambda name, elapsed: course[min(int(elapsed / 6), len(course) - 1)])
    limits = LIMITS._replace(failed_grace=8.0)
    result = in_parts(client, clock, service.refs, limits)[1] if parts else wait_for(client, service.refs, limits).run()
    assert [operation["status"] for operation in result["operations"]] == [
        next(status for status in course if status in ("finished", "skipped"))
    ]
