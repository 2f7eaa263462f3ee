# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A proxy in front of the sandbox that forwards requests over real sockets, and injects the errors of a test."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import BinaryIO, NamedTuple
from urllib.parse import urlsplit


class Request(NamedTuple):
    """A request as it was received."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


class Response(NamedTuple):
    """The sandbox's response."""

    status: int
    headers: dict[str, str]
    body: bytes


class Exchange(NamedTuple):
    """A request and the client's connection.

    C(forward) sends the request to the sandbox; C(time_out) lets C(api_timeout) of the client's attempt pass.
    """

    request: Request
    connection: socket.socket
    forward: Callable[[], Response]
    time_out: Callable[[], None]


# Responds to a request, or does not. The connection is closed afterwards.
Handler = Callable[[Exchange], None]


class FaultyProxy:
    """Forwards requests to the sandbox and its responses back, each on a connection of its own.

    C(timed_out) is set once C(api_timeout) of the running attempt has passed. C(requests) are
    the requests since the last C(inject) or C(refuse_connections). C(responses) are all responses of the sandbox,
    including those that the client did not receive.
    """

    def __init__(self, sandbox_url: str):
        self._sandbox = urlsplit(sandbox_url)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._port: int = self._listener.getsockname()[1]
        self.base_url = f"http://127.0.0.1:{self._port}{self._sandbox.path}"
        self.requests: list[Request] = []
        self.responses: list[Response] = []
        self._injected: Handler = pass_through
        self._method = ""
        self._skip = self._remaining = 0
        self._until_refusal: int | None = None
        self.timed_out = threading.Event()
        self._closed = threading.Event()
        self._threads: list[threading.Thread] = []

    def inject(self, error: Handler, method: str, times: int, skip: int = 0) -> None:
        """Let this handler respond to the next C(times) requests of this method, after the first C(skip) ones."""
        self.requests.clear()
        self._injected, self._method, self._remaining, self._skip = error, method, times, skip

    def refuse_connections(self, after: int) -> None:
        """Refuse connections after the next C(after) requests, until C(accept_connections)."""
        self.requests.clear()
        self._until_refusal = after
        self._stop_listening_when_due()

    def accept_connections(self) -> None:
        """Accept connections again, at the same address."""
        self._until_refusal = None
        self._listener = socket.create_server(("127.0.0.1", self._port))

    def times_sent(self, method: str) -> int:
        """How often the first request of this method in C(requests) was sent."""
        targets = [request.target for request in self.requests if request.method == method]
        return targets.count(targets[0]) if targets else 0

    def wait_until_idle(self) -> None:
        """Wait until all requests that were sent are handled, including those whose sender has disconnected."""
        if not self._closed.is_set():
            # Connections are accepted in order: once this one is closed, those before it have their threads.
            with socket.create_connection(("127.0.0.1", self._port)) as last, suppress(OSError):
                last.shutdown(socket.SHUT_WR)
                last.recv(1)
        for thread in self._threads:
            thread.join(60)

    def serve(self) -> None:
        """Accept connections until C(close)."""
        while not self._closed.is_set():
            try:
                connection, _address = self._listener.accept()
            except OSError:
                # Connections are refused for a while, or the proxy is closed.
                self._closed.wait(0.001)
                continue
            thread = threading.Thread(target=self._handle, args=[connection], daemon=True)
            self._threads.append(thread)
            thread.start()

    def close(self) -> None:
        self._closed.set()
        self._stop_listening()
        self.wait_until_idle()

    def _stop_listening_when_due(self) -> None:
        if self._until_refusal == 0:
            self._stop_listening()

    def _stop_listening(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _handle(self, connection: socket.socket) -> None:
        # A client may disconnect at any time.
        with suppress(OSError), connection, connection.makefile("rb") as stream:
            request = _read(stream)
            if request is None:
                return
            self.requests.append(request)
            if self._until_refusal:
                self._until_refusal -= 1
                self._stop_listening_when_due()
            handler = self._handler_of(request)
            handler(Exchange(request, connection, lambda: self._forward(request), self.timed_out.set))

    def _handler_of(self, request: Request) -> Handler:
        if request.method != self._method or not self._remaining:
            return pass_through
        if self._skip:
            self._skip -= 1
            return pass_through
        self._remaining -= 1
        return self._injected

    def _forward(self, request: Request) -> Response:
        sandbox = http.client.HTTPConnection(self._sandbox.hostname or "", self._sandbox.port, timeout=60)
        sandbox.request(request.method, request.target, request.body or None, request.headers)
        received = sandbox.getresponse()
        response = Response(received.status, dict(received.getheaders()), received.read())
        sandbox.close()
        self.responses.append(response)
        return response


def _read(stream: BinaryIO) -> Request | None:
    line = stream.readline().decode("latin-1").split()
    if not line:
        return None
    headers = http.client.parse_headers(stream)
    return Request(line[0], line[1], dict(headers), stream.read(int(headers.get("Content-Length") or 0)))


@contextmanager
def faulty_proxy(sandbox_url: str) -> Iterator[FaultyProxy]:
    """Run a proxy in front of this sandbox."""
    proxy = FaultyProxy(sandbox_url)
    thread = threading.Thread(target=proxy.serve, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        proxy.close()
        thread.join(60)


def raw_response(
    body: bytes, status: int = 200, headers: Mapping[str, str] | None = None, length: int | None = None
) -> bytes:
    """The bytes of a response; C(length) is its Content-Length, unset: that of the body."""
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


def pass_through(exchange: Exchange) -> None:
    """Send the sandbox's response, without an error."""
    response = exchange.forward()
    exchange.connection.sendall(raw_response(response.body, response.status, {"Date": response.headers["date"]}))
