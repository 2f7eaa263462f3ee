# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is said about files that are refused, and whose the file is that replaces another."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import InvalidOption, SecretFileError
from ansible_collections.clouddb.control.plugins.module_utils._files import secret_file
from ansible_collections.clouddb.control.plugins.module_utils._files.secret_file import (
    FileAttributes,
    SecretFile,
    dest_from,
)
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import FakeClock


def keep_attributes(path: str) -> bool:
    return False


def denied(*args: Any) -> None:
    raise PermissionError(errno.EPERM, "Operation not permitted")


@pytest.fixture
def file(tmp_path: Path) -> SecretFile:
    (tmp_path / "key").write_text("secret", encoding="utf-8")
    return SecretFile(str(tmp_path / "key"), keep_attributes)


# Messages


def test_file_of_another_user(file: SecretFile) -> None:
    os.chmod(file.path, 0o620)
    with pytest.raises(SecretFileError) as error:
        file.read(private=True)
    assert str(error.value) == (
        f"dest: {file.path} belongs to another user, or others may write to it, so its content is not trusted. Check who has "
        "written it, and remove it or change its owner and mode."
    )
    assert file.read() == "secret"


def test_owner_that_cannot_be_given(file: SecretFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fchown", denied)
    monkeypatch.setattr(secret_file, "replaced_owner", lambda target, unsafe_writes: (12345, 23456))
    with pytest.raises(SecretFileError) as error, file.replacement():
        pytest.fail("a key would be created")
    assert str(error.value) == (
        f"dest: {file.path} belongs to uid 12345 and gid 23456, which this user can't give to the file that replaces it. "
        "Set become, or set owner and group."
    )


@pytest.mark.parametrize("user, refused", [(0, False), (12345, False), (1, True)])
def test_who_may_replace_a_file(file: SecretFile, user: int, refused: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(secret_file, "replaced_owner", lambda target, unsafe_writes: (12345, 23456))
        patch.setattr(os, "geteuid", lambda: user)
        file._replace(has_owner=True).check_replaceable()
        if not refused:
            file.check_replaceable()
            return
        with pytest.raises(SecretFileError):
            file.check_replaceable()


@pytest.mark.parametrize(
    "name, problem",
    [
        ("nul\0/key", "The path has a NUL character. Remove it."),
        ("missing/key", "The directory {folder}/missing does not exist. Create it first."),
    ],
)
def test_paths_of_no_file(tmp_path: Path, name: str, problem: str) -> None:
    with pytest.raises(InvalidOption) as error:
        file = dest_from({"dest": f"{tmp_path}/{name}"}, keep_attributes)
        assert file
        file.check()
    assert str(error.value) == f"dest: {problem.format(folder=tmp_path)}"


def test_file_that_cannot_be_replaced(file: SecretFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret_file.TemporaryFile, "replace_target", denied)
    with file.replacement() as write, pytest.raises(SecretFileError) as error:
        write("secret")
    assert str(error.value) == f"dest: {file.path} can't be written: Operation not permitted."


def test_lock_that_is_held_or_unusable(file: SecretFile, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = Path(file.path).parent / f".clouddb-{os.geteuid()}.lock"
    waiting = file._replace(clock=FakeClock().clock)
    with file.held(), pytest.raises(SecretFileError) as error, waiting.held():
        pytest.fail("the lock is held twice")
    assert str(error.value) == (
        f"dest: Another task has held the lock {lock} for 300 seconds. "
        "Wait until it has ended, or end it, and run this task again."
    )
    lock.mkdir()
    with pytest.raises(SecretFileError) as error, waiting.held():
        pytest.fail("a folder is no lock")
    assert str(error.value).startswith(f"dest: The lock {lock} can't be used: ")
    assert str(error.value).endswith(". Check who may write to this directory, and remove the file if there is one.")


@pytest.mark.parametrize(
    "number, advice",
    [
        (errno.EMLINK, "Replace it by a copy, without other links, that belongs to the user of this task."),
        (errno.ELOOP, "Set dest to the path of a regular file."),
    ],
)
def test_advice_about_a_file_that_is_refused(file: SecretFile, number: int, advice: str) -> None:
    def refuse(status: os.stat_result) -> None:
        raise OSError(number, "it is refused")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(secret_file, "require_regular_file", refuse)
        with pytest.raises(InvalidOption) as error:
            file.check()
    assert str(error.value) == f"dest: {file.path} can't be used: it is refused. {advice}"


def test_attributes_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(SecretFileError) as error:
        SecretFile(str(tmp_path / "missing"), keep_attributes).attributes()
    assert str(error.value) == f"dest: {tmp_path}/missing can't be read: No such file or directory."


def test_file_that_cannot_be_removed(file: SecretFile, monkeypatch: pytest.MonkeyPatch) -> None:
    file.remove()
    file.remove()
    assert not Path(file.path).exists()
    monkeypatch.setattr(os, "unlink", denied)
    with pytest.raises(SecretFileError) as error:
        file.remove()
    assert str(error.value) == f"dest: {file.path} can't be removed: Operation not permitted."


def test_name_of_a_temporary_file_with_a_line_break(tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match="Choose another name"):
        SecretFile(str(tmp_path / ".clouddb-1-abc\nefgh.tmp"), keep_attributes).check()


def test_the_folder_must_be_writable_and_searchable(file: SecretFile, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Any, ...]] = []
    monkeypatch.setattr(os, "access", lambda *arguments: asked.append(arguments))
    assert not file.may_create_files()
    folder = str(Path(file.path).parent)
    assert asked == [(folder, os.W_OK | os.X_OK)]
    with pytest.raises(InvalidOption) as error:
        file.check()
    assert str(error.value) == (
        f"dest: This user may not create files in {folder}. Change its permissions, or set become."
    )


# Owner and group


@pytest.mark.parametrize("has_owner, has_group", [(False, False), (True, False), (False, True), (True, True)])
def test_the_owner_is_kept_unless_options_set_it(file: SecretFile, has_owner: bool, has_group: bool) -> None:
    given: list[tuple[int, int]] = []

    def give(descriptor: int, uid: int, gid: int) -> None:
        assert os.fstat(descriptor).st_size == 0
        given.append((uid, gid))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(secret_file, "replaced_owner", lambda target, unsafe_writes: (12345, 23456))
        patch.setattr(os, "fchown", give)
        with file._replace(has_owner=has_owner, has_group=has_group).replacement():
            pass
    own = os.geteuid(), os.getegid()
    expected = (own[0] if has_owner else 12345, own[1] if has_group else 23456)
    assert given == ([] if expected == own else [expected])


def test_attributes_are_tried_without_the_owner_of_the_file(file: SecretFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret_file, "replaced_owner", lambda target, unsafe_writes: (12345, 23456))
    monkeypatch.setattr(os, "fchown", denied)
    assert file.update_attributes() is False


@pytest.mark.parametrize("may_restore", [True, False])
def test_attributes_to_restore_come_before_those_of_the_options(file: SecretFile, may_restore: bool) -> None:
    paths: list[str] = []
    options = file._replace(set_attributes=lambda path: bool(paths.append(path)))
    os.chmod(file.path, 0o604)
    with pytest.MonkeyPatch.context() as patch:
        if not may_restore:
            patch.setattr(os, "fchown", denied)
        with options.replacement(FileAttributes(os.geteuid(), os.getegid(), 0o640)) as write:
            write("restored")
    assert Path(file.path).read_text(encoding="utf-8") == "restored"
    assert options.attributes().mode == (0o640 if may_restore else 0o604)
    assert len(paths) == (0 if may_restore else 1)


@pytest.mark.parametrize("changed", [True, False])
def test_attributes_in_a_folder_where_no_file_can_be_created(
    file: SecretFile, monkeypatch: pytest.MonkeyPatch, changed: bool
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    monkeypatch.setattr(secret_file, "temporary_file", denied)
    assert file._replace(set_attributes=lambda path: changed).update_attributes() is changed


@pytest.mark.parametrize("unsafe_writes", [False, True])
def test_unsafe_writes_count_for_each_check_and_the_replacement(file: SecretFile, unsafe_writes: bool) -> None:
    asked: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(secret_file, "require_replaceable", lambda target, unsafe: asked.append(unsafe))
        patch.setattr(secret_file, "replaced_owner", lambda target, unsafe: asked.append(unsafe))
        patch.setattr(secret_file.TemporaryFile, "replace_target", lambda self, content, unsafe: asked.append(unsafe))
        options = file._replace(unsafe_writes=unsafe_writes)
        options.check_replaceable()
        with options.replacement() as write:
            write("secret")
    assert asked == [unsafe_writes] * 4


@pytest.mark.parametrize(
    "params, expected",
    [
        ({}, (False, False, False)),
        ({"unsafe_writes": True, "owner": None, "group": None}, (True, False, False)),
        ({"owner": "root"}, (False, True, False)),
        ({"group": "root"}, (False, False, True)),
    ],
)
def test_file_of_the_options(params: dict[str, Any], expected: tuple[bool, bool, bool]) -> None:
    file = dest_from({"dest": "/etc/key", **params}, keep_attributes)
    assert file is not None
    assert (file.path, file.set_attributes, file.unsafe_writes, file.has_owner, file.has_group) == (
        "/etc/key",
        keep_attributes,
        *expected,
    )
    assert dest_from({"dest": None, **params}, keep_attributes) is None


def test_file_without_options() -> None:
    assert dest_from({"dest": "/etc/key"}, keep_attributes) == SecretFile("/etc/key", keep_attributes)
