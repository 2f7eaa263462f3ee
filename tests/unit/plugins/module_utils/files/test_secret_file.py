# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The file of a secret: readable by its owner only from the start, complete or absent, written by one task at a time."""

from __future__ import annotations

import errno
import fcntl
import multiprocessing
import os
import stat
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any, cast

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._clock import SYSTEM_CLOCK
from ansible_collections.clouddb.control.plugins.module_utils._errors import InvalidOption, SecretFileError
from ansible_collections.clouddb.control.plugins.module_utils._files import atomic_file
from ansible_collections.clouddb.control.plugins.module_utils._files.dest import MAX_SIZE
from ansible_collections.clouddb.control.plugins.module_utils._files.secret_file import (
    LOCK_TIMEOUT,
    FileAttributes,
    SecretFile,
    dest_from,
)
from ansible_collections.clouddb.control.tests.unit.support.api_key_task import mode_of
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import FakeClock
from ansible_collections.clouddb.control.tests.unit.support.special_files import (
    access_list,
    failing,
    set_access_list,
    special_files,
)

PREFIX, LOCK = f".clouddb-{os.geteuid()}-", f".clouddb-{os.geteuid()}.lock"
Patch = pytest.MonkeyPatch
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")


def keep_attributes(path: str) -> bool:
    return False


denied, no_space = failing(errno.EPERM), failing(errno.ENOSPC)
not_creatable = "^dest: this user may not create files in"


def replace(file: SecretFile, attributes: FileAttributes | None = None) -> None:
    with file.replacement(attributes) as write:
        write("new")


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """A file with a secret."""
    path = tmp_path / "key"
    path.write_text("secret\n")
    path.chmod(0o640)
    return path


@pytest.fixture
def file(key: Path) -> SecretFile:
    return SecretFile(str(key), keep_attributes)


# What is refused


@pytest.mark.parametrize("name", ["missing/key", "key/key", "."])
def test_impossible_paths(key: Path, name: str) -> None:
    with pytest.raises(InvalidOption, match="^dest: "):
        cast(SecretFile, dest_from({"dest": f"{key.parent}/{name}"}, keep_attributes)).check()


@special_files
def test_only_a_regular_file_is_used(tmp_path: Path, create: Callable[[Path], object], description: str) -> None:
    create(tmp_path / "key")
    file = SecretFile(str(tmp_path / "key"), keep_attributes)
    with pytest.raises(InvalidOption, match=f"^dest: .*{description}"):
        file.check()
    with pytest.raises(SecretFileError, match=f"^dest: .*{description}"):
        file.read()


def test_the_directory_must_be_writable(file: SecretFile, monkeypatch: Patch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    file.check_path()
    with pytest.raises(InvalidOption, match=not_creatable):
        file.check()


def test_paths_in_another_encoding_than_ansible_are_refused(file: SecretFile, monkeypatch: Patch) -> None:
    monkeypatch.setattr("sys.getfilesystemencoding", lambda: "iso8859-1")
    file.check_path()
    with pytest.raises(InvalidOption, match="^dest: .* UTF-8"):
        SecretFile(f"{file.path}-ü", keep_attributes).check_path()


@pytest.mark.parametrize("mode", ["0240", "66", 0o200, 0])
def test_given_mode_that_the_owner_cannot_read_is_refused(mode: int | str) -> None:
    with pytest.raises(InvalidOption, match="^mode: "):
        dest_from({"dest": "key", "mode": mode}, keep_attributes)


@pytest.mark.parametrize("mode", [440, 400, 640, 600, 644, 660, 700])
def test_a_decimal_number_in_place_of_an_octal_one_is_refused(mode: int) -> None:
    """440 is 0670, with which the group could write the file: https://github.com/ansible/ansible-modules-core/issues/2963"""
    with pytest.raises(InvalidOption) as refusal:
        dest_from({"dest": "key", "mode": mode}, keep_attributes)
    assert f"The number {mode} would be the permissions {mode:04o}." in str(refusal.value)
    assert dest_from({"dest": "key", "mode": str(mode)}, keep_attributes)
    assert dest_from({"dest": "key", "mode": int(str(mode), 8)}, keep_attributes)


# Reading


def test_size_is_limited(file: SecretFile, key: Path) -> None:
    key.write_bytes(b"s" * MAX_SIZE)
    file.check()
    assert file.read() == "s" * MAX_SIZE
    os.truncate(key, 10 * 2**30)
    with pytest.raises(InvalidOption, match="^dest: .*/key has more than 65536 bytes"):
        file.check()


def test_content_that_is_no_text_is_read(file: SecretFile, key: Path) -> None:
    key.write_bytes(b"secret\xff\n")
    assert file.read() == "secret\ufffd"
    with pytest.raises(SecretFileError, match=r"it has the character U\+FFFD at position 7\. The file was not changed"):
        file.read_key()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_a_key_that_an_editor_has_saved_is_read(file: SecretFile, key: Path, encoding: str) -> None:
    """https://github.com/pengzhile/pandora/issues/138"""
    mark = "\ufeff" if encoding.endswith(("le", "be")) else ""
    key.write_bytes(f"{mark}secret==\u200b \r\n".encode(encoding))
    assert file.read_key() == "secret=="


@pytest.mark.parametrize(
    "content, kind",
    [
        ("# the key\nsecret", "begins with a comment"),
        ("CLOUDDB_API_KEY=secret", "assigns a value to a name"),
        ("export CLOUDDB_API_KEY = 'secret'\nOTHER=1", "assigns a value to a name"),
        ("secret\nsecret", "has 2 lines"),
        ("'secret'", "has quotes around it"),
        ('{"key":"secret"}', "is JSON or a template"),
        ("Bearer secret", "begins with 'Bearer '"),
        ("$ANSIBLE_VAULT;1.1;AES256\n6162", "is encrypted with Ansible Vault"),
        ("sec\u200bret", "has the character U\\+200B at position 4"),
        ("two words", "has the character U\\+0020 at position 4"),
    ],
)
def test_a_file_that_holds_more_than_a_key_is_refused(file: SecretFile, key: Path, content: str, kind: str) -> None:
    key.write_text(content, encoding="utf-8")
    with pytest.raises(SecretFileError, match=f"^dest: .* must hold a key and nothing else, but it {kind}") as error:
        file.read_key()
    assert "secret" not in str(error.value).replace(str(key), "")


def test_private_file_that_others_may_write_is_refused(file: SecretFile, key: Path) -> None:
    assert file.read(private=True) == "secret"
    key.chmod(0o620)
    with pytest.raises(SecretFileError, match="not trusted"):
        file.read(private=True)


def test_removal(file: SecretFile, key: Path, monkeypatch: Patch) -> None:
    file.remove()
    file.remove()
    assert not key.exists()
    monkeypatch.setattr(os, "unlink", denied)
    with pytest.raises(SecretFileError):
        file.remove()


# Replacement


@pytest.mark.parametrize("fails", [False, True])
def test_attributes_are_set_on_a_file_that_never_has_a_secret(file: SecretFile, key: Path, fails: bool) -> None:
    """Whoever opened a file before its mode was restricted could read the secret later."""
    drafts: list[int] = []

    def set_attributes(path: str) -> bool:
        if path == str(key):
            return False
        status = os.stat(path)
        assert (Path(path).parent, status.st_size, stat.S_IMODE(status.st_mode)) == (key.parent, 0, 0o640)
        drafts.append(status.st_ino)
        os.chmod(path, 0o600)
        if fails:
            raise SecretFileError("owner: not known.")
        return True

    with pytest.raises(SecretFileError) if fails else nullcontext():
        replace(file._replace(set_attributes=set_attributes))
    assert (key.read_text(), mode_of(key)) == (("secret\n", 0o640) if fails else ("new", 0o600))
    assert len(drafts) == 1 and key.stat().st_ino not in drafts and os.listdir(key.parent) == ["key"]


def test_file_is_kept_when_no_secret_is_written(file: SecretFile, key: Path) -> None:
    with file.replacement(check_space=True):
        assert len(os.listdir(key.parent)) == 2
        assert all(path.read_text() in ("", "secret\n") for path in key.parent.iterdir())
    assert (key.read_text(), os.listdir(key.parent)) == ("secret\n", ["key"])


@pytest.mark.parametrize("restored", [False, True])
def test_access_list_and_extended_attributes_are_kept(file: SecretFile, key: Path, restored: bool) -> None:
    set_access_list(key)
    os.setxattr(key, "user.owner", b"app")
    before = access_list(key)
    replace(file, file.attributes() if restored else None)
    assert (access_list(key), os.getxattr(key, "user.owner"), key.read_text()) == (before, b"app", "new")


def test_file_gets_no_access_list_from_its_folder(file: SecretFile, key: Path) -> None:
    set_access_list(key.parent, "default")
    replace(file)
    assert (access_list(key), mode_of(key)) == (None, 0o640)


def test_attributes_in_a_directory_of_everybody_are_not_kept(file: SecretFile, key: Path) -> None:
    """Anybody could have created the file."""
    key.parent.chmod(0o1777)
    replace(file)
    assert mode_of(key) == 0o600


@as_root
@pytest.mark.parametrize("has_owner, has_group", [(False, False), (True, False), (False, True)])
def test_the_owner_is_kept_unless_options_set_it(file: SecretFile, key: Path, has_owner: bool, has_group: bool) -> None:
    os.chown(key, 12345, 23456)
    replace(file._replace(has_owner=has_owner, has_group=has_group))
    status = key.stat()
    assert (status.st_uid, status.st_gid) == (0 if has_owner else 12345, os.getegid() if has_group else 23456)


def test_an_owner_that_cannot_be_given_is_refused(file: SecretFile, key: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr(os, "fchown", denied)
    monkeypatch.setattr(SecretFile, "attributes", lambda self: FileAttributes(12345, 23456, 0o600))
    with pytest.raises(SecretFileError, match="belongs to uid 12345 and gid 23456"), file.replacement():
        pytest.fail("a key would be created")
    assert os.listdir(key.parent) == ["key"]


@pytest.mark.parametrize("may_restore", [True, False])
def test_attributes_to_restore_come_before_those_of_the_options(
    file: SecretFile, key: Path, monkeypatch: Patch, may_restore: bool
) -> None:
    paths: list[str] = []
    options = file._replace(set_attributes=lambda path: bool(paths.append(path)))
    if not may_restore:
        monkeypatch.setattr(os, "fchown", denied)
    uid = os.geteuid() if may_restore else 12345
    with options.replacement(FileAttributes(uid, os.getegid(), 0o600)) as write:
        write("restored")
    assert (key.read_text(), mode_of(key)) == ("restored", 0o600 if may_restore else 0o640)
    assert len(paths) == (0 if may_restore else 1)


def test_directory_removed_meanwhile_is_an_error_of_the_option(tmp_path: Path) -> None:
    file = SecretFile(str(tmp_path / "gone" / "key"), keep_attributes)
    with pytest.raises(InvalidOption, match=not_creatable), file.replacement():
        pass


# The lock


def hold_again_and_again(path: str, turns: int) -> None:
    """Fail if another process holds the lock at the same time."""
    file = SecretFile(path, keep_attributes, clock=SYSTEM_CLOCK._replace(sleep=lambda _seconds: None))
    for _turn in range(turns):
        with file.held():
            os.close(os.open(f"{path}.held", os.O_CREAT | os.O_EXCL))
            os.unlink(f"{path}.held")


def test_one_task_at_a_time(key: Path) -> None:
    """Even though each of them removes the file of the lock: https://github.com/werf/lockgate/pull/48"""
    with ProcessPoolExecutor(4, multiprocessing.get_context("fork")) as pool:
        for done in [pool.submit(hold_again_and_again, str(key), 100) for _process in range(4)]:
            done.result()
    assert os.listdir(key.parent) == ["key"]


@pytest.mark.parametrize("error", [None, KeyboardInterrupt, OSError(errno.ENOENT, "gone")], ids=str)
def test_the_lock_is_removed_however_the_task_ends(file: SecretFile, key: Path, error: Any) -> None:
    (key.parent / LOCK).touch()  # of a task that was killed
    with pytest.raises(type(error) if isinstance(error, OSError) else error) if error else nullcontext(), file.held():
        assert mode_of(key.parent / LOCK) & 0o600 == 0o600
        if error:
            raise error
    assert os.listdir(key.parent) == ["key"]


def test_a_lock_whose_file_was_removed_is_not_held(file: SecretFile, key: Path, monkeypatch: Patch) -> None:
    """The task before has removed it after this one had opened it; over NFS, it is stale then."""
    flock, clock = fcntl.flock, FakeClock()
    outcomes = iter([None, errno.ESTALE])

    def flock_too_late(descriptor: int, operation: int) -> None:
        number = next(outcomes, 0)
        if number != 0:
            (key.parent / LOCK).unlink()
        if number:
            raise OSError(number, os.strerror(number))
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", flock_too_late)
    with file._replace(clock=clock.clock).held():
        assert (key.parent / LOCK).exists() and len(clock.pauses) == 2
        with open(key.parent / LOCK) as other, pytest.raises(BlockingIOError):
            flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_wait_for_the_lock_is_bounded(file: SecretFile) -> None:
    clock = FakeClock()
    waiting = file._replace(clock=clock.clock)
    with file.held():
        with (
            pytest.raises(SecretFileError, match="another task has held the lock for 300 seconds. Wait"),
            waiting.held(),
        ):
            pytest.fail("the lock is held twice")
        assert LOCK_TIMEOUT <= clock.elapsed < LOCK_TIMEOUT + 1
    with waiting.held():
        pass


@as_root
def test_file_system_without_owners_and_modes(file: SecretFile, key: Path) -> None:
    """Such as a Windows drive in WSL, or a shared directory of a virtual machine."""
    (key.parent / LOCK).touch()
    (key.parent / LOCK).chmod(0o777)
    os.chown(key.parent / LOCK, 65534, 65534)
    with file.held():
        pass


def test_a_lock_that_is_a_link_is_refused(file: SecretFile, key: Path) -> None:
    (key.parent / LOCK).symlink_to("elsewhere")
    with pytest.raises(SecretFileError, match="can't be locked: .* Check who may write to the directory"), file.held():
        pytest.fail("it was locked")
    assert not (key.parent / "elsewhere").exists()


@pytest.mark.parametrize("number, goes_on", [(errno.ENOLCK, True), (errno.EIO, False)])
def test_file_system_without_locks(file: SecretFile, key: Path, monkeypatch: Patch, number: int, goes_on: bool) -> None:
    temporary = key.parent / f"{PREFIX}abcdefgh.tmp"
    temporary.touch()
    monkeypatch.setattr(fcntl, "flock", failing(number))
    with nullcontext() if goes_on else pytest.raises(SecretFileError), file.held():
        assert goes_on
    # It may be that of another task.
    assert temporary.exists()


def test_lock_removes_the_temporary_files_of_killed_tasks_of_this_user(file: SecretFile, key: Path) -> None:
    other_user = f".clouddb-{os.geteuid() + 1}-abcdefgh.tmp"
    for name in (f"{PREFIX}abcdefgh.tmp", other_user):
        (key.parent / name).touch()
    with file.held(), file.replacement():
        [own] = set(os.listdir(key.parent)) - {"key", LOCK, other_user}
        # A file of this task itself has such a name, so that it will be found if the task is killed.
        assert own.startswith(PREFIX)


# Any regular file that is replaced completely or not at all


def replace_target(target: Path, content: bytes, unsafe_writes: bool = False) -> None:
    with atomic_file.temporary_file(str(target), ".p-") as temporary:
        temporary.replace_target(content, unsafe_writes)


def test_new_file_is_private_and_complete(tmp_path: Path) -> None:
    new = tmp_path / "f"
    with atomic_file.temporary_file(str(new), ".p-") as temporary:
        assert [str(path) for path in tmp_path.glob(".p-????????.tmp")] == [temporary.path]
        temporary.replace_target(b"content" * 10_000)
    assert (new.read_bytes(), mode_of(new), os.listdir(tmp_path)) == (b"content" * 10_000, 0o600, ["f"])


@pytest.mark.parametrize("can_sync_directories", [True, False])
def test_content_is_on_the_disk_before_the_file_is_replaced(
    key: Path, monkeypatch: Patch, can_sync_directories: bool
) -> None:
    steps: list[object] = []

    def watched_fsync(descriptor: int) -> None:
        is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        steps.append("directory" if is_folder else os.fstat(descriptor).st_size)
        if is_folder and not can_sync_directories:
            failing(errno.EINVAL)()

    monkeypatch.setattr(os, "fsync", watched_fsync)
    monkeypatch.setattr(os, "replace", lambda source, path: steps.append("rename") or os.rename(source, path))
    replace_target(key, b"new")
    assert steps == [3, "rename", "directory"]
    assert key.read_bytes() == b"new"


@pytest.mark.parametrize(
    "names, is_copied", [(None, True), (["security.selinux"], True), ([atomic_file.ACCESS_LIST], False)]
)
def test_extended_attributes_that_cannot_be_copied(
    key: Path, monkeypatch: Patch, names: list[str] | None, is_copied: bool
) -> None:
    refuse = failing(errno.EPERM)
    monkeypatch.setattr(os, "listxattr", lambda *args, **kwargs: refuse() if names is None else names)
    monkeypatch.setattr(os, "getxattr", lambda *args, **kwargs: b"")
    monkeypatch.setattr(os, "setxattr", refuse)
    with atomic_file.temporary_file(str(key.with_name("g")), ".p-") as temporary:
        with nullcontext() if is_copied else pytest.raises(PermissionError):
            atomic_file.copy_attributes(str(key), temporary.file.fileno())
        assert mode_of(temporary.path) == (0o640 if is_copied else 0o600)


def test_short_writes_are_continued(key: Path) -> None:
    with atomic_file.temporary_file(str(key), ".p-") as temporary:

        class OneByteAtATime:
            fileno = temporary.file.fileno

            def write(self, content: bytes) -> int:
                return temporary.file.write(content[:1])

        temporary._replace(file=OneByteAtATime()).replace_target(b"content")  # type: ignore[arg-type]
    assert key.read_bytes() == b"content"


@pytest.mark.parametrize("unsafe_writes", [False, True])
@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_failed_write_keeps_the_old_content(key: Path, monkeypatch: Patch, step: str, unsafe_writes: bool) -> None:
    monkeypatch.setattr(os, step, no_space)
    with pytest.raises(OSError, match="No space left"):
        replace_target(key, b"new", unsafe_writes)
    assert (key.read_bytes(), os.listdir(key.parent)) == (b"secret\n", ["key"])


def test_temporary_file_that_cannot_be_removed_is_emptied(tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr(os, "replace", no_space)
    monkeypatch.setattr(os, "unlink", no_space)
    with pytest.raises(OSError, match="No space left"):
        replace_target(tmp_path / "f", b"secret")
    (left,) = tmp_path.iterdir()
    assert left.read_bytes() == b""


# A rename that was done although it reports an error


@pytest.fixture(params=[errno.EIO, errno.ENOENT, errno.EBUSY], ids=errno.errorcode.get)
def reported(request: pytest.FixtureRequest, monkeypatch: Patch) -> None:
    """As NFS clients report, when they have sent a request again whose response was lost.

    https://github.com/hpcc-systems/HPCC-Platform/pull/18352
    """

    def replace_and_fail(source: str, path: str) -> None:
        os.rename(source, path)
        failing(request.param)()

    monkeypatch.setattr(os, "replace", replace_and_fail)


@pytest.mark.usefixtures("reported")
@pytest.mark.parametrize("unsafe_writes", [False, True])
def test_the_inode_says_whether_the_file_was_replaced(key: Path, monkeypatch: Patch, unsafe_writes: bool) -> None:
    synced: list[bool] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(stat.S_ISDIR(os.fstat(descriptor).st_mode)))
    replace_target(key, b"new", unsafe_writes)
    assert (key.read_bytes(), synced, os.listdir(key.parent)) == (b"new", [False, True], ["key"])


@pytest.mark.usefixtures("reported")
def test_a_file_that_may_have_been_replaced_is_not_emptied(key: Path, monkeypatch: Patch) -> None:
    with atomic_file.temporary_file(str(key), ".p-") as temporary:
        with monkeypatch.context() as patch, pytest.raises(OSError, match="Input/output error"):
            patch.setattr(os, "lstat", failing(errno.EIO))
            temporary.replace_target(b"new")
    assert key.read_bytes() == b"new"


def test_a_mounted_file_is_overwritten_only_with_unsafe_writes(key: Path, monkeypatch: Patch) -> None:
    """A process that is killed at any moment leaves the old secret or the new one, and no part of one."""
    monkeypatch.setattr(os, "replace", failing(errno.EBUSY))
    with pytest.raises(OSError, match="busy"):
        replace_target(key, b"new")
    seen: list[bytes] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: seen.append(key.read_bytes()))
    replace_target(key, b"new", unsafe_writes=True)
    assert [content.strip() for content in seen[:2]] == [b"secret", b"new"]
    # The mode is that of the temporary file.
    assert (key.read_bytes(), mode_of(key), os.listdir(key.parent)) == (b"new", 0o600, ["key"])


def test_only_temporary_files_with_the_prefix_are_removed(tmp_path: Path) -> None:
    directory = tmp_path / "[f]"
    directory.mkdir()
    kept = {"f", ".p*-abcdefghi.tmp", ".p*-abcdefgh", ".pp-abcdefgh.tmp", ".p*-12345678.tmp"}
    (directory / ".p*-12345678.tmp").mkdir()
    for name in (*kept, ".p*-abcdefgh.tmp"):
        (directory / name).exists() or (directory / name).touch()
    atomic_file.remove_temporary_files(str(directory), ".p*-")
    assert set(os.listdir(directory)) == kept


def test_a_device_is_not_opened() -> None:
    with pytest.raises(OSError, match="it is a device"):
        atomic_file.open_regular_file("/dev/null")


def test_links_are_resolved_in_folders_only(tmp_path: Path, monkeypatch: Patch) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "link").symlink_to("a/b")
    (tmp_path / "a" / "f").symlink_to("b")
    monkeypatch.chdir(tmp_path)
    real = os.path.realpath(tmp_path)
    # The last one as the system resolves it, unlike os.path.abspath().
    resolved = {"f": f"{real}/f", "link/f": f"{real}/a/b/f", "link/../f": f"{real}/a/f"}
    assert {path: atomic_file.resolve_directory(path) for path in resolved} == resolved
