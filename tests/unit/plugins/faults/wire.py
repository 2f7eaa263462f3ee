# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A bad wire to the sandbox: it carries requests and answers on a real socket, and plays a fault where it is told to."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import BinaryIO, NamedTuple
from urllib.parse import urlsplit


class Request(NamedTuple):
    """A request as it came."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


class Response(NamedTuple):
    """What the sandbox answered."""

    status: int
    headers: dict[str, str]
    body: bytes


class Exchange(NamedTuple):
    """One request and the connection that it came by; C(carry_out) hands it to the sandbox."""

    request: Request
    connection: socket.socket
    carry_out: Callable[[], Response]


# What happens to an exchange. It ends with the connection closed, after a last byte or without one.
Play = Callable[[Exchange], None]


class Wire:
    """Carries requests to the sandbox and answers back, each on a connection of its own.

    C(requests) are those that came, C(answers) what the sandbox said, also where nobody got to hear it.
    """

    def __init__(self, sandbox_url: str):
        self._sandbox = urlsplit(sandbox_url)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._port: int = self._listener.getsockname()[1]
        self.base_url = f"http://127.0.0.1:{self._port}{self._sandbox.path}"
        self.requests: list[Request] = []
        self.answers: list[Response] = []
        self._play: Play = answered
        self._method = ""
        self._skip = self._left = 0
        self._until_refusal: int | None = None
        self._closed = threading.Event()
        self._threads: list[threading.Thread] = []

    def hit(self, play: Play, method: str, times: int, skip: int = 0) -> None:
        """Play this on the next C(times) requests of this method, after the first C(skip) ones."""
        self.requests.clear()
        self._play, self._method, self._left, self._skip = play, method, times, skip

    def refuse(self, after: int) -> None:
        """Refuse connections once so many more requests were answered, until C(listen_again)."""
        self.requests.clear()
        self._until_refusal = after
        self._refuse_now()

    def listen_again(self) -> None:
        """Take connections again, at the same address."""
        self._until_refusal = None
        self._listener = socket.create_server(("127.0.0.1", self._port))

    def times_sent(self, method: str) -> int:
        """How often the first request of this method was sent since the fault was set, the same one each time."""
        targets = [request.target for request in self.requests if request.method == method]
        return targets.count(targets[0]) if targets else 0

    def settle(self) -> None:
        """Wait until all requests that were sent are dealt with, also those whose sender has gone."""
        if not self._closed.is_set():
            # Connections are taken in their order: once this one is closed, those before it are being dealt with.
            with socket.create_connection(("127.0.0.1", self._port)) as last, suppress(OSError):
                last.shutdown(socket.SHUT_WR)
                last.recv(1)
        for thread in self._threads:
            thread.join(10)

    def serve(self) -> None:
        """Take connections until the wire is closed."""
        while not self._closed.is_set():
            try:
                connection, _address = self._listener.accept()
            except OSError:
                # Nobody listens for a while, or no more.
                self._closed.wait(0.001)
                continue
            thread = threading.Thread(target=self._exchange, args=[connection], daemon=True)
            self._threads.append(thread)
            thread.start()

    def close(self) -> None:
        self._closed.set()
        self._stop_listening()
        self.settle()

    def _refuse_now(self) -> None:
        if self._until_refusal == 0:
            self._stop_listening()

    def _stop_listening(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _exchange(self, connection: socket.socket) -> None:
        # A client may go away whenever it likes.
        with suppress(OSError), connection, connection.makefile("rb") as stream:
            request = _read(stream)
            if request is None:
                return
            self.requests.append(request)
            if self._until_refusal:
                self._until_refusal -= 1
                self._refuse_now()
            self._drawn(request)(Exchange(request, connection, lambda: self._carry_out(request)))

    def _drawn(self, request: Request) -> Play:
        """What is played on this request."""
        if request.method != self._method or not self._left:
            return answered
        if self._skip:
            self._skip -= 1
            return answered
        self._left -= 1
        return self._play

    def _carry_out(self, request: Request) -> Response:
        sandbox = http.client.HTTPConnection(self._sandbox.hostname or "", self._sandbox.port, timeout=30)
        sandbox.request(request.method, request.target, request.body or None, request.headers)
        response = sandbox.getresponse()
        response = Response(response.status, dict(response.getheaders()), response.read())
        sandbox.close()
        self.answers.append(response)
        return response


def _read(stream: BinaryIO) -> Request | None:
    line = stream.readline().decode("latin-1").split()
    if not line:
        return None
    headers = http.client.parse_headers(stream)
    return Request(line[0], line[1], dict(headers), stream.read(int(headers.get("Content-Length") or 0)))


@contextmanager
def wire_to(sandbox_url: str) -> Iterator[Wire]:
    wire = Wire(sandbox_url)
    thread = threading.Thread(target=wire.serve, daemon=True)
    thread.start()
    try:
        yield wire
    finally:
        wire.close()
        thread.join(10)


def message(
    body: bytes, status: int = 200, headers: Mapping[str, str] | None = None, length: int | None = None
) -> bytes:
    """An answer as it goes over the wire."""
    fields = {
        "Content-Type": "application/json",
        "Content-Length": str(len(body) if length is None else length),
        **(headers or {}),
        "Connection": "close",
    }
    lines = [
        f"HTTP/1.1 {status} {http.client.responses.get(status, 'Unknown')}",
        *(f"{name}: {value}" for name, value in fields.items()),
        "",
        "",
    ]
    return "\r\n".join(lines).encode() + body


def answered(exchange: Exchange) -> None:
    """No fault: the sandbox's response."""
    response = exchange.carry_out()
    exchange.connection.sendall(message(response.body, response.status, {"Date": response.headers["date"]}))
