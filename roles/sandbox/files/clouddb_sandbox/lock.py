# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lock that lets only one process use a database.

The server holds a lock on a file beside its database. The kernel releases it when the process ends, however it ends.
The file contains the holder's process id, so the id is valid whenever the lock is held.
If the file is removed, for example with its folder, the lock is lost: another process could use the path.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def database_lock(database: Path) -> Iterator[Callable[[], bool]]:
    """Hold the database's lock. Raises BlockingIOError if another process holds it. Yields a function: whether it was lost."""
    path = database.with_name(f"{database.name}.lock")

    def is_lost() -> bool:
        try:
            return not os.path.samestat(os.fstat(file.fileno()), path.lstat())
        except FileNotFoundError:
            return True

    with path.open("a+", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield is_lost
