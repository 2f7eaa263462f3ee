# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Resource usage of processes, as the operating system reports it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import NamedTuple


class Usage(NamedTuple):
    """Elapsed time and processor time in seconds, and the peak memory of the largest process in MiB.

    Includes child processes that the command waited for.
    """

    wall: float
    cpu: float
    peak_mib: float


def usage_of(*command: str, env: Mapping[str, str] | None = None) -> Usage:
    """Run a command, discard its output, and return its usage. Raises subprocess.CalledProcessError if it fails."""
    program = str(Path(__file__).with_name("measured.py"))
    finished = subprocess.run(
        [sys.executable, "-I", "-S", program, *command], env=env, stdout=subprocess.PIPE, text=True, check=True
    )
    return Usage(**json.loads(finished.stdout))


def medians(usages: list[Usage]) -> Usage:
    """The median of each quantity."""
    return Usage(*(median(values) for values in zip(*usages)))


def minima(usages: list[Usage]) -> Usage:
    """The minimum of each quantity."""
    return Usage(*map(min, zip(*usages)))


def interleaved(runs: int, **measures: Callable[[], Usage]) -> dict[str, list[Usage]]:
    """Call all functions in turn, C(runs) times, so that load on the machine affects all of them alike."""
    usages: dict[str, list[Usage]] = {name: [] for name in measures}
    for _run in range(runs):
        for name, measure in measures.items():
            usages[name].append(measure())
    return usages
