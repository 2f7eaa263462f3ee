# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parallel calls, synchronized by barriers instead of sleeps."""

from __future__ import annotations

import threading
from unittest import mock

import pytest

from ansible_collections.clouddb.control.plugins.module_utils import _parallel
from ansible_collections.clouddb.control.plugins.module_utils._http.attempt import AbandonedError, end_if_abandoned
from ansible_collections.clouddb.control.plugins.module_utils._parallel import in_parallel

MAX_WAIT = 30.0  # seconds; enough for a busy machine


class Interrupted(Exception):
    """Raised by the calls under test."""


@pytest.mark.parametrize("workers", [1, 2, 32])
def test_results_come_in_the_order_of_the_arguments(workers: int) -> None:
    assert in_parallel(lambda number: number * 10, range(50), workers) == list(range(0, 500, 10))


def test_as_many_calls_as_workers_run_in_parallel() -> None:
    barrier = threading.Barrier(3)
    in_parallel(lambda _number: barrier.wait(MAX_WAIT), range(3), 3)


@pytest.mark.parametrize("workers, arguments", [(1, 3), (4, 1)])
def test_a_single_call_at_a_time_needs_no_thread(workers: int, arguments: int) -> None:
    threads = in_parallel(lambda _number: threading.current_thread(), range(arguments), workers)
    assert set(threads) == {threading.current_thread()}


def test_an_error_is_raised_at_once_and_running_calls_are_abandoned() -> None:
    both_begun, failed, ended = threading.Barrier(2), threading.Event(), threading.Event()
    called: list[int] = []

    def call(number: int) -> None:
        called.append(number)
        both_begun.wait(MAX_WAIT)
        if number == 0:
            raise Interrupted
        assert failed.wait(MAX_WAIT)
        try:
            end_if_abandoned()
        except AbandonedError:
            ended.set()

    with pytest.raises(Interrupted):
        in_parallel(call, range(5), 2)
    failed.set()
    assert ended.wait(MAX_WAIT)
    assert sorted(called) == [0, 1]


def test_an_interrupted_caller_abandons_the_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted, ended = threading.Event(), threading.Semaphore(0)

    def call(_number: int) -> None:
        assert interrupted.wait(MAX_WAIT)
        try:
            end_if_abandoned()
        except AbandonedError:
            ended.release()

    queue = mock.Mock(**{"get.side_effect": KeyboardInterrupt})
    monkeypatch.setattr(_parallel, "SimpleQueue", lambda: queue)
    with pytest.raises(KeyboardInterrupt):
        in_parallel(call, range(2), 2)
    interrupted.set()
    assert all(ended.acquire(timeout=MAX_WAIT) for _call in range(2))


def test_workers_do_not_keep_the_process_from_ending() -> None:
    assert in_parallel(lambda _number: threading.current_thread().daemon, range(2), 2) == [True, True]
