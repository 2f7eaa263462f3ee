# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Untrusted JSON and texts: JSON and ids are checked, other texts are made displayable and contain no templates. Keeps P8."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any

# Longer ids would not fit into the name of a file or host.
MAX_ID_LENGTH = 128
MAX_TEXT_LENGTH = 500
# A message may quote several texts.
MAX_MESSAGE_LENGTH = 20_000
MAX_INTEGER = 2**63

# The form of most ids of projects, such as C(wispy-lake-12345678).
PROJECT_ID = re.compile(r"[a-z-]+-[0-9]{6,}")
_ID = re.compile(rf"(?!\.+\Z)[A-Za-z0-9_.-]{{1,{MAX_ID_LENGTH}}}")
# What Jinja's opening delimiters begin with, and $ANSIBLE_VAULT, which ansible-rulebook takes for a vaulted value.
_DELIMITER_START = re.compile(r"([{$])(?! )")


def is_id(value: Any) -> bool:
    """Whether this can be the id of a resource: fit to be a part of a path, a file name or a host name.

    Ids consist of ASCII letters, digits, dashes, underscores and dots, but not only of dots.
    """
    return isinstance(value, str) and _ID.fullmatch(value) is not None


def displayable(text: object, max_length: int = MAX_TEXT_LENGTH) -> str:
    """The text for a terminal or a log: on one line, truncated, and with characters that are not printable as escapes.

    Those are control characters, escape sequences, characters that change the direction of the text, and lone surrogates.
    """
    line = str(text)
    # No character becomes shorter, so the rest would be truncated anyway.
    if not line.isprintable():
        line = "".join(map(_printable, line[: max_length + 1]))
    return line if len(line) <= max_length else f"{line[: max_length - 1]}…"


def _printable(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode()


def without_templates(text: str) -> str:
    """The text with a space after every C({) and C($), so that it holds no opening delimiter, nor does any text joined from such texts.

    For texts that cannot be marked as untrusted: names of fields, and variables that ansible-rulebook passes on.
    """
    return _DELIMITER_START.sub(r"\1 ", text)


def walk(value: Any, on_text: Callable[[str], str]) -> Any:
    """A copy of the value with C(on_text) applied to every text in it, even to the names of fields."""
    if isinstance(value, str):
        return on_text(value)
    if isinstance(value, dict):
        return {walk(field, on_text): walk(inner, on_text) for field, inner in value.items()}
    return [walk(inner, on_text) for inner in value] if isinstance(value, list) else value


class UnsupportedJson(ValueError):
    """JSON that Ansible could not pass on; the message says why, as the end of a sentence."""


def decode(content: bytes | str) -> Any:
    """The decoded JSON. Raises UnsupportedJson for JSON that Ansible could not pass on, and ValueError for anything else.

    Supported are finite numbers, integers of 64 bits and texts of valid Unicode. JSON of too many levels is a RecursionError.
    The names of fields contain no templates: ansible-core up to 2.18 does not keep track of who has written a name.
    """
    text = content.decode().removeprefix("\ufeff") if isinstance(content, bytes) else content
    value = json.loads(
        text, parse_int=_integer, parse_float=_finite, parse_constant=_finite, object_hook=_require_harmless_names
    )
    try:
        # Only escapes can be half a character.
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        # Not quoted, as it may be a secret.
        raise UnsupportedJson("a text in it is not valid Unicode") from None
    return value


def _integer(digits: str) -> int:
    # The time to convert digits grows with the square of their number.
    if len(digits) > 20 or not -MAX_INTEGER <= int(digits) < MAX_INTEGER:
        raise UnsupportedJson(f"the number {displayable(digits, 30)} is too large")
    return int(digits)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise UnsupportedJson(f"{displayable(text, 30)} is not a number that JSON can express")
    return number


def _require_harmless_names(fields: dict[str, Any]) -> dict[str, Any]:
    for field in fields:
        # ansible-core takes objects with such fields for values of its own types, even for trusted templates.
        if field.startswith("__ansible_") or "{{" in field or "{%" in field or "{#" in field:
            raise UnsupportedJson(f"'{displayable(field, 100)}' cannot be the name of a field")
    return fields
