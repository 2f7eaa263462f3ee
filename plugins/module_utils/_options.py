# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of single option values; each raises InvalidOption, which says what is valid. The option C(fields). Keeps P3, P9 and P11."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from datetime import date
from typing import Any

from ._errors import InvalidOption
from ._untrusted import displayable, is_id

# A year, which sockets and sleeps accept on every platform.
MAX_SECONDS = 31_536_000
# In check mode, the ids of what only an earlier task would create, see ControlModule._load_params(). No real id equals them.
NOT_CREATED_ID = "(not created)"
NOT_CREATED_KEY_ID = 0
# No path can have the first two as a segment. Templates make the others of what has no value.
_NO_NAMES = frozenset({".", "..", "None", "null", NOT_CREATED_ID})


def integer(params: Mapping[str, Any], option: str, smallest: int, largest: int | None = None) -> Any:
    """The option's integer, which may be None; from C(smallest) to C(largest)."""
    value = params.get(option)
    # Ansible takes a boolean for an integer.
    if value is not None and (isinstance(value, bool) or value < smallest or (largest is not None and value > largest)):
        valid = f"{smallest} or more" if largest is None else f"from {smallest} to {largest}"
        raise InvalidOption(option, f"must be {valid}, not {value}")
    return value


def require_number(option: str, value: object, field: str = "") -> None:
    """Raise InvalidOption for a boolean, which Ansible takes for 0 or 1, and for what is not finite. Other values are Ansible's to check."""
    if isinstance(value, bool):
        raise InvalidOption(option, f"{field} must be a number, not the boolean {str(value).lower()}.".lstrip())
    try:
        is_finite = math.isfinite(float(value))  # type: ignore[arg-type]
    except (OverflowError, TypeError, ValueError):
        return
    if not is_finite:
        raise InvalidOption(option, f"{field} must be a finite number, not {value}.".lstrip())


def require_name(option: str, text: str, check_mode: bool, field: str = "") -> None:
    """Raise InvalidOption for a text that is no name. In check mode, an earlier task would provide what has no value."""
    if text in _NO_NAMES and (text.startswith(".") or not check_mode):
        reason = (
            "cannot be a name or an id"
            if text.startswith(".")
            else "stands for a missing value. Check the variable in it"
        )
        raise InvalidOption(option, f"{field} '{text}' {reason}".lstrip())


def require_trimmed(params: Mapping[str, Any], *options: str) -> None:
    """Raise InvalidOption for the name of something new with white space at its ends: services remove it, and nobody can see it."""
    for option in options:
        name = params.get(option)
        if isinstance(name, str) and name != name.strip():
            problem = f"{name!r} has white space at its ends. Remove it, for example with the filter trim."
            raise InvalidOption(option, problem)


def not_blank(params: Mapping[str, Any], option: str) -> Any:
    """The option's text or list of texts, which may be None; none of them empty or blank."""
    value = params.get(option)
    for text in value if isinstance(value, list) else [value]:
        if isinstance(text, str) and not text.strip():
            raise InvalidOption(option, "must not be empty. Set a value, or omit the option.")
    return value


def as_text(option: str, value: object, field: str = "") -> str:
    """The text, or the digits of an integer. Raises InvalidOption for any other value of the option, or of its C(field).

    YAML has read C(1.10), C(no) and C(2026-01-02) as something else, so what was written is not known.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str):
        return value
    kinds = {bool: "boolean", float: "number", date: "date"}
    found = [f"the {kind} {str(value).lower()}" for type_, kind in kinds.items() if isinstance(value, type_)]
    problem = f"must be text, not {found[0]}. Quote it." if found else "must be text."
    raise InvalidOption(option, f"{field} {problem}".lstrip())


def identifier(params: Mapping[str, Any], option: str) -> Any:
    """The option's id or list of ids, which may be None; in check mode, an id may be NOT_CREATED_ID."""
    value = not_blank(params, option)
    for text in value if isinstance(value, list) else [value]:
        if text not in (None, NOT_CREATED_ID) and not is_id(text):
            by_name = option.removesuffix("_id")
            advice = f" For a name, set {by_name}." if by_name != option and by_name in params else ""
            problem = f"'{text}' is not an id. Ids consist of letters, digits, '-', '_' and '.'."
            raise InvalidOption(option, f"{problem}{advice}")
    return value


def query_parameters(option: str, query: Mapping[Any, Any] | None, allow_missing: bool = False) -> dict[str, Any]:
    """The query parameters; empty when there are none. Raises InvalidOption for values other than strings, numbers and lists of them.

    With C(allow_missing), for check mode, a value may be None, because an earlier task would provide it.
    """
    parameters: dict[str, Any] = {}
    for name, value in (query or {}).items():
        values = value if isinstance(value, list) else [value]
        if value is None and allow_missing:
            parameters[str(name)] = None
        elif all(isinstance(each, (str, int, float)) for each in values):
            parameters[str(name)] = [str(each).lower() if isinstance(each, bool) else each for each in values]
        else:
            raise InvalidOption(option, f"the value of {name} must be a string, a number, or a list of them")
    return parameters


class Fields:
    """Reduces items to the fields of these names; to all fields if C(names) is None.

    C(optional) are fields that exist although items may lack them. Several threads may use an instance at once.
    """

    def __init__(self, names: Collection[str] | None = None, optional: Collection[str] = ()):
        self._names = names
        self._optional = optional
        self._seen: set[str] = set()

    def reduce(self, items: Iterable[dict[str, Any]], *further: str) -> list[dict[str, Any]]:
        """The items with the fields of these names, and with C(further) fields that are needed for a while."""
        if self._names is None:
            return list(items)
        kept = {*self._names, *further}
        reduced = []
        for item in items:
            self._seen.update(item)
            reduced.append({field: value for field, value in item.items() if field in kept})
        return reduced

    def warnings(self) -> list[str]:
        """A warning that names the fields that no item had; none if there were no items."""
        missing = [name for name in self._names or () if name not in self._seen and name not in self._optional]
        if not missing or not self._seen:
            return []
        there = ", ".join(displayable(field, 100) for field in sorted(self._seen))
        quoted = " or ".join(f"'{displayable(name, 100)}'" for name in missing)
        return [f"fields: no item has {quoted}. The fields are {there}."]


def checked_fields(params: Mapping[str, Any], optional: Collection[str] = ()) -> Fields:
    """The option C(fields). Raises InvalidOption for an empty list, which would leave nothing of an item, and for blank names."""
    names = not_blank(params, "fields")
    if names is not None and not names:
        raise InvalidOption("fields", "must not be empty. Omit the option to return all fields.")
    return Fields(names, optional)
