# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs all or the named measurements: ``run.py --docs FOLDER [MEASUREMENT...]``, in a workspace (see tests/tools/workspace.py).

Writes the results to the folder C(performance) of the documentation, and generates the tables and figures of its pages from them.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[5]))

PACKAGE = "ansible_collections.clouddb.control.tests.benchmark"
MEASUREMENTS = ("task_cost", "scale", "summaries", "rate_limit", "schedules", "waits", "event_delays")
# The page with the tables of each measurement, unless it is performance.rst.
PAGES = {"event_delays": "eda.rst"}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--docs", type=Path, required=True, help="folder of the page performance.rst")
    parser.add_argument(
        "--report", action="store_true", help="generate tables and figures from the stored results, without measuring"
    )
    parser.add_argument(
        "measurements", nargs="*", metavar="MEASUREMENT", help=f"one of {', '.join(MEASUREMENTS)} (default: all)"
    )
    options = parser.parse_args()
    unknown = set(options.measurements) - set(MEASUREMENTS)
    if unknown:
        parser.error(f"unknown measurement: {', '.join(sorted(unknown))}")
    file = options.docs / "performance" / "results.json"
    results: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    if not options.report:
        file.parent.mkdir(exist_ok=True)
        for _name in measure(results, options.measurements or list(MEASUREMENTS)):
            file.write_text(json.dumps(rounded(results), indent=2) + "\n", encoding="utf-8")
    write_report(results, options.docs)


def measure(results: dict[str, Any], names: list[str]) -> Iterator[str]:
    """Run the named measurements and replace their results; yield the name of each when it is done."""
    here = import_module(f"{PACKAGE}.machine").describe()
    others = set(results) - {"machine", *names}
    if others and results.get("machine", here) != here:
        sys.exit(
            "results.json has results of another machine or other versions. Run all measurements, without naming any."
        )
    results["machine"] = here
    for name in names:
        print(f"=== {name}", flush=True)
        load, cores = os.getloadavg()[0], os.cpu_count() or 1
        if load > cores / 2:
            print(
                f"The machine is busy (load {load:.1f} on {cores} cores). Only the ratios will be meaningful.",
                flush=True,
            )
        started = time.monotonic()
        results[name] = import_module(f"{PACKAGE}.{name}").measure()
        print(f"=== {name}: {time.monotonic() - started:.0f} s", flush=True)
        yield name


def rounded(value: Any) -> Any:
    """A copy with all floats rounded to six decimal places."""
    if isinstance(value, dict):
        return {name: rounded(part) for name, part in value.items()}
    if isinstance(value, list):
        return [rounded(part) for part in value]
    return round(value, 6) if isinstance(value, float) else value


def write_report(results: dict[str, Any], docs: Path) -> None:
    """Write the tables (into the page, and as Markdown) and the figures of all stored results."""
    tables, report = import_module(f"{PACKAGE}.tables"), import_module(f"{PACKAGE}.report")
    created = {name: create(results) for name, create in report.TABLES.items() if name in results}
    for name, each in created.items():
        page = docs / PAGES.get(name, "performance.rst")
        block = {name: "\n\n".join(map(tables.as_rst, each))}
        page.write_text(tables.replace_blocks(page.read_text(encoding="utf-8"), block), encoding="utf-8")
    markdown = "\n\n".join(tables.as_markdown(table) for each in created.values() for table in each)
    (docs / "performance" / "results.md").write_text(markdown + "\n", encoding="utf-8")
    print(markdown)
    import_module(f"{PACKAGE}.figures").draw(results, docs / "performance")


if __name__ == "__main__":
    main()
