# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Simulated waits, by which the poll intervals were chosen."""

from __future__ import annotations

import pytest

from ansible_collections.clouddb.control.tests.benchmark.simulated_wait import (
    LATENCY,
    OURS,
    Outcome,
    PollIntervals,
    simulate,
)


def approximately(lag: float, requests: int) -> Outcome:
    return Outcome(pytest.approx(lag), requests)  # type: ignore[arg-type]


def test_a_finished_operation_needs_one_poll() -> None:
    assert simulate(0.0) == approximately(LATENCY, 1)


def test_fixed_intervals_poll_repeatedly() -> None:
    # Polls begin at 0, 2.1, 4.2 and 6.3 seconds.
    assert simulate(4.5, PollIntervals(2, 1, 2)) == approximately(6.3 + LATENCY - 4.5, 4)


def test_growing_intervals_stop_growing_at_the_longest() -> None:
    # Polls begin at 0, 1.1, 3.2, 6.3 and 9.4 seconds.
    assert simulate(9.0, PollIntervals(1, 2, 3)) == approximately(9.4 + LATENCY - 9.0, 5)


@pytest.mark.parametrize(
    "others",
    [
        PollIntervals(0.1, 1.75, 5),
        PollIntervals(0.5, 1.5, 5),
        PollIntervals(1, 1.2, 5),
        PollIntervals(2, 1, 2),
        PollIntervals(5, 1, 5),
    ],
)
def test_no_other_intervals_have_less_lag_with_as_few_requests(others: PollIntervals) -> None:
    durations = [0.1 * 300 ** (position / 59) for position in range(60)]

    def cost(intervals: PollIntervals) -> tuple[float, int]:
        outcomes = [simulate(duration, intervals) for duration in durations]
        return sum(outcome.lag / (duration + 0.7) for duration, outcome in zip(durations, outcomes)), sum(
            outcome.requests for outcome in outcomes
        )

    (our_stretch, our_requests), (their_stretch, their_requests) = cost(OURS), cost(others)
    assert their_stretch > our_stretch or their_requests > our_requests
