# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""background.py: installation, start, stop and removal, and recovery after kill -9."""

from __future__ import annotations

import errno
import fcntl
import io
import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import background
import pytest
import requests
from hypothesis import settings

SERVER = Path(background.__file__).parent
FILES = {str(path.relative_to(SERVER)): path.read_text() for path in SERVER.glob("clouddb_sandbox/**/*.py")}
# Number of crashes during writes; it grows with the number of hypothesis examples.
CRASHES = max(2, settings().max_examples // 25)
MAX_WAIT = 120  # seconds; enough for a busy machine
STATES = ("started", "stopped", "absent")


@pytest.fixture
def wanted(tmp_path):
    """What is wanted of a sandbox in C(tmp_path)/sandbox, with the packages of this Python."""
    binaries = tmp_path / "venv" / "bin"
    binaries.mkdir(parents=True)
    (binaries / "activate").touch()
    (binaries / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (binaries / "python").chmod(0o755)
    return {"dir": str(tmp_path / "sandbox"), "virtualenv": str(tmp_path / "venv"), "files": FILES}


@pytest.fixture
def run(wanted, capsys, monkeypatch):
    """Bring the sandbox into a state. Returns the parsed output."""

    def reach(state="started", **changed):
        monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps({**wanted, "state": state, **changed})))
        assert background.main() == 0
        return json.loads(capsys.readouterr().out)

    yield reach
    if Path(wanted["dir"], ".clouddb-sandbox").exists():
        reach("stopped")


@pytest.fixture
def sandbox(wanted):
    return background.Sandbox(Path(wanted["dir"]))


def start(run, **changed):
    outcome = run(**changed)
    assert outcome["problem"] is None
    return outcome


@pytest.fixture
def service_of(connect):
    return lambda started: connect(started["base_url"], started["api_key"])


def kill(started):
    os.kill(started["pid"], signal.SIGKILL)
    os.waitpid(started["pid"], 0)


def contents(path):
    return sorted(str(found.relative_to(path)) for found in path.rglob("*"))


UNCHANGED = {"changed": False, "problem": None}
CHANGED = {"changed": True, "problem": None}


class TestStates:
    def test_start_stop_remove(self, run, service_of, sandbox, wanted, monkeypatch):
        """Each state is reached once, and check mode says so before. The secret is only in the key file, and files of others stay.

        An installation that fails changes nothing. Meanwhile, nobody else installs in the directory of the virtual environment.
        """

        def fail(*_command):
            with pytest.raises(BlockingIOError):
                fcntl.flock(os.open(Path(wanted["virtualenv"]).parent, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)
            raise background.Refused("no network")

        assert run(check=True) == CHANGED
        assert not sandbox.path.exists()
        first = start(run)
        assert first["changed"] is True
        assert service_of(first).get("projects").status_code == 200
        secret = first["api_key"].encode()
        files = [path for path in sandbox.path.iterdir() if path.is_file()]
        assert [path for path in files if secret in path.read_bytes()] == [sandbox.api_key]
        assert [path.stat().st_mode & 0o777 for path in (sandbox.api_key, sandbox.path)] == [0o600, 0o700]
        with monkeypatch.context() as offline:
            offline.setattr(background, "run", fail)
            assert run(requirements=["fastapi<2"])["problem"] == "no network"
        assert run(check=True) == run() == {**first, "changed": False}
        assert run("stopped", check=True) == {**first, **CHANGED}
        assert run("stopped") == CHANGED
        assert run("stopped") == run("stopped", check=True) == UNCHANGED
        with pytest.raises(requests.ConnectionError):
            service_of(first).get("projects")
        (sandbox.path / "notes.txt").touch()
        assert run("absent", check=True) == CHANGED
        assert run("absent") == CHANGED
        assert contents(sandbox.path) == ["notes.txt"]
        assert run("absent") == run("absent", check=True) == run("stopped") == UNCHANGED

    @pytest.mark.soak
    def test_changed_seed_is_not_applied(self, run):
        """Only the seed of the first start that succeeded counts, until the sandbox is removed."""
        assert "color" in run(seed="color: red")["problem"]
        assert start(run, seed="generate: {projects: 1}")["is_seed_applied"] is True
        for check in (False, True):
            assert run(seed="generate: {projects: 2}", check=check)["is_seed_applied"] is False
        assert run(seed="generate: {projects: 1}")["is_seed_applied"] is True
        assert run()["is_seed_applied"] is True

    @pytest.mark.soak
    def test_start_that_fails_after_the_stop_is_a_change(self, run, free_port, sandbox):
        start(run)
        outcome = run(port=free_port, speed=-1)
        assert "Check sandbox_speed." in outcome["problem"]
        assert outcome["changed"] is True
        assert sandbox.pid() is None
        assert run(port=free_port, speed=-1)["changed"] is False

    @pytest.mark.soak
    @pytest.mark.parametrize("is_created", [False, True])
    def test_seed_of_a_start_that_was_killed(self, run, is_created):
        """It is that of the account if that start has created it, even if the process did not record it in the file."""
        module, function = ("store", "Store.seed_checksum") if is_created else ("seed_loader", "load_seed")
        name = f"clouddb_sandbox/{module}.py"
        killed = f"{FILES[name]}\n\nimport os\n{function} = lambda *_arguments: os.kill(os.getpid(), 9)\n"
        outcome = run(seed="generate: {projects: 1}", files={**FILES, name: killed})
        assert "ended with exit code -9" in outcome["problem"]
        assert start(run, seed="generate: {projects: 2}")["is_seed_applied"] is not is_created
        assert run(seed="generate: {projects: 1}")["is_seed_applied"] is is_created

    @pytest.mark.soak
    def test_what_restarts_the_sandbox(self, run, free_port, service_of, sandbox):
        """Another address or another server, of which all files are replaced. Check mode predicts it."""
        name = "clouddb_sandbox/responses.py"
        server = {**FILES, name: FILES[name].replace("message=message", "message='new ' + message"), "new.py": ""}

        def is_restarted(**changed):
            predicted = run(check=True, **changed)["changed"]
            assert predicted is start(run, **changed)["changed"]
            return predicted

        assert is_restarted()
        assert is_restarted(port=free_port)
        assert not is_restarted(port=free_port)
        # The port of the last start is reused.
        assert not is_restarted(port=0)
        assert is_restarted(host="localhost")
        assert is_restarted(host="localhost", files=server)
        assert service_of(run(host="localhost", files=server)).get("nowhere").json()["message"].startswith("new ")
        kill(run(host="localhost", files=server))
        assert is_restarted()
        assert not (sandbox.server / "new.py").exists()
        assert run()["base_url"].endswith(f":{free_port}/api/v2")

    @pytest.mark.soak
    @pytest.mark.parametrize("check", [True, False])
    def test_account_of_another_version_changes_nothing(self, run, sandbox, check):
        """A running sandbox stays, until it is removed. Its schema's version may not be in the database's file yet."""
        first, name = start(run), "clouddb_sandbox/store.py"
        files = {**FILES, name: re.sub(r"(SCHEMA_VERSION = )\d+", r"\g<1>999", FILES[name])}
        for _process in ("running", "ended"):
            outcome = run(check=check, files=files)
            assert "Remove the sandbox with sandbox_state: absent" in outcome["problem"]
            assert outcome["changed"] is False
            assert sandbox.pid() in (first["pid"], None)
            if sandbox.pid():
                assert run() == {**first, "changed": False}
                kill(first)
        assert run("absent") == CHANGED
        assert start(run, files=files)["changed"] is True

    @pytest.mark.soak
    def test_file_of_an_earlier_start_with_the_same_process_id(self, run, sandbox, monkeypatch):
        """As in a container that is started again: the file does not mean that the new process listens."""
        kill(start(run))
        popen = subprocess.Popen

        def start_with_same_id(*arguments, **options):
            process = popen(*arguments, **options)
            if "clouddb_sandbox" in arguments[0]:
                sandbox.ready.write_text(json.dumps({**sandbox.last_start(), "pid": process.pid}))
            return process

        monkeypatch.setattr(background.subprocess, "Popen", start_with_same_id)
        assert requests.get(start(run)["base_url"], timeout=MAX_WAIT).status_code == 401

    @pytest.mark.soak
    @pytest.mark.parametrize("check", [False, True])
    def test_address_that_cannot_be_used_changes_nothing(self, run, sandbox, check):
        """Nothing is created, and a running sandbox stays."""
        with socket.create_server(("127.0.0.1", 0)) as other:
            port = other.getsockname()[1]
            assert f"Port {port} of 127.0.0.1 is in use." in run(check=check, port=port)["problem"]
            assert not sandbox.path.exists()
            first = start(run)
            for changed, option in (
                ({"port": port}, "sandbox_port"),
                ({"host": "203.0.113.7"}, "sandbox_host"),
                ({"host": "no.such.invalid"}, "sandbox_host"),
            ):
                outcome = run(check=check, **changed)
                assert option in outcome["problem"]
                assert outcome["changed"] is False
            assert run() == {**first, "changed": False}

    @pytest.mark.soak
    def test_stop_ignores_stale_process_ids(self, run, sandbox, other_process):
        """The files of a killed sandbox have an id that is now another process's."""
        kill(start(run))
        sandbox.lock.write_text(str(other_process.pid))
        sandbox.ready.write_text(json.dumps({"pid": other_process.pid, "base_url": "x"}))
        assert run("stopped") == UNCHANGED
        assert other_process.poll() is None

    @pytest.mark.soak
    def test_only_the_server_of_the_directory_is_stopped(self, run, sandbox, other_process):
        """The lock is held, and its file has the id of a process that is not the server: it has not written its own yet."""
        sandbox.create()
        with sandbox.lock.open("w") as lock:
            lock.write(str(other_process.pid))
            lock.flush()
            fcntl.flock(lock, fcntl.LOCK_EX)
            assert run("stopped") == UNCHANGED
            assert "Another sandbox uses" in run()["problem"]
        assert other_process.poll() is None

    @pytest.mark.soak
    def test_process_that_ignores_sigterm_is_killed(self, run, monkeypatch):
        monkeypatch.setattr(background, "STOP_TIMEOUT", 1)
        name = "clouddb_sandbox/settings.py"
        stubborn = "\n\nfrom . import server\nserver.Server.handle_exit = lambda *_arguments: None\n"
        first = start(run, files={**FILES, name: FILES[name] + stubborn})
        assert run("stopped") == CHANGED
        assert os.waitpid(first["pid"], 0)[1] == signal.SIGKILL

    @pytest.mark.soak
    def test_second_start_waits_for_the_first(self, run, wanted):
        command, pipes = [sys.executable, background.__file__], {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        runs = [subprocess.Popen(command, **pipes, text=True) for _run in range(3)]
        for each in runs:
            each.stdin.write(json.dumps({**wanted, "state": "started"}))
            each.stdin.close()
        outcomes = [json.loads(each.stdout.read()) for each in runs]
        assert len({outcome["pid"] for outcome in outcomes}) == 1
        assert sorted(outcome["changed"] for outcome in outcomes) == [False, False, True]
        for each in runs:
            each.wait(MAX_WAIT)
            each.stdout.close()


@pytest.fixture
def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


@pytest.fixture
def other_process():
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process
    process.communicate()


class TestInstallation:
    @pytest.fixture(autouse=True)
    def programs(self, monkeypatch):
        """The programs that would be run to install the sandbox."""
        programs = []
        monkeypatch.setattr(background, "run", lambda *command: programs.append(command))
        return programs

    def test_requirements_are_installed_with_each_new_server(self, wanted, sandbox, programs):
        wanted = {**background.DEFAULTS, **wanted, "requirements": ["fastapi<2"]}
        options = ("--no-user", "--disable-pip-version-check", "--quiet")
        pip = (f"{wanted['virtualenv']}/bin/python", "-m", "pip", "install", *options)
        for expected in ([(*pip, "fastapi<2")], []):
            programs.clear()
            background.install(sandbox, wanted)
            background.unpack(sandbox, wanted)
            assert programs == expected
        # As after an upgrade of the host's Python.
        Path(wanted["virtualenv"], "bin", "python").unlink()
        background.install(sandbox, wanted)
        assert programs == [(sys.executable, "-m", "venv", wanted["virtualenv"]), (*pip, "fastapi<2")]

    def test_old_python_is_refused_before_the_installation(self, run, wanted, monkeypatch):
        monkeypatch.setattr(background.sys, "version_info", (3, 9, 18))
        Path(wanted["virtualenv"], "bin", "activate").unlink()
        for check in (True, False):
            assert run(check=check)["problem"].startswith("sandbox_python: ")
        assert not Path(wanted["dir"]).exists()
        assert run("absent") == UNCHANGED

    @pytest.mark.skipif(sys.platform != "linux", reason="only Linux reports the option")
    @pytest.mark.parametrize("check", [True, False])
    def test_noexec_is_refused_before_the_installation(self, run, wanted, monkeypatch, check):
        """Where the virtual environment would be, whose libraries could not be loaded."""
        parent, asked = Path(wanted["dir"]).parent, []
        result = SimpleNamespace(f_flag=os.ST_NOEXEC)
        monkeypatch.setattr(background.os, "statvfs", lambda path: asked.append(path) or result)
        for virtualenv, variable in ((f"{wanted['dir']}/venv", "sandbox_dir"), (f"{parent}/v/w", "sandbox_virtualenv")):
            outcome = run(check=check, virtualenv=virtualenv)
            reason = f"{virtualenv} is on a file system mounted with noexec. Set {variable} "
            assert outcome["problem"].startswith(reason)
            assert outcome["changed"] is False
        assert asked == [parent, parent]
        assert not Path(wanted["dir"]).exists()

    def test_installation_that_fails_is_a_change_once(self, run, wanted, monkeypatch):

        def fail(*command):
            Path(command[-1]).mkdir(exist_ok=True)
            raise background.Refused("no network")

        monkeypatch.setattr(background, "run", fail)
        for changed in (True, False):
            assert run(virtualenv=f"{wanted['dir']}/venv") == {"changed": changed, "problem": "no network"}


def test_option_of_the_server_is_named_as_the_variable_of_the_role(sandbox: background.Sandbox) -> None:
    sandbox.path.mkdir()
    sandbox.log.write_text("INFO Started.\nThe sandbox cannot start. The speed -1.0 is too small. Check --speed.\n")
    refused = background.failure(sandbox, 0, "The sandbox ended.")
    assert str(refused) == "The sandbox cannot start. The speed -1.0 is too small. Check sandbox_speed."


def test_program_that_fails_is_named() -> None:
    with pytest.raises(background.Refused, match="^The sandbox can't be installed. .* failed:\nfirst\nlast$"):
        background.run(sys.executable, "-c", "import sys; sys.exit('first\\nlast')")


class TestDirectory:
    def test_directory_without_the_marker(self, run, sandbox):
        """It is not used, even if its files have the names of a sandbox's, and nothing in it is removed."""
        sandbox.path.mkdir()
        for name in ("seed.yml", "api_key"):
            (sandbox.path / name).touch()
        for check in (True, False):
            assert "contains other files" in run(check=check)["problem"]
            assert run("stopped", check=check) == run("absent", check=check) == UNCHANGED
        assert contents(sandbox.path) == ["api_key", "seed.yml"]

    @pytest.mark.parametrize("owner", [None, 65534])
    def test_link_and_directory_of_another_user_are_refused(self, run, sandbox, tmp_path, owner):
        sandbox.create()
        if owner is None:
            (tmp_path / "link").symlink_to("sandbox")
        elif os.geteuid() == 0:
            os.chown(sandbox.path, owner, owner)
        else:
            pytest.skip("only root can give a directory to another user")
        before = contents(tmp_path)
        for state in STATES:
            problem = run(state, dir=str(sandbox.path if owner else tmp_path / "link"))["problem"]
            assert "is not a directory of this user" in problem, state
        assert contents(tmp_path) == before
        if owner:
            os.chown(sandbox.path, os.geteuid(), os.getegid())

    def test_error_of_the_system_is_reported(self, run, monkeypatch):
        with monkeypatch.context() as failing:
            error = OSError(errno.EACCES, os.strerror(errno.EACCES))
            failing.setattr(background.Path, "lstat", Mock(side_effect=error))
            for state in STATES:
                assert run(state)["problem"].count("can't be used: Permission denied.") == 1

    @pytest.mark.parametrize("is_inside", [True, False])
    def test_removal_leaves_nothing(self, run, sandbox, tmp_path, is_inside):
        """Even of what a killed process has left; of a virtual environment elsewhere, only a link."""
        sandbox.create()
        (sandbox.path / ".api_key.12345678").touch()
        (sandbox.server / "package").mkdir(parents=True)
        if is_inside:
            (sandbox.path / "venv").mkdir()
        else:
            (sandbox.path / "venv").symlink_to(tmp_path / "venv")
        assert run("absent", virtualenv=str(sandbox.path / "venv")) == CHANGED
        assert not sandbox.path.exists()
        assert (tmp_path / "venv" / "bin" / "activate").exists()

    def test_directory_that_cannot_be_removed_is_emptied(self, run, sandbox, monkeypatch):
        """It is a mount point, or its parent may not be written."""
        sandbox.create()
        monkeypatch.setattr(background.Path, "rmdir", Mock(side_effect=OSError(errno.EBUSY, os.strerror(errno.EBUSY))))
        assert run("absent") == CHANGED
        assert contents(sandbox.path) == []

    def test_removal_that_was_killed_is_repeated(self, run, sandbox, monkeypatch):
        sandbox.create()
        sandbox.server.mkdir()
        with monkeypatch.context() as interrupted, pytest.raises(KeyboardInterrupt):
            interrupted.setattr(background.shutil, "rmtree", Mock(side_effect=KeyboardInterrupt))
            run("absent")
        assert sandbox.is_created()
        assert run("absent") == CHANGED
        assert not sandbox.path.exists()


class TestCrashRecovery:
    @pytest.mark.soak
    def test_operations_continue_after_a_crash(self, run, service_of):
        first = start(run)
        service = service_of(first)
        created = service.ok("POST", "projects", json={"project": {"name": "shop"}})["operations"]
        kill(first)
        service = service_of(start(run))
        service.advance(5)
        assert {service.operation(operation)["status"] for operation in created} == {"finished"}

    @pytest.mark.soak
    @pytest.mark.parametrize("crash", range(CRASHES))
    def test_writes_are_atomic(self, run, service_of, sandbox, crash):
        """Every write with a response is stored once; one without a response is stored completely or not at all."""
        first = start(run)
        confirmed, enough = [], threading.Event()

        def write():
            own = service_of(first)
            try:
                while True:
                    name = f"shop-{len(confirmed)}"
                    own.ok("POST", "projects", json={"project": {"name": name}})
                    confirmed.append(name)
                    if len(confirmed) > 3 + crash % 7:
                        enough.set()
            except requests.ConnectionError:
                pass

        writer = threading.Thread(target=write)
        writer.start()
        assert enough.wait(MAX_WAIT)
        kill(first)
        writer.join(MAX_WAIT)
        restarted = start(run)
        assert restarted["base_url"] == first["base_url"]
        service = service_of(restarted)
        with sqlite3.connect(sandbox.database) as db:
            assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            assert db.execute("PRAGMA foreign_key_check").fetchall() == []
        projects = service.ok("GET", "projects", params={"limit": 400})["projects"]
        names = [project["name"] for project in reversed(projects)]
        assert names in (confirmed, [*confirmed, f"shop-{len(confirmed)}"])
        for project in projects:
            assert len(service.ok("GET", f"projects/{project['id']}/branches")["branches"]) == 1
            assert [item["action"] for item in service.operations(project["id"])][-1] == "create_timeline"
