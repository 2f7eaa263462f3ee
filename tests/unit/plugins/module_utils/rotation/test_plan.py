# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a new key is needed, by the evidence of the consumers."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import InvalidOption
from ansible_collections.clouddb.control.plugins.module_utils._rotation.evidence import Run, evidence_by_consumer
from ansible_collections.clouddb.control.plugins.module_utils._rotation.record import KnownKey, keys_as_json
from ansible_collections.clouddb.control.tests.unit.plugins.module_utils.rotation.rotations import (
    Keys,
    add_key,
    evidence,
    inspected,
    known,
    refusal,
    run,
)
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import EPOCH
from ansible_collections.clouddb.control.tests.unit.support.simulated_account import SimulatedAccount


def test_first_key(account: SimulatedAccount) -> None:
    plan = run(account, "plan", *inspected(account, None))
    assert plan["reason"] == "there is no key of this name yet"
    assert plan["name"] == "deploy-20261121T080000Z"
    assert (plan["api_key"], plan["plan"]["consumers"], plan["revoke"]) == (None, ["web1", "web2"], False)


def test_newest_key_that_all_hold_is_kept(keys: Keys) -> None:
    account, ids = keys
    plan = run(account, "plan", *inspected(account, ids[-1]), grace_period=100.0)
    assert (plan["reason"], plan["api_key"]["id"], plan["revoke"]) == ("", ids[-1], True)
    assert 99 < plan["grace_period"] <= 100
    assert plan["plan"]["older_keys"] == keys_as_json(known(account, ids))


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


def test_former_consumers_are_not_expected(keys: Keys) -> None:
    account, ids = keys
    one, _other = inspected(account, ids[-1])
    plan = run(account, "plan", one, hosts=["web1"], former_consumers=["web1", "web2"])
    assert plan["plan"]["consumers"] == ["web1"]


def test_consumers_of_revoked_keys_are_not_expected(keys: Keys) -> None:
    account, ids = keys
    found = [
        one._replace(known_keys={**one.known_keys, 999: KnownKey(["gone"], "")}) for one in inspected(account, ids[-1])
    ]
    assert run(account, "plan", *found)["plan"]["consumers"] == ["web1", "web2"]


def test_without_records_the_user_names_the_consumers(account: SimulatedAccount) -> None:
    found = inspected(account, None, has_file=False, has_record=False, known_keys={})
    assert "Set the consumers of the key explicitly" in str(refusal(account, "plan", *found))
    assert run(account, "plan", *found, consumers=["web1", "web2"])["plan"]["consumers"] == ["web1", "web2"]


def test_without_records_a_key_that_was_never_used_is_replaced(keys: Keys) -> None:
    account, _ids = keys
    newest = add_key(account, is_used=False)
    found = inspected(account, None, has_file=False, has_record=False, known_keys={})
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
    one = one._replace(known_keys=known(account, ids, "web1", "web2", "ghost"))
    assert "from ghost. The records of web1 name them as consumers." in str(refusal(account, "plan", one, other))


@pytest.mark.parametrize("name", ["deploy", "{timestamp}", "a-{timestamp}-{timestamp}"])
def test_name_needs_the_placeholder_once(account: SimulatedAccount, name: str) -> None:
    with pytest.raises(InvalidOption, match="name: must contain {timestamp} exactly once"):
        run(account, "plan", *inspected(account, None), name=name)


# Complete messages


@pytest.mark.parametrize(
    ("hosts", "fields", "without"),
    [
        (["web1", "web2"], {}, []),
        (["web1", "web2"], {"accepted": False}, ["web2"]),
        (["web1", "web2", "web3"], {}, ["web3"]),
    ],
)
def test_message_about_tags_names_consumers_without_the_newest_key(
    keys: Keys, hosts: list[str], fields: dict[str, Any], without: list[str]
) -> None:
    account, ids = keys
    one, other = inspected(account, ids[-1])
    refused = refusal(account, "plan", one, other._replace(**fields), hosts=hosts, tags=["vault"])
    ending = f" Key {ids[-1]} is not confirmed on {without[0]}." if without else ""
    assert str(refused).endswith(f"Run the play without tags.{ending}")
    assert refused.details == ({"consumers": without} if without else {})


@pytest.mark.parametrize("number, remain, them", [(1, "remains", "it"), (2, "remain", "them")])
def test_message_about_keys_of_others(number: int, remain: str, them: str) -> None:
    account = SimulatedAccount()
    ids = [add_key(account) for _number in range(3)]
    plan = run(account, "plan", *inspected(account, ids[-1], known_keys=known(account, ids[number:])))
    name = f"Key {ids[0]}" if number == 1 else f"Keys {ids[0]} and {ids[1]}"
    assert plan["warnings"] == [
        f"{name} of this name {remain} valid, because no record of these consumers names {them}: other hosts may use {them}, or "
        "this task itself. Give other hosts a name of their own. Revoke a key that nothing uses by its id with "
        "clouddb.control.api_key and state=absent."
    ]
    records: dict[str, Any] = {"has_record": False, "known_keys": {}}
    plan = run(account, "plan", *inspected(account, ids[-1], **records), consumers=["web1", "web2"], keep=2 - number)
    assert plan["warnings"] == [
        f"{name} of this name {remain} valid, because without a record nothing shows whether this task authenticates with "
        f"{them}. Set api_key_rotation_own_key to the id of the task's own key, or api_key_rotation_record."
    ]


@pytest.mark.parametrize("keep, revoke", [(0, True), (1, True), (2, False), (3, False)])
def test_whether_keys_are_left_to_revoke(keep: int, revoke: bool) -> None:
    account = SimulatedAccount()
    ids = [add_key(account) for _number in range(3)]
    assert run(account, "plan", *inspected(account, ids[-1]), keep=keep)["revoke"] is revoke
    # A new key makes all others older.
    assert run(account, "plan", *inspected(account, ids[-1]), keep=keep, max_age="0")["revoke"] is (keep < 3)


@pytest.mark.parametrize("keep, left", [(0, 2), (1, 1), (2, 0)])
def test_without_records_no_key_is_revoked(keep: int, left: int) -> None:
    account = SimulatedAccount()
    ids = [add_key(account) for _number in range(3)]
    found = inspected(account, None, has_file=False, has_record=False, known_keys={})
    for max_age, number in (("30d", left), ("0", left + 1)):
        plan = run(account, "plan", *found, consumers=["web1", "web2"], keep=keep, max_age=max_age)
        assert (plan["revoke"], plan["left"]) == (False, ids[:number])


@pytest.mark.parametrize(
    "has_file, accepted, is_deployed",
    [(True, True, True), (True, None, False), (False, None, True), (False, False, False)],
)
def test_a_file_must_be_accepted(has_file: bool, accepted: bool | None, is_deployed: bool) -> None:
    account = SimulatedAccount()
    key_id = add_key(account)
    found = evidence(account, "web1", key_id, has_file=has_file, accepted=accepted)
    assert found.has_deployed(key_id) is is_deployed


@pytest.mark.parametrize("seconds, counts", [(3600, True), (3601, False), (-3600, True), (-3601, False)])
def test_evidence_is_not_older_than_an_hour(seconds: float, counts: bool) -> None:
    account = SimulatedAccount()
    found = evidence(account, "web1", None, checked_at=(EPOCH - timedelta(seconds=seconds)).isoformat())
    assert bool(evidence_by_consumer([found], Run("run", {}), "commit", EPOCH)) is counts
