# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs job templates as AWX does: ansible-runner, with the environment that the credential type injects."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import ansible_runner
import yaml
from installation import user_environment
from jinja2 import StrictUndefined
from jinja2.sandbox import ImmutableSandboxedEnvironment

# ansible-runner writes the environment of the playbook, secrets included, to this file. AWX does not keep it unmasked.
WITH_ENVIRONMENT = "command"


class Job(NamedTuple):
    """The status, the events and the artifacts of a finished job."""

    status: str
    events: list[dict[str, Any]]
    artifacts: Path

    def results(self, task: str) -> list[dict[str, Any]]:
        ended = ("runner_on_ok", "runner_on_failed")
        data = [event["event_data"] for event in self.events if event["event"] in ended]
        return [each["res"] for each in data if each["task"] == task]

    def failed_hosts(self) -> list[str]:
        """The failed and unreachable hosts of the job's last event."""
        [stats] = [event["event_data"] for event in self.events if event["event"] == "playbook_on_stats"]
        return sorted({*stats["failures"], *stats["dark"]})

    def failures(self) -> list[Any]:
        return [event["event_data"]["res"].get("msg") for event in self.events if event["event"] == "runner_on_failed"]

    def files_with(self, secret: str) -> list[str]:
        files = [path for path in self.artifacts.rglob("*") if path.is_file()]
        return [str(path.relative_to(self.artifacts)) for path in files if secret.encode() in path.read_bytes()]


class Controller:
    """Runs Ansible's programs with the given collections only."""

    def __init__(self, root: Path, collections: list[Path]) -> None:
        self.root = root
        self.collection = collections[0] / "ansible_collections" / "clouddb" / "control"
        self.files = self.collection / "extensions" / "awx"
        (root / "venv").symlink_to(sys.prefix)
        self._bin = root / "venv" / "bin"
        programs = root / "bin"
        programs.mkdir()
        for name in ("ansible-builder", "ansible-galaxy", "ansible-inventory", "ansible-playbook"):
            # A script's first line names the Python in the checkout, whose path may contain spaces.
            (programs / name).write_text(
                f'#!/bin/sh\nexec {self._bin / "python"} {self._bin / name} "$@"\n', encoding="utf-8"
            )
            (programs / name).chmod(0o755)
        self.env = {
            **user_environment(root),
            "ANSIBLE_COLLECTIONS_PATH": os.pathsep.join(map(str, collections)),
            "ANSIBLE_LOCALHOST_WARNING": "false",
            "ANSIBLE_INVENTORY_UNPARSED_WARNING": "false",
            "LC_ALL": "C.UTF-8",
        }

    def run(self, *command: str, env: dict[str, str] | None = None, code: int = 0) -> str:
        """Run a program that must end with this exit status, and return its output."""
        done = subprocess.run(command, env={**self.env, **(env or {})}, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    def settings(self, file: str) -> Any:
        """The content of an AWX file, with its templates unrendered."""
        return yaml.safe_load((self.files / file).read_text(encoding="utf-8"))

    def template(self, name: str) -> dict[str, Any]:
        [found] = [
            each
            for each in self.settings("configuration/job_templates.yml")["controller_templates"]
            if each["name"] == name
        ]
        return dict(found)

    def injected(self, credential: dict[str, str]) -> dict[str, str]:
        """The environment that the credential type injects for these inputs."""
        jinja = ImmutableSandboxedEnvironment(undefined=StrictUndefined)
        env = self.settings("credential_type/injectors.yml")["env"]
        return {name: jinja.from_string(template).render(credential) for name, template in env.items()}

    def launch(
        self,
        template: str,
        folder: Path,
        credential: dict[str, str] | None = None,
        answers: dict[str, Any] | None = None,
        inventory: dict[str, Any] | None = None,
        env: dict[str, str] | None = None,
    ) -> Job:
        """Run a job template until it ends; C(answers) are those to its survey."""
        playbook = self.template(template)["playbook"]
        return self.play(
            playbook, folder, {**(self.injected(credential) if credential else {}), **(env or {})}, answers, inventory
        )

    def play(
        self,
        playbook: str,
        folder: Path,
        env: dict[str, str],
        extra_vars: dict[str, Any] | None = None,
        inventory: dict[str, Any] | None = None,
    ) -> Job:
        (folder / "inventory").mkdir(parents=True)
        (folder / "inventory" / "hosts.json").write_text(json.dumps(inventory or {"all": {}}), encoding="utf-8")
        (folder / "project").symlink_to(self.collection / "examples")
        runner = ansible_runner.run(
            private_data_dir=str(folder),
            playbook=playbook,
            extravars=extra_vars or {},
            envvars={**self.env, **env},
            quiet=True,
        )
        return Job(runner.status, list(runner.events), Path(runner.config.artifact_dir))
