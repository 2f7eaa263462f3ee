# Copyright (c) clouddb.control contributors
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
import sys
import threading
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple, TextIO

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from workspace import CHECKOUT, Workspace, temporary_workspace

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
BUILD = CHECKOUT / ".build"
COLOR = re.compile(r"\x1b\[[0-9;]*m")
SKIPPED = re.compile(r"^WARNING: (All targets skipped|Skipping (sanity|tests|unit)|Excluding|Required program)")
MAX_LINES = 60
# A container may use fewer cores than the machine has.
CORES = len(os.sched_getaffinity(0))

# Sanity tests that have nothing to check: the collection has no file of this type, or does not support Python 2.
FILE_TYPES = {"pslint": "**/*.ps*1", "shellcheck": "**/*.sh"}
PYTHON_2 = {"future-import-boilerplate", "metaclass-boilerplate"}
# Reasons of pytest to skip a test that are no failure
MAY_SKIP = ("only root", "the file system", "only ansible-core from", "only where namespaces")
# PyPI has no wheel of PyYAML for this Python.
NO_LIBYAML = f'Skipping sanity test "yamllint" on Python {PYTHON} due to missing libyaml support in PyYAML.'

# The integration targets that mainly run ansible-playbook in processes of its own, which takes long.
PLAYBOOKS = ("many_hosts", "playbook_sandbox", "quickstart", "role_api_key_rotation", "secrets")

# Each linter, and what it prints if it checked at least one file.
LINTERS = (
    (("ruff", "format", "--check"), r"^[1-9]\d* files? already formatted"),
    (("ruff", "check"), r"\AAll checks passed!\Z"),  # without files, a warning comes first
    (("ansible-lint", "--nocolor"), r"Passed: 0 failure\(s\), 0 warning\(s\) in [1-9]"),
    (("antsibull-changelog", "lint"), ""),
    (("antsibull-docs", "lint-collection-docs", "--plugin-docs", "."), ""),
    (("codespell",), r"^0$"),
    (("reuse", "lint"), "^Congratulations!"),
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
    folder = Path.home() / ".ansible" / "test"
    with _cache_lock:
        # Two threads that import parts of this package at the same time would get unfinished ones of each other.
        from ansible_test._internal.python_requirements import get_venv_packages

        version = get_venv_packages(SimpleNamespace(version=PYTHON))["pip"]
        get_pip = folder / "cache" / f"get_pip_{version.replace('.', '_')}.py"
        get_pip.parent.mkdir(parents=True, exist_ok=True)
        if not get_pip.exists():
            shutil.copy(Path(__file__).with_name("get_pip.py"), get_pip)
        if not (folder / "id_rsa").exists():
            write_ssh_keys(folder)


def write_ssh_keys(folder: Path) -> None:
    """Create the SSH keys that ansible-test would create with ssh-keygen, which a minimal system does not have."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    (folder / "id_rsa.pub").write_bytes(public + b"\n")
    (folder / "id_rsa").touch(mode=0o600)
    (folder / "id_rsa").write_bytes(private)


def ansible_test(run: SuiteRun, *command: str) -> tuple[int, list[str]]:
    """Run a command of ansible-test; every warning about skipped work counts as a failure, but that about yamllint."""
    fill_cache()
    color = "yes" if run.verbose and sys.stdout.isatty() else "no"
    status, lines = run.execute("ansible-test", *command, "--color", color)
    skipped = {line for line in lines if SKIPPED.search(line)} - {f"WARNING: {NO_LIBYAML}"}
    run.failures += map(Failure, sorted(skipped))
    return status, lines


def junit_folder(run: SuiteRun) -> Path:
    return run.workspace.collection / "tests" / "output" / "junit"


def read_junit(run: SuiteRun, reports: str, may_skip: Callable[[str, str], bool] = lambda name, reason: False) -> None:
    """Add the test cases of JUnit files to the results. C(may_skip) is called with the name and the reason of a skipped one."""
    for report in sorted(junit_folder(run).glob(reports)):
        for case in ET.parse(report).iter("testcase"):
            name = re.sub(r"-python-[\d.]+$", "", case.get("name", ""))
            problems = {child.tag: child for child in case if child.tag in ("failure", "error", "skipped")}
            output = "\n".join(child.text or child.get("message") or "" for child in problems.values())
            if not problems:
                run.passed += 1
            elif set(problems) == {"skipped"} and may_skip(name, problems["skipped"].get("message") or output):
                run.not_applicable.append(name)
            else:
                run.fail(f"{case.get('classname')}.{name} ({', '.join(sorted(problems))})", output.splitlines())


def sanity(run: SuiteRun, arguments: list[str]) -> int:
    """All sanity tests, or those named in the arguments. Of tests/, make lint runs pylint, which takes long."""

    def may_skip(test: str, reason: str) -> bool:
        no_such_file = test in FILE_TYPES and not any(run.workspace.collection.glob(FILE_TYPES[test]))
        return bool(arguments) or test in PYTHON_2 or no_such_file or reason == NO_LIBYAML

    status = 0
    runs = [arguments] if arguments else [["--skip-test", "pylint"], *pylint_options(run, "--exclude", "tests/")]
    for options in runs:
        status |= ansible_test(run, "sanity", "--python", PYTHON, "--junit", *options)[0]
    read_junit(run, "ansible-test-sanity-*.xml", may_skip)
    return status


def pylint_options(run: SuiteRun, *options: str) -> list[list[str]]:
    """The options to run pylint; none if ansible-test would get a part of it from GitHub, as ansible-core 2.22.0rc1 does."""
    requirements = resources.files("ansible_test") / "_data" / "requirements" / "sanity.pylint.txt"
    if " @ https:" in requirements.read_text(encoding="utf-8"):
        run.not_applicable.append("pylint")
        return []
    return [["--test", "pylint", *options]]


def is_no_failure(_test: str, reason: str) -> bool:
    return reason.startswith(MAY_SKIP)


def run_pytest(run: SuiteRun, *arguments: str) -> int:
    """Run pytest on the collection, with a process for each core."""
    report = junit_folder(run) / "pytest.xml"
    status, _lines = run.execute("pytest", "-q", f"--numprocesses={CORES}", f"--junit-xml={report}", *arguments)
    read_junit(run, report.name, is_no_failure)
    return status


def unit_tests(run: SuiteRun, *arguments: str) -> int:
    """Run ansible-test units, which installs its own requirements. It stops at the first folder of plugins in which a test fails."""
    status, _lines = ansible_test(run, "units", "--requirements", *arguments)
    read_junit(run, "python*-units.xml", is_no_failure)
    return status


def matrix(run: SuiteRun, arguments: list[str]) -> int:
    """The unit tests as ansible-test runs them, with any supported ansible-core."""
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
    """The integration targets that mainly run ansible-playbook."""
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


def soak(run: SuiteRun, arguments: list[str]) -> int:
    """The integration targets, including the parts that take minutes, with modules that Ansible starts instead of forks."""
    config = run.workspace.collection / "tests" / "integration" / "integration_config.yml"
    config.write_text("soak: true\nclouddb_fork: false\n", encoding="utf-8")
    return integration(run, arguments)


def lint(run: SuiteRun, arguments: list[str]) -> int:
    """The linters, and pylint for the tests."""
    home = run.workspace.env.get("HOME", "")
    run.workspace.env["HOME"] = str(run.workspace.root)  # antsibull-docs writes a log there
    for command, proof in LINTERS:
        name = " ".join(command[:2]) if command[0] == "ruff" else command[0]
        run.write(f"--- {name}")
        status, lines = run.execute(*command)
        if status or not re.search(proof, "\n".join(lines), re.MULTILINE):
            run.fail(name, lines)
        else:
            run.passed += 1
    run.workspace.env["HOME"] = home
    return max((sanity(run, options) for options in pylint_options(run, "tests/")), default=0)


ANSIBLE_TEST: dict[str, Callable[[SuiteRun, list[str]], int]] = {
    suite.__name__: suite for suite in (sanity, matrix, target, integration, playbooks, soak, lint)
}

# The arguments of pytest for each other suite: the tests that run unless the user names some, and options.
IN_ONE_PROCESS = "--numprocesses=0"
SOAK = "--hypothesis-profile=soak"
PYTEST: dict[str, tuple[list[str], list[str]]] = {
    "units": (["tests/unit"], [IN_ONE_PROCESS]),
    "rotation": (["tests/rotation"], []),
    "properties": (["tests/unit"], [SOAK]),
    "fork": (["tests/unit/plugins/action"], [SOAK]),
    "awx": (["tests/awx"], []),
    "browser": (["tests/browser"], [IN_ONE_PROCESS]),
    "distribution": (["tests/distribution"], []),
    "eda": (["tests/eda"], [IN_ONE_PROCESS]),
    "guides": (["tests/docs"], ["--dist=loadfile"]),
    "metrics": (["tests/metrics"], []),
    "openapi": (["tests/openapi"], [IN_ONE_PROCESS]),
    "project": (["tests/project"], []),
    "release": (["tests/release"], [IN_ONE_PROCESS]),
}

# Programs that a suite needs, with their packages in Debian
JAVA = ("java", "openjdk-17-jre-headless")
PROGRAMS = {
    "browser": [(os.environ.get("CHROMIUM", "chromium"), "chromium")],
    "eda": [JAVA],
    "guides": [JAVA, ("pg_virtualenv", "postgresql")],
    "metrics": [("promtool", "prometheus")],
}


def run_tests(run: SuiteRun, suite: str, arguments: list[str]) -> int:
    """Run a suite. Options are passed to its tool; tests that are named replace those of the suite."""
    if suite in ANSIBLE_TEST:
        return ANSIBLE_TEST[suite](run, arguments)
    tests, options = PYTEST[suite]
    named = any(argument.startswith("tests/") for argument in arguments)
    return run_pytest(run, *options, *([] if named else tests), *arguments)


def run_suite(suite: str, arguments: list[str], log_file: Path, verbose: bool) -> SuiteRun:
    """Run a suite in a workspace of its own and return its results."""
    started = time.monotonic()
    log_file.parent.mkdir(parents=True, exist_ok=True)
    with log_file.open("w", encoding="utf-8") as log, temporary_workspace() as workspace:
        run = SuiteRun(workspace, log, verbose)
        status = run_tests(run, suite, arguments)
    output = log_file.read_text(encoding="utf-8").splitlines()
    if status and not run.failures:
        run.fail(f"exit status {status}", output)
    if not run.passed and not run.failures:
        run.fail("no test ran", output)
    run.seconds = time.monotonic() - started
    return run
