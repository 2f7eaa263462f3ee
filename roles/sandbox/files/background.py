# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Create or remove a sandbox's folder, start or stop its process, or show its status. Needs only the standard library.

    python background.py {create,start,stop,remove,status} FOLDER

`create` marks the folder as a sandbox's with a marker file, and the other commands refuse other folders that are not empty. It contains
`server.json`, a dictionary of the server's files: path to content. They are unpacked beside it when they are new or changed.
`start`, `stop` and `remove` wait for each other.
Prints JSON: `changed`, `pid` (null if the sandbox is not running) and, while it is running, `base_url` and `api_key_file`.
`start` and `status` add `is_seed_applied` (whether the account was created from the seed in the folder, or null if it does not
exist yet, or if its seed is unknown).
`status` adds `content` (`missing`, `empty`, `sandbox`, or null if the folder is refused), `problem` (why the wanted state
is refused, or null), `is_reached` (whether the sandbox is in the wanted state: `start` with the same address, or `stop` or `remove`,
would change nothing), `folder` and `virtualenv` (the expanded paths).
"""

from __future__ import annotations

import argparse
import errno
import fcntl
import hashlib
import json
import os
import platform
import pwd
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, BinaryIO

MAX_LOG_LINES = 20
STOP_TIMEOUT = 10  # seconds for each signal
LOCK_TIMEOUT = 120  # seconds
MIN_PYTHON = (3, 10)  # of the server and its requirements
CANNOT_START = "The sandbox cannot start."
MARKER = "The role sandbox of clouddb.control has created this folder, and removes it with sandbox_state: absent.\n"
MARKER_OF_EXISTING = (
    "The role sandbox of clouddb.control uses this folder, and empties it with sandbox_state: absent.\n"
)
FILES = (
    *("server.json", "seed.yml", "seed.sha256", "api_key", "ready.json", "sandbox.log"),
    *("sandbox.sqlite", "sandbox.sqlite-journal", "sandbox.sqlite-shm", "sandbox.sqlite-wal", "sandbox.sqlite.lock"),
)
# What a killed process leaves: the server's atomic_file.py, and Ansible's copy.
TEMPORARY_FILES = (
    *(".api_key.????????", ".ready.json.????????", ".seed.sha256.????????"),
    *(".ansible_tmp*server.json", ".ansible_tmp*seed.yml"),
)


class Refused(Exception):
    """The folder is not a sandbox's, or may not be removed."""


class Folder:
    """The folder of a sandbox, and the paths of its files."""

    def __init__(self, path: Path) -> None:
        # A link in the last part is not resolved, so that it is found.
        self.path = path.parent.resolve() / path.name if path.name != ".." else path.resolve()
        path = self.path
        self.marker = path / ".clouddb-sandbox"
        self.new_marker = path / ".clouddb-sandbox.tmp"
        self.bundle = path / "server.json"
        self.server = path / "server"
        self.unpacked = self.server / "unpacked.json"
        self.removed = path / ".clouddb-sandbox.removed"
        self.database = path / "sandbox.sqlite"
        self.lock = path / "sandbox.sqlite.lock"
        self.seed = path / "seed.yml"
        self.applied_seed = path / "seed.sha256"
        self.api_key = path / "api_key"
        self.ready = path / "ready.json"
        self.log = path / "sandbox.log"

    def content(self) -> str:
        """Return whether the folder is `missing`, `empty` or a `sandbox`. Raises Refused if it is anything else.

        What a failed `create` has left counts as empty.
        """
        if any(self.path in (home, *home.parents) for home in homes()):
            raise Refused(f"{self.path} is or contains a home folder. Choose a folder of its own for the sandbox.")
        try:
            status = self.path.lstat()
        except FileNotFoundError:
            return "missing"
        if not stat.S_ISDIR(status.st_mode):
            raise Refused(f"{self.path} is a symbolic link or a file. Choose a folder.")
        if status.st_uid != os.geteuid():
            raise Refused(
                f"{self.path} belongs to uid {status.st_uid}. Run the role as that user, or choose another folder."
            )
        if self.is_marked():
            self.require_kinds()
            return "sandbox"
        if {*self.path.iterdir()} == self.incomplete_markers():
            return "empty"
        if os.path.lexists(self.lock) or os.path.lexists(self.database):
            pid = self.pid()
            raise Refused(
                f"{self.path} has the files of a sandbox, but not the valid file {self.marker.name} of this user "
                f"that its folder must have. {f'Stop its process with the command kill {pid}' if pid else 'It is not running'}"
                f"{', then remove' if pid else '. Remove'} the folder by hand if you do not need it, or choose another one."
            )
        raise Refused(
            f"{self.path} contains files that do not belong to a sandbox. Choose a folder that is missing or empty."
        )

    def incomplete_markers(self) -> set[Path]:
        """Return the markers that a failed `create` has left: one without content, and one that was not renamed."""
        found = set()
        for path in (self.marker, self.new_marker):
            with suppress(FileNotFoundError):
                status = path.lstat()
                is_ours = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and status.st_nlink == 1
                if is_ours and (path == self.new_marker or not status.st_size):
                    found.add(path)
        return found

    def is_marked(self) -> bool:
        """Return whether the folder has the marker, written by this user."""
        return self.marker_content() in (MARKER, MARKER_OF_EXISTING)

    def marker_content(self) -> str | None:
        """Return the content of the marker, or None if this user has not written it."""
        with suppress(OSError), open_regular(self.marker) as file:
            if file:
                status = os.fstat(file.fileno())
                if status.st_uid == os.geteuid() and status.st_nlink == 1:
                    return file.read(1000).decode(errors="replace")
        return None

    def require_kinds(self) -> None:
        """Raise Refused if something else has the name of one of the sandbox's files: a FIFO would block, and a link be followed."""
        for path in (*(self.path / name for name in FILES), self.server):
            with suppress(FileNotFoundError):
                is_kind = stat.S_ISDIR if path == self.server else stat.S_ISREG
                if not is_kind(path.lstat().st_mode):
                    kind = "folder" if path == self.server else "regular file"
                    raise Refused(f"{path} is not a {kind}, so the sandbox has not created it. Move it elsewhere.")

    def require_sandbox(self) -> None:
        """Raise Refused unless this is a sandbox's folder."""
        if self.content() != "sandbox":
            raise Refused(
                f"{self.path} is not the folder of a sandbox. Choose the folder that the sandbox was started in."
            )

    def own_files(self) -> set[Path]:
        """Return the files that the sandbox has created directly in the folder; not the marker."""
        return {
            path
            for path in self.path.iterdir()
            if (path.name in FILES or any(fnmatch(path.name, pattern) for pattern in TEMPORARY_FILES))
            and stat.S_ISREG(path.lstat().st_mode)
        }

    def server_files(self) -> set[Path]:
        """Return the files of the server, which need not exist, and those that Python has compiled."""
        # Earlier versions did not record them.
        names = read_object(self.unpacked).get("files") or [*read_object(self.bundle), "digest"]
        files = {self.server / name for name in names}
        compiled = (path for file in files for path in (file.parent / "__pycache__").glob(f"{file.stem}.*"))
        return {self.unpacked, *files, *compiled}

    def foreign_files(self, virtualenv: Path) -> Iterator[Path]:
        """Yield what the sandbox has not created in the folder. A virtual environment is not searched."""
        server = self.server_files()
        own = {self.marker, *self.own_files(), *server}
        if is_folder(self.removed):
            own.add(self.removed)
        if is_folder(virtualenv) and (virtualenv / "pyvenv.cfg").is_file():
            own.add(virtualenv)
        searched = {folder for path in (*server, virtualenv) for folder in path.parents}
        searched |= {path.parent / "__pycache__" for path in server} | {self.server}

        def search(folder: Path) -> Iterator[Path]:
            for path in sorted(folder.iterdir()):
                if path in searched and is_folder(path):
                    yield from search(path)
                elif path not in own:
                    yield path

        return search(self.path)

    def is_seed_applied(self) -> bool | None:
        """Return whether the account was created from the seed file as it is now; None if there is no account, or its seed is unknown."""
        if not self.applied_seed.exists():
            return None
        return not self.seed.exists() or read(self.applied_seed) == checksum(self.seed).encode()

    def last_start(self) -> dict[str, Any]:
        """Return the content of the ready file. It remains after the process ends, so that the next start can reuse the port."""
        return read_object(self.ready)

    def is_running(self) -> bool:
        """Return whether a process holds the database's lock."""
        return self.lock_holder() is not None

    def pid(self) -> int | None:
        """Return the id of the sandbox's process: the lock file has it, and the process was started with this database."""
        text = self.lock_holder()  # empty until the holder has written its id
        if text and text.isdigit() and self.is_server(int(text)):
            return int(text)
        return None

    def lock_holder(self) -> str | None:
        """Return the content of the database's lock file, or None if no process holds the lock."""
        with open_regular(self.lock) as file:
            if file:
                try:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:
                    return file.read(20).decode(errors="replace")
        return None

    def is_server(self, pid: int) -> bool:
        """Return whether the process is a server of this folder: an id can be that of another process."""
        return " ".join(server_command(self)) in command_line(pid)


@contextmanager
def open_regular(path: Path) -> Iterator[BinaryIO | None]:
    """Open a regular file to read it; None if there is none. No link is followed, and no FIFO blocks."""
    descriptor = None
    with suppress(FileNotFoundError):
        if stat.S_ISREG(path.lstat().st_mode):
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    if descriptor is None:
        yield None
    else:
        with open(descriptor, "rb") as file:
            yield file


def read(path: Path) -> bytes:
    """Return the content of a regular file; empty if there is none."""
    with open_regular(path) as file:
        return file.read() if file else b""


def read_object(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file; empty if there is none, because it was removed or damaged."""
    try:
        content = json.loads(read(path))
    except ValueError:
        content = None
    return content if isinstance(content, dict) else {}


def is_folder(path: Path) -> bool:
    """Return whether this is a folder, and not a link to one."""
    return path.is_dir() and not path.is_symlink()


@contextmanager
def exclusive(folder: Folder) -> Iterator[None]:
    """Wait until no other process starts, stops or removes the sandbox. Raises Refused if that takes too long."""
    with open_regular(folder.marker) as file:
        deadline = time.monotonic() + LOCK_TIMEOUT
        while file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise Refused(
                        f"Another run starts, stops or removes the sandbox in {folder.path}. Wait until it ends, and run the role again."
                    ) from None
                time.sleep(0.05)
        yield


def homes() -> set[Path]:
    """Return the home folders of all users."""
    found = [os.path.expanduser("~"), *(user.pw_dir for user in pwd.getpwall())]
    return {Path(os.path.realpath(home)) for home in found if home}


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


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="background.py")
    commands = parser.add_subparsers(dest="command", required=True)
    for command in ("create", "start", "stop", "remove", "status"):
        commands.add_parser(command).add_argument("folder")
    for command in ("remove", "status"):
        commands.choices[command].add_argument("--virtualenv", help="default: venv in the folder")
    commands.choices["status"].add_argument("--wanted", choices=("started", "stopped", "absent"), default="started")
    for command in ("start", "status"):
        parser_of_command = commands.choices[command]
        parser_of_command.add_argument("--host", default="127.0.0.1")
        parser_of_command.add_argument(
            "--port", type=int, default=0, help="0: the port of the last start, or any free port"
        )
    start_parser = commands.choices["start"]
    start_parser.add_argument("--speed", type=float, default=1)
    start_parser.add_argument("--timeout", type=float, default=30)
    start_parser.add_argument("--restart", action="store_true", help="restart even if nothing has changed")
    options = parser.parse_args(arguments)
    folder = Folder(expanded(options.folder))
    try:
        if options.command == "status":
            show_status(folder, options)
        elif options.command == "create":
            print_status(folder, changed=create(folder))
        else:
            folder.content()
            with exclusive(folder):
                return change(folder, options)
    except (Refused, OSError) as error:
        print(sentence(folder, error), file=sys.stderr)
        return 1
    return 0


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


def expanded(path: str) -> Path:
    """Return the path as Ansible's modules expand it."""
    return Path(os.path.expanduser(os.path.expandvars(path))).absolute()


def virtualenv_of(folder: Folder, options: argparse.Namespace) -> Path:
    return Folder(expanded(options.virtualenv)).path if options.virtualenv else folder.path / "venv"


def show_status(folder: Folder, options: argparse.Namespace) -> None:
    content, problem = None, None
    virtualenv = virtualenv_of(folder, options)
    try:
        content = folder.content()
        if options.wanted == "absent" and content == "sandbox":
            require_own_files(folder, virtualenv)
    except (Refused, OSError) as error:
        problem = f"sandbox_dir: {sentence(folder, error)}"
    if options.wanted == "started" and problem is None:
        problem = problem_of_python(virtualenv)
    if options.wanted == "absent":
        is_reached = content == "missing" or (content == "empty" and not folder.incomplete_markers())
    elif options.wanted == "started":
        is_reached = content == "sandbox" and is_started(folder, options)
    else:
        is_reached = content != "sandbox" or folder.pid() is None
    is_seed_applied = folder.is_seed_applied() if content == "sandbox" else None
    facts = {"content": content, "problem": problem, "is_reached": is_reached, "is_seed_applied": is_seed_applied}
    print_status(folder, changed=False, folder=str(folder.path), virtualenv=str(virtualenv), **facts)


def problem_of_python(virtualenv: Path) -> str | None:
    """Return why this Python cannot create the virtual environment, or None if it can or need not."""
    if sys.version_info >= MIN_PYTHON or (virtualenv / "bin" / "activate").exists():
        return None
    return f"sandbox_python: {sys.executable} is Python {platform.python_version()}. Set it to Python 3.10 or later."


def print_status(sandbox: Folder, **facts: Any) -> None:
    pid = sandbox.pid() if sandbox.is_marked() else None
    access = {"base_url": sandbox.last_start().get("base_url"), "api_key_file": str(sandbox.api_key)} if pid else {}
    print(json.dumps({**facts, "pid": pid, **access}))


def create(folder: Folder) -> bool:
    """Create the folder, and mark it as a sandbox's. Returns whether that changed anything."""
    content = folder.content()
    if content == "sandbox":
        return False
    if content == "missing":
        folder.path.mkdir(mode=0o700, parents=True)
    folder.path.chmod(0o700)
    folder.new_marker.unlink(missing_ok=True)
    try:
        descriptor = os.open(folder.new_marker, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with open(descriptor, "wb") as file:
            os.fchmod(descriptor, 0o600)  # whatever the umask is
            file.write((MARKER if content == "missing" else MARKER_OF_EXISTING).encode())
        folder.new_marker.rename(folder.marker)
    except OSError:
        folder.new_marker.unlink(missing_ok=True)
        raise
    return True


def require_own_files(folder: Folder, virtualenv: Path) -> None:
    """Raise Refused if the folder contains files that the sandbox has not created."""
    if foreign := [*folder.foreign_files(virtualenv)]:
        names = ", ".join(str(path.relative_to(folder.path)) for path in foreign)
        raise Refused(
            f"{folder.path} contains files that the sandbox has not created: {names}. Move them elsewhere first."
        )


def remove(folder: Folder, virtualenv: Path) -> bool:
    """Stop the sandbox, and remove what it has created, and the folder if that is possible. Returns whether there was anything."""
    content = folder.content()
    incomplete = folder.incomplete_markers() if content == "empty" else set()
    for path in incomplete:
        path.unlink()
    if content != "sandbox":
        return bool(incomplete)
    require_own_files(folder, virtualenv)
    stop(folder)
    remove_folder(folder, folder.server)
    if folder.path in virtualenv.parents:
        remove_folder(folder, virtualenv)
        for parent in virtualenv.parents[: virtualenv.parents.index(folder.path)]:
            with suppress(FileNotFoundError):
                parent.rmdir()
    for path in folder.own_files():
        path.unlink()
    is_created = folder.marker_content() == MARKER
    # The marker is last, so that a removal that was killed can be repeated.
    folder.marker.unlink()
    try:
        if is_created:
            folder.path.rmdir()
    except OSError as error:
        # Somebody else created it in a folder that this user may not write, or mounted it.
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EBUSY, errno.EROFS):
            raise
    return True


def remove_folder(folder: Folder, path: Path) -> None:
    """Remove a folder below the sandbox's. It is renamed first, so that the next removal recognizes what a killed one has left."""
    if is_folder(folder.removed):
        shutil.rmtree(folder.removed)
    with suppress(FileNotFoundError):
        path.rename(folder.removed)
        shutil.rmtree(folder.removed)


def start(folder: Folder, options: argparse.Namespace) -> int:
    """Start the sandbox, or restart it if its server or address has changed. Returns the exit code."""
    folder.require_sandbox()
    if is_started(folder, options) and not options.restart:
        print_status(folder, changed=False, is_seed_applied=folder.is_seed_applied())
        return 0
    stop(folder)
    if not is_unpacked(folder):
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
    return folder.pid() is not None and is_same_address and is_unpacked(folder)


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
    """Stop the server of this folder, and no other process. Returns whether there was one. Raises Refused."""
    if folder.content() != "sandbox":
        return False
    changed = False
    for signal_number in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + STOP_TIMEOUT
        is_sent = False
        while folder.is_running() and time.monotonic() < deadline:
            if not is_sent and (pid := folder.pid()):
                send_signal(folder, pid, signal_number)
                is_sent = changed = True
            time.sleep(0.02)
    if folder.is_running():
        raise Refused(
            f"Another process than the sandbox holds the lock {folder.lock}. It was not stopped. Check it with lsof or fuser."
        )
    return changed


def send_signal(folder: Folder, pid: int, number: int) -> None:
    """Send the signal if the process is the server of this folder."""
    with suppress(ProcessLookupError):
        if not hasattr(os, "pidfd_open"):  # not Linux
            if folder.pid() == pid:
                os.kill(pid, number)
            return
        descriptor = os.pidfd_open(pid)
        try:
            # While it is open, the id can't become that of another process.
            if folder.pid() == pid:
                signal.pidfd_send_signal(descriptor, number)
        finally:
            os.close(descriptor)


def is_unpacked(folder: Folder) -> bool:
    return read_object(folder.unpacked).get("sha256") == checksum(folder.bundle)


def checksum(path: Path) -> str:
    return hashlib.sha256(read(path)).hexdigest()


def unpack(folder: Folder) -> None:
    """Replace the server's files. Their checksum is written last, so that an incomplete server is detected. Raises Refused."""
    server = read_object(folder.bundle)
    if not server:
        raise Refused(f"{folder.bundle} is missing or damaged. Run the role with sandbox_state: started.")
    if foreign := [path for path in folder.foreign_files(folder.path / "venv") if folder.server in path.parents]:
        names = ", ".join(str(path.relative_to(folder.path)) for path in foreign)
        raise Refused(f"{folder.server} contains files that the sandbox has not created: {names}. Move them elsewhere.")
    remove_folder(folder, folder.server)
    folder.server.mkdir()
    unpacked = {"files": [*server], "sha256": None}
    folder.unpacked.write_text(json.dumps(unpacked), encoding="utf-8")
    for name, text in server.items():
        path = folder.server / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    folder.unpacked.write_text(json.dumps({**unpacked, "sha256": checksum(folder.bundle)}), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
