# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sends a request: attempt, classify, pause, attempt again or end. Keeps P2, P4 and P5."""

from __future__ import annotations

from functools import partial
from urllib.parse import urlencode

from .._clock import Clock, Deadline
from .._secrets import MASK, Masker
from .attempt import AttemptError, end_if_abandoned, run_attempt
from .connection import Connection
from .errors import Unreachable
from .message import LOCKED, RawResponse, Request
from .session import exchange, open_session

# Carried out twice, these have the effect of one request (RFC 9110, 9.2.2).
REPEATABLE_METHODS = frozenset({"GET", "PUT", "DELETE"})
# The option with which the action plugin asks a module for a line about each attempt, and the field of the result that has them.
TRACE = "_clouddb_requests"
# The parameters of a query whose values are in these lines.
SHOWN_PARAMETERS = frozenset({"limit", "org_id"})


class Transport:
    """A session with the service that several threads may use at once. It adds a line for each attempt to C(trace), if that is a list."""

    def __init__(self, connection: Connection, masker: Masker, clock: Clock, trace: list[str] | None = None):
        self._connection = connection
        self._masker = masker
        self._clock = clock
        self._trace = trace
        self._session = open_session(connection)

    def send(self, request: Request, retries: int, deadline: Deadline | None, retry_locked: bool) -> RawResponse:
        """The service's last response, whatever its status.

        There are up to C(1 + retries) attempts, each of at most C(api_timeout) seconds. They begin and end before the deadline,
        if there is one. GET, PUT and DELETE are attempted again after every transient error, POST and PATCH only if the
        service cannot have acted. Without C(retry_locked), none is attempted again after 423, or while something is not ready.
        What the last attempt ended with says whether there was no time for another one. Raises Unreachable.
        """
        attempts = 0
        acted_before = False
        while True:
            end_if_abandoned()
            attempts += 1
            seconds = self._connection.api_timeout
            if deadline:
                seconds = min(seconds, deadline.remaining())
            outcome = self._attempt(request, seconds, attempts, acted_before)
            response = outcome if isinstance(outcome, RawResponse) else None
            may_retry = outcome.transient and (request.method in REPEATABLE_METHODS or not outcome.may_have_acted)
            if response and (response.status == LOCKED or response.not_ready) and not retry_locked:
                may_retry = False
            out_of_time = deadline is not None and deadline.remaining() <= 0
            if may_retry and attempts <= retries:
                from .backoff import pause_before_retry  # a task without an error saves this and failures.py

                pause = pause_before_retry(attempts, response, self._clock.utcnow())
                if not deadline or pause < deadline.remaining():
                    acted_before = outcome.may_have_acted
                    self._clock.sleep(pause)
                    continue
                out_of_time = True
            if isinstance(outcome, RawResponse):
                return outcome._replace(out_of_time=out_of_time)
            outcome.out_of_time = out_of_time
            raise outcome

    def _attempt(
        self, request: Request, seconds: float, attempts: int, acted_before: bool
    ) -> RawResponse | Unreachable:
        """The response to one attempt, or the error that it would end with."""
        began = self._clock.monotonic()
        try:
            status, headers, content = run_attempt(
                partial(exchange, self._session, self._connection, request, seconds), seconds
            )
        except AttemptError as failed:
            self._add_to_trace(request, type(failed.cause).__name__ if failed.cause else "timeout", began)
            from .failures import unreachable_error

            return unreachable_error(failed, self._connection, self._masker, request, attempts, seconds, acted_before)
        self._add_to_trace(request, status, began)
        return RawResponse(status, headers, content, attempts, acted_before)

    def _add_to_trace(self, request: Request, outcome: object, began: float) -> None:
        """Add a line for an attempt: what a support case needs of it, and nothing of its headers and bodies."""
        if self._trace is None:
            return
        query = {name: value if name in SHOWN_PARAMETERS else MASK for name, value in (request.query or {}).items()}
        target = request.path + "?" * bool(query) + urlencode(query, doseq=True, safe="*")
        seconds = self._clock.monotonic() - began
        line = f"{request.method} {target} {outcome} {seconds:.3f} s {request.request_id}"
        self._trace.append(self._masker.text(line))
