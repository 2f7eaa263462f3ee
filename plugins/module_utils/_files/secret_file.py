# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A file on the target with a secret, or with the record of its deployment: read, and replaced completely or not at all. Keeps P2, P5 and P7."""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Callable, NamedTuple

from .._bare_key import decoded, why_no_key
from .._clock import SYSTEM_CLOCK, Clock, Deadline
from .._errors import InvalidOption, SecretFileError
from .atomic_file import (
    TemporaryFile,
    copy_attributes,
    hard_links,
    open_regular_file,
    remove_temporary_files,
    require_regular_file,
    resolve_directory,
    temporary_file,
)
from .lock import locked

# In bytes. A larger file holds no secret, and is refused.
MAX_SIZE = 65536
# In bytes. That there is space for a new secret or record is checked with a file of this size.
SPACE = 16384
# In seconds. A task holds the lock while it sends its requests.
LOCK_TIMEOUT = 300.0
# The names of locks and temporary files, of any user.
OWN_FILES = re.compile(r"\.clouddb-\d+(?:\.lock|-.{8}\.tmp)")


class FileAttributes(NamedTuple):
    """The owner, the group and the permissions of a file."""

    uid: int
    gid: int
    mode: int


class SecretFile(NamedTuple):
    """A path, and a function that sets owner, group and mode of a path and returns whether it changed them.

    C(unsafe_writes) allows a file that can't be replaced, such as one that is mounted into a container or has other hard links,
    to be overwritten.
    C(has_owner) and C(has_group) say that the function sets them; otherwise, a new file gets those of the file that it
    replaces. C(option) is the name of the option that holds the path, for messages. C(max_size) is in bytes; a larger file is
    refused. In check mode, nothing is locked or written, and the directory may be missing, because an earlier task would create it.
    """

    path: str
    set_attributes: Callable[[str], bool]
    unsafe_writes: bool = False
    has_owner: bool = False
    has_group: bool = False
    option: str = "dest"
    clock: Clock = SYSTEM_CLOCK
    max_size: int = MAX_SIZE
    check_mode: bool = False

    def check(self) -> None:
        """Raise InvalidOption when no secret can be stored there."""
        self.check_path()
        self.check_replacement()

    def check_path(self) -> None:
        """Raise InvalidOption when the path can't be that of a secret, even one that is only read."""
        # In Ansible's own modules, and where it sets the owner and the mode, the path is always UTF-8.
        if not self.path.isascii() and sys.getfilesystemencoding() != "utf-8":
            problem = f"the locale of this host is not UTF-8, but {self.path} has non-ASCII characters."
            raise InvalidOption(self.option, f"{problem} Set LC_ALL to C.UTF-8 in the environment of the task.")
        if OWN_FILES.fullmatch(os.path.basename(self.path)):
            problem = "files of this name are locks and temporary files of this collection. Set another path."
            raise InvalidOption(self.option, problem)
        if not (os.path.isdir(self._directory()) or self._is_directory_planned()):
            problem = f"the directory {self._directory()} does not exist. Create it first."
            raise InvalidOption(self.option, problem)
        try:
            status = require_regular_file(self.path)
        except FileNotFoundError:
            return
        except OSError as error:
            problem = f"{self.path} can't be used: {error.strerror}. Set {self.option} to the path of a regular file."
            raise InvalidOption(self.option, problem) from error
        if status.st_size > self.max_size:
            problem = f"{self.path} has more than {self.max_size} bytes, so it was not written by this collection."
            raise InvalidOption(self.option, f"{problem} Set {self.option} to another path.")

    def check_replacement(self) -> None:
        """Raise InvalidOption when this user may not create files in the directory, or other names would keep the old secret."""
        if not self._may_create_files():
            problem = f"this user may not create files in {self._directory()}. Change its permissions, or set become."
            raise InvalidOption(self.option, problem)
        links = hard_links(self.path)
        if links > 1 and not self.unsafe_writes:
            problem = f"{self.path} has {links} hard links, and the others would keep the old content."
            raise InvalidOption(self.option, f"{problem} Replace the other links with symbolic ones, or remove them.")

    def read(self, private: bool = False) -> str | None:
        """The text without what stripped() drops; None when the file is missing. Raises SecretFileError.

        With C(private), a file that another user owns or may write is refused.
        """
        with self._errors("read"):
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
        with self._errors("read"):
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
            with self._errors("written"):
                temporary = cleanup.enter_context(temporary_file(self.path, _temporary_prefix()))
                # Whoever may read the old file could open the new one before its mode is restricted, and read the secret later.
                # So the attributes are combined on a file that never holds a secret.
                with temporary_file(self.path, _temporary_prefix()) as draft:
                    self._prepare(draft, attributes)
                    status = os.fstat(draft.file.fileno())
                    _require_read_bit(stat.S_IMODE(status.st_mode))
                    _set_owner(temporary, status.st_uid, status.st_gid)
                    copy_attributes(draft.path, temporary.file.fileno())
                if check_space:
                    temporary.check_space(SPACE)

            def write(secret: str) -> None:
                nonlocal is_written
                with self._errors("written"):
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
            with self._errors("removed"), suppress(FileNotFoundError):
                os.unlink(self.path)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Lock the directory against other tasks of this user that write secrets to it, where its file system has locks.

        While it is locked no other task of this user writes there, so its temporary files are those of killed tasks, and
        are removed. A task that may not create files there only reads, and locks nothing. Raises SecretFileError, even when
        the lock is not free within LOCK_TIMEOUT.
        """
        if self.check_mode or not self._may_create_files():
            yield
            return
        # Each user has a separate lock, which others can't open, so that they can't hold it.
        path = os.path.join(self._directory(), f".clouddb-{os.geteuid()}.lock")
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
                remove_temporary_files(self._directory(), _temporary_prefix())
            yield

    def _prepare(self, temporary: TemporaryFile, attributes: FileAttributes | None) -> None:
        """Give the new file the attributes of the one that it replaces, unless C(attributes) or options say otherwise."""
        # In a directory where everybody may write, somebody else may have created the file so that its attributes are kept.
        is_shared = os.stat(self._directory()).st_mode & stat.S_IWOTH
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

    @contextmanager
    def _errors(self, participle: str) -> Iterator[None]:
        """Raise SecretFileError for an OSError."""
        try:
            yield
        except OSError as error:
            advice = "Check its permissions and attributes, and the free space."
            if error.errno == errno.EBUSY:
                advice = "If it is mounted into a container, set unsafe_writes."
            problem = f"{self.option}: {self.path} can't be {participle}: {error.strerror}."
            raise SecretFileError(f"{problem} {advice}") from error

    def _may_create_files(self) -> bool:
        return os.access(self._directory(), os.W_OK | os.X_OK) or self._is_directory_planned()

    def _directory(self) -> str:
        return os.path.dirname(self.path)

    def _is_directory_planned(self) -> bool:
        return self.check_mode and not os.path.lexists(self._directory())


def dest_from(
    params: Mapping[str, Any], set_attributes: Callable[[str], bool], check_mode: bool = False
) -> SecretFile | None:
    """The file of the option C(dest), with its owner, group and mode; None if the option is not set. Raises InvalidOption."""
    if params.get("dest") is None:
        return None
    _require_readable_mode(params.get("mode"))
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


def _require_readable_mode(mode: object) -> None:
    """Raise InvalidOption when the owner could not read a file with this value of the option C(mode), or for a number that is no octal one.

    A symbolic mode passes: what it results in is known only when it is set.
    """
    if isinstance(mode, int) and not _is_plausible(mode):
        # YAML reads 0440 as the number 288, but 440 without the 0 as the number 440, which is 0670.
        raise InvalidOption(
            "mode", f"The number {mode} would be the permissions {mode:04o}. Quote an octal number: mode: '0640'."
        )
    if isinstance(mode, str):
        try:
            mode = int(mode, 8)
        except ValueError:
            return
    if isinstance(mode, int):
        _require_read_bit(mode)


def _is_plausible(mode: int) -> bool:
    """Whether somebody may mean these permissions, as ansible-lint's rule risky-octal decides for files that are not executable.

    The owner has the most permissions and the others have the fewest, and who has any may read.
    """
    owner, group, others = mode >> 6 & 7, mode >> 3 & 7, mode & 7
    return owner >= group >= others and not {1, 2, 3} & {owner, group, others}


def _require_read_bit(mode: int) -> None:
    if not mode & stat.S_IRUSR:
        raise InvalidOption(
            "mode", f"The owner could not read a file with mode {mode:04o}. Set another, such as '0640'."
        )
