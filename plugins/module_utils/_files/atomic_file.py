# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Opens regular files only, and replaces a file completely or not at all. Keeps P4, P5 and P7."""

from __future__ import annotations

import errno
import glob
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from typing import NamedTuple

SUFFIX = ".tmp"
ACCESS_LIST = "system.posix_acl_access"
KINDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a named pipe (FIFO)",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class TemporaryFile(NamedTuple):
    """A temporary file and the path of the file that it is to replace."""

    path: str
    file: FileIO
    target: str

    def replace_target(self, content: bytes, unsafe_writes: bool = False) -> None:
        """Write the content to the disk and rename the temporary file to C(target).

        With C(unsafe_writes), a target that can't be replaced, such as one that is mounted into a container, or that has other
        hard links, is overwritten in place. Raises OSError; then the temporary file is empty, and a target that can be replaced
        is unchanged.
        """
        try:
            _write(self.file, content)
            if unsafe_writes and hard_links(self.target) > 1:
                self._overwrite_target(content)
            else:
                self._rename(content, unsafe_writes)
        except OSError:
            # Where the directory can no longer be reached, the temporary file can't be removed, but it can be emptied.
            with suppress(OSError):
                if not self._is_in_place():
                    self.file.truncate(0)
            raise
        # The new file is in place, and some file systems can't sync directories.
        with suppress(OSError):
            _sync_directory(os.path.dirname(self.target))

    def check_space(self, size: int) -> None:
        """Write as many bytes to the disk, and remove them from the file again. Raises OSError, with the file empty too."""
        try:
            _write(self.file, b"\n" * size)
        finally:
            self.file.seek(0)
            self.file.truncate()

    def _rename(self, content: bytes, unsafe_writes: bool) -> None:
        """Rename the temporary file, or overwrite a target that is mounted, with C(unsafe_writes)."""
        try:
            os.replace(self.path, self.target)
        except OSError as error:
            # NFS can report an error for a rename that it has done: the response was lost, and the request was sent again.
            if self._is_in_place():
                return
            if error.errno != errno.EBUSY or not unsafe_writes:
                raise
            self._overwrite_target(content)

    def _is_in_place(self) -> bool:
        """Whether this file is the target by now. Raises OSError when that can't be found out."""
        try:
            return os.path.samestat(os.lstat(self.target), os.fstat(self.file.fileno()))
        except FileNotFoundError:
            return False

    def _overwrite_target(self, content: bytes) -> None:
        """Write the content in place, with the mode of the temporary file."""
        with open_regular_file(self.target, os.O_RDWR) as target:
            status = os.fstat(target.fileno())
            mode = stat.S_IMODE(os.fstat(self.file.fileno()).st_mode)
            # Only the owner may set it.
            if stat.S_IMODE(status.st_mode) != mode:
                os.fchmod(target.fileno(), mode)
            # White space is ignored, so a reader finds the old content or the new one, even before the file is cut.
            _write(target, content.ljust(status.st_size, b"\n"))
            target.truncate(len(content))


@contextmanager
def temporary_file(target: str, prefix: str) -> Iterator[TemporaryFile]:
    """Create an empty file, readable by its owner only, in the directory of C(target); always remove it.

    The target is an absolute path; the file's name begins with C(prefix). Raises OSError.
    """
    descriptor, path = tempfile.mkstemp(SUFFIX, prefix, os.path.dirname(target))
    try:
        with open(descriptor, "wb", buffering=0) as file:
            yield TemporaryFile(path, file, target)
    finally:
        # It no longer exists after it was renamed.
        with suppress(OSError):
            os.unlink(path)


def copy_attributes(source: str, target: int) -> None:
    """Give the file of this descriptor the mode, the access list and the other extended attributes of the source.

    Extended attributes that this user may not read or set are not copied, except for the access list. Raises OSError.
    """
    names: list[str] = []
    # Only Linux has these functions, and not every file system extended attributes.
    with suppress(AttributeError, OSError):
        names = os.listxattr(source, follow_symlinks=False)
        # It may have the default one of its directory.
        if ACCESS_LIST not in names:
            os.removexattr(target, ACCESS_LIST)
    for name in names:
        try:
            os.setxattr(target, name, os.getxattr(source, name, follow_symlinks=False))
        except OSError:
            if name == ACCESS_LIST:
                raise
    os.fchmod(target, stat.S_IMODE(os.lstat(source).st_mode))


def remove_temporary_files(directory: str, prefix: str) -> None:
    """Remove the files with this prefix that killed processes have left, those that can be removed.

    The caller must ensure that no other process is writing one.
    """
    # mkstemp() puts eight characters into each name.
    for path in glob.glob(os.path.join(glob.escape(directory), f"{glob.escape(prefix)}????????{SUFFIX}")):
        with suppress(OSError):
            os.unlink(path)


def resolve_directory(path: str) -> str:
    """The absolute path, with the symbolic links in its directories resolved, but not the one that its last part may be."""
    directory, name = os.path.split(path)
    return os.path.join(os.path.realpath(directory), name)


def hard_links(path: str) -> int:
    """The number of names that the file has; 0 if there is none."""
    try:
        return os.lstat(path).st_nlink
    except FileNotFoundError:
        return 0


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


def _write(file: FileIO, content: bytes) -> None:
    while content:
        # A disk that is nearly full accepts a part, and reports the error at the next write.
        content = content[file.write(content) :]
    os.fsync(file.fileno())


def _sync_directory(directory: str) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
