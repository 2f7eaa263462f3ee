# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Start and stop the sandbox of a folder as a background process, or show its status. Needs only the standard library.

    python background.py {start,status,stop} FOLDER

The folder contains `server.json`, a dictionary of the server's files: path to content. They are unpacked beside it when
they are new or changed. Prints JSON: `changed`, `pid` (null if the sandbox is not running) and, while it is running,
`base_url` and `api_key_file`. `status` adds `is_usable`: whether the folder is missing, empty, or a sandbox's.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

MAX_LOG_LINES = 20
STOP_TIMEOUT = 10  # seconds for each signal


class Folder:
    """The folder of a sandbox, and the paths of its files."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.bundle = path / "server.json"
        self.server = path / "server"
        self.database = path / "sandbox.sqlite"
        self.lock = path / "sandbox.sqlite.lock"
        self.seed = path / "seed.yml"
        self.api_key = path / "api_key"
        self.ready = path / "ready.json"
        self.log = path / "sandbox.log"

    def is_usable(self) -> bool:
        """Return whether the folder has no files but a sandbox's, so that the role may use and remove it."""
        return not self.path.exists() or self.bundle.exists() or not any(self.path.iterdir())

    def last_start(self) -> dict[str, Any]:
        """Return the content of the ready file. It remains after the process ends, so that the next start can reuse the port."""
        try:
            ready: dict[str, Any] = json.loads(self.ready.read_text(encoding="utf-8"))
        except FileNotFoundError:
            ready = {}
        return ready

    def pid(self) -> int | None:
        """Return the id of the process that holds the database's lock, as that process has written it to the lock file."""
        try:
            with self.lock.open(encoding="ascii") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:
                    text = file.read()  # empty until the holder has written its id
                    return int(text) if text else None
        except FileNotFoundError:
            pass
        return None


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="background.py")
    commands = parser.add_subparsers(dest="command", required=True)
    for command in ("start", "status", "stop"):
        commands.add_parser(command).add_argument("folder", type=Path)
    start_parser = commands.choices["start"]
    start_parser.add_argument("--host", default="127.0.0.1")
    start_parser.add_argument("--port", type=int, default=0, help="0: the port of the last start, or any free port")
    start_parser.add_argument("--speed", type=float, default=1)
    start_parser.add_argument("--timeout", type=float, default=30)
    start_parser.add_argument("--restart", action="store_true", help="restart even if nothing has changed")
    options = parser.parse_args(arguments)
    folder = Folder(options.folder.expanduser().resolve())
    if options.command == "start":
        return start(folder, options)
    if options.command == "stop":
        print_status(folder, changed=stop(folder))
    else:
        print_status(folder, changed=False, is_usable=folder.is_usable())
    return 0


def print_status(folder: Folder, **facts: bool) -> None:
    pid = folder.pid()
    access = {"base_url": folder.last_start().get("base_url"), "api_key_file": str(folder.api_key)} if pid else {}
    print(json.dumps({**facts, "pid": pid, **access}))


def start(folder: Folder, options: argparse.Namespace) -> int:
    """Start the sandbox, or restart it if its server or address has changed. Returns the exit code."""
    last = folder.last_start()
    port = options.port or last.get("port", 0)
    same_address = (last.get("host"), last.get("port")) == (options.host, port)
    if folder.pid() and same_address and is_unpacked(folder) and not options.restart:
        print_status(folder, changed=False)
        return 0
    stop(folder)
    if not is_unpacked(folder):
        unpack(folder)
    command = [
        *(sys.executable, "-m", "clouddb_sandbox"),
        *("--database", str(folder.database)),
        *("--seed", str(folder.seed)),
        *("--api-key-file", str(folder.api_key)),
        *("--ready-file", str(folder.ready)),
        *("--host", options.host),
        *("--port", str(port)),
        *("--speed", str(options.speed)),
    ]
    with folder.log.open("ab") as log:
        log_start = log.tell()
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            env={**os.environ, "PYTHONPATH": str(folder.server)},
            start_new_session=True,
        )
    deadline = time.monotonic() + options.timeout
    while folder.last_start().get("pid") != process.pid:
        if process.poll() is not None:
            return report_failure(folder, log_start, f"The sandbox ended with exit code {process.returncode}.")
        if time.monotonic() > deadline:
            process.kill()
            message = (
                f"The sandbox did not start listening within {options.timeout:g} seconds."
                " Check its log below, or increase sandbox_start_timeout."
            )
            return report_failure(folder, log_start, message)
        time.sleep(0.05)
    print_status(folder, changed=True)
    return 0


def report_failure(folder: Folder, log_start: int, message: str) -> int:
    """Print the message and the last log lines of this start. Returns the exit code."""
    with folder.log.open("rb") as log:
        log.seek(log_start)
        lines = log.read().decode(errors="replace").splitlines()
    print("\n".join([message, *lines[-MAX_LOG_LINES:]]), file=sys.stderr)
    return 1


def stop(folder: Folder) -> bool:
    """Stop the process that holds the database's lock, and no other. Returns whether there was one."""
    changed = False
    for signal_number in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + STOP_TIMEOUT
        if pid := folder.pid():
            os.kill(pid, signal_number)
            changed = True
        while folder.pid() and time.monotonic() < deadline:
            time.sleep(0.02)
    return changed


def is_unpacked(folder: Folder) -> bool:
    unpacked = folder.server / "digest"
    return unpacked.exists() and unpacked.read_text(encoding="ascii") == digest(folder)


def digest(folder: Folder) -> str:
    return hashlib.sha256(folder.bundle.read_bytes()).hexdigest()


def unpack(folder: Folder) -> None:
    """Write the server's files. The digest is written last, so that an incomplete server is detected."""
    shutil.rmtree(folder.server, ignore_errors=True)
    for name, text in json.loads(folder.bundle.read_text(encoding="utf-8")).items():
        path = folder.server / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (folder.server / "digest").write_text(digest(folder), encoding="ascii")


if __name__ == "__main__":
    sys.exit(main())
