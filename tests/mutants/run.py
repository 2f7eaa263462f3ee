# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the unit tests with each mutant of files: C(run.py RESULTS PATH...), in a workspace.

All tests run once, while coverage.py records which lines each of them executes. Then every mutant is run with tests that
execute its line: first those that have detected other mutants of the same function, then those that execute little else.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import coverage
import forked_tests
import pytest
from ansible.plugins.loader import init_plugin_loader
from forked_tests import Test
from hypothesis import HealthCheck, settings
from mutations import Mutant, mutants_of
from results import DETECTED, SURVIVED, Results

# The tests with a mutant take no longer than this without it. A mutant that these do not detect counts as undetected,
# although others might detect it.
SECONDS_PER_MUTANT = 4.0
# Longer ones start programs, which do not have the mutant, or wait in real time.
MAX_SECONDS_PER_TEST = 2.0
PYTEST = ("-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-o", f"pythonpath={Path.cwd().parents[2]}", "-W", "ignore")
PROFILE = "--hypothesis-profile=mutants"
# A test that loops forever, or that the mutant ends.
SIGNALS = (signal.SIGPROF, signal.SIGALRM, signal.SIGSEGV, signal.SIGABRT)


class MutantRunner:
    """A plugin of pytest that runs the collected tests with mutants instead of running them once."""

    def __init__(self, paths: list[str], results: Results) -> None:
        self.paths, self.results = paths, results
        self.seconds: dict[str, float] = {}
        self.failed: set[str] = set()
        self.lines: dict[str, dict[int, set[str]]] = {}
        self.tests: dict[str, Test] = {}
        self.cost: Counter[str] = Counter()
        self.detected_by: defaultdict[tuple[str, int], list[str]] = defaultdict(list)
        self.running: dict[int, Mutant] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        started = time.monotonic()
        result = yield
        self.seconds[item.nodeid] = time.monotonic() - started
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.add(report.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.run_unchanged(session.items)
        code = forked_tests.loaded(os.getcwd())
        gc.collect()
        gc.freeze()
        for path in self.paths:
            started = time.monotonic()
            mutants = list(mutants_of(path))
            for mutant in mutants:
                if mutant not in self.results.known:
                    self.run(mutant, code)
            while self.running:
                self.wait()
            counts = Counter(self.results.known[mutant].status for mutant in mutants)
            print(f"{path}: {dict(counts)} in {time.monotonic() - started:.0f} s", flush=True)
        return True

    def run_unchanged(self, items: list[pytest.Item]) -> None:
        """Run the tests as they are; learn their durations, the lines that they execute, and which are of use."""
        measured = coverage.Coverage(data_file=None, include=[str(Path(path).resolve()) for path in self.paths])
        started = time.monotonic()
        measured.start()
        for item, following in zip(items, [*items[1:], None], strict=True):
            measured.switch_context(item.nodeid)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        measured.stop()
        data = measured.get_data()
        for path in self.paths:
            contexts = data.contexts_by_lineno(str(Path(path).resolve()))
            self.lines[path] = {line: set(names) for line, names in contexts.items()}
            self.cost.update(name for names in self.lines[path].values() for name in names)
        quick = [
            Test(item, self.seconds[item.nodeid])
            for item in items
            if item.nodeid not in self.failed and self.seconds[item.nodeid] < MAX_SECONDS_PER_TEST
        ]
        self.tests = {test.item.nodeid: test for test in forked_tests.reliable(quick)}
        for name in self.cost:
            self.cost[name] = int(self.cost[name] * (20 + 1000 * self.seconds[name])) if name in self.tests else 0
        print(f"{len(items)} tests, {len(self.tests)} used, {time.monotonic() - started:.0f} s", flush=True)
        for name in sorted(self.failed):
            print(f"fails without a mutant: {name}", flush=True)

    def chosen(self, mutant: Mutant) -> list[Test]:
        """The tests to run with a mutant, in this order."""
        executed = self.lines[mutant.path]
        names = executed.get(mutant.line, set()) if mutant.function else set().union(*executed.values())
        names &= self.tests.keys()
        first = [name for name in self.detected_by[mutant.path, mutant.function] if name in names]
        chosen, seconds = [], 0.0
        for name in dict.fromkeys([*first, *sorted(names, key=self.cost.__getitem__)]):
            seconds += 0.005 + self.seconds[name]
            if chosen and seconds > SECONDS_PER_MUTANT:
                break
            chosen.append(self.tests[name])
        return chosen

    def run(self, mutant: Mutant, code: forked_tests.Loaded) -> None:
        """Start the tests of a mutant as soon as a processor is free."""
        tests = self.chosen(mutant)
        if not tests:
            self.results.add(mutant, SURVIVED)
            return
        while len(self.running) >= len(os.sched_getaffinity(0)):
            self.wait()
        self.running[forked_tests.start(mutant, str(Path(mutant.path).resolve()), tests, code)] = mutant

    def wait(self) -> None:
        """Wait for the end of a process and add the result of its mutant."""
        process, status = os.wait()
        mutant = self.running.pop(process, None)
        if mutant is None:
            return  # started by a test
        report = Path(f"report-{process}")
        test = report.read_text(encoding="utf-8") if report.exists() else ""
        report.unlink(missing_ok=True)
        with suppress(ProcessLookupError):
            os.killpg(process, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(status)
        if code == forked_tests.SURVIVED:
            self.results.add(mutant, SURVIVED)
        elif code == forked_tests.DETECTED or -code in SIGNALS:
            self.results.add(mutant, DETECTED, test or signal.Signals(-code).name)
            detecting = self.detected_by[mutant.path, mutant.function]
            if test and test not in detecting:
                detecting.insert(0, test)
        else:
            print(f"exit status {code}: {mutant}", flush=True)
            self.results.add(mutant, f"exit status {code}")


def main() -> int:
    """Run the mutants of the files named on the command line."""
    results, *paths = sys.argv[1:]
    settings.register_profile(
        "mutants",
        max_examples=8,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    # Tests of the inventory load it by name.
    init_plugin_loader()
    runner = MutantRunner(paths, Results(Path(results)))
    return int(pytest.main([*PYTEST, PROFILE, "tests/unit"], plugins=[runner]))


if __name__ == "__main__":
    sys.exit(main())
