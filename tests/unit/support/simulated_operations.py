# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An account with projects and operations in memory, a client of it, and the event source that follows it on a fake clock."""

from __future__ import annotations

import asyncio
import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple
from unittest import mock

from ansible_collections.clouddb.control.plugins.module_utils._clock import Deadline
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.module_utils._http.connection import Connection
from ansible_collections.clouddb.control.plugins.module_utils._http.errors import NotFound, Unreachable
from ansible_collections.clouddb.control.plugins.module_utils._http.message import Request
from ansible_collections.clouddb.control.plugins.module_utils._http.response import Response
from ansible_collections.clouddb.control.plugins.plugin_utils._events import follower
from ansible_collections.clouddb.control.plugins.plugin_utils._events.options import source_options
from ansible_collections.clouddb.control.plugins.plugin_utils._events.rate_limit import PacedClient
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import EPOCH, FakeClock

CONNECTION = {"base_url": "https://control.example.com/api/v2", "api_key": "key-of-the-simulation"}
PROJECTS_PER_PAGE = 400


class SimulatedOperation(NamedTuple):
    """C(statuses) are its statuses, each with the moment since when it has it, in seconds of the clock; some may be in the future."""

    id: str
    action: str
    statuses: list[tuple[float, str]]

    def at(self, moment: float) -> tuple[float, str]:
        """The status at this moment, and since when."""
        return self.statuses[bisect_right([since for since, _status in self.statuses], moment) - 1]


class SimulatedOperations:
    """The operations of each project, oldest first. Requests take no time. C(sent) are all of them, each with its moment.

    C(before_request) is called with the path of each request, and may raise an error. C(has_hints): an operation changes the
    C(updated_at) of its project.
    """

    def __init__(self, before_request: Callable[[str], None] = lambda path: None, has_hints: bool = False):
        self.clock = FakeClock()
        self.projects: dict[str, dict[str, Any]] = {}
        self.operations: dict[str, list[SimulatedOperation]] = {}
        self.sent: list[tuple[float, str]] = []
        self._before_request = before_request
        self._rendered: dict[tuple[str, float], dict[str, Any]] = {}
        self._has_hints = has_hints
        # How far the Date of responses is ahead.
        self.date_ahead = timedelta(0)

    def add_project(self, project_id: str) -> None:
        now = self._timestamp(self.clock.elapsed)
        self.projects[project_id] = {"id": project_id, "name": project_id, "created_at": now, "updated_at": now}
        self.operations[project_id] = []

    def add_operation(self, project_id: str, operation: SimulatedOperation) -> None:
        """Add the newest operation of the project."""
        self.operations[project_id].append(operation)

    def get(self, segments: Sequence[str | int], query: Mapping[str, Any] | None) -> Response:
        """The response to a GET request. Raises NotFound."""
        path = "/" + "/".join(map(str, segments))
        request = Request("GET", path, "request")
        self.sent.append((self.clock.elapsed, path))
        self._before_request(path)
        if len(segments) == 1:
            return self._page(path, "projects", list(self.projects), query or {}, PROJECTS_PER_PAGE, self._project)
        project_id, *rest = map(str, segments[1:])
        if not rest and project_id in self.projects:
            return Response({"project": self._project(project_id)}, request)
        operations = reversed(self.operations.get(project_id, [])) if rest else ()
        created = [each for each in operations if each.statuses[0][0] <= self.clock.elapsed]
        if len(rest) == 1 and project_id in self.operations:
            return self._page(path, "operations", created, query or {}, 50, partial(self._operation, project_id))
        for each in created:
            if [each.id] == rest[1:]:
                return Response({"operation": self._operation(project_id, each)}, request)
        raise NotFound("not found", request, 1, 404)

    def _page(
        self,
        path: str,
        field: str,
        items: Sequence[Any],
        query: Mapping[str, Any],
        page_size: int,
        render: Callable[[Any], dict[str, Any]],
    ) -> Response:
        first = int(query.get("cursor", 0))
        end = first + int(query.get("limit") or page_size)
        content = list(map(render, items[first:end]))
        pagination = {"pagination": {"cursor": str(end)}} if content else {}
        return Response({field: content, **pagination}, Request("GET", path, "request", query))

    def _project(self, project_id: str) -> dict[str, Any]:
        project = dict(self.projects[project_id])
        if self._has_hints:
            moments = [each.at(self.clock.elapsed)[0] for each in self.operations[project_id]]
            changed = [moment for moment in moments if moment <= self.clock.elapsed]
            project["updated_at"] = self._timestamp(max(changed)) if changed else project["updated_at"]
        return project

    def _operation(self, project_id: str, operation: SimulatedOperation) -> dict[str, Any]:
        updated, status = operation.at(self.clock.elapsed)
        if (operation.id, updated) not in self._rendered:
            self._rendered[operation.id, updated] = {
                "id": operation.id,
                "project_id": project_id,
                "action": operation.action,
                "status": status,
                "created_at": self._timestamp(operation.statuses[0][0]),
                "updated_at": self._timestamp(updated),
            }
        return self._rendered[operation.id, updated]

    @staticmethod
    def _timestamp(elapsed: float) -> str:
        return (EPOCH + timedelta(seconds=elapsed)).isoformat()


class OperationsClient(Client):
    """A client of the account, whose requests take C(seconds) by its clock, or end with api_timeout or at the deadline."""

    def __init__(self, account: SimulatedOperations, seconds: float = 0.0):
        super().__init__(Connection(**CONNECTION), account.clock.clock)
        self._account, self._seconds, self._remaining = account, seconds, lambda: math.inf

    def get(self, *segments: str | int, query: Mapping[str, Any] | None = None) -> Response:
        limit = min(self.connection.api_timeout, max(self._remaining(), 0.001))
        self._account.clock.elapsed += min(self._seconds, limit)
        if self._seconds > limit:
            raise Unreachable("no response", Request("GET", "/", ""), 1, may_have_acted=True, transient=True)
        return self._account.get(segments, query)

    def with_deadline(self, deadline: Deadline, retries: bool = False) -> Client:
        self._remaining = deadline.remaining
        return self


class EventList(list[tuple[float, dict[str, Any]]]):
    """The events, each with the moment when it was emitted."""

    def __init__(self, clock: FakeClock):
        super().__init__()
        self._clock = clock

    async def put(self, event: dict[str, Any], /) -> None:
        self.append((self._clock.elapsed, event))


async def call(function: Callable[[Any], Any], argument: Any) -> Any:
    """The function's result."""
    return function(argument)


def follow(
    account: SimulatedOperations,
    seconds: float,
    events: Any,
    in_thread: Callable[..., Any] = call,
    clock_ahead: timedelta = timedelta(0),
    clock_is_set_at: float = math.inf,
    **args: Any,
) -> None:
    """Run the event source for C(seconds) of the account's clock; its polls run one after another, without threads.

    The clock of its machine is C(clock_ahead) of the service's until C(clock_is_set_at).
    """
    end = account.clock.elapsed + seconds

    def ahead() -> timedelta:
        return clock_ahead if account.clock.elapsed < clock_is_set_at else timedelta(0)

    clock = account.clock.clock._replace(utcnow=lambda: account.clock.clock.utcnow() + ahead())

    class SimulatedClient(PacedClient):
        def request(
            self, method: str, segments: Sequence[str | int], query: Any = None, *_others: Any, **_more: Any
        ) -> Response:
            response = account.get(segments, query)
            self._service_ahead[:] = [account.date_ahead - ahead()]
            return response

    async def sleep(pause: float) -> None:
        account.clock.elapsed += min(pause, max(0.0, end - account.clock.elapsed))
        if account.clock.elapsed >= end:
            raise asyncio.CancelledError

    with (
        mock.patch.object(follower, "PacedClient", SimulatedClient),
        mock.patch.object(follower, "in_thread", in_thread),
        suppress(asyncio.CancelledError),
    ):
        options = source_options({**CONNECTION, **args})
        asyncio.run(follower.Follower(options, events, clock=clock, sleep=sleep).run())
