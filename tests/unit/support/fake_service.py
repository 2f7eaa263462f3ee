# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fake of a JSON API on a loopback address, for services that no package contains."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

TOKEN = "token-for-the-fake"


class Request(NamedTuple):
    """A request whose token was accepted."""

    method: str
    path: str
    query: dict[str, str]
    content_type: str
    body: Any


class FakeService:
    """A service that accepts TOKEN, and sends C(headers). C(requests) are those so far; while C(rejects_writes), it fails all others than GET."""

    headers: dict[str, str] = {}

    def __init__(self) -> None:
        self.url = ""
        self.requests: list[Request] = []
        self.rejects_writes = False

    def writes(self) -> int:
        """The number of requests that may have changed something."""
        return sum(request.method != "GET" for request in self.requests)

    def respond(self, request: Request) -> tuple[int, Any]:
        """The status and the JSON body of the response. Raises KeyError for what the service does not have."""
        raise NotImplementedError

    def handle(self, authorization: str | None, request: Request) -> tuple[int, Any]:
        """The status and the JSON body of the response to any request."""
        if authorization != f"Bearer {TOKEN}":
            return 401, {"message": "The token is missing or invalid."}
        self.requests.append(request)
        if self.rejects_writes and request.method != "GET":
            return 500, {"message": "The disk is full."}
        try:
            return self.respond(request)
        except KeyError as error:
            return 404, {"message": f"{request.method} {request.path}: {error}"}


@contextmanager
def serving(service: FakeService) -> Iterator[None]:
    """Run the service in a thread, and set its address."""
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def _handle(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            parts = urlsplit(self.path)
            request = Request(
                self.command,
                parts.path,
                dict(parse_qsl(parts.query)),
                self.headers.get_content_type(),
                json.loads(content or b"null"),
            )
            with lock:
                status, body = service.handle(self.headers["Authorization"], request)
            response = b"" if body is None else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(response)))
            for name, value in service.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(response)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _handle

        def log_message(self, format: str, *args: Any) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        service.url = f"http://127.0.0.1:{server.server_port}"
        try:
            yield
        finally:
            server.shutdown()
