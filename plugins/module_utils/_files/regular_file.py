# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Opens regular files only: no symbolic link is followed, and no FIFO blocks. Keeps P4 and P5."""

from __future__ import annotations

import errno
import os
import stat
from io import FileIO

KINDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a named pipe (FIFO)",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def resolve_directory(path: str) -> str:
    """The absolute path, with the symbolic links in its directories resolved, but not the one that its last part may be."""
    directory, name = os.path.split(path)
    return os.path.join(os.path.realpath(directory), name)


def require_regular_file(path: str) -> os.stat_result:
    """The status of the file. Raises OSError, whose C(strerror) is a clause if there is something else."""
    status = os.lstat(path)
    kind = KINDS.get(stat.S_IFMT(status.st_mode))
    if kind:
        raise OSError(errno.EINVAL, f"it is {kind}, not a regular file")
    return status


def open_regular_file(path: str, flags: int = os.O_RDONLY) -> FileIO:
    """Open an existing regular file, unbuffered. Raises OSError, as require_regular_file() does for anything else."""
    # Opening a device can have effects, so the path is checked first.
    require_regular_file(path)
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY)
    return FileIO(descriptor, "rb" if flags == os.O_RDONLY else "rb+")
