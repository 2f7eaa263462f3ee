# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The body of a response is complete and unpacked."""

from __future__ import annotations

import gzip
import io
import zlib

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._http.body import (
    BodyError,
    read_body,
    unpacked,
)


class Raw:
    """A response of urllib3 with this body, of which C(missing) bytes did not arrive."""

    def __init__(self, body: bytes, missing: int = 0, encoding: str | None = None):
        self._body = io.BytesIO(body)
        self.length_remaining = missing
        self.headers = {} if encoding is None else {"Content-Encoding": encoding}

    def read(self, amount: int, decode_content: bool) -> bytes:
        assert (amount, decode_content) == (65_536, False)
        return self._body.read(amount)


def test_body_of_any_size() -> None:
    body = b"x" * 20_000_000
    assert read_body(Raw(body)) == body
    assert read_body(Raw(gzip.compress(body, 1, mtime=0), encoding="gzip")) == body


def test_body_that_ends_early() -> None:
    with pytest.raises(BodyError, match="^3 bytes of the body are missing$"):
        read_body(Raw(b"{}", missing=3))


def test_size_of_a_chunk_that_is_no_number() -> None:
    class Broken(Raw):
        def read(self, amount: int, decode_content: bool) -> bytes:
            raise ValueError("read length must be non-negative")

    with pytest.raises(BodyError, match="^the size of a chunk is not valid$"):
        read_body(Broken(b""))


@pytest.mark.parametrize("encoding", [None, "", "identity", " Identity "])
def test_body_that_is_not_compressed(encoding: str | None) -> None:
    assert read_body(Raw(b"{}", encoding=encoding)) == b"{}"


@pytest.mark.parametrize("encoding", ["gzip", "GZIP", " x-gzip"])
def test_compressed_body(encoding: str) -> None:
    assert read_body(Raw(gzip.compress(b"{}", mtime=0), encoding=encoding)) == b"{}"
    assert read_body(Raw(b"", encoding=encoding)) == b""


PACKED = gzip.compress(b"{}", mtime=0)


@pytest.mark.parametrize(
    "body, encoding, message",
    [
        (PACKED[:-1], "gzip", "the compressed body ends early"),
        (PACKED + b"x", "gzip", "there is more data after the compressed body"),
        (b"{}", "gzip", "the body cannot be unpacked: Error -3 while decompressing data: incorrect header check"),
        (
            zlib.compress(b"{}"),
            "gzip",
            "the body cannot be unpacked: Error -3 while decompressing data: incorrect header check",
        ),
        (PACKED, "br", "the body has another encoding than gzip, which was asked for"),
    ],
)
def test_body_that_cannot_be_unpacked(body: bytes, encoding: str, message: str) -> None:
    with pytest.raises(BodyError) as error:
        unpacked(body, encoding)
    assert str(error.value) == message
