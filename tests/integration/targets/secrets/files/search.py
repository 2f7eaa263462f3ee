# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds keys in bytes: known keys in every encoding, and generated keys by their hashes."""

from __future__ import annotations

import base64
import binascii
import hashlib
import html
import json
import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from urllib.parse import quote, quote_plus

# The sandbox generates secrets of 64 letters and digits.
LENGTH = 64
SECRET = re.compile(rb"[a-z0-9]{64,}")
BASE64 = re.compile(rb"[A-Za-z0-9+/_-]{64,}")


def encodings(key: str) -> dict[str, bytes]:
    """The key in each encoding that files and output can have, by name; in Base64 at each of the three possible offsets."""
    escaped = json.dumps(key)[1:-1]
    texts = {
        "plain": key,
        "JSON": escaped,
        "JSON in JSON": json.dumps(escaped)[1:-1],
        "repr": repr(key)[1:-1],
        "URL": quote(key, safe=""),
        "form": quote_plus(key),
        "HTML": html.escape(key),
        "reversed": key[::-1],
    }
    found = {name: text.encode() for name, text in texts.items()}
    found["hex"] = key.encode().hex().encode()
    for offset in range(3):
        # The characters at both ends depend on the bytes beside the key, so they are omitted.
        middle = base64.b64encode(b"\0" * offset + key.encode())[4 if offset else 0 : -4]
        found[f"Base64 {offset}"] = middle
        found[f"URL-safe Base64 {offset}"] = middle.translate(bytes.maketrans(b"+/", b"-_"))
    return found


def known_keys(content: bytes, keys: Collection[str]) -> Iterator[str]:
    """A description of each encoding of one of these keys that C(content) contains."""
    for number, key in enumerate(keys):
        yield from (f"known key {number}, {name}" for name, encoded in encodings(key).items() if encoded in content)


def generated_keys(content: bytes, hashes: Collection[bytes]) -> Iterator[str]:
    """A description of each secret with one of these SHA-256 hashes in C(content), in plain text or in Base64."""
    for text in (content, *_decoded(content.translate(None, b"\r\n"))):
        for run in SECRET.finditer(text):
            for begin in range(len(run[0]) - LENGTH + 1):
                digest = hashlib.sha256(run[0][begin : begin + LENGTH]).digest()
                if digest in hashes:
                    yield f"a key whose hash begins with {digest.hex()[:8]}"


def _decoded(content: bytes) -> Iterator[bytes]:
    for match in BASE64.finditer(content):
        for offset in range(4):
            text = match[0][offset:].translate(bytes.maketrans(b"-_", b"+/"))
            with suppress(binascii.Error):
                yield base64.b64decode(text[: len(text) - (len(text) % 4 == 1)] + b"=" * (-len(text) % 4))
