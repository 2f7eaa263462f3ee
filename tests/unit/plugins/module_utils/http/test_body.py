# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The body of a response is complete, unpacked, and bounded."""

from __future__ import annotations

import gzip
import io
import tracemalloc
import zlib

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._http import body as body_file
from ansible_collections.clouddb.control.plugins.module_utils._http.body import (
    BodyError,
    ResponseTooLarge,
    read_body,
    unpacked,
)
from ansible_collections.clouddb.control.tests.unit.support.in_one_test import in_one_test

LARGEST = 16 * 1024 * 1024


class Raw:
    """A response of urllib3 with this body, of which C(missing) bytes did not arrive."""

    def __init__(self, body: bytes, missing: int = 0, encoding: str | None = None):
        self._body = io.BytesIO(body)
        self.length_remaining = missing
        self.headers = {} if encoding is None else {"Content-Encoding": encoding}

    def read(self, amount: int, decode_content: bool) -> bytes:
        assert (amount, decode_content) == (65_536, False)
        return self._body.read(amount)


def test_largest_body() -> None:
    assert read_body(Raw(b"x" * LARGEST)) == b"x" * LARGEST
    with pytest.raises(ResponseTooLarge):
        read_body(Raw(b"x" * (LARGEST + 1)))
    assert len(unpacked(gzip.compress(b"x" * LARGEST), "gzip")) == LARGEST
    with pytest.raises(ResponseTooLarge):
        unpacked(gzip.compress(b"x" * (LARGEST + 1)), "gzip")


def test_no_more_is_unpacked_than_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body_file, "MAX_RESPONSE_SIZE", 1000)
    packed = gzip.compress(bytes(20_000_000))
    tracemalloc.start()
    try:
        with pytest.raises(ResponseTooLarge):
            unpacked(packed, "gzip")
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


def test_body_that_ends_early() -> None:
    with pytest.raises(BodyError, match="^3 bytes of the body are missing$"):
        read_body(Raw(b"{}", missing=3))


def test_size_of_a_chunk_that_is_no_number() -> None:
    class Broken(Raw):
        def read(self, amount: int, decode_content: bool) -> bytes:
            raise ValueError("read length must be non-negative")

    with pytest.raises(BodyError, match="^the size of a chunk is not valid$"):
        read_body(Broken(b""))


@in_one_test("encoding", [None, "", "identity", " Identity "])
def test_body_that_is_not_compressed(encoding: str | None) -> None:
    assert read_body(Raw(b"{}", encoding=encoding)) == b"{}"


@in_one_test("encoding", ["gzip", "GZIP", " x-gzip"])
def test_compressed_body(encoding: str) -> None:
    assert read_body(Raw(gzip.compress(b"{}"), encoding=encoding)) == b"{}"
    assert read_body(Raw(b"", encoding=encoding)) == b""


PACKED = gzip.compress(b"{}")


@in_one_test(
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
