# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parallel calls, synchronized by barriers instead of sleeps."""

from __future__ import annotations

import threading

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._parallel import in_parallel


class Interrupted(Exception):
    """Raised by the calls under test."""


@pytest.mark.parametrize("workers", [1, 2, 32])
def test_results_come_in_the_order_of_the_arguments(workers: int) -> None:
    assert in_parallel(lambda number: number * 10, range(50), workers) == list(range(0, 500, 10))


def test_without_arguments_there_are_no_results() -> None:
    assert in_parallel(str, [], 4) == []


def test_as_many_calls_as_workers_run_in_parallel() -> None:
    barrier = threading.Barrier(3)
    in_parallel(lambda _number: barrier.wait(10), range(3), 3)


def test_no_more_calls_than_workers_run_in_parallel() -> None:
    threads = in_parallel(lambda _number: threading.current_thread(), range(50), 2)
    assert len(set(threads)) <= 2
    assert threading.current_thread() not in threads


@pytest.mark.parametrize("workers, arguments", [(1, 3), (4, 1)], ids=["one worker", "one argument"])
def test_a_single_call_at_a_time_needs_no_thread(workers: int, arguments: int) -> None:
    threads = in_parallel(lambda _number: threading.current_thread(), range(arguments), workers)
    assert set(threads) == {threading.current_thread()}


def test_an_error_is_raised_after_the_running_calls_have_ended() -> None:
    both_begun, failing, ended = threading.Barrier(2), [], []

    def call(number: int) -> None:
        if number == 0:
            failing.append(threading.current_thread())
            both_begun.wait(10)
            raise Interrupted
        both_begun.wait(10)
        # The thread of the other call goes when its error is known and no more calls are to come.
        failing[0].join(10)
        ended.append(number)

    with pytest.raises(Interrupted):
        in_parallel(call, range(2), 2)
    assert ended == [1]


def test_with_one_worker_an_error_drops_the_remaining_calls() -> None:
    called: list[int] = []

    def call(number: int) -> None:
        called.append(number)
        raise Interrupted

    with pytest.raises(Interrupted):
        in_parallel(call, range(5), 1)
    assert called == [0]
