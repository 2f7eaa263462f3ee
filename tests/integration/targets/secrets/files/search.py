# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds keys in bytes: known keys in every encoding, and generated keys by their hashes."""

from __future__ import annotations

import hashlib
import html
import json
import re
from collections.abc import Collection, Iterator
from urllib.parse import quote

# The sandbox generates secrets of 64 letters and digits.
LENGTH = 64
SECRET = re.compile(rb"[a-z0-9]{64,}")


def encodings(key: str) -> dict[str, bytes]:
    """The key in each encoding that files and output can have, by name."""
    escaped = json.dumps(key)[1:-1]
    texts = {
        "plain": key,
        "JSON": escaped,
        "JSON in JSON": json.dumps(escaped)[1:-1],
        "repr": repr(key)[1:-1],
        "URL": quote(key, safe=""),
        "HTML": html.escape(key),
    }
    return {name: text.encode() for name, text in texts.items()}


def known_keys(content: bytes, keys: Collection[str]) -> Iterator[str]:
    """A description of each encoding of one of these keys that C(content) contains."""
    for number, key in enumerate(keys):
        yield from (f"known key {number}, {name}" for name, encoded in encodings(key).items() if encoded in content)


def generated_keys(content: bytes, hashes: Collection[bytes]) -> Iterator[str]:
    """A description of each secret with one of these SHA-256 hashes in C(content)."""
    for run in SECRET.finditer(content):
        for begin in range(len(run[0]) - LENGTH + 1):
            digest = hashlib.sha256(run[0][begin : begin + LENGTH]).digest()
            if digest in hashes:
                yield f"a key whose hash begins with {digest.hex()[:8]}"
