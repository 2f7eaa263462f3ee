# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long a program's imports take, by who asked for them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

RUNS = 5
LINE = re.compile(r"import time: +(?P<own>\d+) \| +\d+ \|(?P<indent> +)(?P<module>\S+)$")
OWNERS = {
    "this collection": ("ansible_collections.clouddb",),
    "requests": ("requests", "urllib3", "charset_normalizer", "chardet", "idna", "certifi"),
    "ansible": ("ansible",),
}
PYTHON = "python"


def import_times(program: Path) -> dict[str, float]:
    """Seconds by owner, in the quickest of some runs; what an owner's modules import, and nobody before them did, is counted as the owner's."""
    return min((_one_run(program) for _run in range(RUNS)), key=lambda seconds: sum(seconds.values()))


def _one_run(program: Path) -> dict[str, float]:
    command = [sys.executable, "-X", "importtime", str(program)]
    report = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True).stderr
    return by_owner(report)


def by_owner(report: str) -> dict[str, float]:
    """Seconds by owner, from what ``python -X importtime`` has written."""
    seconds = dict.fromkeys((*OWNERS, PYTHON), 0.0)
    asking: list[tuple[int, str]] = []
    # A module is reported after those that it imports, which are indented further.
    for found in filter(None, map(LINE.match, reversed(report.splitlines()))):
        depth = len(found["indent"])
        while asking and asking[-1][0] >= depth:
            asking.pop()
        owner = _owner(found["module"]) or (asking[-1][1] if asking else PYTHON)
        asking.append((depth, owner))
        seconds[owner] += int(found["own"]) / 1e6
    return seconds


def _owner(module: str) -> str | None:
    return next(
        (
            owner
            for owner, names in OWNERS.items()
            if any(module == name or module.startswith(f"{name}.") for name in names)
        ),
        None,
    )
