# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the pauses of a wait trade requests against lag, by simulating many waits."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from ansible_collections.clouddb.control.tests.benchmark.simulated_wait import LATENCY, OURS, Pauses, simulate

# What a task takes besides the wait, about.
TASK_SECONDS = 0.7
FIXED = [Pauses(seconds, 1, seconds) for seconds in (0.5, 1, 2, 5)]
GROWING = [
    Pauses(first, growth, OURS.longest) for growth in (1.2, 1.3, 1.5, 1.75, 2) for first in (0.1, 0.2, 0.3, 0.5, 1)
]


def evenly_by_size(shortest: float, longest: float, number: int) -> list[float]:
    """Durations from the shortest to the longest, as many between 1 and 2 as between 10 and 20."""
    return [shortest * (longest / shortest) ** (position / (number - 1)) for position in range(number)]


TYPICAL = evenly_by_size(0.1, 30, 300)
LONG = evenly_by_size(30, 300, 150)


def measure() -> dict[str, Any]:
    """Mean requests and mean lag for fixed and for growing pauses."""
    candidates = {"ours": [OURS], "fixed": FIXED, "growing": [pauses for pauses in GROWING if pauses != OURS]}
    return {
        "latency": LATENCY,
        "task_seconds": TASK_SECONDS,
        **{kind: [_measure_pauses(pauses) for pauses in each] for kind, each in candidates.items()},
    }


def _measure_pauses(pauses: Pauses) -> dict[str, Any]:
    return {**pauses._asdict(), "typical": _means(TYPICAL, pauses), "long": _means(LONG, pauses)}


def _means(durations: Sequence[float], pauses: Pauses) -> dict[str, float]:
    outcomes = [simulate(duration, pauses) for duration in durations]
    return {
        "requests": fmean(outcome.requests for outcome in outcomes),
        "lag": fmean(outcome.lag for outcome in outcomes),
        # How much longer the task takes than one that knew the end beforehand.
        "stretch": fmean(outcome.lag / (duration + TASK_SECONDS) for duration, outcome in zip(durations, outcomes)),
    }
