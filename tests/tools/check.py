# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs test suites in temporary copies of the collection: ``check.py SUITE... [-- ARGUMENT...]``.

Several suites run in parallel, one per core, the unit tests and the integration targets in several parts. A single part
shows its output as it comes. The complete output of each is in .build/logs; the failures are repeated at the end.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

from suites import ANSIBLE_TEST, BUILD, CORES, PLAYBOOKS, PROGRAMS, PYTEST, SuiteRun, run_suite
from workspace import CHECKOUT, exit_on_signals

TARGETS = CHECKOUT / "tests" / "integration" / "targets"
LOGS = BUILD / "logs"
MAX_OUTPUTS = 10
INTEGRATION_JOBS = 3

# The suites that run programs of others with the collection
OUTSIDE = ("awx", "browser", "distribution", "eda", "guides", "metrics", "openapi", "project", "release")


class Job(NamedTuple):
    """What runs at a time."""

    name: str
    suite: str
    arguments: list[str]


def size(path: Path) -> int:
    return sum(each.stat().st_size for each in (path, *path.rglob("*")) if each.is_file())


def parts(suite: str, tests: dict[str, Path], number: int) -> Iterator[Job]:
    """Split the tests of a suite, given by name, into C(number) jobs, each with large and small tests."""
    names = sorted(tests, key=lambda name: size(tests[name]), reverse=True)
    for part in range(number):
        yield Job(f"{suite}-{part + 1}", suite, names[part::number])


def unit_jobs() -> Iterator[Job]:
    """The files of the unit tests. The workers of pytest-xdist would all import all of them."""
    files = (CHECKOUT / "tests" / "unit").rglob("test_*.py")
    yield from parts("units", {str(file.relative_to(CHECKOUT)): file for file in files}, CORES)


def integration_jobs() -> Iterator[Job]:
    targets = (folder for folder in TARGETS.iterdir() if folder.name not in ("setup_sandbox", *PLAYBOOKS))
    yield from parts("integration", {folder.name: folder for folder in targets}, INTEGRATION_JOBS)


def jobs_of(suite: str, arguments: list[str]) -> Iterator[Job]:
    """The jobs of a suite or of a group of suites."""
    if suite == "test":
        yield Job("sanity", "sanity", [])
        yield from unit_jobs()
        yield from integration_jobs()
        yield Job("rotation", "rotation", ["tests/rotation/test_matrix.py", "--cells=5"])
    elif suite == "smoke":
        for each in OUTSIDE:
            yield Job(each, each, ["-m", "smoke"])
    elif suite == "all":
        for each in (*OUTSIDE, "soak", "rotation", "properties"):
            yield Job(each, each, [])
    elif suite == "units" and not arguments:
        yield from unit_jobs()
    elif suite == "integration" and not arguments:
        yield from integration_jobs()
    elif suite in ANSIBLE_TEST or suite in PYTEST:
        yield Job(suite, suite, arguments)
    else:
        sys.exit(
            f"There is no suite {suite}. The suites are: {', '.join(sorted(['all', 'smoke', *ANSIBLE_TEST, *PYTEST]))}"
        )


def missing_programs(jobs: list[Job]) -> Iterator[str]:
    """A sentence for each program that a suite needs and that is not installed."""
    for job in jobs:
        for program, package in PROGRAMS.get(job.suite, [("git", "git")]):
            if not shutil.which(program):
                yield f"The suite {job.suite} needs {program}. On Debian, install {package}."


def log_file(name: str) -> Path:
    return LOGS / f"{name}.log"


def show_summary(name: str, run: SuiteRun) -> None:
    """Print the results of one job in a line."""
    seconds = f"{run.seconds:.0f} s ({run.processor_seconds:.0f} s of processor time)"
    print(f"=== {name}: {run.passed} passed, {len(run.failures)} failed in {seconds}", end="")
    print(f" (not applicable: {', '.join(run.not_applicable)})" if run.not_applicable else "", flush=True)


def show_failures(name: str, run: SuiteRun) -> None:
    """Print the failures of one job: all names, and the output of the first ones."""
    for number, failure in enumerate(run.failures):
        print(f"\n--- {name}: {failure.name}")
        if failure.output and number < MAX_OUTPUTS:
            print(failure.output)
    print(f"\nThe complete output of {name} is in {log_file(name).relative_to(CHECKOUT)}")


def run_jobs(jobs: list[Job]) -> dict[str, SuiteRun]:
    """Run the jobs, one more than there are cores because some wait for a clock, and print a line for each when it ends."""
    runs: dict[str, SuiteRun] = {}
    pool = ThreadPoolExecutor(max_workers=CORES + 1)
    try:
        running = {
            pool.submit(run_suite, job.suite, job.arguments, log_file(job.name), verbose=len(jobs) == 1): job.name
            for job in jobs
        }
        for ended in as_completed(running):
            name = running[ended]
            runs[name] = ended.result()
            show_summary(name, runs[name])
    finally:
        pool.shutdown(cancel_futures=True)
    return runs


def main() -> int:
    """Run the suites named on the command line and print a summary."""
    suites, arguments = sys.argv[1:], []
    if "--" in suites:
        suites, arguments = suites[: suites.index("--")], suites[suites.index("--") + 1 :]
    jobs = [job for suite in suites for job in jobs_of(suite, arguments)]
    if missing := sorted(set(missing_programs(jobs))):
        sys.exit("\n".join(missing))

    if len(jobs) > 1:
        print(f"Running {len(jobs)} jobs; their output is in {LOGS.relative_to(CHECKOUT)}", flush=True)
    exit_on_signals()
    started = time.monotonic()
    runs = run_jobs(jobs)
    failed_runs = {name: run for name, run in runs.items() if run.failures}
    for name, run in failed_runs.items():
        show_failures(name, run)
    if failed_runs and len(runs) > 1:
        print()
        for name, run in failed_runs.items():
            show_summary(name, run)
    passed, failed = (sum(counts) for counts in zip(*((run.passed, len(run.failures)) for run in runs.values())))
    print(f"In {time.monotonic() - started:.0f} s:")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
