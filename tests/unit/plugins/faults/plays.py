# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The faults that a bad wire plays."""

from __future__ import annotations

import json
import socket
import struct
import time
import zlib
from collections.abc import Callable
from email.utils import formatdate
from functools import lru_cache
from typing import Any

from ansible_collections.clouddb.control.tests.unit.plugins.faults.wire import Exchange, Play, message

# A client that never gives up is cut off here, so that its test fails instead of lasting forever.
MAX_SECONDS = 60.0
PAUSE_BETWEEN_DRIPS = 0.02
MEBIBYTE = 1 << 20
HUNDRED_YEARS = 100 * 365 * 86400


# No response, or not all of it


def reset_before(exchange: Exchange) -> None:
    _reset(exchange.connection)


def answer_lost(exchange: Exchange) -> None:
    exchange.carry_out()
    _reset(exchange.connection)


def reset_within(exchange: Exchange) -> None:
    truncated(exchange)
    _reset(exchange.connection)


def truncated(exchange: Exchange) -> None:
    body = exchange.carry_out().body
    exchange.connection.sendall(message(body[: len(body) // 2], length=len(body)))


def silence(exchange: Exchange) -> None:
    _gone(exchange.connection, MAX_SECONDS)


def silence_after_acting(exchange: Exchange) -> None:
    exchange.carry_out()
    silence(exchange)


def dripping(first: bytes) -> Play:
    """After these first bytes one now and then, without end: the line is never silent for long."""

    def play(exchange: Exchange) -> None:
        exchange.carry_out()
        exchange.connection.sendall(first)
        until = time.monotonic() + MAX_SECONDS
        while time.monotonic() < until and not _gone(exchange.connection, PAUSE_BETWEEN_DRIPS):
            exchange.connection.sendall(b" ")

    return play


def _reset(connection: socket.socket) -> None:
    """Have the connection end with a reset when it is closed."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def _gone(connection: socket.socket, seconds: float) -> bool:
    """Whether the client goes away within so many seconds."""
    connection.settimeout(seconds)
    try:
        return connection.recv(1) == b""
    except TimeoutError:
        return False


# Another response


def instead(body: bytes, status: int = 200, **headers: Any) -> Play:
    """This response, and nothing done; a header that can be called is called when it is sent."""

    def play(exchange: Exchange) -> None:
        fields = {name.replace("_", "-"): str(value() if callable(value) else value) for name, value in headers.items()}
        exchange.connection.sendall(message(body, status, fields))

    return play


def error(status: int, **headers: Any) -> Play:
    return instead(json.dumps({"message": "not now", "code": "", "request_id": "wire"}).encode(), status, **headers)


def not_found(exchange: Exchange) -> None:
    if exchange.request.method == "DELETE":
        exchange.carry_out()
    error(404)(exchange)


def redirect(exchange: Exchange) -> None:
    """To another origin, which leads back here: a client that follows is seen."""
    port = exchange.connection.getsockname()[1]
    instead(b"", 302, Location=f"http://localhost:{port}{exchange.request.target}")(exchange)


def malformed(exchange: Exchange) -> None:
    """Half of the JSON, as if it were whole."""
    body = exchange.carry_out().body
    exchange.connection.sendall(message(body[: len(body) // 2]))


def latin1(exchange: Exchange) -> None:
    """Good JSON, but not in UTF-8."""
    body = exchange.carry_out().body
    exchange.connection.sendall(message(body.replace(b'":"', b'":"\xe9', 1)))


def endless(exchange: Exchange) -> None:
    """White space without end within the JSON."""
    exchange.carry_out()
    exchange.connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n[")
    for _mebibyte in range(80):
        exchange.connection.sendall(b" " * MEBIBYTE)


def packed(exchange: Exchange) -> None:
    exchange.carry_out()
    exchange.connection.sendall(message(_packed_spaces(), headers={"Content-Encoding": "gzip"}))


@lru_cache
def _packed_spaces() -> bytes:
    """Some kilobytes that unpack to 80 MiB."""
    packer = zlib.compressobj(wbits=16 + zlib.MAX_WBITS)
    return b"".join(packer.compress(b" " * MEBIBYTE) for _mebibyte in range(80)) + packer.flush()


def in_half_a_minute() -> str:
    return formatdate(time.time() + 30, usegmt=True)


RETRY_AFTER: dict[str, str | int | Callable[[], str]] = {
    "in seconds": 7,
    "as a date": in_half_a_minute,
    "of years": HUNDRED_YEARS,
    "without sense": "soon",
}

# By the fault's name in the matrix; there is more to a refused connection than a play.
PLAYS: dict[str, Play] = {
    "reset before the service acts": reset_before,
    "reset before the answer": answer_lost,
    "reset within the body": reset_within,
    "body shorter than announced": truncated,
    "silence longer than ``api_timeout``": silence,
    "silence after the service acted": silence_after_acting,
    "headers that drip without end": dripping(b"HTTP/1.1 200 OK\r\nX-Filler: "),
    "a body that drips without end": dripping(message(b"[", length=MEBIBYTE)),
    "a body without end": endless,
    "a few bytes that unpack without end": packed,
    "an empty body": instead(b""),
    "HTML with 200": instead(b"<!DOCTYPE html>\n<html><body>Sign in</body></html>", Content_Type="text/html"),
    "malformed JSON": malformed,
    "JSON of another shape": instead(b'{"id": "7", "unexpected": [true]}'),
    "a body that is not UTF-8": latin1,
    "302 to another origin": redirect,
    "404": not_found,
    **{str(status): error(status) for status in (400, 401, 403, 409, 422, 423, 429, 500, 502, 503, 504)},
    **{
        f"{status}, Retry-After {how}": error(status, Retry_After=value)
        for status in (423, 429)
        for how, value in RETRY_AFTER.items()
    },
}
