# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a program of the virtual environment in a temporary copy of the collection: ``workspace.py PROGRAM ARGUMENT...``.

ansible-test accepts a collection only below ``ansible_collections/NAMESPACE/NAME``, and neither it nor Ansible's modules
support a Python whose path contains spaces. The temporary folder therefore holds a copy of the collection and a link to
the virtual environment.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import types
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]

# Variables with these prefixes configure a developer's other work, so the programs do not get them.
REMOVED_PREFIXES = ("ANSIBLE_", "CLOUDDB_", "GIT_")
KEPT_VARIABLES = ("ANSIBLE_FORCE_COLOR", "ANSIBLE_NOCOLOR")

ANSIBLE_CFG = """\
[defaults]
collections_path = {root}
localhost_warning = false
[inventory]
inventory_unparsed_warning = false
"""

SECONDS_BEFORE_KILL = 10
INTERRUPTED = 130

processes: list[subprocess.Popen[str]] = []
interrupted = threading.Event()


class Workspace:
    """A temporary folder with a copy of the collection, in which programs run."""

    def __init__(self, root: Path) -> None:
        """Copy the files that git tracks or would track, as they are in the working tree."""
        self.root = root
        self.collection = root / "ansible_collections" / "clouddb" / "control"
        self.bin = root / "venv" / "bin"
        self.env = {
            **{k: v for k, v in os.environ.items() if k in KEPT_VARIABLES or not k.startswith(REMOVED_PREFIXES)},
            "ANSIBLE_COLLECTIONS_PATH": str(root),
            "ANSIBLE_CONFIG": str(root / "ansible.cfg"),
            "LC_ALL": "C.UTF-8",
            "PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}",
            "TMPDIR": str(root / "tmp"),
        }

        (root / "tmp").mkdir()
        (root / "venv").symlink_to(sys.prefix)
        (root / "ansible.cfg").write_text(ANSIBLE_CFG.format(root=root), encoding="utf-8")
        for name in self._files():
            target = self.collection / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(CHECKOUT / name, target, follow_symlinks=False)
        # ansible-test and ruff find files by way of git.
        subprocess.run(["git", "init", "--quiet"], cwd=self.collection, env=self.env, check=True)

    def _files(self) -> list[str]:
        git = ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(git, cwd=CHECKOUT, env=self.env, stdout=subprocess.PIPE, text=True, check=False)
        if listed.returncode:
            sys.exit("git ls-files failed. The files to copy are listed by git: run this in a git checkout.")
        return [name for name in sorted(set(listed.stdout.split("\0"))) if name and os.path.lexists(CHECKOUT / name)]

    def start(self, program: str, *arguments: str, piped: bool = False) -> subprocess.Popen[str]:
        """Start a program of the virtual environment in the copy; C(piped) gives it a session and an output of its own.

        Raises SystemExit after a signal, for example for the second program of a suite whose first one the signal has ended.
        """
        if interrupted.is_set():
            raise SystemExit(INTERRUPTED)
        path = self.bin / program
        with path.open("rb") as file:
            is_script = file.read(2) == b"#!"
        # A script's first line names the Python in the checkout, whose path may contain spaces.
        process = subprocess.Popen(
            [*([str(self.bin / "python")] if is_script else []), str(path), *arguments],
            cwd=self.collection,
            env=self.env,
            stdin=subprocess.DEVNULL if piped else None,
            stdout=subprocess.PIPE if piped else None,
            stderr=subprocess.STDOUT if piped else None,
            start_new_session=piped,
            text=True,
            errors="replace",
        )
        processes.append(process)
        if interrupted.is_set():
            # It ignores SIGINT, as this process does by now.
            terminate(process, signal.SIGKILL)
        return process

    def stop_sandboxes(self) -> None:
        """Stop the sandboxes that still run in folders of the workspace."""
        program = CHECKOUT / "roles" / "sandbox" / "files" / "background.py"
        # Unlike Path.rglob, os.walk ignores folders that are removed while it runs.
        for folder, _folders, files in os.walk(self.root):
            if ".clouddb-sandbox" in files:
                wanted = json.dumps({"state": "stopped", "dir": folder})
                subprocess.run(
                    [sys.executable, str(program)], input=wanted.encode(), stdout=subprocess.DEVNULL, check=False
                )


@contextmanager
def temporary_workspace() -> Iterator[Workspace]:
    """Create a workspace, and remove it in the end."""
    with tempfile.TemporaryDirectory(prefix="clouddb-control-", ignore_cleanup_errors=True) as folder:
        workspace = Workspace(Path(folder).resolve())
        try:
            yield workspace
        finally:
            workspace.stop_sandboxes()


def terminate(process: subprocess.Popen[str], number: int = signal.SIGINT) -> None:
    """End a program: one with a session of its own with all its children; another one got the terminal's SIGINT itself."""
    with suppress(ProcessLookupError):
        if process.poll() is None and os.getpgid(process.pid) == process.pid:
            os.killpg(process.pid, signal.SIGKILL if number == signal.SIGKILL else signal.SIGINT)
        elif process.returncode is None and number != signal.SIGINT:
            process.terminate()


def terminate_all(number: int) -> None:
    for process in processes:
        terminate(process, number)


def exit_on_signals() -> None:
    """On SIGHUP, SIGINT and SIGTERM, end the programs and exit, so that the workspaces are removed."""

    signals = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)

    def exit_on_signal(number: int, frame: types.FrameType | None) -> None:
        # A second signal would run this function again, which would wait for a lock that the first call holds.
        for each in signals:
            signal.signal(each, signal.SIG_IGN)
        interrupted.set()
        terminate_all(number)
        # ansible-test can hang while it handles SIGINT.
        kill = threading.Timer(SECONDS_BEFORE_KILL, terminate_all, [signal.SIGKILL])
        kill.daemon = True
        kill.start()
        raise SystemExit(128 + number)

    for number in signals:
        signal.signal(number, exit_on_signal)


def main() -> int:
    """Run the program named on the command line."""
    exit_on_signals()
    with temporary_workspace() as workspace, workspace.start(*sys.argv[1:]) as process:
        return process.wait()


if __name__ == "__main__":
    sys.exit(main())
