# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The path of a file with a secret, as the options of a task say, and why no secret can be stored there. Keeps P7 and P11."""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Callable, NamedTuple

from .._clock import SYSTEM_CLOCK, Clock
from .._errors import InvalidOption, SecretFileError
from .atomic_file import hard_links, require_regular_file

# In bytes. A larger file holds no secret, and is refused.
MAX_SIZE = 65536
# The names of locks and temporary files, of any user.
OWN_FILES = re.compile(r"\.clouddb-\d+(?:\.lock|-.{8}\.tmp)")


class Dest(NamedTuple):
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
        if not (os.path.isdir(self.directory) or self._is_directory_planned):
            problem = f"the directory {self.directory} does not exist. Create it first."
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
        if not self.may_create_files:
            problem = f"this user may not create files in {self.directory}. Change its permissions, or set become."
            raise InvalidOption(self.option, problem)
        links = hard_links(self.path)
        if links > 1 and not self.unsafe_writes:
            problem = f"{self.path} has {links} hard links, and the others would keep the old content."
            raise InvalidOption(self.option, f"{problem} Replace the other links with symbolic ones, or remove them.")

    @contextmanager
    def errors(self, participle: str) -> Iterator[None]:
        """Raise SecretFileError for an OSError."""
        try:
            yield
        except OSError as error:
            advice = "Check its permissions and attributes, and the free space."
            if error.errno == errno.EBUSY:
                advice = "If it is mounted into a container, set unsafe_writes."
            problem = f"{self.option}: {self.path} can't be {participle}: {error.strerror}."
            raise SecretFileError(f"{problem} {advice}") from error

    @property
    def may_create_files(self) -> bool:
        """Whether this user may create files in the directory."""
        return os.access(self.directory, os.W_OK | os.X_OK) or self._is_directory_planned

    @property
    def directory(self) -> str:
        """The directory of the file."""
        return os.path.dirname(self.path)

    @property
    def _is_directory_planned(self) -> bool:
        return self.check_mode and not os.path.lexists(self.directory)


def require_readable_mode(mode: object) -> None:
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
        require_read_bit(mode)


def _is_plausible(mode: int) -> bool:
    """Whether somebody may mean these permissions, as ansible-lint's rule risky-octal decides for files that are not executable.

    The owner has the most permissions and the others have the fewest, and who has any may read.
    """
    owner, group, others = mode >> 6 & 7, mode >> 3 & 7, mode & 7
    return owner >= group >= others and not {1, 2, 3} & {owner, group, others}


def require_read_bit(mode: int) -> None:
    """Raise InvalidOption when the owner could not read a file with these permissions."""
    if not mode & stat.S_IRUSR:
        raise InvalidOption(
            "mode", f"The owner could not read a file with mode {mode:04o}. Set another, such as '0640'."
        )
