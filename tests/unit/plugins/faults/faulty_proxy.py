# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A service in front of the sandbox that forwards requests to it, and the errors that it injects."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import suppress

from ansible_collections.clouddb.control.tests.unit.plugins.faults.matrix import GROUPS, RETRY_AFTER
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

    C(requests) are those since the last C(inject). C(responses) are all bodies of the sandbox, including those that the
    client did not receive.
    """

    application: Application
    responses: list[bytes]
    _error: Error | None = None
    _method = ""
    _skip = _times = 0

    def inject(self, error: Error | None, method: str, times: int, skip: int = 0) -> None:
        """Let this error be the reply to the next C(times) requests of this method, after the first C(skip) ones.

        None: its connection is refused. Only a list precedes a request of another method than GET.
        """
        self.requests.clear()
        self._error, self._method, self._times, self._skip = error, method, times, skip

    def refuses(self) -> bool:
        """Whether to refuse the next connection, which counts then."""
        is_refused = not self._error and self._times > 0 and len(self.requests) >= self._skip + (self._method != "GET")
        self._times -= is_refused
        return is_refused

    def wait_until_idle(self) -> None:
        """Wait until all requests that were sent are handled: connections are served in order."""
        with socket.create_connection(self.address) as last, suppress(OSError):
            last.shutdown(socket.SHUT_WR)
            last.recv(1)

    def reply_to(self, request: Request) -> Reply:
        if self._error and self._times and request.method == self._method:
            if not self._skip:
                self._times -= 1
                return self._error(self, request)
            self._skip -= 1
        answer = self.forward(request)
        return reply(answer.content, answer.status, Date=dict(answer.headers)[b"date"].decode())

    def forward(self, request: Request) -> Answer:
        """The sandbox's response."""
        headers = [(name.lower().encode(), value.encode("latin-1")) for name, value in request.headers.items()]
        answer = self.application.send(request.method, request.target, headers, request.body)
        self.responses.append(answer.content)
        return answer


Error = Callable[[FaultyProxy, Request], Reply]


def always(error: Reply) -> Error:
    """This reply, without the request being processed."""
    return lambda proxy, request: error


def processed(error: Reply) -> Error:
    """This reply, after the request was processed."""
    return lambda proxy, request: proxy.forward(request) and error


def changed(reply_with: Callable[[bytes], Reply]) -> Error:
    """A reply with the body of the sandbox's response."""
    return lambda proxy, request: reply_with(proxy.forward(request).content)


def status(number: int, **headers: str) -> Reply:
    return reply({"message": "not now", "code": "", "request_id": "proxy"}, number, **headers)


def half(body: bytes) -> Reply:
    return reply(body[: len(body) // 2], Content_Length=str(len(body)))


def not_found(proxy: FaultyProxy, request: Request) -> Reply:
    return (processed if request.method == "DELETE" else always)(status(404))(proxy, request)


def redirect(proxy: FaultyProxy, request: Request) -> Reply:
    """To another origin, which leads back to this proxy: a client that follows it shows in the requests."""
    return reply(b"", 302, Location=f"http://localhost:{proxy.address[1]}{request.target}")


DATE = "Sat, 21 Nov 2026 08:00:00 GMT"
# By the name of the error in the matrix, except for refused connections.
ERRORS: dict[str, Error] = {
    "reset before the request is processed": always(RESET),
    "reset before the response": processed(RESET),
    "cut within the headers": processed(Reply(b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\nConnection: clo")),
    "reset within the body": changed(lambda body: half(body)._replace(reset=True)),
    "body shorter than ``Content-Length``": changed(half),
    "no response within ``api_timeout``, request not processed": always(SILENCE),
    "no response within ``api_timeout``, request processed": processed(SILENCE),
    # How often a byte arrives makes no difference for the clock of the tests; test_hostile_network.py sends one after another.
    "headers sent byte by byte without end": processed(Reply(b"HTTP/1.1 200 OK\r\nX-Filler: ", hangs=True)),
    "body sent byte by byte without end": processed(reply(b"[", Content_Length="9999")._replace(hangs=True)),
    "empty body": processed(reply(b"")),
    "HTML with 200": always(reply(b"<!DOCTYPE html>\n<html><body>Sign in</body></html>")),
    "malformed JSON": changed(lambda body: reply(body[: len(body) // 2])),
    "JSON of another shape": processed(reply({"unexpected": [True]})),
    "body that is not UTF-8": changed(lambda body: reply(body.replace(b'"', b'"\xe9', 1))),
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
