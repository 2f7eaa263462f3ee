# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""api_key with state=present and state=absent, in normal and in check mode."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import Unauthorized, UnexpectedResponse
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.module_utils._http.connection import Connection
from ansible_collections.clouddb.control.plugins.module_utils._keys.api import OrphanedKey
from ansible_collections.clouddb.control.plugins.module_utils._keys.ensure import MultipleKeys, SecretUnavailable
from ansible_collections.clouddb.control.tests.unit.support.api_key_task import (
    OLD_SECRET,
    OTHER_SECRET,
    REVOKED_SECRET,
    before,
    ids,
    one_key,
    task,
    two_keys,
    without_last_use,
    writes,
)
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import FakeClock
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox


def test_present_creates_the_key_and_returns_its_secret(sandbox: Sandbox, client: Client) -> None:
    result = task(client, name="deploy")

    [key] = sandbox.keys("deploy")
    assert sandbox.accepts(result.pop("key"))
    assert result == {
        "changed": True,
        "api_key": key,
        "revoked": [],
        "warnings": [],
        "diff": {"before": {"api_keys": []}, "after": {"api_keys": [key]}},
    }


def test_name_is_sent_unchanged(sandbox: Sandbox, client: Client) -> None:
    name = ' Ключ/"deploy"&+%20 \n'
    assert task(client, name=name)["api_key"]["name"] == name
    assert not task(client, name=name)["changed"]
    assert len(sandbox.keys(name)) == 1


@one_key
def test_present_does_not_change_an_existing_key(sandbox: Sandbox, client: Client) -> None:
    [key] = sandbox.keys("deploy")
    assert task(client, name="deploy") == {
        "changed": False,
        "api_key": key,
        "revoked": [],
        "diff": {"before": {"api_keys": [key]}, "after": {"api_keys": [key]}},
    }
    assert sandbox.sent() == ["GET /api_keys"]


@two_keys
def test_present_warns_about_several_keys_and_returns_the_earliest(sandbox: Sandbox, client: Client) -> None:
    later, earlier = sandbox.keys("deploy")
    result = task(client, name="deploy")
    assert (result["changed"], result["api_key"]) == (False, earlier)
    assert result["warnings"] == [
        f"2 keys are named 'deploy' (ids {earlier['id']}, {later['id']}), and none of them was changed. "
        "An interrupted task can leave a key whose secret nobody has. "
        "Revoke unused keys by id, or set regenerate: always to replace all of them with one new key."
    ]
    assert writes(sandbox) == []


def test_names_are_case_sensitive(sandbox: Sandbox, client: Client) -> None:
    task(client, name="deploy")
    assert task(client, name="Deploy")["changed"]
    assert len(sandbox.keys("deploy")) == len(sandbox.keys("Deploy")) == 1


@one_key
def test_always_creates_the_new_key_before_it_revokes_the_old_one(sandbox: Sandbox, client: Client) -> None:
    [old] = sandbox.keys("deploy")
    result = task(client, name="deploy", regenerate="always")

    [new] = sandbox.keys("deploy")
    assert result["changed"]
    assert without_last_use(result["api_key"]) == without_last_use(new)
    assert ids(result["revoked"]) == [old["id"]]
    assert result["revoked"][0]["revoked"] is True
    assert result["diff"] == {"before": {"api_keys": [old]}, "after": {"api_keys": [result["api_key"]]}}
    assert sandbox.accepts(result["key"])
    assert not sandbox.accepts(OLD_SECRET)
    assert writes(sandbox) == ["POST /api_keys", f"DELETE /api_keys/{old['id']}"]


@two_keys
def test_always_revokes_all_older_keys_of_the_name(sandbox: Sandbox, client: Client) -> None:
    later, earlier = sandbox.keys("deploy")
    result = task(client, name="deploy", regenerate="always")
    assert ids(sandbox.keys("deploy")) == [result["api_key"]["id"]]
    assert ids(result["revoked"]) == [earlier["id"], later["id"]]


def test_invalid_bearer_key_fails_at_the_first_request(sandbox: Sandbox, clock: FakeClock) -> None:
    client = Client(Connection(sandbox.base_url, REVOKED_SECRET), clock.clock)
    with pytest.raises(Unauthorized):
        task(client, name="deploy")
    assert sandbox.sent() == ["GET /api_keys"]


def revocation_of(key: dict[str, Any]) -> dict[str, Any]:
    """The result of the key's revocation when it is only predicted or the response was lost. The service sends more."""
    return {**{field: key[field] for field in ("id", "name", "last_used_at", "last_used_from_addr")}, "revoked": True}


@one_key
@pytest.mark.parametrize("by", ["id", "name"])
def test_absent_revokes_the_key(sandbox: Sandbox, client: Client, by: str) -> None:
    [key] = sandbox.keys("deploy")
    result = task(client, state="absent", **{by: key[by]})
    assert (result["changed"], result["api_key"]) == (True, None)
    [revoked] = result["revoked"]
    assert revoked.items() > revocation_of(key).items()
    assert result["diff"] == {"before": {"api_keys": [key]}, "after": {"api_keys": []}}
    assert sandbox.keys("deploy") == []
    assert not sandbox.accepts(OLD_SECRET)


@pytest.mark.parametrize("options", [{"id": 4711}, {"name": "deploy"}], ids=["id", "name"])
def test_absent_does_not_change_anything_without_such_a_key(
    sandbox: Sandbox, client: Client, options: dict[str, Any]
) -> None:
    result = task(client, state="absent", **options)
    assert result == {
        "changed": False,
        "api_key": None,
        "revoked": [],
        "diff": {"before": {"api_keys": []}, "after": {"api_keys": []}},
    }
    assert writes(sandbox) == []


@two_keys
@pytest.mark.parametrize("check_mode", [False, True], ids=["real", "check mode"])
def test_absent_with_several_keys_fails_and_lists_their_ids(sandbox: Sandbox, client: Client, check_mode: bool) -> None:
    later, earlier = ids(sandbox.keys("deploy"))
    with pytest.raises(MultipleKeys, match=rf"ids {earlier}, {later}.*allow_multiple: true") as error:
        task(client, check_mode, state="absent", name="deploy")
    assert error.value.details["key_ids"] == [earlier, later]
    assert len(sandbox.keys("deploy")) == 2


@two_keys
def test_allow_multiple_revokes_all_keys_of_the_name(sandbox: Sandbox, client: Client) -> None:
    result = task(client, state="absent", name="deploy", allow_multiple=True)
    assert len(result["revoked"]) == 2
    assert sandbox.keys("deploy") == []


@two_keys
def test_absent_by_id_revokes_one_of_several_keys(sandbox: Sandbox, client: Client) -> None:
    later, earlier = sandbox.keys("deploy")
    assert ids(task(client, state="absent", id=later["id"])["revoked"]) == [later["id"]]
    assert sandbox.keys("deploy") == [earlier]


@one_key
def test_absent_does_not_touch_dest(client: Client, tmp_path: Path) -> None:
    dest = tmp_path / "deploy.key"
    dest.write_text(OLD_SECRET)
    task(client, state="absent", name="deploy", dest=dest)
    assert dest.read_text() == OLD_SECRET


@one_key
def test_key_revoked_elsewhere_in_between_is_not_changed(
    sandbox: Sandbox, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    [key] = sandbox.keys("deploy")
    before(monkeypatch, client, "delete", lambda: sandbox.api("DELETE", f"/api_keys/{key['id']}"))
    result = task(client, state="absent", name="deploy")
    assert (result["changed"], result["revoked"]) == (False, [])


@one_key
def test_revocation_is_retried_when_its_response_is_lost(sandbox: Sandbox, client: Client) -> None:
    [key] = sandbox.keys("deploy")
    sandbox.fault("lost_answer", method="DELETE")
    result = task(client, state="absent", name="deploy")
    assert result["changed"]
    assert [(revoked["id"], revoked["revoked"]) for revoked in result["revoked"]] == [(key["id"], True)]
    assert writes(sandbox) == [f"DELETE /api_keys/{key['id']}"] * 2


@two_keys
def test_failed_revocation_reports_revoked_and_remaining_keys(sandbox: Sandbox, client: Client) -> None:
    later, earlier = ids(sandbox.keys("deploy"))
    sandbox.fault("status", method="DELETE", path=f"/api_keys/{later}", status=500, times=None)
    with pytest.raises(
        OrphanedKey,
        match=rf"^Key {earlier} was revoked\. Key {later} may still be valid, because the service did not confirm the revocation\. Run the task again\.",
    ) as error:
        task(client, state="absent", name="deploy", allow_multiple=True)
    assert error.value.result["changed"] is True
    assert ids(error.value.result["revoked"]) == [earlier]
    assert error.value.details["key_ids"] == [later]
    assert ids(sandbox.keys("deploy")) == [later]


@one_key
def test_unconfirmed_revocation_fails_when_the_keys_cannot_be_listed(sandbox: Sandbox, client: Client) -> None:
    [key] = sandbox.keys("deploy")
    sandbox.fault("status", method="DELETE", status=500, times=None)
    sandbox.fault("status", method="GET", status=500, skip=1, times=None)
    with pytest.raises(OrphanedKey, match=f"Key {key['id']} may still be valid"):
        task(client, state="absent", name="deploy")


@one_key
def test_refused_revocation_is_not_changed(sandbox: Sandbox, client: Client) -> None:
    [key] = sandbox.keys("deploy")
    sandbox.fault("status", method="DELETE", status=403)
    with pytest.raises(OrphanedKey, match=rf"^Key {key['id']} could not be revoked\. Run the task again\.") as error:
        task(client, state="absent", name="deploy")
    assert error.value.result == {"changed": False, "revoked": []}


PRESENT: dict[str, Any] = {"name": "deploy"}
ABSENT: dict[str, Any] = {"name": "deploy", "state": "absent"}


@pytest.mark.parametrize("number_of_keys", [0, 1, 2])
@pytest.mark.parametrize("content", [None, OLD_SECRET, REVOKED_SECRET], ids=["no file", "valid", "revoked"])
@pytest.mark.parametrize(
    "options",
    [
        PRESENT,
        {**PRESENT, "regenerate": "always"},
        {**PRESENT, "dest": True, "regenerate": "if_lost"},
        {**PRESENT, "dest": True, "regenerate": "always"},
        {**ABSENT, "allow_multiple": True},
    ],
    ids=["present", "always", "dest, if_lost", "dest, always", "absent"],
)
def test_check_mode_predicts_the_result_and_changes_nothing(
    sandbox: Sandbox, client: Client, tmp_path: Path, number_of_keys: int, content: str | None, options: dict[str, Any]
) -> None:
    dest = tmp_path / "deploy.key"
    for _key in range(number_of_keys):
        sandbox.api("POST", "/api_keys", {"key_name": "deploy"})
    if content:
        # Any key of the account is valid if one has the name; the service does not compare names.
        dest.write_text(sandbox.api_key if content == OLD_SECRET and number_of_keys else content)
        dest.chmod(0o600)
    if "dest" in options:
        options = {**options, "dest": dest}
    keys, files = sandbox.keys("deploy"), {path: path.read_text() for path in tmp_path.iterdir()}

    predicted = task(client, check_mode=True, **options)
    assert sandbox.keys("deploy") == keys
    assert {path: path.read_text() for path in tmp_path.iterdir()} == files
    assert writes(sandbox) == []

    real = task(client, **options)
    predicted.setdefault("warnings", [])
    real.setdefault("warnings", [])
    assert set(predicted) == set(real)
    assert [predicted[field] for field in ("changed", "warnings")] == [real[field] for field in ("changed", "warnings")]
    assert [(key["id"], key["revoked"]) for key in predicted["revoked"]] == [
        (key["id"], key["revoked"]) for key in real["revoked"]
    ]
    assert predicted["diff"]["before"] == real["diff"]["before"]
    assert [key["name"] for key in predicted["diff"]["after"]["api_keys"]] == [
        key["name"] for key in real["diff"]["after"]["api_keys"]
    ]
    if not real["changed"]:
        assert predicted["api_key"] == real["api_key"]


def test_check_mode_returns_no_id_and_no_secret(client: Client) -> None:
    result = task(client, check_mode=True, name="deploy")
    assert result["key"] is None
    times = {"created_at": None, "last_used_at": None}
    assert result["api_key"] == {"id": None, "name": "deploy", **times, "last_used_from_addr": ""}


@one_key
def test_check_mode_fails_when_the_secret_is_unavailable(sandbox: Sandbox, client: Client, tmp_path: Path) -> None:
    with pytest.raises(SecretUnavailable, match="deploy.key does not exist"):
        task(client, check_mode=True, name="deploy", dest=tmp_path / "deploy.key")
    (tmp_path / "deploy.key").touch()
    with pytest.raises(SecretUnavailable, match=r"its secret is no longer available\. .*/deploy.key is empty\."):
        task(client, check_mode=True, name="deploy", dest=tmp_path / "deploy.key")
    assert writes(sandbox) == []


@two_keys
def test_always_can_replace_the_key_that_the_task_authenticates_with(sandbox: Sandbox, clock: FakeClock) -> None:
    olds = ids(sandbox.keys("deploy"))
    client = Client(Connection(sandbox.base_url, OLD_SECRET), clock.clock)
    result = task(client, name="deploy", regenerate="always")
    assert sorted(ids(result["revoked"])) == sorted(olds)
    assert ids(sandbox.keys("deploy")) == [result["api_key"]["id"]]


@one_key
def test_revocation_result_with_revoked_false_fails(sandbox: Sandbox, client: Client) -> None:
    [key] = sandbox.keys("deploy")
    sandbox.fault("status", method="DELETE", status=200, body={"id": key["id"], "name": "deploy", "revoked": False})
    with pytest.raises(Exception, match="it says that the key is not revoked") as raised:
        task(client, name="deploy", state="absent")
    assert isinstance(raised.value.__cause__, UnexpectedResponse)


@one_key
def test_unconfirmed_revocation_succeeds_when_the_key_is_gone(sandbox: Sandbox, clock: FakeClock) -> None:
    client = Client(Connection(sandbox.base_url, sandbox.api_key, api_retries=0), clock.clock)
    sandbox.fault("lost_answer", method="DELETE")
    [key] = sandbox.keys("deploy")
    result = task(client, name="deploy", state="absent")
    assert (result["changed"], result["revoked"]) == (True, [revocation_of(key)])
    assert not sandbox.keys("deploy")


three_keys = pytest.mark.parametrize(
    "seed",
    [
        {
            "api_keys": [
                {"name": "deploy", "key": OLD_SECRET, "age": "3d"},
                {"name": "deploy", "age": "2d", "last_used": "1h"},
                {"name": "deploy", "key": OTHER_SECRET, "age": "1d"},
            ]
        }
    ],
    ids=["three keys"],
)


@pytest.fixture
def own_client(sandbox: Sandbox) -> Client:
    """A client that authenticates with a key of the name; its pauses do not use another key."""
    return Client(Connection(sandbox.base_url, OLD_SECRET), FakeClock().clock)


@three_keys
def test_own_key_is_revoked_last(sandbox: Sandbox, own_client: Client) -> None:
    own, used, unused = sorted(ids(sandbox.keys("deploy")))
    result = task(own_client, state="absent", name="deploy", allow_multiple=True)
    assert (result["changed"], ids(result["revoked"])) == (True, [unused, used, own])
    assert sandbox.sent() == ["GET /api_keys", *(f"DELETE /api_keys/{each}" for each in (unused, used, own))]


@one_key
def test_unknown_own_key_requires_another_one_when_its_response_is_lost(
    sandbox: Sandbox, own_client: Client, client: Client
) -> None:
    [key] = sandbox.keys("deploy")
    sandbox.fault("lost_answer", method="DELETE")
    with pytest.raises(
        OrphanedKey,
        match=rf"^Key {key['id']} may still be valid, because the service did not confirm the revocation\. The service no longer "
        r"accepts the key that this task authenticates with\. Set api_key to another key and run the task again\. Error: DELETE",
    ) as error:
        task(own_client, state="absent", name="deploy")
    assert error.value.details["key_ids"] == [key["id"]]
    assert not task(client, state="absent", name="deploy")["changed"]


@one_key
def test_one_key_is_revoked_at_once(sandbox: Sandbox, own_client: Client) -> None:
    [key] = sandbox.keys("deploy")
    task(own_client, state="absent", name="deploy")
    assert sandbox.sent() == ["GET /api_keys", f"DELETE /api_keys/{key['id']}"]
