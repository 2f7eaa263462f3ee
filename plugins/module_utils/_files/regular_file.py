# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Opens regular files only: no symbolic link is followed, and no FIFO blocks.

Paths of users are text, which is UTF-8 on the disk whatever the locale is, as for Ansible's own modules.
"""

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


def resolve_folder(path: str) -> str:
    """The absolute path, with the symbolic links in its folders resolved, but not the one that its last part may be."""
    folder, name = os.path.split(path)
    return os.path.join(as_text(os.path.realpath(system_path(folder))), name)


def system_path(path: str) -> str:
    """The path as Python's functions for files take it, which encode it as the locale says."""
    return os.fsdecode(path.encode("utf-8", "surrogateescape"))


def as_text(path: str) -> str:
    """The inverse of system_path()."""
    return os.fsencode(path).decode("utf-8", "surrogateescape")


def require_regular_file(status: os.stat_result, is_written: bool = False) -> None:
    """Raise OSError, whose C(strerror) is a clause, unless this is a regular file.

    One with further hard links, such as those of a backup, is only read, and only if it is this user's or root's.
    """
    kind = KINDS.get(stat.S_IFMT(status.st_mode))
    if kind:
        raise OSError(errno.EINVAL, f"it is {kind}, not a regular file")
    if status.st_nlink > 1 and (is_written or status.st_uid not in (0, os.geteuid())):
        # Whoever may write to the folder could have linked another user's file there.
        problem = (
            f"it has {status.st_nlink} hard links, so it is also another file, and it belongs to uid {status.st_uid}"
        )
        raise OSError(errno.EMLINK, problem)


def open_regular_file(path: str, flags: int = os.O_RDONLY) -> FileIO:
    """Open an existing regular file, unbuffered. Raises OSError, as require_regular_file() does for anything else."""
    # Opening a device can have effects. What is opened is checked again, because the path may have changed since.
    is_written = flags != os.O_RDONLY
    require_regular_file(os.lstat(path), is_written)
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        require_regular_file(os.fstat(descriptor), is_written)
        return FileIO(descriptor, "rb+" if is_written else "rb")
    except BaseException:
        os.close(descriptor)
        raise
