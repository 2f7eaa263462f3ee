# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options that all modules that wait for operations share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._options import duration
from .wait import Limits, StopWhen

# The one place of types and defaults; the argument specs are made of it. The last two are set by the action plugin.
WAIT_OPTIONS: dict[str, dict[str, Any]] = {
    "timeout": {"type": "raw", "default": 300},
    "interval": {"type": "raw", "default": 5},
    "failed_grace": {"type": "raw", "default": 0},
    "progress": {"type": "bool"},
    "_state": {"type": "dict"},
    "_stop_when": {"type": "dict"},
}


def limits_from(params: Mapping[str, Any], workers: int) -> Limits:
    """The limits of a wait that polls this number of projects in parallel. Raises InvalidOption."""
    return Limits(duration(params, "interval", zero=False), duration(params, "failed_grace"), workers)


def stop_when_from(params: Mapping[str, Any]) -> StopWhen | None:
    """When to return before the wait is over; None: never."""
    stop_when = params.get("_stop_when")
    return StopWhen(**stop_when) if stop_when else None
