# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The time from a change of an operation to its event, by simulating the event source with accounts of several sizes.

C(.venv/bin/python tests/tools/workspace.py python tests/eda/event_delays.py) prints them, without hints in the project list and with them.
"""

from __future__ import annotations

import random
import sys
from collections import defaultdict
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[5]))

from ansible_collections.clouddb.control.plugins.plugin_utils._events.schedule import BUSY_SECONDS
from ansible_collections.clouddb.control.tests.unit.support.simulated_operations import Account

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


def measure_account(number: int, has_hints: bool) -> str:
    """The delays in an account with this number of projects."""
    warm_up = 300 + number / 2
    end = warm_up + SECONDS
    account = Account(has_hints=has_hints)
    _add_workload(account, number, end)
    # Until each project has been polled once more.
    account.run_source(end + 600 + number / 2, page_size=400)
    busy, other = _delays(account, warm_up)
    per_minute = sum(warm_up <= moment < end for moment, _path in account.sent) / SECONDS * 60
    return (
        f"{number} projects, {'with' if has_hints else 'without'} hints: {per_minute:.0f} requests per minute, median and maximum "
        f"of busy projects {median(busy):.0f} s, {max(busy):.0f} s, of others {median(other):.0f} s, {max(other):.0f} s"
    )


def _add_workload(account: Account, number: int, seconds: float) -> None:
    """Add projects with their operations of all the time."""
    chance = random.Random(1)
    projects = [f"project-{each}" for each in range(number)]
    for project in projects:
        account.add_project(project)
        account.add(project, f"{project}-0", (-3600.0, "finished"))
    chance.shuffle(projects)
    busy = projects[: max(1, int(number * SHARE_OF_BUSY_PROJECTS))]
    for project in busy:
        start = chance.uniform(0, 30)
        while start < seconds:
            start = _add_operation(account, project, start, chance)
            start += chance.expovariate(1 / SECONDS_BETWEEN_OPERATIONS)
    free_at = dict.fromkeys(projects[len(busy) :], 0.0)
    start = 0.0
    while start < seconds:
        project = chance.choice(list(free_at))
        if free_at[project] <= start:
            end = start
            for _operation_of_burst in range(chance.randint(1, 3)):
                end = _add_operation(account, project, end + chance.uniform(0, 2), chance)
            free_at[project] = end + SECONDS_BEFORE_NEXT_BURST
        start += chance.expovariate(max(number / SECONDS_BETWEEN_BURSTS, 1 / MAX_SECONDS_BETWEEN_BURSTS))


def _add_operation(account: Account, project: str, start: float, chance: random.Random) -> float:
    """Add an operation of up to 40 seconds; its end."""
    end = start + chance.uniform(2, 40)
    last = "failed" if chance.random() < 0.1 else "finished"
    statuses = [(start, "scheduling"), (start + chance.uniform(0.5, 1.9), "running"), (end, last)]
    operation_id = f"{project}-{len(account.operations[project])}"
    account.add(project, operation_id, *statuses)
    return end


def _delays(account: Account, warm_up: float) -> tuple[list[float], list[float]]:
    """The seconds from changes to their events: of busy projects, and of others. Fails if a change has no event.

    A project is busy if one of its operations has changed in the BUSY_SECONDS before the change, and its event was emitted. Of others,
    the first change counts. A change that a later one of the same operation overtook has the delay of that one's event.
    """
    emitted: dict[str, list[float]] = defaultdict(list)
    for moment, event in account.emitted:
        emitted[event["clouddb"]["operation"]["id"]].append(moment)
    busy: list[float] = []
    other: list[float] = []
    # The changes of a project, each with the moment of its event, and until when its first change is unnoticed.
    noticed: dict[str, list[tuple[float, float]]] = defaultdict(list)
    unnoticed_until: dict[str, float] = {}
    changes = [
        (moment, project, operation.id)
        for project, operations in account.operations.items()
        for operation in operations[1:]
        for moment, _status in operation.statuses
    ]
    for moment, project, operation in sorted(changes):
        at = next((each for each in emitted[operation] if each >= moment), None)
        if at is None:
            raise RuntimeError(f"The change of {operation} at {moment} caused no event.")
        earlier = [each for each in noticed[project] if each[0] >= moment - BUSY_SECONDS]
        noticed[project] = [*earlier, (moment, at)]
        if any(reported_at <= moment for _moment, reported_at in earlier):
            kind = busy
        elif moment >= unnoticed_until.get(project, 0.0):
            unnoticed_until[project] = at
            kind = other
        else:
            continue
        if moment >= warm_up:
            kind.append(at - moment)
    return busy, other


if __name__ == "__main__":
    for hints in (False, True):
        for size in PROJECTS:
            print(measure_account(size, hints), flush=True)
