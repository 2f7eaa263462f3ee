# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pauses while polls fail."""

from __future__ import annotations

import pytest

from ansible_collections.clouddb.control.plugins.plugin_utils._events.outage import MAX_PARALLEL, Outage
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import FakeClock


class Polls:
    """Polls that take 0.1 s each, and run as far as an outage allows."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.outage = Outage(5, 30, self.clock.clock)
        self.running = 0

    def pauses(self, failures: int) -> list[float]:
        """The pauses while a number of polls fail, one after another."""
        found = []
        for _failure in range(failures):
            while self.running < self.outage.limit() and not self.outage.pause():
                self.running += 1
            if not self.running:
                found.append(self.outage.pause())
                self.clock.sleep(self.outage.pause())
                self.running = 1
            self.clock.sleep(0.1)
            self.running -= 1
            self.outage.failed(0)
        return found


@pytest.fixture
def polls() -> Polls:
    return Polls()


def test_pauses_grow_from_interval_to_max_interval(polls: Polls) -> None:
    """Three polls are still running when the service is found to be down."""
    pauses = polls.pauses(14)
    assert pauses == pytest.approx([4.8, 7.5, 11.25, 16.875, 25.3125, 30, 30])


def test_service_is_down_after_as_many_failures_as_polls_run(polls: Polls) -> None:
    for _failure in range(MAX_PARALLEL):
        assert (polls.outage.limit(), polls.outage.pause()) == (MAX_PARALLEL, 0)
        polls.outage.failed(0)
    assert (polls.outage.limit(), polls.outage.pause()) == (1, 0)
    polls.outage.failed(0)
    assert (polls.outage.limit(), polls.outage.pause()) == (1, 5)
    polls.outage.succeeded()
    assert polls.outage.limit() == MAX_PARALLEL


def test_failures_of_the_same_moment_make_no_longer_pause(polls: Polls) -> None:
    for _failure in range(MAX_PARALLEL + 4):
        polls.outage.failed(0)
    assert polls.outage.pause() == 5


def test_retry_after_delays_every_poll(polls: Polls) -> None:
    polls.outage.failed(100)
    polls.outage.failed(50)
    assert (polls.outage.pause(), polls.outage.seconds_since_pause()) == (100, 0)
    polls.clock.sleep(103)
    assert polls.outage.pause() == 0
    assert polls.outage.seconds_since_pause() == 3
    assert polls.outage.limit() == MAX_PARALLEL


def test_outage_of_any_length(polls: Polls) -> None:
    assert polls.pauses(10_000)[-1] == 30
    polls.outage = Outage(5, 1e9, polls.clock.clock)
    assert polls.pauses(50)[-1] == pytest.approx(5 * 1.5**30)
