# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""run_then_clean_up.py: the sandbox of a quickstart that was interrupted is removed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).resolve().parents[3] / "playbooks" / "files" / "run_then_clean_up.py"
# Waits for its standard input to end, as Ansible does not; the second run has none.
COMMAND = """import sys, pathlib
sys.stdin.read()
with open(sys.argv[1], "a") as log:
    print(*sys.argv[2:], pathlib.Path(sys.argv[2]).exists(), file=log)
print("started")
"""

WITHOUT_PATIENCE = """import signal, sys
sys.path[0] = sys.argv.pop(1)
if sys.argv.pop(1) == str(int(signal.SIGKILL)):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
import run_then_clean_up as program
program.SIGNALS = [(0.1, number) for seconds, number in program.SIGNALS]
program.main()
"""


class Quickstart:
    """A process that is watched, its folder, and the command with its log."""

    def __init__(self, path, program=(PROGRAM,)):
        self.folder, self.log = path / "folder", path / "log"
        self.folder.mkdir()
        (self.folder / "file").touch()
        self.process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        self.ended, running = os.pipe()
        arguments = [*program, str(self.process.pid), self.folder, sys.executable, "-c", COMMAND, self.log, self.folder]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.command = subprocess.Popen([sys.executable, *arguments], pass_fds=[running], **pipes)
        os.close(running)

    def interrupt(self):
        if self.process.returncode is None:
            self.process.communicate()

    def runs(self):
        """Wait until the background process has ended. Returns the arguments of each run, and whether the folder existed."""
        assert os.read(self.ended, 1) == b""
        os.close(self.ended)
        return self.log.read_text().splitlines()


@pytest.fixture
def quickstart(tmp_path):
    return Quickstart(tmp_path)


class TestRunThenCleanUp:
    @pytest.mark.parametrize("is_command_running", [False, True])
    def test_interrupted_quickstart(self, quickstart, is_command_running):
        """The folder is not removed while the command that fills it is running."""
        if is_command_running:
            quickstart.interrupt()
        output, _errors = quickstart.command.communicate()
        assert (output, quickstart.command.returncode) == ("started\n", 0)
        quickstart.interrupt()
        folder = quickstart.folder
        assert quickstart.runs() == [f"{folder} True", f"{folder} --extra-vars sandbox_state=absent True"]
        assert not folder.exists()

    @pytest.mark.parametrize("expected", [signal.SIGTERM, signal.SIGKILL])
    def test_command_that_does_not_end_is_killed(self, tmp_path, expected):
        """Also if it ignores the first signal."""
        quickstart = Quickstart(tmp_path, ["-c", WITHOUT_PATIENCE, PROGRAM.parent, str(int(expected))])
        quickstart.interrupt()
        assert quickstart.command.wait() == -expected
        assert quickstart.runs() == [f"{quickstart.folder} --extra-vars sandbox_state=absent True"]
        assert not quickstart.folder.exists()

    def test_quickstart_that_has_cleaned_up(self, quickstart):
        quickstart.command.communicate()
        shutil.rmtree(quickstart.folder)
        assert quickstart.runs() == [f"{quickstart.folder} True"]
        assert quickstart.process.poll() is None
        quickstart.interrupt()
