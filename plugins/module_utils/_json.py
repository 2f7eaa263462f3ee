# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decodes untrusted JSON. Keeps P8."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from ._untrusted import displayable

MAX_INTEGER = 2**63
# ansible-core takes objects with such fields for values of its own types, even for trusted templates.
_RESERVED_FIELD = re.compile(r"__ansible_|.*(?:\{[{%#])", re.DOTALL)


class UnsupportedJson(ValueError):
    """JSON that Ansible could not pass on; the message says why, as the end of a sentence."""


def decode(content: bytes | str) -> Any:
    """The decoded JSON. Raises UnsupportedJson for JSON that Ansible could not pass on, and ValueError for anything else.

    Supported are finite numbers, integers of 64 bits and texts of valid Unicode. JSON of too many levels is a RecursionError.
    The names of fields contain no templates: ansible-core up to 2.18 does not keep track of who has written a name.
    """
    text = content.decode("utf-8-sig") if isinstance(content, bytes) else content
    value = json.loads(
        text, parse_int=_integer, parse_float=_finite, parse_constant=_finite, object_hook=_without_reserved
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


def _without_reserved(fields: dict[str, Any]) -> dict[str, Any]:
    for field in fields:
        if _RESERVED_FIELD.match(field):
            raise UnsupportedJson(f"'{displayable(field, 100)}' cannot be the name of a field")
    return fields
