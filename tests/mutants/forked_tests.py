# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs tests with a mutant, each mutant in a process of its own.

A process in which the tests are collected and have run once is forked for each mutant, so that nothing is imported or
collected again. In a function, the mutant replaces the code of the function. Elsewhere, the collection is imported again.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import importlib
import importlib.abc
import importlib.machinery
import inspect
import json
import os
import signal
import sys
import time
import types
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from ansible.plugins.loader import inventory_loader
from mutations import Mutant

COLLECTION = "ansible_collections.clouddb"
PYTEST = (
    *("-p", "no:cacheprovider", "-p", "no:xdist", "-W", "ignore", "--hypothesis-profile=mutants"),
    *("-o", f"pythonpath={Path.cwd().parents[2]}"),
)
NOTICED, SURVIVED, BROKEN = 10, 11, 12
# A test fails that takes much longer than without the mutant: seconds of processor time, and seconds.
PROCESSOR_LIMIT = (2.0, 5.0)
TIME_LIMIT = (10.0, 10.0)


class Loaded(NamedTuple):
    """What exists of the collection in this process: its functions, by path, first line and name, and their caches."""

    functions: dict[tuple[str, int, str], list[types.FunctionType]]
    caches: list[functools._lru_cache_wrapper[object]]


class Test(NamedTuple):
    """A collected test and how long it takes, in seconds, and in seconds of processor time."""

    item: pytest.Item
    seconds: float
    processor: float


def loaded(folder: str) -> Loaded:
    """The functions and caches of the files in a folder that exist in this process."""
    found = Loaded({}, [])
    # Frozen objects are not listed, and the modules freeze what they import.
    gc.unfreeze()
    for thing in gc.get_objects():
        if isinstance(thing, types.FunctionType) and thing.__code__.co_filename.startswith(folder):
            code = thing.__code__
            found.functions.setdefault((code.co_filename, code.co_firstlineno, code.co_name), []).append(thing)
        elif isinstance(thing, functools._lru_cache_wrapper) and thing.__module__.startswith(COLLECTION):
            found.caches.append(thing)
    return found


def start(mutant: Mutant, file: str, tests: Sequence[Test], code: Loaded) -> int:
    """Start a process that runs the tests with the mutant until one fails; returns its id.

    Its exit status is NOTICED, SURVIVED or BROKEN, or that of a signal if it took too long. It writes the id of the test
    that failed, or why it is broken, to the file C(reports-PID).
    """
    process = os.fork()
    if process:
        return process
    status = BROKEN
    try:
        _end_with_parent()
        os.setpgid(0, 0)
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        status = _run(mutant, file, tests, code)
    except BaseException as error:
        _report(f"{type(error).__name__}: {error}")
    finally:
        os._exit(status)
    return 0


def reliable(tests: Sequence[Test]) -> list[Test]:
    """The tests that pass in forked processes, one per core, when nothing is changed, with how long they take there."""
    size = -(-len(tests) // (os.cpu_count() or 1)) or 1
    runs = [_start_unchanged(tests[first : first + size]) for first in range(0, len(tests), size)]
    times: dict[str, float] = {}
    for process, reading in runs:
        with open(reading, encoding="utf-8") as pipe:
            times.update(json.load(pipe))
        os.waitpid(process, 0)
    return [test._replace(processor=times[test.item.nodeid]) for test in tests if test.item.nodeid in times]


def _start_unchanged(tests: Sequence[Test]) -> tuple[int, int]:
    """Start a process that runs the tests and writes the processor time of those that pass to a pipe; returns its id and the pipe."""
    reading, writing = os.pipe()
    process = os.fork()
    if not process:
        passed: dict[str, float] = {}
        try:
            _end_with_parent()
            failed, times = _run_tests(tests, stop=False)
            passed = {name: seconds for name, seconds in times.items() if name not in failed}
        finally:
            with open(writing, "w", encoding="utf-8") as pipe:
                json.dump(passed, pipe)
            os._exit(0)
    os.close(writing)
    return process, reading


def _end_with_parent() -> None:
    death_signal = 1
    ctypes.CDLL(None).prctl(death_signal, signal.SIGKILL)


def _run(mutant: Mutant, file: str, tests: Sequence[Test], code: Loaded) -> int:
    source = mutant.apply(Path(file).read_bytes())
    if not (mutant.function and _replace(file, mutant, source, code)):
        return _run_imported_again(file, source, tests)
    for cache in code.caches:
        cache.cache_clear()
    failed, _times = _run_tests(tests, stop=True)
    return _noticed(failed[0]) if failed else SURVIVED


def _run_tests(tests: Sequence[Test], *, stop: bool) -> tuple[list[str], dict[str, float]]:
    """Run the tests, if C(stop) until the first one fails; returns the ids of those that failed, and seconds of processor time, by id."""
    failures = _Failures()
    times: dict[str, float] = {}
    plugins = tests[0].item.config.pluginmanager
    plugins.register(failures)
    plugins.unregister(name="terminalreporter")
    for test, following in zip(tests, [*(test.item for test in tests[1:]), None], strict=True):
        _limit(test.seconds)
        started = time.process_time()
        try:
            test.item.config.hook.pytest_runtest_protocol(item=test.item, nextitem=following)
        except Exception:
            # A test that replaces functions of the operating system and fails may keep pytest from reporting it.
            failures.tests.append(test.item.nodeid)
        times[test.item.nodeid] = time.process_time() - started
        if failures.tests and stop:
            break
    return failures.tests, times


class _Failures:
    """A plugin that collects the ids of failed tests and files."""

    def __init__(self) -> None:
        self.tests: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.tests.append(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.tests.append(report.nodeid)


def _noticed(test: str) -> int:
    _report(test)
    return NOTICED


def _report(text: str) -> None:
    Path(f"reports-{os.getpid()}").write_text(text, encoding="utf-8")


def _replace(file: str, mutant: Mutant, source: bytes, code: Loaded) -> bool:
    """Give the functions that contain the mutant the code that they have in the source; whether that is possible."""
    compiled = compile(source, file, "exec", dont_inherit=True)
    names = mutant.scope.split(".")
    changed = next((each for each in _codes(compiled, mutant.function) if each.co_name in names), None)
    functions = code.functions.get((file, mutant.function, changed.co_name), []) if changed else []
    if not (changed and functions) or any(each.__code__.co_freevars != changed.co_freevars for each in functions):
        return False
    for function in functions:
        function.__code__ = changed
    return True


def _codes(code: types.CodeType, line: int) -> Iterator[types.CodeType]:
    """The code of the functions that begin at a line."""
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            if constant.co_firstlineno == line and constant.co_flags & inspect.CO_NEWLOCALS:
                yield constant
            yield from _codes(constant, line)


def _limit(seconds: float) -> None:
    """Let a signal end this process if the next test takes much longer than C(seconds)."""
    signal.setitimer(signal.ITIMER_PROF, PROCESSOR_LIMIT[0] + PROCESSOR_LIMIT[1] * seconds)
    signal.setitimer(signal.ITIMER_REAL, TIME_LIMIT[0] + TIME_LIMIT[1] * seconds)


class _ChangedFile(importlib.abc.MetaPathFinder):
    """Imports a module from a source instead of its file."""

    def __init__(self, file: str, source: bytes) -> None:
        self.file, self.source = file, source

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec and spec.origin == self.file:
            spec.loader = _ChangedLoader(name, self.file, self.source)
            return spec
        return None


class _ChangedLoader(importlib.machinery.SourceFileLoader):
    def __init__(self, name: str, file: str, source: bytes) -> None:
        super().__init__(name, file)
        self.source = source

    def get_code(self, fullname: str) -> types.CodeType:
        return compile(self.source, self.path, "exec", dont_inherit=True)


def _run_imported_again(file: str, source: bytes, tests: Sequence[Test]) -> int:
    _limit(5.0 + sum(test.seconds for test in tests))
    folder = os.getcwd()
    for name, module in list(sys.modules.items()):
        if name.startswith(COLLECTION) or (getattr(module, "__file__", None) or "").startswith(f"{folder}/tests/unit/"):
            del sys.modules[name]
    inventory_loader._module_cache.clear()
    sys.meta_path.insert(0, _ChangedFile(file, source))
    # The plugin loader reads a file itself, unless its module exists already.
    name = ".".join(Path(file).relative_to(Path(folder).parents[2]).with_suffix("").parts)
    try:
        importlib.import_module(name)
    except (Exception, SystemExit) as error:
        return _noticed(f"import: {type(error).__name__}")
    failures = _Failures()
    arguments = [*PYTEST, "-p", "no:terminal", "--maxfail=1", *(test.item.nodeid for test in tests)]
    try:
        status = pytest.main(arguments, plugins=[failures])
    except Exception as error:
        return _noticed(f"pytest: {type(error).__name__}")
    if status == pytest.ExitCode.OK:
        return SURVIVED
    return _noticed(failures.tests[0] if failures.tests else f"pytest exits with {int(status)}")
