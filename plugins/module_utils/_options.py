# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of single option values; each raises InvalidOption, which says what is valid."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ._errors import InvalidOption
from ._untrusted import displayable, is_id

if TYPE_CHECKING:
    from datetime import datetime, timedelta

# A year, which sockets and sleeps accept on every platform.
MAX_SECONDS = 31_536_000
# For ages that are only subtracted from the current time: a longer one would lead to a time before the first.
MAX_AGE = 100 * MAX_SECONDS
AGE_EXAMPLES = "90s, 5m, 24h, 7d or 2w"
# As a bare number, these are more likely a date such as 20261121, or seconds since 1970, than an age.
MAX_BARE_AGE = 9_999_999
MAX_SIMILAR = 5
# Comparing more candidates could take longer than the deadline allows.
MAX_COMPARED = 2000
# In check mode, the ids of what only an earlier task would create, see ControlModule._load_params(). No real id equals them.
NOT_CREATED_ID = "(not created)"
NOT_CREATED_KEY_ID = 0
# Python and Ansible take more for numbers: booleans, digits of other scripts, and underscores between digits.
NUMBERS = {
    "int": r"\s*[+-]?[0-9]{1,1000}\s*",
    "float": r"\s*[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|nan|inf)\s*",
}


def plain_number(option: str, value: object, type_name: str, part: str = "") -> None:
    """Raise InvalidOption unless the value is a number or its text; C(type_name) is C(int) or C(float).

    C(part) is the name of a suboption.
    """
    if isinstance(value, str):
        is_plain = re.fullmatch(NUMBERS[type_name], value, re.ASCII | re.IGNORECASE) is not None
    else:
        is_plain = isinstance(value, (int, float) if type_name == "float" else int) and not isinstance(value, bool)
    if not is_plain:
        wanted = "an integer of the digits 0 to 9, such as 12" if type_name == "int" else "a number such as 12 or 2.5"
        given = "a boolean" if isinstance(value, bool) else f"'{displayable(str(value), 100)}'"
        raise InvalidOption(option, f"{part and part + ' '}must be {wanted}, not {given}")


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


def integer_of(option: str, value: object, smallest: int) -> int:
    """The integer that is given as a number or as its text, as Ansible passes it to a filter. Raises InvalidOption."""
    # A division in a template is a float.
    given = int(value) if isinstance(value, float) and value.is_integer() else value
    plain_number(option, given, "int")
    number = int(str(given))
    integer({option: number}, option, smallest)
    return number


def _lower_bound(zero: bool) -> str:
    return "from 0" if zero else "greater than 0 and up"


def seconds(params: Mapping[str, Any], option: str, zero: bool = True) -> Any:
    """The option's number of seconds; finite, not negative and at most a year, and 0 only where C(zero) is set."""
    value = params[option]
    if not (math.isfinite(value) and 0 <= value <= MAX_SECONDS) or (value == 0 and not zero):
        raise InvalidOption(option, f"must be a number of seconds {_lower_bound(zero)} to {MAX_SECONDS}, not {value}")
    return value


def duration(params: Mapping[str, Any], option: str, zero: bool = True, largest: int = MAX_SECONDS) -> float:
    """The option's seconds, given as a number, as its text, or with a unit such as C(5m); 0 only where C(zero) is set."""
    from ._timestamps import parse_age  # hardly any task needs it

    age = parse_age(params[option])
    value = -1.0 if age is None else age.total_seconds()
    if not 0 <= value <= largest or (value == 0 and not zero):
        raise InvalidOption(
            option,
            f"must be a number of seconds {_lower_bound(zero)} to {largest}, or a duration such as {AGE_EXAMPLES}, not '{params[option]}'",
        )
    return value


def not_blank(params: Mapping[str, Any], option: str) -> Any:
    """The option's text or list of texts, which may be None; none of them empty or blank."""
    value = params.get(option)
    for text in value if isinstance(value, list) else [value]:
        if text is not None and not text.strip():
            raise InvalidOption(option, "must not be empty. Set a value, or omit the option.")
    return value


def identifier(params: Mapping[str, Any], option: str) -> Any:
    """The option's id or list of ids, which may be None; in check mode, an id may be NOT_CREATED_ID."""
    value = not_blank(params, option)
    for text in value if isinstance(value, list) else [value]:
        if text not in (None, NOT_CREATED_ID) and not is_id(text):
            raise InvalidOption(option, f"'{text}' is not an id. Ids consist of letters, digits, '-', '_' and '.'.")
    return value


def string_names(option: str, value: Mapping[Any, Any]) -> None:
    """Raise InvalidOption for a dictionary with a name that is no string, as C(1) and C(true) are in YAML."""
    for name in value:
        if not isinstance(name, str):
            raise InvalidOption(option, f"the name {displayable(name, 100)} must be a string. Put it in quotes.")


def query_parameters(option: str, query: Mapping[str, Any] | None, allow_missing: bool = False) -> dict[str, Any]:
    """The query parameters; empty when there are none.

    Raises InvalidOption for names other than strings, and for values other than strings, numbers and lists of them.

    With C(allow_missing), for check mode, a value may be None, because an earlier task would provide it.
    """

    def items(value: Any) -> list[Any]:
        return value if isinstance(value, list) else [value]

    string_names(option, query or {})
    for name, value in (query or {}).items():
        if not (allow_missing and value is None) and not all(
            isinstance(item, (str, int, float)) for item in items(value)
        ):
            raise InvalidOption(option, f"the value of {name} must be a string, a number, or a list of them")
    return {
        name: None
        if value is None
        else [str(item).lower() if isinstance(item, bool) else item for item in items(value)]
        for name, value in (query or {}).items()
    }


def moment(params: Mapping[str, Any], option: str) -> datetime | timedelta | None:
    """The option's ISO 8601 timestamp or age (text or a number of seconds), which may be None."""
    if params.get(option) is None:
        return None
    text = str(params[option])
    from ._timestamps import parse_age, parse_timestamp  # hardly any task needs it

    try:
        return parse_timestamp(text)
    except ValueError:
        age = parse_age(text)
    is_bare = text.strip()[-1:] not in ("s", "m", "h", "d", "w")
    if age is None or age.total_seconds() < 0 or (is_bare and age.total_seconds() > MAX_BARE_AGE):
        raise InvalidOption(
            option,
            f"must be an ISO 8601 timestamp such as 2026-11-21T08:00:00Z, an age such as {AGE_EXAMPLES}, "
            f"or an age in seconds up to {MAX_BARE_AGE}, not '{text}'",
        )
    return age


def unknown_values(params: Mapping[str, Any], option: str, known: Collection[str]) -> list[str]:
    """Warnings about values of the option, a list that selects items, which this collection does not know."""
    warnings = []
    for value in params.get(option) or ():
        if value not in known:
            near = [each for each in sorted(known) if _is_misspelt(value.lower(), each.lower())]
            hint = f" Did you mean {' or '.join(near)}?" if near else ""
            warnings.append(
                f"{option}: '{displayable(value, 100)}' is unknown to this collection, and may never occur.{hint} "
                f"Known values are {', '.join(sorted(known))}."
            )
    return warnings


def _is_misspelt(text: str, word: str) -> bool:
    """Whether one character is missing, added or replaced, or two are swapped. More similar words can be opposites."""
    while text and text[:1] == word[:1]:
        text, word = text[1:], word[1:]
    while text and text[-1:] == word[-1:]:
        text, word = text[:-1], word[:-1]
    return max(len(text), len(word)) <= 1 or (len(text) == 2 and text == word[::-1])


def similar(text: str, candidates: Iterable[str]) -> list[str]:
    """The candidates similar to this text, whatever their case, the most similar first; none of too many to compare."""
    from difflib import get_close_matches  # only for misspelt values

    by_lower_case: dict[str, list[str]] = {}
    for candidate in sorted(candidates):
        by_lower_case.setdefault(candidate.lower(), []).append(candidate)
    if len(by_lower_case) > MAX_COMPARED:
        return []
    near = get_close_matches(text.lower(), by_lower_case, MAX_SIMILAR)
    return [candidate for found in near for candidate in by_lower_case[found]][:MAX_SIMILAR]
