# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A service with many operations, on a fake clock, and waits for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Any

from ansible_collections.clouddb.control.plugins.module_utils._clock import Deadline
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.module_utils._http.connection import Connection
from ansible_collections.clouddb.control.plugins.module_utils._http.errors import ServiceUnreachable, StatusError
from ansible_collections.clouddb.control.plugins.module_utils._http.response import Response
from ansible_collections.clouddb.control.plugins.module_utils._http.session import Request
from ansible_collections.clouddb.control.plugins.module_utils._operations.wait import Limits, Wait
from ansible_collections.clouddb.control.plugins.module_utils._operations.wait_state import (
    OperationRef,
    UnfinishedOperations,
    WaitState,
)
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import FakeClock
from ansible_collections.clouddb.control.tests.unit.support.simulated_operations import (
    SimulatedOperation,
    SimulatedOperations,
)

API_TIMEOUT = 30.0
LIMITS = Limits(timeout=60.0, interval=5.0, failed_grace=0.0, workers=4)


class Service(SimulatedOperations):
    """Projects whose operations, the newest first, have the statuses of a table; each response takes C(seconds) by the clock."""

    def __init__(
        self,
        clock: FakeClock,
        status: Callable[[str, float], str],
        projects: int = 1,
        operations: int = 1,
        seconds: float = 0.0,
    ):
        super().__init__()
        self.clock = clock
        self.refs = [
            OperationRef(f"project-{project}", f"p{project}-op{number}")
            for project in range(projects)
            for number in range(operations)
        ]
        for project in range(projects):
            self.add_project(f"project-{project}")
        for ref in reversed(self.refs):
            self.add_operation(ref.project_id, SimulatedOperation(ref.id, "start_compute", [(0.0, "scheduling")]))
        self.requests: list[str] = []
        self.started: list[float] = []
        self.refuse: Callable[[str], None] = lambda path: None
        self.fields: Callable[[str], dict[str, Any]] = lambda name: {}
        self.remaining: Callable[[], float] = lambda: 1e9
        self._status = status
        self._seconds = seconds
        self._lock = Lock()

    def respond(self, segments: Sequence[str | int], query: Mapping[str, Any]) -> Response:
        path = "/" + "/".join(map(str, segments))
        with self._lock:
            self.requests.append(path)
            self.started.append(self.clock.elapsed)
        self.refuse(path)
        limit = min(API_TIMEOUT, max(self.remaining(), 0.001))
        self.clock.elapsed += min(self._seconds, limit)
        if self._seconds > limit:
            raise ServiceUnreachable(
                "no response within api_timeout", Request("GET", path, ""), 1, may_have_acted=True, transient=True
            )
        return self.get(segments, query)

    def delete(self, name: str) -> None:
        for operations in self.operations.values():
            operations[:] = [operation for operation in operations if operation.id != name]

    def _page(self, path: str, field: str, items: Sequence[Any], query: Mapping[str, Any], *arguments: Any) -> Response:
        page = super()._page(path, field, items, query, *arguments)
        if int(page.json["pagination"]["cursor"]) >= len(items):
            del page.json["pagination"]
        return page

    def _operation(self, project_id: str, operation: SimulatedOperation) -> dict[str, Any]:
        status = self._status(operation.id, self.clock.elapsed)
        fields = {"action": operation.action, "status": status, "created_at": "2026-11-21T08:00:00Z"}
        return {"project_id": project_id, "id": operation.id, **fields, **self.fields(operation.id)}


class ServiceClient(Client):
    """A client whose requests C(service) responds to."""

    service: Service

    def __init__(self, clock: FakeClock) -> None:
        connection = Connection("https://control.example.com/api/v2", "bearer-key", api_timeout=API_TIMEOUT)
        super().__init__(connection, clock.clock)

    def get(self, *segments: str | int, query: Mapping[str, Any] | None = None) -> Response:
        return self.service.respond(segments, query or {})

    def with_deadline(self, deadline: Deadline, retries: bool = False) -> Client:
        self.service.remaining = deadline.remaining
        return self


def running(name: str, elapsed: float) -> str:
    """No operation ever ends."""
    return "running"


def failed(name: str, elapsed: float) -> str:
    """Every operation has failed."""
    return "failed"


def finished_after(seconds: float) -> Callable[[str, float], str]:
    """Every operation finishes after C(seconds)."""
    return lambda name, elapsed: "finished" if elapsed >= seconds else "running"


def wait_for(
    client: Client, wanted: list[OperationRef] | UnfinishedOperations, limits: Limits = LIMITS, **changes: Any
) -> Wait:
    """A wait that begins now, with C(changes) of the limits."""
    limits = limits._replace(**changes)
    return Wait(client, limits, new_state(client, wanted, limits))


def new_state(client: Client, wanted: list[OperationRef] | UnfinishedOperations, limits: Limits = LIMITS) -> WaitState:
    """The state of a wait that begins now."""
    if isinstance(wanted, UnfinishedOperations):
        return WaitState(client.clock, limits.timeout, unlisted=wanted)
    return WaitState(client.clock, limits.timeout, wanted)


def unavailable(until: Callable[[], bool]) -> Callable[[str], None]:
    """What refuses requests with 503 as long as C(until) is not true."""

    def refuse(path: str) -> None:
        if not until():
            raise StatusError("unavailable", Request("GET", path, ""), 1, 503)

    return refuse


def statuses(result: dict[str, Any]) -> Counter[str]:
    """The number of operations in each status."""
    return Counter(operation["status"] for operation in result["operations"])


def rate_limited(service: Service, clock: FakeClock, requests: int) -> None:
    """Accept C(requests) requests after each pause and refuse the others."""
    since_pause: Counter[int] = Counter()

    def refuse(path: str) -> None:
        since_pause[len(clock.pauses)] += 1
        if since_pause[len(clock.pauses)] > requests:
            refusal = StatusError(
                f"the service responded 429 Too Many Requests to GET {path}", Request("GET", path, ""), 1, 429, {}
            )
            refusal.retry_after = 1.0
            raise refusal

    service.refuse = refuse
