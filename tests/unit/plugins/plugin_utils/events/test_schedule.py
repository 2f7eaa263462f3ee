# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When each name is polled."""

from __future__ import annotations

import pytest

from ansible_collections.clouddb.control.plugins.plugin_utils._events.schedule import MAX_PARALLEL, Schedule
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def schedule(clock: FakeClock) -> Schedule:
    return Schedule(interval=10, max_interval=30, clock=clock.clock)


def pauses(schedule: Schedule, clock: FakeClock, rounds: int, is_service_down: bool = False) -> list[float]:
    """The pauses before the next rounds, in which nothing changes."""
    found = []
    for _round in range(rounds):
        pause, names = schedule.next_round()
        found.append(pause)
        clock.sleep(pause)
        for name in names:
            schedule.polled(name, has_changed=False)
        schedule.end_round(is_service_down, retry_after=0)
    return found


def test_new_name_is_polled_at_once(schedule: Schedule) -> None:
    assert "a" not in schedule
    schedule.poll_now("a")
    assert "a" in schedule
    assert schedule.next_round() == (0, ["a"])


def test_interval_grows_to_the_maximum_without_changes(schedule: Schedule, clock: FakeClock) -> None:
    schedule.poll_now("a")
    assert pauses(schedule, clock, 5) == [0, 15, 22.5, 30, 30]


def test_change_resets_the_interval(schedule: Schedule, clock: FakeClock) -> None:
    schedule.poll_now("a")
    pauses(schedule, clock, 5)
    schedule.polled("a", has_changed=True)
    assert schedule.next_round() == (10, ["a"])


def test_poll_now_keeps_the_interval(schedule: Schedule, clock: FakeClock) -> None:
    schedule.poll_now("a")
    pauses(schedule, clock, 5)
    schedule.poll_now("a")
    assert pauses(schedule, clock, 2) == [0, 30]


def test_those_that_have_waited_longest_come_first(schedule: Schedule, clock: FakeClock) -> None:
    names = [f"n{number}" for number in range(MAX_PARALLEL + 1)]
    for name in reversed(names):
        schedule.poll_now(name)
        clock.sleep(1)
    assert schedule.next_round().names == names[:0:-1]


def test_removed_name_is_not_polled(schedule: Schedule) -> None:
    schedule.poll_now("a")
    schedule.poll_now("b")
    schedule.remove("a")
    assert schedule.next_round().names == ["b"]


def test_round_has_only_what_is_due(schedule: Schedule, clock: FakeClock) -> None:
    schedule.poll_now("a")
    schedule.polled("a", has_changed=True)
    schedule.poll_now("b")
    clock.sleep(1)
    assert schedule.next_round() == (0, ["b"])


def test_one_name_at_a_time_is_polled_while_the_service_is_down(schedule: Schedule, clock: FakeClock) -> None:
    for number in range(100):
        schedule.poll_now(f"n{number}")
    assert pauses(schedule, clock, 6, is_service_down=True) == [0, 10, 15, 22.5, 30, 30]
    assert len(schedule.next_round().names) == 1
    schedule.end_round(is_service_down=False, retry_after=0)
    assert len(schedule.next_round().names) == MAX_PARALLEL


def test_retry_after_delays_every_poll(schedule: Schedule, clock: FakeClock) -> None:
    schedule.poll_now("a")
    schedule.end_round(is_service_down=True, retry_after=100)
    assert schedule.next_round().pause == 100
    schedule.end_round(is_service_down=False, retry_after=0)
    assert schedule.next_round().pause == 100


def test_outage_of_any_length(schedule: Schedule, clock: FakeClock) -> None:
    schedule.poll_now("a")
    assert pauses(schedule, clock, 10_000, is_service_down=True)[-1] == 30
