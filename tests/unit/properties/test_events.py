# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Events agree with what happens to operations, whatever requests fail, and whenever the event source stops or crashes."""

from __future__ import annotations

import asyncio
import itertools
import json
import tempfile
from collections import defaultdict
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from ansible_collections.clouddb.control.plugins.module_utils._http.errors import RequestFailed
from ansible_collections.clouddb.control.plugins.module_utils._operations.status import FAILED, SUCCEEDED
from ansible_collections.clouddb.control.plugins.plugin_utils._events.checkpoint import Checkpoint
from ansible_collections.clouddb.control.tests.unit.support.simulated_operations import LIST, Account, Operation

# Everything has been polled after this time, in seconds, even after a Retry-After.
SETTLE = 500
# What may happen to a request.
FAULTS = ("cut off", "not JSON", 429, (429, 55.0), 423, 500, 503, 400, 403, 404)
numbers = st.integers(0, 20)
# The seconds from one status of an operation to the next one.
timelines = st.lists(
    st.tuples(st.floats(0.5, 60), st.sampled_from(["scheduling", "running", "failed", "finished"])),
    min_size=1,
    max_size=5,
)


class Faults(NamedTuple):
    """What happens to requests of one run, by their number.

    Some lists may lack their first or their last project, by the number of their page.
    """

    polls: dict[int, Any] = {}
    lists: dict[int, Any] = {}
    incomplete_lists: Collection[int] = ()
    lacks_first: bool = False


faults = st.builds(
    Faults,
    st.dictionaries(st.integers(0, 60), st.sampled_from(FAULTS), max_size=15),
    st.dictionaries(st.integers(0, 15), st.sampled_from(FAULTS), max_size=5),
    # After each list, there is an empty page.
    st.sampled_from([(2,), (4,), (6,), (2, 4), (4, 6)]),
    st.booleans(),
)


class Emitted(NamedTuple):
    """An event, and the number of the run of the event source that has emitted it."""

    operation: str
    previous_status: str | None
    status: str
    updated_at: str
    uuid: str
    run: int


class Events(RuleBasedStateMachine):
    """An account whose operations move, and an event source with a state file that is started again and again."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory(prefix="clouddb-events-")
        self.state_file = Path(self._folder.name) / "state.json"
        self.account = Account()
        self.account.queue, self.account.fault, self.account.listed = self, self.fault, self.listed
        self.emitted: list[Emitted] = []
        self.runs, self.names = 0, itertools.count()
        self.crashed_runs: set[int] = set()
        # All operations ever, even those that have vanished, and those that existed at the first start.
        self.operations: dict[str, Operation] = {}
        self.past: set[str] = set()
        self.vanished: set[str] = set()
        # Those of projects that were deleted: before they were listed, and later on.
        self.never_listed: set[str] = set()
        self.deleted: set[str] = set()

    def fault(self, _moment: float, path: str) -> Any:
        kind = "lists" if path == LIST else "polls"
        return getattr(self.faults, kind).get(next(self.numbers[kind]))

    def listed(self, projects: Sequence[str]) -> Sequence[str]:
        """The projects of a list, which may lack one."""
        if next(self.numbers["pages"]) in self.faults.incomplete_lists:
            return projects[1:] if self.faults.lacks_first else projects[:-1]
        return projects

    async def put(self, event: dict[str, Any], /) -> None:
        if self.put_limit == 0:
            raise asyncio.CancelledError
        if self.put_limit:
            self.put_limit -= 1
        previous, operation = event["clouddb"]["previous_status"], event["clouddb"]["operation"]
        id_, status, updated_at = operation["id"], operation["status"], operation["updated_at"]
        self.emitted.append(Emitted(id_, previous, status, updated_at, event["meta"]["uuid"], self.runs))

    @rule(seconds=st.floats(0.1, 200), crashes=st.booleans(), faults=faults)
    def run_source(
        self, seconds: float, crashes: bool = False, faults: Faults = Faults(), put_limit: int | None = None
    ) -> None:
        """It runs for some time; a crash saves nothing at the end. After C(put_limit) events, the rules take no more."""
        self.faults, self.put_limit, self.numbers = faults, put_limit, defaultdict[str, Any](itertools.count)
        self.runs += 1
        if crashes:
            self.crashed_runs.add(self.runs)
        save_now = (lambda *_arguments: None) if crashes else Checkpoint.save_now
        # The first list of a run may be rejected.
        with mock.patch.object(Checkpoint, "save_now", save_now), suppress(RequestFailed):
            self.account.run_source(seconds, state_file=str(self.state_file))

    @initialize(projects=st.integers(1, 4), timeline=timelines)
    def start(self, projects: int, timeline: list[tuple[float, str]]) -> None:
        """The first start, at which each project has an operation."""
        for _project in range(projects):
            self.create_project(timeline)
        self.past = set(self.operations)
        self.account.clock.elapsed += 1
        self.run_source(60)

    # What happens in the account

    @precondition(lambda self: len(self.account.projects) < 6)
    @rule(timeline=timelines)
    def create_project(self, timeline: list[tuple[float, str]]) -> None:
        """It has an operation from the beginning."""
        self.account.add_project(f"project-{next(self.names)}")
        self.start_operation(len(self.account.projects) - 1, timeline)

    @precondition(lambda self: len(self.account.projects) > 1)
    @rule(number=numbers)
    def remove_project(self, number: int) -> None:
        """Its operations remain."""
        project = list(self.account.projects)[number % len(self.account.projects)]
        del self.account.projects[project]
        known = json.loads(self.state_file.read_text(encoding="utf-8"))["projects"]
        operations = self.deleted if project in known else self.never_listed
        operations.update(operation.id for operation in self.account.operations[project])

    @precondition(lambda self: self.account.projects)
    @rule(number=numbers, timeline=timelines)
    def start_operation(self, number: int, timeline: list[tuple[float, str]]) -> None:
        """Start an operation that has these statuses from now on."""
        self.account.clock.elapsed += 0.01
        moment = self.account.clock.elapsed
        statuses: list[tuple[float, str]] = []
        for pause, status in timeline:
            if not statuses or statuses[-1][1] != status:
                statuses.append((moment, status))
                moment += pause
        project = list(self.account.projects)[number % len(self.account.projects)]
        operation = self.account.add(project, f"operation-{next(self.names)}", *statuses)
        self.operations[operation.id] = operation

    @precondition(lambda self: any(self.account.operations.values()))
    @rule(number=numbers)
    def remove_operation(self, number: int) -> None:
        """The service no longer has this operation."""
        found = [(project, each) for project, operations in self.account.operations.items() for each in operations]
        project, operation = found[number % len(found)]
        self.account.operations[project].remove(operation)
        self.vanished.add(operation.id)

    @rule(seconds=st.floats(1, 200))
    def wait(self, seconds: float) -> None:
        """Time passes while the event source is not running."""
        self.account.clock.elapsed += seconds

    # What happens to the event source

    @precondition(lambda self: self.account.projects)
    @rule(number=numbers, timeline=timelines, lists=st.integers(1, 5), lacks_first=st.booleans())
    def run_with_incomplete_lists(
        self, number: int, timeline: list[tuple[float, str]], lists: int, lacks_first: bool
    ) -> None:
        """Lists in a row lack a project that may have changed just before; only two lack one that was never listed."""
        self.start_operation(number, timeline)
        lacking = list(self.account.projects)[0 if lacks_first else -1]
        saved = json.loads(self.state_file.read_text(encoding="utf-8"))
        lists = lists if lacking in saved["projects"] else min(lists, 2)
        faults = Faults(incomplete_lists=range(2, 2 + 2 * lists, 2), lacks_first=lacks_first)
        self.run_source(150.0, faults=faults)

    @precondition(lambda self: self.account.projects)
    @rule(number=numbers, timeline=timelines, put_limit=st.integers(0, 3), crashes=st.booleans())
    def run_until_event(self, number: int, timeline: list[tuple[float, str]], put_limit: int, crashes: bool) -> None:
        """It stops or crashes when it emits an event that the rules no longer take."""
        self.start_operation(number, timeline)
        self.run_source(100, crashes, put_limit=put_limit)

    def teardown(self) -> None:
        """Check what has to hold in the end."""
        with self._folder:
            if self.runs:
                self.run_source(SETTLE)
                for operation_id in self.operations:
                    self.check(operation_id, [event for event in self.emitted if event.operation == operation_id])

    def check(self, operation_id: str, events: list[Emitted]) -> None:
        statuses = self.operations[operation_id].statuses
        moments = {(self.account.timestamp(moment), status): moment for moment, status in statuses}
        seen: dict[str, Emitted] = {}
        previous: Emitted | None = None
        for event in events:
            # It is not invented.
            assert (event.updated_at, event.status) in moments, event
            if event.uuid in seen:
                # It is repeated only if the run that has emitted it crashed.
                assert seen[event.uuid].run in self.crashed_runs, event
                assert event == seen[event.uuid]._replace(run=event.run)
            seen[event.uuid] = event
            if previous and previous.run not in self.crashed_runs:
                assert event.previous_status == previous.status, (previous, event)
                assert moments[event.updated_at, event.status] > moments[previous.updated_at, previous.status]
            elif previous is None and operation_id not in self.past:
                assert event.previous_status is None
            previous = event
        if operation_id in self.past | self.vanished | self.never_listed:
            return
        # It is not lost.
        last = statuses[-1][1]
        assert previous, f"{operation_id} has no event"
        if operation_id in self.deleted and previous.status in SUCCEEDED | FAILED:
            # A deleted project is followed until its operations have ended, even if one comes back later.
            return
        assert last in {event.status for event in events}, (events, statuses)
        assert previous.status == last or previous.run in self.crashed_runs, (events, statuses)


TestEvents = Events.TestCase
TestEvents.settings = settings(stateful_step_count=20)
