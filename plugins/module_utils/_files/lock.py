# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A lock between processes, whose file is removed with the lock. Keeps P2, P4 and P7."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from .._clock import Deadline

# In seconds, between attempts to get the lock.
POLL_INTERVAL = 0.1
NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP})
# Another process holds the lock, or has just removed its file; on another machine, with NFS, the file is stale then.
IN_USE = frozenset({errno.EWOULDBLOCK, errno.ENOENT, errno.ESTALE})


@contextmanager
def locked(path: str, deadline: Deadline) -> Iterator[bool]:
    """Create and lock the file, and yield whether its file system has locks; always remove it. Raises OSError.

    That is a BlockingIOError when another process has not released the lock by the deadline.
    """
    while True:
        with open(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600), "rb", buffering=0) as file:
            is_locked = _try_lock(path, file.fileno())
            if is_locked is not None:
                try:
                    yield is_locked
                finally:
                    # Before the lock is released: afterwards, the file would be that of another process.
                    with suppress(OSError):
                        os.unlink(path)
                return
        if not deadline.remaining():
            raise BlockingIOError
        deadline.clock.sleep(POLL_INTERVAL)


def _try_lock(path: str, file: int) -> bool | None:
    """Whether the file is locked, False when its file system has no locks; None while another process has the lock. Raises OSError."""
    try:
        has_locks = _has_locks(file)
        # The lock of a file that was removed meanwhile excludes nobody.
        return has_locks if os.path.samestat(os.lstat(path), os.fstat(file)) else None
    except OSError as error:
        if error.errno in IN_USE:
            return None
        raise


def _has_locks(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        return False
    return True
