# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A lock between the processes of one user, which no other user can hold."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO

from .._clock import Deadline
from .regular_file import open_regular_file

# In seconds, between attempts to get the lock.
POLL_INTERVAL = 0.1
NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP})


@contextmanager
def exclusive_lock(path: str, deadline: Deadline) -> Iterator[bool]:
    """Hold the lock of the file C(path), which exists only meanwhile; yield whether its file system has locks.

    A file that another user owns or can open is refused, because its owner could hold the lock forever.
    Raises TimeoutError when another process holds the lock at the deadline, and other OSErrors.
    """
    file, has_locks = _acquire(path, deadline)
    with file:
        try:
            yield has_locks
        finally:
            # Only the holder removes the file; what waits for its lock finds that it is gone, and creates another.
            with suppress(OSError):
                if _is_at(path, file):
                    os.unlink(path)


def _acquire(path: str, deadline: Deadline) -> tuple[FileIO, bool]:
    while True:
        file = _open(path, deadline)
        try:
            has_locks = _lock(file, deadline)
            if _is_at(path, file) or not has_locks:
                return file, has_locks
        except BaseException:
            file.close()
            raise
        file.close()


def _open(path: str, deadline: Deadline) -> FileIO:
    while True:
        with suppress(FileExistsError):
            file = FileIO(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
            # The umask may have restricted the owner, so that other tasks could not open it.
            os.fchmod(file.fileno(), 0o600)
            return file
        # Its holder may remove it meanwhile.
        with suppress(FileNotFoundError):
            try:
                file = open_regular_file(path, os.O_RDWR)
            except PermissionError:
                if not _is_being_created(path) or not deadline.remaining():
                    raise
                deadline.clock.sleep(POLL_INTERVAL)
                continue
            status = os.fstat(file.fileno())
            if status.st_uid == os.geteuid() and not status.st_mode & 0o077:
                return file
            file.close()
            raise PermissionError(errno.EPERM, f"it belongs to uid {status.st_uid}, or other users can open it")


def _is_being_created(path: str) -> bool:
    """Whether this user owns the file, and its mode is one that the umask gives until it is set."""
    status = os.lstat(path)
    return status.st_uid == os.geteuid() and status.st_mode & 0o600 != 0o600


def _lock(file: FileIO, deadline: Deadline) -> bool:
    """Wait for the lock; returns False when the file system has none."""
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if not deadline.remaining():
                raise TimeoutError(errno.ETIMEDOUT, "another process holds it") from None
            deadline.clock.sleep(POLL_INTERVAL)
        except OSError as error:
            if error.errno in NO_LOCKS:
                return False
            raise


def _is_at(path: str, file: FileIO) -> bool:
    """Whether the path still is this file's."""
    try:
        return os.path.samestat(os.lstat(path), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False
