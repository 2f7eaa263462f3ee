# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The names of the files that appear in a folder, as inotify reports them."""

from __future__ import annotations

import ctypes
import os
import struct
import types
from pathlib import Path

IN_MOVED_TO, IN_CREATE = 0x80, 0x100
HEADER = struct.Struct("iIII")
libc = ctypes.CDLL(None, use_errno=True)


class FolderEvents:
    """Records which files are created in, or moved to, a folder while the context is open."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> FolderEvents:
        self._descriptor = libc.inotify_init1(os.O_NONBLOCK)
        if libc.inotify_add_watch(self._descriptor, bytes(self._folder), IN_CREATE | IN_MOVED_TO) < 0:
            raise OSError(ctypes.get_errno(), "inotify_add_watch", str(self._folder))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: types.TracebackType | None
    ) -> None:
        os.close(self._descriptor)

    def names(self) -> list[str]:
        """The names of the files so far, in the order of the events."""
        try:
            events = os.read(self._descriptor, 65536)
        except BlockingIOError:
            return []
        names = []
        while events:
            _watch, _mask, _cookie, length = HEADER.unpack_from(events)
            name, events = events[HEADER.size : HEADER.size + length], events[HEADER.size + length :]
            names.append(name.rstrip(b"\0").decode())
        return names
