# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of single option values; each raises InvalidOption, which says what is valid."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ._errors import InvalidOption
from ._untrusted import is_id

if TYPE_CHECKING:
    from datetime import datetime, timedelta

# A year, which sockets and sleeps accept on every platform.
MAX_SECONDS = 31_536_000


def integer(params: Mapping[str, Any], option: str, smallest: int, largest: int | None = None) -> Any:
    """The option's integer, which may be None; from C(smallest) to C(largest)."""
    value = params.get(option)
    if value is not None and (value < smallest or (largest is not None and value > largest)):
        raise InvalidOption(
            option,
            f"must be {smallest} or more, not {value}"
            if largest is None
            else f"must be from {smallest} to {largest}, not {value}",
        )
    return value


def seconds(params: Mapping[str, Any], option: str, zero: bool = True) -> Any:
    """The option's number of seconds; finite, not negative and at most a year, and 0 only where C(zero) is set."""
    value = params[option]
    if not (math.isfinite(value) and 0 <= value <= MAX_SECONDS) or (value == 0 and not zero):
        raise InvalidOption(
            option, f"must be a number of seconds {'from' if zero else 'above'} 0 to {MAX_SECONDS}, not {value}"
        )
    return value


def not_blank(params: Mapping[str, Any], option: str) -> Any:
    """The option's text or list of texts, which may be None; none of them empty or blank."""
    value = params.get(option)
    for text in value if isinstance(value, list) else [value]:
        if text is not None and not text.strip():
            raise InvalidOption(option, "must not be empty; omit the option instead")
    return value


def identifier(params: Mapping[str, Any], option: str) -> Any:
    """The option's id or list of ids, which may be None."""
    value = not_blank(params, option)
    for text in value if isinstance(value, list) else [value]:
        if text is not None and not is_id(text):
            raise InvalidOption(option, f"'{text}' is not an id. Ids consist of letters, digits, '-', '_' and '.'.")
    return value


def query_parameters(option: str, query: Mapping[str, Any] | None) -> dict[str, Any]:
    """The query parameters; empty when there are none. Raises InvalidOption for other values than strings, numbers and lists of them."""

    def items(value: Any) -> list[Any]:
        return value if isinstance(value, list) else [value]

    for name, value in (query or {}).items():
        if not all(isinstance(item, (str, int, float)) for item in items(value)):
            raise InvalidOption(option, f"the value of {name} must be a string, a number, or a list of them")
    return {
        name: [str(item).lower() if isinstance(item, bool) else item for item in items(value)]
        for name, value in (query or {}).items()
    }


def moment(params: Mapping[str, Any], option: str) -> datetime | timedelta | None:
    """The option's ISO 8601 timestamp or age, which may be None."""
    text = params.get(option)
    if text is None:
        return None
    from ._timestamps import parse_age, parse_timestamp  # hardly any task needs it

    try:
        age = parse_age(text)
        return parse_timestamp(text) if age is None else age
    except ValueError:
        problem = f"must be an ISO 8601 timestamp such as 2026-11-21T08:00:00Z, or an age such as 90s, 30m, 24h, 7d or 2w, not '{text}'"
        raise InvalidOption(option, problem) from None
