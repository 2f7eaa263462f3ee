# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A file on the target with a secret, or with the record of its deployment: read, and replaced completely or not at all. Keeps P2, P5 and P7."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Callable, NamedTuple

from .._bare_key import decoded, why_no_key
from .._clock import Deadline
from .._errors import SecretFileError
from .atomic_file import (
    TemporaryFile,
    copy_attributes,
    open_regular_file,
    remove_temporary_files,
    resolve_directory,
    temporary_file,
)
from .dest import Dest, require_read_bit, require_readable_mode

# In bytes. That there is space for a new secret or record is checked with a file of this size.
SPACE = 16384
# In seconds. A task holds the lock while it sends its requests.
LOCK_TIMEOUT = 300.0


class FileAttributes(NamedTuple):
    """The owner, the group and the permissions of a file."""

    uid: int
    gid: int
    mode: int


class SecretFile(Dest):
    """The file at this path."""

    def read(self, private: bool = False) -> str | None:
        """The text without what stripped() drops; None when the file is missing. Raises SecretFileError.

        With C(private), a file that another user owns or may write is refused.
        """
        with self.errors("read"):
            try:
                file = open_regular_file(self.path)
            except FileNotFoundError:
                return None
            with file:
                status = os.fstat(file.fileno())
                content = file.read(self.max_size) or b""
        if private and (status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)):
            raise SecretFileError(
                f"{self.option}: {self.path} belongs to another user, or others may write to it, so its content is "
                "not trusted. Check who has written it, and remove it or change its owner and mode."
            )
        return decoded(content)

    def read_key(self) -> str | None:
        """The key in the file, empty when the file is; None when it is missing. Raises SecretFileError for any other content."""
        text = self.read()
        problem = text and why_no_key(text)
        if problem:
            raise SecretFileError(
                f"{self.option}: {self.path} must hold a key and nothing else, but {problem}. The file was not changed. "
                f"Set {self.option} to another path, or remove the file."
            )
        return text

    def attributes(self) -> FileAttributes:
        """Owner, group and mode of the existing file. Raises SecretFileError."""
        with self.errors("read"):
            status = os.lstat(self.path)
        return FileAttributes(status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode))

    @contextmanager
    def replacement(
        self, attributes: FileAttributes | None = None, check_space: bool = False
    ) -> Iterator[Callable[[str], None]]:
        """Check that the file can be written, and yield the function that writes a secret to it.

        The temporary file is created with the final owner, group and mode (C(attributes), or those of the options) and the
        extended attributes of the file before the function is yielded, and is always removed. C(check_space) checks that the
        disk has space. What only the file itself can have, such as file system attributes, is set last, if it was written.
        Raises InvalidOption as check_replacement() does, or when the file's owner could not read it, and
        SecretFileError, as does the function.
        """
        self.check_replacement()
        if self.check_mode:
            yield lambda secret: None
            return
        is_written = False
        with ExitStack() as cleanup:
            with self.errors("written"):
                temporary = cleanup.enter_context(temporary_file(self.path, _temporary_prefix()))
                # Whoever may read the old file could open the new one before its mode is restricted, and read the secret later.
                # So the attributes are combined on a file that never holds a secret.
                with temporary_file(self.path, _temporary_prefix()) as draft:
                    self._prepare(draft, attributes)
                    status = os.fstat(draft.file.fileno())
                    require_read_bit(stat.S_IMODE(status.st_mode))
                    _set_owner(temporary, status.st_uid, status.st_gid)
                    copy_attributes(draft.path, temporary.file.fileno())
                if check_space:
                    temporary.check_space(SPACE)

            def write(secret: str) -> None:
                nonlocal is_written
                with self.errors("written"):
                    temporary.replace_target(secret.encode(), self.unsafe_writes)
                is_written = True

            yield write
        if is_written and not attributes:
            try:
                self.set_attributes(self.path)
            except SecretFileError as error:
                raise SecretFileError(f"{error} The file was written.", error.details, {"changed": True}) from error

    def remove(self) -> None:
        """Remove the file, if there is one. Raises SecretFileError."""
        if not self.check_mode:
            with self.errors("removed"), suppress(FileNotFoundError):
                os.unlink(self.path)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Lock the directory against other tasks of this user that write secrets to it, where its file system has locks.

        While it is locked no other task of this user writes there, so its temporary files are those of killed tasks, and
        are removed. A task that may not create files there only reads, and locks nothing. Raises SecretFileError, even when
        the lock is not free within LOCK_TIMEOUT.
        """
        if self.check_mode or not self.may_create_files:
            yield
            return
        from .lock import locked  # a task that writes no file saves this

        # Each user has a separate lock, which others can't open, so that they can't hold it.
        path = os.path.join(self.directory, f".clouddb-{os.geteuid()}.lock")
        with ExitStack() as cleanup:
            try:
                is_locked = cleanup.enter_context(locked(path, Deadline.after(self.clock, LOCK_TIMEOUT)))
            except BlockingIOError:
                problem = f"another task has held the lock for {LOCK_TIMEOUT:g} seconds. Wait until it has ended."
                raise SecretFileError(f"{self.option}: {path} can't be locked: {problem}") from None
            except OSError as error:
                problem = f"{error.strerror}. Check who may write to the directory, or set {self.option} to a path in another one."
                raise SecretFileError(f"{self.option}: {path} can't be locked: {problem}") from error
            if is_locked:
                remove_temporary_files(self.directory, _temporary_prefix())
            yield

    def _prepare(self, temporary: TemporaryFile, attributes: FileAttributes | None) -> None:
        """Give the new file the attributes of the one that it replaces, unless C(attributes) or options say otherwise."""
        # In a directory where everybody may write, somebody else may have created the file so that its attributes are kept.
        is_shared = os.stat(self.directory).st_mode & stat.S_IWOTH
        keeps_attributes = os.path.lexists(self.path) and not is_shared
        if keeps_attributes:
            copy_attributes(self.path, temporary.file.fileno())
        if attributes:
            # If this user may not set these, the file gets those that follow. By the descriptor, because the path may lead to
            # another file by now.
            with suppress(OSError):
                _set_owner(temporary, attributes.uid, attributes.gid)
                os.fchmod(temporary.file.fileno(), attributes.mode)
                return
        if keeps_attributes:
            self._keep_owner(temporary)
        self.set_attributes(temporary.path)

    def _keep_owner(self, temporary: TemporaryFile) -> None:
        own, (uid, gid, _mode) = os.fstat(temporary.file.fileno()), self.attributes()
        try:
            _set_owner(temporary, own.st_uid if self.has_owner else uid, own.st_gid if self.has_group else gid)
        except OSError as error:
            raise SecretFileError(
                f"{self.option}: {self.path} belongs to uid {uid} and gid {gid}, which this user can't give to the file that "
                "replaces it. Set become, or set owner and group."
            ) from error


def dest_from(
    params: Mapping[str, Any], set_attributes: Callable[[str], bool], check_mode: bool = False
) -> SecretFile | None:
    """The file of the option C(dest), with its owner, group and mode; None if the option is not set. Raises InvalidOption."""
    if params.get("dest") is None:
        return None
    require_readable_mode(params.get("mode"))
    return SecretFile(
        resolve_directory(params["dest"]),
        set_attributes,
        params.get("unsafe_writes", False),
        params.get("owner") is not None,
        params.get("group") is not None,
        check_mode=check_mode,
    )


def _set_owner(temporary: TemporaryFile, uid: int, gid: int) -> None:
    """Set owner and group if they differ, which not every user may do. Raises OSError."""
    status = os.fstat(temporary.file.fileno())
    if (uid, gid) != (status.st_uid, status.st_gid):
        os.fchown(temporary.file.fileno(), uid, gid)


def _temporary_prefix() -> str:
    """Begins the names of this user's temporary files; only the user's own lock protects them."""
    return f".clouddb-{os.geteuid()}-"
