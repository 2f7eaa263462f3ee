# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a task runs, with a real ansible-playbook: when in a fork, what a fork leaves behind, and where secrets are meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.clouddb.control.tests.unit.support.playbook import REASON, Playbook
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox

WAYS = Path(__file__).with_name("ways.yml").read_text(encoding="utf-8")
# Longer than a busy machine needs, and shorter than the module waits.
SECONDS = 60.0
# Takes the place of something private of ansible-core for one task, in the process that starts the processes of tasks.
SIMULATE = """
    def v2_playbook_on_task_start(self, task, is_conditional):
        from unittest import mock
        from ansible.module_utils import basic
        from ansible_collections.clouddb.control.plugins.plugin_utils import _fork
        if getattr(self, "patch", None):
            self.patch.stop()
        patches = {patches}
        self.patch = patches.get(task.get_name())
        if self.patch:
            self.patch.start()
"""
BROKEN = "side_effect=AttributeError('gone')"
PATCHES = {
    "no arguments of modules": (
        "_fork, 'basic', object()",
        "This version of ansible-core passes options in an unknown way.",
    ),
    "another _execute_module": (
        "_fork.ForkAction, '_execute_module', lambda self, **given: _fork.ActionBase._execute_module(self, **given)",
        "Another plugin has replaced a part of Ansible.",
    ),
    "no _interpreter": ("_fork.ForkAction, '_interpreter', " + BROKEN, "AttributeError: gone"),
    "no encoder": ("_fork, 'encoded', " + BROKEN, "AttributeError: gone"),
    "another _BuiltModule": (
        "_fork, 'module_common', mock.Mock(_BuiltModule=mock.Mock(side_effect=TypeError('gone')))",
        "TypeError: gone",
    ),
    "_configure_module is not called": (
        "_fork.ForkAction, '_configure_module', _fork.ActionBase._configure_module",
        "a command",
    ),
}


@pytest.fixture
def playbook(tmp_path: Path, sandbox: Sandbox) -> Playbook:
    return Playbook(tmp_path / "run", sandbox)


# Of these cases, test_verbose.py and test_fork_process.py have some on each change.
@pytest.mark.soak
def test_when_a_task_runs_in_a_fork(playbook: Playbook, tmp_path: Path) -> None:
    (other := tmp_path / "other").mkdir()
    (other / "python").symlink_to(sys.executable)
    playbook.hosts["other"] = {"ansible_connection": "local", "ansible_python_interpreter": str(other / "python")}
    playbook.hosts["discovered"] = {"ansible_connection": "local", "ansible_python_interpreter": "auto_silent"}
    (shells := playbook.folder / "shell_plugins").mkdir()
    (shells / "other.py").write_text(
        'DOCUMENTATION = "name: other\\nextends_documentation_fragment: [shell_common]"\n'
        "from ansible.plugins.shell import sh\nclass ShellModule(sh.ShellModule): SHELL_FAMILY, COMPATIBLE_SHELLS = 'other', frozenset()\n"
    )
    plays = yaml.safe_load(WAYS)
    ran = playbook.run(WAYS, "-vvv")
    expected = dict(task["name"].split(": ", 1) for play in plays for task in play["tasks"] if task["name"] != "set")
    found = {name.partition(": ")[0]: way for name, way in ran.ways().items() if name != "set"}
    assert found == expected, ran.stdout + ran.stderr


@pytest.mark.soak
def test_files_that_are_kept(playbook: Playbook) -> None:
    play = {"hosts": "own", "gather_facts": False, "tasks": [{"name": "kept", "clouddb.control.project_info": {}}]}
    ran = playbook.run(yaml.safe_dump([play]), "-vvv", ANSIBLE_KEEP_REMOTE_FILES="1")
    assert ran.ways() == {"kept": "ANSIBLE_KEEP_REMOTE_FILES is set."}


@pytest.mark.soak
def test_a_task_runs_whatever_is_missing_in_ansible(playbook: Playbook) -> None:
    patches = ", ".join(f"{name!r}: mock.patch.object({patch})" for name, (patch, _way) in PATCHES.items())
    with (playbook.folder / "callbacks" / "typed.py").open("a") as file:
        file.write(SIMULATE.replace("{patches}", f"{{{patches}}}"))
    tasks = [{"name": name, "clouddb.control.project_info": {}, "environment": {"A": "b"}} for name in PATCHES]
    ran = playbook.run(yaml.safe_dump([{"hosts": "own", "gather_facts": False, "tasks": tasks}]), "-vvv")
    assert [result[:2] for result in ran.results] == [(name, "ok") for name in PATCHES], ran.stdout + ran.stderr
    assert ran.ways() == {name: way for name, (_patch, way) in PATCHES.items()}


def processes(folder: Path) -> dict[int, bytes]:
    """The command lines of the processes that Ansible has started in this folder, by process id."""
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            is_ours = f"TMPDIR={folder / 'tmp'}".encode() in (path / "environ").read_bytes().split(b"\0")
            command = (path / "cmdline").read_bytes()
            # That of a process that has ended is empty.
            if is_ours and command:
                found[int(path.name)] = command
    return found


def until(condition: Callable[[], object]) -> None:
    """Wait until the condition is true."""
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@contextmanager
def waiting(playbook: Playbook, sandbox: Sandbox, **keywords: Any) -> Iterator[subprocess.Popen[str]]:
    """ansible-playbook, while its task waits for an operation that does not end."""
    sandbox.plan((0, "scheduling"))
    created = sandbox.api("POST", "/projects", {"project": {"name": "shop"}})
    operations = {"operations": created["operations"], "timeout": 900, "interval": 1}
    task = {"name": "wait", "clouddb.control.operation_wait": operations, "ignore_errors": True, **keywords}
    play = {"hosts": "own", "gather_facts": False, "tasks": [task]}
    process = playbook.start(yaml.safe_dump([play]), "-vvv")
    try:
        until(sandbox.sent)
        yield process
    finally:
        for number in processes(playbook.folder):
            os.kill(number, signal.SIGKILL)
        process.communicate()


@pytest.mark.parametrize(
    "is_interrupt", [pytest.param(True, id="Ctrl-C"), pytest.param(False, marks=pytest.mark.soak, id="SIGTERM")]
)
def test_secrets_of_a_run_are_in_its_memory_and_an_aborted_one_leaves_nothing_behind(
    playbook: Playbook, sandbox: Sandbox, is_interrupt: bool
) -> None:
    secret = "a-password-in-the-environment"
    seen: dict[str, bytes] = {}
    with waiting(playbook, sandbox, environment={"PGPASSWORD": secret}) as process:
        for _each in range(5):
            seen.update({f"process {number}": line for number, line in processes(playbook.folder).items()})
            # Unlike Path.rglob, os.walk ignores directories that are removed while it runs.
            for path in (Path(folder, name) for folder, _folders, names in os.walk(playbook.folder) for name in names):
                if path.is_file():
                    with suppress(FileNotFoundError):
                        seen[str(path)] = path.read_bytes()
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT if is_interrupt else signal.SIGTERM)
        # Its output ends when no process has it open.
        stdout, stderr = process.communicate(timeout=SECONDS)
        assert REASON not in stdout + stderr
        until(lambda: not processes(playbook.folder))
    if is_interrupt:  # after SIGTERM, Ansible and Python leave directories of their own
        assert not [*playbook.folder.glob("tmp/*"), *playbook.folder.glob("home/.ansible/tmp/*")]
    assert [name for name in seen if name.startswith("process")]
    del seen[str(playbook.folder / "plays.yml")]
    assert not [name for name, text in seen.items() if sandbox.api_key.encode() in text or secret.encode() in text]


@pytest.mark.soak
def test_a_module_that_goes_on_after_a_timeout_keeps_no_output_open(playbook: Playbook, sandbox: Sandbox) -> None:
    with waiting(playbook, sandbox, timeout=900) as process:
        # The signal that the time of the task is over
        [worker] = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(worker), signal.SIGALRM)
        process.communicate(timeout=SECONDS)
        # Like a module that Ansible has started, it ends at its own deadline.
        assert processes(playbook.folder)
