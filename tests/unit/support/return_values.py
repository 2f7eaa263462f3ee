# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares the result of a module with the return values that it documents, on all levels."""

from __future__ import annotations

import functools
import re
from types import ModuleType
from typing import Any

import yaml

# What a task of any module can return.
COMMON = {"changed", "invocation", "failed", "msg", "warnings", "exception", "deprecations", "diff"}
# The fields of C(failure) that the page Troubleshooting describes for all modules.
OF_FAILURES = {"kind", "option", "method", "path", "attempts", "request_id", "status", "message", "code"}
# Descriptions of values whose fields the service chooses.
AS_SENT = re.compile(r"all fields that\s+the service sent|as sent by the service")
# Dictionaries whose keys are values, such as statuses and ids, or fields of any object of the service, or that only another module reads.
NOT_COMPARED = {"by_status", "by_action", "confirmation", "plan", "variables", "object", "body", "query"}


@functools.cache
def return_values(module: ModuleType) -> dict[str, Any]:
    """The return values that the module documents, by name."""
    # The one of libyaml, if there is one, is ten times faster.
    documented: dict[str, Any] = yaml.load(module.RETURN, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return documented


def missing_fields(module: ModuleType, result: dict[str, Any], when: str) -> list[str]:
    """The fields that the module documents as returned in this case, and that the result lacks, such as C(api_key.name)."""
    return _missing(result, return_values(module), when)


def _missing(value: dict[str, Any], documented: dict[str, Any], when: str) -> list[str]:
    paths = []
    for name, described in documented.items():
        if name not in value:
            paths += [name] * (when in described.get("returned", when))
        else:
            items = value[name] if isinstance(value[name], list) else [value[name]]
            nested = [_missing(item, described.get("contains", {}), when) for item in items if isinstance(item, dict)]
            paths += [f"{name}.{path}" for each in nested for path in each]
    return sorted(set(paths))


def undocumented_fields(module: ModuleType, result: dict[str, Any]) -> list[str]:
    """The fields of the result that the module does not document, such as C(api_keys.note)."""
    own = {name: value for name, value in result.items() if name not in COMMON}
    if own.get("failure"):
        own["failure"] = {name: value for name, value in own["failure"].items() if name not in OF_FAILURES}
    return _undocumented(own, return_values(module))


def _undocumented(value: Any, documented: dict[str, Any]) -> list[str]:
    paths = []
    for name, field in value.items():
        if name not in documented:
            paths.append(name)
        elif not is_open(name, documented[name]):
            items = field if isinstance(field, list) else [field]
            nested = [_undocumented(item, _fields_of(documented[name])) for item in items if isinstance(item, dict)]
            paths += [f"{name}.{path}" for each in nested for path in each]
    return sorted(set(paths))


def is_open(name: str, described: dict[str, Any]) -> bool:
    """Whether a value can have fields that are not documented."""
    is_as_sent = AS_SENT.search(str(described.get("description"))) is not None
    return name in NOT_COMPARED or is_as_sent or described.get("type") == "raw"


def _fields_of(described: dict[str, Any]) -> dict[str, Any]:
    """The fields of a return value: those in C(contains), or those that its sample has and its description names."""
    if "contains" in described:
        return dict(described["contains"])
    named = re.findall(r"C\((\w+)\)", str(described.get("description")))
    sample = described.get("sample")
    items = sample if isinstance(sample, list) else [sample]
    return {
        **{name: {} for name in named},
        **{name: {"sample": value} for item in items if isinstance(item, dict) for name, value in item.items()},
    }
