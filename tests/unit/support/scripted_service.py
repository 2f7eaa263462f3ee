# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A service on a real socket that follows a script: one reply for each request, in order."""

from __future__ import annotations

import json
import socket
import ssl
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from email.message import Message
from http.client import parse_headers
from typing import Any, NamedTuple, TypeVar
from urllib.parse import parse_qsl, urlsplit

MAX_WAIT = 60.0  # seconds; a client that does not time out fails its test instead of hanging


class Request(NamedTuple):
    """A request as it was received; C(target) is the path with its query, still encoded."""

    method: str
    target: str
    headers: Message
    body: bytes

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> list[tuple[str, str]]:
        return parse_qsl(urlsplit(self.target).query, keep_blank_values=True)

    @property
    def json(self) -> Any:
        return json.loads(self.body or b"null")


class Reply(NamedTuple):
    """The bytes to send back; then the connection is closed, or C(reset), or C(hangs) until the client closes it.

    C(endless) is sent again and again until then, every C(pause) seconds. C(tunnels): a proxy connects the client to the
    port of this machine in the target.
    """

    raw: bytes
    reset: bool = False
    hangs: bool = False
    endless: bytes = b""
    pause: float = 0.05
    tunnels: bool = False


def reply(body: Any = None, status: int = 200, **headers: str) -> Reply:
    """A response with this JSON body (bytes are sent as they are) and headers (C(Retry_After) for Retry-After)."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} Scripted", *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items())]
    if "Content_Length" not in headers:
        lines.append(f"Content-Length: {len(content)}")
    return Reply("\r\n".join([*lines, "Connection: close", "", ""]).encode("latin-1") + content)


Service = TypeVar("Service", bound="ScriptedService")

HANG_UP = Reply(b"")
RESET = Reply(b"", reset=True)
SILENCE = Reply(b"", hangs=True)
TUNNEL = Reply(b"HTTP/1.1 200 Connection established\r\n\r\n", tunnels=True)
# A 503 of the service itself, which it sends without acting, and that of a gateway that may have passed the request on.
NOT_NOW = reply({"message": "not now", "code": "", "request_id": "theirs"}, 503)
CUT_OFF = reply(
    b"upstream connect error or disconnect/reset before headers. reset reason: connection termination",
    503,
    Content_Type="text/plain",
)


class ScriptedService:
    """Responds at C(base_url) and records the C(requests). C(tls) true uses a certificate of an unknown authority, a context its own."""

    def __init__(self, listener: socket.socket, script: list[Reply], tls: bool | ssl.SSLContext = False):
        self.address: tuple[str, int] = listener.getsockname()
        self.base_url = f"{'https' if tls else 'http'}://127.0.0.1:{self.address[1]}/api/v2"
        self.requests: list[Request] = []
        self.script = script
        # Set when a reply hangs.
        self.hanging = threading.Event()
        self._listener = listener
        self._tls = tls
        if tls is True:
            import trustme  # which not all programs that use this file have

            self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            trustme.CA().issue_cert("127.0.0.1").configure_cert(self._tls)

    def reply_to(self, request: Request) -> Reply:
        """The next reply of the script, or a 599 if the script has ended."""
        return self.script.pop(0) if self.script else reply({"message": "the script has ended"}, 599)

    def serve(self) -> None:
        """Respond to one request of each connection, until the listener is closed."""
        with suppress(OSError):
            while True:
                self.respond(self._listener.accept()[0])

    def respond(self, connection: socket.socket) -> None:
        # A client may disconnect at any time, for example when it does not trust the certificate.
        with suppress(OSError), connection:
            if self._tls:
                connection = self._tls.wrap_socket(connection, server_side=True)
            with connection, connection.makefile("rb") as stream:
                if not (line := stream.readline().split()):
                    return
                headers = parse_headers(stream)
                method, target, _version = (part.decode("latin-1") for part in line)
                request = Request(method, target, headers, stream.read(int(headers.get("Content-Length") or 0)))
                self.requests.append(request)
                sent = self.reply_to(request)
                send(connection, sent, self.hanging)
                if sent.tunnels:
                    with socket.create_connection(("127.0.0.1", int(target.rpartition(":")[2]))) as service:
                        threading.Thread(target=pump, args=[service, connection], daemon=True).start()
                        pump(connection, service)


def send(connection: socket.socket, sent: Reply, hanging: threading.Event) -> None:
    """Send the reply; C(hanging) is set once it hangs."""
    connection.sendall(sent.raw)
    if sent.hangs:
        hanging.set()
        while sent.endless:
            time.sleep(sent.pause)
            connection.sendall(sent.endless)
        connection.settimeout(MAX_WAIT)
        connection.recv(1)
    if sent.reset:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def pump(source: socket.socket, target: socket.socket) -> None:
    """Send on what is received, until the end."""
    with suppress(OSError):
        while data := source.recv(2**16):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


@contextmanager
def scripted_service(
    *script: Reply, tls: bool | ssl.SSLContext = False, service_class: type[Service] = ScriptedService
) -> Iterator[Service]:
    """Serve the script, over TLS on request; fails if a reply was not requested."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        service = service_class(listener, list(script), tls)
        thread = threading.Thread(target=service.serve, daemon=True)
        thread.start()
        try:
            yield service
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(60)
    assert not service.script, f"replies that were not requested: {service.script}"
