# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A thread for each attempt of a request, which can be abandoned. Keeps P2 and P4.

A name lookup takes no timeout, and connecting, TLS and reading take one for each step only. So the thread of an attempt is
abandoned at its deadline: it sends nothing any more, and its connection is shut down.
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Any, Callable, TypeVar

Value = TypeVar("Value")


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


def end_if_abandoned() -> None:
    """To be called before each request. Raises AbandonedError in a thread that has been abandoned."""
    if getattr(threading.current_thread(), "is_abandoned", False):
        raise AbandonedError


class Attempt(threading.Thread):
    """The thread of one attempt; C(result) or C(error) is there once it has ended."""

    def __init__(self, work: Callable[[], Any]):
        super().__init__(name="clouddb.control request", daemon=True)
        self.is_abandoned = False
        self._work = work
        self.result: Any = None
        self.error: BaseException | None = None
        self.was_sent = False
        self._sock: Any = None
        self._lock = threading.Lock()

    def run(self) -> None:
        """Do the work; called by Thread.start()."""
        try:
            self.result = self._work()
        except BaseException as error:  # pylint: disable=broad-except
            self.error = error

    def begin_to_send(self, sock: Any) -> None:
        """To be called before anything of the request is sent. Raises AbandonedError in an abandoned attempt."""
        with self._lock:
            if self.is_abandoned:
                raise AbandonedError
            self.was_sent = True
            self._sock = sock

    def abandon(self) -> bool:
        """Keep the thread from sending, and end what it reads or writes; whether it has begun to send."""
        with self._lock:
            self.is_abandoned = True
            with suppress(OSError, TypeError):
                # The method of SSLSocket would first detach TLS, and the thread might go on to send in plain text.
                socket.socket.shutdown(self._sock, socket.SHUT_RDWR)
            return self.was_sent


def run_attempt(work: Callable[[], Value], seconds: float) -> Value:
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
        # Even if a signal ends the wait for the thread.
        was_sent = is_late and attempt.abandon()
    if is_late:
        raise AttemptError(None, was_sent)
    if attempt.error is not None:
        raise AttemptError(attempt.error, attempt.was_sent)
    result: Value = attempt.result
    return result
