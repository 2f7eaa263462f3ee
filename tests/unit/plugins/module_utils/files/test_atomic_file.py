# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A regular file that is replaced completely or not at all."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._files.atomic_file import (
    ACCESS_LIST,
    copy_attributes,
    open_regular_file,
    remove_temporary_files,
    resolve_directory,
    temporary_file,
)


def replace(target: Path, content: bytes, unsafe_writes: bool = False) -> None:
    with temporary_file(str(target), ".p-") as temporary:
        temporary.replace_target(content, unsafe_writes)


def failing(number: int) -> Callable[..., Any]:
    def fail(*args: object, **kwargs: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail


no_space = failing(errno.ENOSPC)


@pytest.fixture
def target(tmp_path: Path) -> Path:
    (tmp_path / "f").write_bytes(b"the old content")
    (tmp_path / "f").chmod(0o640)
    return tmp_path / "f"


def test_new_file_is_private_and_complete(tmp_path: Path) -> None:
    with temporary_file(str(tmp_path / "f"), ".p-") as temporary:
        assert [str(path) for path in tmp_path.glob(".p-????????.tmp")] == [temporary.path]
        temporary.replace_target(b"content" * 10_000)
    assert (tmp_path / "f").read_bytes() == b"content" * 10_000
    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["f"]


@pytest.mark.parametrize("can_sync_directorys", [True, False])
def test_content_is_on_the_disk_before_the_file_is_replaced(
    target: Path, monkeypatch: pytest.MonkeyPatch, can_sync_directorys: bool
) -> None:
    steps: list[object] = []
    fsync = os.fsync

    def watched_fsync(descriptor: int) -> None:
        is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        steps.append("directory" if is_folder else os.fstat(descriptor).st_size)
        if is_folder and not can_sync_directorys:
            failing(errno.EINVAL)()
        fsync(descriptor)

    def watched_replace(source: str, path: str) -> None:
        steps.append("rename")
        os.rename(source, path)

    monkeypatch.setattr(os, "fsync", watched_fsync)
    monkeypatch.setattr(os, "replace", watched_replace)
    replace(target, b"new")
    assert steps == [3, "rename", "directory"]
    assert target.read_bytes() == b"new"


@pytest.mark.parametrize(
    ("names", "is_copied"),
    [(None, True), (["security.selinux"], True), ([ACCESS_LIST], False)],
    ids=["no extended attributes", "SELinux", "access list"],
)
def test_extended_attributes_that_cannot_be_copied(
    target: Path, monkeypatch: pytest.MonkeyPatch, names: list[str] | None, is_copied: bool
) -> None:
    refuse = failing(errno.EPERM)
    monkeypatch.setattr(os, "listxattr", lambda *args, **kwargs: refuse() if names is None else names)
    monkeypatch.setattr(os, "getxattr", lambda *args, **kwargs: b"")
    monkeypatch.setattr(os, "setxattr", refuse)
    with temporary_file(str(target.with_name("g")), ".p-") as temporary:
        with nullcontext() if is_copied else pytest.raises(PermissionError):
            copy_attributes(str(target), temporary.file.fileno())
        assert stat.S_IMODE(os.stat(temporary.path).st_mode) == (0o640 if is_copied else 0o600)


def test_short_writes_are_continued(target: Path) -> None:
    with temporary_file(str(target), ".p-") as temporary:

        class OneByteAtATime:
            fileno = temporary.file.fileno

            def write(self, content: bytes) -> int:
                return temporary.file.write(content[:1])

        temporary._replace(file=OneByteAtATime()).replace_target(b"content")  # type: ignore[arg-type]
    assert target.read_bytes() == b"content"


@pytest.mark.parametrize("unsafe_writes", [False, True])
@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_failed_write_keeps_the_old_content(
    target: Path, monkeypatch: pytest.MonkeyPatch, step: str, unsafe_writes: bool
) -> None:
    monkeypatch.setattr(os, step, no_space)
    with pytest.raises(OSError, match="No space left"):
        replace(target, b"new", unsafe_writes)
    assert target.read_bytes() == b"the old content"
    assert os.listdir(target.parent) == ["f"]


def test_temporary_file_that_cannot_be_removed_is_emptied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "replace", no_space)
    monkeypatch.setattr(os, "unlink", no_space)
    with pytest.raises(OSError, match="No space left"):
        replace(tmp_path / "f", b"secret")
    (left,) = tmp_path.iterdir()
    assert left.read_bytes() == b""


# A rename that was done although it reports an error


@pytest.fixture(params=[errno.EIO, errno.ENOENT, errno.EBUSY], ids=errno.errorcode.get)
def reported(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """As NFS clients report, when they have sent a request again whose response was lost.

    https://github.com/hpcc-systems/HPCC-Platform/pull/18352
    """

    def replace_and_fail(source: str, path: str) -> None:
        os.rename(source, path)
        failing(request.param)()

    monkeypatch.setattr(os, "replace", replace_and_fail)


@pytest.mark.usefixtures("reported")
@pytest.mark.parametrize("unsafe_writes", [False, True])
def test_the_inode_says_whether_the_file_was_replaced(
    target: Path, monkeypatch: pytest.MonkeyPatch, unsafe_writes: bool
) -> None:
    synced: list[bool] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(stat.S_ISDIR(os.fstat(descriptor).st_mode)))
    replace(target, b"new", unsafe_writes)
    assert (target.read_bytes(), synced, os.listdir(target.parent)) == (b"new", [False, True], ["f"])


@pytest.mark.usefixtures("reported")
def test_a_file_that_may_have_been_replaced_is_not_emptied(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with temporary_file(str(target), ".p-") as temporary:
        with monkeypatch.context() as patch:
            patch.setattr(os, "lstat", failing(errno.EIO))
            with pytest.raises(OSError, match="Input/output error"):
                temporary.replace_target(b"new")
    assert target.read_bytes() == b"new"


@pytest.fixture
def mounted(target: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(os, "replace", failing(errno.EBUSY))
    return target


def test_a_mounted_file_is_overwritten_only_with_unsafe_writes(mounted: Path) -> None:
    with pytest.raises(OSError, match="busy"):
        replace(mounted, b"new")
    assert mounted.read_bytes() == b"the old content"
    replace(mounted, b"new", unsafe_writes=True)
    assert mounted.read_bytes() == b"new"
    # The mode of the temporary file.
    assert stat.S_IMODE(mounted.stat().st_mode) == 0o600
    assert os.listdir(mounted.parent) == ["f"]


def test_a_file_that_is_overwritten_never_has_a_part_of_a_secret(
    mounted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that is killed at any moment leaves the old secret or the new one."""
    seen: list[bytes] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: seen.append(mounted.read_bytes()))
    replace(mounted, b"new", unsafe_writes=True)
    assert [content.strip() for content in seen[:2]] == [b"the old content", b"new"]


def test_only_temporary_files_with_the_prefix_are_removed(tmp_path: Path) -> None:
    directory = tmp_path / "[f]"
    directory.mkdir()
    kept = {"f", ".p*-abcdefghi.tmp", ".p*-abcdefgh", ".pp-abcdefgh.tmp", ".p*-12345678.tmp"}
    (directory / ".p*-12345678.tmp").mkdir()
    for name in (*kept, ".p*-abcdefgh.tmp"):
        (directory / name).exists() or (directory / name).touch()
    remove_temporary_files(str(directory), ".p*-")
    assert set(os.listdir(directory)) == kept


def test_a_device_is_not_opened() -> None:
    with pytest.raises(OSError, match="it is a device"):
        open_regular_file("/dev/null")


def test_links_are_resolved_in_folders_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "link").symlink_to("a/b")
    (tmp_path / "a" / "f").symlink_to("b")
    monkeypatch.chdir(tmp_path)
    real = os.path.realpath(tmp_path)
    assert resolve_directory("f") == f"{real}/f"
    assert resolve_directory("link/f") == f"{real}/a/b/f"
    # As the system resolves it, unlike os.path.abspath().
    assert resolve_directory("link/../f") == f"{real}/a/f"
