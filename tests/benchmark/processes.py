# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a process took, by the operating system's own accounting."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import NamedTuple


class Usage(NamedTuple):
    """Seconds by the clock and of the processors, and the memory of the largest process at its peak in MiB.

    Processes that the command started and waited for are counted in.
    """

    wall: float
    cpu: float
    peak_mib: float


def usage_of(*command: str, env: Mapping[str, str] | None = None) -> Usage:
    """Run a command to its end, its output thrown away."""
    measured = str(Path(__file__).with_name("measured.py"))
    finished = subprocess.run(
        [sys.executable, "-I", "-S", measured, *command], env=env, stdout=subprocess.PIPE, text=True, check=True
    )
    return Usage(**json.loads(finished.stdout))


def medians(usages: list[Usage]) -> Usage:
    """The median of each figure."""
    return Usage(*(median(figures) for figures in zip(*usages)))


def quickest(usages: list[Usage]) -> Usage:
    """The least of each figure."""
    return Usage(*map(min, zip(*usages)))


def in_turn(runs: int, **measures: Callable[[], Usage]) -> dict[str, list[Usage]]:
    """Every measure once, then every measure again, and so on: the machine's moods hit all of them alike."""
    usages: dict[str, list[Usage]] = {name: [] for name in measures}
    for _run in range(runs):
        for name, measure in measures.items():
            usages[name].append(measure())
    return usages
