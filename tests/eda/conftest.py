# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A sandbox whose clock runs at normal speed, and ansible-rulebook with the collection installed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sandbox import API_KEY, Sandbox, running_sandbox

CHECKOUT = Path(__file__).resolve().parents[2]
PROJECT = "wispy-lake-12345678"
EVENT = re.compile(r"EVENT (\S+) (\S+) (\S+)")


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[Sandbox]:
    failed = {"action": "start_compute", "status": "failed", "age": "2h"}
    with running_sandbox(
        tmp_path, projects=[{"id": PROJECT, "name": "shop", "compute": False, "operations": [failed]}]
    ) as running:
        running.control("PUT", "/clock", {"speed": 1})
        yield running


class Rulebook:
    """A running ansible-rulebook; C(output) holds what it has printed so far."""

    def __init__(self, command: list[str], folder: Path, env: dict[str, str], log: Path):
        self._log = log
        with log.open("w") as output:
            self.process = subprocess.Popen(command, cwd=folder, env=env, stdout=output, stderr=subprocess.STDOUT)

    @property
    def output(self) -> str:
        return self._log.read_text()

    def events(self) -> list[tuple[str, str, str]]:
        """Id, previous status and status of each event."""
        return EVENT.findall(self.output)

    def wait_for(self, done: Callable[[], bool], seconds: float = 60) -> None:
        end = time.monotonic() + seconds
        while not done():
            assert time.monotonic() < end, self.output
            assert self.process.poll() is None, self.output
            time.sleep(0.1)

    def end(self, number: signal.Signals = signal.SIGINT) -> str:
        self.process.send_signal(number)
        self.process.wait(30)
        return self.output


@pytest.fixture
def start(tmp_path: Path, sandbox: Sandbox) -> Iterator[Callable[..., Rulebook]]:
    """Start ansible-rulebook with a rulebook: a list of rule sets, or the name of one in the collection."""
    collections = tmp_path / "collections" / "ansible_collections" / "clouddb"
    collections.mkdir(parents=True)
    (collections / "control").symlink_to(CHECKOUT)
    # The checkout's path may have spaces, which neither scripts nor Ansible's modules support.
    (tmp_path / "venv").symlink_to(sys.prefix)
    python = str(tmp_path / "venv" / "bin" / "python")
    (tmp_path / "bin").mkdir()
    for program in ("ansible", "ansible-galaxy", "ansible-playbook"):
        script = tmp_path / "bin" / program
        script.write_text(f'#!/bin/sh\nexec {python} {tmp_path}/venv/bin/{program} "$@"\n')
        script.chmod(0o755)
    local = {"ansible_connection": "local", "ansible_python_interpreter": python}
    (tmp_path / "hosts.json").write_text(json.dumps({"all": {"hosts": {"localhost": local}}}))
    env = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "CLOUDDB_"))},
        "ANSIBLE_COLLECTIONS_PATH": str(tmp_path / "collections"),
        "ANSIBLE_HOME": str(tmp_path / "home"),
        "CLOUDDB_BASE_URL": sandbox.base_url,
        "CLOUDDB_API_KEY": API_KEY,
        "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}",
    }
    running: list[Rulebook] = []

    def run(rulebook: Any, **variables: Any) -> Rulebook:
        name = rulebook
        if not isinstance(rulebook, str):
            (tmp_path / "rulebook.yml").write_text(json.dumps(rulebook))
            name = "rulebook.yml"
        (tmp_path / "vars.yml").write_text(json.dumps({"ready": True, **variables}))
        program = str(tmp_path / "venv" / "bin" / "ansible-rulebook")
        options = ["--rulebook", name, "--inventory", "hosts.json", "--vars", "vars.yml"]
        running.append(Rulebook([python, program, *options], tmp_path, env, tmp_path / f"log{len(running)}"))
        return running[-1]

    yield run
    for each in running:
        if each.process.poll() is None:
            each.end(signal.SIGKILL)
