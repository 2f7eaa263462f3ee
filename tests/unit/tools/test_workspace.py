# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program that runs suites in copies of the collection ends at signals."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TOOLS = Path(__file__).parents[2] / "tools"

# The second signal arrives while the first one is handled: timeout(1) and terminals send one to each process of a group.
TWO_SIGNALS = """
import os, signal, workspace

class Flag:
    def set(self):
        print("interrupted", flush=True)
        os.kill(os.getpid(), signal.SIGTERM)

workspace.interrupted = Flag()
workspace.exit_on_signals()
os.kill(os.getpid(), signal.SIGTERM)
"""


def test_second_signal_is_ignored() -> None:
    process = subprocess.run(
        [sys.executable, "-c", TWO_SIGNALS], cwd=TOOLS, capture_output=True, text=True, timeout=60, check=False
    )
    assert (process.returncode, process.stdout) == (128 + 15, "interrupted\n"), process.stderr


AFTER_A_SIGNAL = """
import sys, workspace

workspace.interrupted.set()
with workspace.temporary_workspace() as folder:
    folder.start(sys.argv[1], "-c", "print('started')")
"""


def test_no_program_is_started_after_a_signal() -> None:
    process = subprocess.run(
        [sys.executable, "-c", AFTER_A_SIGNAL, Path(sys.executable).name],
        cwd=TOOLS,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (process.returncode, process.stdout, process.stderr) == (130, "", "")
