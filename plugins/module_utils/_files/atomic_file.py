# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Replaces a file completely or not at all, also when the process is killed or the power fails."""

from __future__ import annotations

import errno
import fcntl
import glob
import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from typing import NamedTuple

from .regular_file import open_regular_file, require_regular_file

SUFFIX = ".tmp"
ACCESS_LIST = "system.posix_acl_access"
# Of extended attributes that only root may set, or not every file system has.
NOT_SETTABLE = frozenset({errno.EPERM, errno.EACCES, errno.ENOTSUP, errno.ENODATA, errno.EINVAL})
# Of Linux on most machines with 64 bits: ioctl_iflags(2). Where the request is another one, it fails, and nothing is known.
FS_IOC_GETFLAGS = 0x80086601
FIXED_ATTRIBUTES = {0x10: "immutable (chattr +i)", 0x20: "append-only (chattr +a)"}


class TemporaryFile(NamedTuple):
    """A temporary file and the path of the file that it is to replace."""

    path: str
    file: FileIO
    target: str

    def replace_target(self, content: bytes, unsafe_writes: bool = False) -> None:
        """Write the content to the disk and rename the temporary file to C(target).

        With C(unsafe_writes), a target that can't be replaced, such as one that is mounted into a container, is
        overwritten in place. Raises OSError; then the temporary file is empty, and the target has its old content.
        """
        try:
            _write(self.file, content)
            try:
                os.replace(self.path, self.target)
            except OSError as error:
                if error.errno != errno.EBUSY or not unsafe_writes:
                    raise
                self._overwrite_target(content)
        except OSError:
            # Where the folder can't be reached any more, the temporary file can't be removed, but it can be emptied.
            with suppress(OSError):
                self.file.truncate(0)
            raise
        # The new file is in place, and some file systems can't sync folders.
        with suppress(OSError):
            _sync_folder(os.path.dirname(self.target))

    def check_space(self, size: int) -> None:
        """Write as many bytes to the disk, and remove them from the file again. Raises OSError, with the file empty too."""
        if not size:
            return
        try:
            _write(self.file, b"\n" * size)
        finally:
            self.file.seek(0)
            self.file.truncate()

    def _overwrite_target(self, content: bytes) -> None:
        """Write the content in place, with the mode of the temporary file.

        The target is never cut before its new content is on the disk: at each moment it holds the old or the new
        content, followed by empty lines. On an error it gets its old content back, for which no space is needed.
        """
        with open_regular_file(self.target, os.O_RDWR) as target:
            old = target.readall()
            size = max(len(old), len(content))
            old_mode, mode = (stat.S_IMODE(os.fstat(file.fileno()).st_mode) for file in (target, self.file))
            try:
                _set_mode(target, mode)
                target.seek(0, os.SEEK_END)
                # Space is reserved by writing, because not every file system can reserve it otherwise.
                _write(target, b"\n" * (size - len(old)))
                target.seek(0)
                _write(target, content.ljust(size, b"\n"))
                target.truncate(len(content))
                os.fsync(target.fileno())
            except BaseException as error:
                try:
                    target.seek(0)
                    _write(target, old)
                    target.truncate()
                    _set_mode(target, old_mode)
                except OSError as second:
                    problem = f"its previous content could not be restored: {second.strerror}"
                    raise OSError(second.errno, problem) from error
                raise


@contextmanager
def temporary_file(target: str, prefix: str) -> Iterator[TemporaryFile]:
    """Create an empty file, readable by its owner only, in the folder of C(target); remove it in every case.

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


def require_replaceable(target: str, unsafe_writes: bool = False) -> None:
    """Raise OSError, whose C(strerror) is a clause, when it can be known in advance that replace_target() would fail.

    Nothing is changed. The target is an absolute path without symbolic links in its folders.
    """
    folder = os.path.dirname(target)
    _require_changeable(folder, "its directory")
    try:
        status = os.lstat(target)
    except FileNotFoundError:
        return
    if _is_mount_point(target):
        if not unsafe_writes:
            raise OSError(errno.EBUSY, "it is a mount point, which only unsafe_writes allows to overwrite")
        require_regular_file(status, is_written=True)
        if not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, "it is a mount point, and this user may not write to it")
    _require_changeable(target, "it")
    above = os.stat(folder)
    if above.st_mode & stat.S_ISVTX and os.geteuid() not in (0, status.st_uid, above.st_uid):
        problem = (
            f"it belongs to uid {status.st_uid}, and its directory has the sticky bit, so this user may not replace it"
        )
        raise PermissionError(errno.EPERM, problem)


def replaced_owner(target: str, unsafe_writes: bool = False) -> tuple[int, int] | None:
    """The uid and the gid of the file that replace_target() would replace, which its successor is to have.

    None if there is no such file, or if it would be overwritten in place. The target is a path as for require_replaceable().
    Raises OSError.
    """
    if not has_kept_attributes(target) or (unsafe_writes and _is_mount_point(target)):
        return None
    status = os.lstat(target)
    return status.st_uid, status.st_gid


def has_kept_attributes(target: str) -> bool:
    """Whether there is a file whose attributes its successor is to have. Raises OSError."""
    # Where everybody may write, anybody may have created the file to be given its new content, but not a mount point.
    is_shared = os.stat(os.path.dirname(target)).st_mode & stat.S_IWOTH
    return os.path.lexists(target) and (not is_shared or _is_mount_point(target))


def copy_attributes(source: str, target: int) -> None:
    """Give the file of this descriptor the mode, the access list and the other extended attributes of the source.

    Those that this user may not read or set are not copied, except for the access list. Raises OSError.
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
        except OSError as error:
            if name == ACCESS_LIST or error.errno not in NOT_SETTABLE:
                raise
    os.fchmod(target, stat.S_IMODE(os.lstat(source).st_mode))


def _require_changeable(path: str, subject: str) -> None:
    """Raise PermissionError when an attribute of the file system forbids to replace this file, or files in this folder."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY)
        try:
            response = fcntl.ioctl(descriptor, FS_IOC_GETFLAGS, bytes(8))
        finally:
            os.close(descriptor)
    except OSError:
        return
    # Linux writes an int.
    flags = int.from_bytes(response[:4], sys.byteorder)
    for flag, description in FIXED_ATTRIBUTES.items():
        if flags & flag:
            raise PermissionError(errno.EPERM, f"{subject} is {description}")


def _is_mount_point(path: str) -> bool:
    """Whether the path is a mount point, such as a file in a container; False if Linux does not tell."""
    # As proc_pid_mountinfo(5) writes it. The device number does not say it: files of overlay file systems have others.
    escaped = os.fsencode(path)
    for character in b"\\ \t\n":
        escaped = escaped.replace(bytes([character]), b"\\%03o" % character)
    try:
        with open("/proc/self/mountinfo", "rb") as mounts:
            return any(line.split()[4] == escaped for line in mounts)
    except OSError:
        return False


def remove_temporary_files(folder: str, prefix: str) -> None:
    """Remove the regular files with this prefix that killed processes have left, those that can be removed.

    The caller must ensure that no other process is writing one.
    """
    for path in glob.glob(os.path.join(glob.escape(folder), f"{glob.escape(prefix)}????????{SUFFIX}")):
        with suppress(OSError):
            if stat.S_ISREG(os.lstat(path).st_mode):
                os.unlink(path)


def _write(file: FileIO, content: bytes) -> None:
    remaining = content
    while remaining:
        # A disk that is nearly full accepts a part, and reports the error at the next write.
        remaining = remaining[file.write(remaining) :]
    os.fsync(file.fileno())


def _set_mode(file: FileIO, mode: int) -> None:
    """Set the mode if it differs, which only the owner may do."""
    if stat.S_IMODE(os.fstat(file.fileno()).st_mode) != mode:
        os.fchmod(file.fileno(), mode)


def _sync_folder(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
