# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the unit tests with each mutant of files, in a workspace: ``run.py RESULTS DIFFS SCORE PATH...``.

All tests run once, while coverage.py records which lines each of them executes. Then each mutant is run with tests that
execute its line. Those that noticed other mutants of the function come first, then those that execute little else.
A result is kept in the file C(RESULTS) as long as the mutated file and the test that noticed the mutant stay the same.
Exits with 1 if less than C(SCORE) percent are detected, and writes the diffs of the others to the file C(DIFFS).
"""

from __future__ import annotations

import ctypes
import functools
import gc
import os
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Collection, Iterator
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

# Tests of the sandbox, the benchmark and the tools do not execute plugins.
TESTS = ("tests/unit/extensions", "tests/unit/plugins", "tests/unit/properties", "tests/unit/test_consistency.py")
# Their processes do not get the mutant, and they take minutes.
LEFT_OUT = ("test_hostile_network.py", "test_killed.py", "test_mounted_file.py")
# The tests with a mutant take no longer than this without it, except for the first one. Others are not run: if a mutant is not
# noticed by the many tests that this allows, it counts as undetected.
SECONDS_PER_MUTANT = 6.0
MAX_SECONDS_PER_TEST = 12.0
# What pytest itself needs for a test.
SECONDS_OF_PYTEST = 0.005
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
        self.noticed: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)

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
        lines = {path: data.contexts_by_lineno(str(Path(path).resolve())) for path in self.paths}
        size: dict[str, int] = defaultdict(int)
        for contexts in lines.values():
            for names in contexts.values():
                for name in names:
                    size[name] += 1
        code = forked_tests.loaded(os.getcwd())
        gc.collect()
        gc.freeze()
        for path in self.paths:
            started, number = time.monotonic(), 0
            executed = {name for names in lines[path].values() for name in names} & set(tests)
            imported = executed | {name for name, test in tests.items() if _mentions(test, Path(path).stem)}
            for mutant in mutants_of(path):
                self.mutants.append(mutant)
                if result := self.results.get(mutant):
                    self._remember(mutant, result.test)
                    continue
                contexts = lines[path].get(mutant.line, [])
                # What is executed while the tests are imported is imported again.
                if not mutant.function or "" in contexts:
                    mutant_run, names = mutant._replace(function=0), imported
                else:
                    mutant_run, names = mutant, set(contexts) & set(tests)
                number += 1
                chosen = self._chosen(mutant, names or imported, executed, tests, size)
                self.shares[mutant] = f"{len(chosen)} of {len(names or imported)} tests"
                self._start(mutant, mutant_run, chosen, code)
            print(f"{path}: {number} mutants in {time.monotonic() - started:.0f} s", flush=True)
        while self.running:
            self._wait()

    def _chosen(
        self,
        mutant: Mutant,
        names: Collection[str],
        executed: Collection[str],
        tests: dict[str, Test],
        size: dict[str, int],
    ) -> list[Test]:
        """The first tests of the order described above, up to SECONDS_PER_MUTANT. Those that do not execute the file come last."""
        before = [name for name in reversed(self.noticed[mutant.path, mutant.scope]) if name in names]
        others = sorted(
            set(names).difference(before),
            key=lambda name: (name not in executed, size.get(name, 1) * (0.02 + tests[name].processor)),
        )
        chosen: list[Test] = []
        seconds = 0.0
        for name in [*before, *others]:
            seconds += SECONDS_OF_PYTEST + tests[name].processor
            if chosen and seconds > SECONDS_PER_MUTANT:
                break
            chosen.append(tests[name])
        return chosen

    def _remember(self, mutant: Mutant, test: str) -> None:
        """Let the test that noticed a mutant be the first one for the next mutant of the same function."""
        noticed = self.noticed[mutant.path, mutant.scope]
        noticed.pop(test, None)
        noticed[test] = None

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
            self._remember(mutant, test)
        elif code in (-signal.SIGPROF, -signal.SIGALRM, -signal.SIGSEGV):
            self.results.add(mutant, DETECTED, signal.Signals(-code).name)
        else:
            self.results.add(mutant, BROKEN, str(code))


@functools.cache
def _content(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _mentions(test: Test, name: str) -> bool:
    """Whether the file of a test contains a name."""
    return name in _content(test.item.path)


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
