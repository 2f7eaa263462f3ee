# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Create or remove a sandbox's folder, start or stop its process, or show its status. Needs only the standard library.

    python background.py {create,start,stop,remove,status} FOLDER

`create` marks the folder as a sandbox's with a marker file. It contains `server.json`, a dictionary of the server's files: path to content.
They are unpacked beside it when they are new or changed. `start`, `stop` and `remove` wait for each other.
Prints JSON: `changed`, `pid` (null if the sandbox is not running) and, while it is running, `base_url` and `api_key_file`.
`start` and `status` add `is_seed_applied` (whether the account was created from the seed in the folder, or null if it does not
exist yet, or if its seed is unknown).
`status` adds `is_created` (whether the folder is a sandbox's), `problem` (why the wanted state is refused, or null), `is_reached` (whether
the sandbox is in the wanted state: `start` with the same address, or `stop` or `remove`, would change nothing), `folder` and
`virtualenv` (the expanded paths).
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import platform
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

MAX_LOG_LINES = 20
STOP_TIMEOUT = 10  # seconds for each signal
MIN_PYTHON = (3, 10)  # of the server and its requirements
CANNOT_START = "The sandbox cannot start."
MARKER = "The role sandbox of clouddb.control uses this folder, and removes its files with sandbox_state: absent.\n"
FILES = (
    *("server.json", "seed.yml", "seed.sha256", "api_key", "ready.json", "sandbox.log", "server"),
    *("sandbox.sqlite", "sandbox.sqlite-journal", "sandbox.sqlite-shm", "sandbox.sqlite-wal", "sandbox.sqlite.lock"),
    # What a killed process leaves: the server's atomic_file.py, and Ansible's copy.
    *(".api_key.????????", ".ready.json.????????", ".seed.sha256.????????"),
    *(".ansible_tmp*server.json", ".ansible_tmp*seed.yml"),
)


class Refused(Exception):
    """The folder is not a sandbox's, or its process can't be stopped."""


class Folder:
    """The folder of a sandbox, and the paths of its files."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.marker = path / ".clouddb-sandbox"
        self.bundle = path / "server.json"
        self.server = path / "server"
        self.unpacked = self.server / "unpacked.sha256"
        self.database = path / "sandbox.sqlite"
        self.lock = path / "sandbox.sqlite.lock"
        self.seed = path / "seed.yml"
        self.applied_seed = path / "seed.sha256"
        self.api_key = path / "api_key"
        self.ready = path / "ready.json"
        self.log = path / "sandbox.log"

    def is_created(self) -> bool:
        """Return whether this is a sandbox's folder. Raises Refused if another user could read or exchange its files."""
        with suppress(FileNotFoundError):
            status = self.path.lstat()
            if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
                raise Refused(f"{self.path} is not a folder of this user. Choose another folder.")
        return self.marker.exists()

    def require_usable(self) -> None:
        """Raise Refused if the sandbox would overwrite the files of others."""
        if not self.is_created() and self.path.exists() and any(self.path.iterdir()):
            raise Refused(
                f"{self.path} contains files that do not belong to a sandbox. Choose a folder that is missing or empty."
            )

    def is_seed_applied(self) -> bool | None:
        """Return whether the account was created from the seed file as it is now; None if there is no account, or its seed is unknown."""
        if not self.applied_seed.exists():
            return None
        return not self.seed.exists() or read(self.applied_seed) == checksum(self.seed).encode()

    def is_unpacked(self) -> bool:
        return read(self.unpacked) == checksum(self.bundle).encode()

    def last_start(self) -> dict[str, Any]:
        """Return the content of the ready file. It remains after the process ends, so that the next start can reuse the port."""
        return read_object(self.ready)

    def pid(self) -> int | None:
        """Return the id of the sandbox's process. It holds the database's lock, and was started with this database."""
        with suppress(FileNotFoundError), self.lock.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                text = file.read(20)
                # Until the holder has written its id, the file has that of an earlier process.
                if text.isdigit() and " ".join(server_command(self)) in command_line(int(text)):
                    return int(text)
        return None


def read(path: Path) -> bytes:
    """Return the content of a file; empty if there is none."""
    return path.read_bytes() if path.exists() else b""


def read_object(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file; empty if there is none, because it was removed or damaged."""
    try:
        content = json.loads(read(path))
    except ValueError:
        content = None
    return content if isinstance(content, dict) else {}


def checksum(path: Path) -> str:
    return hashlib.sha256(read(path)).hexdigest()


def server_command(folder: Folder) -> list[str]:
    """Return the part of the server's command line that no other process has."""
    return ["-m", "clouddb_sandbox", "--database", str(folder.database)]


def command_line(pid: int) -> str:
    """Return the arguments of a process, joined by spaces; empty if there is no such process."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").replace("\0", " ")
    except OSError:
        if Path("/proc/self").exists():
            return ""
    shown = subprocess.run(["ps", "-ww", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return shown.stdout


def parse_arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="background.py")
    commands = parser.add_subparsers(dest="command", required=True)
    for command in ("create", "start", "stop", "remove", "status"):
        commands.add_parser(command).add_argument("folder", type=expanded)
    for command in ("remove", "status"):
        commands.choices[command].add_argument("--virtualenv", type=expanded, help="default: venv in the folder")
    commands.choices["status"].add_argument("--wanted", choices=("started", "stopped", "absent"), default="started")
    for command in ("start", "status"):
        commands.choices[command].add_argument("--host", default="127.0.0.1")
        commands.choices[command].add_argument(
            "--port", type=int, default=0, help="0: the port of the last start, or any free port"
        )
    start_parser = commands.choices["start"]
    start_parser.add_argument("--speed", type=float, default=1)
    start_parser.add_argument("--timeout", type=float, default=30)
    start_parser.add_argument("--exit-with", type=int, default=0, help="id of the process that the sandbox ends with")
    start_parser.add_argument("--restart", action="store_true", help="restart even if nothing has changed")
    return parser.parse_args(arguments)


def expanded(path: str) -> Path:
    """Return the path as Ansible's modules expand it. A link in the last part is not resolved, so that it is found."""
    absolute = Path(os.path.abspath(os.path.expanduser(os.path.expandvars(path))))
    return absolute.parent.resolve() / absolute.name


def main(arguments: list[str] | None = None) -> int:
    options = parse_arguments(arguments)
    folder = Folder(options.folder)
    try:
        if options.command == "status":
            show_status(folder, options)
        elif options.command == "create":
            print_status(folder, changed=create(folder))
        else:
            with exclusive(folder):
                return change(folder, options)
    except (Refused, OSError) as error:
        print(sentence(folder, error), file=sys.stderr)
        return 1
    return 0


@contextmanager
def exclusive(folder: Folder) -> Iterator[None]:
    """Wait until no other process starts, stops or removes the sandbox."""
    if not folder.is_created():
        yield
        return
    with folder.marker.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def change(folder: Folder, options: argparse.Namespace) -> int:
    """Start, stop or remove the sandbox. Returns the exit code."""
    if options.command == "start":
        return start(folder, options)
    changed = stop(folder) if options.command == "stop" else remove(folder, virtualenv_of(folder, options))
    print_status(folder, changed=changed)
    return 0


def sentence(folder: Folder, error: Refused | OSError) -> str:
    """Return what happened and what to do."""
    if isinstance(error, Refused):
        return str(error)
    problem = f"{error.filename or folder.path} can't be used: {error.strerror or error}."
    return f"{problem} Check the permissions and the free space there, and run the role again."


def virtualenv_of(folder: Folder, options: argparse.Namespace) -> Path:
    return options.virtualenv or folder.path / "venv"


def show_status(folder: Folder, options: argparse.Namespace) -> None:
    is_created, problem = False, None
    virtualenv = virtualenv_of(folder, options)
    try:
        is_created = folder.is_created()
        if options.wanted == "started":
            folder.require_usable()
            problem = problem_of_python(virtualenv)
    except (Refused, OSError) as error:
        problem = f"sandbox_dir: {sentence(folder, error)}"
    if problem:
        is_reached = False
    elif options.wanted == "started":
        is_reached = is_started(folder, options)
    else:
        is_reached = not is_created if options.wanted == "absent" else folder.pid() is None
    is_seed_applied = folder.is_seed_applied() if is_created else None
    facts = {"problem": problem, "is_created": is_created, "is_reached": is_reached, "is_seed_applied": is_seed_applied}
    print_status(folder, changed=False, folder=str(folder.path), virtualenv=str(virtualenv), **facts)


def problem_of_python(virtualenv: Path) -> str | None:
    """Return why this Python cannot create the virtual environment, or None if it can or need not."""
    if sys.version_info >= MIN_PYTHON or (virtualenv / "bin" / "activate").exists():
        return None
    return f"sandbox_python: {sys.executable} is Python {platform.python_version()}. Set it to Python 3.10 or later."


def print_status(sandbox: Folder, **facts: Any) -> None:
    pid = None if facts.get("problem") else sandbox.pid()
    access = {"base_url": sandbox.last_start().get("base_url"), "api_key_file": str(sandbox.api_key)} if pid else {}
    print(json.dumps({**facts, "pid": pid, **access}))


def create(folder: Folder) -> bool:
    """Create the folder, and mark it as a sandbox's. Returns whether that changed anything."""
    folder.require_usable()
    if folder.is_created():
        return False
    folder.path.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.path.chmod(0o700)
    folder.marker.write_text(MARKER, encoding="utf-8")
    return True


def remove(folder: Folder, virtualenv: Path) -> bool:
    """Stop the sandbox, and remove its files, and the folder if nothing else is in it. Returns whether there was a sandbox."""
    if not folder.is_created():
        return False
    stop(folder)
    for path in (found for name in FILES for found in folder.path.glob(name)):
        remove_path(path)
    folders = [parent for parent in virtualenv.parents if parent == folder.path or folder.path in parent.parents]
    if folders:
        remove_path(virtualenv)
    # The marker is last, so that a removal that was killed can be repeated.
    folder.marker.unlink()
    for path in folders or [folder.path]:
        # It has files of others, is a mount point, or was created by somebody else in a folder that this user may not write.
        with suppress(OSError):
            path.rmdir()
    return True


def remove_path(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def start(folder: Folder, options: argparse.Namespace) -> int:
    """Start the sandbox, or restart it if its server or address has changed. Returns the exit code."""
    if not folder.is_created():
        raise Refused(f"{folder.path} is not the folder of a sandbox. Run the role with sandbox_state: started.")
    if is_started(folder, options) and not options.restart:
        print_status(folder, changed=False, is_seed_applied=folder.is_seed_applied())
        return 0
    stop(folder)
    if not folder.is_unpacked():
        unpack(folder)
    command = [
        *(sys.executable, *server_command(folder)),
        *("--seed", str(folder.seed)),
        *("--seed-checksum-file", str(folder.applied_seed)),
        *("--api-key-file", str(folder.api_key)),
        *("--ready-file", str(folder.ready)),
        *("--host", options.host),
        *("--port", str(port_of(folder, options))),
        *("--speed", str(options.speed)),
        *("--exit-with", str(options.exit_with)),
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
            return report_failure(folder, log_start, f"The sandbox ended with exit code {process.returncode}. Its log:")
        if time.monotonic() > deadline:
            process.kill()
            message = (
                f"The sandbox did not start listening within {options.timeout:g} seconds."
                " Check its log below, or increase sandbox_start_timeout."
            )
            return report_failure(folder, log_start, message)
        time.sleep(0.05)
    print_status(folder, changed=True, is_seed_applied=folder.is_seed_applied())
    return 0


def is_started(folder: Folder, options: argparse.Namespace) -> bool:
    """Return whether the sandbox is running at the wanted address, with the server in the folder."""
    last = folder.last_start()
    is_same_address = (last.get("host"), last.get("port")) == (options.host, port_of(folder, options))
    return folder.pid() is not None and is_same_address and folder.is_unpacked()


def port_of(folder: Folder, options: argparse.Namespace) -> int:
    return int(options.port or folder.last_start().get("port", 0))


def report_failure(folder: Folder, log_start: int, message: str) -> int:
    """Print the message and the last log lines of this start, or only the lines in which the server says why it ended. Returns the exit code."""
    with folder.log.open("rb") as log:
        log.seek(log_start)
        lines = log.read().decode(errors="replace").splitlines()
    reason = next((number for number, line in enumerate(lines) if line.startswith(CANNOT_START)), None)
    shown = [message, *lines[-MAX_LOG_LINES:]] if reason is None else lines[reason:]
    print("\n".join(shown), file=sys.stderr)
    return 1


def stop(folder: Folder) -> bool:
    """Stop the server of this folder, and no other process. Returns whether there was one. Raises Refused if it does not end."""
    first = folder.pid()
    for number in (signal.SIGTERM, signal.SIGKILL):
        if pid := folder.pid():
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        deadline = time.monotonic() + STOP_TIMEOUT
        while folder.pid() and time.monotonic() < deadline:
            time.sleep(0.02)
    if folder.pid():
        raise Refused(f"The process {folder.pid()} of the sandbox does not end. Check it, and run the role again.")
    return first is not None


def unpack(folder: Folder) -> None:
    """Replace the server's files. Their checksum is written last, so that an incomplete server is detected. Raises Refused."""
    server = read_object(folder.bundle)
    if not server:
        raise Refused(f"{folder.bundle} is missing or damaged. Run the role with sandbox_state: started.")
    remove_path(folder.server)
    for name, text in server.items():
        path = folder.server / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    folder.unpacked.write_text(checksum(folder.bundle), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
