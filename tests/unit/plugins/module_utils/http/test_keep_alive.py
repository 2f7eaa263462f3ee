# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Several requests on one connection: each gets its own response, or the connection is closed."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Callable, NamedTuple

import pytest
from urllib3 import HTTPConnectionPool

from ansible_collections.clouddb.control.plugins.module_utils._errors import ServiceUnreachable, StatusError
from ansible_collections.clouddb.control.plugins.module_utils._http import session
from ansible_collections.clouddb.control.plugins.module_utils._http.attempt import AttemptError, run_attempt
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.module_utils._http.connection import Connection
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import FakeClock
from ansible_collections.clouddb.control.tests.unit.support.scripted_client import API_KEY, METHODS, each_method
from ansible_collections.clouddb.control.tests.unit.support.scripted_service import CERTIFICATE

MAX_WAIT = 30.0  # seconds; enough for a busy machine
INTERIM = b"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n"

# The bytes to send after a request with this X-Request-ID; each item in a packet of its own.
ResponsePackets = Callable[[str], list[bytes]]


def response(number: int, request_id: str | None = None, chunked: bool = False) -> bytes:
    body = json.dumps({"number": number}).encode()
    headers = f"X-Request-ID: {request_id}\r\n" if request_id else ""
    if chunked:
        return f"HTTP/1.1 200 OK\r\n{headers}Transfer-Encoding: chunked\r\n\r\n{len(body):x}\r\n".encode() + (
            body + b"\r\n0\r\n\r\n"
        )
    return f"HTTP/1.1 200 OK\r\n{headers}Content-Length: {len(body)}\r\n\r\n".encode() + body


def one(number: int, **options: Any) -> ResponsePackets:
    return lambda request_id: [response(number, **options)]


class KeepAlive(NamedTuple):
    """A client, the clock of its pauses, and for each connection of it the ids of the requests that were sent on it."""

    client: Client
    clock: FakeClock
    connections: list[list[str]]
    responded: threading.Semaphore

    def number(self, method: str = "GET") -> int:
        """The number in the response to a request; all that the service sends after it has arrived."""
        number: int = METHODS[method](self.client).json["number"]
        assert self.responded.acquire(timeout=MAX_WAIT)
        return number

    @property
    def requests(self) -> list[int]:
        """How many requests were sent on each connection."""
        return [len(request_ids) for request_ids in self.connections]


@contextmanager
def keep_alive(*script: ResponsePackets, tls: bool = False) -> Iterator[KeepAlive]:
    """A service that sends one response after another, however many connections the client opens."""
    responses, connections, responded = list(script), list[list[str]](), threading.Semaphore(0)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)

    def respond(connection: socket.socket, request_ids: list[str]) -> None:
        with suppress(OSError), connection:
            if tls:
                connection = context.wrap_socket(connection, server_side=True)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with connection, connection.makefile("rb") as stream:
                while stream.readline():
                    headers = http.client.parse_headers(stream)
                    stream.read(int(headers.get("Content-Length", 0)))
                    request_ids.append(headers["X-Request-ID"])
                    for packet in responses.pop(0)(headers["X-Request-ID"]):
                        connection.sendall(packet)
                    responded.release()

    def serve(listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                connection = listener.accept()[0]
                connections.append([])
                threading.Thread(target=respond, args=[connection, connections[-1]], daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=[listener], daemon=True)
        thread.start()
        scheme = "https" if tls else "http"
        base_url = f"{scheme}://127.0.0.1:{listener.getsockname()[1]}"
        clock = FakeClock()
        connection = Connection(base_url, API_KEY, validate_certs=False, api_retries=1)
        yield KeepAlive(Client(connection, clock.clock), clock, connections, responded)
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(MAX_WAIT)
    assert not responses


@pytest.fixture
def running() -> Iterator[Callable[..., KeepAlive]]:
    with ExitStack() as stack:
        yield lambda *script, **options: stack.enter_context(keep_alive(*script, **options))


over_tls = pytest.mark.parametrize("tls", [False, True])
as_chunks = pytest.mark.parametrize("chunked", [False, True])
Running = Callable[..., KeepAlive]


@each_method
@over_tls
@as_chunks
def test_interim_responses_leave_the_connection_usable(running: Running, method: str, tls: bool, chunked: bool) -> None:
    def after_interim(number: int) -> ResponsePackets:
        return lambda request_id: [INTERIM, INTERIM + response(number, chunked=chunked)]

    service = running(after_interim(1), after_interim(2), after_interim(3), tls=tls)
    assert [service.number(method) for _request in range(3)] == [1, 2, 3]
    assert service.requests == [3]


@each_method
@over_tls
@as_chunks
@pytest.mark.parametrize("packets", [1, 2])
def test_a_connection_with_a_second_response_is_closed(
    running: Running, method: str, tls: bool, chunked: bool, packets: int
) -> None:
    both = [response(1, chunked=chunked), response(2)]
    service = running(lambda request_id: both if packets == 2 else [b"".join(both)], one(3), tls=tls)
    assert [service.number(method), service.number(method)] == [1, 3]
    assert service.requests == [1, 1]
    assert service.clock.pauses == []


@pytest.mark.parametrize("rest", [b"\r\n", b"\0"])
def test_a_connection_with_more_bytes_than_the_response_is_closed(running: Running, rest: bytes) -> None:
    service = running(lambda request_id: [response(1) + rest], one(2))
    assert [service.number(), service.number()] == [1, 2]
    assert service.requests == [1, 1]


@each_method
def test_a_response_to_an_earlier_request_is_rejected(running: Running, method: str) -> None:
    first: list[str] = []

    def late(request_id: str) -> list[bytes]:
        return [response(1, first[0])]

    def remembered(request_id: str) -> list[bytes]:
        first.append(request_id)
        return [response(1, request_id)]

    service = running(remembered, late, one(3)) if method != "POST" else running(remembered, late)
    assert service.number(method) == 1
    if method == "POST":
        with pytest.raises(ServiceUnreachable, match=r"\(the response belongs to another request\)") as error:
            service.client.post("api_keys", body={})
        assert (error.value.may_have_acted, error.value.attempts) == (True, 1)
        assert service.requests == [2]
    else:
        assert METHODS[method](service.client).json == {"number": 3}
        assert service.requests == [2, 1]


def test_a_service_may_choose_ids_of_its_own(running: Running) -> None:
    service = running(one(1, request_id="gateway-1"), one(2, request_id="gateway-1"))
    assert [service.number(), service.number()] == [1, 2]
    assert service.requests == [2]


def test_a_connection_on_which_another_protocol_would_follow_is_closed(running: Running) -> None:
    switching = b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n"
    service = running(lambda request_id: [switching], one(2))
    with pytest.raises(StatusError, match="returned 101 Switching Protocols"):
        service.number()
    assert service.number() == 2
    assert service.requests == [1, 1]


@pytest.mark.parametrize("received", [response(1), b""])
def test_nothing_is_sent_after_a_response_or_the_end_of_the_connection(received: bytes) -> None:
    ours, service = socket.socketpair()
    with ours, service:
        service.sendall(received)
        service.shutdown(socket.SHUT_WR)
        connection = session.attempt_pool(HTTPConnectionPool).ConnectionCls("control.example.com")
        connection.sock = ours
        with pytest.raises(AttemptError) as error:
            run_attempt(lambda: connection.request("GET", "/"), MAX_WAIT)
        assert isinstance(error.value.cause, ConnectionAbortedError)
        assert str(error.value.cause) == ("the connection was closed, or a response came, before the request was sent")
        assert error.value.was_sent is False
        service.setblocking(False)
        with pytest.raises(BlockingIOError):
            service.recv(1)
