# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A file that is replaced completely or not at all."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._atomic_file import (
    remove_temporary_files,
    temporary_file,
)


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
