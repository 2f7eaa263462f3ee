# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of a deployment."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import SecretFileError
from ansible_collections.clouddb.control.plugins.module_utils._files.secret_file import SecretFile
from ansible_collections.clouddb.control.plugins.module_utils._rotation.record import (
    KnownKey,
    Previous,
    Record,
    read_record,
)

PREVIOUS = Previous("a" * 64, {"uid": 1000, "gid": 1001, "mode": 0o640}, 6, "committed", "2026-11-20T08:00:00Z")
KEYS = {6: KnownKey(["web1", "web2"], "a" * 64), 7: KnownKey(["web1", "web2"], "b" * 64, True)}
RECORD = Record(7, "b" * 64, "deployed", "2026-11-21T08:00:00Z", PREVIOUS, KEYS, 5, "web1", "/etc/myapp/key")
# Which later versions of the collection must read as well.
CONTENT: dict[str, Any] = {
    "key_id": 7,
    "sha256": "b" * 64,
    "state": "deployed",
    "deployed_at": "2026-11-21T08:00:00Z",
    "previous": {
        "sha256": "a" * 64,
        "attributes": {"uid": 1000, "gid": 1001, "mode": 0o640},
        "key_id": 6,
        "state": "committed",
        "deployed_at": "2026-11-20T08:00:00Z",
    },
    "keys": {
        "6": {"hosts": ["web1", "web2"], "sha256": "a" * 64, "confirmed": False},
        "7": {"hosts": ["web1", "web2"], "sha256": "b" * 64, "confirmed": True},
    },
    "rolled_back": 5,
    "host": "web1",
    "path": "/etc/myapp/key",
}


@pytest.fixture
def file(tmp_path: Path) -> SecretFile:
    return SecretFile(str(tmp_path / "record"), lambda path: False, option="record")


def test_text_of_a_record(file: SecretFile) -> None:
    assert json.loads(RECORD.as_text()) == CONTENT
    Path(file.path).write_text(json.dumps(CONTENT), encoding="utf-8")
    assert read_record(file) == RECORD


@pytest.mark.parametrize("state, is_complete", [("committed", True), ("deployed", True), ("deploying", False)])
def test_record_of_version_1_1_0(file: SecretFile, state: str, is_complete: bool) -> None:
    """It names neither its host nor its file, and only of its latest key, it shows whether the deployment was completed."""
    written = {**copy.deepcopy(CONTENT), "state": state}
    written["withdrawn"] = written.pop("rolled_back")
    for name in ("host", "path"):
        del written[name]
    for key in written["keys"].values():
        key["consumers"] = key.pop("hosts")
        del key["confirmed"]
    Path(file.path).write_text(json.dumps(written), encoding="utf-8")
    keys = {**KEYS, 7: KEYS[7]._replace(confirmed=is_complete)}
    assert read_record(file) == RECORD._replace(host=None, path=None, state=state, keys=keys)


@pytest.mark.parametrize(
    "changed",
    [
        *({field: ...} for field in ("key_id", "sha256", "state", "deployed_at", "previous", "keys", "rolled_back")),
        {"key_id": "seven"},
        {"keys": {"seven": {"hosts": [], "sha256": ""}}},
        {"keys": {"7": {"hosts": []}}},
        {"keys": {"7": {"sha256": ""}}},
        {"keys": []},
        {"previous": {"sha256": None}},
    ],
)
def test_what_is_not_a_record(file: SecretFile, changed: dict[str, Any]) -> None:
    written = {name: value for name, value in {**CONTENT, **changed}.items() if value is not ...}
    Path(file.path).write_text(json.dumps(written), encoding="utf-8")
    with pytest.raises(SecretFileError):
        read_record(file)


@pytest.mark.parametrize("content", [None, ""])
def test_no_record(file: SecretFile, content: str | None) -> None:
    if content is not None:
        Path(file.path).write_text(content, encoding="utf-8")
    assert read_record(file) is None
