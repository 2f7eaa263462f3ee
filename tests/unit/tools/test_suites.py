# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The suite of unit tests reports failures in every context of ansible-test, which stops at the first that fails."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

TOOLS = Path(__file__).parents[2] / "tools"
REPORT = '<testsuite><testcase classname="tests" name="test_{0}">{1}</testcase></testsuite>'


@pytest.fixture
def suites(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(TOOLS))
    return importlib.import_module("suites")


def run_units(suites: ModuleType, folder: Path, failing: set[str], crashing: str = "") -> tuple[Any, list[list[str]]]:
    """Run the suite with an ansible-test in which tests of the contexts C(failing) fail, and C(crashing) writes no report."""
    run = suites.SuiteRun(SimpleNamespace(collection=folder), log=None, verbose=False)
    commands: list[list[str]] = []
    reports = suites.junit_folder(run)
    reports.mkdir(parents=True)

    def execute(program: str, *arguments: str) -> tuple[int, list[str]]:
        commands.append(list(arguments))
        selected = [each for each in suites.UNIT_CONTEXTS if f"tests/unit/plugins/{each}/" not in arguments]
        for context in selected:
            if context == crashing:
                return 1, ["INTERNALERROR"]
            failure = "<failure/>" if context in failing else ""
            (reports / f"python3.11-{context}-units.xml").write_text(REPORT.format(context, failure), encoding="utf-8")
            if failure:
                return 1, []
        return 0, [] if selected else ["WARNING: All targets skipped."]

    run.execute = execute
    suites.units(run, [])
    return run, commands


@pytest.mark.parametrize(
    "failing",
    [
        {"modules"},
        {"module_utils"},
        {"controller"},
        {"modules", "controller"},
        {"modules", "module_utils", "controller"},
    ],
)
def test_failures_of_every_context_are_reported(suites: ModuleType, tmp_path: Path, failing: set[str]) -> None:
    run, _commands = run_units(suites, tmp_path, failing)
    assert {failure.name for failure in run.failures} == {f"tests.test_{context} (failure)" for context in failing}
    assert run.passed == 3 - len(failing)


def test_a_run_without_failures_is_one_command(suites: ModuleType, tmp_path: Path) -> None:
    run, commands = run_units(suites, tmp_path, set())
    assert (run.passed, run.failures, len(commands)) == (3, [], 1)


def test_a_context_without_report_is_a_failure(suites: ModuleType, tmp_path: Path) -> None:
    run, _commands = run_units(suites, tmp_path, {"modules"}, crashing="module_utils")
    assert [failure.output for failure in run.failures if failure.name.startswith("ansible-test")] == ["INTERNALERROR"]
