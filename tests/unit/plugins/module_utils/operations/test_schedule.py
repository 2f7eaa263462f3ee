# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pauses of a wait: short first, then longer, never past the deadline."""

from __future__ import annotations

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._operations.schedule import Schedule
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import FakeClock


def pauses(timeout: float, interval: float, longer: float | None = None) -> list[float]:
    """The pauses until the deadline."""
    clock = FakeClock()
    schedule = Schedule(clock.clock, timeout, interval)
    while schedule.pause(longer):
        assert len(clock.pauses) < 10_000
    return clock.pauses


def test_the_first_pause_is_well_under_a_second() -> None:
    assert pauses(300, 5)[0] == pytest.approx(0.2)


def test_pauses_grow_to_the_interval_and_stay_there() -> None:
    made = pauses(300, 5)[:-1]
    assert made[:3] == pytest.approx([0.2, 0.3, 0.45])
    assert made == sorted(made)
    assert max(made) == 5
    assert made.count(5) > 50


@pytest.mark.parametrize("interval", [0.05, 0.2, 0.21])
def test_a_short_interval_caps_even_the_first_pause(interval: float) -> None:
    made = pauses(2, interval)
    assert made[0] == pytest.approx(min(0.2, interval))
    assert max(made) <= interval


@pytest.mark.parametrize("timeout", [0.1, 1, 7.3, 300])
@pytest.mark.parametrize("longer", [None, 0, 60], ids=str)
def test_the_pauses_end_at_the_deadline_and_not_later(timeout: float, longer: float | None) -> None:
    assert sum(pauses(timeout, 5, longer)) == pytest.approx(timeout)


def test_a_longer_pause_that_the_service_asks_for_is_made() -> None:
    assert pauses(100, 5, longer=30) == pytest.approx([30, 30, 30, 10])


def test_a_shorter_one_changes_nothing() -> None:
    assert pauses(100, 5, longer=0.001) == pauses(100, 5)


def test_without_time_there_is_no_pause() -> None:
    assert pauses(0, 5) == []


def test_tells_what_has_gone_and_what_is_left() -> None:
    clock = FakeClock()
    schedule = Schedule(clock.clock, 10, 5)
    assert (schedule.elapsed(), schedule.remaining()) == (0, 10)
    clock.sleep(4)
    assert (schedule.elapsed(), schedule.remaining()) == (4, 6)
    clock.sleep(40)
    assert (schedule.elapsed(), schedule.remaining()) == (44, 0)
    assert not schedule.pause()
    assert clock.pauses == [4, 40]


def test_a_wait_that_another_process_began_goes_on_where_it_was() -> None:
    clock = FakeClock()
    schedule = Schedule(clock.clock, 10, 5, elapsed=6, next_pause=3)
    assert (schedule.elapsed(), schedule.remaining()) == (6, 4)
    assert schedule.pause()
    assert schedule.next_pause == 4.5
    assert schedule.pause()
    assert not schedule.pause()
    assert clock.pauses == [3, 1]
