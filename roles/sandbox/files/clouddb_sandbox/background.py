# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Start, find and stop the sandbox of a folder as a background process. Needs the standard library only.

    python -m clouddb_sandbox.background {start,status,stop} FOLDER

Prints JSON: `changed`, `pid` (null: it does not run) and, while it runs, `base_url` and `api_key_file`.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from .lock import holder

LOG_LINES = 20
PATIENCE = 10


class Folder:
    """What lies where in a sandbox's folder."""

    def __init__(self, path: Path) -> None:
        self.database = path / "sandbox.sqlite"
        self.seed = path / "seed.json"
        self.api_key = path / "api_key"
        self.ready = path / "ready.json"
        self.log = path / "sandbox.log"

    def last_start(self) -> dict[str, Any]:
        """What the ready file says; it outlives the process, so that the next start can take the same port."""
        try:
            ready: dict[str, Any] = json.loads(self.ready.read_text(encoding="utf-8"))
        except FileNotFoundError:
            ready = {}
        return ready


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="clouddb_sandbox.background")
    commands = parser.add_subparsers(dest="command", required=True)
    for command in ("start", "status", "stop"):
        commands.add_parser(command).add_argument("folder", type=Path)
    start_parser = commands.choices["start"]
    start_parser.add_argument("--host", default="127.0.0.1")
    start_parser.add_argument("--port", type=int, default=0, help="0: the port of the last start, or any free one")
    start_parser.add_argument("--speed", type=float)
    start_parser.add_argument("--timeout", type=float, default=30)
    start_parser.add_argument("--restart", action="store_true", help="also when it runs as asked")
    options = parser.parse_args(arguments)
    folder = Folder(options.folder.resolve())
    if options.command == "start":
        return start(folder, options)
    changed = stop(folder) if options.command == "stop" else False
    report(folder, changed)
    return 0


def report(folder: Folder, changed: bool) -> None:
    pid = holder(folder.database)
    found = {"base_url": folder.last_start().get("base_url"), "api_key_file": str(folder.api_key)} if pid else {}
    print(json.dumps({"changed": changed, "pid": pid, **found}))


def start(folder: Folder, options: argparse.Namespace) -> int:
    last = folder.last_start()
    port = options.port or last.get("port", 0)
    if holder(folder.database):
        if not options.restart and (last.get("host"), last.get("port")) == (options.host, port):
            report(folder, False)
            return 0
        stop(folder)
    command = [sys.executable, "-m", "clouddb_sandbox", "--host", options.host, "--port", str(port)]
    command += ["--database", str(folder.database), "--api-key-file", str(folder.api_key)]
    command += ["--ready-file", str(folder.ready)]
    command += ["--seed", str(folder.seed)] if folder.seed.exists() else []
    command += ["--speed", str(options.speed)] if options.speed is not None else []
    with folder.log.open("ab") as log:
        log_start = log.tell()
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parent.parent)},
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
    report(folder, True)
    return 0


def complain(folder: Folder, log_start: int, what: str) -> int:
    """Say what happened and what this start had to say last."""
    with folder.log.open("rb") as log:
        log.seek(log_start)
        lines = log.read().decode(errors="replace").splitlines()
    print("\n".join([what, *lines[-LOG_LINES:]]), file=sys.stderr)
    return 1


def stop(folder: Folder) -> bool:
    """End the process that holds the folder's database, and no other; False if none does."""
    changed = False
    for signal_number in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + PATIENCE
        if pid := holder(folder.database):
            os.kill(pid, signal_number)
            changed = True
        while holder(folder.database) and time.monotonic() < deadline:
            time.sleep(0.02)
    return changed


if __name__ == "__main__":
    sys.exit(main())
