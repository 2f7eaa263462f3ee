# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long a program's imports take, by the package that causes them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

RUNS = 5
LINE = re.compile(r"import time: +(?P<own>\d+) \| +\d+ \|(?P<indent> +)(?P<module>\S+)$")
OWNERS = {
    "collection": ("ansible_collections.clouddb", "ansible_collections.hetzner"),
    "requests": ("requests", "urllib3", "charset_normalizer", "chardet", "idna", "certifi"),
    "ansible": ("ansible",),
}
PYTHON = "python"


def import_times(program: Path) -> dict[str, float]:
    """Seconds by owner, in the fastest of several runs.

    A module of no owner counts for the owner whose module imports it first.
    """
    return min((_measure(program) for _run in range(RUNS)), key=lambda seconds: sum(seconds.values()))


def _measure(program: Path) -> dict[str, float]:
    command = [sys.executable, "-X", "importtime", str(program)]
    report = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True).stderr
    return seconds_by_owner(report)


def seconds_by_owner(report: str) -> dict[str, float]:
    """Seconds by owner, from the output of ``python -X importtime``."""
    seconds = dict.fromkeys((*OWNERS, PYTHON), 0.0)
    importers: list[tuple[int, str]] = []
    # A module is listed after the modules that it imports, which are indented further.
    for found in filter(None, map(LINE.match, reversed(report.splitlines()))):
        depth = len(found["indent"])
        while importers and importers[-1][0] >= depth:
            importers.pop()
        owner = _owner(found["module"]) or (importers[-1][1] if importers else PYTHON)
        importers.append((depth, owner))
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
