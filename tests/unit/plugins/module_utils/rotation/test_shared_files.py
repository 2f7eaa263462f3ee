# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts that share a file are recognized before a key is created."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._files import secret_file
from ansible_collections.clouddb.control.plugins.module_utils._files.secret_file import SecretFile
from ansible_collections.clouddb.control.plugins.module_utils._rotation.deployment import Consumer, inspect
from ansible_collections.clouddb.control.plugins.module_utils._rotation.evidence import Run
from ansible_collections.clouddb.control.tests.unit.plugins.module_utils.rotation.rotations import (
    Keys,
    evidence,
    refusal,
    run,
)
from ansible_collections.clouddb.control.tests.unit.support.simulated_account import SimulatedAccount


@pytest.fixture
def boot_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file with the identity of the machine."""
    file = tmp_path / "boot_id"
    file.write_text("one\n", encoding="ascii")
    monkeypatch.setattr(secret_file, "BOOT_ID", str(file))
    return file


def place(path: Path) -> str | None:
    return SecretFile(str(path), lambda path: False).place()


def test_place_is_that_of_the_file(tmp_path: Path, boot_id: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder")
    found = place(tmp_path / "folder" / "key")
    assert found and len(found) == 32
    assert place(tmp_path / "link" / "key") == found
    (tmp_path / "folder" / "key").touch()
    assert place(tmp_path / "folder" / "key") == found
    assert len({found, place(tmp_path / "folder" / "other"), place(tmp_path / "key")}) == 3
    boot_id.write_text("two\n", encoding="ascii")
    assert place(tmp_path / "folder" / "key") not in (None, found)


def test_place_on_an_unknown_machine(tmp_path: Path, boot_id: Path) -> None:
    boot_id.unlink()
    assert place(tmp_path / "key") is None
    boot_id.write_bytes(b"\xff")
    assert place(tmp_path / "key") is None


def test_evidence_has_the_places_of_all_files(account: SimulatedAccount, tmp_path: Path, boot_id: Path) -> None:
    files = [SecretFile(str(tmp_path / name), lambda path: False) for name in ("key", "record")]
    consumer = Consumer("web1", Run("run", {}), *files)
    assert inspect(account.client(), consumer).places == [place(tmp_path / "key"), place(tmp_path / "record")]
    assert inspect(account.client(), consumer._replace(record=None)).places == [place(tmp_path / "key")]
    boot_id.unlink()
    assert inspect(account.client(), consumer).places == []


def test_hosts_with_the_same_file_are_refused(keys: Keys) -> None:
    account, ids = keys
    found = [
        evidence(account, name, ids[-1], step="inspect", places=places)
        for name, places in (("web1", ["a", "b"]), ("web2", ["c", "b"]), ("web3", ["a", "d"]), ("web4", ["e", "e"]))
    ]
    error = refusal(account, "plan", *found)
    assert error.details == {"consumers": ["web1", "web2", "web3"]}
    separate = [one._replace(places=[one.consumer]) for one in found[:2]]
    assert run(account, "plan", *separate)["reason"] == ""
