# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One process to a database, and a way to tell which one it is.

The server holds a lock on a file beside its database for as long as it lives; the kernel ends the hold with the
process, however that ends. The file says the holder's process id, so the id is right whenever the lock is held.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def held(database: Path) -> Iterator[None]:
    """Hold the database's lock; a BlockingIOError says that another process does."""
    with database.with_name(f"{database.name}.lock").open("a+", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield
