# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The known statuses and actions of operations (api.md, Operation); a status that is not known is treated as unfinished. Keeps P3 and P11."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from .._errors import InvalidOption
from .._lists import similar
from .._options import not_blank
from .._untrusted import displayable

# The least similarity of a misspelled value. A real delete_timeline is less similar to create_timeline.
MISSPELLED = 0.85

SUCCEEDED = frozenset({"finished", "skipped"})
FAILED = frozenset({"failed", "error", "cancelled"})
# No operation in one of these changes any more, except that the platform may retry one that is C(failed).
ENDED = SUCCEEDED | FAILED
STATUSES = ENDED | {"scheduling", "running", "cancelling"}
# As a status to select, it stands for all of FAILED.
UNSUCCESSFUL = "unsuccessful"
ACTIONS = frozenset(
    {
        "apply_config",
        "apply_storage_config",
        "check_availability",
        "create_branch",
        "create_timeline",
        "delete_tenant",
        "start_compute",
        "suspend_compute",
    }
)


def selected_statuses(params: Mapping[str, Any], option: str) -> tuple[tuple[str, ...], list[str]]:
    """The statuses that the option selects, and warnings, as of selected_actions()."""
    selected, warnings = _selected(params, option, STATUSES | {UNSUCCESSFUL})
    return tuple(each for value in selected for each in (FAILED if value == UNSUCCESSFUL else [value])), warnings


def selected_actions(params: Mapping[str, Any], option: str) -> tuple[tuple[str, ...], list[str]]:
    """The actions that the option selects, all if there are none, and warnings about those that this collection does not know.

    Raises InvalidOption for an empty list, which may be so by mistake, and for a misspelled value, which would select nothing.
    """
    return _selected(params, option, ACTIONS)


def _selected(params: Mapping[str, Any], option: str, known: Collection[str]) -> tuple[tuple[str, ...], list[str]]:
    values = not_blank(params, option)
    if values == []:
        raise InvalidOption(option, "must not be empty. Omit the option to select all operations.")
    warnings = []
    for value in values or ():
        if value in known:
            continue
        shown = displayable(value, 100)
        if near := similar(value, known, MISSPELLED):
            raise InvalidOption(option, f"there is no '{shown}'. Did you mean {near[0]}?")
        warnings.append(
            f"{option}: '{shown}' is unknown to this collection, and may never occur. "
            f"Known values are {', '.join(sorted(known))}."
        )
    return tuple(values or ()), warnings
