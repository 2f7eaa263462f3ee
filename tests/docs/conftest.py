# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures to follow a guide: an empty folder, a shell, the installed collection, an account on a sandbox."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
# tests/tools/workspace.py copies it to a path below ansible_collections.
sys.path.insert(0, str(CHECKOUT.parents[2]))

from shell import Shell  # noqa: E402

from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox, running_sandbox  # noqa: E402

PROJECTS = [
    {
        "id": "wispy-lake-12345678",
        "name": "shop",
        "region_id": "aws-eu-central-1",
        "pg_version": 17,
        "operations": [
            {"action": "apply_config", "status": "failed", "age": "2h", "error": "could not reach the compute"},
            {"action": "suspend_compute", "age": "1h"},
        ],
    },
    {"id": "calm-hill-87654321", "name": "blog", "region_id": "aws-us-east-2", "pg_version": 16, "compute": False},
]
REMOVED_PREFIXES = ("ANSIBLE_", "CLOUDDB_")


def pytest_configure(config: pytest.Config) -> None:
    # antsibull_docutils uses a deprecated function of docutils.
    config.addinivalue_line("filterwarnings", "ignore::PendingDeprecationWarning")


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[Sandbox]:
    """A sandbox whose clock runs in real time."""
    with running_sandbox(tmp_path, projects=PROJECTS) as running:
        running.control("PUT", "/clock", {"speed": 1})
        yield running


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a user who installed the collection from its tarball."""
    folder = tmp_path_factory.mktemp("user")
    real = os.environ
    write_programs(folder / "bin")
    env = {
        **{name: value for name, value in real.items() if not name.startswith(REMOVED_PREFIXES)},
        # One host at a time, so that the output has the order that the guides show.
        "ANSIBLE_FORKS": "1",
        "ANSIBLE_INVENTORY_UNPARSED_WARNING": "false",
        "ANSIBLE_LOCALHOST_WARNING": "false",
        "ANSIBLE_NOCOLOR": "true",
        "COLUMNS": "160",
        "HOME": str(folder),
        "PATH": os.pathsep.join([str(folder / "bin"), str(Path(sys.executable).parent), real["PATH"]]),
        # pip uses the package index and the cache of the user who runs the tests.
        "XDG_CACHE_HOME": real.get("XDG_CACHE_HOME", str(Path.home() / ".cache")),
        "XDG_CONFIG_HOME": real.get("XDG_CONFIG_HOME", str(Path.home() / ".config")),
    }
    galaxy = ("ansible-galaxy", "collection")
    subprocess.run(
        [*galaxy, "build", "--output-path", str(folder), str(CHECKOUT)], env=env, check=True, stdout=subprocess.DEVNULL
    )
    tarball = next(folder.glob("*.tar.gz"))
    subprocess.run([*galaxy, "install", "--offline", str(tarball)], env=env, check=True, stdout=subprocess.DEVNULL)
    return {**env, "COLLECTION_TARBALL": str(tarball)}


def write_programs(folder: Path) -> None:
    """Write wrappers for Ansible's programs; their path has no spaces, even if the path of the checkout does."""
    folder.mkdir()
    for program in Path(sys.executable).parent.glob("ansible*"):
        (folder / program.name).write_text(f'#!/bin/sh\nexec {sys.executable} {program} "$@"\n', encoding="utf-8")
        (folder / program.name).chmod(0o755)


@pytest.fixture
def shell(tmp_path: Path, environment: dict[str, str], sandbox: Sandbox) -> Iterator[Shell]:
    """A shell in an empty folder, with the address and the key of the sandbox."""
    folder = tmp_path / "guide"
    folder.mkdir()
    opened = Shell(
        folder,
        {**environment, "CLOUDDB_BASE_URL": sandbox.base_url, "CLOUDDB_API_KEY": sandbox.api_key},
        sandbox.api_key,
    )
    yield opened
    opened.close()
