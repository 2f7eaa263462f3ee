# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a command and prints its resource usage as JSON: ``python -I -S measured.py COMMAND ARGUMENT...``.

The kernel counts the memory of the starting process as the started one's, so this file imports as little as possible.
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
        sys.exit(f"{sys.argv[1:3]} ended with status {os.waitstatus_to_exitcode(status)}.")
    print(f'{{"wall": {wall}, "cpu": {usage.ru_utime + usage.ru_stime}, "peak_mib": {usage.ru_maxrss / 1024}}}')
