# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Deployment of a key to one host, step by step, and its record."""

from __future__ import annotations

import copy
import json
import os
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import (
    ClouddbError,
    InvalidOption,
    SecretFileError,
)
from ansible_collections.clouddb.control.plugins.module_utils._files.secret_file import SecretFile
from ansible_collections.clouddb.control.plugins.module_utils._keys.scope import ACCOUNT
from ansible_collections.clouddb.control.plugins.module_utils._rotation import deployment
from ansible_collections.clouddb.control.plugins.module_utils._rotation import record as records
from ansible_collections.clouddb.control.plugins.module_utils._rotation.confirmation import Confirmation, Run
from ansible_collections.clouddb.control.plugins.module_utils._rotation.deployment import Host, NewKey
from ansible_collections.clouddb.control.plugins.module_utils._rotation.record import KnownKey, checksum, read_record
from ansible_collections.clouddb.control.tests.unit.support.api_key_task import mode_of
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import EPOCH
from ansible_collections.clouddb.control.tests.unit.support.simulated_account import SimulatedAccount


class Deployment:
    """A host with a file and a record in a folder, and the steps of one run on it."""

    old: NewKey

    def __init__(
        self, account: SimulatedAccount, folder: Path, run: str = "run", name: str = "web1", check: bool = False
    ):
        self.account, self.name = account, name
        self.path, self.record = folder / "key", folder / ".key.rotation"
        self.file = SecretFile(str(self.path), lambda path: False, check_mode=check)
        record = SecretFile(str(self.record), lambda path: False, option="record", check_mode=check)
        self.host = Host(name, Run(run, {}), self.file, record, ACCOUNT)
        self.client = account.client("unused")
        self.inspected = self.inspect()
        self.previous: str | None = None

    def again(self, **changed: Any) -> Deployment:
        """The same host in another run."""
        return Deployment(self.account, self.path.parent, **{"run": "another run", **changed})

    def inspect(self, **changed: Any) -> Confirmation:
        return deployment.inspect(self.client, self.host._replace(**changed))[1]

    def confirm(self, key: NewKey) -> Confirmation:
        return deployment.confirm(self.client, self.host, key)

    def commit(self, key: NewKey) -> Confirmation:
        return deployment.commit(self.client, self.host, key.id, key)

    def create(self, *others: str) -> NewKey:
        key_id, secret = self.account.create("deploy-20261121T091507Z")
        return NewKey(key_id, secret, [self.name, *others], {})

    def deploy(self, key: NewKey) -> dict[str, Any]:
        result = deployment.deploy(self.client, self.host, key, self.inspected.fingerprint)
        self.previous = result["previous"]
        return result

    def deploy_new(self, *others: str) -> NewKey:
        key = self.create(*others)
        self.deploy(key)
        return key

    def roll_back(self, key: NewKey) -> Any:
        return deployment.roll_back(self.client, self.host, key, self.previous)

    def rotate(self, *others: str) -> NewKey:
        """Deploy a new key, confirm it and commit to it."""
        key = self.deploy_new(*others)
        self.confirm(key)
        self.commit(key)
        return key

    def without(self, *files: str) -> Deployment:
        """This host, inspected without a file or a record."""
        without: dict[str, Any] = dict.fromkeys(files)
        self.host = self.host._replace(**without)
        self.inspected = self.inspect()
        return self

    @property
    def secret(self) -> str | None:
        return self.path.read_text(encoding="utf-8") if self.path.exists() else None


@pytest.fixture
def host(tmp_path: Path) -> Deployment:
    return Deployment(SimulatedAccount(), tmp_path)


@pytest.fixture
def rotated(host: Deployment) -> Deployment:
    """A host in a second run; the first one has deployed its C(old) key."""
    old = host.rotate()
    rotated = host.again(run="run 2")
    rotated.old = old
    return rotated


@pytest.mark.parametrize("content", ["garbage", "", None])
def test_confirmation_shows_an_edited_file(rotated: Deployment, content: str | None) -> None:
    rotated.path.unlink()
    if content is not None:
        rotated.path.write_text(content, encoding="utf-8")
    confirmation = rotated.inspect()
    assert (confirmation.key_id, confirmation.accepted) == (None, False if content else None)
    assert not confirmation.has_deployed(rotated.old.id)


@pytest.mark.parametrize("is_by_hand", [True, False])
def test_deploys_only_over_what_was_inspected(rotated: Deployment, is_by_hand: bool) -> None:
    rotated.path.write_text("edited", encoding="utf-8") if is_by_hand else rotated.again().rotate()
    before = rotated.secret
    with pytest.raises(ClouddbError, match="has changed"):
        rotated.deploy(rotated.create())
    assert rotated.secret == before


def test_does_not_deploy_a_key_that_the_service_rejects(rotated: Deployment) -> None:
    new = rotated.create()
    del rotated.account.keys[new.id]
    with pytest.raises(ClouddbError, match="does not accept"):
        rotated.deploy(new)
    assert (rotated.secret, rotated.inspect().key_id) == (rotated.old.secret, rotated.old.id)
    assert rotated.account.clock.pauses == [1.0] * 4


def test_a_task_that_runs_again_after_a_lost_connection_changes_nothing(host: Deployment) -> None:
    key = host.deploy_new()
    assert host.deploy(key) == {"changed": False, "previous": None}
    assert host.secret == key.secret


def test_two_names_that_lead_to_one_host_are_refused(host: Deployment) -> None:
    same = host.again(run="run", name="web2")
    key = host.deploy_new("web2")
    for step in (lambda: same.deploy(key), lambda: same.confirm(key)):
        with pytest.raises(ClouddbError):
            step()
    host.confirm(key)
    assert [each.inspect().key_id for each in (host, same)] == [key.id, None]
    assert same.roll_back(key)[0] is False
    assert (host.secret, host.roll_back(key)[0], host.secret) == (key.secret, True, None)


@pytest.mark.parametrize("error", [InvalidOption("mode", "no"), SecretFileError("owner")])
def test_attributes_that_cannot_be_set_are_noticed_at_the_inspection(host: Deployment, error: ClouddbError) -> None:
    def refuse(path: str) -> bool:
        raise error

    host.rotate()
    before = sorted(host.path.parent.iterdir())
    with pytest.raises(type(error)):
        host.inspect(file=host.file._replace(set_attributes=refuse))
    assert sorted(host.path.parent.iterdir()) == before


def test_a_file_with_several_hard_links_is_refused_at_the_inspection(rotated: Deployment) -> None:
    """For example in a directory with another root: the other name would keep the old key."""
    os.link(rotated.path, rotated.path.with_name("other"))
    with pytest.raises(InvalidOption, match="key has 2 hard links"):
        rotated.inspect()
    assert rotated.secret == rotated.old.secret


def test_confirms_only_a_valid_key_that_the_file_holds(host: Deployment) -> None:
    key = host.deploy_new()
    del host.account.keys[key.id]
    with pytest.raises(ClouddbError, match=f"The service does not accept the new key {key.id} from web1"):
        host.confirm(key)
    host.path.write_text("edited-by-hand", encoding="utf-8")
    with pytest.raises(ClouddbError, match=f"web1 no longer holds the new key {key.id}"):
        host.confirm(key)


def test_commit_needs_a_confirmed_deployment(host: Deployment) -> None:
    key = host.deploy_new()
    assert host.commit(key).state != "committed"
    assert host.inspect().state != "committed"


def test_rollback_restores_file_and_record(rotated: Deployment) -> None:
    os.chmod(rotated.path, 0o640)
    new = rotated.deploy_new()
    rotated.confirm(new)
    is_restored, confirmation = rotated.roll_back(new)
    assert (is_restored, rotated.secret, mode_of(rotated.path)) == (True, rotated.old.secret, 0o640)
    assert (confirmation.key_id, confirmation.state, confirmation.rolled_back) == (rotated.old.id, "committed", new.id)
    assert confirmation.return_sha256 is None


def test_rollback_keeps_the_new_key_unless_the_previous_one_is_valid(rotated: Deployment) -> None:
    new = rotated.deploy_new()
    for previous in (rotated.create().secret, None):
        assert deployment.roll_back(rotated.client, rotated.host, new, previous)[0] is False
        assert rotated.secret == new.secret
    del rotated.account.keys[rotated.old.id]
    is_restored, found = rotated.roll_back(new)
    assert (is_restored, rotated.secret) == (False, new.secret)
    assert (found.sha256, found.rolled_back) == (checksum(new.secret), None)


@pytest.mark.parametrize("step", ["inspect", "deploy", "confirm", "commit", "roll_back"])
def test_no_step_changes_a_file_that_holds_more_than_a_key(rotated: Deployment, step: str) -> None:
    new = rotated.create()
    if step != "deploy":
        rotated.deploy(new)
    content = f"CLOUDDB_API_KEY={new.secret}\nOTHER=1\n"
    rotated.path.write_text(content, encoding="utf-8")
    with pytest.raises(SecretFileError, match="^dest: .*/key must hold a key and nothing else, but it assigns a value"):
        getattr(rotated, step)(*([] if step == "inspect" else [new]))
    assert rotated.secret == content


def test_rollback_keeps_a_key_to_which_another_run_has_returned(rotated: Deployment) -> None:
    new = rotated.deploy_new()
    other_run = rotated.again()
    other_run.roll_back(other_run.deploy_new())
    is_restored, confirmation = rotated.roll_back(new)
    assert (is_restored, rotated.secret, confirmation.sha256) == (False, new.secret, checksum(new.secret))


@pytest.mark.parametrize("has_file", [True, False])
def test_committed_key_is_not_rolled_back(host: Deployment, has_file: bool) -> None:
    new = (host if has_file else host.without("file")).rotate()
    is_restored, confirmation = host.roll_back(new)
    assert (is_restored, confirmation.key_id, confirmation.rolled_back) == (False, new.id, None)
    assert host.secret == (new.secret if has_file else None)


@pytest.mark.parametrize("has_key", [False, True])
def test_key_that_was_rolled_back_is_not_deployed(host: Deployment, has_key: bool) -> None:
    if has_key:
        host.rotate()
        host.inspected = host.inspect()
    key, before = host.create(), host.secret
    host.roll_back(key)
    with pytest.raises(ClouddbError, match="has changed"):
        host.deploy(key)
    assert host.secret == before


def test_interrupted_deployment_is_known_as_the_previous_key(rotated: Deployment) -> None:
    interrupt = mock.Mock(side_effect=KeyboardInterrupt)
    with mock.patch.object(Host, "write_secret", interrupt), pytest.raises(KeyboardInterrupt):
        rotated.deploy(rotated.create())
    assert rotated.secret == rotated.old.secret
    later = rotated.again()
    assert later.inspected.key_id is None
    new = later.deploy_new()
    _is_restored, confirmation = later.roll_back(new)
    assert (later.secret, confirmation.key_id) == (rotated.old.secret, rotated.old.id)


def test_each_host_records_which_older_keys_were_deployed_to_it(rotated: Deployment) -> None:
    others = [rotated.create() for _number in range(2)]
    older = {key.id: KnownKey(key.hosts, checksum(key.secret)) for key in (rotated.old, *others)}
    new = rotated.create()._replace(older_keys=older)
    rotated.deploy(new)
    known_keys = rotated.confirm(new).known_keys
    assert {key_id for key_id, key in known_keys.items() if key.confirmed} == {rotated.old.id, new.id}
    assert set(known_keys) == {*older, new.id}


def test_a_file_that_somebody_has_edited_is_not_rolled_back(rotated: Deployment) -> None:
    new = rotated.deploy_new()
    assert rotated.confirm(new).known_keys[new.id].confirmed
    rotated.path.write_text("edited-by-hand", encoding="utf-8")
    is_restored, confirmation = rotated.roll_back(new)
    assert (is_restored, rotated.secret) == (False, "edited-by-hand")
    assert (confirmation.known_keys[new.id].confirmed, confirmation.rolled_back) == (False, new.id)


@pytest.mark.parametrize("is_copied", [False, True])
def test_a_record_of_another_file_is_none(rotated: Deployment, is_copied: bool) -> None:
    """The file with the former path may still be read."""
    moved = rotated.path.with_name("new")
    if is_copied:
        moved.write_text(rotated.old.secret, encoding="utf-8")
    # Without a file, only the tasks are known.
    for file in (rotated.file._replace(path=str(moved)), None):
        confirmation = rotated.inspect(file=file)
        assert (confirmation.key_id, confirmation.state, confirmation.known_keys) == (None, None, {})


def test_a_record_of_version_1_1_0_is_about_any_file(rotated: Deployment) -> None:
    former = record_of(rotated)
    del former["path"], former["host"]
    rotated.record.write_text(json.dumps(former), encoding="utf-8")
    assert rotated.inspect().key_id == rotated.old.id


@pytest.mark.parametrize("content", ["[]", "[" * 60_000, "another secret"])
def test_file_that_is_no_record_is_kept(rotated: Deployment, content: str) -> None:
    rotated.record.write_text(content, encoding="utf-8")
    with pytest.raises(SecretFileError, match="is not the record of a deployment"):
        rotated.inspect()
    assert rotated.record.read_text(encoding="utf-8") == content


def test_record_of_another_user_is_refused(rotated: Deployment) -> None:
    if os.geteuid() == 0:
        os.chown(rotated.record, 65534, -1)
    else:
        rotated.record.chmod(0o622)
    with pytest.raises(SecretFileError, match="belongs to another user, or others may write to it"):
        rotated.inspect()


def test_record_needs_a_file_of_its_own(rotated: Deployment) -> None:
    with pytest.raises(InvalidOption, match="record: .* is the path of dest"):
        rotated.inspect(record=rotated.file._replace(option="record"))
    assert rotated.secret == rotated.old.secret


def test_without_a_file_the_run_that_deploys_confirms(host: Deployment) -> None:
    key = host.without("file", "record").create()
    assert (host.inspected.key_id, host.inspected.accepted) == (None, None)
    assert host.deploy(key) == {"changed": True, "previous": None}
    assert host.confirm(key).has_deployed(key.id)
    committed = host.commit(key)
    assert (committed.key_id, committed.accepted, committed.state) == (key.id, True, "committed")
    assert deployment.commit(host.client, host.host, key.id, None).key_id is None


def test_check_mode_writes_nothing(rotated: Deployment) -> None:
    checking = rotated.again(check=True)
    before = {path: path.read_bytes() for path in rotated.path.parent.iterdir()}
    new = checking.create()
    assert checking.deploy(new)["changed"]
    checking.roll_back(new)
    assert deployment.commit(checking.client, checking.host, rotated.old.id, None).state == "committed"
    assert {path: path.read_bytes() for path in rotated.path.parent.iterdir()} == before


def record_of(host: Deployment) -> Any:
    return json.loads(host.record.read_text(encoding="utf-8"))


def test_each_step_returns_what_the_host_holds(rotated: Deployment) -> None:
    new = rotated.deploy_new("web2")
    deployed_at = (EPOCH + timedelta(seconds=rotated.account.clock.elapsed + 0.001)).isoformat()
    confirmed = rotated.confirm(new)
    assert confirmed == Confirmation(
        host="web1",
        run="run 2",
        variables={},
        has_file=True,
        has_record=True,
        sha256=checksum(new.secret),
        accepted=True,
        checked_at=rotated.account.now(),
        key_id=new.id,
        state="deployed",
        deployed_at=deployed_at,
        return_sha256=checksum(rotated.old.secret),
        known_keys={new.id: KnownKey(["web1", "web2"], checksum(new.secret), True)},
        fingerprint=confirmed.fingerprint,
        rolled_back=None,
    )
    committed = rotated.commit(new)
    assert committed == confirmed._replace(state="committed", return_sha256=None, checked_at=rotated.account.now())
    assert len({found.fingerprint for found in (rotated.inspected, confirmed, rotated.inspect())}) == 3


def test_inspection_sets_the_attributes_of_the_file(rotated: Deployment) -> None:
    same = rotated.host._replace(file=rotated.file._replace(set_attributes=lambda path: path == str(rotated.path)))
    assert deployment.inspect(rotated.client, same)[0] is True
    assert deployment.inspect(rotated.client, rotated.host)[0] is False


def test_records_of_each_step(rotated: Deployment) -> None:
    before = record_of(rotated)
    old = {"key_id": rotated.old.id, "sha256": checksum(rotated.old.secret), "state": "committed"}
    assert {**before, **old, "previous": None, "host": "web1"} == before
    attributes = {"uid": os.geteuid(), "gid": os.getegid(), "mode": 0o600}
    new = rotated.deploy_new()
    assert record_of(rotated) == {
        "key_id": new.id,
        "sha256": checksum(new.secret),
        "state": "deploying",
        "deployed_at": None,
        "previous": {**old, "attributes": attributes, "deployed_at": before["deployed_at"]},
        "keys": {str(new.id): {"hosts": ["web1"], "sha256": checksum(new.secret), "confirmed": False}},
        "rolled_back": None,
        "host": "web1",
        "path": str(rotated.path),
    }
    deploying = record_of(rotated)
    confirmed = rotated.confirm(new)
    keys = {str(new.id): {**deploying["keys"][str(new.id)], "confirmed": True}}
    assert record_of(rotated) == {**deploying, "state": "deployed", "deployed_at": confirmed.deployed_at, "keys": keys}
    rotated.roll_back(new)
    assert record_of(rotated) == {**before, "keys": deploying["keys"], "rolled_back": new.id}


def test_record_of_a_rollback_to_a_secret_that_is_not_known(rotated: Deployment) -> None:
    rotated.record.unlink()
    later = rotated.again()
    new = later.deploy_new()
    later.confirm(new)
    later.roll_back(new)
    assert later.secret == rotated.old.secret
    record = record_of(later)
    expected = {"key_id": new.id, "state": "deploying", "previous": None, "rolled_back": new.id}
    assert {name: record[name] for name in expected} == expected


def test_record_without_a_file(host: Deployment) -> None:
    key = host.without("file").deploy_new()
    assert record_of(host)["sha256"] is None
    found = host.confirm(key)
    assert (found.has_file, found.has_record, found.sha256, found.has_deployed(key.id)) == (False, True, None, True)
    # Ansible may run the task again.
    for _attempt in range(2):
        is_restored, confirmation = host.roll_back(key)
        assert (is_restored, confirmation.rolled_back, confirmation.key_id) == (True, key.id, key.id)


@pytest.mark.parametrize("missing, locked", [([], ["key"]), (["file"], [".key.rotation"]), (["file", "record"], [])])
def test_what_is_locked(host: Deployment, monkeypatch: pytest.MonkeyPatch, missing: Any, locked: Any) -> None:
    held: list[str] = []
    host.without(*missing)
    monkeypatch.setattr(SecretFile, "held", lambda file: nullcontext(held.append(Path(file.path).name)))
    with host.host.held():
        assert held == locked


# The text of the record


NEWER = (7, "b" * 64, "deployed", "2026-11-21T08:00:00Z")
OLDER = ("a" * 64, {"uid": 1000, "gid": 1001, "mode": 0o640}, 6, "committed", "2026-11-20T08:00:00Z")
KEYS = {6: KnownKey(["web1", "web2"], "a" * 64), 7: KnownKey(["web1", "web2"], "b" * 64, True)}
RECORD = records.Record(*NEWER, records.Previous(*OLDER), KEYS, 5, "web1", "/etc/myapp/key")
# Which later versions of the collection must read as well.
CONTENT: dict[str, Any] = {
    **dict(zip(("key_id", "sha256", "state", "deployed_at"), NEWER)),
    "previous": dict(zip(("sha256", "attributes", "key_id", "state", "deployed_at"), OLDER)),
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
        *(
            {"keys": keys}
            for keys in ({"seven": {"hosts": [], "sha256": ""}}, {"7": {"hosts": []}}, {"7": {"sha256": ""}}, [])
        ),
        *({"key_id": "seven"}, {"state": "odd"}, {"previous": {"sha256": None}}),
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
