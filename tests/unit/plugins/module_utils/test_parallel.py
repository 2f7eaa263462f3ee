# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parallel calls, and attempts that only the deadline ends: they are abandoned, and send nothing afterwards."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable, NamedTuple
from unittest import mock

import pytest

from ansible_collections.clouddb.control.plugins.module_utils import _parallel
from ansible_collections.clouddb.control.plugins.module_utils._http import attempt as attempts
from ansible_collections.clouddb.control.plugins.module_utils._http.errors import Unreachable
from ansible_collections.clouddb.control.plugins.module_utils._parallel import in_parallel
from ansible_collections.clouddb.control.tests.unit.support.scripted_client import METHODS, Serve, time_out_when

MAX_WAIT = 30.0  # seconds; enough for a busy machine


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
            raise LookupError
        assert failed.wait(MAX_WAIT)
        try:
            attempts.end_if_abandoned()
        except attempts.AbandonedError:
            ended.set()

    with pytest.raises(LookupError):
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
            attempts.end_if_abandoned()
        except attempts.AbandonedError:
            ended.release()

    with pytest.raises(KeyboardInterrupt):
        in_parallel(call, range(2), 2)
    interrupted.set()
    assert all(ended.acquire(timeout=MAX_WAIT) for _call in range(2))


def test_a_process_ends_although_a_call_hangs() -> None:
    calls = "import sys, threading; in_parallel(lambda hangs: threading.Event().wait() if hangs else sys.exit(3), [0, 1], 2)"
    program = Path(_parallel.__file__).read_text(encoding="utf-8") + calls
    assert subprocess.run([sys.executable, "-c", program], timeout=MAX_WAIT, check=False).returncode == 3


# Attempts


def attempts_running() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if isinstance(thread, attempts.Attempt)]


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + MAX_WAIT
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


class SlowLookup(NamedTuple):
    """A name lookup that has C(begun), and returns once it is C(released), as if the DNS server did not respond."""

    begun: threading.Event
    released: threading.Event


@pytest.fixture
def lookup(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowLookup]:
    slow, getaddrinfo = SlowLookup(threading.Event(), threading.Event()), socket.getaddrinfo

    def look_up(*args: Any, **kwargs: Any) -> Any:
        slow.begun.set()
        assert slow.released.wait(MAX_WAIT)
        return getaddrinfo(*args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    time_out_when(monkeypatch, slow.begun.is_set)
    yield slow
    slow.released.set()
    wait_until(lambda: not attempts_running())


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_name_lookup_that_hangs_ends_with_api_timeout(serve: Serve, lookup: SlowLookup, method: str) -> None:
    """Both methods are retried, because nothing was sent. The abandoned attempts send nothing once their lookups end."""
    served = serve(api_timeout=60, api_retries=1)
    with pytest.raises(Unreachable) as error:
        METHODS[method](served.client)
    assert lookup.begun.is_set()
    assert (error.value.attempts, error.value.may_have_acted, error.value.transient) == (2, False, True)
    lookup.released.set()
    wait_until(lambda: not attempts_running())
    assert served.requests == []


def test_an_attempt_interrupted_by_a_signal_is_abandoned(monkeypatch: pytest.MonkeyPatch) -> None:
    finish, abandon = threading.Event(), mock.Mock()
    monkeypatch.setattr(attempts.Attempt, "abandon", abandon)
    monkeypatch.setattr(attempts.Attempt, "join", mock.Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        attempts.run_attempt(lambda: finish.wait(MAX_WAIT), 60)
    abandon.assert_called_once()
    finish.set()


def test_an_attempt_for_which_there_is_no_thread_was_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts.Attempt, "start", mock.Mock(side_effect=RuntimeError("can't start new thread")))
    with pytest.raises(attempts.AttemptError) as error:
        attempts.run_attempt(lambda: 7, MAX_WAIT)
    assert (str(error.value.cause), error.value.was_sent) == ("can't start new thread", False)


@pytest.mark.parametrize("seconds", [0.0, -1.0])
def test_no_thread_is_started_after_the_deadline(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    monkeypatch.setattr(attempts.Attempt, "start", lambda attempt: pytest.fail("started"))
    with pytest.raises(attempts.AttemptError) as error:
        attempts.run_attempt(lambda: 7, seconds)
    assert (error.value.cause, error.value.was_sent) == (None, False)
