# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""When each name is polled, and in which order."""

from __future__ import annotations

import math

import pytest

from ansible_collections.clouddb.control.plugins.plugin_utils._events.schedule import Schedule
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import FakeClock

SECONDS_PER_POLL = 0.1


# When a project was polled, in seconds since the test began, and its name.
Poll = tuple[float, str]


class Simulation:
    """Polls projects on a fake clock; those in C(unfinished) have unfinished operations, those in C(changing) change each time."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.schedule = Schedule(interval=5, max_interval=30, clock=self.clock.clock)
        self.unfinished: set[str] = set()
        self.changing: set[str] = set()

    def pause(self) -> float:
        return max(0.0, self.schedule.due() - self.clock.clock.monotonic())

    def run(self, seconds: float, seconds_per_poll: float = 0.0) -> list[Poll]:
        """The polls of this time, each of which takes C(seconds_per_poll)."""
        polls: list[Poll] = []
        end = self.clock.elapsed + seconds
        while self.clock.elapsed + self.pause() <= end:
            self.clock.sleep(self.pause())
            name = self.schedule.start()
            assert name is not None
            polls.append((self.clock.elapsed, name))
            self.clock.sleep(seconds_per_poll)
            self.schedule.polled(name, 0.0 if name in self.changing else None, name in self.unfinished)
        self.clock.sleep(max(0.0, end - self.clock.elapsed))
        return polls


@pytest.fixture
def simulation() -> Simulation:
    return Simulation()


def intervals(polls: list[Poll], name: str) -> list[float]:
    """The seconds between the polls of this name."""
    moments = [moment for moment, polled in polls if polled == name]
    return [later - earlier for earlier, later in zip(moments, moments[1:])]


def names(number: int, prefix: str) -> list[str]:
    return [f"{prefix}{each}" for each in range(number)]


def test_new_projects_are_polled_at_once_in_their_order(simulation: Simulation) -> None:
    simulation.schedule.add(["b", "a"])
    assert [name for _moment, name in simulation.run(1)] == ["b", "a"]
    assert intervals(simulation.run(300), "a") == pytest.approx([30] * 9)


def test_project_with_unfinished_operations_remains_busy(simulation: Simulation) -> None:
    """However many others there are, it is polled every max_interval."""
    simulation.unfinished.add("a")
    simulation.schedule.add(["a", *names(1000, "idle")])
    assert max(intervals(simulation.run(600, SECONDS_PER_POLL), "a")) < 31


def test_project_is_busy_for_five_minutes_after_a_change(simulation: Simulation) -> None:
    simulation.schedule.add(["a"])
    simulation.changing.add("a")
    assert intervals(simulation.run(60), "a") == [5] * 12
    simulation.changing.clear()
    found = intervals(simulation.run(480), "a")
    assert found == sorted(found)
    assert (found.count(5), found.count(30)) == (59, 6)


def test_change_that_is_noticed_late_makes_a_project_busy_for_less_long(simulation: Simulation) -> None:
    """Polling it often would delay the others, although nothing happens any more."""
    simulation.schedule.add(["a"])
    assert simulation.schedule.start() == "a"
    simulation.schedule.polled("a", 280.0, has_unfinished=False)
    assert intervals(simulation.run(120), "a")[:5] == [5, 5, 5, 30, 30]


def test_project_is_not_polled_twice_at_once_and_not_after_its_removal(simulation: Simulation) -> None:
    simulation.schedule.add(["a"])
    assert simulation.schedule.start() == "a"
    assert simulation.schedule.start() is None
    assert simulation.schedule.due() == math.inf
    simulation.schedule.polled("a", seconds_since_change=0.0, has_unfinished=False)
    assert simulation.pause() == 5
    simulation.run(4)
    simulation.clock.sleep(1)
    assert simulation.schedule.start() == "a"
    simulation.schedule.remove("a")
    assert simulation.schedule.due() == math.inf


# Large accounts: each poll takes as long as the rate limit demands


def test_busy_projects_are_not_delayed_by_thousands_of_others(simulation: Simulation) -> None:
    """Even if they alone could take all requests; each of the others is polled, too."""
    simulation.changing = set(names(50, "busy"))
    simulation.schedule.add(names(2450, "idle"))
    simulation.schedule.add(sorted(simulation.changing))
    simulation.run(300, SECONDS_PER_POLL)
    polls = simulation.run(1200, SECONDS_PER_POLL)
    for name in simulation.changing:
        assert max(intervals(polls[6000:], name)) < 10
    assert {name for _moment, name in polls} == simulation.changing | set(names(2450, "idle"))


def test_too_many_busy_projects_are_delayed_evenly(simulation: Simulation) -> None:
    simulation.changing = set(names(200, "busy"))
    simulation.schedule.add(sorted(simulation.changing))
    # Until each of them has been polled for the first time.
    simulation.run(100, SECONDS_PER_POLL)
    polls = simulation.run(100, SECONDS_PER_POLL)
    found = [interval for name in simulation.changing for interval in intervals(polls, name)]
    assert 19 < min(found) <= max(found) < 21


def test_quiet_projects_take_turns_with_all_requests_that_the_busy_ones_leave(simulation: Simulation) -> None:
    simulation.schedule.add(["a", *names(1000, "idle")])
    assert simulation.schedule.start() == "a"
    simulation.schedule.polled("a", seconds_since_change=0.0, has_unfinished=False)
    found = intervals(simulation.run(1000, SECONDS_PER_POLL), "a")
    assert found[0] == pytest.approx(5, abs=1)
    assert found[-1] == pytest.approx(100, abs=1)


@pytest.mark.parametrize("fails", [False, True])
def test_hint_during_a_poll_causes_another_one(simulation: Simulation, fails: bool) -> None:
    """The running one may have read what was there before the change."""
    simulation.schedule.add(["a"])
    assert simulation.schedule.start() == "a"
    simulation.schedule.poll_soon("a")
    if fails:
        simulation.schedule.failed("a")
    else:
        simulation.schedule.polled("a", seconds_since_change=None, has_unfinished=False)
    assert simulation.schedule.start() == "a"
    simulation.schedule.polled("a", seconds_since_change=None, has_unfinished=False)
    assert simulation.pause() == pytest.approx(30, abs=0.2)


def test_interval_of_a_failing_project_grows_up_to_the_maximum(simulation: Simulation) -> None:
    simulation.schedule.add(["a"])
    simulation.schedule.start()
    simulation.schedule.polled("a", seconds_since_change=0.0, has_unfinished=False)
    pauses = []
    for _failure in range(6):
        simulation.clock.sleep(simulation.pause())
        assert simulation.schedule.start() == "a"
        simulation.schedule.failed("a")
        pauses.append(simulation.pause())
    assert pauses == pytest.approx([7.5, 11.25, 16.875, 25.3125, 30, 30])
