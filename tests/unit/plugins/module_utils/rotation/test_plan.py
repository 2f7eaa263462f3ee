# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a new key is needed, by the confirmations of the hosts."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import InvalidOption
from ansible_collections.clouddb.control.plugins.module_utils._rotation.confirmation import (
    Run,
    confirmations_from,
    current_confirmations,
    id_of_list,
    keys_with_ids,
)
from ansible_collections.clouddb.control.plugins.module_utils._rotation.record import KnownKey, checksum
from ansible_collections.clouddb.control.tests.unit.plugins.module_utils.rotation.rotations import (
    Keys,
    add_key,
    both,
    confirmation,
    known,
    refusal,
    run,
)
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import EPOCH
from ansible_collections.clouddb.control.tests.unit.support.simulated_account import SimulatedAccount


def test_newest_key_that_all_hold_is_kept(keys: Keys) -> None:
    account, ids = keys
    first = confirmation(account, "web1", ids[-1])
    account.clock.elapsed += 60
    plan = run(account, "plan", first, confirmation(account, "web2", ids[-1]), grace_period=100.0)
    assert (plan["reason"], plan["api_key"]["id"], plan["revoke"]) == ("", ids[-1], True)
    assert 99 < plan["grace_period"] <= 100  # since the latest deployment
    older_keys = {key_id: KnownKey(["web1", "web2"], checksum(account.secrets[key_id])) for key_id in ids}
    assert (plan["older_keys"], plan["host_lists"]) == keys_with_ids(older_keys, id_of_list(["web1", "web2"]))


@pytest.mark.parametrize("max_age, is_old", [("60", True), ("1m", True), ("0", True), ("30d", False), ("1.5h", False)])
def test_maximum_age(keys: Keys, max_age: str, is_old: bool) -> None:
    account, ids = keys
    account.clock.elapsed += 600
    deployed_at = account.now()
    account.clock.elapsed += 600
    found = both(account, ids[-1], deployed_at=deployed_at)
    plan = run(account, "plan", *found, max_age=max_age, grace_period=5.0)
    assert plan["reason"] == (f"key {ids[-1]} has reached its maximum age" if is_old else "")
    assert plan["grace_period"] == (5.0 if is_old else 0.0)


@pytest.mark.parametrize("created_at", [None, "", "soon", 5])
@pytest.mark.parametrize("position", [0, 2])
def test_key_of_unknown_age_is_refused(keys: Keys, position: int, created_at: Any) -> None:
    account, ids = keys
    found = both(account, ids[-1])
    account.keys[ids[position]]["created_at"] = created_at
    refused = refusal(account, "plan", *found)
    assert f"no valid created_at of key {ids[position]}," in str(refused)


@pytest.mark.parametrize("fields", [{"accepted": False}, {"state": "deploying"}, {"key_id": None}])
def test_key_that_is_not_confirmed_everywhere_is_replaced(keys: Keys, fields: dict[str, Any]) -> None:
    account, ids = keys
    one, other = both(account, ids[-1])
    plan = run(account, "plan", one, other._replace(**fields))
    assert plan["reason"] == f"key {ids[-1]} is not confirmed on web2"


@pytest.mark.parametrize(
    "options, missing",
    [
        ({}, "web2"),
        # Named by the record of web1.
        ({"play_hosts": ["web1"]}, "web2"),
        ({"play_hosts": ["web1"], "hosts": ["web2"], "retired_hosts": ["web2"]}, "web2"),
        ({"play_hosts": ["web1"], "hosts": ["db1"], "retired_hosts": ["web2"]}, "db1"),
    ],
)
def test_nothing_is_created_or_revoked_while_a_host_is_missing(
    keys: Keys, options: dict[str, Any], missing: str
) -> None:
    account, ids = keys
    one, _other = both(account, ids[-1])
    error = refusal(account, "plan", one, max_age="0", **options)
    assert error.details == {"hosts": [missing]}
    assert f"{missing} did not report in this run" in str(error)
    assert refusal(account, "revoke", one, key_id=ids[-1], **options).details["hosts"] == [missing]


def test_missing_host_is_a_warning_while_no_key_is_needed(keys: Keys) -> None:
    account, ids = keys
    one, other = both(account, ids[-1])
    plan = run(account, "plan", one)
    assert (plan["reason"], plan["revoke"], plan["left"], len(plan["warnings"])) == ("", False, ids[:2], 1)
    assert plan["warnings"][0].startswith("web2 did not report in this run, but it uses this key (recorded on web1).")
    # Another host needs a new key, or the missing one, to which none was deployed.
    assert refusal(account, "plan", one._replace(accepted=False)).details == {"hosts": ["web2"]}
    assert refusal(account, "plan", one, other, hosts=["web3"]).details == {"hosts": ["web3"]}


def test_messages_name_five_hosts_at_most(keys: Keys) -> None:
    account, _ids = keys
    hosts = [f"web{number:03}" for number in range(200)]
    error = refusal(account, "plan", play_hosts=hosts)
    assert "web000, web001, web002, web003, web004 and 195 more did not report" in str(error)
    assert error.details["hosts"] == hosts


def test_confirmations_do_not_grow_with_the_number_of_hosts(keys: Keys) -> None:
    """Each host's arguments and results would have the names of all hosts."""
    account, ids = keys
    sizes = set()
    for number in (10, 1000):
        hosts = [f"web{index:04}" for index in range(number)]
        found = [confirmation(account, host, ids[-1], known_keys=known(account, ids, *hosts)) for host in hosts[:3]]
        results = [one.as_result(id_of_list(hosts)) for one in found]
        assert [result["host_lists"] for result in results] == [[]] * 3
        sizes |= {len(json.dumps(result)) for result in results}
        # In a play with other hosts, it is one list for all keys.
        assert [len(one.as_result(id_of_list(hosts[1:]))["host_lists"]) for one in found] == [1] * 3
        assert run(account, "plan", found[0], play_hosts=hosts[:1])["hosts"] == hosts
    assert len(sizes) == 1 and max(sizes) < 1200


def test_confirmations_of_earlier_runs_need_no_lists(keys: Keys) -> None:
    """A later play in the same playbook has other hosts, and the results of the former one are still registered."""
    account, ids = keys
    former = confirmation(account, "web1", ids[-1]).as_result(id_of_list(["web1", "web2"]))["confirmation"]
    assert confirmations_from([former], Run("later", {}), ["db1"], []) == []


def test_retired_hosts_are_not_expected(keys: Keys) -> None:
    account, ids = keys
    one, _other = both(account, ids[-1])
    plan = run(account, "plan", one, play_hosts=["web1"], retired_hosts=["web1", "web2"])
    assert plan["hosts"] == ["web1"]


def test_hosts_of_revoked_keys_are_not_expected(keys: Keys) -> None:
    account, ids = keys
    found = [one._replace(known_keys={**one.known_keys, 999: KnownKey(["gone"], "")}) for one in both(account, ids[-1])]
    assert run(account, "plan", *found)["hosts"] == ["web1", "web2"]


@pytest.mark.parametrize(("own", "others"), [({"keep": 1}, {"keep": 2}), ({"keep": 1}, {}), ({}, {"keep": 1})])
def test_variables_that_differ_are_refused(keys: Keys, own: dict[str, Any], others: dict[str, Any]) -> None:
    account, ids = keys
    one, other = (
        confirmation(account, host, ids[-1], variables=values) for host, values in (("web1", own), ("web2", others))
    )
    earlier = confirmation(account, "web3", ids[-1], run="earlier", variables={"keep": 3})
    error = refusal(account, "plan", one, other, earlier, variables=own)
    assert error.details == {"hosts": ["web2"]}
    assert "keep (on web2)" in str(error)
    assert refusal(account, "revoke", one, other, key_id=ids[-1], variables=own).details["hosts"] == ["web2"]
    assert run(account, "plan", one, other._replace(variables=one.variables), earlier, variables=own)["reason"] == ""


def test_without_records_the_user_names_the_hosts(account: SimulatedAccount) -> None:
    found = both(account, None, has_file=False, has_record=False, known_keys={})
    assert "Set api_key_rotation_hosts" in str(refusal(account, "plan", *found))
    assert run(account, "plan", *found, hosts=["web1", "web2"])["hosts"] == ["web1", "web2"]


@pytest.mark.parametrize("never", [None, "0001-01-01T00:00:00Z"])
def test_without_records_a_key_that_was_never_used_is_replaced(keys: Keys, never: str | None) -> None:
    account, _ids = keys
    newest = add_key(account, is_used=False)
    account.keys[newest]["last_used_at"] = never
    found = both(account, None, has_file=False, has_record=False, known_keys={})
    plan = run(account, "plan", *found, hosts=["web1", "web2"])
    assert plan["reason"] == f"key {newest} was never used, so its deployment was not completed"


def test_without_files_nothing_is_revoked_later(keys: Keys) -> None:
    account, ids = keys
    plan = run(account, "plan", *both(account, ids[-1], has_file=False, sha256=None, accepted=None))
    assert (plan["reason"], plan["revoke"], plan["left"]) == ("", False, ids[:2])
    assert f"Keys {ids[0]} and {ids[1]} of this name remain valid until the next rotation" in plan["warnings"][0]


def test_key_that_is_not_recorded_for_a_host_is_replaced(keys: Keys) -> None:
    account, ids = keys
    # A copy of web1, with its file and its record.
    found = both(account, ids[-1])
    copy = found[0]._replace(host="web3")
    plan = run(account, "plan", *found, copy, play_hosts=["web1", "web2", "web3"])
    assert plan["reason"] == f"key {ids[-1]} is not confirmed on web3"


@pytest.mark.parametrize("name", ["deploy", "{timestamp}", "a-{timestamp}-{timestamp}"])
def test_name_needs_the_placeholder_once(account: SimulatedAccount, name: str) -> None:
    with pytest.raises(InvalidOption, match="name: must contain {timestamp} exactly once"):
        run(account, "plan", *both(account, None), name=name)


def test_runs_that_are_limited_by_tags_are_refused(keys: Keys) -> None:
    account, ids = keys
    assert "vault" in str(refusal(account, "plan", *both(account, ids[-1]), tags=["vault"]))


@pytest.mark.parametrize("number", [1, 2])
def test_keys_of_others_are_left(keys: Keys, number: int) -> None:
    account, ids = keys
    plan = run(account, "plan", *both(account, ids[-1], known_keys=known(account, ids[number:])))
    assert plan["left"] == ids[:number]
    assert "no record of these hosts" in plan["warnings"][0]
    records: dict[str, Any] = {"has_record": False, "known_keys": {}}
    plan = run(account, "plan", *both(account, ids[-1], **records), hosts=["web1", "web2"], keep=2 - number)
    assert plan["left"] == ids[:number]
    assert "api_key_rotation_own_key" in plan["warnings"][0]


@pytest.mark.parametrize("keep, revoke", [(0, True), (1, True), (2, False), (3, False)])
def test_whether_keys_are_left_to_revoke(keep: int, revoke: bool) -> None:
    account = SimulatedAccount()
    ids = [add_key(account) for _number in range(3)]
    assert run(account, "plan", *both(account, ids[-1]), keep=keep)["revoke"] is revoke
    # A new key makes all others older.
    assert run(account, "plan", *both(account, ids[-1]), keep=keep, max_age="0")["revoke"] is (keep < 3)


@pytest.mark.parametrize("keep, left", [(0, 2), (1, 1), (2, 0)])
def test_without_records_no_key_is_revoked(keep: int, left: int) -> None:
    account = SimulatedAccount()
    ids = [add_key(account) for _number in range(3)]
    found = both(account, None, has_file=False, has_record=False, known_keys={})
    for max_age, number in (("30d", left), ("0", left + 1)):
        plan = run(account, "plan", *found, hosts=["web1", "web2"], keep=keep, max_age=max_age)
        assert (plan["revoke"], plan["left"]) == (False, ids[:number])


@pytest.mark.parametrize(
    "has_file, accepted, is_deployed",
    [(True, True, True), (True, None, False), (False, None, True), (False, False, False)],
)
def test_a_file_must_be_accepted(has_file: bool, accepted: bool | None, is_deployed: bool) -> None:
    account = SimulatedAccount()
    key_id = add_key(account)
    found = confirmation(account, "web1", key_id, has_file=has_file, accepted=accepted)
    assert found.has_deployed(key_id) is is_deployed


@pytest.mark.parametrize("seconds, counts", [(3600, True), (3601, False), (-3600, True), (-3601, False)])
def test_confirmation_is_not_older_than_an_hour(seconds: float, counts: bool) -> None:
    account = SimulatedAccount()
    found = confirmation(account, "web1", None, checked_at=(EPOCH - timedelta(seconds=seconds)).isoformat())
    assert bool(current_confirmations([found], Run("run", {}), EPOCH)) is counts
