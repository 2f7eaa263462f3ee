# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Polls the process list, which any user of the machine can read, and records every command line."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

INTERVAL = 0.05  # seconds


def processes() -> set[str]:
    """The ids of all processes."""
    return {name for name in os.listdir("/proc") if name.isdigit()}


@contextmanager
def recorded_command_lines() -> Iterator[set[bytes]]:
    """The command lines recorded so far."""
    recorded: set[bytes] = set()
    ended = threading.Event()

    def read(process: str) -> None:
        with suppress(OSError), open(f"/proc/{process}/cmdline", "rb") as file:
            recorded.add(file.read().replace(b"\0", b" "))

    def record() -> None:
        while not ended.wait(INTERVAL):
            current = processes()
            # The ids of ended processes may be used again.
            older.intersection_update(current)
            for process in current - older:
                read(process)

    # Processes that run already keep their command line, and most of a machine's do, so they are read only once.
    older = processes()
    for process in older:
        read(process)
    recorder = threading.Thread(target=record)
    recorder.start()
    try:
        yield recorded
    finally:
        ended.set()
        recorder.join()
