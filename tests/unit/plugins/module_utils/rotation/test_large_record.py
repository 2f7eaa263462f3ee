# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Records of many consumers, and records that are too large."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import InvalidOption, SecretFileError
from ansible_collections.clouddb.control.plugins.module_utils._rotation import plan as rotation_module
from ansible_collections.clouddb.control.plugins.module_utils._rotation import record as record_module
from ansible_collections.clouddb.control.plugins.module_utils._rotation.record import (
    DEPLOYED,
    KnownKey,
    Record,
    checksum,
    fits_record,
    keys_as_json,
    read_record,
    record_file,
    write_record,
)
from ansible_collections.clouddb.control.plugins.modules import api_key_deployment
from ansible_collections.clouddb.control.tests.unit.plugins.module_utils.rotation.rotations import (
    Keys,
    inspected,
    refusal,
    run,
)
from ansible_collections.clouddb.control.tests.unit.support.simulated_account import SimulatedAccount

HOSTS = [f"host{number:03}.region.example.com" for number in range(900)]


def deployment(account: SimulatedAccount, folder: Path, step: str, **options: Any) -> Any:
    params = {
        "step": step,
        "consumer": HOSTS[0],
        "run": "run",
        "variables": {},
        "dest": str(folder / "key"),
        "record": str(folder / "record"),
        "key": None,
        "key_id": None,
        "consumers": HOSTS,
        "older_keys": {},
        "fingerprint": None,
        **options,
    }
    return api_key_deployment.run(params, account.client(), False, lambda path: False)


def test_record_of_many_consumers(account: SimulatedAccount, tmp_path: Path) -> None:
    older = keys_as_json({number: KnownKey(HOSTS, checksum("")) for number in range(1000, 1003)})
    fingerprint = deployment(account, tmp_path, "inspect")["evidence"]["fingerprint"]
    key_id, secret = account.create("deploy")
    key = {"key": secret, "key_id": key_id}
    deployment(account, tmp_path, "deploy", **key, fingerprint=fingerprint, older_keys=older)
    # All keys share one list of the names.
    assert 1 < os.stat(tmp_path / "record").st_size / len(json.dumps(HOSTS)) < 1.5
    assert deployment(account, tmp_path, "confirm", **key)["evidence"]["state"] == DEPLOYED
    known_keys = deployment(account, tmp_path, "read_record")["known_keys"]
    assert known_keys["lists"] == [HOSTS] and str(key_id) in known_keys["keys"]


def test_record_that_could_not_be_read_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, record = record_file(str(tmp_path / "record")), Record(1, None, DEPLOYED, None, None, {})
    write_record(file, record)
    larger = record._replace(keys={1: KnownKey(HOSTS, "")})
    monkeypatch.setattr(record_module, "MAX_RECORD_SIZE", len(larger.as_text()) - 1)
    with pytest.raises(SecretFileError) as error:
        write_record(file, larger)
    assert str(error.value) == (
        f"record: The record in {file.path} would have more than {len(larger.as_text()) - 1} bytes, so it was not written. "
        "Rotate the key for fewer hosts, with names of their own for the keys of the others."
    )
    assert read_record(file) == record
    monkeypatch.setattr(record_module, "MAX_RECORD_SIZE", len(larger.as_text()))
    write_record(file, larger)
    assert read_record(file) == larger


def test_message_about_a_file_that_is_too_large_for_a_record(tmp_path: Path) -> None:
    file = record_file(str(tmp_path / "record"))
    (tmp_path / "record").touch(0o600)
    os.truncate(tmp_path / "record", 16 * 2**20 + 1)
    with pytest.raises(InvalidOption) as refused:
        file.check()
    with pytest.raises(SecretFileError) as unreadable:
        read_record(file)
    assert str(refused.value) == str(unreadable.value)
    assert refused.value.details == {"option": "record"}


def test_rotation_with_records_that_could_not_be_read(keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    account, ids = keys
    monkeypatch.setattr(rotation_module, "fits_record", lambda known: len(known) <= len(ids))
    error = refusal(account, "plan", *inspected(account, ids[-1]))
    assert str(error) == (
        "The records of 2 consumers would have more than 16777216 bytes, so they could not be read. No key was created or "
        "revoked. Divide the consumers into groups with a play and a value of api_key_rotation_name each."
    )
    monkeypatch.undo()
    assert run(account, "plan", *inspected(account, ids[-1]))["reason"] == ""


def test_which_records_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {1: KnownKey(HOSTS, checksum(""))}
    size = len(Record(0, None, "deploying", None, None, known).as_text()) + 4096
    for limit, fits in ((size, True), (size - 1, False)):
        monkeypatch.setattr(record_module, "MAX_RECORD_SIZE", limit)
        assert fits_record(known) is fits
