# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Starts, stops or removes a sandbox on this host, in a single run. Needs only the standard library.

Reads from standard input, as JSON, what is wanted:

- `state`: `started`, `stopped` or `absent`
- `check`: whether to change nothing
- `dir` and `virtualenv`: directories. The virtual environment is `venv` in `dir` by default
- for a start: `host`, `port` (0: that of the last start, or any free port), `speed`, `timeout`, `exit_with`, `lock`, `limits` (JSON),
  `seed` (a text; empty: none), `files` (of the server: path to content) and `requirements` (of the server, a list; empty: they are installed already)

Prints as JSON: `changed` (with `check`, whether anything would be), `problem` (null, or why the wanted state is not reached), and while the sandbox
is running `pid`, `base_url`, `api_key`, `api_key_file` and `is_seed_applied` (whether the account was created from the seed, or none is given).
Runs for the same directory wait for each other.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

MAX_LOG_LINES = 20
STOP_TIMEOUT = 10  # seconds for each signal
MIN_PYTHON = (3, 10)  # of the server and its requirements
SCHEMA_VERSION = re.compile(r"^SCHEMA_VERSION = (\d+)$", re.MULTILINE)  # in the server's store.py
FIND_PACKAGES = "import os, sys, sysconfig; sys.exit(not os.path.isdir(sysconfig.get_path('purelib')))"
CANNOT_START = "The sandbox cannot start."
MARKER = "The role sandbox of clouddb.control uses this directory, and removes its files with sandbox_state: absent.\n"
FILES = (
    *("seed.yml", "seed.sha256", "api_key", "ready.json", "sandbox.log", "server"),
    "server.json",  # of earlier versions
    *("sandbox.sqlite", "sandbox.sqlite-journal", "sandbox.sqlite-shm", "sandbox.sqlite-wal", "sandbox.sqlite.lock"),
    # What a killed process leaves, see the server's atomic_file.py.
    *(".api_key.????????", ".ready.json.????????", ".seed.sha256.????????"),
)
DEFAULTS = {
    "host": "127.0.0.1",
    "port": 0,
    "speed": 1,
    "timeout": 30,
    "exit_with": 0,
    "lock": "branch",
    "limits": "{}",
    "seed": "",
    "requirements": [],
}

Wanted = dict[str, Any]


class Refused(Exception):
    """The wanted state can't be reached; the message says why, and what to do."""


class Sandbox:
    """A sandbox, by its directory: the paths of its files, and its process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.marker = path / ".clouddb-sandbox"
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
        """Return whether this is a sandbox's directory. Raises Refused if another user could read or exchange its files."""
        with suppress(FileNotFoundError):
            status = self.path.lstat()
            if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
                raise Refused(f"sandbox_dir: {self.path} is not a directory of this user. Choose another directory.")
        return self.marker.exists()

    def require_usable(self) -> None:
        """Raise Refused if the sandbox would overwrite the files of others."""
        if not self.is_created() and self.path.exists() and any(self.path.iterdir()):
            raise Refused(
                f"sandbox_dir: {self.path} contains other files. Choose a directory that is missing or empty."
            )

    def create(self) -> None:
        """Create the directory, unless it exists, and mark it as a sandbox's."""
        if not self.is_created():
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.path.chmod(0o700)
            self.marker.write_text(MARKER, encoding="utf-8")

    def last_start(self) -> dict[str, Any]:
        """Return what the last start has written. It remains after the process ends, so that the next start can reuse the port."""
        try:
            content = json.loads(read(self.ready))
        except ValueError:
            content = None
        return content if isinstance(content, dict) else {}

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


def checksum(value: object) -> bytes:
    return hashlib.sha256(value.encode() if isinstance(value, str) else json.dumps(value).encode()).hexdigest().encode()


def server_command(sandbox: Sandbox) -> list[str]:
    """Return the part of the server's command line that no other process has."""
    return ["-m", "clouddb_sandbox", "--database", str(sandbox.database)]


def command_line(pid: int) -> str:
    """Return the arguments of a process, joined by spaces; empty if there is no such process."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").replace("\0", " ")
    except OSError:
        if Path("/proc/self").exists():
            return ""
    shown = subprocess.run(["ps", "-ww", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return shown.stdout


def expanded(path: str) -> Path:
    """Return the path as Ansible's modules expand it. A link in the last part is not resolved, so that it is found."""
    absolute = Path(os.path.abspath(os.path.expanduser(os.path.expandvars(path))))
    return absolute.parent.resolve() / absolute.name


def main() -> int:
    wanted = {**DEFAULTS, **json.load(sys.stdin)}
    sandbox = Sandbox(expanded(wanted["dir"]))
    outcome: dict[str, Any] = {"changed": False, "problem": None}
    before = None
    try:
        before = traces(sandbox, wanted)
        outcome["changed"] = reach(sandbox, wanted)
        outcome.update(access(sandbox, wanted))
    except Refused as error:
        outcome["problem"] = str(error)
    except OSError as error:
        problem = f"{error.filename or sandbox.path} can't be used: {error.strerror or error}."
        outcome["problem"] = f"{problem} Check the permissions and the free space there, and run the role again."
    if outcome["problem"] and before:
        outcome["changed"] = traces(sandbox, wanted) != before
    print(json.dumps(outcome))
    return 0


def traces(sandbox: Sandbox, wanted: Wanted) -> tuple[object, ...]:
    """Return what a start that fails may have changed: the directories, the server's files, and the process."""
    virtualenv = virtualenv_of(sandbox, wanted)
    return sandbox.path.exists(), virtualenv.exists(), read(sandbox.unpacked), sandbox.pid()


def reach(sandbox: Sandbox, wanted: Wanted) -> bool:
    """Bring the sandbox into the wanted state. Returns whether that has changed anything, or would."""
    if wanted["state"] == "started":
        sandbox.require_usable()
        require_python(sandbox, wanted)
        require_execution(sandbox, wanted)
        require_account(sandbox, wanted)
        if wanted.get("check") or not sandbox.is_created():
            require_address(sandbox, wanted)
    if wanted.get("check") or (wanted["state"] != "started" and not sandbox.is_created()):
        return not is_reached(sandbox, wanted)
    sandbox.create()
    with exclusive(sandbox.marker):
        if is_reached(sandbox, wanted):
            return False
        if wanted["state"] == "started":
            # Before the stop, so that a running sandbox stays if this fails. Here, because another run may just have started it.
            require_address(sandbox, wanted)
            virtualenv = virtualenv_of(sandbox, wanted)
            virtualenv.parent.mkdir(parents=True, exist_ok=True)
            with exclusive(virtualenv.parent):  # other sandboxes may share the virtual environment
                install(sandbox, wanted)
        stop(sandbox)
        if wanted["state"] == "started":
            start(sandbox, wanted)
        elif wanted["state"] == "absent":
            remove(sandbox, virtualenv_of(sandbox, wanted))
    return True


def is_reached(sandbox: Sandbox, wanted: Wanted) -> bool:
    """Return whether the sandbox is in the wanted state. A running one has the wanted address and the wanted server."""
    if wanted["state"] == "absent":
        return not sandbox.is_created()
    if wanted["state"] == "stopped":
        return sandbox.pid() is None
    last = sandbox.last_start()
    is_same_address = (last.get("host"), last.get("port")) == (wanted["host"], port_of(sandbox, wanted))
    return sandbox.pid() is not None and is_same_address and is_unpacked(sandbox, wanted)


def access(sandbox: Sandbox, wanted: Wanted) -> dict[str, Any]:
    """Return how to use the sandbox if it is running."""
    pid = sandbox.pid()
    if pid is None:
        return {}
    seed = wanted["seed"]
    return {
        "pid": pid,
        "base_url": sandbox.last_start().get("base_url"),
        "api_key": read(sandbox.api_key).decode().strip(),
        "api_key_file": str(sandbox.api_key),
        "is_seed_applied": not seed or read(sandbox.applied_seed) == checksum(seed),
    }


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Wait until no other process holds the lock of this file or directory."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def virtualenv_of(sandbox: Sandbox, wanted: Wanted) -> Path:
    return expanded(wanted["virtualenv"]) if "virtualenv" in wanted else sandbox.path / "venv"


def port_of(sandbox: Sandbox, wanted: Wanted) -> int:
    return int(wanted["port"]) or int(sandbox.last_start().get("port", 0))


# Install


def has_virtualenv(sandbox: Sandbox, wanted: Wanted) -> bool:
    """Return whether the virtual environment is complete, and its Python still has the packages that were installed for it."""
    binaries = virtualenv_of(sandbox, wanted) / "bin"
    if not (binaries / "activate").exists():  # it is written last
        return False
    # After an upgrade of the host, Python may be gone or of another version.
    with suppress(OSError):
        probe = [str(binaries / "python"), "-c", FIND_PACKAGES]
        return subprocess.run(probe, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode == 0
    return False


def require_python(sandbox: Sandbox, wanted: Wanted) -> None:
    """Raise Refused if this Python would have to create the virtual environment, but is too old."""
    if sys.version_info < MIN_PYTHON and not has_virtualenv(sandbox, wanted):
        raise Refused(
            f"sandbox_python: {sys.executable} is Python {platform.python_version()}. Set it to Python 3.10 or later."
        )


def require_execution(sandbox: Sandbox, wanted: Wanted) -> None:
    """Raise Refused if the virtual environment's libraries could not be loaded, because of the file system's options."""
    virtualenv = virtualenv_of(sandbox, wanted)
    existing = next(path for path in (virtualenv, *virtualenv.parents) if path.exists())
    if os.statvfs(existing).f_flag & getattr(os, "ST_NOEXEC", 0):  # only Linux has it
        is_inside = sandbox.path in virtualenv.parents
        variable = "sandbox_dir (quickstart: TMPDIR)" if is_inside else "sandbox_virtualenv"
        raise Refused(f"{virtualenv} is on a file system mounted with noexec. Set {variable} to another directory.")


def is_unpacked(sandbox: Sandbox, wanted: Wanted) -> bool:
    return read(sandbox.unpacked) == checksum([wanted["files"], wanted["requirements"]])


def install(sandbox: Sandbox, wanted: Wanted) -> None:
    """Install the server's requirements, unless they and its files are there."""
    virtualenv = virtualenv_of(sandbox, wanted)
    is_complete = has_virtualenv(sandbox, wanted)
    if is_complete and is_unpacked(sandbox, wanted):
        return
    if not is_complete:
        if sandbox.path in virtualenv.parents:
            remove_path(virtualenv)
        run(sys.executable, "-m", "venv", str(virtualenv))
    if wanted["requirements"]:
        pip = (str(virtualenv / "bin" / "python"), "-m", "pip", "install")
        # Whatever PIP_USER and pip.conf say.
        run(*pip, "--no-user", "--disable-pip-version-check", "--quiet", *wanted["requirements"])


def unpack(sandbox: Sandbox, wanted: Wanted) -> None:
    """Replace the server's files."""
    remove_path(sandbox.server)
    for name, text in wanted["files"].items():
        path = sandbox.server / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    # Last, so that an incomplete installation is detected.
    sandbox.unpacked.write_bytes(checksum([wanted["files"], wanted["requirements"]]))


def run(*command: str) -> None:
    """Run a program. Raises Refused with its last lines if it fails."""
    ran = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if ran.returncode:
        lines = ran.stdout.strip().splitlines()[-MAX_LOG_LINES:]
        raise Refused("\n".join(["The sandbox can't be installed. " + " ".join(command) + " failed:", *lines]))


# Start, stop and remove


def require_account(sandbox: Sandbox, wanted: Wanted) -> None:
    """Raise Refused if the server could not use the account, which an earlier or a later version of it has created."""
    if not sandbox.database.exists():
        return
    with suppress(sqlite3.Error), closing(sqlite3.connect(f"{sandbox.database.as_uri()}?mode=ro", uri=True)) as db:
        version = db.execute("PRAGMA user_version").fetchone()[0]
        supported = SCHEMA_VERSION.findall(wanted["files"]["clouddb_sandbox/store.py"])
        if version and str(version) not in supported:
            raise Refused(
                f"The account in {sandbox.path} was created by another version of the sandbox."
                " Remove the sandbox with sandbox_state: absent, then start it again."
            )


def require_address(sandbox: Sandbox, wanted: Wanted) -> None:
    """Raise Refused if the server could not listen at the wanted address. The port of the running sandbox is free for it."""
    host, port = wanted["host"], port_of(sandbox, wanted)
    try:
        family, kind, protocol, _name, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
    except OSError as error:
        is_own = sandbox.pid() is not None and sandbox.last_start().get("port") == port
        if not (is_own and error.errno == errno.EADDRINUSE):
            raise Refused(address_problem(host, port, error)) from error


def address_problem(host: str, port: int, error: OSError) -> str:
    if isinstance(error, socket.gaierror):
        return f"The address {host} is unknown ({error.strerror}). Set sandbox_host to an address of this machine."
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} of {host} is in use. Stop the process that listens there, or set sandbox_port to another port."
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{host} is not an address of this machine. Set sandbox_host to one that is."
    if error.errno == errno.EACCES:
        return f"This user may not listen on port {port} of {host}. Set sandbox_port to 1024 or more."
    return f"Port {port} of {host} can't be used: {error.strerror}. Check sandbox_port and sandbox_host."


def start(sandbox: Sandbox, wanted: Wanted) -> None:
    """Start the sandbox, and wait until it listens. Raises Refused."""
    unpack(sandbox, wanted)
    if not sandbox.applied_seed.exists():
        # There is no account yet, or the server writes the checksum of its seed again.
        sandbox.seed.touch(mode=0o600)
        sandbox.seed.write_text(wanted["seed"] or "{}", encoding="utf-8")
    command = [
        *(str(virtualenv_of(sandbox, wanted) / "bin" / "python"), *server_command(sandbox)),
        *("--seed", str(sandbox.seed)),
        *("--seed-checksum-file", str(sandbox.applied_seed)),
        *("--api-key-file", str(sandbox.api_key)),
        *("--ready-file", str(sandbox.ready)),
        *("--host", wanted["host"]),
        *("--port", str(port_of(sandbox, wanted))),
        *("--speed", str(wanted["speed"])),
        *("--exit-with", str(wanted["exit_with"])),
        *("--lock", wanted["lock"]),
        *("--limits", wanted["limits"]),
    ]
    previous = ready_file(sandbox)
    with sandbox.log.open("ab") as log:
        log_start = log.tell()
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            env={**os.environ, "PYTHONPATH": str(sandbox.server)},
            start_new_session=True,
        )
    deadline = time.monotonic() + float(wanted["timeout"])
    # An earlier start's may have the same process id, for example in a container. The server replaces the file.
    while ready_file(sandbox) == previous:
        if process.poll() is not None:
            raise failure(sandbox, log_start, f"The sandbox ended with exit code {process.returncode}. Its log:")
        if time.monotonic() > deadline:
            process.kill()
            message = (
                f"The sandbox did not start listening within {wanted['timeout']} seconds."
                " Check its log below, or increase sandbox_start_timeout."
            )
            raise failure(sandbox, log_start, message)
        time.sleep(0.05)


def ready_file(sandbox: Sandbox) -> int | None:
    """Return what identifies the file that the server writes when it listens."""
    return sandbox.ready.stat().st_ino if sandbox.ready.exists() else None


def failure(sandbox: Sandbox, log_start: int, message: str) -> Refused:
    """Return an error with the message and the last log lines of this start, or only with the reason that the server gives."""
    with sandbox.log.open("rb") as log:
        log.seek(log_start)
        lines = log.read().decode(errors="replace").splitlines()
    reason = next((number for number, line in enumerate(lines) if line.startswith(CANNOT_START)), None)
    if reason is None:
        return Refused("\n".join([message, *lines[-MAX_LOG_LINES:]]))
    # The server names its own option.
    return Refused(re.sub(r"Check --(\w+)\.", r"Check sandbox_\1.", "\n".join(lines[reason:])))


def stop(sandbox: Sandbox) -> None:
    """Stop the server of this directory, and no other process. Raises Refused if it does not end."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if pid := sandbox.pid():
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        deadline = time.monotonic() + STOP_TIMEOUT
        while sandbox.pid() and time.monotonic() < deadline:
            time.sleep(0.02)
    if sandbox.pid():
        raise Refused(f"The process {sandbox.pid()} of the sandbox does not end. Check it, and run the role again.")


def remove(sandbox: Sandbox, virtualenv: Path) -> None:
    """Remove the files of the stopped sandbox, and the directory if nothing else is in it."""
    for path in (found for name in FILES for found in sandbox.path.glob(name)):
        remove_path(path)
    if sandbox.path in virtualenv.parents:
        remove_path(virtualenv)
    # The marker is last, so that a removal that was killed can be repeated.
    sandbox.marker.unlink()
    # It has files of others, is a mount point, or was created by somebody else in a directory that this user may not write.
    with suppress(OSError):
        sandbox.path.rmdir()


def remove_path(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(main())
