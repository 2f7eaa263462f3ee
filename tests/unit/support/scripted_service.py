# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A service on a real socket that follows a script: one answer for each request, in order."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import Message
from email.parser import Parser
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit


class Request(NamedTuple):
    """A request as it came over the wire; C(target) is the path with its query, still encoded."""

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
        return json.loads(self.body)


class Reply(NamedTuple):
    """What to send back, byte by byte; None: close the connection without a word."""

    raw: bytes | None


def reply(body: Any = None, status: int = 200, **headers: str) -> Reply:
    """An answer with this JSON body (bytes are sent as they are) and headers (C(Retry_After) for Retry-After)."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} Scripted", *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items())]
    if "Content_Length" not in headers:
        lines.append(f"Content-Length: {len(content)}")
    return Reply("\r\n".join([*lines, "Connection: close", "", ""]).encode("latin-1") + content)


HANG_UP = Reply(None)


class ScriptedService:
    """C(base_url) to send requests to; C(requests) that came."""

    def __init__(self, listener: socket.socket, script: list[Reply]):
        self.base_url = f"http://127.0.0.1:{listener.getsockname()[1]}/api/v2"
        self.requests: list[Request] = []
        self.script = script
        self._listener = listener

    def serve(self) -> None:
        while True:
            try:
                connection, _address = self._listener.accept()
            except OSError:
                return
            with connection, connection.makefile("rb") as stream:
                line = stream.readline().decode("latin-1")
                if not line.strip():
                    continue
                head = "".join(iter(lambda: stream.readline().decode("latin-1"), "\r\n"))
                headers = Parser().parsestr(head)
                method, target, _version = line.split()
                self.requests.append(Request(method, target, headers, stream.read(int(headers.get("Content-Length") or 0))))
                # A script that is too short shows as a plain 599 in the test.
                answer = self.script.pop(0) if self.script else reply({"message": "the script has ended"}, 599)
                if answer.raw is not None:
                    connection.sendall(answer.raw)


@contextmanager
def scripted_service(*script: Reply) -> Iterator[ScriptedService]:
    """Serve the script; fails if a reply was not asked for."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        service = ScriptedService(listener, list(script))
        thread = threading.Thread(target=service.serve, daemon=True)
        thread.start()
        yield service
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(5)
    assert not service.script, f"replies that nobody asked for: {service.script}"
