# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a text is that should be a key: from an option, a file or a response. Keeps P6 and P11."""

from __future__ import annotations

import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from unicodedata import category

QUOTES = tuple("\"'`")
# A key in base64 can end with equals signs.
_ASSIGNMENT = re.compile(r"(export\s+)?[A-Za-z_]\w*\s*=\s*[^\s=]")


def decoded(content: bytes) -> str:
    """The text of a file in UTF-8, or in UTF-16 if a byte order mark says so, without what stripped() drops."""
    encoding = "utf-16" if content.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "utf-8"
    return stripped(content.decode(encoding, errors="replace"))


def stripped(text: str) -> str:
    """The text without white space, byte order marks and zero-width characters at its ends."""
    visible = [
        place for place, character in enumerate(text) if not (character.isspace() or category(character) == "Cf")
    ]
    return text[visible[0] : visible[-1] + 1] if visible else ""


def why_no_key(text: str) -> str | None:
    """Why this text, without white space around it, is more or less than a key, as a clause that quotes none of it; None for a key.

    A key can stand in an Authorization header.
    """
    lines = text.splitlines()
    kinds = {
        "it is empty": not text,
        "it is encrypted with Ansible Vault": text.startswith("$ANSIBLE_VAULT"),
        "it begins with a comment": text.startswith("#"),
        "it begins with 'Bearer '": text.lower().startswith("bearer "),
        "it assigns a value to a name (NAME=value)": _ASSIGNMENT.match(text),
        f"it has {len(lines)} lines": len(lines) > 1,
        "it has quotes around it": text[:1] in QUOTES or text[-1:] in QUOTES,
        "it is JSON or a template": text.startswith("{"),
    }
    for kind, applies in kinds.items():
        if applies:
            return kind
    for place, character in enumerate(text, 1):
        if not "!" <= character <= "~":
            return f"it has the character U+{ord(character):04X} at position {place}"
    return None
