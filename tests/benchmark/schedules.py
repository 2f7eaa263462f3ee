# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The trade-off between requests and lag for several poll intervals, by simulating many waits."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from ansible_collections.clouddb.control.tests.benchmark.simulated_wait import LATENCY, OURS, PollIntervals, simulate

# Approximate duration of a task besides its wait.
TASK_SECONDS = 0.7
FIXED = [PollIntervals(seconds, 1, seconds) for seconds in (0.5, 1, 2, 5)]
GROWING = [
    PollIntervals(first, growth, OURS.longest)
    for growth in (1.2, 1.3, 1.5, 1.75, 2)
    for first in (0.1, 0.2, 0.3, 0.5, 1)
]


def logarithmic(shortest: float, longest: float, number: int) -> list[float]:
    """Durations from the shortest to the longest, evenly spaced on a logarithmic scale."""
    return [shortest * (longest / shortest) ** (position / (number - 1)) for position in range(number)]


TYPICAL = logarithmic(0.1, 30, 300)
LONG = logarithmic(30, 300, 150)


def measure() -> dict[str, Any]:
    """Mean requests and mean lag for fixed and for growing poll intervals."""
    candidates = {"ours": [OURS], "fixed": FIXED, "growing": [intervals for intervals in GROWING if intervals != OURS]}
    return {
        "latency": LATENCY,
        "task_seconds": TASK_SECONDS,
        **{kind: [_measure_intervals(intervals) for intervals in each] for kind, each in candidates.items()},
    }


def _measure_intervals(intervals: PollIntervals) -> dict[str, Any]:
    return {**intervals._asdict(), "typical": _means(TYPICAL, intervals), "long": _means(LONG, intervals)}


def _means(durations: Sequence[float], intervals: PollIntervals) -> dict[str, float]:
    outcomes = [simulate(duration, intervals) for duration in durations]
    return {
        "requests": fmean(outcome.requests for outcome in outcomes),
        "lag": fmean(outcome.lag for outcome in outcomes),
        # The lag as a share of the shortest possible duration of the task.
        "stretch": fmean(outcome.lag / (duration + TASK_SECONDS) for duration, outcome in zip(durations, outcomes)),
    }
