# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Looks at the process list again and again, as any user of the machine can, and keeps every command line."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PAUSE = 0.05


@contextmanager
def watched() -> Iterator[set[bytes]]:
    """The command lines seen so far."""
    seen: set[bytes] = set()
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(PAUSE):
            for folder in Path("/proc").iterdir():
                if folder.name.isdigit():
                    with suppress(OSError):
                        seen.add((folder / "cmdline").read_bytes().replace(b"\0", b" "))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield seen
    finally:
        ended.set()
        watcher.join()
