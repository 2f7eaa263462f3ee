# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps of a rotation by the confirmations of its hosts: whether a new key is needed, and which keys are revoked."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import ClouddbError
from ansible_collections.clouddb.control.plugins.module_utils._rotation import confirmation as confirmations
from ansible_collections.clouddb.control.plugins.module_utils._rotation.host_lists import id_of_list, keys_with_ids
from ansible_collections.clouddb.control.plugins.module_utils._rotation.record import KnownKey, checksum, checksum_of
from ansible_collections.clouddb.control.plugins.module_utils._timestamps import parse_timestamp
from ansible_collections.clouddb.control.plugins.modules import api_key_rotation
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import EPOCH
from ansible_collections.clouddb.control.tests.unit.support.module_main import defaults_of
from ansible_collections.clouddb.control.tests.unit.support.simulated_account import SimulatedAccount

WITHOUT_RECORD: dict[str, Any] = {"has_record": False, "has_file": False, "sha256": None, "known_keys": {}}
BOTH = ["web1", "web2"]
INVALID_NAMES = ("deploy", "{timestamp}", "a-{timestamp}-{timestamp}")


class Keys:
    """An account with keys, and the confirmations of the hosts web1 and web2 about them."""

    def __init__(self, number: int = 0):
        self.account = SimulatedAccount()
        self.ids: list[int] = []
        for _number in range(number):
            self.add_key()

    @property
    def newest(self) -> int:
        return self.ids[-1]

    def add_key(self, is_used: bool = True) -> int:
        """The id of a new key, an hour later than the last."""
        created_at = EPOCH + timedelta(seconds=self.account.clock.elapsed + 3600)
        self.ids += self.account.add(f"deploy-{created_at:%Y%m%dT%H%M%SZ}", seconds=3600, is_used=is_used)
        return self.newest

    def authenticate_with(self, own: int) -> None:
        secrets = self.account.secrets
        secrets[1], secrets[own] = secrets[own], secrets[1]

    def known(self, ids: list[int], *hosts: str) -> dict[int, KnownKey]:
        """The keys as records have them, once their deployments were completed."""
        secrets = self.account.secrets
        return {key_id: KnownKey(list(hosts) or BOTH, checksum(secrets[key_id]), True) for key_id in ids}

    def confirmation(self, host: str, key_id: int | None, **fields: Any) -> confirmations.Confirmation:
        """The confirmation of a host that is committed to this key."""
        secret = self.account.secrets.get(key_id or 0)
        run = confirmations.run_from({"run": "run", "variables": fields.pop("variables", {})}, check_mode=False)
        confirmation = confirmations.Confirmation(
            host=host,
            run=run.id,
            variables=run.variables,
            has_file=True,
            has_record=True,
            sha256=checksum_of(secret),
            accepted=secret and self.account.is_active(secret),
            checked_at=self.account.now(),
            key_id=key_id,
            state="committed" if key_id else None,
            deployed_at=self.account.now() if key_id else None,
            return_sha256=None,
            known_keys=self.known(list(self.account.keys)),
            fingerprint="",
            rolled_back=None,
        )
        return confirmation._replace(**fields)

    def run(self, step: str, *found: confirmations.Confirmation, check_mode: bool = False, **options: Any) -> Any:
        results = [one.as_result(id_of_list(options.get("play_hosts", BOTH))) for one in found]
        params = {
            **defaults_of(api_key_rotation),
            "step": step,
            "name": "deploy-{timestamp}",
            "run": "run",
            "confirmations": [result["confirmation"] for result in results],
            "play_hosts": ["web1", "web2"],
            "host_lists": [text for result in results for text in result["host_lists"]],
            **options,
        }
        return api_key_rotation.run(params, self.account.client(), check_mode)

    def both(self, key_id: int | None, **fields: Any) -> list[confirmations.Confirmation]:
        return [self.confirmation(host, key_id, **fields) for host in BOTH]

    def revoked(self, *found: confirmations.Confirmation, **options: Any) -> tuple[list[int], list[int]]:
        """The ids of the keys that the step revokes, and of those that it leaves. C(key_id) is the newest."""
        result = self.run("revoke", *found, **{"key_id": self.newest, **options})
        return [key["id"] for key in result["revoked"]], result["left"]

    def refusal(self, step: str, *found: confirmations.Confirmation, **options: Any) -> ClouddbError:
        """The error of a step that is refused, after which all keys are as before."""
        before = list(self.account.keys)
        with pytest.raises(ClouddbError) as error:
            self.run(step, *found, **options)
        assert list(self.account.keys) == before
        return error.value

    def incomplete(self, key_id: int, on: str) -> list[confirmations.Confirmation]:
        """Confirmations of the newest key, in which the deployment of C(key_id) was not completed C(on) a host, or not recorded."""
        found = self.both(self.newest)
        keys = dict(found[1].known_keys)
        if on == "web2, unrecorded":
            del keys[key_id]
        else:
            keys[key_id] = keys[key_id]._replace(confirmed=False)
        return [one._replace(known_keys=keys) if on.startswith(one.host) or on == "both" else one for one in found]

    def roll_back(self, *found: confirmations.Confirmation, **options: Any) -> ClouddbError:
        new = {"key_id": self.newest, "key": self.account.secrets[self.newest]}
        with pytest.raises(ClouddbError) as error:
            self.run("roll_back", *found, **new, errors={"web2": "Write the key: the disk is full"}, **options)
        assert self.account.secrets[self.newest] not in str(error.value)
        return error.value

    def rolled_back(self, **fields: Any) -> list[confirmations.Confirmation]:
        return self.both(self.ids[-2], rolled_back=self.newest, tasks_rolled_back=True, **fields)


@pytest.fixture
def keys() -> Keys:
    """An account with three keys that were used."""
    return Keys(3)


# Plan


def test_newest_key_that_all_hold_is_kept(keys: Keys) -> None:
    first = keys.confirmation("web1", keys.newest)
    keys.account.clock.elapsed += 60
    plan = keys.run("plan", first, keys.confirmation("web2", keys.newest), grace_period=100.0)
    assert (plan["reason"], plan["api_key"]["id"], plan["revoke"]) == ("", keys.newest, True)
    assert 99 < plan["grace_period"] <= 100  # since the latest deployment
    older_keys = {key_id: KnownKey(["web1", "web2"], checksum(keys.account.secrets[key_id])) for key_id in keys.ids}
    assert (plan["older_keys"], plan["host_lists"]) == keys_with_ids(older_keys, id_of_list(["web1", "web2"]))


@pytest.mark.parametrize("max_age, is_old", [("60", True), ("1m", True), ("0", True), ("30d", False), ("1.5h", False)])
def test_maximum_age(keys: Keys, max_age: str, is_old: bool) -> None:
    keys.account.clock.elapsed += 600
    deployed_at = keys.account.now()
    keys.account.clock.elapsed += 600
    found = keys.both(keys.newest, deployed_at=deployed_at)
    plan = keys.run("plan", *found, max_age=max_age, grace_period=5.0)
    assert plan["reason"] == (f"key {keys.newest} has reached its maximum age" if is_old else "")
    assert plan["grace_period"] == (5.0 if is_old else 0.0)


@pytest.mark.parametrize("created_at", [None, "", "soon", 5])
@pytest.mark.parametrize("position", [0, 2])
def test_key_of_unknown_age_is_refused(keys: Keys, position: int, created_at: Any) -> None:
    found = keys.both(keys.newest)
    keys.account.keys[keys.ids[position]]["created_at"] = created_at
    assert f"no valid created_at of key {keys.ids[position]}," in str(keys.refusal("plan", *found))


NOT_ACCEPTED = ({"accepted": False}, {"accepted": None}, {"has_file": False, "accepted": False})


@pytest.mark.parametrize("fields", [*NOT_ACCEPTED, {"state": "deploying"}, {"key_id": None}])
def test_key_that_is_not_confirmed_everywhere_is_replaced(keys: Keys, fields: dict[str, Any]) -> None:
    one, other = keys.both(keys.newest)
    plan = keys.run("plan", one, other._replace(**fields))
    assert plan["reason"] == f"key {keys.newest} is not confirmed on web2"


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
def test_nothing_is_created_or_revoked_while_a_host_is_missing(keys: Keys, options: Any, missing: str) -> None:
    one, _other = keys.both(keys.newest)
    error = keys.refusal("plan", one, max_age="0", **options)
    assert error.details == {"hosts": [missing]}
    assert f"{missing} did not report in this run" in str(error)
    assert keys.refusal("revoke", one, key_id=keys.newest, **options).details["hosts"] == [missing]


def test_missing_host_is_a_warning_while_no_key_is_needed(keys: Keys) -> None:
    one, other = keys.both(keys.newest)
    plan = keys.run("plan", one)
    assert (plan["reason"], plan["revoke"], plan["left"], len(plan["warnings"])) == ("", False, keys.ids[:2], 1)
    assert plan["warnings"][0].startswith("web2 did not report in this run, but it uses this key (recorded on web1).")
    # Another host needs a new key, or the missing one, to which none was deployed.
    assert keys.refusal("plan", one._replace(accepted=False)).details == {"hosts": ["web2"]}
    assert keys.refusal("plan", one, other, hosts=["web3"]).details == {"hosts": ["web3"]}


def test_messages_name_five_hosts_at_most(keys: Keys) -> None:
    hosts = [f"web{number:03}" for number in range(200)]
    error = keys.refusal("plan", play_hosts=hosts)
    assert "web000, web001, web002, web003, web004 and 195 more did not report" in str(error)
    assert error.details["hosts"] == hosts


def test_confirmations_do_not_grow_with_the_number_of_hosts(keys: Keys) -> None:
    """Each host's arguments and results would have the names of all hosts."""
    sizes = set()
    for number in (10, 1000):
        hosts = [f"web{index:04}" for index in range(number)]
        found = [keys.confirmation(host, keys.newest, known_keys=keys.known(keys.ids, *hosts)) for host in hosts[:3]]
        results = [one.as_result(id_of_list(hosts)) for one in found]
        assert [result["host_lists"] for result in results] == [[]] * 3
        sizes |= {len(json.dumps(result)) for result in results}
        # In a play with other hosts, it is one list for all keys.
        assert [len(one.as_result(id_of_list(hosts[1:]))["host_lists"]) for one in found] == [1] * 3
        assert keys.run("plan", found[0], play_hosts=hosts[:1])["hosts"] == hosts
    assert len(sizes) == 1 and max(sizes) < 1200


def test_the_order_of_hosts_and_keys_makes_no_other_list(keys: Keys) -> None:
    known = {2: KnownKey(["web2", "Web1", "web1"], "b"), 1: KnownKey(["web1", "web2", "Web1"], "a")}
    items, lists = keys_with_ids(known, None)
    assert (items, lists) == keys_with_ids(dict(sorted(known.items())), None)
    assert [key_id for key_id, *_rest in items] == [1, 2] and len(lists) == 1
    of_each = keys_with_ids({number: KnownKey([f"web{number}"], "") for number in range(9)}, None)[1]
    assert of_each == [f'["web{number}"]' for number in range(9)]
    # As the role calculates it, by sort(case_sensitive=true), to_json and hash.
    assert id_of_list(known[1].hosts) == checksum('["Web1", "web1", "web2"]')[:16] == items[0][1]


def test_confirmations_of_earlier_runs_need_no_lists(keys: Keys) -> None:
    """A later play in the same playbook has other hosts, and the results of the former one are still registered."""
    former = keys.confirmation("web1", keys.newest).as_result(id_of_list(["web1", "web2"]))["confirmation"]
    assert confirmations.confirmations_from([former], confirmations.Run("later", {}), ["db1"], []) == []


def test_retired_hosts_are_not_expected(keys: Keys) -> None:
    one, _other = keys.both(keys.newest)
    plan = keys.run("plan", one, play_hosts=["web1"], retired_hosts=BOTH)
    assert plan["hosts"] == ["web1"]


def test_hosts_of_revoked_keys_are_not_expected(keys: Keys) -> None:
    found = [one._replace(known_keys={**one.known_keys, 999: KnownKey(["gone"], "")}) for one in keys.both(keys.newest)]
    assert keys.run("plan", *found)["hosts"] == ["web1", "web2"]


@pytest.mark.parametrize(("own", "others"), [({"keep": 1}, {"keep": 2}), ({"keep": 1}, {}), ({}, {"keep": 1})])
def test_variables_that_differ_are_refused(keys: Keys, own: dict[str, Any], others: dict[str, Any]) -> None:
    one, other = (keys.confirmation(host, keys.newest, variables=each) for host, each in zip(BOTH, (own, others)))
    earlier = keys.confirmation("web3", keys.newest, run="earlier", variables={"keep": 3})
    error = keys.refusal("plan", one, other, earlier, variables=own)
    assert error.details == {"hosts": ["web2"]}
    assert "keep (on web2)" in str(error)
    assert keys.refusal("revoke", one, other, key_id=keys.newest, variables=own).details["hosts"] == ["web2"]
    assert keys.run("plan", one, other._replace(variables=one.variables), earlier, variables=own)["reason"] == ""


def test_without_records_the_user_names_the_hosts() -> None:
    keys = Keys()
    found = keys.both(None, **WITHOUT_RECORD)
    assert "Set api_key_rotation_hosts" in str(keys.refusal("plan", *found))
    assert keys.run("plan", *found, hosts=BOTH)["hosts"] == ["web1", "web2"]


@pytest.mark.parametrize("never", [None, "0001-01-01T00:00:00Z"])
def test_without_records_a_key_that_was_never_used_is_replaced(keys: Keys, never: str | None) -> None:
    newest = keys.add_key(is_used=False)
    keys.account.keys[newest]["last_used_at"] = never
    found = keys.both(None, **WITHOUT_RECORD)
    plan = keys.run("plan", *found, hosts=BOTH)
    assert plan["reason"] == f"key {newest} was never used, so its deployment was not completed"


def test_without_files_nothing_is_revoked_later(keys: Keys) -> None:
    plan = keys.run("plan", *keys.both(keys.newest, has_file=False, sha256=None, accepted=None))
    assert (plan["reason"], plan["revoke"], plan["left"]) == ("", False, keys.ids[:2])
    assert "Keys {} and {} of this name remain valid until the next rotation".format(*keys.ids) in plan["warnings"][0]


def test_key_that_is_not_recorded_for_a_host_is_replaced(keys: Keys) -> None:
    # A copy of web1, with its file and its record.
    found = keys.both(keys.newest)
    copy = found[0]._replace(host="web3")
    plan = keys.run("plan", *found, copy, play_hosts=["web1", "web2", "web3"])
    assert plan["reason"] == f"key {keys.newest} is not confirmed on web3"


@pytest.mark.parametrize("number", [1, 2])
def test_keys_of_others_are_left(keys: Keys, number: int) -> None:
    recorded = keys.known(keys.ids[number:])
    found = keys.both(keys.newest, known_keys=recorded)
    plan = keys.run("plan", *found)
    assert plan["left"] == keys.ids[:number]
    assert "no record of these hosts" in plan["warnings"][0]
    records: dict[str, Any] = {"has_record": False, "known_keys": {}}
    plan = keys.run("plan", *keys.both(keys.newest, **records), hosts=BOTH, keep=2 - number)
    assert plan["left"] == keys.ids[:number]
    assert "api_key_rotation_own_key" in plan["warnings"][0]
    assert keys.revoked(*found)[0] == keys.ids[number:-1]


@pytest.mark.parametrize("keep, revoke", [(0, True), (1, True), (2, False), (3, False)])
def test_whether_keys_are_left_to_revoke(keys: Keys, keep: int, revoke: bool) -> None:
    assert keys.run("plan", *keys.both(keys.newest), keep=keep)["revoke"] is revoke
    # A new key makes all others older.
    assert keys.run("plan", *keys.both(keys.newest), keep=keep, max_age="0")["revoke"] is (keep < 3)


@pytest.mark.parametrize("keep, left", [(0, 2), (1, 1), (2, 0)])
def test_without_records_no_key_is_revoked(keys: Keys, keep: int, left: int) -> None:
    found = keys.both(None, **WITHOUT_RECORD)
    for max_age, number in (("30d", left), ("0", left + 1)):
        plan = keys.run("plan", *found, hosts=BOTH, keep=keep, max_age=max_age)
        assert (plan["revoke"], plan["left"]) == (False, keys.ids[:number])


@pytest.mark.parametrize("seconds, counts", [(3600, True), (3601, False), (-3600, True), (-3601, False)])
def test_confirmation_is_not_older_than_an_hour(seconds: float, counts: bool) -> None:
    keys = Keys()
    found = keys.confirmation("web1", None, checked_at=(EPOCH - timedelta(seconds=seconds)).isoformat())
    assert bool(confirmations.current_confirmations([found], confirmations.Run("run", {}), EPOCH)) is counts


# Revoke


def test_revokes_the_older_keys(keys: Keys) -> None:
    older = [dict(keys.account.keys[key_id]) for key_id in keys.ids[:2]]
    result = keys.run("revoke", *keys.both(keys.newest), key_id=keys.newest)
    revoked = {"api_key": keys.account.keys[keys.newest], "revoked": [{**key, "revoked": True} for key in older]}
    assert result == {**revoked, "changed": True, "left": [], "warnings": []}
    assert list(keys.account.keys) == [1, keys.newest]


@pytest.mark.parametrize(
    "fields, problem",
    [
        ({"run": "another run"}, "did not report in this run"),
        ({"checked_at": "2026-11-21T08:00:00Z"}, "did not report in this run"),
        ({"key_id": 3}, "holds key 3"),
        ({"key_id": None}, "holds another secret or none"),
        *((fields, "holds a secret that the service does not accept") for fields in NOT_ACCEPTED),
        *(({"state": state}, "may still be rolled back") for state in ("deployed", "deploying")),
    ],
)
def test_incomplete_confirmation_is_refused(keys: Keys, fields: dict[str, Any], problem: str) -> None:
    one, other = keys.both(keys.newest)
    error = keys.refusal("revoke", one, other._replace(**fields), key_id=keys.newest)
    assert (f"web2 {problem}." in str(error), error.details["hosts"]) == (True, ["web2"])


def test_key_that_is_not_the_newest_is_refused(keys: Keys) -> None:
    assert "is no longer the newest key" in str(keys.refusal("revoke", *keys.both(keys.ids[1]), key_id=keys.ids[1]))


def test_check_mode_shows_what_the_rotation_would_revoke(keys: Keys) -> None:
    """It has no id of a new key, for which the newest one is revoked as well."""
    result = keys.run("revoke", *keys.both(keys.newest, run="run (check mode)"), check_mode=True)
    assert (result["changed"], [key["id"] for key in result["revoked"]]) == (True, keys.ids)
    assert list(keys.account.keys) == [1, *keys.ids]


@pytest.mark.parametrize("keep, kept", [(0, 0), (1, 1), (2, 2), (3, 2)])
def test_keeps_the_latest_keys(keys: Keys, keep: int, kept: int) -> None:
    # Uses that the service shows late decide nothing.
    keys.account.keys[keys.ids[1]]["last_used_at"] = None
    assert keys.revoked(*keys.both(keys.newest), keep=keep)[0] == keys.ids[: 2 - kept]


@pytest.mark.parametrize("on", ["both", "web2", "web2, unrecorded"])
def test_a_key_that_was_not_deployed_to_all_hosts_does_not_count_as_kept(keys: Keys, on: str) -> None:
    """A run was killed, or failed and could not be rolled back, so hosts may have either key."""
    found = keys.incomplete(keys.ids[1], on)
    plan = keys.run("plan", *found, keep=1)
    assert (plan["reason"], plan["revoke"], plan["left"]) == ("", False, [keys.ids[1]])
    assert f"Key {keys.ids[1]} of this name remains valid until a later rotation" in plan["warnings"][0]
    assert keys.revoked(*found, keep=1)[0] == []
    assert list(keys.account.keys) == [1, *keys.ids]
    # The next rotation that is completed.
    keys.add_key()
    known = [{**before.known_keys, **keys.known([keys.newest])} for before in found]
    found = [now._replace(known_keys=each) for now, each in zip(keys.both(keys.newest), known)]
    assert keys.run("plan", *found, keep=1)["left"] == []
    assert keys.revoked(*found, keep=1)[0] == keys.ids[:2]


def test_each_host_keeps_its_own_keys(keys: Keys) -> None:
    """The hosts had separate rotations of this name before."""
    recorded = {**keys.known(keys.ids[:1], "web1"), **keys.known(keys.ids[1:2], "web2"), **keys.known(keys.ids[2:])}
    found = keys.both(keys.newest, known_keys=recorded)
    assert keys.run("plan", *found, keep=1)["left"] == []
    assert keys.revoked(*found, keep=1)[0] == []


def test_a_key_that_was_not_deployed_is_revoked_if_none_is_kept(keys: Keys) -> None:
    found = keys.incomplete(keys.ids[1], "both")
    assert keys.run("plan", *found)["left"] == []
    assert keys.revoked(*found)[0] == keys.ids[:2]


@pytest.mark.parametrize("shows_uses", [True, False])
def test_own_key_is_known_by_its_checksum(keys: Keys, monkeypatch: pytest.MonkeyPatch, shows_uses: bool) -> None:
    keys.authenticate_with(keys.ids[0])
    found = keys.both(keys.newest)
    if not shows_uses:
        monkeypatch.setattr(keys.account, "use", lambda secret: None)
    result = keys.run("revoke", *found, key_id=keys.newest)
    assert (list(keys.account.keys), result["left"]) == ([1, keys.ids[0], keys.newest], [keys.ids[0]])
    is_own = f"The task's own key is not revoked: key {keys.ids[0]} of this name."
    assert result["warnings"] == [f"{is_own} Switch to the newest key, then run the role again."]


@pytest.mark.parametrize("is_used", [True, False])
@pytest.mark.parametrize("has_record", [True, False])
def test_key_without_a_record_may_be_the_own_one(is_used: bool, has_record: bool) -> None:
    """Created by hand, or before the records were lost. The service lists uses late."""
    keys = Keys()
    own, newest = keys.add_key(is_used), keys.add_key()
    keys.authenticate_with(own)
    records: dict[str, Any] = {"has_record": has_record, "known_keys": keys.known([newest] if has_record else [])}
    for max_age in ("0", "30d"):
        plan = keys.run("plan", *keys.both(newest, **records), max_age=max_age, hosts=BOTH)
        assert own in plan["left"] and plan["warnings"]
    assert keys.revoked(*keys.both(newest, **records), hosts=BOTH)[0] == []
    assert list(keys.account.keys) == [1, own, newest]


@pytest.mark.parametrize("is_name", [False, True])
def test_without_records_the_named_own_key_is_not_revoked(keys: Keys, is_name: bool) -> None:
    keys.account.clock.elapsed += 3600
    keys.add_key()
    own = keys.ids[2]
    options = {"hosts": BOTH, "own_key": keys.account.keys[own]["name"] if is_name else str(own)}
    plan = keys.run("plan", *keys.both(None, **WITHOUT_RECORD), max_age="0", **options)
    assert (plan["revoke"], plan["left"], plan["warnings"]) == (True, [], [])
    found = keys.both(keys.newest, **WITHOUT_RECORD)
    assert keys.refusal("revoke", found[0], key_id=keys.newest, **options).details["hosts"] == ["web2"]
    assert keys.revoked(*found, **options) == (keys.ids[:2], [own])


@pytest.mark.parametrize("minutes, grace, is_left", [(59, 0, False), (61, 0, True), (61, 120, False), (63, 120, True)])
@pytest.mark.parametrize("own", ["deploy-20261121T100000Z", "administrator"])
def test_a_key_that_somebody_else_uses_is_left(keys: Keys, own: str, minutes: int, grace: int, is_left: bool) -> None:
    """It was used since the key that replaced it was deployed. A run of the role uses the former key until it ends."""
    used_at = parse_timestamp(keys.account.keys[keys.ids[1]]["created_at"]) + timedelta(minutes=minutes)
    keys.account.keys[keys.ids[0]]["last_used_at"] = used_at.isoformat()
    options: dict[str, Any] = {"hosts": BOTH, "grace_period": grace, "keep": 1}
    found = keys.both(keys.ids[2], **WITHOUT_RECORD)
    result = keys.run("revoke", *found, key_id=keys.ids[2], own_key=own, **options)
    left, revoked = (keys.ids[:1], []) if is_left else ([], keys.ids[:1])
    assert ([key["id"] for key in result["revoked"]], result["left"]) == (revoked, left)
    warning = (
        f"Key {keys.ids[0]} of this name remains valid, because of a use after key {keys.ids[1]} was deployed, which may be somebody else's. "
        "Use a separate api_key_rotation_name for each store. Revoke keys that nothing uses by their ids."
    )
    assert result["warnings"] == [warning] * is_left


def test_without_records_a_key_that_was_never_used_does_not_count_as_kept(keys: Keys) -> None:
    """A run was killed before it deployed the key."""
    keys.account.keys[keys.ids[1]]["last_used_at"] = None
    options: dict[str, Any] = {"hosts": BOTH, "own_key": "administrator", "keep": 1}
    found = keys.both(keys.ids[2], **WITHOUT_RECORD)
    assert keys.run("plan", *found, max_age="0", **options)["revoke"]
    assert keys.revoked(*found, **options)[0] == []


def test_with_records_a_late_use_is_not_a_reason(keys: Keys) -> None:
    keys.account.clock.elapsed += 86400
    keys.account.use(keys.account.secrets[keys.ids[0]])
    assert keys.revoked(*keys.both(keys.newest), own_key="administrator")[0] == keys.ids[:2]


def test_own_key_that_is_named_does_not_replace_a_record(keys: Keys) -> None:
    found = keys.both(keys.newest, known_keys=keys.known(keys.ids[1:]))
    assert keys.revoked(*found, own_key=str(keys.ids[1])) == ([], [keys.ids[1]])


@pytest.mark.parametrize(
    "step, options, problem",
    [
        *(("plan", {"name": name}, "name: must contain {timestamp} exactly once") for name in INVALID_NAMES),
        ("plan", {"tags": ["vault"]}, "The run is limited to or by tags (vault)"),
        ("revoke", {"key_id": None}, "key_id: is required"),
        *((step, {"own_key": "999"}, "own_key: no key has the id or the name '999'") for step in ("plan", "revoke")),
    ],
)
def test_options_that_are_refused(keys: Keys, step: str, options: dict[str, Any], problem: str) -> None:
    assert problem in str(keys.refusal(step, *keys.both(keys.newest), **{"key_id": keys.newest, **options}))


def test_groups_of_hosts_that_share_a_name_keep_their_own_keys(keys: Keys) -> None:
    own = keys.known(keys.ids[:2])
    plan = keys.run("plan", *keys.both(keys.ids[1], known_keys=own))
    assert (plan["reason"], plan["api_key"]["id"], plan["left"]) == ("", keys.ids[1], [keys.ids[2]])
    keys.run("revoke", *keys.both(keys.ids[1], known_keys=own), key_id=keys.ids[1])
    assert list(keys.account.keys) == [1, *keys.ids[1:]]


def test_keys_of_other_names_are_not_touched(keys: Keys) -> None:
    others = [keys.account.create(name)[0] for name in ("deploy-tools", "deploy-2026", "xdeploy-20261121T080000Z")]
    keys.run("revoke", *keys.both(keys.newest), key_id=keys.newest)
    assert list(keys.account.keys) == [1, keys.newest, *others]


# Roll back


@pytest.mark.parametrize(
    "fault, text",
    [
        (None, "Key 4 was revoked."),
        ("refused", "Key 4 could not be revoked. not sent."),
        ("error", "Key 4 may still be valid, because the service did not confirm the revocation. internal error."),
    ],
)
def test_new_key_that_no_host_holds_is_revoked(keys: Keys, fault: str | None, text: str) -> None:
    keys.account.plan(None, fault)
    error = keys.roll_back(*keys.rolled_back())
    assert list(keys.account.keys) == [1, *(keys.ids if fault else keys.ids[:-1])]
    assert f"web2: Write the key: the disk is full. Rolled back: web1. {text}" in str(error)
    assert error.details["hosts"] == ["web2"]


@pytest.mark.parametrize(
    "fields",
    [
        *({"tasks_rolled_back": False}, {"rolled_back": None}, {"run": "another run"}),
        *({field: checksum("secret-4")} for field in ("sha256", "return_sha256")),  # it holds or restores the new key
    ],
)
def test_new_key_that_a_host_may_hold_stays_valid(keys: Keys, fields: dict[str, Any]) -> None:
    one, other = keys.rolled_back()
    error = keys.roll_back(one._replace(**fields), other)
    assert keys.newest in keys.account.keys
    assert f"Key {keys.newest} is still valid, because it may be in use on web1." in str(error)


def test_new_key_that_another_rotation_has_revoked(keys: Keys) -> None:
    found = keys.rolled_back()
    del keys.account.keys[keys.newest]
    assert f"Key {keys.newest} has been revoked by another rotation" in str(keys.roll_back(*found))


def test_rollback_in_check_mode(keys: Keys) -> None:
    found = keys.rolled_back(run="run (check mode)")
    assert "would be revoked" in str(keys.roll_back(*found, check_mode=True))
    assert keys.newest in keys.account.keys


def test_failed_revocation_has_the_result_so_far(keys: Keys) -> None:
    # A list, a DELETE that succeeds, and one that fails.
    keys.account.plan(None, None, "error")
    with pytest.raises(ClouddbError) as error:
        keys.run("revoke", *keys.both(keys.newest), key_id=keys.newest)
    result = error.value.as_result()
    assert ([key["id"] for key in result["revoked"]], result["left"], result["changed"]) == ([keys.ids[0]], [], True)
    assert result["api_key"]["id"] == keys.newest


def test_rollback_of_several_hosts(keys: Keys) -> None:
    found = [one._replace(host=host) for one, host in zip(keys.rolled_back(), ("web1", "web3"))]
    found += [found[0]._replace(host="web4", rolled_back=None)]
    error = str(keys.roll_back(*found, play_hosts=["web1", "web2", "web3", "web4", "web5"]))
    assert "web2: Write the key: the disk is full. web5: The host left the play. Rolled back: web1 and web3." in error
    assert f"Key {keys.newest} is still valid, because it may be in use on web2, web4 and web5." in error
