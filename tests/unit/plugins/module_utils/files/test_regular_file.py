# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Only regular files are opened, and nothing blocks."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._files import regular_file
from ansible_collections.clouddb.control.plugins.module_utils._files.regular_file import (
    open_regular_file,
    require_regular_file,
    resolve_folder,
)
from ansible_collections.clouddb.control.tests.unit.support.special_files import hard_link, special_files


def open_files() -> int:
    return len(os.listdir("/dev/fd"))


@special_files
def test_other_files_are_refused(tmp_path: Path, create: Callable[[Path], object], description: str) -> None:
    create(tmp_path / "f")
    with pytest.raises(OSError, match=description):
        open_regular_file(str(tmp_path / "f"))


def test_device_is_refused() -> None:
    with pytest.raises(OSError, match="it is a device"):
        open_regular_file("/dev/null")


@special_files
def test_file_that_is_exchanged_before_it_is_opened_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, create: Callable[[Path], object], description: str
) -> None:
    """The first check finds a regular file; what is opened is something else, which is closed again."""
    (tmp_path / "regular").touch()
    status = os.lstat(tmp_path / "regular")
    create(tmp_path / "f")
    before = open_files()
    monkeypatch.setattr(os, "lstat", lambda path: status)
    with pytest.raises(OSError):
        open_regular_file(str(tmp_path / "f"))
    assert open_files() == before


def test_regular_file_is_read_and_written(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("old")
    with open_regular_file(str(tmp_path / "f"), os.O_RDWR) as file:
        assert file.readall() == b"old"
        file.write(b"+new")
    with open_regular_file(str(tmp_path / "f")) as file:
        assert file.readall() == b"old+new"


def test_hard_links_of_this_user_are_read_but_not_written(tmp_path: Path) -> None:
    hard_link(tmp_path / "f")
    with open_regular_file(str(tmp_path / "f")) as file:
        assert file.readall() == b"{}"
    with pytest.raises(OSError, match="it has 2 hard links"):
        open_regular_file(str(tmp_path / "f"), os.O_RDWR)


def test_each_check_refuses_to_write_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first before anything is opened, the second if the file is exchanged before it is opened."""
    hard_link(tmp_path / "f")
    (tmp_path / "regular").touch()
    status = os.lstat(tmp_path / "regular")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "open", lambda *arguments: pytest.fail("the file was opened"))
        with pytest.raises(OSError, match="hard links") as error:
            open_regular_file(str(tmp_path / "f"), os.O_RDWR)
    assert error.value.errno == errno.EMLINK
    monkeypatch.setattr(os, "lstat", lambda path: status)
    with pytest.raises(OSError, match="hard links"):
        open_regular_file(str(tmp_path / "f"), os.O_RDWR)


@pytest.mark.parametrize(
    "owner, user, refused", [(0, 1000, False), (1000, 1000, False), (1000, 0, True), (1, 1000, True)]
)
def test_whose_hard_links_are_read(owner: int, user: int, refused: bool) -> None:
    status = os.stat_result((stat.S_IFREG, 0, 0, 2, owner, 0, 0, 0, 0, 0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: user)
        if not refused:
            require_regular_file(status)
            return
        with pytest.raises(OSError) as error:
            require_regular_file(status)
    assert (error.value.errno, error.value.strerror) == (
        errno.EMLINK,
        f"it has 2 hard links, so it is also another file, and it belongs to uid {owner}",
    )


@pytest.mark.parametrize(
    "kind, description",
    [
        (stat.S_IFLNK, "a symbolic link"),
        (stat.S_IFDIR, "a directory"),
        (stat.S_IFIFO, "a named pipe (FIFO)"),
        (stat.S_IFSOCK, "a socket"),
        (stat.S_IFCHR, "a device"),
        (stat.S_IFBLK, "a device"),
    ],
)
def test_what_is_no_regular_file(kind: int, description: str) -> None:
    with pytest.raises(OSError) as error:
        require_regular_file(os.stat_result((kind, 0, 0, 1, 0, 0, 0, 0, 0, 0)))
    assert (error.value.errno, error.value.strerror) == (errno.EINVAL, f"it is {description}, not a regular file")


def test_a_file_that_is_read_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "f").touch()
    with open_regular_file(str(tmp_path / "f")) as file:
        assert not file.writable()


def test_missing_file_is_not_created(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        open_regular_file(str(tmp_path / "f"), os.O_RDWR)
    assert os.listdir(tmp_path) == []


def test_links_are_resolved_in_folders_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "link").symlink_to("a/b")
    (tmp_path / "a" / "f").symlink_to("b")
    monkeypatch.chdir(tmp_path)
    real = os.path.realpath(tmp_path)
    assert resolve_folder("f") == f"{real}/f"
    assert resolve_folder("link/f") == f"{real}/a/b/f"
    # As the system resolves it, unlike os.path.abspath().
    assert resolve_folder("link/../f") == f"{real}/a/f"


def test_every_type_of_file_is_known() -> None:
    names = {name for name in dir(stat) if name.startswith("S_IF") and getattr(stat, name)} - {"S_IFMT"}
    types = {getattr(stat, name) for name in names}
    assert types - set(regular_file.KINDS) == {stat.S_IFREG}
