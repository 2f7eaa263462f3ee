# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Untrusted texts: ids are checked, other texts are made displayable and contain no templates."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

# Longer ids would not fit into the name of a file or host.
MAX_ID_LENGTH = 128
MAX_TEXT_LENGTH = 500
# A message may quote several texts.
MAX_MESSAGE_LENGTH = 20_000

_ID = re.compile(rf"(?!\.+\Z)[A-Za-z0-9_.-]{{1,{MAX_ID_LENGTH}}}")
# What Jinja's opening delimiters begin with, and $ANSIBLE_VAULT, which ansible-rulebook takes for a vaulted value.
_DELIMITER_START = re.compile(r"([{$])(?! )")


def is_id(value: Any) -> bool:
    """Whether this can be the id of an object: fit to be a part of a path, a file name or a host name.

    Ids consist of ASCII letters, digits, dashes, underscores and dots, but not only of dots.
    """
    return isinstance(value, str) and _ID.fullmatch(value) is not None


def displayable(text: object, max_length: int = MAX_TEXT_LENGTH) -> str:
    """The text for a terminal or a log: on one line, truncated, and with characters that are not printable as escapes.

    Those are control characters, escape sequences, characters that change the direction of the text, and lone surrogates.
    """
    line = str(text)
    # Each character takes at most ten as an escape, so that the rest need not be escaped.
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
    """A copy of the value with C(on_text) applied to every text in it, also to the names of fields."""
    if isinstance(value, str):
        return on_text(value)
    if isinstance(value, dict):
        return {walk(field, on_text): walk(inner, on_text) for field, inner in value.items()}
    return [walk(inner, on_text) for inner in value] if isinstance(value, list) else value
