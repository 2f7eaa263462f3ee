# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decodes untrusted JSON."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from ._untrusted import displayable

# Ansible copies, converts and prints results recursively.
MAX_DEPTH = 50
MAX_INTEGER = 2**63
# ansible-core takes objects with such fields for values of its own types, even for trusted templates.
_RESERVED_FIELD = re.compile(r"__ansible_|.*(?:\{[{%#])", re.DOTALL)


class UnsupportedJson(ValueError):
    """JSON that Ansible could not pass on; the message says why, as the end of a sentence."""


def decode(content: bytes | str) -> Any:
    """The decoded JSON. Raises UnsupportedJson for JSON that Ansible could not pass on, and ValueError for anything else.

    Supported are finite numbers, integers of 64 bits, texts of valid Unicode, and MAX_DEPTH levels of arrays and objects.
    The names of fields contain no templates: ansible-core up to 2.18 does not keep track of who has written a name.
    """
    text = content.decode("utf-8-sig") if isinstance(content, bytes) else content
    try:
        value = json.loads(text, parse_int=_integer, parse_float=_finite, parse_constant=_finite)
    except RecursionError:
        raise _too_deep() from None
    level = [value]
    for _depth in range(MAX_DEPTH):
        inner: list[Any] = []
        for item in level:
            if isinstance(item, str):
                if not _is_unicode(item):
                    # Not quoted, as it may be a secret.
                    raise UnsupportedJson("a text in it is not valid Unicode")
            elif isinstance(item, dict):
                inner += item.values()
                for field in item:
                    _check_field(field)
            elif isinstance(item, list):
                inner += item
        if not inner:
            return value
        level = inner
    raise _too_deep()


def _too_deep() -> UnsupportedJson:
    return UnsupportedJson(f"it has more than {MAX_DEPTH} levels of arrays and objects")


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


def _is_unicode(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _check_field(field: str) -> None:
    if not _is_unicode(field):
        raise UnsupportedJson(f"the name of a field, '{displayable(field, 100)}', is not valid Unicode")
    if _RESERVED_FIELD.match(field):
        raise UnsupportedJson(f"'{displayable(field, 100)}' cannot be the name of a field")
