# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Replaces a file completely or not at all, also when the process is killed or the power fails."""

from __future__ import annotations

import errno
import glob
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from typing import NamedTuple

SUFFIX = ".tmp"


class TemporaryFile(NamedTuple):
    """A temporary file and the path of the file that it is to replace."""

    path: str
    file: FileIO
    target: str

    def replace_target(self, content: bytes, unsafe_writes: bool = False) -> None:
        """Write the content to the disk and rename the temporary file to C(target).

        With C(unsafe_writes), a target that can't be replaced, such as one that is mounted into a container, is
        overwritten in place. Raises OSError; the temporary file is empty then.
        """
        try:
            _write(self.file, content)
            try:
                os.replace(self.path, self.target)
            except OSError as error:
                if error.errno != errno.EBUSY or not unsafe_writes:
                    raise
                with open(self.target, "wb", buffering=0) as target:
                    _write(target, content)
        except OSError:
            # Where the folder can't be reached any more, the temporary file can't be removed, but it can be emptied.
            with suppress(OSError):
                self.file.truncate(0)
            raise
        # The new file is in place, and some file systems can't sync folders.
        with suppress(OSError):
            _sync_folder(os.path.dirname(self.target))


@contextmanager
def temporary_file(target: str, prefix: str) -> Iterator[TemporaryFile]:
    """Create an empty file, readable by its owner only, in the folder of C(target); remove it in every case.

    Its name begins with C(prefix). Raises OSError.
    """
    target = os.path.abspath(target)
    descriptor, path = tempfile.mkstemp(SUFFIX, prefix, os.path.dirname(target))
    try:
        with open(descriptor, "wb", buffering=0) as file:
            yield TemporaryFile(path, file, target)
    finally:
        # It is gone when it was renamed.
        with suppress(OSError):
            os.unlink(path)


def remove_temporary_files(folder: str, prefix: str) -> None:
    """Remove the files with this prefix that killed processes have left. Raises OSError.

    The caller must ensure that no other process is writing one.
    """
    for path in glob.glob(os.path.join(glob.escape(folder), f"{glob.escape(prefix)}????????{SUFFIX}")):
        os.unlink(path)


def _write(file: FileIO, content: bytes) -> None:
    remaining = content
    while remaining:
        # A disk that is nearly full takes a part, and reports the error when it is offered the rest.
        remaining = remaining[file.write(remaining) :]
    os.fsync(file.fileno())


def _sync_folder(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
