# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The phases of the project's checks, each with its test tool.

Many test tools succeed when they skipped the work. So a phase is judged by the results that its tool wrote down:
what was skipped counts as failed, and so does a phase in which nothing ran.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import TextIO

from stage import CHECKOUT, Stage, stage

PYTHON = ("--python", f"{sys.version_info.major}.{sys.version_info.minor}")
BUILD = CHECKOUT / ".build"
COLOR = re.compile(r"\x1b\[[0-9;]*m")
SKIPPED = re.compile(r"^WARNING: (All targets skipped|Skipping (sanity|tests|unit)|Excluding|Required program)")

# Sanity tests that rightly find nothing to do: while the collection has no such file, and as it supports no Python 2.
SUBJECTS = {"pslint": "**/*.ps*1", "shellcheck": "**/*.sh"}
PYTHON_2 = {"future-import-boilerplate", "metaclass-boilerplate"}

# Each linter, and what it says when it has really looked at something.
LINTERS = (
    (("ansible-lint", "--nocolor"), r"Passed: 0 failure\(s\), 0 warning\(s\) in [1-9]"),
    (("antsibull-changelog", "lint"), ""),
    (("antsibull-docs", "lint-collection-docs", "--plugin-docs", "."), ""),
    (("mypy", "--cache-dir", str(BUILD / "mypy")), r"no issues found in [1-9]"),
    (("shellcheck", ".ci/run"), ""),
)


@dataclass
class Tally:
    """What passed and what failed in one phase, and where its output goes."""

    output: TextIO = sys.stdout
    passed: int = 0
    failed: list[str] = field(default_factory=list)
    without_subject: list[str] = field(default_factory=list)
    seconds: float = 0.0


def run(staged: Stage, tally: Tally, program: str, *arguments: str) -> tuple[int, list[str]]:
    """Run a program, show its output as it comes, return its exit status and its lines."""
    lines = []
    with staged.start(program, *arguments, piped=True) as process:
        for line in process.stdout or ():
            print(line, end="", file=tally.output, flush=True)
            lines.append(COLOR.sub("", line.rstrip()))
    return process.returncode, lines


def ansible_test(staged: Stage, tally: Tally, *command: str) -> tuple[int, list[str]]:
    """Run one command of ansible-test; every warning about work left out counts as failed."""
    status, lines = run(staged, tally, "ansible-test", *command, "--color", "yes" if sys.stdout.isatty() else "no")
    tally.failed += sorted({line for line in lines if SKIPPED.search(line)})
    return status, lines


def read_junit(staged: Stage, tally: Tally, reports: str, may_skip: Callable[[str], bool] = lambda name: False) -> None:
    """Count the test cases in ansible-test's JUnit files."""
    for report in sorted((staged.collection / "tests" / "output" / "junit").glob(reports)):
        for case in ET.parse(report).iter("testcase"):
            name = re.sub(r"-python-[\d.]+$", "", case.get("name", ""))
            outcome = {child.tag for child in case} & {"failure", "error", "skipped"}
            if not outcome:
                tally.passed += 1
            elif outcome == {"skipped"} and may_skip(name):
                tally.without_subject.append(name)
            else:
                tally.failed.append(f"{case.get('classname')}.{name} ({', '.join(sorted(outcome))})")


def place_get_pip() -> None:
    """Put our stand-in where ansible-test keeps the pip bootstrap script that it would download otherwise."""
    from ansible_test._internal.python_requirements import get_venv_packages

    version = get_venv_packages(SimpleNamespace(version=PYTHON[1]))["pip"]
    target = Path.home() / ".ansible" / "test" / "cache" / f"get_pip_{version.replace('.', '_')}.py"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(Path(__file__).with_name("get_pip.py"), target)


def sanity(staged: Stage, tally: Tally, arguments: list[str]) -> int:
    """All of ansible-test's sanity tests."""

    def has_no_subject(test: str) -> bool:
        return (
            bool(arguments)
            or test in PYTHON_2
            or (test in SUBJECTS and not any(staged.collection.glob(SUBJECTS[test])))
        )

    place_get_pip()
    status, _lines = ansible_test(staged, tally, "sanity", *PYTHON, "--junit", *arguments)
    read_junit(staged, tally, "ansible-test-sanity-*.xml", may_skip=has_no_subject)
    return status


def units(staged: Stage, tally: Tally, arguments: list[str]) -> int:
    """The unit tests."""
    status, _lines = ansible_test(staged, tally, "units", *PYTHON, "--requirements", *arguments)
    read_junit(staged, tally, "python*-units.xml")
    return status


def target(staged: Stage, tally: Tally, arguments: list[str]) -> int:
    """Compile and import tests, and the unit tests of modules, with another Python: that of a target."""
    controller = ("--controller", f"origin:python={PYTHON[1]}")
    place_get_pip()
    compiled, _lines = ansible_test(
        staged,
        tally,
        "sanity",
        *controller,
        "--target-python",
        *arguments,
        "--test",
        "compile",
        "--test",
        "import",
        "--junit",
    )
    read_junit(staged, tally, "ansible-test-sanity-*.xml")
    # The tests of whole modules talk to the sandbox, which needs Python 3.10.
    folders = ["module_utils"] if arguments == ["3.9"] else ["module_utils", "modules"]
    where = [f"tests/unit/plugins/{folder}/" for folder in folders]
    tested, _lines = ansible_test(
        staged, tally, "units", *controller, "--target-python", f"venv/{arguments[0]}", "--requirements", *where
    )
    read_junit(staged, tally, "python*-units.xml")
    return compiled or tested


def integration(staged: Stage, tally: Tally, arguments: list[str]) -> int:
    """The integration targets."""
    options = (*PYTHON, "--local", "--continue-on-error")
    status, lines = ansible_test(staged, tally, "integration", *options, *arguments)
    for report in (staged.collection / "tests" / "output" / "data").glob("integration-*.json"):
        tally.passed += len(json.loads(report.read_text(encoding="utf-8"))["targets"])
    for number, line in enumerate(lines):
        if "integration test(s) listed below" in line:
            tally.failed += lines[number + 1 :]
    return status


def soak(staged: Stage, tally: Tally, arguments: list[str]) -> int:
    """The integration targets with those of their parts that take minutes."""
    (staged.collection / "tests" / "integration" / "integration_config.yml").write_text(
        "soak: true\n", encoding="utf-8"
    )
    return integration(staged, tally, arguments)


def lint(staged: Stage, tally: Tally, arguments: list[str]) -> int:
    """The linters."""
    for command, proof in LINTERS:
        print(f"--- {command[0]}", file=tally.output, flush=True)
        status, lines = run(staged, tally, *command)
        if status or not re.search(proof, "\n".join(lines)):
            tally.failed.append(command[0])
        else:
            tally.passed += 1
    return 0


def coverage(staged: Stage, tally: Tally, arguments: list[str]) -> int:
    """The unit tests with the coverage of plugins/, as a table here and as pages in .build/coverage."""
    status = units(staged, tally, ["--coverage", *arguments])
    folder = staged.collection / "tests" / "output" / "coverage"
    # ansible-test reports the files that no test imports apart from the others, so the totals are made here.
    ansible_test(staged, tally, "coverage", "combine", "--stub")
    data, only = f"--data-file={folder / 'whole'}", "--include=plugins/*"
    reports = (
        ("combine", "--quiet", data, str(folder / "coverage"), str(folder / "coverage=stub-01")),
        ("html", "--quiet", data, only, f"--directory={BUILD / 'coverage'}"),
        ("json", "--quiet", data, only, f"-o{folder / 'whole.json'}"),
        ("report", data, only, "--show-missing", "--skip-covered"),
    )
    status = status or max(run(staged, tally, "coverage", *report)[0] for report in reports)
    if not status:
        totals = json.loads((folder / "whole.json").read_text(encoding="utf-8"))["totals"]
        for kind, covered, number in (("line", "lines", "statements"), ("branch", "branches", "branches")):
            share = 100 * totals[f"covered_{covered}"] / totals[f"num_{number}"]
            print(
                f"{kind} coverage: {share:.1f} % ({totals[f'covered_{covered}']} of {totals[f'num_{number}']})",
                file=tally.output,
            )
    return status


PHASES: dict[str, Callable[[Stage, Tally, list[str]], int]] = {
    phase.__name__: phase for phase in (sanity, units, target, integration, soak, lint, coverage)
}


def perform(phase: str, arguments: list[str], output: TextIO) -> Tally:
    """Run one phase on a stage of its own and tell what came of it."""
    started = time.monotonic()
    tally = Tally(output)
    with stage() as staged:
        status = PHASES[phase](staged, tally, arguments)
    if status and not tally.failed:
        tally.failed.append(f"exit status {status}")
    if not tally.passed and not tally.failed:
        tally.failed.append("nothing ran")
    tally.seconds = time.monotonic() - started
    return tally
