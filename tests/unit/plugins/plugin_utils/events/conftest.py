# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An account in memory, which an event source follows on a fake clock."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Callable
from unittest import mock

from ansible_collections.clouddb.control.plugins.module_utils._http.errors import NotFound, StatusError, Unauthorized
from ansible_collections.clouddb.control.plugins.module_utils._http.message import Request
from ansible_collections.clouddb.control.tests.unit.support.simulated_operations import (
    EventList,
    SimulatedOperation,
    SimulatedOperations,
    follow,
)

LIST = "/projects"
# A moment after the end of each test.
EVER = 1e9


class Account(SimulatedOperations):
    """An account with these projects, from which requests and projects are missing for some time.

    C(emitted) are the events of the event source.
    """

    def __init__(self, *projects: str, has_hints: bool = False) -> None:
        super().__init__(self._before, has_hints)
        self.emitted = EventList(self.clock)
        # The status of the response to a request for this path at this moment, if it is an error.
        self.error: Callable[[float, str], int | None] = lambda moment, path: None
        # The projects that the list lacks, and from when until when.
        self.hidden: dict[str, tuple[float, float]] = {}
        for project in projects:
            self.add_project(project)

    def start(self, project: str, moment: float, seconds: float = 5.0) -> None:
        """Start an operation that takes C(seconds)."""
        statuses = [(moment, "running"), (moment + seconds, "finished")]
        self.add_operation(project, SimulatedOperation(f"{project}-{moment:g}", "create_branch", statuses))

    def follow(self, seconds: float, requests_per_minute: int = 60_000, **args: Any) -> list[str]:
        """Run the event source for C(seconds); all events until now, each as C(OPERATION STATUS)."""
        follow(self, seconds, self.emitted, requests_per_minute=requests_per_minute, **args)
        operations = [event["clouddb"]["operation"] for _moment, event in self.emitted]
        return [f"{operation['id']} {operation['status']}" for operation in operations]

    def moments(self, name: str) -> list[float]:
        """When the operations of a project were listed, or with LIST the projects."""
        path = LIST if name == LIST else f"{LIST}/{name}/operations"
        return [moment for moment, sent in self.sent if sent == path]

    def seconds(self, name: str) -> list[int]:
        return list(map(round, self.moments(name)))

    def polled(self) -> list[str]:
        """The projects in the order in which they were polled."""
        return [path.split("/")[2] for _moment, path in self.sent if path.endswith("/operations")]

    def delays(self, project: str) -> list[float]:
        """The seconds from each change to its event."""
        changed = {
            f"{each.id} {status}": moment for each in self.operations[project] for moment, status in each.statuses
        }
        events = [(moment, event["clouddb"]["operation"]) for moment, event in self.emitted]
        return [
            moment - changed[f"{each['id']} {each['status']}"]
            for moment, each in events
            if each["project_id"] == project
        ]

    def _before(self, path: str) -> None:
        status = self.error(self.clock.elapsed, path)
        if status:
            error_class = {401: Unauthorized, 404: NotFound}.get(status, StatusError)
            raise error_class("It failed.", Request("GET", path, "request"), 1, status)

    def _page(self, path: str, field: str, items: Any, *arguments: Any) -> Any:
        def is_hidden(item: Any) -> bool:
            since, until = self.hidden.get(item, (EVER, EVER))
            return since < self.clock.elapsed < until

        return super()._page(path, field, [item for item in items if path != LIST or not is_hidden(item)], *arguments)


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
