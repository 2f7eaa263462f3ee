# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the unit tests with each mutant of files: ``run.py RESULTS PATH...``, in a workspace.

All tests run once, while coverage.py records which lines each of them executes. Then every mutant is run with tests that
execute its line, those that execute little else first. Results are appended to the file C(RESULTS) as lines of JSON, with
what they depend on, and are not determined again as long as that is the same.
"""

from __future__ import annotations

import gc
import hashlib
import json
import os
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import coverage
import forked_tests
import pytest
from ansible.plugins.loader import init_plugin_loader
from forked_tests import Test
from mutations import Mutant, mutants_of

FOLDERS = ("plugins/module_utils", "plugins/modules")
# The tests with a mutant take no longer than this without it. Others are not run: if a mutant is not noticed by the many
# tests that this allows, it counts as undetected.
SECONDS_PER_MUTANT = 6.0
# Tests of subprocesses, which do not get the mutant, and of real time.
MAX_SECONDS_PER_TEST = 3.0
PYTEST = ("-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-o", f"pythonpath={Path.cwd().parents[2]}", "-W", "ignore")


def digest(*paths: Path) -> str:
    """A hash of the content of files and folders."""
    files = sorted(file for path in paths for file in (path.rglob("*.py") if path.is_dir() else [path]))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


class Results:
    """The file of results."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.tests = digest(Path("tests/unit"))
        self.known: dict[str, dict[str, Any]] = {}
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                result = json.loads(line)
                self.known[result["key"]] = result

    def key(self, mutant: Mutant) -> str:
        change = json.dumps([mutant, digest(Path(mutant.path))])
        return hashlib.sha256(change.encode()).hexdigest()[:24]

    def is_known(self, mutant: Mutant) -> bool:
        result = self.known.get(self.key(mutant))
        if not result:
            return False
        if result["status"] == "survived":
            return bool(result["tests"] == self.tests)
        file = Path(result["test"].partition("::")[0])
        return not file.is_file() or bool(result["tests"] == digest(file))

    def add(self, mutant: Mutant, status: str, test: str) -> None:
        file = Path(test.partition("::")[0])
        tests = digest(file) if status == "detected" and file.is_file() else self.tests
        result = {"key": self.key(mutant), "status": status, "test": test, "tests": tests, "mutant": mutant._asdict()}
        with self.path.open("a", encoding="utf-8") as results:
            results.write(json.dumps(result) + "\n")


class MutantRunner:
    """A plugin of pytest that runs the collected tests with mutants instead of running them once."""

    def __init__(self, paths: list[str], results: Results) -> None:
        self.paths, self.results = paths, results
        self.coverage = coverage.Coverage(data_file=None, include=[*({str(Path(path).resolve()) for path in paths})])
        self.seconds: dict[str, float] = {}
        self.failed: set[str] = set()
        self.running: dict[int, tuple[Mutant, float]] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        if self.coverage is None:
            return (yield)
        self.coverage.switch_context(item.nodeid)
        started = time.monotonic()
        result = yield
        self.seconds[item.nodeid] = time.monotonic() - started
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.add(report.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.coverage.start()
        for item, following in zip(session.items, [*session.items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        self.coverage.stop()
        data, self.coverage = self.coverage.get_data(), None
        collected = [Test(item, self.seconds[item.nodeid]) for item in session.items]
        quick = [
            test
            for test in collected
            if test.item.nodeid not in self.failed and test.seconds < MAX_SECONDS_PER_TEST
        ]
        tests = {test.item.nodeid: test for test in forked_tests.reliable(quick)}
        print(f"{time.process_time():.0f} s; {len(collected)} tests, {len(self.failed)} fail, {len(quick)} quick, {len(tests)} used", flush=True)
        print(sorted({t.item.nodeid for t in quick} - set(tests))[:40], flush=True)
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
            executed = {name for names in lines[path].values() for name in names}
            for mutant in mutants_of(path):
                if self.results.is_known(mutant):
                    continue
                names = set(lines[path].get(mutant.line, ())) if mutant.function else executed
                if not names & set(tests):
                    names = executed
                self.run(mutant, self.chosen([tests[name] for name in names if name in tests], size), code)
            print(path, flush=True)
        while self.running:
            self.wait()
        return True

    def chosen(self, tests: list[Test], size: dict[str, int]) -> list[Test]:
        """The first tests in order of the lines that they execute and of their time, up to SECONDS_PER_MUTANT."""
        chosen, seconds = [], 0.0
        for test in sorted(tests, key=lambda test: size[test.item.nodeid] * (0.02 + test.seconds)):
            seconds += 0.005 + test.seconds
            if chosen and seconds > SECONDS_PER_MUTANT:
                break
            chosen.append(test)
        return chosen

    def run(self, mutant: Mutant, tests: list[Test], code: forked_tests.Loaded) -> None:
        if not tests:
            self.results.add(mutant, "survived", "")
            return
        while len(self.running) >= int(os.environ.get("JOBS", os.cpu_count() or 1)):
            self.wait()
        process = forked_tests.start(mutant, str(Path(mutant.path).resolve()), tests, code)
        self.running[process] = (mutant, time.monotonic())

    def wait(self) -> None:
        process, status = os.wait()
        if process not in self.running:
            return
        mutant, _started = self.running.pop(process)
        report = Path(f"reports-{process}")
        test = report.read_text(encoding="utf-8") if report.exists() else ""
        report.unlink(missing_ok=True)
        try:
            os.killpg(process, signal.SIGKILL)
        except ProcessLookupError:
            pass
        code = os.waitstatus_to_exitcode(status)
        if code == forked_tests.SURVIVED:
            self.results.add(mutant, "survived", "")
        elif code == forked_tests.NOTICED:
            self.results.add(mutant, "detected", test)
        elif code in (-signal.SIGPROF, -signal.SIGALRM, -signal.SIGSEGV):
            self.results.add(mutant, "detected", signal.Signals(-code).name)
        else:
            self.results.add(mutant, "broken", str(code))


def main() -> int:
    results, *paths = sys.argv[1:]
    # Tests of the inventory load it by name.
    init_plugin_loader()
    runner = MutantRunner(paths, Results(Path(results)))
    return int(pytest.main([*PYTEST, *os.environ.get("TESTS", "tests/unit").split()], plugins=[runner]))


if __name__ == "__main__":
    sys.exit(main())
