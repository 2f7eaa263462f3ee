# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Start, find and stop the sandbox of a folder as a background process. Needs the standard library only.

    python background.py {start,status,stop} FOLDER

The folder holds `server.json`: the server's files, by path. They are unpacked beside it when they are new or have
changed. Prints JSON: `changed`, `pid` (null: it does not run) and, while it runs, `base_url` and `api_key_file`; with
`status` also `is_usable`: whether the folder is missing, empty or a sandbox's.
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

LOG_LINES = 20
SECONDS_TO_END = 10


class Folder:
    """What lies where in a sandbox's folder."""

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
        """Whether a sandbox may live here, and whatever is here may be removed with it."""
        return not self.path.exists() or self.bundle.exists() or not any(self.path.iterdir())

    def last_start(self) -> dict[str, Any]:
        """What the ready file says; it outlives the process, so that the next start can take the same port."""
        try:
            ready: dict[str, Any] = json.loads(self.ready.read_text(encoding="utf-8"))
        except FileNotFoundError:
            ready = {}
        return ready

    def pid(self) -> int | None:
        """The process that holds the database's lock, if one does. It has written its id there."""
        try:
            with self.lock.open(encoding="ascii") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:
                    text = file.read()  # empty for a moment while the holder is about to write
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
    start_parser.add_argument("--port", type=int, default=0, help="0: the port of the last start, or any free one")
    start_parser.add_argument("--speed", type=float, default=1)
    start_parser.add_argument("--timeout", type=float, default=30)
    start_parser.add_argument("--restart", action="store_true", help="also if it runs as asked")
    options = parser.parse_args(arguments)
    folder = Folder(options.folder.expanduser().resolve())
    if options.command == "start":
        return start(folder, options)
    if options.command == "stop":
        report(folder, changed=stop(folder))
    else:
        report(folder, changed=False, is_usable=folder.is_usable())
    return 0


def report(folder: Folder, **facts: bool) -> None:
    pid = folder.pid()
    found = {"base_url": folder.last_start().get("base_url"), "api_key_file": str(folder.api_key)} if pid else {}
    print(json.dumps({**facts, "pid": pid, **found}))


def start(folder: Folder, options: argparse.Namespace) -> int:
    last = folder.last_start()
    port = options.port or last.get("port", 0)
    as_asked = not options.restart and (last.get("host"), last.get("port")) == (options.host, port)
    if folder.pid() and as_asked and is_unpacked(folder):
        report(folder, changed=False)
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
            return complain(folder, log_start, f"The sandbox ended with exit code {process.returncode}.")
        if time.monotonic() > deadline:
            process.kill()
            return complain(folder, log_start, f"The sandbox did not listen within {options.timeout:g} seconds.")
        time.sleep(0.05)
    report(folder, changed=True)
    return 0


def complain(folder: Folder, log_start: int, what: str) -> int:
    """Say what happened, and what this start wrote into the log last."""
    with folder.log.open("rb") as log:
        log.seek(log_start)
        lines = log.read().decode(errors="replace").splitlines()
    print("\n".join([what, *lines[-LOG_LINES:]]), file=sys.stderr)
    return 1


def stop(folder: Folder) -> bool:
    """End the process that holds the database's lock, and no other; False if none does."""
    changed = False
    for signal_number in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + SECONDS_TO_END
        if pid := folder.pid():
            os.kill(pid, signal_number)
            changed = True
        while folder.pid() and time.monotonic() < deadline:
            time.sleep(0.02)
    return changed


def is_unpacked(folder: Folder) -> bool:
    stamp = folder.server / "digest"
    return stamp.exists() and stamp.read_text(encoding="ascii") == digest(folder)


def digest(folder: Folder) -> str:
    return hashlib.sha256(folder.bundle.read_bytes()).hexdigest()


def unpack(folder: Folder) -> None:
    """Write the server's files; their digest comes last, so that half a server is never taken for a whole one."""
    shutil.rmtree(folder.server, ignore_errors=True)
    for name, text in json.loads(folder.bundle.read_text(encoding="utf-8")).items():
        path = folder.server / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (folder.server / "digest").write_text(digest(folder), encoding="ascii")


if __name__ == "__main__":
    sys.exit(main())
