# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds keys in bytes: those that are known in every spelling, and those of which only the hash is known."""

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

# The sandbox makes up secrets of 64 letters and digits.
LENGTH = 64
SECRET = re.compile(rb"[a-z0-9]{64,}")
BASE64 = re.compile(rb"[A-Za-z0-9+/_-]{64,}")


def encodings(key: str) -> dict[str, bytes]:
    """The key as it may stand in files and on screens; in Base64 at each of the three places that it can begin at."""
    escaped = json.dumps(key)[1:-1]
    texts = {
        "plain": key,
        "JSON": escaped,
        "JSON in JSON": json.dumps(escaped)[1:-1],
        "repr": repr(key)[1:-1],
        "URL": quote(key, safe=""),
        "form": quote_plus(key),
        "HTML": html.escape(key),
        "backwards": key[::-1],
    }
    found = {name: text.encode() for name, text in texts.items()}
    found["hex"] = key.encode().hex().encode()
    for lead in range(3):
        # What the neighbours of the key change is left out at both ends.
        middle = base64.b64encode(b"\0" * lead + key.encode())[4 if lead else 0 : -4]
        found[f"Base64 {lead}"] = middle
        found[f"Base64 for addresses {lead}"] = middle.translate(bytes.maketrans(b"+/", b"-_"))
    return found


def known_keys(content: bytes, keys: Collection[str]) -> Iterator[str]:
    """A description of each spelling of one of these keys that is in there."""
    for number, key in enumerate(keys):
        yield from (f"known key {number}, {name}" for name, spelling in encodings(key).items() if spelling in content)


def made_up_keys(content: bytes, hashes: Collection[bytes]) -> Iterator[str]:
    """A description of each secret whose SHA-256 hash is among these, as it is or in Base64."""
    for text in (content, *_decoded(content.translate(None, b"\r\n"))):
        for run in SECRET.finditer(text):
            for begin in range(len(run[0]) - LENGTH + 1):
                digest = hashlib.sha256(run[0][begin : begin + LENGTH]).digest()
                if digest in hashes:
                    yield f"a key whose hash begins with {digest.hex()[:8]}"


def _decoded(content: bytes) -> Iterator[bytes]:
    for match in BASE64.finditer(content):
        for lead in range(4):
            text = match[0][lead:].translate(bytes.maketrans(b"-_", b"+/"))
            with suppress(binascii.Error):
                yield base64.b64decode(text[: len(text) - (len(text) % 4 == 1)] + b"=" * (-len(text) % 4))
