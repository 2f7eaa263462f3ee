# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""api_key creates exactly one key and keeps its secret: lost responses, many hosts at once, interrupted replacements."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import StatusError
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.module_utils._http.connection import Connection
from ansible_collections.clouddb.control.plugins.module_utils._keys.api import OrphanedKey
from ansible_collections.clouddb.control.tests.unit.support.api_key_task import (
    after,
    before,
    ids,
    one_key,
    task,
    two_keys,
    writes,
)
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import FakeClock
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox

REFUSED = [423, 429, 503]
AMBIGUOUS = [500, 502, 504]


@pytest.mark.parametrize("kind", ["lost_answer", "truncate", "malformed"])
def test_lost_response_is_not_retried_and_the_orphaned_key_is_named(
    sandbox: Sandbox, client: Client, kind: str
) -> None:
    sandbox.fault(kind, method="POST")
    with pytest.raises(OrphanedKey) as error:
        task(client, name="deploy")
    [orphan] = sandbox.keys("deploy")
    assert writes(sandbox) == ["POST /api_keys"]
    assert (
        f"Key {orphan['id']} is new, and nobody has its secret unless another host created it. "
        f"Revoke it with state=absent and id={orphan['id']}, then run the task again."
    ) in str(error.value)
    assert error.value.details["key_ids"] == [orphan["id"]]


def test_orphaned_key_and_the_key_of_another_host_are_both_named(
    sandbox: Sandbox, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    before(monkeypatch, client, "post", lambda: sandbox.api("POST", "/api_keys", {"key_name": "deploy"}))
    sandbox.fault("lost_answer", method="POST", skip=1)
    with pytest.raises(OrphanedKey) as error:
        task(client, name="deploy")
    theirs, ours = ids(sandbox.keys("deploy"))
    assert f"Keys {theirs} and {ours} are new" in str(error.value)
    assert "Revoke that one with state=absent and its id, then run the task again." in str(error.value)
    assert error.value.details["key_ids"] == [theirs, ours]


@one_key
def test_older_keys_are_not_named_as_orphaned(sandbox: Sandbox, client: Client) -> None:
    [old] = sandbox.keys("deploy")
    sandbox.fault("lost_answer", method="POST")
    with pytest.raises(OrphanedKey) as error:
        task(client, name="deploy", regenerate="always")
    orphans = [key for key in ids(sandbox.keys("deploy")) if key != old["id"]]
    assert error.value.details["key_ids"] == orphans
    assert writes(sandbox) == ["POST /api_keys"]


def test_lost_response_leaves_no_temporary_file(sandbox: Sandbox, client: Client, tmp_path: Path) -> None:
    sandbox.fault("lost_answer", method="POST")
    with pytest.raises(OrphanedKey):
        task(client, name="deploy", dest=tmp_path / "deploy.key")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "fault",
    [*({"kind": "status", "status": status} for status in AMBIGUOUS), {"kind": "html"}, {"kind": "reset"}],
    ids=[*map(str, AMBIGUOUS), "html", "reset"],
)
def test_ambiguous_error_is_not_retried(sandbox: Sandbox, client: Client, fault: dict[str, Any]) -> None:
    sandbox.fault(method="POST", **fault)
    with pytest.raises(OrphanedKey, match=r"lists no new key of that name\. Run the task again\.") as error:
        task(client, name="deploy")
    assert error.value.details["key_ids"] == []
    assert writes(sandbox) == ["POST /api_keys"]
    assert sandbox.sent() == ["GET /api_keys", "POST /api_keys", "GET /api_keys"]


@pytest.mark.parametrize(
    "body", [{"id": 7}, {"key": "secret"}, {"id": "7", "key": "secret"}, {"id": True, "key": "secret"}, [], "Created"]
)
def test_malformed_creation_result_is_not_retried(sandbox: Sandbox, client: Client, body: Any) -> None:
    sandbox.fault("status", method="POST", status=200, body=body)
    with pytest.raises(OrphanedKey, match="no usable response"):
        task(client, name="deploy")
    assert writes(sandbox) == ["POST /api_keys"]


def test_lost_response_and_failed_list_say_how_to_find_the_key(sandbox: Sandbox, client: Client) -> None:
    sandbox.fault("lost_answer", method="POST")
    sandbox.fault("status", method="GET", status=500, skip=1, times=None)
    with pytest.raises(OrphanedKey, match="revoke a new key of that name by its id") as error:
        task(client, name="deploy")
    assert error.value.details["key_ids"] == []
    assert writes(sandbox) == ["POST /api_keys"]


@pytest.mark.parametrize("status", REFUSED)
def test_refused_creation_is_retried_and_creates_one_key(
    sandbox: Sandbox, client: Client, clock: FakeClock, status: int
) -> None:
    sandbox.fault("status", method="POST", status=status, retry_after=7, times=2)
    result = task(client, name="deploy")
    assert sandbox.keys("deploy") == [result["api_key"]]
    assert writes(sandbox) == ["POST /api_keys"] * 3
    assert (len(clock.pauses), min(clock.pauses)) == (2, 7)


@pytest.mark.parametrize("status", [*REFUSED, 400, 403])
def test_creation_refused_at_every_attempt_fails_without_a_key(
    sandbox: Sandbox, client: Client, tmp_path: Path, status: int
) -> None:
    sandbox.fault("status", method="POST", status=status, times=None)
    with pytest.raises(StatusError) as error:
        task(client, name="deploy", dest=tmp_path / "deploy.key")
    assert error.value.status == status
    assert sandbox.keys("deploy") == []
    assert os.listdir(tmp_path) == []


def test_later_creator_rolls_its_key_back(
    sandbox: Sandbox, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before(monkeypatch, client, "post", lambda: sandbox.api("POST", "/api_keys", {"key_name": "deploy"}))
    dest = tmp_path / "deploy.key"
    result = task(client, name="deploy", dest=dest)

    [theirs] = sandbox.keys("deploy")
    assert (result["changed"], result["api_key"]) == (False, theirs)
    assert result["warnings"] == [
        f"Key {theirs['id']} of the same name was created a moment earlier by another host or task, which has its secret. "
        f"Key {theirs['id'] + 1}, which this task had created, was revoked. {dest} was not written."
    ]
    assert os.listdir(tmp_path) == []
    assert writes(sandbox)[1:] == [f"DELETE /api_keys/{theirs['id'] + 1}"]


def test_later_creator_returns_no_secret(sandbox: Sandbox, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    before(monkeypatch, client, "post", lambda: sandbox.api("POST", "/api_keys", {"key_name": "deploy"}))
    result = task(client, name="deploy")
    assert "key" not in result
    assert result["revoked"] == []
    assert len(sandbox.keys("deploy")) == 1
    [warning] = result["warnings"]
    assert warning.endswith(", which this task had created, was revoked.")


def test_earlier_creator_keeps_its_key(
    sandbox: Sandbox, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    after(monkeypatch, client, "post", lambda: sandbox.api("POST", "/api_keys", {"key_name": "deploy"}))
    result = task(client, name="deploy", dest=tmp_path / "deploy.key")
    assert result["changed"]
    assert result["api_key"]["id"] == min(ids(sandbox.keys("deploy")))
    assert sandbox.accepts((tmp_path / "deploy.key").read_text())
    assert [request.split()[0] for request in writes(sandbox)] == ["POST"]


@one_key
def test_later_of_two_replacements_revokes_only_its_own_key(
    sandbox: Sandbox, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    [old] = sandbox.keys("deploy")
    before(monkeypatch, client, "post", lambda: sandbox.api("POST", "/api_keys", {"key_name": "deploy"}))
    result = task(client, name="deploy", regenerate="always")
    assert not result["changed"]
    assert ids(sandbox.keys("deploy")) == [old["id"], result["api_key"]["id"]]


def test_failed_roll_back_of_the_later_creator_names_the_key(
    sandbox: Sandbox, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    before(monkeypatch, client, "post", lambda: sandbox.api("POST", "/api_keys", {"key_name": "deploy"}))
    sandbox.fault("status", method="DELETE", status=403)
    with pytest.raises(OrphanedKey) as error:
        task(client, name="deploy")
    theirs, ours = ids(sandbox.keys("deploy"))
    assert f"Key {theirs} of the same name was created a moment earlier" in str(error.value)
    assert f"This task had created key {ours}. Key {ours} could not be revoked." in str(error.value)
    assert error.value.details["key_ids"] == [ours]


@pytest.mark.parametrize("to_file", [False, True], ids=["result", "dest"])
def test_failed_second_list_keeps_the_key_and_warns(
    sandbox: Sandbox, client: Client, tmp_path: Path, to_file: bool
) -> None:
    sandbox.fault("status", method="GET", path="/api_keys", status=500, skip=1, times=6)
    dest = tmp_path / "deploy.key"
    options: dict[str, Any] = {"dest": dest} if to_file else {}
    result = task(client, name="deploy", **options)
    secret = dest.read_text() if to_file else result["key"]
    assert sandbox.accepts(secret)
    assert result["changed"]
    [key] = sandbox.keys("deploy")
    assert result["api_key"] == {
        **{field: key[field] for field in ("id", "name", "created_at")},
        "created_by": key["created_by"]["id"],
    }
    [warning] = result["warnings"]
    assert "could not be listed again" in warning
    assert secret not in warning


def test_eight_hosts_create_one_key_and_one_reports_changed(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    all_have_listed = Barrier(8)
    results: list[dict[str, Any]] = []

    post = Client.post

    def post_when_all_have_listed(*args: Any, **kwargs: Any) -> Any:
        all_have_listed.wait(60)
        return post(*args, **kwargs)

    def host() -> None:
        results.append(task(Client(Connection(sandbox.base_url, sandbox.api_key)), name="deploy"))

    monkeypatch.setattr(Client, "post", post_when_all_have_listed)
    threads = [Thread(target=host) for _host in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    [key] = sandbox.keys("deploy")
    assert [result["api_key"]["id"] for result in results] == [key["id"]] * 8
    [secret] = [result["key"] for result in results if result["changed"]]
    assert sandbox.accepts(secret)


@two_keys
def test_failed_replacement_returns_the_new_secret(sandbox: Sandbox, client: Client) -> None:
    later, earlier = ids(sandbox.keys("deploy"))
    sandbox.fault("status", method="DELETE", path=f"/api_keys/{later}", status=500, times=None)
    with pytest.raises(OrphanedKey) as error:
        task(client, name="deploy", regenerate="always")
    result = error.value.as_result()
    new = result["api_key"]["id"]
    assert result["changed"] is True
    assert sandbox.accepts(result["key"])
    assert result["key"] not in result["msg"]
    assert f"The new key {new} is in use. Key {earlier} was revoked. Key {later} may still be valid" in result["msg"]
    assert "Revoke it with state=absent and id." in result["msg"]
    assert ids(result["revoked"]) == [earlier]
    assert result["failure"]["key_ids"] == [later]
    assert sorted(ids(sandbox.keys("deploy"))) == sorted([later, new])


@one_key
def test_failed_replacement_leaves_the_new_secret_in_dest(sandbox: Sandbox, client: Client, tmp_path: Path) -> None:
    sandbox.fault("reset", method="DELETE", times=None)
    dest = tmp_path / "deploy.key"
    with pytest.raises(OrphanedKey) as error:
        task(client, name="deploy", dest=dest, regenerate="if_lost")
    assert "key" not in error.value.result
    assert sandbox.accepts(dest.read_text())


@one_key
def test_older_key_that_is_already_gone_is_not_listed_as_revoked(
    sandbox: Sandbox, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    [old] = sandbox.keys("deploy")
    before(monkeypatch, client, "delete", lambda: sandbox.api("DELETE", f"/api_keys/{old['id']}"))
    result = task(client, name="deploy", regenerate="always")
    assert (result["changed"], result["revoked"]) == (True, [])
