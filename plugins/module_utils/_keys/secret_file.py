# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A file on the target that holds one secret: read, and replaced completely or not at all."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Callable, NamedTuple

from .._atomic_file import remove_temporary_files, temporary_file
from .._errors import InvalidOption, SecretFileError

TEMPORARY_PREFIX = ".clouddb-"


class SecretFile(NamedTuple):
    """The path of the file, and a function that sets owner, group and mode of a path and returns whether it changed them.

    C(unsafe_writes) allows a file that can't be replaced, such as one that is mounted into a container, to be overwritten.
    """

    path: str
    set_attributes: Callable[[str], bool]
    unsafe_writes: bool = False

    def check(self) -> None:
        """Raise InvalidOption when no file can be created there."""
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
        """Check that the file can be written, and yield the function that writes a secret to it.

        The temporary file is created, with the final owner, group and mode, before the function is yielded, and is
        removed in every case. Raises SecretFileError, as does the function.
        """
        with ExitStack() as cleanup:
            try:
                temporary = cleanup.enter_context(temporary_file(self.path, TEMPORARY_PREFIX))
            except OSError as error:
                raise SecretFileError(f"dest: no file can be made in {self._folder()}: {error.strerror}") from error
            self.set_attributes(temporary.path)

            def write(secret: str) -> None:
                try:
                    temporary.replace_target(secret.encode(), self.unsafe_writes)
                except OSError as error:
                    raise SecretFileError(f"dest: {self.path} can't be written: {error.strerror}") from error

            yield write

    def remove(self) -> None:
        """Remove the file, if there is one. Raises SecretFileError."""
        try:
            with suppress(FileNotFoundError):
                os.unlink(self.path)
        except OSError as error:
            raise SecretFileError(f"dest: {self.path} can't be removed: {error.strerror}") from error

    @contextmanager
    def held(self) -> Iterator[None]:
        """Lock the folder against other tasks that write secrets to it, where its file system has locks.

        While it is locked no other task writes there, so temporary files are those of killed tasks, and are removed.
        """
        descriptor = os.open(self._folder(), os.O_RDONLY)
        try:
            with suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                remove_temporary_files(self._folder(), TEMPORARY_PREFIX)
            yield
        finally:
            os.close(descriptor)

    def _folder(self) -> str:
        return os.path.dirname(os.path.abspath(self.path))
