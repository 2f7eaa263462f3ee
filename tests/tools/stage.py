# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a program of the virtual environment on a fresh copy of the collection: ``stage.py PROGRAM ARGUMENT...``.

ansible-test takes a collection only below ``ansible_collections/NAMESPACE/NAME``, and neither it nor Ansible's modules
can use a Python whose path has spaces. So the copy and a link to the virtual environment live in a temporary folder.
"""

from __future__ import annotations

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

# What a developer's shell may hold of these belongs to other work; a colour choice is theirs to make.
FOREIGN = ("ANSIBLE_", "CLOUDDB_", "GIT_")
WELCOME = ("ANSIBLE_FORCE_COLOR", "ANSIBLE_NOCOLOR")

ANSIBLE_CFG = """\
[defaults]
collections_path = {root}
localhost_warning = false
display_skipped_hosts = false
[inventory]
inventory_unparsed_warning = false
"""

SECONDS_TO_END = 10

programs: list[subprocess.Popen[str]] = []
interrupted = threading.Event()


class Stage:
    """A copy of the collection in a temporary folder, and the means to run programs there."""

    def __init__(self, root: Path) -> None:
        """Copy the files that git tracks or would track, as they are in the working tree."""
        self.root = root
        self.collection = root / "ansible_collections" / "clouddb" / "control"
        self.bin = root / "venv" / "bin"
        self.env = {
            **{k: v for k, v in os.environ.items() if k in WELCOME or not k.startswith(FOREIGN)},
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
        subprocess.run(["git", "init", "--quiet"], cwd=self.collection, env=self.env, check=True)

    def _files(self) -> list[str]:
        git = ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(git, cwd=CHECKOUT, env=self.env, stdout=subprocess.PIPE, text=True, check=False)
        if listed.returncode:
            sys.exit("The collection is copied by what git lists: run this in a git checkout.")
        return [name for name in sorted(set(listed.stdout.split("\0"))) if name and os.path.lexists(CHECKOUT / name)]

    def start(self, program: str, *arguments: str, piped: bool = False) -> subprocess.Popen[str]:
        """Start a program of the virtual environment in the copy."""
        path = self.bin / program
        with path.open("rb") as file:
            is_script = file.read(2) == b"#!"
        # A script's own first line would name the Python in the checkout, spaces and all.
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
        programs.append(process)
        if interrupted.is_set():
            end(process)
        return process

    def stop_sandboxes(self) -> None:
        """Stop the sandboxes that were started in folders of the stage and outlived what has started them."""
        program = CHECKOUT / "roles" / "sandbox" / "files" / "background.py"
        # Unlike Path.rglob, os.walk takes it well when somebody else is just removing a folder.
        for folder, _folders, files in os.walk(self.root):
            if "server.json" in files:
                subprocess.run([sys.executable, str(program), "stop", folder], stdout=subprocess.DEVNULL, check=False)


@contextmanager
def stage() -> Iterator[Stage]:
    """Make a stage, and remove it in the end."""
    with tempfile.TemporaryDirectory(prefix="clouddb-control-", ignore_cleanup_errors=True) as folder:
        staged = Stage(Path(folder).resolve())
        try:
            yield staged
        finally:
            staged.stop_sandboxes()


def end(process: subprocess.Popen[str], number: int = signal.SIGINT) -> None:
    """Interrupt a program with all that it has started, as a terminal would; one that shares ours was told by that."""
    with suppress(ProcessLookupError):
        if process.poll() is None and os.getpgid(process.pid) == process.pid:
            os.killpg(process.pid, signal.SIGKILL if number == signal.SIGKILL else signal.SIGINT)
        elif process.returncode is None and number != signal.SIGINT:
            process.terminate()


def end_all(number: int) -> None:
    """Make all programs end."""
    for process in programs:
        end(process, number)


def leave_when_interrupted() -> None:
    """End the programs on all stages when this process is told to end, so that it leaves the stages and they are removed."""

    def leave(number: int, frame: types.FrameType | None) -> None:
        interrupted.set()
        end_all(number)
        # ansible-test can hang in the middle of its own end.
        late = threading.Timer(SECONDS_TO_END, end_all, [signal.SIGKILL])
        late.daemon = True
        late.start()
        raise SystemExit(128 + number)

    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, leave)


def main() -> int:
    """Run the program named on the command line."""
    leave_when_interrupted()
    with stage() as staged, staged.start(*sys.argv[1:]) as process:
        return process.wait()


if __name__ == "__main__":
    sys.exit(main())
