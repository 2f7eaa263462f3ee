# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares the fields that a task asks for with those of an object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def contains(actual: Any, wanted: Any) -> bool:
    """Whether all that is wanted is there: nested, lists in full; other fields do not matter.

    A field that is missing is null.     Templates turn numbers and booleans into text, so C("17") equals 17 and C("True") equals true.
    """
    if isinstance(wanted, Mapping):
        return isinstance(actual, Mapping) and all(
            contains(actual.get(field), value) for field, value in wanted.items()
        )
    if isinstance(wanted, list):
        return isinstance(actual, list) and len(actual) == len(wanted) and all(map(contains, actual, wanted))
    if actual is None or wanted is None or isinstance(actual, (Mapping, list)):
        return actual is wanted
    if isinstance(actual, str) and isinstance(wanted, str):
        return actual == wanted
    return _text(actual) == _text(wanted)


def _text(value: Any) -> str:
    if isinstance(value, bool) or value in ("True", "False"):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) and value.is_integer() else str(value)


def fields_of(body: Mapping[str, Any] | None, found: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that a request would set, by their names in the object.

    The service's bodies wrap them: C({"branch": {"name": "preview"}}) sets the C(name) of a branch.
    """
    fields: dict[str, Any] = {}
    for name, value in (body or {}).items():
        if isinstance(value, Mapping) and not isinstance(found.get(name), Mapping):
            fields.update(value)
        else:
            fields[name] = value
    return fields


def has_values(match: Mapping[str, Any]) -> bool:
    """Whether each field has a value to compare."""
    return not any(value is None or (isinstance(value, str) and not value.strip()) for value in match.values())
