# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The file of a secret: readable by its owner only from the start, complete or absent."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import InvalidOption, SecretFileError
from ansible_collections.clouddb.control.plugins.module_utils._files import atomic_file, secret_file
from ansible_collections.clouddb.control.plugins.module_utils._files.secret_file import (
    LOCK_TIMEOUT,
    MAX_SIZE,
    FileAttributes,
    SecretFile,
    dest_from,
    require_readable_mode,
)
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import FakeClock
from ansible_collections.clouddb.control.tests.unit.support.special_files import (
    access_list,
    hard_link,
    set_access_list,
    special_files,
)

PREFIX = f".clouddb-{os.geteuid()}-"
LOCK = f".clouddb-{os.geteuid()}.lock"


def keep_attributes(path: str) -> bool:
    return False


def denied(*args: object) -> None:
    raise PermissionError(errno.EPERM, "Operation not permitted")


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
    file = dest_from({"dest": "key"}, keep_attributes)
    assert file
    file.check()
    with file.replacement() as write:
        write("secret")
    assert (tmp_path / "key").read_text() == "secret"


@pytest.mark.parametrize(
    "attributes", [None, FileAttributes(os.geteuid(), os.getegid(), 0o640)], ids=["new", "restored"]
)
def test_access_list_and_extended_attributes_are_kept(tmp_path: Path, attributes: FileAttributes | None) -> None:
    key = tmp_path / "key"
    key.touch(0o600)
    set_access_list(key)
    os.setxattr(key, "user.owner", b"app")
    before = access_list(key)
    with SecretFile(str(key), keep_attributes).replacement(attributes) as write:
        write("secret")
    assert (access_list(key), os.getxattr(key, "user.owner"), key.read_text()) == (before, b"app", "secret")


def test_file_gets_no_access_list_from_its_folder(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.touch()
    key.chmod(0o640)
    set_access_list(tmp_path, "default")
    with SecretFile(str(key), keep_attributes).replacement() as write:
        write("secret")
    assert (access_list(key), stat.S_IMODE(key.stat().st_mode)) == (None, 0o640)


def test_attributes_in_a_folder_of_everybody_are_not_kept(tmp_path: Path) -> None:
    """Anybody could have created the file."""
    tmp_path.chmod(0o1777)
    (tmp_path / "key").touch()
    (tmp_path / "key").chmod(0o666)
    with SecretFile(str(tmp_path / "key"), keep_attributes).replacement() as write:
        write("secret")
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600


def test_file_with_the_secret_never_has_permissions_that_are_withdrawn(tmp_path: Path) -> None:
    """Whoever opened it before could read the secret later."""
    (tmp_path / "key").touch()
    (tmp_path / "key").chmod(0o644)
    drafts: list[int] = []

    def set_attributes(path: str) -> bool:
        drafts.append(os.stat(path).st_ino)
        os.chmod(path, 0o600)
        return True

    with SecretFile(str(tmp_path / "key"), set_attributes).replacement() as write:
        write("secret")
    status = (tmp_path / "key").stat()
    assert stat.S_IMODE(status.st_mode) == 0o600
    assert drafts and status.st_ino not in drafts


def test_path_is_that_of_ansible_whatever_the_locale(tmp_path: Path) -> None:
    """Ansible's modules encode it in UTF-8."""
    (tmp_path / "Ключи").mkdir()
    code = f"""
from {SecretFile.__module__} import dest_from
file = dest_from({{"dest": {f"{tmp_path}/Ключи/k"!a}}}, lambda path: print(ascii(path)))
file.check()
with file.held(), file.replacement() as write:
    write("secret")
print(ascii(file.path), file.read(), file.place())
"""
    root = Path(secret_file.__file__).parents[6]
    environment = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0", "PYTHONPATH": str(root)}
    ended = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    draft, path, *rest = ended.stdout.split()
    assert draft.startswith(ascii(f"{tmp_path}/Ключи/{PREFIX}")[:-1])
    file = SecretFile(f"{tmp_path}/Ключи/k", keep_attributes)
    assert [path, *rest] == [ascii(file.path), "secret", str(file.place())]
    assert os.listdir(tmp_path / "Ключи") == ["k"]


def test_file_of_a_user_whose_files_cannot_be_given_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "key").write_text("old")
    monkeypatch.setattr(os, "fchown", denied)
    monkeypatch.setattr(secret_file, "replaced_owner", lambda target, unsafe_writes: (12345, 23456))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    file = SecretFile(str(tmp_path / "key"), keep_attributes)
    expected = pytest.raises(
        SecretFileError, match=r"^dest: .* belongs to uid 12345 and gid 23456, which this user can't"
    )
    with expected:
        file.check_replaceable()
    with expected, file.replacement():
        pytest.fail("a key would be created")
    assert os.listdir(tmp_path) == ["key"]


def test_file_that_is_overwritten_in_place_keeps_its_owner_anyway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "key").write_text("old")
    monkeypatch.setattr(os, "fchown", denied)
    monkeypatch.setattr(atomic_file, "_is_mount_point", lambda path: True)
    assert atomic_file.replaced_owner(str(tmp_path / "key"), unsafe_writes=True) is None
    assert atomic_file.replaced_owner(str(tmp_path / "key")) == (os.getuid(), (tmp_path / "key").stat().st_gid)
    with SecretFile(str(tmp_path / "key"), keep_attributes, unsafe_writes=True).replacement():
        pass


def test_owner_that_cannot_be_restored_is_that_of_the_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def set_mode(path: str) -> bool:
        os.chmod(path, 0o640)
        return True

    monkeypatch.setattr(os, "fchown", denied)
    with SecretFile(str(tmp_path / "key"), set_mode).replacement(FileAttributes(12345, 23456, 0o604)) as write:
        write("old")
    assert (tmp_path / "key").read_text() == "old"
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o640


def test_shorter_secret_replaces_longer_one_completely(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("a much longer secret")
    file = SecretFile(str(tmp_path / "key"), keep_attributes)
    with file.replacement() as write:
        write("short")
    assert (tmp_path / "key").read_bytes() == b"short"


def test_folder_may_be_missing_in_check_mode(tmp_path: Path) -> None:
    file = SecretFile(str(tmp_path / "nowhere" / "key"), keep_attributes, check_mode=True)
    file.check()
    file.check_replaceable()
    assert file.read() is None


@special_files
def test_only_a_regular_file_is_used(tmp_path: Path, create: Callable[[Path], object], description: str) -> None:
    create(tmp_path / "key")
    file = SecretFile(str(tmp_path / "key"), keep_attributes)
    with pytest.raises(InvalidOption, match=rf"^dest: .*{description}.* (Set dest to the path|Replace it by a copy)"):
        file.check()
    with pytest.raises(SecretFileError, match=rf"^dest: .*can't be read: {description}"):
        file.read()


def test_hard_links_of_this_user_are_read_and_replaced(tmp_path: Path) -> None:
    """Such as those of a backup, which keeps the old secret."""
    hard_link(tmp_path / "key")
    file = SecretFile(str(tmp_path / "key"), keep_attributes)
    file.check()
    assert file.read() == "{}"
    with file.replacement() as write:
        write("secret")
    assert (tmp_path / "key").read_text() == "secret"
    assert (tmp_path / "elsewhere").read_text() == "{}"


@pytest.mark.parametrize("name", [LOCK, f"{PREFIX}abcdefgh.tmp", ".clouddb-12345.lock", ".clouddb-12345-abcdefgh.tmp"])
def test_names_of_locks_and_temporary_files_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidOption, match="^dest: .*Choose another name"):
        SecretFile(str(tmp_path / name), keep_attributes).check()


@pytest.mark.parametrize("mode", [640, "0240", "66", 0o200])
def test_given_mode_that_the_owner_cannot_read_is_refused(mode: int | str) -> None:
    with pytest.raises(InvalidOption, match="^mode: "):
        require_readable_mode(mode)


@pytest.mark.parametrize("mode", [None, "0640", "640", 0o400, "u=rw,g=r", "u-r"])
def test_other_given_modes_pass(mode: int | str | None) -> None:
    require_readable_mode(mode)


@pytest.mark.parametrize("kind", ["folder", "link to a folder"])
def test_folder_may_be_a_symbolic_link(tmp_path: Path, kind: str) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "link").symlink_to("secrets")
    file = dest_from({"dest": str(tmp_path / ("secrets" if kind == "folder" else "link") / "key")}, keep_attributes)
    assert file
    file.check()
    with file.held(), file.replacement() as write:
        write("secret")
    assert file.read() == (tmp_path / "secrets" / "key").read_text() == "secret"
    assert os.listdir(tmp_path / "secrets") == ["key"]


def test_size_is_limited(tmp_path: Path) -> None:
    file = SecretFile(str(tmp_path / "key"), keep_attributes)
    (tmp_path / "key").write_bytes(b"s" * MAX_SIZE)
    file.check()
    assert file.read() == "s" * MAX_SIZE
    os.truncate(tmp_path / "key", 10 * 2**30)
    with pytest.raises(InvalidOption, match="^dest: .*/key has more than 65536 bytes"):
        file.check()
    with pytest.raises(SecretFileError, match="^dest: .*/key has more than 65536 bytes"):
        file.read()


def test_content_that_is_no_text_is_read(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"secret\xff\n")
    assert SecretFile(str(tmp_path / "key"), keep_attributes).read() == "secret\ufffd"


@pytest.mark.parametrize("mode", [0o1200, 0o200, 0o066, 0])
def test_mode_that_the_owner_cannot_read_is_refused(tmp_path: Path, mode: int) -> None:
    def set_mode(path: str) -> bool:
        os.chmod(path, mode)
        return True

    file = SecretFile(str(tmp_path / "key"), set_mode)
    with pytest.raises(InvalidOption, match=rf"^mode: .* mode {mode:04o}\. Quote") as error, file.replacement():
        pytest.fail("a key would be created")
    assert error.value.details == {"option": "mode"}
    (tmp_path / "key").write_text("secret")
    (tmp_path / "key").chmod(0o600)
    with pytest.raises(InvalidOption, match="^mode: "):
        file.update_attributes()
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["key"]


@pytest.mark.parametrize("changed", [True, False])
def test_attributes_of_an_existing_file_are_updated(tmp_path: Path, changed: bool) -> None:
    (tmp_path / "key").write_text("secret")
    paths: list[str] = []

    def set_attributes(path: str) -> bool:
        paths.append(path)
        return changed

    assert SecretFile(str(tmp_path / "key"), set_attributes).update_attributes() is changed
    assert paths[-1] == str(tmp_path / "key")
    assert os.listdir(tmp_path) == ["key"]


def test_wait_for_the_lock_is_bounded(tmp_path: Path) -> None:
    clock = FakeClock()
    file = SecretFile(str(tmp_path / "key"), keep_attributes, clock=clock.clock)
    with file.held():
        with (
            pytest.raises(SecretFileError, match=r"^dest: Another task has held the lock .* for 300 seconds\. "),
            file.held(),
        ):
            pytest.fail("the lock is held twice")
        assert clock.elapsed >= LOCK_TIMEOUT
    with file.held():
        pass
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can take the identity of another user")
def test_another_user_cannot_hold_the_lock(tmp_path: Path) -> None:
    """Not by locking the folder, nor by opening the lock file; one created in advance is refused."""
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o1777)
    clock = FakeClock()
    file = SecretFile(str(folder / "key"), keep_attributes, clock=clock.clock)

    def as_other(action: Callable[[], object]) -> str:
        os.seteuid(65534)
        try:
            action()
        except OSError as error:
            return str(error.strerror)
        finally:
            os.seteuid(0)
        return "done"

    descriptors: list[int] = []
    # The other user reaches the folder as a path below the current one, because those above are private.
    before = os.getcwd()
    os.chdir(folder)
    try:
        assert as_other(lambda: descriptors.append(os.open(".", os.O_RDONLY))) == "done"
        fcntl.flock(descriptors[0], fcntl.LOCK_EX)
        with file.held():
            assert as_other(lambda: os.open(LOCK, os.O_RDONLY)) == "Permission denied"
        assert clock.pauses == []
        assert as_other(lambda: os.close(os.open(LOCK, os.O_CREAT | os.O_WRONLY, 0o600))) == "done"
        with (
            pytest.raises(SecretFileError, match=rf"^dest: The lock .*{LOCK} can't be used: it belongs to uid 65534"),
            file.held(),
        ):
            pytest.fail("the lock of another user was used")
        assert clock.pauses == []
    finally:
        os.chdir(before)
        for descriptor in descriptors:
            os.close(descriptor)


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
