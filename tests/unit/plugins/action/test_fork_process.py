# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The decision for a fork, and what a module sees and leaves in one, without ansible-playbook and with fake modules."""

from __future__ import annotations

import errno
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from ansible import constants
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.action.normal import ActionModule as NormalAction
from ansible.plugins.connection.local import Connection as LocalConnection
from ansible.template import Templar

from ansible_collections.clouddb.control.plugins.plugin_utils import _fork
from ansible_collections.clouddb.control.plugins.plugin_utils._fork import ForkAction, ForkConnection

try:
    from ansible.module_utils import _internal
except ImportError:  # ansible-core up to 2.18
    _internal = None

ARGUMENTS = b"{}"
MISSING = "/proc/missing"
OWN = {"ansible_python_interpreter": sys.executable}


class Action(ForkAction):
    """A task of a module that does nothing. C(obstacles) are those that it has found."""

    module = SimpleNamespace(main=lambda: None, __file__=__file__)  # type: ignore[assignment]

    def __init__(self, environment: dict[str, str] | None = None, become: Any = None, async_val: int = 0) -> None:
        connection = LocalConnection.__new__(LocalConnection)
        shell = SimpleNamespace(SHELL_FAMILY="sh", env_prefix=lambda **_variables: "")
        vars(connection).update(_shell=shell, become=become)
        task = SimpleNamespace(environment=[environment or {}], async_val=async_val, delegate_to=None, get_path=str)
        loader = DataLoader()
        play_context = SimpleNamespace(executable="/bin/sh")
        super().__init__(task, connection, play_context, loader, Templar(loader), mock.Mock())
        self.obstacles: list[str] = []

    def _be_ordinary(self, obstacle: str) -> None:
        self.obstacles.append(obstacle)

    def start(self, **task_vars: Any) -> str:
        """Why the module does not run in a fork; empty if it does."""
        with mock.patch.object(NormalAction, "run", return_value={}):
            self.run(None, {**OWN, **task_vars})
        return " ".join(self.obstacles)

    def configured(self, **task_vars: Any) -> tuple[bool, str]:
        """Whether Ansible gets what it needs to start a module, and why."""
        self._connection = ForkConnection(self._connection, self.module)
        with mock.patch.object(NormalAction, "_configure_module", return_value="ordinary"):
            is_ordinary = self._configure_module("clouddb.control.probe", {}, {**OWN, **task_vars}) == "ordinary"
        assert is_ordinary == isinstance(self._connection, LocalConnection)
        return is_ordinary, " ".join(self.obstacles)


@pytest.fixture(autouse=True)
def sh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "DEFAULT_EXECUTABLE", "/bin/sh")


@pytest.mark.parametrize(
    ("task", "obstacle"),
    [
        ({}, ""),
        ({"environment": {"COLOUR": "blue", "TZ": "UTC"}}, ""),
        ({"become": True}, "The task has become."),
        ({"async_val": 30}, "The task has async."),
        *(
            ({"environment": {name: "x"}}, "Python reads a variable of environment when it starts.")
            for name in (
                "PYTHONPATH",
                "LD_PRELOAD",
                "LC_ALL",
                "LANGUAGE",
                "OPENSSL_CONF",
                "MALLOC_ARENA_MAX",
                "GLIBC_X",
            )
        ),
    ],
    ids=str,
)
def test_when_a_task_runs_in_a_fork(task: dict[str, Any], obstacle: str) -> None:
    assert Action(**task).start() == obstacle


@pytest.mark.parametrize(("value", "is_allowed"), [(False, False), ("no", False), ("{{ 'yes' }}", True)])
def test_a_variable_forbids_a_fork(value: Any, is_allowed: bool) -> None:
    with suppress(ImportError):  # ansible-core up to 2.18, which trusts each template
        from ansible.template import trust_as_template

        value = trust_as_template(value) if isinstance(value, str) else value
    assert Action().start(clouddb_fork=value) == ("" if is_allowed else "The variable clouddb_fork is false.")


NO_MEMFD = OSError(errno.ENOSYS, "Function not implemented", "memfd_create")


@pytest.mark.parametrize(
    ("owner", "name", "value"),
    [(os, "memfd_create", mock.Mock(side_effect=NO_MEMFD)), (_fork, "DESCRIPTORS", MISSING), (os, "devnull", MISSING)],
    ids=["no memfd", "no /proc", "no /dev/null"],
)
def test_without_what_a_fork_needs_the_module_runs_the_ordinary_way(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, value: Any
) -> None:
    monkeypatch.setattr(owner, name, value)
    is_ordinary, obstacle = Action().configured()
    assert is_ordinary and obstacle.endswith(("'memfd_create'", repr(MISSING)))


@pytest.mark.parametrize(
    ("limit", "soft", "is_ordinary"), [(0, 1000, False), (0, 150, True), (150, 1000, True), (500, 150, False)], ids=str
)
def test_a_limit_of_open_files_below_what_a_fork_inherits(
    monkeypatch: pytest.MonkeyPatch, limit: int, soft: int, is_ordinary: bool
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _kind: (soft, 1000))
    monkeypatch.setattr(os, "listdir", lambda _path: ["descriptor"] * 100)
    assert Action().configured(ansible_python_module_rlimit_nofile=limit)[0] == is_ordinary


def ran(
    main: Callable[[], object], cwd: bytes | None = None, open_files: int = 0, **environment: Any
) -> tuple[int, str, str]:
    """The exit status, output and standard error of a module with this main()."""
    connection = ForkConnection(mock.Mock(), SimpleNamespace(main=main))
    connection.arguments, connection.environment, connection.cwd = ARGUMENTS, environment, cwd
    connection.prepare(open_files)
    status, stdout, stderr = connection.exec_command("python", in_data=ARGUMENTS)
    return status, stdout.decode(), stderr.decode()


def shown(value: Callable[[], Any], **environment: Any) -> Any:
    """What a module in a fork prints."""
    status, stdout, stderr = ran(lambda: sys.exit(print(json.dumps(value()))), **environment)
    assert (status, stderr) == (0, "")
    return json.loads(stdout)


@pytest.mark.parametrize(
    ("main", "status", "stderr"),
    [
        (sys.exit, 0, ""),
        (lambda: sys.exit(3), 3, ""),
        (lambda: sys.exit("the end"), 1, "the end\n"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), 137, ""),
        (lambda: os.kill(os.getpid(), signal.SIGTERM), 143, ""),
    ],
    ids=["exit", "code", "text", "SIGKILL", "SIGTERM"],
)
def test_the_exit_status_is_that_of_a_shell(main: Callable[[], object], status: int, stderr: str) -> None:
    assert ran(main) == (status, "", stderr)


def test_the_environment_is_that_of_the_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLOUR", "red")
    monkeypatch.setenv("SHAPE", "round")
    of_module = shown(lambda: [os.environ[name] for name in ("COLOUR", "SHAPE", "NUMBER")], COLOUR="blue", NUMBER=7)
    assert (of_module, os.environ["COLOUR"]) == (["blue", "round", "7"], "red")


def test_the_time_zone_is_that_of_the_task() -> None:
    assert shown(lambda: time.strftime("%H", time.localtime(0)), TZ="UTC-9") == "09"


def test_the_limit_of_open_files_is_that_of_the_task() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = shown(lambda: resource.getrlimit(resource.RLIMIT_NOFILE), open_files=soft - 1)
    assert (limit, resource.getrlimit(resource.RLIMIT_NOFILE)) == ([soft - 1, hard], (soft, hard))


@pytest.mark.parametrize(
    ("of_parent", "of_module"),
    [(signal.SIG_IGN, signal.SIG_IGN), (lambda *_arguments: None, signal.SIG_DFL)],
    ids=["ignored", "handled"],
)
def test_a_signal_that_the_parent_handles_ends_the_module(of_parent: Any, of_module: signal.Handlers) -> None:
    before = signal.signal(signal.SIGALRM, of_parent)
    try:
        assert shown(lambda: signal.getsignal(signal.SIGALRM)) == of_module
    finally:
        signal.signal(signal.SIGALRM, before)


@pytest.mark.skipif(not hasattr(_internal, "is_controller"), reason="only ansible-core from 2.19 on")
def test_warnings_are_those_of_a_module_and_not_of_the_controller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_internal, "is_controller", True)
    assert shown(lambda: _internal.is_controller) is False


def test_a_fork_keeps_none_of_the_descriptors_of_its_parent() -> None:
    reader, writer = os.pipe()
    with open(reader, "rb") as read_end, open(writer, "wb", buffering=0):
        ran(lambda: os.write(writer, b"of the module"))
        os.set_blocking(reader, False)
        assert read_end.read() is None


@pytest.mark.parametrize("step", ["chdir", "tzset", "replace_others"])
def test_an_exception_before_the_module_begins_is_in_its_output(monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    broken = mock.Mock(side_effect=RuntimeError(f"{step} is broken"))
    monkeypatch.setattr({"chdir": os, "tzset": time}.get(step, _fork), step, broken)
    status, stdout, stderr = ran(lambda: None, cwd=b"/")
    assert status and f"{step} is broken" in stdout + stderr
