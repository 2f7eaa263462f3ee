# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the project's checks on fresh copies of the collection: ``check.py PHASE... [-- ARGUMENT...]``.

As many run side by side as there are cores, each integration target for itself. Then the output of each is shown as a
whole when it has ended.
"""

from __future__ import annotations

import io
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from phases import Tally, perform
from stage import CHECKOUT, leave_when_interrupted

TARGETS = CHECKOUT / "tests" / "integration" / "targets"


def size(folder: Path) -> int:
    """How much there is to read in a folder: a fair guess at how long it takes to run it."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def split(phases: list[str], arguments: list[str]) -> Iterator[tuple[str, list[str]]]:
    """The work in parts that can run side by side; the longest come first, so that none is left over in the end."""
    targets = [folder for folder in TARGETS.iterdir() if not folder.name.startswith("setup_")]
    for phase in phases:
        if phase == "integration" and not arguments:
            yield from (("integration", [target.name]) for target in sorted(targets, key=size, reverse=True))
        else:
            yield phase, arguments


def show(name: str, tally: Tally) -> None:
    """Sum up one part."""
    print(f"=== {name}: {tally.passed} passed, {len(tally.failed)} failed in {tally.seconds:.0f} s", end="")
    print(f" (no files for {', '.join(tally.without_subject)})" if tally.without_subject else "")
    for failure in tally.failed:
        print(f"    {failure}")


def main() -> int:
    """Run the phases named on the command line and sum up."""
    phases, arguments = sys.argv[1:], []
    if "--" in phases:
        phases, arguments = phases[: phases.index("--")], phases[phases.index("--") + 1 :]
    parts = {
        " ".join([phase, *part]) if part != arguments else phase: (phase, part)
        for phase, part in split(phases, arguments)
    }

    leave_when_interrupted()
    started = time.monotonic()
    tallies = {}
    pool = ThreadPoolExecutor(max_workers=os.cpu_count())
    try:
        running = {
            pool.submit(perform, *part, output=io.StringIO() if len(parts) > 1 else sys.stdout): name
            for name, part in parts.items()
        }
        for ended in as_completed(running):
            name, tally = running[ended], ended.result()
            if isinstance(tally.output, io.StringIO):
                print(f"\n=== {name}", tally.output.getvalue(), sep="\n", flush=True)
            tallies[name] = tally
    finally:
        pool.shutdown(cancel_futures=True)

    print()
    for name in parts:
        show(name, tallies[name])
    passed, failed = (sum(count) for count in zip(*((tally.passed, len(tally.failed)) for tally in tallies.values())))
    print(f"In {time.monotonic() - started:.0f} s:")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
