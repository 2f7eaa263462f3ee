# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A file that is replaced completely or not at all."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import sys
from collections.abc import Callable
from contextlib import nullcontext
from io import FileIO
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._files import atomic_file
from ansible_collections.clouddb.control.plugins.module_utils._files.atomic_file import (
    ACCESS_LIST,
    copy_attributes,
    remove_temporary_files,
    require_replaceable,
    temporary_file,
)
from ansible_collections.clouddb.control.tests.unit.support.special_files import hard_link, special_files

STAT_FIELDS = (
    "st_mode",
    "st_ino",
    "st_dev",
    "st_nlink",
    "st_uid",
    "st_gid",
    "st_size",
    "st_atime",
    "st_mtime",
    "st_ctime",
)


def replace(target: Path, content: bytes, unsafe_writes: bool = False) -> None:
    with temporary_file(str(target), ".p-") as temporary:
        temporary.replace_target(content, unsafe_writes)


def fail(*args: object, **kwargs: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def busy(*args: object) -> None:
    raise OSError(errno.EBUSY, "Device or resource busy")


def test_new_file_is_private_and_complete(tmp_path: Path) -> None:
    replace(tmp_path / "f", b"content" * 10_000)
    assert (tmp_path / "f").read_bytes() == b"content" * 10_000
    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["f"]


def test_temporary_file_is_in_the_folder_of_the_target(tmp_path: Path) -> None:
    with temporary_file(str(tmp_path / "f"), ".p-") as temporary:
        assert [str(path) for path in tmp_path.glob(".p-????????.tmp")] == [temporary.path]


@pytest.mark.parametrize(
    ("names", "problem", "is_copied"),
    [
        (None, errno.ENOTSUP, True),
        (["security.selinux"], errno.EPERM, True),
        (["user.x"], errno.ENOSPC, False),
        ([ACCESS_LIST], errno.EPERM, False),
    ],
    ids=["no extended attributes", "SELinux", "no space", "access list"],
)
def test_extended_attributes_that_cannot_be_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: list[str] | None, problem: int, is_copied: bool
) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise OSError(problem, "refused")

    monkeypatch.setattr(os, "listxattr", lambda *args, **kwargs: refuse() if names is None else names)
    monkeypatch.setattr(os, "getxattr", lambda *args, **kwargs: b"")
    monkeypatch.setattr(os, "setxattr", refuse)
    (tmp_path / "f").touch()
    (tmp_path / "f").chmod(0o640)
    with temporary_file(str(tmp_path / "g"), ".p-") as temporary:
        with nullcontext() if is_copied else pytest.raises(OSError, match="refused"):
            copy_attributes(str(tmp_path / "f"), temporary.file.fileno())
        assert stat.S_IMODE(os.stat(temporary.path).st_mode) == (0o640 if is_copied else 0o600)


def test_short_writes_are_continued(tmp_path: Path) -> None:
    with temporary_file(str(tmp_path / "f"), ".p-") as temporary:

        class OneByteAtATime:
            fileno = temporary.file.fileno

            def write(self, content: bytes) -> int:
                return temporary.file.write(content[:1])

        temporary._replace(file=OneByteAtATime()).replace_target(b"content")  # type: ignore[arg-type]
    assert (tmp_path / "f").read_bytes() == b"content"


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_failed_write_keeps_the_old_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    (tmp_path / "f").write_text("old")
    monkeypatch.setattr(os, step, fail)
    with pytest.raises(OSError, match="No space left"):
        replace(tmp_path / "f", b"new")
    assert (tmp_path / "f").read_text() == "old"
    assert os.listdir(tmp_path) == ["f"]


def test_temporary_file_that_cannot_be_removed_is_emptied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "replace", fail)
    monkeypatch.setattr(os, "unlink", fail)
    with pytest.raises(OSError, match="No space left"):
        replace(tmp_path / "f", b"secret")
    (left,) = tmp_path.iterdir()
    assert left.read_bytes() == b""


def test_busy_target_is_overwritten_only_with_unsafe_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "f").write_text("longer than the new content")
    monkeypatch.setattr(os, "replace", busy)
    with pytest.raises(OSError, match="busy"):
        replace(tmp_path / "f", b"new")
    assert (tmp_path / "f").read_text() == "longer than the new content"
    replace(tmp_path / "f", b"new", unsafe_writes=True)
    assert (tmp_path / "f").read_text() == "new"
    assert os.listdir(tmp_path) == ["f"]


def test_unsafe_writes_only_follow_a_busy_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "f").write_text("old")
    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="No space left"):
        replace(tmp_path / "f", b"new", unsafe_writes=True)
    assert (tmp_path / "f").read_text() == "old"


def fail_at(monkeypatch: pytest.MonkeyPatch, failing_call: int) -> None:
    """Let the call with this number of the functions that write a file fail."""
    calls = iter(range(1, 100))

    def failing(function: Callable[..., object]) -> Callable[..., object]:
        def call(*args: object) -> object:
            return fail() if next(calls) == failing_call else function(*args)

        return call

    for name in ("_write", "_set_mode"):
        monkeypatch.setattr(atomic_file, name, failing(getattr(atomic_file, name)))


@pytest.mark.parametrize("old", [b"old", b"a much longer old secret", b"", b"old\n"])
@pytest.mark.parametrize("new", [b"new secret", b"n"])
# The first call writes the temporary file.
@pytest.mark.parametrize("failing_call", [2, 3, 4])
def test_failed_overwriting_restores_content_and_mode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: bytes, new: bytes, failing_call: int
) -> None:
    (tmp_path / "f").write_bytes(old)
    (tmp_path / "f").chmod(0o640)
    monkeypatch.setattr(os, "replace", busy)
    fail_at(monkeypatch, failing_call)
    with pytest.raises(OSError, match="No space left"):
        replace(tmp_path / "f", new, unsafe_writes=True)
    assert (tmp_path / "f").read_bytes() == old
    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == 0o640
    assert os.listdir(tmp_path) == ["f"]


@pytest.mark.parametrize("step", ["truncate", "fsync"])
def test_error_after_overwriting_restores_the_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """The last steps, where the new content is already in the file."""
    (tmp_path / "f").write_bytes(b"a much longer old secret")
    monkeypatch.setattr(os, "replace", busy)
    opened = atomic_file.open_regular_file
    fsync, calls = os.fsync, iter(range(100))

    class Target(FileIO):
        def truncate(self, size: int | None = None) -> int:
            if step == "truncate" and next(calls) == 0:
                fail()
            return super().truncate(size)

    def open_target(path: str, flags: int) -> FileIO:
        with opened(path, flags) as file:
            return Target(os.dup(file.fileno()), "rb+")

    def last_fsync(descriptor: int) -> None:
        # Those of the temporary file, the padding and the new content come before.
        if step == "fsync" and next(calls) == 3:
            fail()
        fsync(descriptor)

    monkeypatch.setattr(atomic_file, "open_regular_file", open_target)
    monkeypatch.setattr(os, "fsync", last_fsync)
    with pytest.raises(OSError, match="No space left"):
        replace(tmp_path / "f", b"new", unsafe_writes=True)
    assert next(calls) > 0
    assert (tmp_path / "f").read_bytes() == b"a much longer old secret"


def test_content_that_cannot_be_restored_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "f").write_bytes(b"old")
    monkeypatch.setattr(os, "replace", busy)
    write, calls = atomic_file._write, iter(range(100))

    def failing(file: FileIO, content: bytes) -> None:
        if next(calls):
            fail()
        write(file, content)

    monkeypatch.setattr(atomic_file, "_write", failing)
    with pytest.raises(
        OSError, match=r"\[Errno 28\] its previous content could not be restored: No space left on device"
    ):
        replace(tmp_path / "f", b"new", unsafe_writes=True)


def test_original_error_is_raised_when_nothing_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with temporary_file(str(tmp_path / "f"), ".p-") as temporary:

        class Full:
            fileno = temporary.file.fileno
            write = fail

            def truncate(self, size: int) -> None:
                raise OSError(errno.EIO, "Input/output error")

        with pytest.raises(OSError, match="No space left on device"):
            temporary._replace(file=Full()).replace_target(b"content")  # type: ignore[arg-type]


@pytest.mark.parametrize("old", [b"old", b"a much longer old secret"])
def test_reader_sees_the_old_or_the_new_content_while_it_is_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: bytes
) -> None:
    """A process that is killed at any moment leaves one of the two."""
    (tmp_path / "f").write_bytes(old)
    monkeypatch.setattr(os, "replace", busy)
    seen: list[bytes] = []
    fsync = os.fsync

    def read_then_sync(descriptor: int) -> None:
        seen.append((tmp_path / "f").read_bytes())
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", read_then_sync)
    replace(tmp_path / "f", b"new secret", unsafe_writes=True)
    size = max(len(old), len(b"new secret"))
    # The space that it needs is taken before, so that a full disk is noticed while the old content is there.
    assert seen[:-1] == [old, old.ljust(size, b"\n"), b"new secret".ljust(size, b"\n"), b"new secret"]


def test_overwritten_file_has_the_mode_of_the_temporary_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "f").write_bytes(b"old")
    (tmp_path / "f").chmod(0o644)
    monkeypatch.setattr(os, "replace", busy)
    replace(tmp_path / "f", b"new", unsafe_writes=True)
    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == 0o600


@special_files
def test_only_a_regular_file_is_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, create: Callable[[Path], object], description: str
) -> None:
    create(tmp_path / "f")
    monkeypatch.setattr(os, "replace", busy)
    with pytest.raises(OSError, match=description):
        replace(tmp_path / "f", b"new", unsafe_writes=True)


def test_replaceable_targets_pass(tmp_path: Path) -> None:
    require_replaceable(str(tmp_path / "f"))
    (tmp_path / "f").write_text("old")
    hard_link(tmp_path / "linked")
    for name in ("f", "linked"):
        require_replaceable(str(tmp_path / name))
    assert sorted(os.listdir(tmp_path)) == ["elsewhere", "f", "linked"]


@pytest.mark.parametrize("name", ["f", "with space", "tab\t", "Xback\\slash", "new\nline"])
def test_mount_point_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Names are escaped as in /proc/self/mountinfo; a longer one is another file."""
    (tmp_path / name).touch()
    (tmp_path / f"{name}-2").touch()
    escaped = name.replace("\\", r"\134").replace(" ", r"\040").replace("\t", r"\011").replace("\n", r"\012")
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        f"36 35 98:0 / / rw - ext4 /dev/root rw\n37 36 98:0 /f {tmp_path}/{escaped} rw - ext4 /dev/f rw\n"
    )
    opened = open
    monkeypatch.setattr(
        "builtins.open", lambda path, *args: opened(mounts if path == "/proc/self/mountinfo" else path, *args)
    )
    with pytest.raises(
        OSError, match=r"\[Errno 16\] it is a mount point, which only unsafe_writes allows to overwrite$"
    ):
        require_replaceable(str(tmp_path / name))
    require_replaceable(str(tmp_path / name), unsafe_writes=True)
    require_replaceable(str(tmp_path / f"{name}-2"))
    with monkeypatch.context() as unwritable:
        unwritable.setattr(os, "access", lambda path, mode: mode != os.W_OK or path != str(tmp_path / name))
        with pytest.raises(
            PermissionError, match=r"\[Errno 13\] it is a mount point, and this user may not write to it$"
        ):
            require_replaceable(str(tmp_path / name), unsafe_writes=True)
    os.link(tmp_path / name, tmp_path / "link")
    with pytest.raises(OSError, match="it has 2 hard links"):
        require_replaceable(str(tmp_path / name), unsafe_writes=True)


def test_without_a_list_of_mounts_nothing_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("builtins.open", fail)
    (tmp_path / "f").touch()
    require_replaceable(str(tmp_path / "f"))


@pytest.mark.parametrize("user", ["root", "owner", "owner of the folder", "other"])
def test_sticky_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: str) -> None:
    (tmp_path / "f").touch()
    lstat, stat_ = os.lstat, os.stat
    uids = {"root": 0, "owner": 1001, "owner of the folder": 1002, "other": 1003}

    def changed(before: os.stat_result, **fields: int) -> os.stat_result:
        values = [fields.get(name, getattr(before, name)) for name in STAT_FIELDS]
        return os.stat_result(values)

    def lstat_of_user(path: str, **options: Any) -> os.stat_result:
        before = lstat(path, **options)
        return changed(before, st_uid=1001) if path == str(tmp_path / "f") else before

    def stat_of_user(path: str, **options: Any) -> os.stat_result:
        before = stat_(path, **options)
        return changed(before, st_uid=1002, st_mode=0o41777) if path == str(tmp_path) else before

    monkeypatch.setattr(os, "lstat", lstat_of_user)
    monkeypatch.setattr(os, "stat", stat_of_user)
    monkeypatch.setattr(os, "geteuid", lambda: uids[user])
    if user == "other":
        with pytest.raises(PermissionError) as error:
            require_replaceable(str(tmp_path / "f"))
        assert (error.value.errno, error.value.strerror) == (
            errno.EPERM,
            "it belongs to uid 1001, and its directory has the sticky bit, so this user may not replace it",
        )
    else:
        require_replaceable(str(tmp_path / "f"))
    # Without the sticky bit, whoever may write to the folder may replace its files.
    monkeypatch.setattr(os, "stat", stat_)
    require_replaceable(str(tmp_path / "f"))


@pytest.mark.parametrize(
    ("flag", "description"),
    [(0x10, "immutable (chattr +i)"), (0x20, "append-only (chattr +a)"), (0x1, None), (0x80000, None)],
)
def test_attributes_of_the_file_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flag: int, description: str | None
) -> None:
    (tmp_path / "f").touch()
    for path, subject in ((tmp_path / "f", "it"), (tmp_path, "its directory")):
        inode = path.stat().st_ino

        def flags(descriptor: int, request: int, buffer: bytes, inode: int = inode) -> bytes:
            # FS_IOC_GETFLAGS, whose type is a long, of which an int is written.
            assert (request, len(buffer)) == (0x80086601, 8)
            found = flag if os.fstat(descriptor).st_ino == inode else 0
            return found.to_bytes(4, sys.byteorder) + b"\xff" * 4

        monkeypatch.setattr(fcntl, "ioctl", flags)
        if description:
            with pytest.raises(PermissionError) as error:
                require_replaceable(str(tmp_path / "f"))
            assert (error.value.errno, error.value.strerror) == (errno.EPERM, f"{subject} is {description}")
        else:
            require_replaceable(str(tmp_path / "f"))


def test_attributes_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of file systems without them, of a pipe, which is not waited for, and of a link, which is not followed."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("f")
    (tmp_path / "f").touch()
    inode = (tmp_path / "f").stat().st_ino

    def flags(descriptor: int, request: int, buffer: bytes) -> bytes:
        if os.fstat(descriptor).st_ino != inode:
            raise OSError(errno.ENOTTY, "Inappropriate ioctl for device")
        return b"\xff" * 8

    monkeypatch.setattr(fcntl, "ioctl", flags)
    for name in ("pipe", "link", "missing"):
        require_replaceable(str(tmp_path / name))
    with pytest.raises(PermissionError, match="immutable"):
        require_replaceable(str(tmp_path / "f"))


def test_file_that_cannot_be_removed_does_not_keep_the_others(tmp_path: Path) -> None:
    (tmp_path / ".p-aaaaaaaa.tmp").touch()
    (tmp_path / ".p-bbbbbbbb.tmp").mkdir()
    (tmp_path / ".p-cccccccc.tmp").touch()
    remove_temporary_files(str(tmp_path), ".p-")
    assert os.listdir(tmp_path) == [".p-bbbbbbbb.tmp"]


def test_temporary_files_that_may_not_be_removed_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".p-aaaaaaaa.tmp").touch()
    monkeypatch.setattr(os, "unlink", fail)
    remove_temporary_files(str(tmp_path), ".p-")
    assert os.listdir(tmp_path) == [".p-aaaaaaaa.tmp"]


def test_only_regular_files_are_removed_as_temporary_files(tmp_path: Path) -> None:
    (tmp_path / ".p-aaaaaaaa.tmp").symlink_to("other")
    os.mkfifo(tmp_path / ".p-bbbbbbbb.tmp")
    remove_temporary_files(str(tmp_path), ".p-")
    assert sorted(os.listdir(tmp_path)) == [".p-aaaaaaaa.tmp", ".p-bbbbbbbb.tmp"]


def test_folder_that_cannot_be_synced_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fsync = os.fsync

    def files_only(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", files_only)
    replace(tmp_path / "f", b"new")
    assert (tmp_path / "f").read_text() == "new"


def test_only_temporary_files_with_the_prefix_are_removed(tmp_path: Path) -> None:
    folder = tmp_path / "[f]"
    folder.mkdir()
    kept = {"f", ".p*-abcdefghi.tmp", ".p*-abcdefgh", ".pp-abcdefgh.tmp"}
    for name in (*kept, ".p*-abcdefgh.tmp"):
        (folder / name).touch()
    remove_temporary_files(str(folder), ".p*-")
    assert set(os.listdir(folder)) == kept
