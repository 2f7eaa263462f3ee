# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs independent requests side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Callable, TypeVar

Argument = TypeVar("Argument")
Result = TypeVar("Result")


def in_parallel(function: Callable[[Argument], Result], arguments: Sequence[Argument], workers: int) -> list[Result]:
    """The results in the order of the arguments, by at most C(workers) threads.

    The first exception is raised once the calls under way have ended; those not begun are dropped.
    """
    if workers == 1 or len(arguments) < 2:
        return [function(argument) for argument in arguments]
    # Imported where it is needed: most tasks send their requests one by one.
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(min(workers, len(arguments))) as executor:
        return list(executor.map(function, arguments))
