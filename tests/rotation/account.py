# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Three hosts in a folder, an account on a sandbox, and ansible-playbook to rotate their key."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox import API_KEY, Sandbox, running_sandbox
from scenarios import PLAIN, Scenario

FOLDER = Path(__file__).resolve().parent
CHECKOUT = FOLDER.parents[1]
HOSTS = ("web1", "web2", "web3")
NAME = "deploy-{timestamp}"
OTHER_KEY = "deploy-tools"
SECRET = re.compile(r"\b[a-z0-9]{64}\b")
SECONDS = 300
Files = dict[str, str]


@dataclass(frozen=True)
class Run:
    """An ended run: its exit status, its output, and what the callback plugin wrote down."""

    status: int
    output: str
    trace: list[dict[str, Any]]

    def steps(self) -> list[dict[str, Any]]:
        """The steps that used a connection: name, number among those of this name, and the hosts."""
        steps: list[dict[str, Any]] = []
        for line in self.trace:
            if "step" in line:
                steps.append({"step": line["step"], "hosts": []})
            elif "connected" in line and steps and line["connected"] not in steps[-1]["hosts"]:
                steps[-1]["hosts"].append(line["connected"])
        return [step for step in steps if step["hosts"]]

    def end(self) -> str:
        return "\n".join([f"exit status {self.status}", *self.output.splitlines()[-60:]])

    def result(self) -> dict[str, Any]:
        """The fact C(api_key_rotation_result)."""
        return [line["role_result"] for line in self.trace if "role_result" in line][-1]

    def messages(self) -> str:
        return "\n".join(text for line in self.trace for text in line.get("messages", []))

    def named(self) -> set[str]:
        """The hosts that failures name: in a message, or because the task that failed was theirs alone."""
        failures = [line for line in self.trace if line.get("result") in ("failed", "unreachable")]
        words = {word for line in failures for text in line["messages"] for word in re.findall(r"\w+", text)}
        return words | {line["host"] for line in failures if not line["run_once"]}


@dataclass(frozen=True)
class State:
    """The hosts' files, and which secrets in them the service accepts, with the ids of their keys."""

    files: Files
    accepted: dict[str, int]
    active: tuple[int, ...]
    """The ids of the active keys that the role manages, oldest first."""

    @property
    def newest(self) -> int | None:
        return self.active[-1] if self.active else None


def secrets(files: Files) -> list[str]:
    """The secrets of all hosts; a previous version in a vault is none, and neither is a checksum in a record."""
    return [secret for name, text in files.items() if in_use(name) for secret in SECRET.findall(text)]


def in_use(name: str) -> bool:
    return name.endswith((".key", ".vault")) and not name.startswith(".")


class Account:
    """An account whose states are stored and restored, so that each run starts from the same one."""

    def __init__(self, root: Path, sandbox: Sandbox, env: dict[str, str]) -> None:
        self.root = root
        self.sandbox = sandbox
        self.files_folder = root / "files"
        self.hosts: tuple[str, ...] = HOSTS
        """The hosts in the inventory."""
        self.older_secret = ""
        """The secret of the key that the next rotation revokes."""
        self._env = env
        self._database = root / "sandbox.db"
        self._stored: dict[str, list[tuple[Any, ...]]] = {}
        self._older: dict[str, str] = {}
        self.files_folder.mkdir()
        with closing(sqlite3.connect(self._database)) as database, database as _transaction:
            # Ids that differ from all other numbers in the output.
            database.execute("UPDATE sqlite_sequence SET seq = 7000 WHERE name = 'api_keys'")
        sandbox.api("POST", "/api_keys", {"key_name": OTHER_KEY})
        self._observer = sandbox.api("POST", "/api_keys", {"key_name": "observer"})["key"]
        self.store("empty")

    # States.

    def store(self, state: str) -> None:
        """Store the account's keys, the hosts' files and the older secret under a name."""
        self._older[state] = self.older_secret
        with closing(sqlite3.connect(self._database)) as database:
            self._stored[state] = database.execute("SELECT * FROM api_keys").fetchall()
        shutil.copytree(self.files_folder, self.root / "stored" / state, symlinks=True)

    def restore(self, state: str, tasks: bool = False) -> State:
        """Restore a state, which is made by the role when it is needed first, and observe it."""
        name = state if state == "empty" else f"{state}, tasks" if tasks else state
        if name not in self._stored:
            self.restore("empty", tasks)
            self.make(state, tasks)
            self.store(name)
        with closing(sqlite3.connect(self._database)) as database, database as _transaction:
            database.execute("DELETE FROM api_keys")
            marks = ", ".join("?" * len(self._stored[name][0]))
            database.executemany(f"INSERT INTO api_keys VALUES ({marks})", self._stored[name])
        self.hosts = HOSTS
        self.older_secret = self._older[name]
        shutil.rmtree(self.files_folder)
        shutil.copytree(self.root / "stored" / name, self.files_folder, symlinks=True)
        return self.observe()

    def observe(self) -> State:
        files = self.files()
        found = {secret: self.key_id(secret) for secret in set(secrets(files))}
        accepted = {secret: key for secret, key in found.items() if key}
        return State(files, accepted, tuple(key["id"] for key in self.keys()))

    def make(self, state: str, tasks: bool) -> None:
        """Rotate once; for the state unrevoked, twice, the second time without revocation."""
        first = self.run(tasks=tasks)
        assert first.status == 0, first.output
        self.older_secret = (self.files_folder / "web2.key").read_text()
        if state == "unrevoked":
            self.sandbox.fault("status", status=500, method="DELETE", times=None)
            second = self.run(tasks=tasks)
            self.sandbox.control("DELETE", "/faults")
            assert second.status != 0 and len(self.keys()) == 2, second.output

    def keys(self) -> list[dict[str, Any]]:
        """The active keys that the role manages, oldest first."""
        keys = [key for key in self.sandbox.api("GET", "/api_keys") if re.match(r"deploy-2\d{7}T", key["name"])]
        return sorted(keys, key=lambda key: (key["created_at"], key["id"]))

    def other_keys(self) -> list[str]:
        return sorted(key["name"] for key in self.sandbox.api("GET", "/api_keys") if key not in self.keys())

    def key_id(self, secret: str) -> int | None:
        """The id of the key with this secret: the one used latest, if it is used to list the keys."""
        answer = self.sandbox.application.call("GET", "/api/v2/api_keys", secret)
        if answer.status != 200:
            return None
        return int(max(json.loads(answer.content), key=lambda key: key["last_used_at"] or "")["id"])

    def files(self) -> Files:
        return {path.name: path.read_text() for path in sorted(self.files_folder.glob("*.*")) if path.is_file()}

    # Runs.

    def variables(self, tasks: bool) -> dict[str, Any]:
        """The variables of the role, with a new key in each run, and those of the deployment tasks."""
        variables: dict[str, Any] = {
            "api_key_rotation_name": NAME,
            "api_key_rotation_dest": f"{self.files_folder}/{{{{ inventory_hostname }}}}.key",
            "api_key_rotation_max_age": "0",
        }
        if tasks:
            variables |= {
                "api_key_rotation_deploy_tasks": [str(FOLDER / "hooks" / "deploy.yml")],
                "api_key_rotation_rollback_tasks": [str(FOLDER / "hooks" / "roll_back.yml")],
                "vault_program": str(FOLDER / "hooks" / "vault.py"),
                "vault": f"{self.files_folder}/{{{{ inventory_hostname }}}}.vault",
            }
        return variables

    def run(
        self,
        scenario: Scenario = PLAIN,
        *arguments: str,
        tasks: bool = False,
        event: dict[str, Any] | None = None,
        **variables: Any,
    ) -> Run:
        if event and event["what"] == "second_rotation":
            second = self.root / "second"
            event["command"] = self.command(second, PLAIN.playbook(self.variables(tasks)))
            event["environment"] = {"ROTATION_TEST": str(second)}
        playbook = scenario.playbook({**self.variables(tasks), **variables})
        return self.play(playbook, *scenario.arguments, *arguments, event=event)

    def play(self, playbook: list[dict[str, Any]], *arguments: str, event: dict[str, Any] | None = None) -> Run:
        """Run a playbook until every process of the run has ended."""
        folder = self.root / "run"
        shutil.rmtree(folder, ignore_errors=True)
        command = self.command(folder, playbook, *arguments)
        if event:
            (folder / "event.json").write_text(json.dumps(event))
        status, output = self.execute(command, folder)
        lines = (folder / "trace").read_text().splitlines() if (folder / "trace").exists() else []
        return Run(status, output, [json.loads(line) for line in lines])

    def command(self, folder: Path, playbook: list[dict[str, Any]], *arguments: str) -> list[str]:
        """Write the playbook and the inventory to a folder, and return the command."""
        folder.mkdir(exist_ok=True)
        (folder / "play.json").write_text(json.dumps(playbook, indent=1))
        inventory = {
            "vars": {"ansible_connection": "hostile", "ansible_python_interpreter": str(self.root / "venv/bin/python")},
            "hosts": {"localhost": {}},
            "children": {"users": {"hosts": {host: {} for host in self.hosts}}},
        }
        (folder / "hosts.json").write_text(json.dumps({"all": inventory}))
        return [
            str(self.root / "venv/bin/python"),
            str(self.root / "venv/bin/ansible-playbook"),
            f"--inventory={folder / 'hosts.json'}",
            str(folder / "play.json"),
            *arguments,
        ]

    def execute(self, command: list[str], folder: Path) -> tuple[int, str]:
        """Run a command, and wait for the processes that it leaves behind when it is killed."""
        env = {
            **self._env,
            "CLOUDDB_API_KEY": API_KEY,
            "CLOUDDB_BASE_URL": self.sandbox.base_url,
            "ROTATION_FILES": str(self.files_folder),
            "ROTATION_OBSERVER": self._observer,
            "ROTATION_TEST": str(folder),
        }
        end, inherited = os.pipe()
        with (folder / "output").open("w") as output:
            process = subprocess.Popen(
                command,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=[inherited],
            )
        os.close(inherited)
        try:
            status = process.wait(SECONDS)
        finally:
            process.kill()
        with os.fdopen(end, "rb") as pipe:
            pipe.read()
        return status, (folder / "output").read_text()


@contextmanager
def running_account(root: Path) -> Iterator[Account]:
    """An account on a sandbox of its own, and a module server."""
    collections = root / "collections" / "ansible_collections" / "clouddb"
    collections.mkdir(parents=True)
    (collections / "control").symlink_to(CHECKOUT)
    # The path of a Python interpreter must not contain spaces.
    (root / "venv").symlink_to(sys.prefix)
    (root / "payloads").mkdir()
    # The path of a socket has at most 107 characters.
    sockets = tempfile.TemporaryDirectory()
    server = f"{sockets.name}/modules"
    env = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "CLOUDDB_"))},
        "ANSIBLE_CALLBACK_PLUGINS": str(FOLDER / "callback"),
        "ANSIBLE_COLLECTIONS_PATH": str(root / "collections"),
        "ANSIBLE_CONNECTION_PLUGINS": str(FOLDER / "connection"),
        "ANSIBLE_HOME": str(root / "home"),
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_PIPELINING": "1",
        "LC_ALL": "C.UTF-8",
        "ROTATION_MODULE_SERVER": server,
        "ROTATION_PAYLOADS": str(root / "payloads"),
    }
    process = subprocess.Popen(
        [str(root / "venv/bin/python"), str(FOLDER / "module_server.py"), server], stdin=subprocess.PIPE
    )
    try:
        while not Path(server).exists():
            assert process.poll() is None, "The module server did not start."
            time.sleep(0.01)
        with running_sandbox(root) as sandbox:
            sandbox.control("PUT", "/clock", {"speed": 1})
            yield Account(root, sandbox, env)
    finally:
        process.communicate()
        sockets.cleanup()
