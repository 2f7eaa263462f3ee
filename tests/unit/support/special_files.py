# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What can be at a path instead of a regular file, files with access lists, and errors of the system."""

from __future__ import annotations

import errno
import os
import stat
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def set_access_list(path: Path, kind: str = "access") -> None:
    """Let user 65534 read the file, or with C(kind) default, the files that are created in this folder.

    Skips the test where the file system has no access lists.
    """
    # As in linux/posix_acl_xattr.h: version, and tag, permissions and id of the owner, the user, the group, the mask and others.
    entries = [(1, 6, -1), (2, 4, 65534), (4, 0, -1), (0x10, 4, -1), (0x20, 0, -1)]
    value = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)
    try:
        os.setxattr(path, f"system.posix_acl_{kind}", value)
    except OSError as error:
        if error.errno != errno.ENOTSUP:
            raise
        pytest.skip("the file system has no access lists")


def access_list(path: Path) -> bytes | None:
    """The access list of the file, None if it has none."""
    names = os.listxattr(path)
    return os.getxattr(path, "system.posix_acl_access") if "system.posix_acl_access" in names else None


def failing(number: int) -> Callable[..., Any]:
    """A function that raises OSError with this error number, whatever its arguments are."""

    def fail(*args: object, **kwargs: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail


# What creates it, and how a message describes it.
special_files = pytest.mark.parametrize(
    ("create", "description"),
    [
        (lambda path: path.symlink_to(__file__), "it is a symbolic link"),
        (lambda path: path.symlink_to(path.name), "it is a symbolic link"),
        (os.mkfifo, "it is a named pipe"),
        (lambda path: os.mknod(path, stat.S_IFSOCK), "it is a socket"),
        (lambda path: path.mkdir(), "it is a directory"),
    ],
    ids=["link", "link to itself", "FIFO", "socket", "directory"],
)
