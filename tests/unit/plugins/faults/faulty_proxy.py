# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A service in front of the sandbox that forwards requests to it, and the errors that it injects."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import suppress

from ansible_collections.clouddb.control.tests.unit.plugins.faults.matrix import GROUPS
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Answer, Application
from ansible_collections.clouddb.control.tests.unit.support.scripted_service import (
    CUT_OFF,
    NOT_NOW,
    RESET,
    SILENCE,
    Reply,
    Request,
    ScriptedService,
    reply,
)


class FaultyProxy(ScriptedService):
    """Forwards requests to the sandbox and its responses back.

    C(requests) are those since the last C(inject) or C(refuse_connections). C(responses) are all bodies of the sandbox,
    including those that the client did not receive.
    """

    application: Application
    responses: list[bytes]
    _error: Error
    _method = ""
    _skip = _times = 0
    _until_refusal: int | None = None

    def inject(self, error: Error, method: str, times: int, skip: int = 0) -> None:
        """Let this error be the reply to the next C(times) requests of this method, after the first C(skip) ones."""
        self.requests.clear()
        self._error, self._method, self._times, self._skip = error, method, times, skip

    def refuse_connections(self, after: int) -> None:
        """Refuse connections after the next C(after) requests, until C(accept_connections)."""
        self.requests.clear()
        self._until_refusal = after

    def accept_connections(self) -> None:
        """Accept connections again."""
        self._until_refusal = None

    @property
    def refuses(self) -> bool:
        """Whether connections are refused now."""
        return self._until_refusal is not None and len(self.requests) >= self._until_refusal

    def times_sent(self, method: str) -> int:
        """How often the first request of this method in C(requests) was sent."""
        targets = [request.target for request in self.requests if request.method == method]
        return targets.count(targets[0]) if targets else 0

    def wait_until_idle(self) -> None:
        """Wait until all requests that were sent are handled: connections are served in order."""
        with socket.create_connection(self.address) as last, suppress(OSError):
            last.shutdown(socket.SHUT_WR)
            last.recv(1)

    def reply_to(self, request: Request) -> Reply:
        if request.method == self._method and self._times:
            if not self._skip:
                self._times -= 1
                return self._error(self, request)
            self._skip -= 1
        return changed(reply)(self, request)

    def forward(self, request: Request) -> Answer:
        """The sandbox's response."""
        headers = [(name.lower().encode(), value.encode("latin-1")) for name, value in request.headers.items()]
        answer = self.application.send(request.method, request.target, headers, request.body)
        self.responses.append(answer.content)
        return answer


Error = Callable[[FaultyProxy, Request], Reply]


# Errors


def always(error: Reply) -> Error:
    """This reply, without the request being processed."""
    return lambda proxy, request: error


def processed(error: Reply) -> Error:
    """This reply, after the request was processed."""

    def reply_to(proxy: FaultyProxy, request: Request) -> Reply:
        proxy.forward(request)
        return error

    return reply_to


def changed(reply_with: Callable[..., Reply]) -> Error:
    """A reply with the body, the status and the time of the sandbox's response."""

    def reply_to(proxy: FaultyProxy, request: Request) -> Reply:
        answer = proxy.forward(request)
        return reply_with(answer.content, answer.status, Date=dict(answer.headers)[b"date"].decode())

    return reply_to


def status(number: int, **headers: str) -> Reply:
    return reply({"message": "not now", "code": "", "request_id": "proxy"}, number, **headers)


def truncated(body: bytes, *_status: int, **_headers: str) -> Reply:
    return reply(body[: len(body) // 2], Content_Length=str(len(body)))


def not_found(proxy: FaultyProxy, request: Request) -> Reply:
    if request.method == "DELETE":
        proxy.forward(request)
    return status(404)


def redirect(proxy: FaultyProxy, request: Request) -> Reply:
    """To another origin, which leads back to this proxy: a client that follows it shows in the requests."""
    return reply(b"", 302, Location=f"http://localhost:{proxy.address[1]}{request.target}")


# By how the matrix describes the header.
RETRY_AFTER = {
    "in seconds": "7",
    "as a date": "Sat, 21 Nov 2026 08:00:30 GMT",
    "of 100 years": str(100 * 365 * 86400),
    "malformed": "soon",
}
DATE = "Sat, 21 Nov 2026 08:00:00 GMT"


# By the name of the error in the matrix, except for refused connections.
ERRORS: dict[str, Error] = {
    "reset before the request is processed": always(RESET),
    "reset before the response": processed(RESET),
    "cut within the headers": processed(Reply(b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\nConnection: clo")),
    "reset within the body": changed(lambda body, *rest, **headers: truncated(body)._replace(reset=True)),
    "body shorter than ``Content-Length``": changed(truncated),
    "no response within ``api_timeout``, request not processed": always(SILENCE),
    "no response within ``api_timeout``, request processed": processed(SILENCE),
    # How often a byte arrives makes no difference for the clock of the tests; test_hostile_network.py sends one after another.
    "headers sent byte by byte without end": processed(Reply(b"HTTP/1.1 200 OK\r\nX-Filler: ", hangs=True)),
    "body sent byte by byte without end": processed(reply(b"[", Content_Length="9999")._replace(hangs=True)),
    "empty body": processed(reply(b"")),
    "HTML with 200": always(reply(b"<!DOCTYPE html>\n<html><body>Sign in</body></html>")),
    "malformed JSON": changed(lambda body, *rest, **headers: reply(body[: len(body) // 2])),
    "JSON of another shape": processed(reply({"unexpected": [True]})),
    "body that is not UTF-8": changed(lambda body, *rest, **headers: reply(body.replace(b'"', b'"\xe9', 1))),
    "302 to another origin": redirect,
    "404": not_found,
    **{str(number): always(status(number)) for number in (400, 401, 403, 409, 422, 423, 429)},
    **{
        f"{number}, Retry-After {how}": always(status(number, Retry_After=value, Date=DATE))
        for number in (423, 429)
        for how, value in RETRY_AFTER.items()
    },
    "503 with ``message`` and ``code``": always(NOT_NOW),
    "503, Retry-After in seconds": always(reply(b"busy", 503, Retry_After=RETRY_AFTER["in seconds"])),
    "any other 503, request not processed": always(CUT_OFF),
    "any other 503, request processed": processed(CUT_OFF),
    "408, other 5xx, request not processed": always(status(502)),
    "408, other 5xx, request processed": processed(status(522)),
    **{name: (processed if "processed" in name else always)(status(statuses[0])) for name, statuses in GROUPS.items()},
}
