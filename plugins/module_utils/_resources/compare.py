# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares the fields that a task asks for with those of a resource. Keeps P2 and P3."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from ansible.module_utils.common.dict_transformations import recursive_diff

from .._timestamps import parse_timestamp

# As in JSON. Python also takes 1_000, 017 and nan for numbers.
_NUMBER = re.compile(r"-?(0|[1-9]\d{0,99})(\.\d{1,99})?([eE][+-]?\d{1,3})?", re.ASCII)


def contains(actual: Any, wanted: Any) -> bool:
    """Whether all that is wanted is there: nested, lists in order and in full; other fields do not matter.

    A field that is missing is null. Numbers are compared by value, and timestamps as times. Templates turn numbers and
    booleans into text, so the text C("17") is wanted where 17 is, and C("True") where true is. Text that is there is text: an
    integer is wanted by its digits, but 1.1 may have been written as 1.10.
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
        return actual == wanted or _is_same_time(actual, wanted)
    if isinstance(actual, str) and isinstance(wanted, (int, float)) and not isinstance(wanted, bool):
        return isinstance(wanted, int) and actual == str(wanted)
    return bool(_comparable(actual) == _comparable(wanted))


def _is_same_time(actual: str, wanted: str) -> bool:
    try:
        # A date without a time of day may be a name.
        return ":" in actual and ":" in wanted and parse_timestamp(actual) == parse_timestamp(wanted)
    except ValueError:
        return False


def _comparable(value: Any) -> Any:
    if isinstance(value, bool) or value in ("True", "False"):
        return str(value).lower()
    return json.loads(value) if isinstance(value, str) and _NUMBER.fullmatch(value) else value


def fields_of(body: Mapping[str, Any] | None, found: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that a request would set, by their names in the resource.

    The service's bodies wrap them: C({"branch": {"name": "preview"}}) sets the C(name) of a branch.
    """
    fields: dict[str, Any] = {}
    for name, value in (body or {}).items():
        if isinstance(value, Mapping) and not isinstance(found.get(name), Mapping):
            fields.update(value)
        else:
            fields[name] = value
    return fields


def differing(found: Mapping[str, Any], body: Mapping[str, Any] | None) -> list[str]:
    """The names of the fields in C(body) whose values are not those of the resource."""
    # Two wrappers of a body may have a field of the same name.
    wrapped = (fields_of({name: value}, found) for name, value in (body or {}).items())
    return [name for fields in wrapped for name, value in fields.items() if not contains(found.get(name), value)]


def changed_fields(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The diff of a task: C(before) and C(after) with only the fields that changed, at any depth."""
    old, new = recursive_diff(before, after) or ({}, {})
    return {"before": old, "after": new}


def selects(value: Any) -> bool:
    """Whether a value is one that selects something: it has no null, blank text, empty mapping or empty list, at any depth."""
    if isinstance(value, (Mapping, list)):
        return bool(value) and all(map(selects, value.values() if isinstance(value, Mapping) else value))
    return has_values(value)


def has_values(value: Any) -> bool:
    """Whether no value in it is null or blank, at any depth."""
    if isinstance(value, Mapping):
        return all(map(has_values, value.values()))
    if isinstance(value, list):
        return all(map(has_values, value))
    return value is not None and not (isinstance(value, str) and not value.strip())
