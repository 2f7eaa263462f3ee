# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parallel calls, synchronized by barriers instead of sleeps."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

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


def test_an_interrupted_caller_abandons_the_calls() -> None:
    interrupted, ended = threading.Event(), threading.Semaphore(0)
    main_thread = threading.main_thread().ident
    assert main_thread is not None
    # Unlike interrupt_main() of _thread, a signal ends what the thread waits for.
    both_begun = threading.Barrier(2, action=lambda: signal.pthread_kill(main_thread, signal.SIGINT))

    def call(_number: int) -> None:
        both_begun.wait(MAX_WAIT)
        assert interrupted.wait(MAX_WAIT)
        try:
            end_if_abandoned()
        except AbandonedError:
            ended.release()

    with pytest.raises(KeyboardInterrupt):
        in_parallel(call, range(2), 2)
    interrupted.set()
    assert all(ended.acquire(timeout=MAX_WAIT) for _call in range(2))


def test_a_process_ends_although_a_call_hangs() -> None:
    calls = "import sys, threading; in_parallel(lambda hangs: threading.Event().wait() if hangs else sys.exit(3), [0, 1], 2)"
    program = Path(_parallel.__file__).read_text(encoding="utf-8") + calls
    assert subprocess.run([sys.executable, "-c", program], timeout=MAX_WAIT, check=False).returncode == 3
