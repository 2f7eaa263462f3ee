# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The file of a secret: private from the first moment, whole or not there."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import InvalidOption, SecretFileError
from ansible_collections.clouddb.control.plugins.module_utils._keys.secret_file import SecretFile


def as_it_is(path: str) -> bool:
    return False


def test_the_file_is_private_and_empty_when_its_attributes_are_set(tmp_path: Path) -> None:
    seen: list[tuple[Path, int, bytes]] = []

    def look(path: str) -> bool:
        seen.append((Path(path).parent, stat.S_IMODE(os.stat(path).st_mode), Path(path).read_bytes()))
        return True

    with SecretFile(str(tmp_path / "key"), look).replacement() as put:
        assert seen == [(tmp_path, 0o600, b"")]
        put("secret")
    assert len(seen) == 1


def test_the_content_is_on_disk_before_the_name_and_the_name_before_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    with SecretFile(str(tmp_path / "key"), as_it_is).replacement() as put:
        put("secret")
    assert steps == ["file", "rename", "folder"]


@pytest.mark.parametrize("before", [None, "old"])
def test_without_a_new_secret_everything_stays(tmp_path: Path, before: str | None) -> None:
    file = SecretFile(str(tmp_path / "key"), as_it_is)
    if before:
        (tmp_path / "key").write_text(before)
    with file.replacement():
        assert len(os.listdir(tmp_path)) == (2 if before else 1)
    assert os.listdir(tmp_path) == (["key"] if before else [])
    assert file.read() == before


def test_nothing_is_left_when_the_attributes_cannot_be_set(tmp_path: Path) -> None:
    def fail(path: str) -> bool:
        raise SystemExit(1)

    with pytest.raises(SystemExit), SecretFile(str(tmp_path / "key"), fail).replacement():
        pass
    assert os.listdir(tmp_path) == []


def test_a_path_may_be_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = SecretFile("key", as_it_is)
    file.check()
    with file.replacement() as put:
        put("secret")
    assert (tmp_path / "key").read_text() == "secret"


def test_a_shorter_secret_leaves_nothing_of_a_longer_one(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("a much longer secret")
    file = SecretFile(str(tmp_path / "key"), as_it_is)
    with file.replacement() as put:
        put("short")
    assert (tmp_path / "key").read_bytes() == b"short"


def test_a_folder_in_its_place_is_told_before(tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match=r"is a folder; give the path of a file"):
        SecretFile(str(tmp_path), as_it_is).check()


def test_a_missing_folder_is_told_before(tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match=r"there is no folder .*nowhere; create it first"):
        SecretFile(str(tmp_path / "nowhere" / "key"), as_it_is).check()


def test_a_folder_that_goes_away_is_an_error_of_the_file(tmp_path: Path) -> None:
    with (
        pytest.raises(SecretFileError, match="no file can be made in"),
        SecretFile(str(tmp_path / "gone" / "key"), as_it_is).replacement(),
    ):
        pass


def test_who_holds_the_folder_removes_what_killed_tasks_have_left_and_nothing_else(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "[secrets]", tmp_path / "s"
    kept = ("key", ".clouddb-abcdefgh", ".clouddb-abcdefghi.tmp", "clouddb-abcdefgh.tmp", "abcdefgh.tmp")
    for place in (folder, elsewhere):
        place.mkdir()
        for name in (".clouddb-abcdefgh.tmp", ".clouddb-_0_0_0_0.tmp", *kept):
            (place / name).touch()
    file = SecretFile(str(folder / "key"), as_it_is)
    with file.held():
        assert set(os.listdir(folder)) == set(kept)
        # A file of this task itself has such a name, so that it will be found if the task is killed.
        with file.replacement():
            (own,) = set(os.listdir(folder)) - set(kept)
        (folder / own).touch()
    with file.held():
        assert set(os.listdir(folder)) == set(kept)
    assert len(os.listdir(elsewhere)) == len(kept) + 2
