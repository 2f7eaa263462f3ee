# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An event source that runs on a fake clock, against a sandbox or an account in memory."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any, Callable

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._http.errors import NotFound, StatusError
from ansible_collections.clouddb.control.plugins.module_utils._http.session import Request
from ansible_collections.clouddb.control.plugins.plugin_utils._events.emitter import EventQueue
from ansible_collections.clouddb.control.plugins.plugin_utils._events.follower import Follower
from ansible_collections.clouddb.control.plugins.plugin_utils._events.options import source_options
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import FakeClock
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox
from ansible_collections.clouddb.control.tests.unit.support.simulated_operations import (
    EventList,
    SimulatedOperation,
    SimulatedOperations,
    follow,
)

Steps = dict[float, Callable[[], Any]]


LIST = "/projects"
# A moment after the end of each test.
EVER = 1e9


class Account(SimulatedOperations):
    """An account with these projects, from which requests and projects are missing for some time.

    C(sent) are the requests, each with its moment, and C(events) what the event source has emitted, as C(OPERATION STATUS).
    """

    def __init__(self, *projects: str, has_hints: bool = False) -> None:
        super().__init__(self._before, has_hints)
        self.sent: list[tuple[float, str]] = []
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
        return [path.split("/")[2] for path in self.paths if path.endswith("/operations")]

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
        self.sent.append((self.clock.elapsed, path))
        status = self.error(self.clock.elapsed, path)
        if status:
            error_class = NotFound if status == 404 else StatusError
            raise error_class("It failed.", Request("GET", path, "request"), 1, status)

    def _page(self, path: str, field: str, items: Any, *arguments: Any) -> Any:
        def is_hidden(item: Any) -> bool:
            since, until = self.hidden.get(item, (EVER, EVER))
            return since < self.clock.elapsed < until

        return super()._page(path, field, [item for item in items if path != LIST or not is_hidden(item)], *arguments)


class EventSource:
    """Runs followers against the sandbox; C(events) are those that they have emitted."""

    def __init__(self, sandbox: Sandbox, clock: FakeClock, state_file: Path):
        self.sandbox = sandbox
        self.clock = clock
        self.state_file = state_file
        self.events: list[dict[str, Any]] = []

    async def put(self, event: dict[str, Any], /) -> None:
        self.events.append(event)

    def follower(self, seconds: float, steps: Steps, queue: EventQueue | None = None, **args: Any) -> Follower:
        """A follower that is cancelled after C(seconds); the steps are run at their seconds."""
        left = dict(sorted(steps.items()))
        start = self.clock.elapsed

        async def sleep(pause: float) -> None:
            wakes = self.clock.elapsed + pause
            for at in [at for at in left if start + at <= wakes]:
                self.clock.sleep(max(0.0, start + at - self.clock.elapsed))
                left.pop(at)()
            if wakes > start + seconds:
                self.clock.sleep(max(0.0, start + seconds - self.clock.elapsed))
                assert not left
                raise asyncio.CancelledError
            self.clock.sleep(max(0.0, wakes - self.clock.elapsed))

        connection = {"base_url": self.sandbox.base_url, "api_key": self.sandbox.api_key}
        options = source_options({**connection, **args})
        return Follower(options, queue or self, clock=self.clock.clock, sleep=sleep)

    def run(self, seconds: float, steps: Steps | None = None, **args: Any) -> list[str]:
        """Run a follower for C(seconds); the events that it emits, each as C(action previous_status > status)."""
        before = len(self.events)
        with suppress(asyncio.CancelledError):
            asyncio.run(self.follower(seconds, steps or {}, **args).run())
        return [summary(event) for event in self.events[before:]]


def summary(event: dict[str, Any]) -> str:
    content = event["clouddb"]
    return f"{content['operation']['action']} {content['previous_status']} > {content['operation']['status']}"


@pytest.fixture
def source(sandbox: Sandbox, clock: FakeClock, tmp_path: Path) -> EventSource:
    return EventSource(sandbox, clock, tmp_path / "state.json")
