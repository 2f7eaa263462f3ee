# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The time from a change of an operation to its event, by simulating the event source with accounts of several sizes.

C(.venv/bin/python tests/tools/workspace.py python tests/eda/event_delays.py) prints them, without hints in the project list and with them.
"""

from __future__ import annotations

import random
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[5]))

from ansible_collections.clouddb.control.plugins.plugin_utils._events.schedule import BUSY_SECONDS
from ansible_collections.clouddb.control.tests.unit.support.simulated_operations import (
    EventList,
    SimulatedOperation,
    SimulatedOperations,
    follow,
)

PROJECTS = (10, 100, 500, 1000, 5000)
SHARE_OF_BUSY_PROJECTS = 0.01
# From the end of an operation of a busy project to the next one, on average.
SECONDS_BETWEEN_OPERATIONS = 60
# The other projects have one to three operations in a row, as often as this on average, but in an account of any size at least
# one a minute.
SECONDS_BETWEEN_BURSTS = 24 * 3600
MAX_SECONDS_BETWEEN_BURSTS = 60
SECONDS_BEFORE_NEXT_BURST = 900
# What is measured after the first rounds through the account.
SECONDS = 3600


class Delays(NamedTuple):
    """Seconds from changes to their events.

    A project is busy if one of its operations has changed in the BUSY_SECONDS before the change, and its event was emitted. Otherwise,
    its next change is the first one of an idle project.
    """

    busy: list[float]
    idle: list[float]


class Change(NamedTuple):
    """A new status of an operation."""

    project: str
    operation: str
    moment: float


class Noticed(NamedTuple):
    """When an operation has changed, and when the event was emitted."""

    moment: float
    reported_at: float


def measure_account(number: int, has_hints: bool) -> dict[str, Any]:
    """Median, 95th percentile and maximum of the delays in an account with this number of projects. Fails if a change is lost."""
    warm_up = 300 + number / 2
    end = warm_up + SECONDS
    requests: list[float] = []
    account = SimulatedOperations(lambda path: requests.append(account.clock.elapsed), has_hints)
    changes = list(_workload(account, number, end))
    events = EventList(account.clock)
    # Until each project has been polled once more.
    follow(account, end + 600 + number / 2, events, page_size=400)
    delays = _delays(changes, events, warm_up)
    return {
        "projects": number,
        "has_hints": has_hints,
        "requests_per_minute": sum(warm_up <= moment < end for moment in requests) / SECONDS * 60,
        "busy": _summary(delays.busy),
        "idle": _summary(delays.idle),
    }


def _summary(delays: Sequence[float]) -> dict[str, float]:
    ordered = sorted(delays)
    return {
        "number": len(ordered),
        "median": median(ordered),
        "p95": ordered[int(len(ordered) * 0.95)],
        "max": ordered[-1],
    }


def _workload(account: SimulatedOperations, number: int, seconds: float) -> Iterator[Change]:
    """Add projects with their operations of all the time; the changes."""
    chance = random.Random(1)
    projects = [f"project-{each}" for each in range(number)]
    for project in projects:
        account.add_project(project)
        account.add_operation(project, SimulatedOperation(f"{project}-0", "create_timeline", [(-3600.0, "finished")]))
    chance.shuffle(projects)
    busy = projects[: max(1, int(number * SHARE_OF_BUSY_PROJECTS))]
    for project in busy:
        start = chance.uniform(0, 30)
        while start < seconds:
            start = yield from _operation(account, project, start, chance)
            start += chance.expovariate(1 / SECONDS_BETWEEN_OPERATIONS)
    free_at = dict.fromkeys(projects[len(busy) :], 0.0)
    start = 0.0
    while start < seconds:
        project = chance.choice(list(free_at))
        if free_at[project] <= start:
            end = start
            for _operation_of_burst in range(chance.randint(1, 3)):
                end = yield from _operation(account, project, end + chance.uniform(0, 2), chance)
            free_at[project] = end + SECONDS_BEFORE_NEXT_BURST
        start += chance.expovariate(max(number / SECONDS_BETWEEN_BURSTS, 1 / MAX_SECONDS_BETWEEN_BURSTS))


def _operation(account: SimulatedOperations, project: str, start: float, chance: random.Random) -> Any:
    """Add an operation of up to 40 seconds; yield its changes and return its end."""
    end = start + chance.uniform(2, 40)
    last = "failed" if chance.random() < 0.1 else "finished"
    statuses = [(start, "scheduling"), (start + chance.uniform(0.5, 1.9), "running"), (end, last)]
    operation_id = f"{project}-{len(account.operations[project])}"
    account.add_operation(project, SimulatedOperation(operation_id, "create_branch", statuses))
    for moment, _status in statuses:
        yield Change(project, operation_id, moment)
    return end


def _delays(changes: Sequence[Change], events: EventList, warm_up: float) -> Delays:
    """A change that a later one of the same operation overtook has the delay of that one's event. Fails if a change has no event."""
    reported: dict[str, list[float]] = defaultdict(list)
    for moment, event in events:
        operation = event["clouddb"]["operation"]
        reported[operation["id"]].append(moment)
    delays = Delays([], [])
    lost: list[Change] = []
    noticed: dict[str, list[Noticed]] = defaultdict(list)
    unnoticed_until: dict[str, float] = {}
    for change in sorted(changes, key=lambda change: change.moment):
        at = next((moment for moment in reported[change.operation] if moment >= change.moment), None)
        if at is None:
            lost.append(change)
            continue
        earlier = [each for each in noticed[change.project] if each.moment >= change.moment - BUSY_SECONDS]
        noticed[change.project] = [*earlier, Noticed(change.moment, at)]
        if any(each.reported_at <= change.moment for each in earlier):
            kind = delays.busy
        elif change.moment >= unnoticed_until.get(change.project, 0.0):
            unnoticed_until[change.project] = at
            kind = delays.idle
        else:
            continue
        if change.moment >= warm_up:
            kind.append(at - change.moment)
    if lost:
        raise RuntimeError(f"{len(lost)} of {len(changes)} changes caused no event, the first one is {lost[0]}.")
    return delays


if __name__ == "__main__":
    for hints in (False, True):
        for size in PROJECTS:
            print(measure_account(size, hints), flush=True)
