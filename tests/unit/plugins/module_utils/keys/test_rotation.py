# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decisions about a rotation, by the evidence of its consumers."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import InvalidOption
from ansible_collections.clouddb.control.plugins.module_utils._keys.evidence import Evidence, RotationRefused
from ansible_collections.clouddb.control.plugins.module_utils._keys.record import KnownKey, checksum, checksum_of
from ansible_collections.clouddb.control.plugins.module_utils._keys.revocation import RotationFailed
from ansible_collections.clouddb.control.plugins.modules import api_key_rotation
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import EPOCH
from ansible_collections.clouddb.control.tests.unit.support.in_one_test import in_one_test
from ansible_collections.clouddb.control.tests.unit.support.simulated_account import SimulatedAccount

Keys = tuple[SimulatedAccount, list[int]]


@pytest.fixture
def account() -> SimulatedAccount:
    return SimulatedAccount()


def add_key(account: SimulatedAccount, is_used: bool = True) -> int:
    """The id of a new key, an hour later than the last."""
    account.clock.elapsed += 3600
    key_id, secret = account.create(f"deploy-{(EPOCH + timedelta(seconds=account.clock.elapsed)):%Y%m%dT%H%M%SZ}")
    if is_used:
        account.use(secret)
    return key_id


@pytest.fixture
def keys(account: SimulatedAccount) -> Keys:
    """An account with three keys that were used."""
    return account, [add_key(account) for _number in range(3)]


def known(account: SimulatedAccount, ids: list[int], *consumers: str) -> dict[int, KnownKey]:
    """The keys as records have them."""
    names = list(consumers) or ["web1", "web2"]
    return {key_id: KnownKey(names, checksum(account.secrets[key_id])) for key_id in ids}


def evidence(account: SimulatedAccount, consumer: str, key_id: int | None, **fields: Any) -> Evidence:
    """Evidence that the consumer is committed to this key."""
    secret = account.secrets.get(key_id or 0)
    return Evidence(
        **{
            "consumer": consumer,
            "run": "run",
            "step": "commit",
            "has_file": True,
            "has_record": True,
            "sha256": checksum_of(secret),
            "accepted": secret and account.is_active(secret),
            "checked_at": account.now(),
            "key_id": key_id,
            "state": "committed" if key_id else None,
            "deployed_at": account.now() if key_id else None,
            "return_sha256": None,
            "keys": known(account, list(account.keys)),
            "fingerprint": "",
            "withdrawn": None,
            **fields,
        }
    )


def run(account: SimulatedAccount, step: str, *found: Evidence, check_mode: bool = False, **options: Any) -> Any:
    params = {
        "step": step,
        "name": "deploy-{timestamp}",
        "run": "run",
        "evidence": [one.as_dict() for one in found],
        "hosts": ["web1", "web2"],
        "consumers": [],
        "former_consumers": [],
        "max_age": "30d",
        "keep": 0,
        "grace_period": 0.0,
        "tags": [],
        "key_id": None,
        "key": None,
        "errors": {},
        **options,
    }
    return api_key_rotation.run(params, account.client(), check_mode)


def both(account: SimulatedAccount, key_id: int | None, **fields: Any) -> list[Evidence]:
    return [evidence(account, host, key_id, **fields) for host in ("web1", "web2")]


def inspected(account: SimulatedAccount, key_id: int | None, **fields: Any) -> list[Evidence]:
    return both(account, key_id, **{"step": "inspect", **fields})


# Plan


def test_first_key(account: SimulatedAccount) -> None:
    plan = run(account, "plan", *inspected(account, None))
    assert plan["reason"] == "there is no key of this name yet"
    assert plan["name"] == "deploy-20261121T080000Z"
    assert (plan["api_key"], plan["consumers"], plan["revoke"]) == (None, ["web1", "web2"], False)


def test_newest_key_that_all_hold_is_kept(keys: Keys) -> None:
    account, ids = keys
    plan = run(account, "plan", *inspected(account, ids[-1]), grace_period=100.0)
    assert (plan["reason"], plan["api_key"]["id"], plan["revoke"]) == ("", ids[-1], True)
    assert 99 < plan["grace_period"] <= 100
    assert plan["older_keys"].keys() == {str(key_id) for key_id in ids}


@pytest.mark.parametrize("max_age, is_old", [("60", True), ("1m", True), ("0", True), ("30d", False), ("1.5h", False)])
def test_maximum_age(keys: Keys, max_age: str, is_old: bool) -> None:
    account, ids = keys
    account.clock.elapsed += 600
    deployed_at = account.now()
    account.clock.elapsed += 600
    found = inspected(account, ids[-1], deployed_at=deployed_at)
    plan = run(account, "plan", *found, max_age=max_age, grace_period=5.0)
    assert plan["reason"] == (f"key {ids[-1]} has reached its maximum age" if is_old else "")
    assert plan["grace_period"] == (5.0 if is_old else 0.0)


@pytest.mark.parametrize("created_at", [None, "", "soon", 5])
@pytest.mark.parametrize("position", [0, 2])
def test_key_of_unknown_age_is_refused(keys: Keys, position: int, created_at: Any) -> None:
    account, ids = keys
    found = inspected(account, ids[-1])
    account.keys[ids[position]]["created_at"] = created_at
    refused = refusal(account, "plan", *found)
    assert f"no valid created_at of key {ids[position]}," in str(refused)


@pytest.mark.parametrize("fields", [{"accepted": False}, {"state": "deploying"}, {"key_id": None}])
def test_key_that_is_not_confirmed_everywhere_is_replaced(keys: Keys, fields: dict[str, Any]) -> None:
    account, ids = keys
    one, other = inspected(account, ids[-1])
    plan = run(account, "plan", one, other._replace(**fields))
    assert plan["reason"] == f"key {ids[-1]} is not confirmed on web2"


def refusal(account: SimulatedAccount, step: str, *found: Evidence, **options: Any) -> RotationRefused:
    """The error of a step that is refused, after which all keys are as before."""
    before = list(account.keys)
    with pytest.raises(RotationRefused) as error:
        run(account, step, *found, **options)
    assert list(account.keys) == before
    return error.value


def test_every_host_of_the_play_is_expected(keys: Keys) -> None:
    account, ids = keys
    one, _other = inspected(account, ids[-1])
    error = refusal(account, "plan", one)
    assert error.details == {"consumers": ["web2"]}
    assert "There is no evidence of this run from web2." in str(error)


def test_consumers_of_other_records_are_expected(keys: Keys) -> None:
    account, ids = keys
    one, _other = inspected(account, ids[-1])
    assert refusal(account, "plan", one, hosts=["web1"]).details == {"consumers": ["web2"]}
    assert refusal(account, "revoke", one._replace(step="commit"), hosts=["web1"], key_id=ids[-1]).details == {
        "consumers": ["web2"],
        "key_ids": [ids[-1]],
    }


def test_consumers_that_the_user_names_are_expected(keys: Keys) -> None:
    account, ids = keys
    assert refusal(account, "plan", *inspected(account, ids[-1]), consumers=["db1"]).details == {"consumers": ["db1"]}


def test_two_names_of_one_host_are_refused(keys: Keys) -> None:
    account, ids = keys
    one, other = inspected(account, ids[-1])
    refused = refusal(account, "plan", one, other._replace(key_id=None, record_of="web1"))
    assert "web2 has the record of web1" in str(refused)
    assert refused.details == {"consumers": ["web2"]}


def test_former_consumers_are_not_expected(keys: Keys) -> None:
    account, ids = keys
    one, _other = inspected(account, ids[-1])
    plan = run(account, "plan", one, hosts=["web1"], former_consumers=["web1", "web2"])
    assert plan["consumers"] == ["web1"]


def test_consumers_of_revoked_keys_are_not_expected(keys: Keys) -> None:
    account, ids = keys
    found = [one._replace(keys={**one.keys, 999: KnownKey(["gone"], "")}) for one in inspected(account, ids[-1])]
    assert run(account, "plan", *found)["consumers"] == ["web1", "web2"]


def test_tags_that_may_skip_tasks_are_refused(account: SimulatedAccount) -> None:
    assert "tags (vault)" in str(refusal(account, "plan", *inspected(account, None), tags=["vault"]))


def test_without_records_the_user_names_the_consumers(account: SimulatedAccount) -> None:
    found = inspected(account, None, has_file=False, has_record=False, keys={})
    assert "Set the consumers of the key explicitly" in str(refusal(account, "plan", *found))
    assert run(account, "plan", *found, consumers=["web1", "web2"])["consumers"] == ["web1", "web2"]


def test_without_records_a_key_that_was_never_used_is_replaced(keys: Keys) -> None:
    account, _ids = keys
    newest = add_key(account, is_used=False)
    found = inspected(account, None, has_file=False, has_record=False, keys={})
    plan = run(account, "plan", *found, consumers=["web1", "web2"])
    assert plan["reason"] == f"key {newest} was never used, so its deployment was not completed"


def test_without_files_nothing_is_revoked_later(keys: Keys) -> None:
    account, ids = keys
    plan = run(account, "plan", *inspected(account, ids[-1], has_file=False, sha256=None, accepted=None))
    assert (plan["reason"], plan["revoke"], plan["left"]) == ("", False, ids[:2])
    assert f"Keys {ids[0]} and {ids[1]} of this name remain valid until the next rotation" in plan["warnings"][0]


def test_key_that_is_not_recorded_for_a_consumer_is_replaced(keys: Keys) -> None:
    account, ids = keys
    # A copy of web1, with its file and its record.
    found = inspected(account, ids[-1])
    copy = found[0]._replace(consumer="web3")
    plan = run(account, "plan", *found, copy, hosts=["web1", "web2", "web3"])
    assert plan["reason"] == f"key {ids[-1]} is not confirmed on web3"


def test_named_consumers_are_not_former_ones(keys: Keys) -> None:
    account, ids = keys
    one, _other = inspected(account, ids[-1])
    options: dict[str, Any] = {"hosts": ["web1"], "consumers": ["web2"], "former_consumers": ["web2"]}
    assert refusal(account, "plan", one, **options).details == {"consumers": ["web2"]}


def test_refusal_names_whose_record_names_a_consumer(keys: Keys) -> None:
    account, ids = keys
    one, other = inspected(account, ids[-1])
    one = one._replace(keys=known(account, ids, "web1", "web2", "ghost"))
    assert "from ghost. The records of web1 name them as consumers." in str(refusal(account, "plan", one, other))


# Revoke


def test_revokes_the_older_keys(keys: Keys) -> None:
    account, ids = keys
    result = run(account, "revoke", *both(account, ids[-1]), key_id=ids[-1])
    assert ([key["id"] for key in result["revoked"]], result["left"], result["warnings"]) == (ids[:2], [], [])
    assert result["api_key"]["id"] == ids[-1]
    assert list(account.keys) == [1, ids[-1]]


@pytest.mark.parametrize(
    "fields, problem",
    [
        ({"run": "another run"}, "has given no evidence in this run"),
        ({"run": "run (check mode)"}, "has given no evidence in this run"),
        ({"step": "inspect"}, "has given no evidence in this run"),
        ({"checked_at": "2026-11-21T08:00:00Z"}, "has given no evidence in this run"),
        ({"key_id": 3}, "holds key 3"),
        ({"key_id": None}, "holds another secret or none"),
        ({"key_id": None, "record_of": "web1"}, "has the record of web1, as if both were the same host"),
        ({"accepted": False}, "holds a secret that the service does not accept"),
        ({"accepted": None}, "holds a secret that the service does not accept"),
        ({"state": "deployed"}, "may still be rolled back"),
        ({"state": "deploying"}, "may still be rolled back"),
    ],
)
def test_incomplete_evidence_is_refused(keys: Keys, fields: dict[str, Any], problem: str) -> None:
    account, ids = keys
    one, other = both(account, ids[-1])
    error = refusal(account, "revoke", one, other._replace(**fields), key_id=ids[-1])
    assert f"web2 {problem}." in str(error)
    assert error.details["consumers"] == ["web2"]


def test_key_that_is_not_the_newest_is_refused(keys: Keys) -> None:
    account, ids = keys
    assert "is not the newest key" in str(refusal(account, "revoke", *both(account, ids[1]), key_id=ids[1]))


def test_no_key_is_revoked_within_the_grace_period(keys: Keys) -> None:
    account, ids = keys
    found = both(account, ids[-1])
    assert "the grace period ends in" in str(refusal(account, "revoke", *found, key_id=ids[-1], grace_period=60.0))
    account.clock.elapsed += 61
    assert run(account, "revoke", *found, key_id=ids[-1], grace_period=60.0)["changed"]


def test_a_key_id_is_required(keys: Keys) -> None:
    account, ids = keys
    with pytest.raises(InvalidOption, match="key_id"):
        run(account, "revoke", *both(account, ids[-1]))


def test_what_is_not_evidence_is_refused(account: SimulatedAccount) -> None:
    with pytest.raises(InvalidOption, match="evidence: this is not the evidence"):
        api_key_rotation.evidence_by_consumer([{"consumer": "web1"}], "run", "commit", EPOCH)


@pytest.mark.parametrize("keep, kept", [(0, 0), (1, 1), (5, 2)])
def test_keeps_the_latest_keys_that_were_used(keys: Keys, keep: int, kept: int) -> None:
    account, ids = keys
    unused = add_key(account, is_used=False)
    newest = add_key(account)
    result = run(account, "revoke", *both(account, newest), key_id=newest, keep=keep + 1)
    assert [key["id"] for key in result["revoked"]] == [*ids[: 2 - kept], unused]


def test_keys_in_use_are_not_revoked(keys: Keys) -> None:
    account, ids = keys
    sleep = account.clock.clock.sleep
    clock = account.clock
    clock.clock = clock.clock._replace(sleep=lambda seconds: (sleep(seconds), account.use(account.secrets[ids[1]]))[0])
    result = run(account, "revoke", *both(account, ids[-1]), key_id=ids[-1])
    assert (list(account.keys), result["left"]) == ([1, ids[1], ids[-1]], [ids[1]])
    assert f"Key {ids[1]} of this name was used within the last seconds, and not revoked." in result["warnings"][0]


def test_own_key_is_not_revoked(keys: Keys) -> None:
    account, ids = keys
    account.secrets[1], account.secrets[ids[0]] = account.secrets[ids[0]], account.secrets[1]
    result = run(account, "revoke", *both(account, ids[-1]), key_id=ids[-1])
    assert (list(account.keys), result["left"]) == ([1, ids[0], ids[-1]], [ids[0]])


def test_own_key_is_known_by_its_checksum(keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    account, ids = keys
    account.secrets[1], account.secrets[ids[0]] = account.secrets[ids[0]], account.secrets[1]
    found = both(account, ids[-1])
    # The service records uses late.
    monkeypatch.setattr(account, "use", lambda secret: None)
    result = run(account, "revoke", *found, key_id=ids[-1])
    assert (list(account.keys), result["left"]) == ([1, ids[0], ids[-1]], [ids[0]])


def test_nothing_is_revoked_if_the_own_key_is_unknown(keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    account, ids = keys
    monkeypatch.setattr(account, "use", lambda secret: None)
    result = run(account, "revoke", *both(account, ids[-1]), key_id=ids[-1])
    assert (result["revoked"], result["left"]) == ([], ids[:2])
    assert "the service does not show which key this task authenticates with" in result["warnings"][0]


def test_keys_of_unknown_consumers_are_not_revoked(keys: Keys) -> None:
    account, ids = keys
    recorded = known(account, ids[1:])
    plan = run(account, "plan", *inspected(account, ids[-1], keys=recorded))
    assert plan["left"] == [ids[0]]
    assert f"Key {ids[0]} of this name was used, but no record of these consumers names it" in plan["warnings"][0]
    result = run(account, "revoke", *both(account, ids[-1], keys=recorded), key_id=ids[-1])
    assert [key["id"] for key in result["revoked"]] == [ids[1]]


def test_groups_of_hosts_that_share_a_name_keep_their_own_keys(keys: Keys) -> None:
    account, ids = keys
    own = known(account, ids[:2])
    plan = run(account, "plan", *inspected(account, ids[1], keys=own))
    assert (plan["reason"], plan["api_key"]["id"], plan["left"]) == ("", ids[1], [ids[2]])
    run(account, "revoke", *both(account, ids[1], keys=own), key_id=ids[1])
    assert list(account.keys) == [1, *ids[1:]]


def test_keys_of_other_names_are_not_touched(keys: Keys) -> None:
    account, ids = keys
    others = [account.create(name)[0] for name in ("deploy-tools", "deploy-2026", "xdeploy-20261121T080000Z")]
    run(account, "revoke", *both(account, ids[-1]), key_id=ids[-1])
    assert list(account.keys) == [1, ids[-1], *others]


@in_one_test("name", ["deploy", "{timestamp}", "a-{timestamp}-{timestamp}"])
def test_name_needs_the_placeholder_once(account: SimulatedAccount, name: str) -> None:
    with pytest.raises(InvalidOption, match="name: must contain {timestamp} exactly once"):
        run(account, "plan", *inspected(account, None), name=name)


@in_one_test("max_age", ["", "soon", "-1", "1y", "1e9999"])
def test_invalid_maximum_age(account: SimulatedAccount, max_age: str) -> None:
    with pytest.raises(InvalidOption, match="max_age"):
        run(account, "plan", *inspected(account, None), max_age=max_age)


def test_check_mode_revokes_nothing(keys: Keys) -> None:
    account, ids = keys
    found = both(account, ids[-1], run="run (check mode)")
    result = run(account, "revoke", *found, key_id=ids[-1], check_mode=True)
    assert [key["id"] for key in result["revoked"]] == ids[:2]
    # A key that would be created makes all others older.
    found = inspected(account, ids[-1], run="run (check mode)")
    result = run(account, "revoke", *found, check_mode=True)
    assert [key["id"] for key in result["revoked"]] == ids
    assert list(account.keys) == [1, *ids]


# Withdraw


def withdraw(account: SimulatedAccount, key_id: int, *found: Evidence, **options: Any) -> RotationFailed:
    errors = {"web2": "Write the key: the disk is full"}
    with pytest.raises(RotationFailed) as error:
        run(account, "withdraw", *found, key_id=key_id, key=account.secrets[key_id], errors=errors, **options)
    assert account.secrets[key_id] not in str(error.value)
    return error.value


def rolled_back(account: SimulatedAccount, ids: list[int], **fields: Any) -> list[Evidence]:
    free = {"step": "roll_back", "withdrawn": ids[-1], "tasks_rolled_back": True}
    return both(account, ids[-2], **{**free, **fields})


def test_new_key_that_no_consumer_holds_is_revoked(keys: Keys) -> None:
    account, ids = keys
    error = withdraw(account, ids[-1], *rolled_back(account, ids))
    assert list(account.keys) == [1, *ids[:-1]]
    assert f"web2: Write the key: the disk is full. Rolled back: web1. Key {ids[-1]} was revoked." in str(error)
    assert f"Keys {ids[0]} and {ids[1]} of this name are unchanged." in str(error)
    assert error.details["consumers"] == ["web2"]


@pytest.mark.parametrize(
    "fields", [{"tasks_rolled_back": False}, {"withdrawn": None}, {"run": "another run"}, {"step": "inspect"}]
)
def test_new_key_that_a_consumer_may_hold_stays_valid(keys: Keys, fields: dict[str, Any]) -> None:
    account, ids = keys
    one, other = rolled_back(account, ids)
    error = withdraw(account, ids[-1], one._replace(**fields), other)
    assert ids[-1] in account.keys
    assert f"Key {ids[-1]} is still valid, because it may be in use on web1." in str(error)


@pytest.mark.parametrize("field", ["sha256", "return_sha256"])
def test_new_key_that_a_consumer_holds_or_restores_stays_valid(keys: Keys, field: str) -> None:
    account, ids = keys
    one, other = rolled_back(account, ids)
    withdraw(account, ids[-1], one._replace(**{field: checksum(account.secrets[ids[-1]])}), other)
    assert ids[-1] in account.keys


def test_new_key_of_a_missing_consumer_stays_valid(keys: Keys) -> None:
    account, ids = keys
    _one, other = rolled_back(account, ids)
    error = withdraw(account, ids[-1], other)
    assert "web1: The host left the play." in str(error)
    assert ids[-1] in account.keys


def test_new_key_that_another_rotation_has_revoked(keys: Keys) -> None:
    account, ids = keys
    found = rolled_back(account, ids)
    del account.keys[ids[-1]]
    assert f"Key {ids[-1]} has been revoked by another rotation" in str(withdraw(account, ids[-1], *found))


def test_check_mode_does_not_withdraw(keys: Keys) -> None:
    account, ids = keys
    found = rolled_back(account, ids, run="run (check mode)")
    assert "would be revoked" in str(withdraw(account, ids[-1], *found, check_mode=True))
    assert ids[-1] in account.keys
