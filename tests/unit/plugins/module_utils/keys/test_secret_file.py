# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The file of a secret: readable by its owner only from the start, complete or absent."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import InvalidOption, SecretFileError
from ansible_collections.clouddb.control.plugins.module_utils._keys.secret_file import SecretFile

PREFIX = f".clouddb-{os.geteuid()}-"
LOCK = f".clouddb-{os.geteuid()}.lock"


def keep_attributes(path: str) -> bool:
    return False


def test_file_is_private_and_empty_when_attributes_are_set(tmp_path: Path) -> None:
    seen: list[tuple[Path, int, bytes]] = []

    def set_attributes(path: str) -> bool:
        seen.append((Path(path).parent, stat.S_IMODE(os.stat(path).st_mode), Path(path).read_bytes()))
        return True

    with SecretFile(str(tmp_path / "key"), set_attributes).replacement() as write:
        assert seen == [(tmp_path, 0o600, b"")]
        write("secret")
    assert len(seen) == 1


def test_write_syncs_file_then_renames_then_syncs_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    fsync, replace = os.fsync, os.replace

    def watched_fsync(descriptor: int) -> None:
        steps.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    def watched_replace(source: str, target: str) -> None:
        steps.append("rename")
        assert Path(source).read_text() == "secret"
        replace(source, target)

    monkeypatch.setattr(os, "fsync", watched_fsync)
    monkeypatch.setattr(os, "replace", watched_replace)
    with SecretFile(str(tmp_path / "key"), keep_attributes).replacement() as write:
        write("secret")
    assert steps == ["file", "rename", "folder"]


@pytest.mark.parametrize("before", [None, "old"])
def test_existing_file_is_kept_when_no_secret_is_written(tmp_path: Path, before: str | None) -> None:
    file = SecretFile(str(tmp_path / "key"), keep_attributes)
    if before:
        (tmp_path / "key").write_text(before)
    with file.replacement():
        assert len(os.listdir(tmp_path)) == (2 if before else 1)
    assert os.listdir(tmp_path) == (["key"] if before else [])
    assert file.read() == before


def test_temporary_file_is_removed_when_setting_attributes_fails(tmp_path: Path) -> None:
    def fail(path: str) -> bool:
        raise SystemExit(1)

    with pytest.raises(SystemExit), SecretFile(str(tmp_path / "key"), fail).replacement():
        pass
    assert os.listdir(tmp_path) == []


def test_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = SecretFile("key", keep_attributes)
    file.check()
    with file.replacement() as write:
        write("secret")
    assert (tmp_path / "key").read_text() == "secret"


def test_shorter_secret_replaces_longer_one_completely(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("a much longer secret")
    file = SecretFile(str(tmp_path / "key"), keep_attributes)
    with file.replacement() as write:
        write("short")
    assert (tmp_path / "key").read_bytes() == b"short"


def test_check_refuses_folder(tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match=r"it is a directory, not a regular file"):
        SecretFile(str(tmp_path), keep_attributes).check()


def test_check_refuses_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match=r"The directory .*nowhere does not exist. Create it first."):
        SecretFile(str(tmp_path / "nowhere" / "key"), keep_attributes).check()


def test_folder_removed_meanwhile_raises_secret_file_error(tmp_path: Path) -> None:
    with (
        pytest.raises(SecretFileError, match="No file can be created in"),
        SecretFile(str(tmp_path / "gone" / "key"), keep_attributes).replacement(),
    ):
        pass


def test_lock_removes_only_temporary_files_of_killed_tasks(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "[secrets]", tmp_path / "s"
    others = f".clouddb-{os.geteuid() + 1}-abcdefgh.tmp"
    kept = ("key", others, f"{PREFIX}abcdefgh", f"{PREFIX}abcdefghi.tmp", "clouddb-abcdefgh.tmp", "abcdefgh.tmp")
    for place in (folder, elsewhere):
        place.mkdir()
        for name in (f"{PREFIX}abcdefgh.tmp", f"{PREFIX}_0_0_0_0.tmp", *kept):
            (place / name).touch()
    file = SecretFile(str(folder / "key"), keep_attributes)
    with file.held():
        assert set(os.listdir(folder)) == {*kept, LOCK}
        # A file of this task itself has such a name, so that it will be found if the task is killed.
        with file.replacement():
            (own,) = set(os.listdir(folder)) - {*kept, LOCK}
        (folder / own).touch()
    with file.held():
        assert set(os.listdir(folder)) == {*kept, LOCK}
    assert len(os.listdir(elsewhere)) == len(kept) + 2
