# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the command that starts the sandbox of the quickstart, and clean up if the quickstart ends without doing so.

    python run_then_clean_up.py PID FOLDER COMMAND…

Ansible runs no `always` after Ctrl-C. So a process in the background waits until the process PID has ended or FOLDER is removed. If FOLDER
still exists then, it runs COMMAND again with `sandbox_state=absent`, and if that succeeds, removes FOLDER. It first waits for the end of the
interrupted COMMAND, and ends it after a minute: `ansible-playbook` may hang when one of its processes was killed.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

INTERVAL = 0.5  # seconds
# The seconds to wait for the end of the command, and the signal to end it with.
SIGNALS = ((60, signal.SIGTERM), (10, signal.SIGKILL))
MAX_ATTEMPTS = 10


def main() -> None:
    process_id, folder, command = int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]
    command_id = os.getpid()
    ended, running = os.pipe()
    if os.fork():
        os.close(ended)
        # The kernel closes it when the command has ended.
        os.set_inheritable(running, True)
        os.execv(command[0], command)
    os.close(running)
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(null, descriptor)
    clean_up(process_id, folder, command, command_id, ended)


def clean_up(process_id: int, folder: Path, command: list[str], command_id: int, ended: int) -> None:
    """Wait until the process has ended. If the folder exists, wait until the command has ended as well, then remove what it started.

    C(command_id) is the id of the command's process; the pipe C(ended) can be read when it has ended.
    """
    while is_running(process_id):
        if not folder.exists():
            return
        time.sleep(INTERVAL)
    for seconds, number in SIGNALS:
        # While the command is running, it is the parent of this process.
        if not select.select([ended], [], [], seconds)[0] and os.getppid() == command_id:
            os.kill(command_id, number)
    # Processes that the interrupted command has left may still write to the folder.
    for _attempt in range(MAX_ATTEMPTS):
        if not folder.exists():
            return
        if subprocess.run([*command, "--extra-vars", "sandbox_state=absent"], check=False).returncode == 0:
            shutil.rmtree(folder, ignore_errors=True)
        time.sleep(INTERVAL)


def is_running(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    return True


if __name__ == "__main__":
    main()
