# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which keys are revoked, and which stay valid, by the confirmations of the hosts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import ClouddbError, InvalidOption
from ansible_collections.clouddb.control.plugins.module_utils._rotation.confirmation import Confirmation
from ansible_collections.clouddb.control.plugins.module_utils._rotation.record import checksum
from ansible_collections.clouddb.control.plugins.module_utils._timestamps import parse_timestamp
from ansible_collections.clouddb.control.tests.unit.plugins.module_utils.rotation.rotations import (
    Keys,
    add_key,
    both,
    known,
    refusal,
    run,
)
from ansible_collections.clouddb.control.tests.unit.support.simulated_account import SimulatedAccount


def test_revokes_the_older_keys(keys: Keys) -> None:
    account, ids = keys
    older = [dict(account.keys[key_id]) for key_id in ids[:2]]
    result = run(account, "revoke", *both(account, ids[-1]), key_id=ids[-1])
    assert result == {
        "changed": True,
        "api_key": account.keys[ids[-1]],
        "left": [],
        "warnings": [],
        "revoked": [{**key, "revoked": True} for key in older],
    }
    assert list(account.keys) == [1, ids[-1]]


@pytest.mark.parametrize(
    "fields, problem",
    [
        ({"run": "another run"}, "did not report in this run"),
        ({"checked_at": "2026-11-21T08:00:00Z"}, "did not report in this run"),
        ({"key_id": 3}, "holds key 3"),
        ({"key_id": None}, "holds another secret or none"),
        ({"accepted": False}, "holds a secret that the service does not accept"),
        ({"accepted": None}, "holds a secret that the service does not accept"),
        ({"state": "deployed"}, "may still be rolled back"),
        ({"state": "deploying"}, "may still be rolled back"),
    ],
)
def test_incomplete_confirmation_is_refused(keys: Keys, fields: dict[str, Any], problem: str) -> None:
    account, ids = keys
    one, other = both(account, ids[-1])
    error = refusal(account, "revoke", one, other._replace(**fields), key_id=ids[-1])
    assert f"web2 {problem}." in str(error)
    assert error.details["hosts"] == ["web2"]


def test_key_that_is_not_the_newest_is_refused(keys: Keys) -> None:
    account, ids = keys
    assert "is no longer the newest key" in str(refusal(account, "revoke", *both(account, ids[1]), key_id=ids[1]))


def test_a_key_id_is_required(keys: Keys) -> None:
    account, ids = keys
    with pytest.raises(InvalidOption, match="key_id"):
        run(account, "revoke", *both(account, ids[-1]))


@pytest.mark.parametrize("keep, kept", [(0, 0), (1, 1), (2, 2), (3, 2)])
def test_keeps_the_latest_keys(keys: Keys, keep: int, kept: int) -> None:
    account, ids = keys
    # Uses that the service shows late decide nothing.
    account.keys[ids[1]]["last_used_at"] = None
    result = run(account, "revoke", *both(account, ids[-1]), key_id=ids[-1], keep=keep)
    assert [key["id"] for key in result["revoked"]] == ids[: 2 - kept]


def incomplete(account: SimulatedAccount, ids: list[int], key_id: int, on: str) -> list[Confirmation]:
    """Confirmations of the newest key, in which the deployment of C(key_id) was not completed C(on) a host, or not recorded."""
    found = both(account, ids[-1])
    keys = dict(found[1].known_keys)
    if on == "web2, unrecorded":
        del keys[key_id]
    else:
        keys[key_id] = keys[key_id]._replace(confirmed=False)
    return [one._replace(known_keys=keys) if on.startswith(one.host) or on == "both" else one for one in found]


@pytest.mark.parametrize("on", ["both", "web2", "web2, unrecorded"])
def test_a_key_that_was_not_deployed_to_all_hosts_does_not_count_as_kept(keys: Keys, on: str) -> None:
    """A run was killed, or failed and could not be rolled back, so hosts may have either key."""
    account, ids = keys
    found = incomplete(account, ids, ids[1], on)
    plan = run(account, "plan", *found, keep=1)
    assert (plan["reason"], plan["revoke"], plan["left"]) == ("", False, [ids[1]])
    assert f"Key {ids[1]} of this name remains valid until a later rotation" in plan["warnings"][0]
    assert run(account, "revoke", *found, key_id=ids[-1], keep=1)["revoked"] == []
    assert list(account.keys) == [1, *ids]

    # The next rotation that is completed.
    newest = add_key(account)
    found = [
        now._replace(known_keys={**before.known_keys, **known(account, [newest])})
        for now, before in zip(both(account, newest), found)
    ]
    assert run(account, "plan", *found, keep=1)["left"] == []
    result = run(account, "revoke", *found, key_id=newest, keep=1)
    assert [key["id"] for key in result["revoked"]] == ids[:2]


def test_each_host_keeps_its_own_keys(keys: Keys) -> None:
    """The hosts had separate rotations of this name before."""
    account, ids = keys
    recorded = {**known(account, ids[:1], "web1"), **known(account, ids[1:2], "web2"), **known(account, ids[2:])}
    found = both(account, ids[-1], known_keys=recorded)
    assert run(account, "plan", *found, keep=1)["left"] == []
    assert run(account, "revoke", *found, key_id=ids[-1], keep=1)["revoked"] == []


def test_a_key_that_was_not_deployed_is_revoked_if_none_is_kept(keys: Keys) -> None:
    account, ids = keys
    found = incomplete(account, ids, ids[1], "both")
    assert run(account, "plan", *found)["left"] == []
    assert [key["id"] for key in run(account, "revoke", *found, key_id=ids[-1])["revoked"]] == ids[:2]


@pytest.mark.parametrize("shows_uses", [True, False])
def test_own_key_is_known_by_its_checksum(keys: Keys, monkeypatch: pytest.MonkeyPatch, shows_uses: bool) -> None:
    account, ids = keys
    account.secrets[1], account.secrets[ids[0]] = account.secrets[ids[0]], account.secrets[1]
    found = both(account, ids[-1])
    if not shows_uses:
        monkeypatch.setattr(account, "use", lambda secret: None)
    result = run(account, "revoke", *found, key_id=ids[-1])
    assert (list(account.keys), result["left"]) == ([1, ids[0], ids[-1]], [ids[0]])
    assert result["warnings"] == [
        f"The task's own key is not revoked: key {ids[0]} of this name. Switch to the newest key, then run the role again."
    ]


@pytest.mark.parametrize("is_used", [True, False])
@pytest.mark.parametrize("has_record", [True, False])
def test_key_without_a_record_may_be_the_own_one(account: SimulatedAccount, is_used: bool, has_record: bool) -> None:
    """Created by hand, or before the records were lost. The service lists uses late."""
    own, newest = add_key(account, is_used), add_key(account)
    account.secrets[1], account.secrets[own] = account.secrets[own], account.secrets[1]
    records: dict[str, Any] = {"has_record": has_record, "known_keys": known(account, [newest] if has_record else [])}
    options: dict[str, Any] = {"hosts": ["web1", "web2"]}
    for max_age in ("0", "30d"):
        plan = run(account, "plan", *both(account, newest, **records), max_age=max_age, **options)
        assert own in plan["left"] and plan["warnings"]
    result = run(account, "revoke", *both(account, newest, **records), key_id=newest, **options)
    assert (result["revoked"], list(account.keys)) == ([], [1, own, newest])


WITHOUT_RECORD: dict[str, Any] = {"has_record": False, "has_file": False, "sha256": None, "known_keys": {}}


@pytest.mark.parametrize("is_name", [False, True])
def test_without_records_the_named_own_key_is_not_revoked(keys: Keys, is_name: bool) -> None:
    account, ids = keys
    account.clock.elapsed += 3600
    ids.append(add_key(account))
    options = {"hosts": ["web1", "web2"], "own_key": account.keys[ids[2]]["name"] if is_name else str(ids[2])}
    plan = run(account, "plan", *both(account, None, **WITHOUT_RECORD), max_age="0", **options)
    assert (plan["revoke"], plan["left"], plan["warnings"]) == (True, [], [])
    found = both(account, ids[-1], **WITHOUT_RECORD)
    error = refusal(account, "revoke", found[0], key_id=ids[-1], **options)
    assert error.details["hosts"] == ["web2"]
    result = run(account, "revoke", *found, key_id=ids[-1], **options)
    assert ([key["id"] for key in result["revoked"]], result["left"]) == (ids[:2], [ids[2]])


@pytest.mark.parametrize(
    "minutes, grace_period, is_left", [(59, 0, False), (61, 0, True), (61, 120, False), (63, 120, True)]
)
@pytest.mark.parametrize("own", ["deploy-20261121T100000Z", "administrator"])
def test_without_records_a_key_that_somebody_else_uses_is_left(
    keys: Keys, own: str, minutes: int, grace_period: int, is_left: bool
) -> None:
    """It was used since the key that replaced it was deployed. A run of the role uses the former key until it ends."""
    account, ids = keys
    used_at = parse_timestamp(account.keys[ids[1]]["created_at"]) + timedelta(minutes=minutes)
    account.keys[ids[0]]["last_used_at"] = used_at.isoformat()
    options: dict[str, Any] = {"hosts": ["web1", "web2"], "grace_period": grace_period, "keep": 1}
    found = both(account, ids[2], **WITHOUT_RECORD)
    result = run(account, "revoke", *found, key_id=ids[2], own_key=own, **options)
    assert ([key["id"] for key in result["revoked"]], result["left"]) == (([], ids[:1]) if is_left else (ids[:1], []))
    warnings = [
        f"Key {ids[0]} of this name remains valid, because of a use after key {ids[1]} was deployed, which may be somebody else's. "
        "Use a separate api_key_rotation_name for each store. Revoke keys that nothing uses by their ids."
    ]
    assert result["warnings"] == (warnings if is_left else [])


def test_without_records_a_key_that_was_never_used_does_not_count_as_kept(keys: Keys) -> None:
    """A run was killed before it deployed the key."""
    account, ids = keys
    account.keys[ids[1]]["last_used_at"] = None
    options: dict[str, Any] = {"hosts": ["web1", "web2"], "own_key": "administrator", "keep": 1}
    found = both(account, ids[2], **WITHOUT_RECORD)
    assert run(account, "plan", *found, max_age="0", **options)["revoke"]
    assert run(account, "revoke", *found, key_id=ids[2], **options)["revoked"] == []


def test_with_records_a_late_use_is_not_a_reason(keys: Keys) -> None:
    account, ids = keys
    account.clock.elapsed += 86400
    account.use(account.secrets[ids[0]])
    result = run(account, "revoke", *both(account, ids[-1]), key_id=ids[-1], own_key="administrator")
    assert [key["id"] for key in result["revoked"]] == ids[:2]


def test_own_key_that_is_named_does_not_replace_a_record(keys: Keys) -> None:
    account, ids = keys
    found = both(account, ids[-1], known_keys=known(account, ids[1:]))
    result = run(account, "revoke", *found, key_id=ids[-1], own_key=str(ids[1]))
    assert (result["revoked"], result["left"]) == ([], [ids[1]])


@pytest.mark.parametrize("step", ["plan", "revoke"])
def test_own_key_that_the_account_does_not_have_is_refused(keys: Keys, step: str) -> None:
    account, ids = keys
    with pytest.raises(InvalidOption) as error:
        run(account, step, *both(account, ids[-1]), key_id=ids[-1], own_key="999")
    assert error.value.details["option"] == "own_key"


def test_keys_of_unknown_hosts_are_not_revoked(keys: Keys) -> None:
    account, ids = keys
    recorded = known(account, ids[1:])
    plan = run(account, "plan", *both(account, ids[-1], known_keys=recorded))
    assert plan["left"] == [ids[0]]
    result = run(account, "revoke", *both(account, ids[-1], known_keys=recorded), key_id=ids[-1])
    assert [key["id"] for key in result["revoked"]] == [ids[1]]


def test_groups_of_hosts_that_share_a_name_keep_their_own_keys(keys: Keys) -> None:
    account, ids = keys
    own = known(account, ids[:2])
    plan = run(account, "plan", *both(account, ids[1], known_keys=own))
    assert (plan["reason"], plan["api_key"]["id"], plan["left"]) == ("", ids[1], [ids[2]])
    run(account, "revoke", *both(account, ids[1], known_keys=own), key_id=ids[1])
    assert list(account.keys) == [1, *ids[1:]]


def test_keys_of_other_names_are_not_touched(keys: Keys) -> None:
    account, ids = keys
    others = [account.create(name)[0] for name in ("deploy-tools", "deploy-2026", "xdeploy-20261121T080000Z")]
    run(account, "revoke", *both(account, ids[-1]), key_id=ids[-1])
    assert list(account.keys) == [1, ids[-1], *others]


# Withdraw


def roll_back(account: SimulatedAccount, key_id: int, *found: Confirmation, **options: Any) -> ClouddbError:
    errors = {"web2": "Write the key: the disk is full"}
    with pytest.raises(ClouddbError) as error:
        run(account, "roll_back", *found, key_id=key_id, key=account.secrets[key_id], errors=errors, **options)
    assert account.secrets[key_id] not in str(error.value)
    return error.value


def rolled_back(account: SimulatedAccount, ids: list[int], **fields: Any) -> list[Confirmation]:
    free = {"rolled_back": ids[-1], "tasks_rolled_back": True}
    return both(account, ids[-2], **{**free, **fields})


def test_new_key_that_no_host_holds_is_revoked(keys: Keys) -> None:
    account, ids = keys
    error = roll_back(account, ids[-1], *rolled_back(account, ids))
    assert list(account.keys) == [1, *ids[:-1]]
    assert f"web2: Write the key: the disk is full. Rolled back: web1. Key {ids[-1]} was revoked." in str(error)
    assert error.details["hosts"] == ["web2"]


@pytest.mark.parametrize("fields", [{"tasks_rolled_back": False}, {"rolled_back": None}, {"run": "another run"}])
def test_new_key_that_a_host_may_hold_stays_valid(keys: Keys, fields: dict[str, Any]) -> None:
    account, ids = keys
    one, other = rolled_back(account, ids)
    error = roll_back(account, ids[-1], one._replace(**fields), other)
    assert ids[-1] in account.keys
    assert f"Key {ids[-1]} is still valid, because it may be in use on web1." in str(error)


@pytest.mark.parametrize("field", ["sha256", "return_sha256"])
def test_new_key_that_a_host_holds_or_restores_stays_valid(keys: Keys, field: str) -> None:
    account, ids = keys
    one, other = rolled_back(account, ids)
    roll_back(account, ids[-1], one._replace(**{field: checksum(account.secrets[ids[-1]])}), other)
    assert ids[-1] in account.keys


def test_new_key_of_a_missing_host_stays_valid(keys: Keys) -> None:
    account, ids = keys
    _one, other = rolled_back(account, ids)
    error = roll_back(account, ids[-1], other)
    assert "web1: The host left the play." in str(error)
    assert ids[-1] in account.keys


def test_new_key_that_another_rotation_has_revoked(keys: Keys) -> None:
    account, ids = keys
    found = rolled_back(account, ids)
    del account.keys[ids[-1]]
    assert f"Key {ids[-1]} has been revoked by another rotation" in str(roll_back(account, ids[-1], *found))


def test_rollback_in_check_mode(keys: Keys) -> None:
    account, ids = keys
    found = rolled_back(account, ids, run="run (check mode)")
    assert "would be revoked" in str(roll_back(account, ids[-1], *found, check_mode=True))
    assert ids[-1] in account.keys


def test_failed_revocation_has_the_result_so_far(keys: Keys) -> None:
    account, ids = keys
    # A list, a DELETE that succeeds, and one that fails.
    requests = iter([None] * 2 + ["error"])
    account.before_request = lambda: next(requests, "error")
    with pytest.raises(ClouddbError) as error:
        run(account, "revoke", *both(account, ids[-1]), key_id=ids[-1])
    result = error.value.as_result()
    assert ([key["id"] for key in result["revoked"]], result["left"], result["changed"]) == ([ids[0]], [], True)
    assert result["api_key"]["id"] == ids[-1]


def test_rollback_of_several_hosts(keys: Keys) -> None:
    account, ids = keys
    found = [one._replace(host=host) for one, host in zip(rolled_back(account, ids), ("web1", "web3"))]
    found += [found[0]._replace(host="web4", rolled_back=None)]
    error = roll_back(account, ids[-1], *found, play_hosts=["web1", "web2", "web3", "web4"])
    for text in (
        "Rolled back: web1 and web3.",
        f"Key {ids[-1]} is still valid, because it may be in use on web2 and web4.",
    ):
        assert text in str(error)


@pytest.mark.parametrize(
    "fault, text",
    [
        ("refused", "Key {} could not be revoked. not sent."),
        ("error", "Key {} may still be valid, because the service did not confirm the revocation. internal error."),
    ],
)
def test_rollback_that_fails(fault: str, text: str) -> None:
    account = SimulatedAccount()
    ids = [add_key(account) for _number in range(3)]
    found = rolled_back(account, ids)
    requests = iter([None])
    account.before_request = lambda: next(requests, fault)
    assert text.format(ids[-1]) in str(roll_back(account, ids[-1], *found))
    assert ids[-1] in account.keys
