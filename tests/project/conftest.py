# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A user who installed the collection from its tarball and copied the example project to an empty folder."""

from __future__ import annotations

import re
import shutil
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from installation import install_collection, run_program, user_environment

COLOR = re.compile(r"\x1b\[[0-9;]*m")
PROGRAMS = ("ansible", "check-jsonschema", "molecule", "pytest")


class Project:
    """A copy of the example project; its Molecule scenario has a port of its own."""

    def __init__(self, home: Path) -> None:
        # The folder is the same for all tests, so that the requirements of the sandbox are installed once.
        self.folder = home / "preview"
        example = home / ".ansible/collections/ansible_collections/clouddb/control/examples/project"
        shutil.copytree(example, self.folder, dirs_exist_ok=True)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.env = {
            **user_environment(home),
            # Those of an account, which no test may use.
            "CLOUDDB_API_KEY": "key-of-the-account",
            "CLOUDDB_BASE_URL": "http://127.0.0.1:1/api/v2",
            "NO_COLOR": "true",
            "SANDBOX_PORT": str(self.port),
        }

    def run(self, command: str) -> tuple[int, str]:
        """Run a shell command in the folder, and return its exit code and its output without colors."""
        done = run_program(["bash", "-c", command], self.folder, env=self.env)
        output = COLOR.sub("", done.stdout)
        print(f"$ {command}\n{output}")
        return done.returncode, output

    def replace(self, file: str, old: str, new: str) -> None:
        path = self.folder / file
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")

    def is_sandbox_running(self) -> bool:
        """Whether a process listens on the port of the Molecule scenario."""
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home folder of a user who installed the collection."""
    folder = tmp_path_factory.mktemp("user")
    (folder / "bin").mkdir()
    for program in Path(sys.executable).parent.glob("*"):
        if program.name.startswith(PROGRAMS):
            # A script's first line names the Python in the checkout, whose path may contain spaces.
            (folder / "bin" / program.name).write_text(f'#!/bin/sh\nexec {sys.executable} {program} "$@"\n')
            (folder / "bin" / program.name).chmod(0o755)
    install_collection(folder)
    return folder


@pytest.fixture
def project(home: Path) -> Iterator[Project]:
    copied = Project(home)
    yield copied
    if copied.is_sandbox_running():
        copied.run("molecule destroy")
