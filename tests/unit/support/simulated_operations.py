# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An account with operations in memory, where a request takes a hundredth of what one to the sandbox takes, and an event source for it."""

from __future__ import annotations

import asyncio
import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from functools import cache, partial
from typing import Any, NamedTuple
from unittest import mock

from ansible_collections.clouddb.control.plugins.module_utils._http import errors
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client, path_of
from ansible_collections.clouddb.control.plugins.module_utils._http.connection import Connection
from ansible_collections.clouddb.control.plugins.module_utils._http.message import Request
from ansible_collections.clouddb.control.plugins.module_utils._http.response import Response
from ansible_collections.clouddb.control.plugins.plugin_utils._events import follower
from ansible_collections.clouddb.control.plugins.plugin_utils._events.options import source_options
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import EPOCH, FakeClock

CONNECTION = {"base_url": "https://control.example.com/api/v2", "api_key": "key-of-the-simulation"}
PROJECTS_PER_PAGE = 400
LIST = "/projects"
# A moment after the end of each test.
EVER = 1e9


class Operation(NamedTuple):
    """C(statuses) are its statuses, each with the moment since when it has it, in seconds of the clock; some may be in the future."""

    id: str
    statuses: list[tuple[float, str]]

    def at(self, moment: float) -> tuple[float, str]:
        """The status at this moment, and since when."""
        return self.statuses[bisect_right([since for since, _status in self.statuses], moment) - 1]


class Account:
    """Projects, the operations of each, oldest first, and the events that the event source has emitted, each with its moment.

    - C(sent): the requests, each with its moment. Each takes C(seconds_per_request).
    - C(fault): what happens to a request for this path at this moment: a status, one with its Retry-After, C(cut off), or C(not JSON).
    - C(hidden): the projects that the list lacks, and from when until when. C(listed): those of the projects that it has.
    - C(has_hints): an operation changes the C(updated_at) of its project.
    - C(date_ahead): how far the Date of responses is ahead.
    - C(queue): takes the events.
    """

    def __init__(self, *projects: str, has_hints: bool = False):
        self.clock = FakeClock()
        self.projects: dict[str, dict[str, Any]] = {}
        self.operations: dict[str, list[Operation]] = {}
        self.sent: list[tuple[float, str]] = []
        self.emitted: list[tuple[float, dict[str, Any]]] = []
        self.seconds_per_request = 0.0
        self.fault: Callable[[float, str], Any] = lambda moment, path: None
        self.hidden: dict[str, tuple[float, float]] = {}
        self.listed: Callable[[Sequence[str]], Sequence[str]] = self._not_hidden
        self.date_ahead = timedelta(0)
        self.queue: Any = self
        self._has_hints = has_hints
        for project in projects:
            self.add_project(project)

    # What happens in the account

    def add_project(self, project_id: str) -> None:
        now = self.timestamp(self.clock.elapsed)
        self.projects[project_id] = {"id": project_id, "name": project_id, "created_at": now, "updated_at": now}
        self.operations[project_id] = []

    def add(self, project_id: str, operation_id: str, *statuses: tuple[float, str]) -> Operation:
        """Add the newest operation of the project."""
        self.operations[project_id].append(Operation(operation_id, list(statuses)))
        return self.operations[project_id][-1]

    def start(self, project: str, moment: float, seconds: float = 5.0) -> None:
        """Start an operation that takes C(seconds)."""
        self.add(project, f"{project}-{moment:g}", (moment, "running"), (moment + seconds, "finished"))

    # What it responds

    def client(self) -> Client:
        return Client(Connection(**CONNECTION), self.clock.clock)

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Respond to the requests of all clients."""

        def request(client: Client, _method: str, segments: Any, query: Any = None, *_args: Any, **_more: Any) -> Any:
            limit = client.connection.api_timeout
            if client._deadline:
                limit = min(limit, client._deadline.remaining())
            self.clock.elapsed += min(self.seconds_per_request, limit)
            if self.seconds_per_request > limit:
                raise error_of("cut off", path_of(segments))
            response = self.get(segments, query or {})
            now = EPOCH + timedelta(seconds=self.clock.elapsed)
            client._service_ahead[:] = [now + self.date_ahead - client.clock.utcnow()]
            return response

        with mock.patch.object(Client, "request", request):
            yield

    def get(self, segments: Sequence[str | int], query: Mapping[str, Any]) -> Response:
        """The response to a GET request."""
        path = path_of(segments)
        self.sent.append((self.clock.elapsed, path))
        if fault := self.fault(self.clock.elapsed, path):
            raise error_of(fault, path)
        if path == LIST:
            return self._page("projects", self.listed(list(self.projects)), query, PROJECTS_PER_PAGE, self._project)
        project_id, *rest = map(str, segments[1:])
        if not rest and project_id in self.projects:
            return Response({"project": self._project(project_id)}, Request("GET", path, ""))
        operations = reversed(self.operations.get(project_id, [])) if rest else ()
        created = [each for each in operations if each.statuses[0][0] <= self.clock.elapsed]
        render = partial(self._operation, project_id)
        if len(rest) == 1 and project_id in self.operations:
            return self._page("operations", created, query, 50, render)
        for each in created:
            if [each.id] == rest[1:]:
                return Response({"operation": render(each)}, Request("GET", path, ""))
        raise error_of(404, path)

    def _page(
        self, field: str, items: Sequence[Any], query: Mapping[str, Any], page_size: int, render: Any
    ) -> Response:
        first = int(query.get("cursor", 0))
        end = first + int(query.get("limit") or page_size)
        content = list(map(render, items[first:end]))
        pagination = {"pagination": {"cursor": str(end)}} if content else {}
        return Response({field: content, **pagination}, Request("GET", field, "", query))

    def _project(self, project_id: str) -> dict[str, Any]:
        project = dict(self.projects[project_id])
        if self._has_hints:
            moments = [each.at(self.clock.elapsed)[0] for each in self.operations[project_id]]
            changed = [moment for moment in moments if moment <= self.clock.elapsed]
            project["updated_at"] = self.timestamp(max(changed)) if changed else project["updated_at"]
        return project

    def _operation(self, project_id: str, operation: Operation) -> dict[str, Any]:
        updated, status = operation.at(self.clock.elapsed)
        return {
            **{"id": operation.id, "project_id": project_id, "action": "create_branch", "status": status},
            **{"created_at": self.timestamp(operation.statuses[0][0]), "updated_at": self.timestamp(updated)},
        }

    def _not_hidden(self, project_ids: Sequence[str]) -> Sequence[str]:
        hidden = {each for each, (since, until) in self.hidden.items() if since < self.clock.elapsed < until}
        return [each for each in project_ids if each not in hidden]

    @staticmethod
    @cache
    def timestamp(moment: float) -> str:
        return (EPOCH + timedelta(seconds=moment)).isoformat()

    # The event source

    async def put(self, event: dict[str, Any], /) -> None:
        self.emitted.append((self.clock.elapsed, event))

    def run_source(
        self,
        seconds: float,
        in_thread: Callable[..., Any] | None = None,
        clock_ahead: timedelta = timedelta(0),
        clock_is_set_at: float = math.inf,
        **args: Any,
    ) -> None:
        """Run the event source for C(seconds) of the account's clock; its polls run one after another, without threads.

        The clock of its machine is C(clock_ahead) of the service's until C(clock_is_set_at).
        """
        end = self.clock.elapsed + seconds

        def utcnow() -> datetime:
            ahead = clock_ahead if self.clock.elapsed < clock_is_set_at else timedelta(0)
            return self.clock.clock.utcnow() + ahead

        async def sleep(pause: float) -> None:
            self.clock.elapsed += min(pause, max(0.0, end - self.clock.elapsed))
            if self.clock.elapsed >= end:
                raise asyncio.CancelledError

        patched = mock.patch.object(follower, "in_thread", in_thread or call)
        with self.serving(), patched, suppress(asyncio.CancelledError):
            clock = self.clock.clock._replace(utcnow=utcnow)
            options = source_options({**CONNECTION, **args})
            asyncio.run(follower.Follower(options, self.queue, clock=clock, sleep=sleep).run())

    def follow(self, seconds: float, **args: Any) -> list[str]:
        """Run the event source for C(seconds); all events until now, each as C(OPERATION STATUS)."""
        self.run_source(seconds, **{"requests_per_minute": 60_000, **args})
        operations = [event["clouddb"]["operation"] for _moment, event in self.emitted]
        return [f"{operation['id']} {operation['status']}" for operation in operations]

    def moments(self, name: str) -> list[float]:
        """When the operations of a project were listed, or with LIST the projects."""
        path = LIST if name == LIST else f"{LIST}/{name}/operations"
        return [moment for moment, sent in self.sent if sent == path]

    def polled(self) -> list[str]:
        """The projects in the order in which they were polled."""
        return [path.split("/")[2] for _moment, path in self.sent if path.endswith("/operations")]

    def delays(self, project: str) -> list[float]:
        """The seconds from each change to its event."""
        changed = {(each.id, status): since for each in self.operations[project] for since, status in each.statuses}
        events = [(moment, event["clouddb"]["operation"]) for moment, event in self.emitted]
        return [at - changed[each["id"], each["status"]] for at, each in events if each["project_id"] == project]


def error_of(fault: Any, path: str) -> errors.RequestFailed:
    """The error of a request with this fault."""
    request = Request("GET", path, "request")
    if fault == "cut off":
        return errors.Unreachable("It failed.", request, 1, may_have_acted=True, transient=True)
    if fault == "not JSON":
        return errors.UnexpectedResponse("It is HTML.", request, 1)
    status, retry_after = fault if isinstance(fault, tuple) else (fault, None)
    error_class = {401: errors.Unauthorized, 404: errors.NotFound}.get(status, errors.StatusError)
    error = error_class("It failed.", request, 1, status)
    error.retry_after = retry_after
    return error


async def call(function: Callable[[Any], Any], argument: Any) -> Any:
    """The function's result."""
    return function(argument)


@contextmanager
def polls_in_parallel(account: Account) -> Iterator[None]:
    """Time passes while polls that C(in_thread) delays are running."""
    asyncio_wait = asyncio.wait

    async def wait(polls: Any, timeout: float | None = None, **options: Any) -> Any:
        ended, running = await asyncio_wait(polls, timeout=0.01, **options)
        if not ended and timeout:
            account.clock.elapsed += timeout
        return ended, running

    with mock.patch.object(asyncio, "wait", wait):
        yield
