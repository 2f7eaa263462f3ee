# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A full disk is noticed before a key is created, and a rollback needs no space where nothing was written."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from io import FileIO
from pathlib import Path

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import SecretFileError
from ansible_collections.clouddb.control.plugins.module_utils._files import atomic_file
from ansible_collections.clouddb.control.plugins.module_utils._files.secret_file import SecretFile
from ansible_collections.clouddb.control.plugins.module_utils._keys.ensure import present
from ansible_collections.clouddb.control.plugins.module_utils._rotation.deployment import (
    Consumer,
    NewKey,
    deploy,
    inspect,
    roll_back,
)
from ansible_collections.clouddb.control.plugins.module_utils._rotation.evidence import Run
from ansible_collections.clouddb.control.plugins.module_utils._rotation.record import KnownKey
from ansible_collections.clouddb.control.tests.unit.support.simulated_account import SimulatedAccount

NO_SPACE = "No space left on device"
Fill = Callable[[int], None]


@pytest.fixture
def fill(monkeypatch: pytest.MonkeyPatch) -> Fill:
    """Leaves this number of bytes on the disk."""
    write = atomic_file._write

    def leave(free: int) -> None:
        def write_if_free(file: FileIO, content: bytes) -> None:
            write(file, content[:free])
            if len(content) > free:
                raise OSError(errno.ENOSPC, NO_SPACE)

        monkeypatch.setattr(atomic_file, "_write", write_if_free)

    return leave


@pytest.fixture
def consumer(tmp_path: Path) -> Consumer:
    file, record = SecretFile(str(tmp_path / "key"), lambda path: False), tmp_path / ".key.rotation"
    return Consumer("web1", Run("run", {}), file, SecretFile(str(record), lambda path: False, option="record"))


@pytest.mark.parametrize(
    "free, problem", [(4095, "dest: .*/key"), (16383, "record: .*/.key.rotation"), (16384, "")], ids=str
)
def test_inspection(
    account: SimulatedAccount, tmp_path: Path, consumer: Consumer, fill: Fill, free: int, problem: str
) -> None:
    fill(free)
    if problem:
        with pytest.raises(SecretFileError, match=f"^{problem} can't be written: {NO_SPACE}.$"):
            inspect(account.client(), consumer)
    else:
        inspect(account.client(), consumer)
    assert os.listdir(tmp_path) == []


def test_inspection_of_a_large_record(account: SimulatedAccount, consumer: Consumer, fill: Fill) -> None:
    key_id, secret = account.create("deploy")
    key = NewKey(key_id, secret, ["web1"], {1: KnownKey([f"host{number}" for number in range(1000)], "")})
    deploy(account.client(), consumer, key, inspect(account.client(), consumer).fingerprint)
    assert consumer.record
    size = 2 * os.stat(consumer.record.path).st_size
    fill(size - 1)
    with pytest.raises(SecretFileError, match=f"^record: .* can't be written: {NO_SPACE}"):
        inspect(account.client(), consumer)
    fill(size)
    inspect(account.client(), consumer)


def test_inspection_in_check_mode(account: SimulatedAccount, consumer: Consumer, fill: Fill) -> None:
    fill(0)
    inspect(account.client(), consumer._replace(check_mode=True))


def test_no_key_is_created(account: SimulatedAccount, tmp_path: Path, fill: Fill) -> None:
    before = dict(account.keys)
    fill(4095)
    with pytest.raises(SecretFileError, match=f"^dest: {tmp_path}/key can't be written: {NO_SPACE}.$"):
        present(account.client(), "deploy", SecretFile(str(tmp_path / "key"), lambda path: False), "never", False)
    assert account.keys.keys() == before.keys()
    assert account._ids == len(before)
    assert os.listdir(tmp_path) == []


def deployment_without_space(account: SimulatedAccount, consumer: Consumer, fill: Fill) -> tuple[NewKey, str | None]:
    """The key that could not be deployed, and the fingerprint of before."""
    fingerprint = inspect(account.client(), consumer).fingerprint
    key_id, secret = account.create("deploy")
    key = NewKey(key_id, secret, ["web1"], {})
    fill(0)
    with pytest.raises(SecretFileError, match=NO_SPACE):
        deploy(account.client(), consumer, key, fingerprint)
    return key, fingerprint


def test_rollback_where_nothing_was_written(
    account: SimulatedAccount, tmp_path: Path, consumer: Consumer, fill: Fill
) -> None:
    client = account.client()
    key, fingerprint = deployment_without_space(account, consumer, fill)
    changed, evidence = roll_back(client, consumer, key, None, fingerprint)
    assert (changed, evidence.withdrawn, evidence.sha256) == (False, key.id, None)
    assert os.listdir(tmp_path) == []
    # Without the fingerprint, a deployment that has not ended must be prevented.
    with pytest.raises(SecretFileError, match=NO_SPACE):
        roll_back(client, consumer, key, None)


def test_rollback_where_nothing_was_written_shows_the_older_key(
    account: SimulatedAccount, tmp_path: Path, consumer: Consumer, fill: Fill
) -> None:
    client = account.client()
    (tmp_path / "key").write_text(account.create("deploy")[1], encoding="utf-8")
    key, fingerprint = deployment_without_space(account, consumer, fill)
    changed, evidence = roll_back(client, consumer, key, None, fingerprint)
    assert (changed, evidence.step, evidence.accepted, evidence.withdrawn) == (False, "roll_back", True, key.id)


def test_rollback_of_what_was_written_needs_space(account: SimulatedAccount, consumer: Consumer, fill: Fill) -> None:
    client = account.client()
    fingerprint = inspect(client, consumer).fingerprint
    key_id, secret = account.create("deploy")
    key = NewKey(key_id, secret, ["web1"], {})
    deploy(client, consumer, key, fingerprint)
    fill(0)
    with pytest.raises(SecretFileError, match=NO_SPACE):
        roll_back(client, consumer, key, None, fingerprint)
