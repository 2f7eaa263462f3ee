# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Attempts that only the deadline ends: they are abandoned, and send nothing afterwards."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from typing import Any, Callable, NamedTuple
from unittest import mock

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._http import attempt as attempt_file
from ansible_collections.clouddb.control.plugins.module_utils._http.attempt import Attempt, AttemptError, run_attempt
from ansible_collections.clouddb.control.plugins.module_utils._http.errors import ServiceUnreachable
from ansible_collections.clouddb.control.tests.unit.support.attempt_timeouts import time_out_when
from ansible_collections.clouddb.control.tests.unit.support.scripted_client import Serve

MAX_WAIT = 30.0  # seconds; enough for a busy machine


def attempts_running() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if isinstance(thread, Attempt)]


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
    time_out_when(monkeypatch, lambda attempt: slow.begun.is_set())
    yield slow
    slow.released.set()
    wait_until(lambda: not attempts_running())


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_name_lookup_that_hangs_ends_with_api_timeout(serve: Serve, lookup: SlowLookup, method: str) -> None:
    client = serve(api_timeout=60, api_retries=1).client
    with pytest.raises(ServiceUnreachable) as error:
        client.get("projects") if method == "GET" else client.post("api_keys", body={})
    assert lookup.begun.is_set()
    # Both methods are retried, because nothing was sent.
    assert (error.value.attempts, error.value.may_have_acted, error.value.transient) == (2, False, True)


def test_an_abandoned_attempt_sends_nothing_once_its_lookup_ends(serve: Serve, lookup: SlowLookup) -> None:
    served = serve(api_timeout=60, api_retries=0)
    with pytest.raises(ServiceUnreachable):
        served.client.post("api_keys", body={"key_name": "deploy"})
    lookup.released.set()
    wait_until(lambda: not attempts_running())
    assert served.requests == []


def test_an_attempt_interrupted_by_a_signal_is_abandoned(monkeypatch: pytest.MonkeyPatch) -> None:
    abandoned: list[Attempt] = []
    abandon = Attempt.abandon
    monkeypatch.setattr(Attempt, "abandon", lambda attempt: abandoned.append(attempt) or abandon(attempt))
    finish = threading.Event()

    def interrupted(attempt: Attempt, seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Attempt, "join", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_attempt(lambda: finish.wait(MAX_WAIT), 60)
    assert len(abandoned) == 1
    finish.set()


def test_an_attempt_for_which_there_is_no_thread_was_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    failure = RuntimeError("can't start new thread")
    monkeypatch.setattr(attempt_file.Attempt, "start", mock.Mock(side_effect=failure))
    with pytest.raises(AttemptError) as error:
        run_attempt(lambda: 7, MAX_WAIT)
    assert (str(error.value.cause), error.value.was_sent) == ("can't start new thread", False)


@pytest.mark.parametrize("seconds", [0.0, -1.0])
def test_no_thread_is_started_after_the_deadline(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    monkeypatch.setattr(attempt_file.Attempt, "start", lambda attempt: pytest.fail("started"))
    with pytest.raises(AttemptError) as error:
        run_attempt(lambda: 7, seconds)
    assert (error.value.cause, error.value.was_sent) == (None, False)
