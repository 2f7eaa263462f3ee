# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A file on the target that holds one secret: read, and replaced as a whole or not at all."""

from __future__ import annotations

import errno
import fcntl
import glob
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from typing import Callable, NamedTuple

from .._errors import InvalidOption, SecretFileError

TEMPORARY_PREFIX, TEMPORARY_SUFFIX = ".clouddb-", ".tmp"


class SecretFile(NamedTuple):
    """The path of the file, and a function that gives a path the owner, group and mode asked for and tells whether it changed them.

    C(unsafe_writes) allows to write into a file that can't be replaced, such as one that is mounted into a container.
    """

    path: str
    set_attributes: Callable[[str], bool]
    unsafe_writes: bool = False

    def check(self) -> None:
        """Raise InvalidOption when no file can be there."""
        if "\0" in self.path:
            raise InvalidOption("dest", "a path holds no NUL character")
        if os.path.isdir(self.path):
            raise InvalidOption("dest", f"{self.path} is a folder; give the path of a file")
        if not os.path.isdir(self._folder()):
            raise InvalidOption("dest", f"there is no folder {self._folder()}; create it first")
        if not os.access(self._folder(), os.W_OK | os.X_OK):
            raise InvalidOption("dest", f"no file can be made in {self._folder()}; this user may not write there")

    def read(self) -> str | None:
        """The secret without surrounding white space; None when the file is missing. Raises SecretFileError."""
        try:
            with open(self.path, encoding="utf-8", errors="replace") as file:
                return file.read().strip()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise SecretFileError(f"dest: {self.path} can't be read: {error.strerror}") from error

    @contextmanager
    def replacement(self) -> Iterator[Callable[[str], None]]:
        """Make sure now that the file can be written, and give a function that writes it.

        A temporary file with the final owner, group and mode is made in the same folder; the function fills it, syncs
        it and renames it into place. Raises SecretFileError; nothing is left lying about.
        """
        try:
            descriptor, temporary = tempfile.mkstemp(TEMPORARY_SUFFIX, TEMPORARY_PREFIX, self._folder())
        except OSError as error:
            raise SecretFileError(f"dest: no file can be made in {self._folder()}: {error.strerror}") from error

        def put(secret: str) -> None:
            try:
                _write(file, secret)
                try:
                    os.replace(temporary, self.path)
                except OSError as error:
                    if error.errno != errno.EBUSY or not self.unsafe_writes:
                        raise
                    with open(self.path, "wb", buffering=0) as mounted:
                        _write(mounted, secret)
            except OSError as error:
                # Where the folder is out of reach now, the temporary file can't be removed, but it can be emptied.
                with suppress(OSError):
                    file.truncate(0)
                raise SecretFileError(f"dest: {self.path} can't be written: {error.strerror}") from error
            # The file is there now, and some file systems sync no folders.
            with suppress(OSError):
                self._sync_folder()

        try:
            with open(descriptor, "wb", buffering=0) as file:
                self.set_attributes(temporary)
                yield put
        finally:
            # It is gone when it was renamed.
            with suppress(OSError):
                os.unlink(temporary)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep other tasks that write secrets into the same folder waiting; without effect where folders take no locks.

        Nobody else being at work there, temporary files are of tasks that were killed, and are removed.
        """
        descriptor = os.open(self._folder(), os.O_RDONLY)
        try:
            with suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                self._remove_left_behind()
            yield
        finally:
            os.close(descriptor)

    def _remove_left_behind(self) -> None:
        for path in glob.glob(
            os.path.join(glob.escape(self._folder()), f"{TEMPORARY_PREFIX}????????{TEMPORARY_SUFFIX}")
        ):
            os.unlink(path)

    def _folder(self) -> str:
        return os.path.dirname(os.path.abspath(self.path))

    def _sync_folder(self) -> None:
        descriptor = os.open(self._folder(), os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _write(file: FileIO, secret: str) -> None:
    left = secret.encode()
    while left:
        # A disk that is nearly full takes a part, and says what is wrong when it is offered the rest.
        left = left[file.write(left) :]
    os.fsync(file.fileno())
