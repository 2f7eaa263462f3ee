# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command line of the server: python -m clouddb_sandbox."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import background
import pytest
import yaml

from clouddb_sandbox.__main__ import is_running, main, parse_arguments, read_or_create_key, start_time
from clouddb_sandbox.lock import database_lock
from clouddb_sandbox.server import Server

SERVER = Path(background.__file__).parent


def test_the_package_has_the_version_of_the_collection():
    project = (SERVER / "pyproject.toml").read_text(encoding="utf-8")
    collection = yaml.safe_load((SERVER.parents[2] / "galaxy.yml").read_text(encoding="utf-8"))["version"]
    assert f'version = "{collection.replace("-", ".")}"' in project


def test_the_package_knows_nothing_of_ansible():
    texts = [path.read_text(encoding="utf-8") for path in (SERVER / "clouddb_sandbox").rglob("*.py")]
    assert [text for text in texts if "ansible" in text.lower()] == []


def test_without_options_its_files_are_in_the_current_directory():
    options = parse_arguments([])
    assert (options.database, options.api_key_file, options.ready_file) == (
        Path("clouddb-sandbox.sqlite"),
        Path("clouddb-sandbox.key"),
        None,
    )


class TestCommandLine:
    @pytest.fixture
    def arguments(self, tmp_path):
        return [
            *("--database", str(tmp_path / "a.sqlite")),
            *("--api-key-file", str(tmp_path / "key")),
            *("--ready-file", str(tmp_path / "ready")),
        ]

    @pytest.mark.soak
    @pytest.mark.parametrize("end", ["signal", "removal of its folder", "end of another process"])
    def test_end_of_the_server(self, tmp_path, arguments, connect, end):
        """It stops quickly even while clients are connected. Its files can be read by their owner only."""
        (tmp_path / "seed.yml").write_text("projects:\n  - name: shop\n    created_at: 2022-11-30T18:41:29Z\n")
        other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        options = ["--seed", str(tmp_path / "seed.yml"), "--exit-with", str(other.pid)]
        command = [sys.executable, "-m", "clouddb_sandbox", *arguments, *options]
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
        readable = {path.name for path in tmp_path.iterdir() if path.stat().st_mode & 0o077}
        assert (readable, (tmp_path / "a.sqlite").exists()) == ({"seed.yml"}, True)
        if end == "signal":
            process.send_signal(signal.SIGTERM)
        elif end == "removal of its folder":
            shutil.rmtree(tmp_path)
        else:
            other.stdin.close()  # nobody waits for it, so it stays as a zombie
        _out, errors = process.communicate(timeout=60)
        other.stdin.close()
        other.wait(60)
        assert "Traceback" not in errors

    @pytest.mark.skipif(sys.platform != "linux", reason="other systems do not show when a process has started")
    def test_later_process_with_the_id_of_one_that_has_ended(self):
        """Its start differs."""
        since = start_time(os.getpid())
        assert is_running(os.getpid(), since)
        assert not is_running(os.getpid(), str(int(since) - 1))
        assert not is_running(os.getpid(), "")

    def test_listens_on_loopback_by_default(self, arguments, monkeypatch, capsys):
        """At another address it warns that other machines may reach it."""
        addresses = []
        monkeypatch.setattr(Server, "run", lambda self, sockets: addresses.append(sockets[0].getsockname()[0]))
        assert main(arguments) == main([*arguments, "--host", "localhost"]) == 0
        assert (addresses[0], addresses[1] in ("127.0.0.1", "::1"), capsys.readouterr().err) == ("127.0.0.1", True, "")
        # The socket is bound, but Server.run is replaced, so nothing listens.
        assert main([*arguments, "--host", "0.0.0.0"]) == 0
        assert "Warning: the sandbox listens on 0.0.0.0, so other machines may reach it." in capsys.readouterr().err
        defaults = yaml.safe_load((SERVER.parent / "defaults" / "main.yml").read_text())
        assert defaults["sandbox_host"] == "127.0.0.1"

    def test_database_in_use_fails(self, tmp_path, arguments, capsys):
        with database_lock(tmp_path / "a.sqlite"):
            assert main(arguments) == 1
        assert "Another sandbox uses" in capsys.readouterr().err
        assert not (tmp_path / "ready").exists()

    @pytest.mark.parametrize(
        ("seed", "message"), [("{[", "neither YAML nor JSON"), ("- 1", "seed: "), (None, "No such file")]
    )
    def test_invalid_seed_file_fails(self, tmp_path, arguments, capsys, seed, message):
        if seed:
            (tmp_path / "seed.yml").write_text(seed)
        assert main([*arguments, "--seed", str(tmp_path / "seed.yml")]) == 1
        errors = capsys.readouterr().err
        assert errors.startswith("The sandbox cannot start.")
        assert message in errors

    @pytest.mark.parametrize("speed", ["-1", "1e6", "nan"])
    def test_speed_that_the_clock_cannot_have_fails(self, tmp_path, arguments, capsys, speed):
        assert main([*arguments, "--speed", speed]) == 1
        assert "Check --speed." in capsys.readouterr().err
        assert not (tmp_path / "a.sqlite").exists()

    def test_file_that_is_not_a_database_fails(self, tmp_path, arguments, capsys):
        (tmp_path / "a.sqlite").write_text("some text " * 100)
        assert main(arguments) == 1
        assert "not a database" in capsys.readouterr().err

    def test_key_file_is_read_or_created(self, tmp_path):
        (tmp_path / "existing").write_text("  my own key\n")
        assert read_or_create_key(tmp_path / "existing") == "my own key"
        (tmp_path / "empty").touch()
        for name in ("missing", "empty"):
            secret = read_or_create_key(tmp_path / name)
            assert len(secret) == 64
            assert read_or_create_key(tmp_path / name) == secret
            assert (tmp_path / name).stat().st_mode & 0o777 == 0o600
