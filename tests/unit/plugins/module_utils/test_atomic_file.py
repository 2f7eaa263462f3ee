# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A file that is replaced completely or not at all."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from io import FileIO
from pathlib import Path

import pytest

from ansible_collections.clouddb.control.plugins.module_utils import _atomic_file as atomic_file
from ansible_collections.clouddb.control.plugins.module_utils._atomic_file import (
    remove_temporary_files,
    temporary_file,
)
from ansible_collections.clouddb.control.tests.unit.support.special_files import special_files


def replace(target: Path, content: bytes, unsafe_writes: bool = False) -> None:
    with temporary_file(str(target), ".p-") as temporary:
        temporary.replace_target(content, unsafe_writes)


def fail(*args: object) -> None:
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
    with pytest.raises(OSError, match="its previous content could not be restored: No space left on device"):
        replace(tmp_path / "f", b"new", unsafe_writes=True)


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
        seen.append((tmp_path / "f").read_bytes().strip())
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", read_then_sync)
    replace(tmp_path / "f", b"new secret", unsafe_writes=True)
    assert seen[:-1] == [old, old, b"new secret", b"new secret"]


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


def test_file_that_cannot_be_removed_does_not_keep_the_others(tmp_path: Path) -> None:
    (tmp_path / ".p-aaaaaaaa.tmp").touch()
    (tmp_path / ".p-bbbbbbbb.tmp").mkdir()
    (tmp_path / ".p-cccccccc.tmp").touch()
    remove_temporary_files(str(tmp_path), ".p-")
    assert os.listdir(tmp_path) == [".p-bbbbbbbb.tmp"]


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
