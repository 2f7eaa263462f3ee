# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a command and prints as JSON what it took: ``python -I -S measured.py COMMAND ARGUMENT...``.

The kernel counts the memory of whoever starts a process as that process's own, so this file imports next to nothing.
"""

import os
import sys
import time

if __name__ == "__main__":
    started = time.monotonic()
    process = os.posix_spawn(
        sys.argv[1], sys.argv[1:], os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    )
    status, usage = os.wait4(process, 0)[1:]
    wall = time.monotonic() - started
    if status:
        sys.exit(f"{sys.argv[1:3]} ended with status {os.waitstatus_to_exitcode(status)}")
    print(f'{{"wall": {wall}, "cpu": {usage.ru_utime + usage.ru_stime}, "peak_mib": {usage.ru_maxrss / 1024}}}')
