# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""background.py: start, status and stop, and recovery after kill -9."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import background
import pytest
import requests
from hypothesis import settings

SERVER = Path(background.__file__).parent
# Number of crashes during writes; it grows with the number of hypothesis examples.
CRASHES = max(2, settings().max_examples // 25)
COMMANDS = ("create", "start", "stop", "remove")


@pytest.fixture
def run_background(tmp_path, capsys):
    """Run a background.py command on the test's folder. Returns the exit code, the parsed output, and stderr."""
    sources = {path.relative_to(SERVER): path for path in SERVER.glob("clouddb_sandbox/**/*.py")}
    background.create(background.Folder(tmp_path))
    (tmp_path / "seed.yml").write_text("{}")
    (tmp_path / "server.json").write_text(json.dumps({str(name): path.read_text() for name, path in sources.items()}))

    def run_command(command, *options):
        code = background.main([command, str(tmp_path), *options])
        output = capsys.readouterr()
        return code, json.loads(output.out) if output.out else None, output.err

    yield run_command
    run_command("stop")


def start(run_background, *options):
    code, status, error = run_background("start", *options)
    assert code == 0, error
    return status


@pytest.fixture
def service_of(connect):
    return lambda status: connect(status["base_url"], Path(status["api_key_file"]).read_text().strip())


MAX_WAIT = 120  # seconds; enough for a busy machine


def kill(status):
    """Kill the process, and wait until it has ended."""
    os.kill(status["pid"], signal.SIGKILL)
    os.waitpid(status["pid"], 0)


class TestBackground:
    def test_start_status_stop(self, run_background, service_of, tmp_path):
        paths = {"folder": str(tmp_path), "virtualenv": str(tmp_path / "venv")}
        facts = {"changed": False, "is_created": True, "problem": None, **paths}
        unused = {**facts, "is_reached": False, "pid": None, "is_seed_applied": None}
        assert run_background("status") == (0, unused, "")
        first = start(run_background)
        assert first["changed"] is True
        assert service_of(first).get("projects").status_code == 200
        assert run_background("status")[1] == {**first, **facts, "is_reached": True}
        assert run_background("start")[1] == {**first, "changed": False}
        assert run_background("stop")[1] == {"changed": True, "pid": None}
        assert run_background("stop")[1] == {"changed": False, "pid": None}
        with pytest.raises(requests.ConnectionError):
            service_of(first).get("projects")

    def test_changed_seed_is_not_applied(self, run_background, tmp_path):
        """Only the seed of the first start that succeeded counts, until the sandbox is removed."""
        (tmp_path / "seed.yml").write_text("color: red")
        assert run_background("start")[0] == 1
        assert run_background("status")[1]["is_seed_applied"] is None
        (tmp_path / "seed.yml").write_text("generate: {projects: 1}")
        assert start(run_background)["is_seed_applied"] is True
        (tmp_path / "seed.yml").write_text("generate: {projects: 2}")
        for command in ("start", "status", "start"):
            assert run_background(command)[1]["is_seed_applied"] is False
        (tmp_path / "seed.yml").write_text("generate: {projects: 1}")
        assert run_background("status")[1]["is_seed_applied"] is True

    @pytest.mark.parametrize("is_created", [False, True])
    def test_seed_of_a_start_that_was_killed(self, run_background, tmp_path, is_created):
        """It is that of the account if that start has created it, also if the process did not record it in the file."""
        bundle = json.loads((tmp_path / "server.json").read_text())
        module, function = ("store", "Store.seed_checksum") if is_created else ("seed_loader", "load_seed")
        name = f"clouddb_sandbox/{module}.py"
        killed = f"{bundle[name]}\n\nimport os\n{function} = lambda *_arguments: os.kill(os.getpid(), 9)\n"
        (tmp_path / "server.json").write_text(json.dumps({**bundle, name: killed}))
        (tmp_path / "seed.yml").write_text("generate: {projects: 1}")
        code, _status, error = run_background("start")
        assert (code, "ended with exit code -9" in error) == (1, True)
        assert run_background("status")[1]["is_seed_applied"] is None
        (tmp_path / "server.json").write_text(json.dumps(bundle))
        (tmp_path / "seed.yml").write_text("generate: {projects: 2}")
        assert start(run_background)["is_seed_applied"] is not is_created
        (tmp_path / "seed.yml").write_text("generate: {projects: 1}")
        assert run_background("status")[1]["is_seed_applied"] is is_created

    def test_secret_is_only_in_the_key_file(self, run_background, tmp_path):
        """The key file has mode 0600."""
        first = start(run_background)
        key_file = Path(first["api_key_file"])
        assert key_file.stat().st_mode & 0o777 == 0o600
        secret = key_file.read_bytes().strip()
        assert len(secret) == 64
        others = [path for path in tmp_path.iterdir() if path.is_file() and path != key_file]
        assert not any(secret in path.read_bytes() for path in others)

    def test_restart_keeps_the_address(self, run_background):
        """The port of the last start is reused."""
        first = start(run_background)
        run_background("stop")
        second = start(run_background)
        assert second["base_url"] == first["base_url"]
        assert second["pid"] != first["pid"]

    def test_restart_option_replaces_the_process(self, run_background):
        first = start(run_background)
        second = start(run_background, "--restart")
        assert second["changed"] is True
        assert second["pid"] != first["pid"]

    def test_status_predicts_a_start(self, run_background, tmp_path, free_port):
        """Check mode of the role reports it."""

        def is_reached(*options):
            predicted = run_background("status", *options)[1]["is_reached"]
            assert predicted is not start(run_background, *options)["changed"]
            return predicted

        assert not is_reached()
        assert is_reached()
        assert not is_reached("--port", free_port)
        assert is_reached("--port", free_port)
        assert is_reached("--port", "0")
        assert not is_reached("--host", "localhost")
        kill(run_background("status")[1])
        assert not is_reached("--host", "localhost")
        run_background("stop")
        assert not is_reached("--host", "localhost")
        (tmp_path / "server.json").write_text(
            json.dumps({**json.loads((tmp_path / "server.json").read_text()), "new.py": ""})
        )
        assert not is_reached("--host", "localhost")

    @pytest.mark.parametrize("wanted", ["stopped", "absent"])
    def test_address_does_not_matter_to_other_states(self, tmp_path, capsys, wanted):
        arguments = ["status", str(tmp_path / "sandbox"), "--wanted", wanted, "--host", "localhost", "--port", "1"]
        assert background.main(arguments) == 0
        assert json.loads(capsys.readouterr().out)["is_reached"] is True

    def test_status_expands_the_virtual_environment(self, run_background, tmp_path, monkeypatch):
        monkeypatch.setenv("PLACE", str(tmp_path))
        assert run_background("status", "--virtualenv", "$PLACE/v")[1]["virtualenv"] == str(tmp_path / "v")

    def test_changed_server_files_restart_the_sandbox(self, run_background, tmp_path, service_of):
        """All files of the previous server are replaced."""
        bundle = json.loads((tmp_path / "server.json").read_text())
        (tmp_path / "server.json").write_text(json.dumps({**bundle, "removed_file.py": ""}))
        first = start(run_background)
        assert (tmp_path / "server" / "removed_file.py").exists()
        text = bundle["clouddb_sandbox/responses.py"]
        bundle["clouddb_sandbox/responses.py"] = text.replace("message=message", "message='new ' + message")
        (tmp_path / "server.json").write_text(json.dumps(bundle))
        second = start(run_background)
        assert second["changed"] is True
        assert second["pid"] != first["pid"]
        assert not (tmp_path / "server" / "removed_file.py").exists()
        assert service_of(second).get("nowhere").json()["message"].startswith("new ")

    def test_port_in_use_fails_the_start(self, run_background):
        with socket.create_server(("127.0.0.1", 0)) as other:
            code, status, error = run_background("start", "--port", str(other.getsockname()[1]))
        assert (code, status) == (1, None)
        assert error.startswith("The sandbox cannot start. Port ")
        assert error.endswith("Stop the process that listens there, or set sandbox_port to another port.\n")
        assert error.count("\n") == 1

    def test_stop_ignores_stale_process_ids(self, run_background, tmp_path, other_process):
        """The files of a killed sandbox have an id that is now another process's."""
        kill(start(run_background))
        (tmp_path / "sandbox.sqlite.lock").write_text(str(other_process.pid))
        (tmp_path / "ready.json").write_text(json.dumps({"pid": other_process.pid, "base_url": "x"}))
        assert run_background("stop")[1] == {"changed": False, "pid": None}
        assert other_process.poll() is None

    def test_only_the_server_of_the_folder_is_stopped(self, run_background, tmp_path, other_process):
        """The lock is held, and its file has the id of a process that is not the server: it has not written its own yet."""
        with (tmp_path / "sandbox.sqlite.lock").open("w") as lock:
            lock.write(str(other_process.pid))
            lock.flush()
            fcntl.flock(lock, fcntl.LOCK_EX)
            assert run_background("stop")[1] == {"changed": False, "pid": None}
            code, _status, error = run_background("start")
            assert (code, "Another sandbox uses" in error) == (1, True)
        assert other_process.poll() is None

    def test_process_that_ignores_sigterm_is_killed(self, run_background, tmp_path, monkeypatch):
        monkeypatch.setattr(background, "STOP_TIMEOUT", 1)
        bundle = json.loads((tmp_path / "server.json").read_text())
        stubborn = "\n\nfrom . import server\nserver.Server.handle_exit = lambda *_arguments: None\n"
        name = "clouddb_sandbox/settings.py"
        (tmp_path / "server.json").write_text(json.dumps({**bundle, name: bundle[name] + stubborn}))
        first = start(run_background)
        assert run_background("stop")[1] == {"changed": True, "pid": None}
        assert os.waitpid(first["pid"], 0)[1] == signal.SIGKILL

    def test_remove(self, run_background, tmp_path):
        """A removed folder is absent also without its process; the files of others stay in it."""
        first = start(run_background)
        (tmp_path / "notes.txt").touch()
        assert run_background("remove")[1] == {"changed": True, "pid": None}
        os.waitpid(first["pid"], 0)
        assert contents(tmp_path) == ["notes.txt"]
        assert run_background("remove")[1] == {"changed": False, "pid": None}


@pytest.fixture
def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return str(listener.getsockname()[1])


@pytest.fixture
def other_process():
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process
    process.communicate()


@pytest.fixture
def folder(tmp_path):
    """The folder of a sandbox with a server, as `create` and `start` leave it."""
    folder = background.Folder(tmp_path / "sandbox")
    background.create(folder)
    folder.bundle.write_text(json.dumps({"package/module.py": "", "background.py": ""}))
    background.unpack(folder)
    return folder


def contents(path):
    return sorted(str(found.relative_to(path)) for found in path.rglob("*"))


def failing(error):
    def fail(*_args, **_options):
        raise OSError(error, os.strerror(error))

    return fail


class TestFolder:
    def test_created_folder_is_private(self, tmp_path, capsys):
        path = tmp_path / "parent" / "sandbox"
        path.mkdir(parents=True, mode=0o755)
        for changed in (True, False):
            assert background.main(["create", str(path)]) == 0
            assert json.loads(capsys.readouterr().out) == {"changed": changed, "pid": None}
        assert path.stat().st_mode & 0o777 == 0o700
        assert contents(path) == [".clouddb-sandbox"]

    def test_folder_without_the_marker(self, tmp_path, capsys):
        """It is not used, even if its files have the names of a sandbox's, and nothing in it is removed."""
        for name in ("seed.yml", "api_key"):
            (tmp_path / name).touch()
        for command, code in (("create", 1), ("start", 1), ("stop", 0), ("remove", 0)):
            assert background.main([command, str(tmp_path)]) == code, command
            assert contents(tmp_path) == ["api_key", "seed.yml"], command
        capsys.readouterr()
        for wanted in ("started", "stopped", "absent"):
            assert background.main(["status", str(tmp_path), "--wanted", wanted]) == 0
            status = json.loads(capsys.readouterr().out)
            assert (status["problem"] is not None, status["is_reached"]) == (wanted == "started", wanted != "started")

    def test_link_is_refused(self, folder, tmp_path, capsys):
        (tmp_path / "link").symlink_to("sandbox")
        before = contents(tmp_path)
        for command in COMMANDS:
            assert background.main([command, str(tmp_path / "link")]) == 1, command
            assert "is not a folder of this user" in capsys.readouterr().err
        assert contents(tmp_path) == before

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
    def test_folder_of_another_user_is_refused(self, folder, capsys):
        os.chown(folder.path, 65534, 65534)
        for command in COMMANDS:
            assert background.main([command, str(folder.path)]) == 1, command
            assert "is not a folder of this user" in capsys.readouterr().err
        assert folder.server.exists()

    def test_error_of_the_system_is_reported(self, tmp_path, capsys, monkeypatch):
        monkeypatch.setattr(background.Path, "lstat", failing(errno.EACCES))
        for command in COMMANDS:
            assert background.main([command, str(tmp_path)]) == 1
            assert capsys.readouterr().err.count("can't be used: Permission denied.") == 1
        assert background.main(["status", str(tmp_path)]) == 0
        assert "Permission denied" in json.loads(capsys.readouterr().out)["problem"]

    @pytest.mark.parametrize(
        ("wanted", "has_virtualenv", "is_refused"),
        [("started", False, True), ("started", True, False), ("stopped", False, False)],
    )
    def test_old_python_is_refused_before_the_installation(
        self, tmp_path, capsys, monkeypatch, wanted, has_virtualenv, is_refused
    ):
        monkeypatch.setattr(background.sys, "version_info", (3, 9, 18))
        if has_virtualenv:
            (tmp_path / "venv" / "bin").mkdir(parents=True)
            (tmp_path / "venv" / "bin" / "activate").touch()
        options = ["--wanted", wanted, "--virtualenv", str(tmp_path / "venv")]
        assert background.main(["status", str(tmp_path / "sandbox"), *options]) == 0
        problem = json.loads(capsys.readouterr().out)["problem"]
        assert (problem is not None and problem.startswith("sandbox_python: ")) is is_refused

    @pytest.mark.parametrize("virtualenv", ["venv", "envs/v"])
    def test_removal_leaves_nothing(self, folder, tmp_path, virtualenv):
        """Also of what a killed process has left, and of a virtual environment in the folder."""
        (folder.path / virtualenv).mkdir(parents=True)
        (folder.path / ".api_key.12345678").touch()
        assert background.main(["remove", str(folder.path), "--virtualenv", str(folder.path / virtualenv)]) == 0
        assert contents(tmp_path) == []

    def test_virtual_environment_elsewhere_is_kept(self, folder, tmp_path):
        """Even if the folder has a link to it."""
        (tmp_path / "shared").mkdir()
        (folder.path / "venv").symlink_to(tmp_path / "shared")
        assert background.main(["remove", str(folder.path)]) == 0
        assert contents(tmp_path) == ["shared"]

    def test_folder_that_cannot_be_removed_is_emptied(self, folder, tmp_path, monkeypatch):
        """It is a mount point, or its parent may not be written."""
        monkeypatch.setattr(background.Path, "rmdir", failing(errno.EBUSY))
        monkeypatch.setattr(background.shutil, "rmtree", lambda path: path.rename(tmp_path / "removed"))
        assert background.main(["remove", str(folder.path)]) == 0
        assert contents(folder.path) == []

    def test_removal_that_was_killed_is_repeated(self, folder, tmp_path, monkeypatch):
        def killed(_path):
            raise KeyboardInterrupt

        with monkeypatch.context() as interrupted, pytest.raises(KeyboardInterrupt):
            interrupted.setattr(background.shutil, "rmtree", killed)
            background.main(["remove", str(folder.path)])
        assert folder.is_created()
        assert background.main(["remove", str(folder.path)]) == 0
        assert contents(tmp_path) == []


class TestParallelRuns:
    def test_second_start_waits_for_the_first(self, run_background, tmp_path):
        program = [sys.executable, background.__file__, "start", str(tmp_path)]
        runs = [subprocess.Popen(program, stdout=subprocess.PIPE, text=True) for _run in range(3)]
        outputs = [json.loads(run.communicate(timeout=MAX_WAIT)[0]) for run in runs]
        assert len({output["pid"] for output in outputs}) == 1
        assert sorted(output["changed"] for output in outputs) == [False, False, True]


class TestCrashRecovery:
    def test_operations_continue_after_a_crash(self, run_background, service_of):
        """Operations started before the crash finish, the clock has not gone backwards, revoked keys stay revoked."""
        first = start(run_background)
        service = service_of(first)
        service.advance(86400)
        created = service.ok("POST", "projects", json={"project": {"name": "shop"}})
        revoked = service.create_key()
        service.ok("DELETE", f"api_keys/{revoked['id']}")
        kill(first)
        service = service_of(start(run_background))
        assert service.ok("GET", "/_sandbox/clock")["now"] > created["operations"][-1]["created_at"]
        service.advance(5)
        assert {service.operation(operation)["status"] for operation in created["operations"]} == {"finished"}
        assert service.as_key(revoked["key"]).get("projects").status_code == 401

    @pytest.mark.parametrize("crash", range(CRASHES))
    def test_writes_are_atomic(self, run_background, service_of, tmp_path, crash):
        """Every write with a response is stored once; one without a response is stored completely or not at all."""
        first = start(run_background)
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
        restarted = start(run_background)
        assert restarted["base_url"] == first["base_url"]
        service = service_of(restarted)
        with sqlite3.connect(tmp_path / "sandbox.sqlite") as db:
            assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            assert db.execute("PRAGMA foreign_key_check").fetchall() == []
        projects = service.ok("GET", "projects", params={"limit": 400})["projects"]
        names = [project["name"] for project in reversed(projects)]
        assert names in (confirmed, [*confirmed, f"shop-{len(confirmed)}"])
        for project in projects:
            assert len(service.ok("GET", f"projects/{project['id']}/branches")["branches"]) == 1
            assert [item["action"] for item in service.operations(project["id"])][-1] == "create_timeline"
