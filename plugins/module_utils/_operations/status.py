# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The known statuses and actions of operations (api.md, Operation); a status that is not known is treated as unfinished. Keeps P3."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from .._untrusted import displayable

SUCCEEDED = frozenset({"finished", "skipped"})
FAILED = frozenset({"failed", "error", "cancelled"})
# No operation in one of these changes any more, except that the platform may retry one that is C(failed).
ENDED = SUCCEEDED | FAILED
STATUSES = ENDED | {"scheduling", "running", "cancelling"}
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


def unknown_values(params: Mapping[str, Any], option: str, known: Collection[str]) -> list[str]:
    """Warnings about values of the option, a list that selects items, which this collection does not know."""
    return [
        f"{option}: '{displayable(value, 100)}' is unknown to this collection, and may never occur. "
        f"Known values are {', '.join(sorted(known))}."
        for value in params.get(option) or ()
        if value not in known
    ]
