# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sandbox as a process: the command line, the background process, and kill -9."""

from __future__ import annotations

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
import yaml
from hypothesis import settings

from clouddb_sandbox.__main__ import read_or_create_key, main
from clouddb_sandbox.lock import database_lock
from clouddb_sandbox.server import Server

SERVER = Path(background.__file__).parent
# How many times a sandbox is killed among writes: more with more examples.
CRASHES = max(2, settings().max_examples // 25)
# These may have been started by the platform itself.
PLATFORM = ("start_compute", "suspend_compute", "check_availability")


@pytest.fixture
def control(tmp_path, capsys):
    """Run a background command on the test's folder; returns its exit code, what it says, and its complaint."""
    sources = {path.relative_to(SERVER): path for path in SERVER.glob("clouddb_sandbox/**/*.py")}
    (tmp_path / "seed.yml").write_text("{}")
    (tmp_path / "server.json").write_text(json.dumps({str(name): path.read_text() for name, path in sources.items()}))

    def run(command, *options):
        code = background.main([command, str(tmp_path), *options])
        output = capsys.readouterr()
        return code, json.loads(output.out) if output.out else None, output.err

    yield run
    run("stop")


def started(control, *options):
    code, found, complaint = control("start", *options)
    assert code == 0, complaint
    return found


@pytest.fixture
def service_of(connect):
    return lambda found: connect(found["base_url"], Path(found["api_key_file"]).read_text().strip())


def kill(found):
    """End the process as a crash would, and see it gone."""
    os.kill(found["pid"], signal.SIGKILL)
    os.waitpid(found["pid"], 0)


def kill_amid(writers, enough, found, within):
    """Let the threads write, kill the process as soon as it was enough, and see them end."""
    for writer in writers:
        writer.start()
    assert enough.wait(within)
    kill(found)
    for writer in writers:
        writer.join(10)


class TestBackground:
    def test_start_status_stop(self, control, service_of):
        assert control("status") == (0, {"changed": False, "is_usable": True, "pid": None}, "")
        found = started(control)
        assert found["changed"] is True
        assert service_of(found).get("projects").status_code == 200
        assert control("status")[1] == {**found, "changed": False, "is_usable": True}
        assert control("start")[1] == {**found, "changed": False}
        assert control("stop")[1] == {"changed": True, "pid": None}
        assert control("stop")[1] == {"changed": False, "pid": None}
        with pytest.raises(requests.ConnectionError):
            service_of(found).get("projects")

    def test_files(self, control, tmp_path):
        """The key is for its owner only, and only in its file."""
        found = started(control)
        key_file = Path(found["api_key_file"])
        assert key_file.stat().st_mode & 0o777 == 0o600
        secret = key_file.read_bytes().strip()
        assert len(secret) == 64
        others = [path for path in tmp_path.iterdir() if path.is_file() and path != key_file]
        assert not any(secret in path.read_bytes() for path in others)

    def test_address(self, control):
        """The same port again, at another address only if asked for."""
        first = started(control)
        control("stop")
        again = started(control)
        assert again["base_url"] == first["base_url"]
        assert again["pid"] != first["pid"]
        moved = started(control, "--host", "localhost")
        assert moved["changed"] is True
        assert moved["pid"] != again["pid"]
        assert started(control, "--host", "localhost") == {**moved, "changed": False}

    def test_restart_on_request(self, control):
        first = started(control)
        again = started(control, "--restart")
        assert again["changed"] is True
        assert again["pid"] != first["pid"]

    def test_another_server(self, control, tmp_path, service_of):
        """A changed server replaces the one that runs, with all of its files."""
        first = started(control)
        bundle = json.loads((tmp_path / "server.json").read_text())
        text = bundle["clouddb_sandbox/responses.py"]
        bundle["clouddb_sandbox/responses.py"] = text.replace("message=message", "message='new ' + message")
        (tmp_path / "server.json").write_text(json.dumps(bundle))
        (tmp_path / "server" / "left_over.py").touch()
        again = started(control)
        assert again["changed"] is True
        assert again["pid"] != first["pid"]
        assert not (tmp_path / "server" / "left_over.py").exists()
        assert service_of(again).get("nowhere").json()["message"].startswith("new ")

    @pytest.mark.parametrize(("name", "usable"), [(None, True), ("server.json", True), ("letters", False)])
    def test_whose_folder_it_is(self, tmp_path, name, usable):
        assert background.Folder(tmp_path / "missing").is_usable()
        if name:
            (tmp_path / name).touch()
        assert background.Folder(tmp_path).is_usable() is usable

    def test_bad_seed(self, control, tmp_path):
        (tmp_path / "seed.yml").write_text('{"projects": [{"colour": "red"}]}')
        code, _found, complaint = control("start")
        assert code == 1
        assert "projects.0.colour: Extra inputs are not permitted" in complaint
        assert "Traceback" not in complaint

    def test_port_in_use(self, control):
        with socket.create_server(("127.0.0.1", 0)) as other:
            code, found, complaint = control("start", "--port", str(other.getsockname()[1]))
        assert (code, found) == (1, None)
        assert "Address already in use" in complaint

    def test_only_its_own_process_is_ended(self, control, tmp_path):
        """A stale process id in the files is nobody's business."""
        found = started(control)
        kill(found)
        bystander = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        try:
            (tmp_path / "sandbox.sqlite.lock").write_text(str(bystander.pid))
            (tmp_path / "ready.json").write_text(json.dumps({"pid": bystander.pid, "base_url": "x"}))
            assert control("stop")[1] == {"changed": False, "pid": None}
            assert bystander.poll() is None
        finally:
            bystander.communicate()


class TestKill:
    def test_what_was_answered_is_there(self, control, service_of):
        """Killed in the midst of writes: whatever was answered is kept, and it starts again at the same address."""
        found = started(control)
        service = service_of(found)
        answered, enough = [], threading.Event()

        def write():
            own = service_of(found)
            try:
                while True:
                    answered.append(own.create_key()["id"])
                    if len(answered) > 100:
                        enough.set()
            except requests.ConnectionError:
                pass

        writers = [threading.Thread(target=write) for _writer in range(4)]
        kill_amid(writers, enough, found, within=10)
        again = started(control)
        assert again["base_url"] == found["base_url"]
        listed = [key["id"] for key in service.keys()][1:]
        assert set(answered) <= set(listed)
        assert len(listed) <= len(answered) + len(writers)
        assert listed == sorted(listed)

    def test_operations_go_on(self, control, service_of):
        """Work that was started before a crash is finished after it; the clock has not gone back."""
        found = started(control)
        service = service_of(found)
        service.advance(86400)
        created = service.ok("POST", "projects", json={"project": {"name": "shop"}})
        revoked = service.create_key()
        service.ok("DELETE", f"api_keys/{revoked['id']}")
        kill(found)
        service = service_of(started(control))
        assert service.ok("GET", "/_sandbox/clock")["now"] > created["operations"][-1]["created_at"]
        service.advance(5)
        assert {service.operation(operation)["status"] for operation in created["operations"]} == {"finished"}
        assert service.as_key(revoked["key"]).get("projects").status_code == 401

    @pytest.mark.parametrize("crash", range(CRASHES))
    def test_every_write_is_there_once_and_whole(self, control, service_of, tmp_path, crash):
        """Killed at any moment of any writes: what was answered is there, what was not is whole or not there at all."""
        found = started(control)
        answered, enough = {"keys": [], "revoked": [], "projects": [], "branches": []}, threading.Event()

        def write_keys(own):
            key = own.create_key("ci")
            answered["keys"].append(key["id"])
            own.ok("DELETE", f"api_keys/{key['id']}")
            answered["revoked"].append(key["id"])

        def write_projects(own):
            name = f"shop-{len(answered['projects'])}"
            project = own.ok("POST", "projects", json={"project": {"name": name}})["project"]
            answered["projects"].append(name)
            own.advance(60)
            own.ok("POST", f"projects/{project['id']}/branches", json={"branch": {"name": f"dev-{name}"}})
            answered["branches"].append(f"dev-{name}")

        def keep(write):
            own = service_of(found)
            try:
                while True:
                    write(own)
                    if all(len(names) > 3 + crash % 7 for names in answered.values()):
                        enough.set()
            except requests.ConnectionError:
                pass

        writers = [threading.Thread(target=keep, args=[write]) for write in (write_keys, write_projects)]
        kill_amid(writers, enough, found, within=20)

        service = service_of(started(control))
        with sqlite3.connect(tmp_path / "sandbox.sqlite") as db:
            assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            assert db.execute("PRAGMA foreign_key_check").fetchall() == []
        keys = {key["id"] for key in service.keys()}
        assert keys.isdisjoint(answered["revoked"])
        assert {key for key in answered["keys"] if key not in answered["revoked"]} <= keys | {max(answered["keys"])}
        projects = service.ok("GET", "projects", params={"limit": 400})["projects"]
        names = sorted(project["name"] for project in projects)
        assert names == sorted(set(names))
        assert len(set(names) - set(answered["projects"])) <= 1
        assert set(answered["projects"]) <= set(names)
        branches = []
        for project in projects:
            here = service.ok("GET", f"projects/{project['id']}/branches")["branches"]
            requested = [item for item in service.operations(project["id"]) if item["action"] not in PLATFORM]
            actions = sorted(item["action"] for item in requested)
            assert actions == sorted(["create_timeline", *["create_branch"] * (len(here) - 1)])
            branches += [branch["name"] for branch in here if not branch["default"]]
        assert branches == list(dict.fromkeys(branches))
        assert set(answered["branches"]) <= set(branches)


class TestCommandLine:
    @pytest.fixture
    def arguments(self, tmp_path):
        return [
            *("--database", str(tmp_path / "a.sqlite")),
            *("--api-key-file", str(tmp_path / "key")),
            *("--ready-file", str(tmp_path / "ready")),
        ]

    def test_foreground(self, tmp_path, arguments, connect):
        """Runs until it is told to end, and then ends quickly, whoever is still connected."""
        (tmp_path / "seed.yml").write_text("projects:\n  - name: shop\n    created_at: 2022-11-30T18:41:29Z\n")
        command = [sys.executable, "-m", "clouddb_sandbox", *arguments, "--seed", str(tmp_path / "seed.yml")]
        process = subprocess.Popen(command, cwd=SERVER, stderr=subprocess.PIPE, text=True)
        for line in process.stderr:
            if "startup complete" in line:
                break
        while not (tmp_path / "ready").exists():
            assert process.poll() is None
        ready = json.loads((tmp_path / "ready").read_text())
        assert ready["pid"] == process.pid
        service = connect(ready["base_url"], (tmp_path / "key").read_text().strip())
        assert service.ok("GET", "projects")["projects"][0]["created_at"] == "2022-11-30T18:41:29.000000Z"
        process.send_signal(signal.SIGTERM)
        _out, rest = process.communicate(timeout=5)
        assert "Traceback" not in rest

    def test_only_this_machine_reaches_it_unless_told_otherwise(self, arguments, monkeypatch, capsys):
        """Loopback by default; at another address it says that others can reach it."""
        addresses = []
        monkeypatch.setattr(Server, "run", lambda self, sockets: addresses.append(sockets[0].getsockname()[0]))
        assert main(arguments) == main([*arguments, "--host", "localhost"]) == 0
        assert (addresses, capsys.readouterr().err) == (["127.0.0.1", "127.0.0.1"], "")
        # Bound, but nobody listens there.
        assert main([*arguments, "--host", "0.0.0.0"]) == 0
        assert "Warning: the sandbox listens on 0.0.0.0, so other machines may reach it." in capsys.readouterr().err
        defaults = yaml.safe_load((SERVER.parent / "defaults" / "main.yml").read_text())
        assert defaults["sandbox_host"] == "127.0.0.1"

    def test_one_process_to_a_database(self, tmp_path, arguments, capsys):
        with database_lock(tmp_path / "a.sqlite"):
            assert main(arguments) == 1
        assert "Another sandbox uses" in capsys.readouterr().err
        assert not (tmp_path / "ready").exists()

    @pytest.mark.parametrize(
        ("seed", "complaint"), [("{[", "neither YAML nor JSON"), ("- 1", "seed: "), (None, "No such file")]
    )
    def test_bad_seed(self, tmp_path, arguments, capsys, seed, complaint):
        if seed:
            (tmp_path / "seed.yml").write_text(seed)
        assert main([*arguments, "--seed", str(tmp_path / "seed.yml")]) == 1
        errors = capsys.readouterr().err
        assert errors.startswith("The sandbox cannot start.")
        assert complaint in errors

    def test_not_a_database(self, tmp_path, arguments, capsys):
        (tmp_path / "a.sqlite").write_text("letters " * 100)
        assert main(arguments) == 1
        assert "not a database" in capsys.readouterr().err

    def test_key_file(self, tmp_path):
        """What is in it is the key; where nothing is, a new one is made, for its owner only."""
        (tmp_path / "mine").write_text("  my own key\n")
        assert read_or_create_key(tmp_path / "mine") == "my own key"
        for name in ("missing", "empty"):
            if name == "empty":
                (tmp_path / name).touch()
            secret = read_or_create_key(tmp_path / name)
            assert len(secret) == 64
            assert read_or_create_key(tmp_path / name) == secret
            assert (tmp_path / name).stat().st_mode & 0o777 == 0o600
