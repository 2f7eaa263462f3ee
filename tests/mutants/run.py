# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the unit tests with each mutant of files, in a workspace: ``run.py RESULTS DIFFS SCORE PATH...``.

All tests run once, while coverage.py records which lines each of them executes. Then each mutant is run with tests that
execute its line, in the order of selection.py.
A result is kept in the file C(RESULTS) as long as the mutated file and the test that noticed the mutant stay the same.
Exits with 1 if less than C(SCORE) percent are detected, and writes the diffs of the others to the file C(DIFFS).
"""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import coverage
import forked_tests
import pytest
from ansible.plugins.loader import init_plugin_loader
from forked_tests import PYTEST, Test
from hypothesis import HealthCheck, Phase, settings
from mutations import Mutant, mutants_of
from results import BROKEN, DETECTED, SURVIVED, Results, read_equivalent, report
from selection import Selection

# Tests of the sandbox, the benchmark and the tools do not execute plugins.
TESTS = ("tests/unit/extensions", "tests/unit/plugins", "tests/unit/properties", "tests/unit/test_consistency.py")
# Their processes do not get the mutant, and they take minutes.
LEFT_OUT = ("test_hostile_network.py", "test_killed.py", "test_mounted_file.py")
# Tests that take longer are not run, seconds of processor time.
MAX_SECONDS_PER_TEST = 12.0
# A process that takes longer is probably waiting, so another one is started.
SECONDS_OF_A_WAIT = 3.0


class MutantRunner:
    """A plugin of pytest that runs the collected tests with mutants instead of running them once."""

    def __init__(self, paths: list[str], results: Results, measured: coverage.Coverage) -> None:
        self.paths, self.results, self.coverage = paths, results, measured
        self.mutants: list[Mutant] = []
        self.times: dict[str, tuple[float, float]] = {}
        self.failed: set[str] = set()
        self.running: dict[int, tuple[Mutant, float]] = {}
        self.shares: dict[Mutant, str] = {}
        self.selection = Selection({}, {})

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        if item.nodeid in self.times:
            return (yield)
        self.coverage.switch_context(item.nodeid)
        started = time.monotonic(), time.process_time()
        result = yield
        self.times[item.nodeid] = time.monotonic() - started[0], time.process_time() - started[1]
        # The modules freeze what exists when they start, which is then never freed.
        gc.unfreeze()
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.add(report.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        for item, following in zip(session.items, [*session.items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        self.coverage.stop()
        _free_memory()
        collected = [Test(item, *self.times[item.nodeid]) for item in session.items]
        passed = [test for test in collected if test.item.nodeid not in self.failed]
        quick = [
            test for test in passed if test.processor < MAX_SECONDS_PER_TEST and test.seconds < 4 * MAX_SECONDS_PER_TEST
        ]
        tests = {test.item.nodeid: test for test in forked_tests.reliable(quick)}
        unused = sorted({test.item.nodeid for test in collected} - set(tests))
        print(
            f"\n{len(tests)} of {len(collected)} tests are used. Not used, because they fail or take long:",
            *unused,
            sep="\n  ",
        )
        print(f"{time.process_time():.0f} seconds of processor time", flush=True)
        self._run_all(tests)
        return True

    def _run_all(self, tests: dict[str, Test]) -> None:
        data = self.coverage.get_data()
        contexts = {path: data.contexts_by_lineno(str(Path(path).resolve())) for path in self.paths}
        self.selection = Selection(contexts, tests)
        code = forked_tests.loaded(os.getcwd())
        gc.collect()
        gc.freeze()
        for path in self.paths:
            started, number = time.monotonic(), 0
            for mutant in mutants_of(path):
                self.mutants.append(mutant)
                if result := self.results.get(mutant):
                    if result.test in tests:
                        self.selection.remember(mutant, result.test)
                    continue
                number += 1
                candidates = self.selection.candidates(mutant)
                chosen = self.selection.chosen(candidates)
                self.shares[mutant] = f"{len(chosen)} of {len(candidates)} tests"
                imported = self.selection.is_imported(mutant)
                self._start(mutant, mutant._replace(function=0) if imported else mutant, chosen, code)
            print(f"{path}: {number} mutants in {time.monotonic() - started:.0f} s", flush=True)
        while self.running:
            self._wait()

    def _start(self, mutant: Mutant, mutant_run: Mutant, tests: list[Test], code: forked_tests.Loaded) -> None:
        if not tests:
            self.results.add(mutant, SURVIVED, "")
            return
        cores = os.cpu_count() or 1
        while len(self.running) >= 4 * cores or self._busy() >= cores:
            self._wait()
        process = forked_tests.start(mutant_run, str(Path(mutant.path).resolve()), tests, code)
        self.running[process] = (mutant, time.monotonic())

    def _busy(self) -> int:
        now = time.monotonic()
        return sum(now - started < SECONDS_OF_A_WAIT for _mutant, started in self.running.values())

    def _wait(self) -> None:
        """Wait a moment for the end of a process, and add its result."""
        process, status = os.waitpid(-1, os.WNOHANG)
        if not process:
            time.sleep(0.002)
            return
        if process not in self.running:
            return
        mutant, _started = self.running.pop(process)
        report = Path(f"reports-{process}")
        test = report.read_text(encoding="utf-8") if report.exists() else ""
        report.unlink(missing_ok=True)
        with suppress(ProcessLookupError):
            os.killpg(process, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(status)
        if code == forked_tests.SURVIVED:
            self.results.add(mutant, SURVIVED, self.shares[mutant])
        elif code == forked_tests.NOTICED:
            self.results.add(mutant, DETECTED, test)
            self.selection.remember(mutant, test)
        elif code in (-signal.SIGPROF, -signal.SIGALRM, -signal.SIGSEGV):
            self.results.add(mutant, DETECTED, signal.Signals(-code).name)
        else:
            self.results.add(mutant, BROKEN, f"{code} {test}")


def _free_memory() -> None:
    """Give the memory back that large responses needed: the smaller a process, the faster it is forked."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)


def main() -> int:
    results_file, diffs_file, required, *paths = sys.argv[1:]
    settings.register_profile(
        "mutants",
        max_examples=30,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        # Without Phase.shrink: the first failing example is enough.
        phases=(Phase.explicit, Phase.generate),
    )
    results = Results(Path(results_file), Path("tests/unit"))
    measured = coverage.Coverage(data_file=None, include=[str(Path(path).resolve()) for path in paths])
    measured.start()
    # Tests of the inventory load it by name.
    init_plugin_loader()
    runner = MutantRunner(paths, results, measured)
    left_out = [f"--ignore-glob=*/{name}" for name in LEFT_OUT]
    if status := pytest.main(
        ["-q", *PYTEST, *left_out, *os.environ.get("TESTS", " ".join(TESTS)).split()], plugins=[runner]
    ):
        print(f"pytest exits with {int(status)}")
    score, diffs, errors = report(runner.mutants, results, read_equivalent(Path(__file__).with_name("equivalent.yml")))
    Path(diffs_file).write_text("".join(diffs), encoding="utf-8")
    print(*errors, sep="\n")
    print(f"{score:.1f} % detected, {required} % required")
    return score < float(required) or bool(errors)


if __name__ == "__main__":
    sys.exit(main())
