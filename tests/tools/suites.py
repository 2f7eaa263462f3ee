# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The test suites, each with its test tool.

Many test tools exit with 0 when they skipped the work. A suite is therefore judged by the results that its tool writes:
a skipped test counts as failed, and so does a suite in which nothing ran.

Other tools were tried for this. antsibull-nox accepts skipped tests and a missing shellcheck, and fails if the path of the
checkout contains spaces; tox-ansible downloads ansible-core from GitHub; pytest-ansible needs the checkout to be below
``ansible_collections`` or installed. None of them collects the failures. So these functions run ansible-test themselves.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple, TextIO

from workspace import CHECKOUT, Workspace, temporary_workspace

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
BUILD = CHECKOUT / ".build"
COLOR = re.compile(r"\x1b\[[0-9;]*m")
SKIPPED = re.compile(r"^WARNING: (All targets skipped|Skipping (sanity|tests|unit)|Excluding|Required program)")
MAX_LINES = 60

# Sanity tests that have nothing to check: the collection has no file of this type, or does not support Python 2.
FILE_TYPES = {"pslint": "**/*.ps*1", "shellcheck": "**/*.sh"}
PYTHON_2 = {"future-import-boilerplate", "metaclass-boilerplate"}
PYLINT = ("--test", "pylint")

# The contexts in which ansible-test runs unit tests, in this order: the first two for the folders of these names, the last for all others.
UNIT_CONTEXTS = ("modules", "module_utils", "controller")

# The integration targets that mainly run ansible-playbook in processes of its own, which takes long: make test-playbooks.
PLAYBOOKS = ("examples", "many_hosts", "playbook_sandbox", "quickstart", "role_api_key_rotation", "secrets")

# Each linter, and what it prints if it checked at least one file.
LINTERS = (
    (("ruff", "format", "--check"), r"^[1-9]\d* files? already formatted"),
    (("ruff", "check"), r"\AAll checks passed!\Z"),  # without files, a warning comes first
    (("ansible-lint", "--nocolor"), r"Passed: 0 failure\(s\), 0 warning\(s\) in [1-9]"),
    (("antsibull-changelog", "lint"), ""),
    (("antsibull-docs", "lint-collection-docs", "--plugin-docs", "."), ""),
    (("python", "tests/tools/prose.py"), r"^[1-9]\d* files checked, 0 findings"),
    (("mypy", "--cache-dir", str(BUILD / "mypy")), r"no issues found in [1-9]"),
    (("shellcheck", ".ci/run"), ""),
)


class Failure(NamedTuple):
    """A test that failed or was skipped, and the end of its output."""

    name: str
    output: str = ""


@dataclass
class SuiteRun:
    """A run of a suite: its workspace, its log, and its results."""

    workspace: Workspace
    log: TextIO
    verbose: bool
    passed: int = 0
    failures: list[Failure] = field(default_factory=list)
    not_applicable: list[str] = field(default_factory=list)
    seconds: float = 0.0
    processor_seconds: float = 0.0

    def write(self, line: str) -> None:
        """Add a line to the log, without colors; show it if the run is verbose."""
        print(COLOR.sub("", line), file=self.log, flush=True)
        if self.verbose:
            print(line, flush=True)

    def execute(self, program: str, *arguments: str) -> tuple[int, list[str]]:
        """Run a program, log its output as it comes, return its exit status and its lines without colors."""
        lines = []
        with self.workspace.start(program, *arguments, piped=True) as process:
            for line in process.stdout or ():
                self.write(line.rstrip("\n"))
                lines.append(COLOR.sub("", line.rstrip()))
            _pid, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        self.processor_seconds += usage.ru_utime + usage.ru_stime
        return process.returncode, lines

    def fail(self, name: str, lines: list[str]) -> None:
        """Add a failure with its last lines of output."""
        omitted = len(lines) - MAX_LINES
        shown = [f"… {omitted} more lines in the log …", *lines[-MAX_LINES:]] if omitted > 0 else lines
        self.failures.append(Failure(name, "\n".join(shown).strip("\n")))


_cache_lock = threading.Lock()


def fill_cache() -> None:
    """Create what every run of ansible-test takes from the home directory, or creates there.

    It would download get_pip.py, and of two runs that begin at the same time, one would fail to create its SSH keys.
    """
    from ansible_test._internal.python_requirements import get_venv_packages

    folder = Path.home() / ".ansible" / "test"
    version = get_venv_packages(SimpleNamespace(version=PYTHON))["pip"]
    get_pip = folder / "cache" / f"get_pip_{version.replace('.', '_')}.py"
    with _cache_lock:
        get_pip.parent.mkdir(parents=True, exist_ok=True)
        if not get_pip.exists():
            shutil.copy(Path(__file__).with_name("get_pip.py"), get_pip)
        if not (folder / "id_rsa").exists():
            subprocess.run(
                ["ssh-keygen", "-q", "-t", "rsa", "-m", "PEM", "-N", "", "-f", str(folder / "id_rsa")], check=True
            )


def ansible_test(run: SuiteRun, *command: str, may_warn: str = "") -> tuple[int, list[str]]:
    """Run a command of ansible-test; every warning about skipped work counts as a failure, except C(may_warn)."""
    fill_cache()
    color = "yes" if run.verbose and sys.stdout.isatty() else "no"
    status, lines = run.execute("ansible-test", *command, "--color", color)
    run.failures += [Failure(line) for line in sorted({line for line in lines if SKIPPED.search(line)} - {may_warn})]
    return status, lines


def junit_folder(run: SuiteRun) -> Path:
    """The folder of ansible-test's JUnit files."""
    return run.workspace.collection / "tests" / "output" / "junit"


def read_junit(run: SuiteRun, reports: str, may_skip: Callable[[str], bool] = lambda name: False) -> None:
    """Add the test cases of ansible-test's JUnit files to the results."""
    for report in sorted(junit_folder(run).glob(reports)):
        for case in ET.parse(report).iter("testcase"):
            name = re.sub(r"-python-[\d.]+$", "", case.get("name", ""))
            problems = {child.tag: child for child in case if child.tag in ("failure", "error", "skipped")}
            if not problems:
                run.passed += 1
            elif set(problems) == {"skipped"} and may_skip(name):
                run.not_applicable.append(name)
            else:
                output = "\n".join(child.text or child.get("message") or "" for child in problems.values())
                run.fail(f"{case.get('classname')}.{name} ({', '.join(sorted(problems))})", output.splitlines())


def sanity(run: SuiteRun, arguments: list[str]) -> int:
    """All sanity tests, or those named in the arguments. Of tests/, make lint runs pylint, which takes long."""

    def may_skip(test: str) -> bool:
        no_such_file = test in FILE_TYPES and not any(run.workspace.collection.glob(FILE_TYPES[test]))
        return bool(arguments) or test in PYTHON_2 or no_such_file

    status = 0
    for options in [arguments] if arguments else [["--skip-test", "pylint"], [*PYLINT, "--exclude", "tests/"]]:
        status |= ansible_test(run, "sanity", "--python", PYTHON, "--junit", *options)[0]
    read_junit(run, "ansible-test-sanity-*.xml", may_skip)
    return status


def last_unit_report(run: SuiteRun) -> str:
    """The last of the contexts of unit tests that has a JUnit file, or an empty text."""
    reported = [context for context in UNIT_CONTEXTS if any(junit_folder(run).glob(f"python*-{context}-units.xml"))]
    return reported[-1] if reported else ""


def unit_tests(run: SuiteRun, *arguments: str) -> int:
    """Run ansible-test units. It stops at the first context in which a test fails, so the later ones are then run separately."""
    options = ["units", "--requirements", *arguments]
    result, _lines = ansible_test(run, *options)
    status = result
    for context in UNIT_CONTEXTS[:-1]:
        options += ["--exclude", f"tests/unit/plugins/{context}/"]
        if status and last_unit_report(run) == context:
            # The arguments may select no test of the later contexts.
            status, lines = ansible_test(run, *options, may_warn="WARNING: All targets skipped.")
            if status and last_unit_report(run) == context:
                run.fail(f"ansible-test {' '.join(options)} (exit status {status})", lines)
    read_junit(run, "python*-units.xml")
    return result


def units(run: SuiteRun, arguments: list[str]) -> int:
    """The unit tests."""
    return unit_tests(run, "--python", PYTHON, *arguments)


def target(run: SuiteRun, arguments: list[str]) -> int:
    """The compile and import tests, and the modules' unit tests, with another Python: that of a target."""
    [version] = arguments
    controller = ("--controller", f"origin:python={PYTHON}")
    tests = ("--test", "compile", "--test", "import")
    compiled, _lines = ansible_test(run, "sanity", *controller, "--target-python", version, *tests, "--junit")
    read_junit(run, "ansible-test-sanity-*.xml")
    # The tests of modules use the sandbox, which needs Python 3.10.
    folders = ["module_utils"] if version == "3.9" else ["module_utils", "modules"]
    paths = [f"tests/unit/plugins/{folder}/" for folder in folders]
    tested = unit_tests(run, *controller, "--target-python", f"venv/{version}", *paths)
    return compiled or tested


def integration(run: SuiteRun, arguments: list[str]) -> int:
    """The integration targets."""
    options = ("--python", PYTHON, "--local", "--continue-on-error")
    status, lines = ansible_test(run, "integration", *options, *arguments)
    for report in (run.workspace.collection / "tests" / "output" / "data").glob("integration-*.json"):
        run.passed += len(json.loads(report.read_text(encoding="utf-8"))["targets"])
    for number, line in enumerate(lines):
        if "integration test(s) listed below" in line:
            for name in lines[number + 1 :]:
                run.fail(name, target_output(name, lines[:number]))
    return status


def playbooks(run: SuiteRun, arguments: list[str]) -> int:
    """The integration targets that mainly run ansible-playbook, or those named in the arguments."""
    return integration(run, arguments or list(PLAYBOOKS))


def target_output(name: str, lines: list[str]) -> list[str]:
    """The first lines that an integration target printed from its last failed task on."""
    starts = [number for number, line in enumerate(lines) if re.match(r"Running \S+ integration test", line)]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        if lines[start].startswith(f"Running {name} "):
            lines = lines[start:end]
            break
    task = failed_task = 0
    for number, line in enumerate(lines):
        if line.startswith("TASK ["):
            task = number
        elif line.startswith(("fatal: ", "failed: ")):
            failed_task = task
    return lines[failed_task:][:MAX_LINES]


def rotation(run: SuiteRun, arguments: list[str]) -> int:
    """Rotations of a key, each disturbed at a step, or the tests in the arguments."""
    report = junit_folder(run) / "rotation.xml"
    options = ("-q", "--numprocesses=2", "-p", "no:cacheprovider", f"--junit-xml={report}")
    status, _lines = run.execute("pytest", *options, *(arguments or ["tests/rotation/test_matrix.py", "--cells=5"]))
    read_junit(run, report.name)
    return status


def soak(run: SuiteRun, arguments: list[str]) -> int:
    """The integration targets, including the parts that take minutes."""
    config = run.workspace.collection / "tests" / "integration" / "integration_config.yml"
    config.write_text("soak: true\n", encoding="utf-8")
    return integration(run, arguments)


def lint(run: SuiteRun, arguments: list[str]) -> int:
    """The linters, and pylint for the tests."""
    for command, proof in LINTERS:
        name = " ".join(command[:2]) if command[0] in ("python", "ruff") else command[0]
        run.write(f"--- {name}")
        status, lines = run.execute(*command)
        if status or not re.search(proof, "\n".join(lines), re.MULTILINE):
            run.fail(name, lines)
        else:
            run.passed += 1
    return sanity(run, [*PYLINT, "tests/"])


def coverage(run: SuiteRun, arguments: list[str]) -> int:
    """The unit tests with the coverage of plugins/, as a table and as pages in .build/coverage."""
    status = units(run, ["--coverage", *arguments])
    folder = run.workspace.collection / "tests" / "output" / "coverage"
    # ansible-test reports files that no test imports separately, so the totals are computed here.
    ansible_test(run, "coverage", "combine", "--stub")
    data, only = f"--data-file={folder / 'all'}", "--include=plugins/*"
    reports = (
        ("combine", "--quiet", data, str(folder / "coverage"), str(folder / "coverage=stub-01")),
        ("html", "--quiet", data, only, f"--directory={BUILD / 'coverage'}"),
        ("json", "--quiet", data, only, f"-o{folder / 'all.json'}"),
        ("report", data, only, "--show-missing", "--skip-covered"),
    )
    status = status or max(run.execute("coverage", *report)[0] for report in reports)
    if not status:
        totals = json.loads((folder / "all.json").read_text(encoding="utf-8"))["totals"]
        for kind, covered, number in (("line", "lines", "statements"), ("branch", "branches", "branches")):
            share = 100 * totals[f"covered_{covered}"] / totals[f"num_{number}"]
            run.write(f"{kind} coverage: {share:.1f} % ({totals[f'covered_{covered}']} of {totals[f'num_{number}']})")
    return status


SUITES: dict[str, Callable[[SuiteRun, list[str]], int]] = {
    suite.__name__: suite for suite in (sanity, units, target, integration, playbooks, rotation, soak, lint, coverage)
}


def run_suite(suite: str, arguments: list[str], log_file: Path, verbose: bool) -> SuiteRun:
    """Run a suite in a workspace of its own and return its results."""
    started = time.monotonic()
    log_file.parent.mkdir(parents=True, exist_ok=True)
    with log_file.open("w", encoding="utf-8") as log, temporary_workspace() as workspace:
        run = SuiteRun(workspace, log, verbose)
        status = SUITES[suite](run, arguments)
    output = log_file.read_text(encoding="utf-8").splitlines()
    if status and not run.failures:
        run.fail(f"exit status {status}", output)
    if not run.passed and not run.failures:
        run.fail("no test ran", output)
    run.seconds = time.monotonic() - started
    return run
