# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs playbooks with a real ansible-playbook against a sandbox, on hosts that are this machine."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from .sandbox import Sandbox

ROOT = Path(__file__).parents[6]
KEPT_VARIABLES = {"LANG", "LC_ALL", "LD_LIBRARY_PATH", "PATH", "PYTHONPATH"}
REASON = "clouddb.control: The module runs in a process that Ansible starts. "
# Writes each result of each task, with the types of its values, to a file: a line for each.
CALLBACK = '''
import json, os
from ansible.plugins.callback import CallbackBase

def typed(value):
    if isinstance(value, dict):
        value = {str(name): typed(each) for name, each in value.items()}
    elif isinstance(value, (list, tuple)):
        value = [typed(each) for each in value]
    elif value is None or isinstance(value, (bool, int, float)):
        return value
    else:
        return [type(value).__name__, str(value)]
    return value

class CallbackModule(CallbackBase):
    """Writes results."""
    CALLBACK_VERSION = 2.0
    CALLBACK_NAME = "typed"

    def _write(self, event, result):
        task = getattr(result, "task", None) or result._task
        value = getattr(result, "result", None) or result._result
        with open(os.environ["TYPED_RESULTS"], "a") as file:
            print(json.dumps([task.get_name(), event, typed(value)]), file=file)

    def v2_runner_on_ok(self, result): self._write("ok", result)
    def v2_runner_on_failed(self, result, ignore_errors=False): self._write("failed", result)
    def v2_runner_on_unreachable(self, result): self._write("unreachable", result)
    def v2_runner_item_on_ok(self, result): self._write("item ok", result)
    def v2_runner_item_on_failed(self, result): self._write("item failed", result)
'''
# To a host that is not this machine, as far as Ansible knows
OTHER_CONNECTION = """
DOCUMENTATION = "name: other\\nextends_documentation_fragment: [connection_pipelining]"
from ansible.plugins.connection import local
class Connection(local.Connection): transport = 'other'
"""


@dataclass
class Ran:
    """What a run has printed, and its results: name of the task, what became of it, values with their types."""

    status: int
    stdout: str
    stderr: str
    results: list[tuple[str, str, dict[str, Any]]]

    def ways(self) -> dict[str, str]:
        """For each task in the output of -vvv: why it does not run in a fork. The reasons have (OTHER) in place of paths."""
        found = {}
        for section in re.split(r"^TASK \[", self.stdout, flags=re.MULTILINE)[1:]:
            name, _bracket, rest = section.partition("] *")
            reasons = {re.sub(r"\(/[^)]*\)", "(OTHER)", text) for text in re.findall(re.escape(REASON) + "(.*)", rest)}
            # Ansible shows the commands that it runs.
            way = "a command" if " EXEC " in rest else "fork" if "ok: [" in rest else "failed in a fork"
            found[name] = " ".join(reasons) or way
        return found


class Playbook:
    """Runs plays in a folder of their own, on C(hosts): their names and variables."""

    def __init__(self, folder: Path, service: Sandbox, root: Path = ROOT) -> None:
        self.folder = folder
        self.service = service
        for name in ("callbacks", "connections", "home", "tmp"):
            (folder / name).mkdir(parents=True)
        (folder / "callbacks" / "typed.py").write_text(CALLBACK)
        (folder / "connections" / "other.py").write_text(OTHER_CONNECTION)
        self.environment = {
            **{name: value for name, value in os.environ.items() if name in KEPT_VARIABLES},
            "ANSIBLE_CALLBACKS_ENABLED": "typed",
            "ANSIBLE_CALLBACK_PLUGINS": str(folder / "callbacks"),
            "ANSIBLE_COLLECTIONS_PATH": str(root),
            "ANSIBLE_COMMAND_WARNINGS": "false",
            "ANSIBLE_CONNECTION_PLUGINS": str(folder / "connections"),
            "ANSIBLE_HOME": str(folder / "home" / ".ansible"),
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_REMOTE_TMP": str(folder / "tmp"),
            "CLOUDDB_API_KEY": service.api_key,
            "CLOUDDB_BASE_URL": service.base_url,
            "HOME": str(folder / "home"),
            "TMPDIR": str(folder / "tmp"),
            "TYPED_RESULTS": str(folder / "results"),
        }
        own = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
        self.hosts: dict[str, dict[str, Any]] = {"own": own}
        # A shell that starts a program in the background lets it ignore SIGINT.
        self.is_background = False

    def start(self, plays: str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        """Start ansible-playbook with the text of a playbook, in a session of its own."""
        inventory, playbook = self.folder / "hosts.json", self.folder / "plays.yml"
        inventory.write_text(json.dumps({"all": {"hosts": self.hosts}}))
        playbook.write_text(plays, encoding="utf-8")
        interrupt = signal.SIG_IGN if self.is_background else signal.SIG_DFL
        return subprocess.Popen(
            [sys.executable, "-m", "ansible.cli.playbook", "-i", str(inventory), str(playbook), *arguments],
            cwd=self.folder,
            env={**self.environment, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=partial(signal.signal, signal.SIGINT, interrupt),
        )

    def run(self, plays: str, *arguments: str, **environment: str) -> Ran:
        """Run ansible-playbook to its end."""
        written = self.folder / "results"
        written.write_text("")
        with self.start(plays, *arguments, **environment) as process:
            stdout, stderr = process.communicate(timeout=600)
        results = [tuple(json.loads(line)) for line in written.read_text().splitlines()]
        return Ran(process.returncode, stdout, stderr, results)
