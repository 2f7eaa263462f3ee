# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Patterns of names with C(*), C(?) and C([]), as in a shell. Keeps P3 and P11."""

from __future__ import annotations

import re
import unicodedata
from fnmatch import translate
from typing import Callable

from ._errors import InvalidOption

# As in fnmatch: a bracket without its counterpart stands for itself, and one directly after the opening is a member.
_WILDCARD = re.compile(r"[*?]|\[(?:!.|[^!])[^\]]*\]", re.DOTALL)
# Some shells understand these, but fnmatch takes them for lists of characters.
_OTHER_BRACKETS = re.compile(r"\[\^|\[.*\[[:.=]", re.DOTALL)


def is_pattern(text: str) -> bool:
    """Whether the text has a wildcard."""
    return _WILDCARD.search(text) is not None


def require_clear(option: str, pattern: str) -> None:
    """Raise InvalidOption for brackets that readers of the pattern could understand differently."""
    if "[" in _WILDCARD.sub("", pattern) or any(map(_OTHER_BRACKETS.match, _WILDCARD.findall(pattern))):
        raise InvalidOption(
            option,
            f"'{pattern}' has brackets that are not closed or that shells read differently. Write [0-9] for digits, [!a-z] for other "
            "characters than these, and [[] for the character [.",
        )


def normal(name: str) -> str:
    """The name for comparisons: the same characters can be encoded in several ways."""
    return unicodedata.normalize("NFC", name)


def matcher(pattern: str) -> Callable[[str], bool]:
    """The function that tells whether a name matches the pattern, which is case-sensitive."""
    compiled = re.compile(translate(normal(pattern)))
    return lambda name: compiled.match(normal(name)) is not None
