# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cells of the matrix, in an order whose beginning covers most pairs of step, event and scenario.

All combinations would take a day. The matrix has all pairs.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import combinations
from typing import Any, NamedTuple

from scenarios import SCENARIOS, Scenario

# Each with the hosts that it happens to, if the step uses their connection.
CONNECTION_EVENTS = ("unreachable", "unreachable_once", "fails", "response_lost")
RUN_EVENTS = ("killed", "killed_after", "second_rotation")
EDITS = ("garbage", "older secret", "empty", "removed")
AFFECTED_HOSTS = ("web1", "web2", "localhost")


class Cell(NamedTuple):
    """One run with an event: the event, at which step, and how the role is included."""

    scenario: str
    tasks: bool
    event: str
    host: str
    step: tuple[str, int]

    def __str__(self) -> str:
        number = f" #{self.step[1]}" if self.step[1] > 1 else ""
        host = f" {self.host}" if self.host else ""
        place = f" at {self.step[0]}{number}" if self.step[0] else ""
        return f"{self.scenario}{', tasks' if self.tasks else ''}: {self.event}{host}{place}"


def cells_of(scenario: Scenario, tasks: bool, steps: list[dict[str, Any]]) -> Iterator[Cell]:
    yield Cell(scenario.name, tasks, "undisturbed", "", ("", 1))
    for step in steps:
        place = (str(step["step"][0]), int(step["step"][1]))
        for event in CONNECTION_EVENTS:
            for host in AFFECTED_HOSTS:
                if host in step["hosts"]:
                    yield Cell(scenario.name, tasks, event, host, place)
        for event in RUN_EVENTS:
            yield Cell(scenario.name, tasks, event, "", place)
        # A host that is not on the play does not use the key.
        for content in EDITS if "web2" in scenario.hosts else ():
            yield Cell(scenario.name, tasks, f"edited: {content}", "web2", place)


def pairs(cell: Cell) -> set[tuple[Any, ...]]:
    """What a cell covers: pairs of scenario, deployment, event with its host, and step."""
    return set(
        combinations((("scenario", cell.scenario), ("tasks", cell.tasks), (cell.event, cell.host), cell.step), 2)
    )


def ordered(cells: list[Cell]) -> list[Cell]:
    """Cells that cover all pairs, those with the most new pairs first. The order is always the same."""
    # By each cell's name, so that a step that only some runs have does not change the place of other cells.
    shuffled = sorted(cells, key=lambda cell: random.Random(str(cell)).random())
    chosen: list[Cell] = []
    covered: set[tuple[Any, ...]] = set()
    for least in (6, 5, 4, 3, 2, 1):
        for cell in shuffled:
            if len(pairs(cell) - covered) >= least:
                chosen.append(cell)
                covered |= pairs(cell)
    return chosen


def all_cells(steps: dict[str, list[dict[str, Any]]]) -> list[Cell]:
    """The matrix; the scenarios whose steps are not known have those of the first one."""
    found: list[Cell] = []
    for scenario in SCENARIOS:
        for tasks in (False, True):
            plain = steps[key(SCENARIOS[0], tasks)]
            found += cells_of(scenario, tasks, steps.get(key(scenario, tasks), plain))
    return ordered(found)


def key(scenario: Scenario, tasks: bool) -> str:
    return f"{scenario.name}, tasks" if tasks else scenario.name
