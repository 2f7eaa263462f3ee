# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""HTTP answers that have an end: whole before a deadline, and no larger than what fits in memory.

A socket's own timeout bounds each read alone, so that an answer of which one byte arrives now and then would never end.
"""

from __future__ import annotations

import io
import socket
import time
import zlib
from http.client import HTTPResponse
from typing import Any

MAX_RESPONSE_SIZE = 64 * 2**20
# As zlib calls gzip's format.
GZIP = 16 + zlib.MAX_WBITS


class ResponseTooLarge(OSError):
    """It has more than MAX_RESPONSE_SIZE bytes, as it came or unpacked."""


class BoundedAnswer(HTTPResponse):
    """An answer whose status line, headers and body have to come within the timeout that the socket has when it begins."""

    def __init__(self, sock: Any, *args: Any, **kwargs: Any):
        super().__init__(sock, *args, **kwargs)
        self.fp = io.BufferedReader(_BoundedStream(sock, self.fp.detach()))


def unpacked(body: bytes, encoding: str | None) -> bytes:
    """The body without its Content-Encoding, of which gzip is asked for. Raises ValueError, or ResponseTooLarge."""
    if not body or encoding in (None, "identity"):
        return body
    if encoding != "gzip":
        raise ValueError(f"the answer is compressed with {encoding}, though only gzip was asked for")
    unpacker = zlib.decompressobj(GZIP)
    try:
        plain = unpacker.decompress(body, MAX_RESPONSE_SIZE + 1)
    except zlib.error as error:
        raise ValueError(f"the answer can't be unpacked: {error}") from error
    if len(plain) > MAX_RESPONSE_SIZE:
        # A few bytes may unpack to any number of them.
        raise ResponseTooLarge(f"more than {MAX_RESPONSE_SIZE} bytes")
    if not unpacker.eof:
        raise ValueError("the answer can't be unpacked: it ends too early")
    return plain


class _BoundedStream(io.RawIOBase):
    """The bytes of C(stream), which reads from C(sock)."""

    def __init__(self, sock: Any, stream: io.RawIOBase):
        super().__init__()
        self._socket = sock
        self._stream = stream
        self._deadline = time.monotonic() + sock.gettimeout()
        self._room = MAX_RESPONSE_SIZE

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise socket.timeout("timed out")
        self._socket.settimeout(left)
        count = self._stream.readinto(buffer)
        self._room -= count or 0
        if self._room < 0:
            raise ResponseTooLarge(f"more than {MAX_RESPONSE_SIZE} bytes")
        return count

    def close(self) -> None:
        self._stream.close()
        super().close()
