# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of single option values; each raises InvalidOption and says what would be right."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ansible_collections.clouddb.control.plugins.module_utils.errors import InvalidOption


# A year: what sockets and sleeps take on every platform.
MOST_SECONDS = 31_536_000


def at_least(params: Mapping[str, Any], option: str, smallest: int) -> Any:
    """The option's whole number, which may be None; not below C(smallest)."""
    value = params.get(option)
    if value is not None and value < smallest:
        raise InvalidOption(option, f"must be {smallest} or more, not {value}")
    return value


def seconds(params: Mapping[str, Any], option: str, zero: bool = True) -> Any:
    """The option's number of seconds; finite, not negative and at most a year, and 0 only where C(zero) is set."""
    value = params[option]
    if not (math.isfinite(value) and 0 <= value <= MOST_SECONDS) or (value == 0 and not zero):
        raise InvalidOption(option, f"must be a number of seconds {'from' if zero else 'above'} 0 to {MOST_SECONDS}, not {value}")
    return value


def not_blank(params: Mapping[str, Any], option: str) -> Any:
    """The option's text or list of texts, which may be None; none of them empty or only white space."""
    value = params.get(option)
    for text in value if isinstance(value, list) else [value]:
        if text is not None and not text.strip():
            raise InvalidOption(option, "must not be empty; leave the option out if there is nothing to say")
    return value


def path_segment(params: Mapping[str, Any], option: str) -> Any:
    """The option's id or list of ids, which may be None; fit to be a segment of a path."""
    value = not_blank(params, option)
    for segment in value if isinstance(value, list) else [value]:
        if segment in (".", ".."):
            raise InvalidOption(option, f"'{segment}' is not an id")
    return value
