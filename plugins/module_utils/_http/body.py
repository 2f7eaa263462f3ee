# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the body of a response: complete and unpacked."""

from __future__ import annotations

import zlib
from typing import Any

# Python 3.9 allocates as much as it is asked to read, whatever arrives.
CHUNK_SIZE = 2**16
# As zlib calls gzip's format.
GZIP = 16 + zlib.MAX_WBITS


class BodyError(Exception):
    """The body ends early, cannot be unpacked, or belongs to another request."""


def read_body(raw: Any) -> bytes:
    """The body of urllib3's response C(raw). Raises BodyError, and what urllib3 raises."""
    body = bytearray()
    try:
        while chunk := raw.read(CHUNK_SIZE, decode_content=False):
            body += chunk
    except ValueError as error:
        # http.client accepts a negative size of a chunk.
        raise BodyError("the size of a chunk is not valid") from error
    if raw.length_remaining:
        raise BodyError(f"{raw.length_remaining} bytes of the body are missing")
    return unpacked(bytes(body), raw.headers.get("Content-Encoding"))


def unpacked(body: bytes, encoding: str | None) -> bytes:
    """The body without its Content-Encoding, of which only gzip is asked for. Raises BodyError."""
    encoding = (encoding or "").strip().lower()
    if not body or encoding in ("", "identity"):
        return body
    if encoding not in ("gzip", "x-gzip"):
        raise BodyError("the body has another encoding than gzip, which was asked for")
    unpacker = zlib.decompressobj(GZIP)
    try:
        plain = unpacker.decompress(body)
    except zlib.error as error:
        raise BodyError(f"the body cannot be unpacked: {error}") from error
    if not unpacker.eof:
        raise BodyError("the compressed body ends early")
    if unpacker.unused_data:
        raise BodyError("there is more data after the compressed body")
    return plain
