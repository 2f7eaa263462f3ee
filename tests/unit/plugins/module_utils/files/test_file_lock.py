# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lock is held by one process of this user at a time, and its file exists only meanwhile."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from io import FileIO
from pathlib import Path

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._clock import SYSTEM_CLOCK, Deadline
from ansible_collections.clouddb.control.plugins.module_utils._files import file_lock
from ansible_collections.clouddb.control.plugins.module_utils._files.file_lock import POLL_INTERVAL, exclusive_lock
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import FakeClock
from ansible_collections.clouddb.control.tests.unit.support.special_files import special_files

OTHER_USER = 65534


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lock"


@contextmanager
def held_elsewhere(path: Path) -> Iterator[None]:
    """Another process of this user holds the lock: an open file of its own has a lock of its own."""
    path.touch(mode=0o600)
    with path.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def deadline(seconds: float = 10.0, clock: FakeClock | None = None) -> Deadline:
    return Deadline.after((clock or FakeClock()).clock, seconds)


def test_file_exists_while_the_lock_is_held(path: Path) -> None:
    for _run in range(2):
        with exclusive_lock(str(path), deadline()) as has_locks:
            assert has_locks
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert not path.exists()


def test_file_is_removed_after_an_error(path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), exclusive_lock(str(path), deadline()):
        raise KeyboardInterrupt
    assert not path.exists()


def test_file_that_cannot_be_removed_is_no_error(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: str) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    with exclusive_lock(str(path), deadline()):
        monkeypatch.setattr(os, "unlink", refused)
    monkeypatch.undo()
    # The next one takes it over.
    with exclusive_lock(str(path), deadline()):
        pass
    assert not path.exists()


def test_file_of_a_killed_process_is_reused(path: Path) -> None:
    path.touch(mode=0o600)
    with exclusive_lock(str(path), deadline()):
        assert path.exists()
    assert not path.exists()


def test_wait_ends_at_the_deadline(path: Path) -> None:
    clock = FakeClock()
    with held_elsewhere(path):
        with pytest.raises(TimeoutError) as error, exclusive_lock(str(path), deadline(5.0, clock)):
            pytest.fail("the lock is held twice")
        # Whoever has not got the lock does not remove the file.
        assert path.exists()
    assert (error.value.errno, error.value.strerror) == (errno.ETIMEDOUT, "another process holds it")
    assert clock.elapsed == pytest.approx(5.0, abs=2 * POLL_INTERVAL)
    assert pytest.approx(0.1) == POLL_INTERVAL


def test_wait_ends_when_the_lock_is_released(path: Path) -> None:
    holder = exclusive_lock(str(path), deadline())
    holder.__enter__()
    clock = FakeClock(on_sleep=lambda _seconds: holder.__exit__(None, None, None))
    with exclusive_lock(str(path), deadline(5.0, clock)):
        # The waiting process has locked a file that was removed meanwhile, and has created another.
        assert path.exists()
    assert len(clock.pauses) == 1
    assert not path.exists()


def test_one_at_a_time(path: Path) -> None:
    inside = threading.Lock()

    def run(_number: int) -> None:
        for _turn in range(25):
            with exclusive_lock(str(path), Deadline.after(SYSTEM_CLOCK._replace(sleep=lambda _seconds: None), 60.0)):
                assert inside.acquire(blocking=False)
                inside.release()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(run, range(4)))
    assert not path.exists()


@special_files
def test_other_files_are_refused_and_kept(path: Path, create: Callable[[Path], object], description: str) -> None:
    create(path)
    with pytest.raises(OSError, match=description), exclusive_lock(str(path), deadline()):
        pytest.fail("it was locked")
    assert os.path.lexists(path)


@pytest.mark.parametrize("mode", [0o604, 0o620, 0o666], ids=oct)
def test_file_that_others_can_open_is_refused(path: Path, mode: int) -> None:
    path.touch()
    path.chmod(mode)
    with (
        pytest.raises(PermissionError, match=r"\[Errno 1\] .* other users can open it"),
        exclusive_lock(str(path), deadline()),
    ):
        pytest.fail("it was locked")
    assert path.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_file_of_another_user_is_refused(path: Path) -> None:
    path.touch(mode=0o600)
    os.chown(path, OTHER_USER, OTHER_USER)
    with pytest.raises(PermissionError, match=f"it belongs to uid {OTHER_USER}"), exclusive_lock(str(path), deadline()):
        pytest.fail("it was locked")
    assert path.exists()


@pytest.mark.parametrize(("uid", "mode"), [(0, 0o600), (0, 0o601), (OTHER_USER, 0)])
def test_file_that_cannot_be_opened_is_refused_at_once(
    path: Path, monkeypatch: pytest.MonkeyPatch, uid: int, mode: int
) -> None:
    """Unless it is one that this user is creating."""
    path.touch()
    path.chmod(mode)
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + uid)

    def refused(path: str, flags: int) -> FileIO:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(file_lock, "open_regular_file", refused)
    clock = FakeClock()
    with pytest.raises(PermissionError), exclusive_lock(str(path), deadline(5.0, clock)):
        pytest.fail("it was locked")
    assert clock.pauses == []


def test_umask_does_not_restrict_the_owner(path: Path) -> None:
    before = os.umask(0o777)
    try:
        with exclusive_lock(str(path), deadline()):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
    finally:
        os.umask(before)


@pytest.mark.parametrize("is_completed", [True, False])
def test_file_that_is_being_created_is_waited_for(
    path: Path, monkeypatch: pytest.MonkeyPatch, is_completed: bool
) -> None:
    """Another task has created it, with a umask that removes all permissions."""
    path.touch()
    path.chmod(0)
    opened = file_lock.open_regular_file

    def as_user(path: str, flags: int) -> FileIO:
        if not os.stat(path).st_mode & 0o600:
            raise PermissionError(errno.EACCES, "Permission denied")
        return opened(path, flags)

    monkeypatch.setattr(file_lock, "open_regular_file", as_user)
    clock = FakeClock(on_sleep=lambda _seconds: path.chmod(0o600) if is_completed else None)
    if is_completed:
        with exclusive_lock(str(path), deadline(5.0, clock)):
            assert len(clock.pauses) == 1
    else:
        with pytest.raises(PermissionError), exclusive_lock(str(path), deadline(5.0, clock)):
            pytest.fail("it was locked")


def test_file_system_without_locks(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unsupported(*args: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", unsupported)
    with exclusive_lock(str(path), deadline()) as has_locks:
        assert not has_locks
    assert not path.exists()


def test_other_errors_of_the_lock_are_raised(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(fcntl, "flock", broken)
    with pytest.raises(OSError, match="Input/output error"), exclusive_lock(str(path), deadline()):
        pytest.fail("it was locked")
