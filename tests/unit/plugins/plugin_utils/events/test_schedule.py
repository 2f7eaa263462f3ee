# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When each name is polled, and in which order."""

from __future__ import annotations

import math
from collections import Counter
from typing import NamedTuple

import pytest

from ansible_collections.clouddb.control.plugins.plugin_utils._events.schedule import Group, Schedule
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import FakeClock


class Polled(NamedTuple):
    """A poll, by the seconds since the test began."""

    moment: float
    name: str


class Simulation:
    """Polls names on a fake clock; those in C(unfinished) have unfinished operations, those in C(changing) change each time."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.schedule = Schedule(interval=5, max_interval=30, clock=self.clock.clock)
        self.unfinished: set[str] = set()
        self.changing: set[str] = set()

    def add(self, group: Group, *names: str) -> None:
        for name in names:
            self.schedule.add(name, group)

    def run(self, seconds: float, seconds_per_poll: float = 0.0) -> list[Polled]:
        """The polls of this time, each of which takes C(seconds_per_poll)."""
        polls: list[Polled] = []
        end = self.clock.elapsed + seconds
        while self.clock.elapsed + self.schedule.pause() <= end:
            self.clock.sleep(self.schedule.pause())
            name = self.schedule.start()
            assert name is not None
            polls.append(Polled(self.clock.elapsed, name))
            self.clock.sleep(seconds_per_poll)
            self.schedule.polled(name, 0.0 if name in self.changing else None, name in self.unfinished)
        self.clock.sleep(max(0.0, end - self.clock.elapsed))
        return polls


@pytest.fixture
def simulation() -> Simulation:
    return Simulation()


def intervals(polls: list[Polled], name: str) -> list[float]:
    """The seconds between the polls of this name."""
    moments = [poll.moment for poll in polls if poll.name == name]
    return [later - earlier for earlier, later in zip(moments, moments[1:])]


def names(number: int, prefix: str) -> list[str]:
    return [f"{prefix}{each}" for each in range(number)]


@pytest.mark.parametrize("group", Group)
def test_new_name_is_polled_at_once(simulation: Simulation, group: Group) -> None:
    assert "a" not in simulation.schedule
    simulation.add(group, "a")
    assert "a" in simulation.schedule
    assert simulation.schedule.pause() == 0
    assert simulation.schedule.start() == "a"


def test_idle_project_is_polled_every_max_interval(simulation: Simulation) -> None:
    simulation.add(Group.IDLE, "a")
    assert intervals(simulation.run(300), "a") == [30] * 10


def test_unfinished_operations_keep_a_project_busy_for_ten_minutes(simulation: Simulation) -> None:
    simulation.add(Group.BUSY, "a")
    simulation.unfinished.add("a")
    assert max(intervals(simulation.run(610), "a")) <= 10
    # Later on, the delay is at most a sixtieth of the time that the operation takes, and max_interval.
    assert 15 < max(intervals(simulation.run(600), "a")) <= 20 + 1
    assert intervals(simulation.run(7200), "a")[-1] == 30


def test_project_is_busy_for_five_minutes_after_a_change(simulation: Simulation) -> None:
    simulation.add(Group.BUSY, "a")
    simulation.changing.add("a")
    assert intervals(simulation.run(60), "a") == [5] * 12
    simulation.changing.clear()
    found = intervals(simulation.run(480), "a")
    assert found == sorted(found)
    assert (found.count(5), found.count(30)) == (59, 6)


def test_change_that_is_noticed_late_makes_a_project_busy_for_less_long(simulation: Simulation) -> None:
    """Polling it often would delay the others, although nothing happens any more."""
    for name, seconds_since_change in (("a", 280.0), ("b", 1000.0)):
        simulation.add(Group.IDLE, name)
        assert simulation.schedule.start() == name
        simulation.schedule.polled(name, seconds_since_change, has_unfinished=False)
    polls = simulation.run(120)
    assert intervals(polls, "a")[:5] == [5, 5, 5, 30, 30]
    assert intervals(polls, "b") == [30, 30, 30]


def test_first_unfinished_operation_makes_a_project_busy(simulation: Simulation) -> None:
    simulation.add(Group.IDLE, "a")
    simulation.unfinished.add("a")
    assert intervals(simulation.run(20), "a")[:2] == [5, 5]


def test_name_is_not_polled_twice_at_once(simulation: Simulation) -> None:
    simulation.add(Group.BUSY, "a")
    assert simulation.schedule.start() == "a"
    assert simulation.schedule.start() is None
    assert simulation.schedule.pause() == math.inf
    simulation.schedule.polled("a", seconds_since_change=0.0, has_unfinished=False)
    assert simulation.schedule.pause() == 5


def test_removed_name_is_not_polled(simulation: Simulation) -> None:
    simulation.add(Group.BUSY, "a", "b")
    simulation.schedule.remove("a")
    assert "a" not in simulation.schedule
    assert {poll.name for poll in simulation.run(60)} == {"b"}


# Large accounts: each poll takes as long as the rate limit demands


SECONDS_PER_POLL = 0.1


def test_groups_share_the_polls_when_all_have_too_many(simulation: Simulation) -> None:
    simulation.add(Group.BUSY, *names(1000, "busy"))
    simulation.add(Group.RECENT, *names(1000, "recent"))
    simulation.add(Group.IDLE, *names(1000, "idle"))
    polls = simulation.run(99.95, SECONDS_PER_POLL)
    assert Counter(poll.name.rstrip("0123456789") for poll in polls) == {"busy": 795, "recent": 103, "idle": 102}


def test_busy_projects_take_no_more_than_they_need(simulation: Simulation) -> None:
    """Each is polled after five to eight seconds, and the others get the rest."""
    simulation.unfinished = set(names(50, "busy"))
    simulation.add(Group.BUSY, *sorted(simulation.unfinished))
    simulation.add(Group.RECENT, *names(1000, "recent"))
    simulation.add(Group.IDLE, *names(1000, "idle"))
    polls = simulation.run(250, SECONDS_PER_POLL)
    assert max(interval for name in simulation.unfinished for interval in intervals(polls, name)) < 8
    shares = Counter(poll.name.rstrip("0123456789") for poll in polls)
    assert 0.6 < shares["busy"] / len(polls) < 0.7
    assert min(shares["recent"], shares["idle"]) / len(polls) > 0.15


def test_busy_projects_are_not_delayed_by_thousands_of_idle_ones(simulation: Simulation) -> None:
    simulation.unfinished = set(names(70, "busy"))
    simulation.add(Group.IDLE, *names(4930, "idle"))
    simulation.add(Group.BUSY, *sorted(simulation.unfinished))
    polls = simulation.run(300, SECONDS_PER_POLL)
    for name in simulation.unfinished:
        assert max(intervals(polls, name)) < 10


def test_idle_projects_take_turns_whatever_the_others_need(simulation: Simulation) -> None:
    """Far too many busy projects leave a fifth of the polls."""
    simulation.changing = set(names(1000, "busy"))
    simulation.add(Group.IDLE, *names(500, "idle"))
    simulation.add(Group.BUSY, *sorted(simulation.changing))
    polls = simulation.run(1000, SECONDS_PER_POLL)
    for name in names(500, "idle"):
        found = intervals(polls, name)
        assert len(found) >= 3
        assert max(found) <= 5 * 500 * SECONDS_PER_POLL + 1


def test_too_many_busy_projects_are_delayed_evenly(simulation: Simulation) -> None:
    simulation.changing = set(names(1000, "busy"))
    simulation.add(Group.BUSY, *sorted(simulation.changing))
    assert simulation.schedule.delay() == 0
    polls = simulation.run(1000, SECONDS_PER_POLL)
    found = [interval for name in simulation.changing for interval in intervals(polls, name)]
    assert 99 < min(found) <= max(found) < 101
    assert simulation.schedule.delay() == pytest.approx(95, abs=1)


def test_recently_changed_projects_do_not_delay_busy_ones(simulation: Simulation) -> None:
    """As after a maintenance of all projects."""
    simulation.changing = set(names(2000, "recent"))
    simulation.add(Group.IDLE, *sorted(simulation.changing))
    simulation.run(200, SECONDS_PER_POLL)
    simulation.changing = set(names(20, "busy"))
    simulation.run(300, SECONDS_PER_POLL)
    simulation.add(Group.BUSY, *sorted(simulation.changing))
    polls = simulation.run(600, SECONDS_PER_POLL)
    for name in simulation.changing:
        assert max(intervals(polls, name)) < 11
    assert {poll.name for poll in polls} >= set(names(2000, "recent"))


def test_interval_of_a_quiet_project_grows_up_to_a_round_through_the_idle_ones(simulation: Simulation) -> None:
    simulation.add(Group.IDLE, *names(1000, "idle"))
    simulation.add(Group.BUSY, "a")
    polls = simulation.run(3600, SECONDS_PER_POLL)
    found = intervals(polls, "a")
    assert found[0] == pytest.approx(5, abs=1)
    assert found[-1] == pytest.approx(100, abs=5)


def test_hint_puts_a_project_before_the_idle_ones(simulation: Simulation) -> None:
    simulation.add(Group.IDLE, *names(1000, "idle"))
    simulation.run(150, SECONDS_PER_POLL)
    simulation.schedule.poll_soon("idle400")
    assert "idle400" in [poll.name for poll in simulation.run(0.5, SECONDS_PER_POLL)]
    # Nothing has changed, so it is idle again.
    assert min(intervals(simulation.run(200, SECONDS_PER_POLL), "idle400") or [100]) > 90


def test_hint_polls_a_project_at_once_that_is_not_due_yet(simulation: Simulation) -> None:
    for seconds_since_change, has_unfinished, due_in in ((0.0, False, 5), (900.0, True, 15)):
        simulation.schedule.add("a", Group.BUSY)
        assert simulation.schedule.start() == "a"
        simulation.schedule.polled("a", seconds_since_change, has_unfinished)
        assert simulation.schedule.pause() == due_in
        simulation.schedule.poll_soon("a")
        assert simulation.schedule.pause() == 0
        assert simulation.schedule.start() == "a"
        simulation.schedule.remove("a")


def test_hint_keeps_a_busy_project_busy(simulation: Simulation) -> None:
    simulation.add(Group.BUSY, "a")
    assert simulation.schedule.start() == "a"
    simulation.schedule.polled("a", seconds_since_change=0.0, has_unfinished=False)
    simulation.schedule.poll_soon("a")
    simulation.clock.sleep(1)
    assert simulation.schedule.delay() == 1


@pytest.mark.parametrize("fails", [False, True])
def test_hint_during_a_poll_causes_another_one(simulation: Simulation, fails: bool) -> None:
    """The running one may have read what was there before the change."""
    simulation.add(Group.IDLE, "a")
    assert simulation.schedule.start() == "a"
    simulation.schedule.poll_soon("a")
    if fails:
        simulation.schedule.failed("a")
    else:
        simulation.schedule.polled("a", seconds_since_change=None, has_unfinished=False)
    assert simulation.schedule.start() == "a"
    simulation.schedule.polled("a", seconds_since_change=None, has_unfinished=False)
    assert simulation.schedule.pause() == 30


def test_hints_without_changes_starve_nobody(simulation: Simulation) -> None:
    simulation.unfinished = set(names(10, "busy"))
    simulation.add(Group.BUSY, *sorted(simulation.unfinished))
    simulation.add(Group.IDLE, *names(500, "idle"))
    polls = []
    for _list in range(20):
        polls += simulation.run(30, SECONDS_PER_POLL)
        for name in names(450, "idle"):
            simulation.schedule.poll_soon(name)
    for name in names(500, "idle"):
        assert max(intervals(polls, name)) < 210
    for name in simulation.unfinished:
        assert max(intervals(polls, name)) < 11


def test_entries_that_were_replaced_are_dropped(simulation: Simulation) -> None:
    simulation.add(Group.IDLE, *names(100, "idle"))
    for _list in range(100):
        for name in names(100, "idle"):
            simulation.schedule.poll_soon(name)
        simulation.run(30)
    assert sum(map(len, simulation.schedule._queues.values())) <= 400


# Errors


def test_interval_of_a_failing_project_grows_up_to_the_maximum(simulation: Simulation) -> None:
    simulation.add(Group.BUSY, "a")
    pauses = []
    for _failure in range(6):
        assert simulation.schedule.start() == "a"
        simulation.schedule.failed("a")
        pauses.append(simulation.schedule.pause())
        simulation.clock.sleep(pauses[-1])
    assert pauses == pytest.approx([7.5, 11.25, 16.875, 25.3125, 30, 30])
    assert simulation.schedule.start() == "a"
    simulation.schedule.polled("a", seconds_since_change=0.0, has_unfinished=False)
    assert simulation.schedule.pause() == 5


def test_one_failing_project_delays_no_other(simulation: Simulation) -> None:
    simulation.add(Group.BUSY, "a", "b")
    assert simulation.schedule.start() == "a"
    simulation.schedule.failed("a")
    assert simulation.schedule.start() == "b"
    simulation.schedule.polled("b", seconds_since_change=0.0, has_unfinished=False)
    assert simulation.schedule.pause() == 5
