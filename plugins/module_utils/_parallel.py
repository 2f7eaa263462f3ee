# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls a function for several arguments in parallel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Callable, TypeVar

Argument = TypeVar("Argument")
Result = TypeVar("Result")


def in_parallel(function: Callable[[Argument], Result], arguments: Sequence[Argument], workers: int) -> list[Result]:
    """The results in the order of the arguments, computed by at most C(workers) threads.

    The first exception is raised after the running calls have ended; calls that have not begun are dropped.
    """
    if workers == 1 or len(arguments) < 2:
        return [function(argument) for argument in arguments]
    # Imported only when needed, as most tasks send one request at a time.
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(min(workers, len(arguments))) as executor:
        return list(executor.map(function, arguments))
