# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The errors that the proxy injects."""

from __future__ import annotations

import json
import socket
import struct
import time
from collections.abc import Callable
from email.utils import formatdate
from typing import Any

from ansible_collections.clouddb.control.tests.unit.plugins.faults.faulty_proxy import Exchange, Handler, raw_response
from ansible_collections.clouddb.control.tests.unit.plugins.faults.matrix import GROUPS

# A client that does not time out is disconnected after this time, so that its test fails instead of hanging.
MAX_SECONDS = 60.0
BYTE_INTERVAL = 0.02
MEBIBYTE = 1 << 20
HUNDRED_YEARS = 100 * 365 * 86400


# No response, or not all of it


def reset_before_forwarding(exchange: Exchange) -> None:
    _reset_on_close(exchange.connection)


def response_lost(exchange: Exchange) -> None:
    exchange.forward()
    _reset_on_close(exchange.connection)


def cut_within_headers(exchange: Exchange) -> None:
    response = raw_response(exchange.forward().body)
    exchange.connection.sendall(response[: response.index(b"\r\n\r\n") - 2])


def reset_within_body(exchange: Exchange) -> None:
    truncated(exchange)
    _reset_on_close(exchange.connection)


def truncated(exchange: Exchange) -> None:
    body = exchange.forward().body
    exchange.connection.sendall(raw_response(body[: len(body) // 2], length=len(body)))


def no_response(exchange: Exchange) -> None:
    exchange.time_out()
    _disconnects(exchange.connection, MAX_SECONDS)


def no_response_after_forwarding(exchange: Exchange) -> None:
    exchange.forward()
    no_response(exchange)


def endless_bytes(start: bytes) -> Handler:
    """C(start), then one byte after another, without end and without a long pause."""

    def handler(exchange: Exchange) -> None:
        exchange.forward()
        exchange.connection.sendall(start)
        exchange.time_out()
        until = time.monotonic() + MAX_SECONDS
        while time.monotonic() < until and not _disconnects(exchange.connection, BYTE_INTERVAL):
            exchange.connection.sendall(b" ")

    return handler


def _reset_on_close(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def _disconnects(connection: socket.socket, seconds: float) -> bool:
    """Whether the client closes the connection within this time."""
    connection.settimeout(seconds)
    try:
        return connection.recv(1) == b""
    except TimeoutError:
        return False


# Another response


def instead(body: bytes, status: int = 200, **headers: Any) -> Handler:
    """This response without forwarding the request; a header value that is callable is called when it is sent."""

    def handler(exchange: Exchange) -> None:
        fields = {name.replace("_", "-"): str(value() if callable(value) else value) for name, value in headers.items()}
        exchange.connection.sendall(raw_response(body, status, fields))

    return handler


def error_status(status: int, **headers: Any) -> Handler:
    return instead(json.dumps({"message": "not now", "code": "", "request_id": "proxy"}).encode(), status, **headers)


def processed(status: int) -> Handler:
    """This status instead of the sandbox's response."""

    def handler(exchange: Exchange) -> None:
        exchange.forward()
        error_status(status)(exchange)

    return handler


def not_found(exchange: Exchange) -> None:
    if exchange.request.method == "DELETE":
        exchange.forward()
    error_status(404)(exchange)


def redirect(exchange: Exchange) -> None:
    """To another origin, which leads back to this proxy: a client that follows it shows in the requests."""
    port = exchange.connection.getsockname()[1]
    instead(b"", 302, Location=f"http://localhost:{port}{exchange.request.target}")(exchange)


def malformed(exchange: Exchange) -> None:
    """Half of the JSON, with a Content-Length that matches."""
    body = exchange.forward().body
    exchange.connection.sendall(raw_response(body[: len(body) // 2]))


def latin1(exchange: Exchange) -> None:
    """The response's JSON, but not in UTF-8."""
    body = exchange.forward().body
    exchange.connection.sendall(raw_response(body.replace(b'":"', b'":"\xe9', 1)))


def in_half_a_minute() -> str:
    return formatdate(time.time() + 30, usegmt=True)


# By how the matrix describes the header.
RETRY_AFTER: dict[str, str | int | Callable[[], str]] = {
    "in seconds": 7,
    "as a date": in_half_a_minute,
    "of 100 years": HUNDRED_YEARS,
    "malformed": "soon",
}

# By the name of the error in the matrix, except for refused connections, which no handler can inject.
ERRORS: dict[str, Handler] = {
    "reset before the request is processed": reset_before_forwarding,
    "reset before the response": response_lost,
    "cut within the headers": cut_within_headers,
    "reset within the body": reset_within_body,
    "body shorter than ``Content-Length``": truncated,
    "no response within ``api_timeout``, request not processed": no_response,
    "no response within ``api_timeout``, request processed": no_response_after_forwarding,
    "headers sent byte by byte without end": endless_bytes(b"HTTP/1.1 200 OK\r\nX-Filler: "),
    "body sent byte by byte without end": endless_bytes(raw_response(b"[", length=MEBIBYTE)),
    "empty body": instead(b""),
    "HTML with 200": instead(b"<!DOCTYPE html>\n<html><body>Sign in</body></html>", Content_Type="text/html"),
    "malformed JSON": malformed,
    "JSON of another shape": instead(b'{"id": "7", "unexpected": [true]}'),
    "body that is not UTF-8": latin1,
    "302 to another origin": redirect,
    "404": not_found,
    **{str(status): error_status(status) for status in (400, 401, 403, 409, 422, 423, 429, 500, 502, 503, 504)},
    **{
        f"{status}, Retry-After {how}": error_status(status, Retry_After=value)
        for status in (423, 429)
        for how, value in RETRY_AFTER.items()
    },
    **{
        name: processed(statuses[0]) if "processed" in name else error_status(statuses[0])
        for name, statuses in GROUPS.items()
    },
}
