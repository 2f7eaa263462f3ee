# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A service with many operations, on a fake clock, and waits for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from threading import Lock
from typing import Any

from ansible_collections.clouddb.control.plugins.module_utils._errors import NotFound, ServiceUnreachable, StatusError
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.module_utils._http.response import Response
from ansible_collections.clouddb.control.plugins.module_utils._operations.wait import Limits, Wait
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
        self.cursors: list[str | None] = []
        self.deleted: set[str] = set()
        self.refuse: Callable[[str], None] = lambda path: None
        self.fields: Callable[[str], dict[str, Any]] = lambda name: {}
        self.remaining: Callable[[], float] = lambda: 1e9
        self._clock = clock
        self._status = status
        self._seconds = seconds
        self._lock = Lock()

    def get(self, *segments: str | int, query: dict[str, Any] | None = None) -> Response:
        path = "/" + "/".join(map(str, segments))
        with self._lock:
            self.requests.append(path)
            self.cursors.append((query or {}).get("cursor"))
        self.refuse(path)
        limit = min(API_TIMEOUT, max(self.remaining(), 0.001))
        if self._seconds > limit:
            self._clock.elapsed += limit
            raise ServiceUnreachable("no response within api_timeout", "GET", path, 1, "", sent=True, transient=True)
        self._clock.elapsed += self._seconds
        operations = [
            self._operation(ref) for ref in self.refs if ref.project_id == segments[1] and ref.id not in self.deleted
        ]
        if segments[-1] != "operations":
            operation = next((operation for operation in operations if operation["id"] == segments[-1]), None)
            if operation is None:
                raise NotFound(f"the service responded 404 Not Found to GET {path}", "GET", path, 1, "", 404, {})
            return Response({"operation": operation}, "GET", path, 1, "")
        begin = int((query or {}).get("cursor") or 0)
        end = begin + int((query or {})["limit"])
        pagination = {"pagination": {"cursor": str(end)}} if end < len(operations) else {}
        return Response({"operations": operations[begin:end], **pagination}, "GET", path, 1, "")

    def _operation(self, ref: OperationRef) -> dict[str, Any]:
        status = self._status(ref.id, self._clock.elapsed)
        fields = {"action": "start_compute", "status": status, "created_at": "2026-11-21T08:00:00Z"}
        return {**ref._asdict(), **fields, **self.fields(ref.id)}


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
    client: Client, wanted: list[OperationRef] | UnfinishedOperations, limits: Limits = LIMITS, timeout: float = TIMEOUT
) -> Wait:
    """A wait that has not begun."""
    return Wait(client, limits, new_state(client, wanted, timeout))


def new_state(client: Client, wanted: list[OperationRef] | UnfinishedOperations, timeout: float = TIMEOUT) -> WaitState:
    """The state of a wait that begins now."""
    if isinstance(wanted, UnfinishedOperations):
        return WaitState(client.clock, timeout, unlisted=wanted)
    return WaitState(client.clock, timeout, wanted)


def unavailable(until: Callable[[], bool]) -> Callable[[str], None]:
    """What refuses requests with 503 as long as C(until) is not true."""

    def refuse(path: str) -> None:
        if not until():
            raise StatusError("unavailable", "GET", path, 1, "", 503, {})

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
                f"the service responded 429 Too Many Requests to GET {path}", "GET", path, 1, "", 429, {}
            )
            refusal.retry_after = 1.0
            raise refusal

    service.refuse = refuse
