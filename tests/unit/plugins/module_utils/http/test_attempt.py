# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Attempts that only the deadline ends: they are abandoned, send nothing afterwards, and leave no thread or socket open."""

from __future__ import annotations

import gc
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Callable
from unittest import mock

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import ServiceUnreachable
from ansible_collections.clouddb.control.plugins.module_utils._http import attempt as attempt_file
from ansible_collections.clouddb.control.plugins.module_utils._http.attempt import (
    Attempt,
    AttemptError,
    run_attempt,
)
from ansible_collections.clouddb.control.tests.unit.support.attempt_timeouts import (
    time_out_when,
    time_out_when_hanging,
)
from ansible_collections.clouddb.control.tests.unit.support.scripted_client import Serve
from ansible_collections.clouddb.control.tests.unit.support.scripted_service import Reply

MAX_WAIT = 30.0  # seconds; enough for a busy machine


def attempts_running() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if isinstance(thread, Attempt)]


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + MAX_WAIT
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def open_sockets() -> int:
    return sum(target.startswith("socket:") for target in _open_files())


def _open_files() -> Iterator[str]:
    for name in os.listdir("/proc/self/fd"):
        # Other threads may close theirs at any moment.
        with suppress(FileNotFoundError):
            yield os.readlink(f"/proc/self/fd/{name}")


class SlowLookup:
    """A name lookup that returns once C(release) is called, as if the DNS server did not respond."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self._released = threading.Event()
        self._lookup = socket.getaddrinfo
        self.begun = threading.Event()
        monkeypatch.setattr(socket, "getaddrinfo", self._wait)

    def _wait(self, *args: Any, **kwargs: Any) -> Any:
        self.begun.set()
        assert self._released.wait(MAX_WAIT)
        return self._lookup(*args, **kwargs)

    def release(self) -> None:
        self._released.set()


@pytest.fixture
def lookup(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowLookup]:
    slow = SlowLookup(monkeypatch)
    time_out_when(monkeypatch, lambda attempt: slow.begun.is_set())
    yield slow
    slow.release()
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
    lookup.release()
    wait_until(lambda: not attempts_running())
    assert served.requests == []


INTERIM = b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\n"
# What a response begins with, before more of it comes byte by byte, without end.
DRIPPING = {
    "status line": b"",
    "headers": OK,
    "body": OK + b"Content-Length: 1000000\r\n\r\n",
    # http.client closes the connection on its side before it reads such a body.
    "body until the end of the connection": OK + b"Connection: close\r\n\r\n",
    "chunk": OK + b"Transfer-Encoding: chunked\r\n\r\n1;",
    "interim responses": INTERIM * 1000 + OK,
}


@pytest.mark.parametrize("start", DRIPPING.values(), ids=DRIPPING)
@pytest.mark.parametrize("tls", [False, True])
def test_responses_without_end_are_abandoned_with_their_threads_and_sockets(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, tls: bool, start: bytes
) -> None:
    endless = Reply(start + b"x" * 10_000, slow_from=len(start))
    served = serve(*[endless] * 3, tls=tls, validate_certs=False, api_timeout=60, api_retries=0)
    time_out_when_hanging(monkeypatch, served.service)
    before = open_sockets()
    for _attempt in range(3):
        with pytest.raises(ServiceUnreachable) as error:
            served.client.post("api_keys", body={})
        assert "within api_timeout" in str(error.value) and error.value.may_have_acted
    wait_until(lambda: not attempts_running())
    # Errors of urllib3 are reference cycles, and some refer to the socket of a handshake.
    gc.collect()
    # urllib3 1 keeps one connection that was shut down, until the next request. Both of its ends are in this process.
    wait_until(lambda: open_sockets() <= before + 2)


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


class TlsSocket(socket.socket):
    """A socket that must not be shut down by its own method: that of TLS sockets detaches TLS first."""

    def shutdown(self, how: int) -> None:
        raise AssertionError("the other thread could go on in plain text")


class FakeConnection:
    """A connection as an attempt sees it."""

    def __init__(self, opened: Any = None, sock: Any = None) -> None:
        self.attempt: Attempt | None = None
        self.is_shut_down = False
        self.opened = opened
        self.sock = sock


@pytest.fixture
def sockets() -> Iterator[tuple[TlsSocket, socket.socket]]:
    """A socket of an attempt, and its peer."""
    ours, peer = socket.socketpair()
    with peer, TlsSocket(fileno=ours.detach()) as tls:
        peer.settimeout(MAX_WAIT)
        yield tls, peer


class WrappedSocket:
    """As urllib3 wraps the socket of a proxy for TLS within TLS."""

    def __init__(self, sock: socket.socket):
        self.socket = sock


@pytest.mark.parametrize("place", ["opened", "sock"])
@pytest.mark.parametrize("wrap", [lambda sock: sock, WrappedSocket], ids=["socket", "TLS within TLS"])
def test_abandoning_shuts_the_socket_down(
    sockets: tuple[TlsSocket, socket.socket], place: str, wrap: Callable[[Any], Any]
) -> None:
    ours, peer = sockets
    attempt = Attempt(lambda: None)
    attempt.use(FakeConnection(**{place: wrap(ours)}), to_send=True)
    assert attempt.abandon() is True
    assert peer.recv(1) == b""


def test_an_abandoned_attempt_does_not_close_the_connection_of_another_attempt(
    sockets: tuple[TlsSocket, socket.socket],
) -> None:
    ours, peer = sockets
    first, second, connection = Attempt(lambda: None), Attempt(lambda: None), FakeConnection(opened=ours)
    first.use(connection, to_send=True)
    second.use(connection, to_send=True)
    assert first.abandon() is True
    ours.sendall(b"x")
    assert peer.recv(1) == b"x"


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
