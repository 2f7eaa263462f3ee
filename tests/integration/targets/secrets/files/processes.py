# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Polls the process list, which any user of the machine can read, and records every command line."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

INTERVAL = 0.05  # seconds


@contextmanager
def recorded_command_lines() -> Iterator[set[bytes]]:
    """The command lines recorded so far."""
    recorded: set[bytes] = set()
    ended = threading.Event()

    def record() -> None:
        while not ended.wait(INTERVAL):
            for folder in Path("/proc").iterdir():
                if folder.name.isdigit():
                    with suppress(OSError):
                        recorded.add((folder / "cmdline").read_bytes().replace(b"\0", b" "))

    recorder = threading.Thread(target=record)
    recorder.start()
    try:
        yield recorded
    finally:
        ended.set()
        recorder.join()
