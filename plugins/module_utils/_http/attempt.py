# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Threads that can be abandoned, and one for each attempt of a request. Keeps P4.

Name lookup, addresses that drop packets, proxies, TLS, headers and bodies that drip: some of these take no timeout, others
one for each step. The thread is abandoned at the deadline, and its connection is shut down, which ends the thread.
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Any, Callable, TypeVar

Result = TypeVar("Result")

# Guards which attempt a connection works for: an abandoned attempt must not shut down what another one uses by now.
_ownership = threading.Lock()


class AttemptError(Exception):
    """An attempt without a response.

    C(cause) is the library's error, or None if the time was up. C(was_sent) is set if the service may have received
    the request.
    """

    def __init__(self, cause: BaseException | None, was_sent: bool):
        super().__init__("no response")
        self.cause = cause
        self.was_sent = was_sent


class AbandonedError(BaseException):
    """Ends an abandoned thread before it sends anything more."""


class Worker(threading.Thread):
    """A thread that a process does not wait for when it ends; it is abandoned by C(is_abandoned)."""

    def __init__(self, work: Callable[[], Any], name: str = "clouddb.control worker"):
        super().__init__(name=name, daemon=True)
        self.is_abandoned = False
        self._work = work

    def run(self) -> None:
        """Do the work; called by Thread.start()."""
        self._work()


def end_if_abandoned() -> None:
    """To be called before each request. Raises AbandonedError in an abandoned worker."""
    thread = threading.current_thread()
    if isinstance(thread, Worker) and thread.is_abandoned:
        raise AbandonedError


class Attempt(Worker):
    """The thread of one attempt; C(result) or C(error) is there once it has ended."""

    def __init__(self, work: Callable[[], Any]):
        super().__init__(work, "clouddb.control request")
        self.result: Any = None
        self.error: BaseException | None = None
        self.was_sent = False
        self._connection: Any = None

    def run(self) -> None:
        """Do the work; called by Thread.start()."""
        try:
            self.result = self._work()
        except BaseException as error:  # pylint: disable=broad-except
            self.error = error
        finally:
            self._end()

    def _end(self) -> None:
        """Release the connection, and the outcome if abandoned: its traceback would keep sockets open."""
        with _ownership:
            if self._connection is not None and self._connection.attempt is self:
                self._connection.attempt = None
            self._connection = None
            if self.is_abandoned:
                self.result = self.error = None

    def use(self, connection: Any, to_send: bool = False) -> None:
        """Take a connection into use, or begin C(to_send) on it.

        Raises AbandonedError, and ConnectionAbortedError if an abandoned attempt has shut the connection down.
        """
        with _ownership:
            if self.is_abandoned:
                raise AbandonedError
            if to_send and connection.is_shut_down:
                raise ConnectionAbortedError("the connection was shut down")
            self._connection = connection
            connection.attempt = self
            self.was_sent = self.was_sent or to_send

    def abandon(self) -> bool:
        """Keep the thread from sending and end it; whether the request was sent before."""
        with _ownership:
            self.is_abandoned = True
            connection = self._connection
            if connection is not None and connection.attempt is self:
                connection.is_shut_down = True
                shut_down(connection.opened or connection.sock)
            return self.was_sent


def shut_down(sock: Any) -> None:
    """End what another thread reads or writes on a connection's socket; None before it is connected."""
    # For TLS within TLS, urllib3 has an object of its own around the socket.
    sock = getattr(sock, "socket", sock)
    with suppress(OSError, TypeError):
        # The method of SSLSocket would first detach TLS, and the other thread might go on to send in plain text.
        socket.socket.shutdown(sock, socket.SHUT_RDWR)


def run_attempt(work: Callable[[], Result], seconds: float) -> Result:
    """The work's result if it ends within C(seconds). Raises AttemptError."""
    if seconds <= 0:
        raise AttemptError(None, was_sent=False)
    attempt = Attempt(work)
    is_late = True
    try:
        attempt.start()
        attempt.join(seconds)
        is_late = attempt.is_alive()
    except RuntimeError as error:
        # The system cannot start another thread.
        raise AttemptError(ConnectionError(str(error)), was_sent=False) from None
    finally:
        # Also when a signal ends the wait for the thread.
        was_sent = is_late and attempt.abandon()
    if is_late:
        raise AttemptError(None, was_sent)
    if attempt.error is not None:
        raise AttemptError(attempt.error, attempt.was_sent)
    result: Result = attempt.result
    return result
