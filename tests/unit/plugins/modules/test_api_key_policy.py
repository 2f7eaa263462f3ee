# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""api_key_policy with an account in memory."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ansible_collections.clouddb.control.plugins.module_utils._errors import ClouddbError, InvalidOption
from ansible_collections.clouddb.control.plugins.module_utils._http import errors
from ansible_collections.clouddb.control.plugins.module_utils._http.message import Request
from ansible_collections.clouddb.control.plugins.module_utils._http.response import Response
from ansible_collections.clouddb.control.plugins.module_utils._policy import revocation
from ansible_collections.clouddb.control.plugins.module_utils._policy.policy import REVOCABLE_KINDS
from ansible_collections.clouddb.control.plugins.modules import api_key_policy
from ansible_collections.clouddb.control.tests.unit.support.api_key_task import ids
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import EPOCH
from ansible_collections.clouddb.control.tests.unit.support.module_main import defaults_of
from ansible_collections.clouddb.control.tests.unit.support.simulated_account import SimulatedAccount, SimulatedClient

DAY = 86_400
ADMIN = 1
REVOKE = {"allowed": [{"name": "deploy-*"}], "action": "revoke", "own_key": "administrator"}


# The requests of a task that revokes: a list, then a list and a DELETE for each key.
LISTS_BEFORE = 1
LAPTOPS = [3, 5, 7]


def run(account: SimulatedAccount, check_mode: bool = False, **options: Any) -> dict[str, Any]:
    return api_key_policy.run({**defaults_of(api_key_policy), **options}, account.client(), check_mode)


@pytest.fixture
def account() -> SimulatedAccount:
    """An account with three keys that are allowed and three that are not, all used 100 days ago."""
    account = SimulatedAccount()
    for name in ("deploy-1", "laptop-1", "deploy-2", "laptop-2", "deploy-3", "laptop-3"):
        account.add(name, seconds=3600, is_used=True)
    account.clock.elapsed += 100 * DAY
    return account


def outcomes(result: dict[str, Any]) -> dict[int, str]:
    return {each["key_id"]: each["outcome"] for each in result["findings"]}


def reasons(result: dict[str, Any]) -> dict[int, str]:
    return {each["key_id"]: each["kept_because"] for each in result["findings"] if each["kept_because"]}


def test_report_changes_nothing(account: SimulatedAccount) -> None:
    result = run(account, **{**REVOKE, "action": "report", "own_key": None})
    assert account.sent == ["GET"]
    assert (result["changed"], result["revoked"], result["left"]) == (False, [], [])
    assert outcomes(result) == dict.fromkeys([ADMIN, *LAPTOPS], "reported")
    assert result["summary"] == {**dict.fromkeys(result["summary"], 0), "unknown": 4}
    assert result["checked"] == ["unknown", "never_used", "duplicate"]
    assert len(account.keys) == 7


def test_fields_of_a_finding(account: SimulatedAccount) -> None:
    entry = {"name": "deploy-*", "owner": "platform team", "reason": None}
    findings = run(account, allowed=[entry, {"name": "*"}, {"name": "ci"}], max_age="99d")["findings"]
    of_age = ["administrator", *(f"{name}-{number}" for name in ("deploy", "laptop") for number in (1, 2, 3))]
    kinds = [*(("expired", name) for name in of_age), ("missing", "ci")]
    assert [(each["kind"], each["name"]) for each in findings] == kinds
    assert findings[1] == {
        "kind": "expired",
        "key_id": 2,
        "name": "deploy-1",
        "title": "deploy-1 (id 2)",
        "message": f"deploy-1 (id 2) was created on {account.keys[2]['created_at'][:10]}, longer ago than max_age. "
        "Owner: platform team.",
        "owner": "platform team",
        "reason": None,
        **{field: account.keys[2][field] for field in ("created_at", "last_used_at")},
        "outcome": "reported",
        "kept_because": None,
    }


def test_a_name_cannot_control_the_terminal(account: SimulatedAccount) -> None:
    account.add("backup\x1b[31m")
    result = run(account, **{**REVOKE, "max_revocations": 1})
    assert "backup\\x1b[31m (id 8)" in [each["title"] for each in result["findings"]]
    assert "backup\\x1b[31m (id 8)" in result["diff"]["after"].splitlines()


@pytest.mark.parametrize("own_key", ["administrator", "1"])
def test_revokes_all_but_the_own_key(account: SimulatedAccount, own_key: str) -> None:
    """The own key has no allowed name, either. The service lists uses late."""
    options = {**REVOKE, "own_key": own_key}
    account.use(account.secrets[ADMIN])
    account.clock.elapsed += DAY
    account.use = lambda secret: None  # type: ignore[method-assign]
    predicted = run(account, check_mode=True, **options)
    assert sorted(account.keys) == list(range(1, 8))
    result = run(account, **options)
    assert sorted(account.keys) == [ADMIN, 2, 4, 6]
    for each in (result, predicted):
        assert outcomes(each) == {ADMIN: "kept", **dict.fromkeys(LAPTOPS, "revoked")}
        assert (each["changed"], ids(each["revoked"]), each["left"]) == (True, LAPTOPS, [ADMIN])
        assert (set(each), each["diff"]) == (set(result), result["diff"])
    before, after = (result["diff"][side].splitlines() for side in ("before", "after"))
    assert before == sorted(before) and len(before) == 7
    assert set(before) - set(after) == {"laptop-1 (id 3)", "laptop-2 (id 5)", "laptop-3 (id 7)"}
    messages = {each["key_id"]: each["message"] for each in result["findings"]}
    assert messages[3] == "laptop-1 (id 3) matches no name that the policy allows. It was revoked."
    unknown = "administrator (id 1) matches no name that the policy allows."
    assert messages[ADMIN] == f"{unknown} It was not revoked. {revocation.OWN_KEY}"
    assert predicted["findings"][0]["message"] == f"{unknown} It would not be revoked. {revocation.OWN_KEY}"
    assert predicted["findings"][-1]["message"].endswith("It would be revoked.")


@pytest.mark.parametrize("check_mode", [False, True])
@pytest.mark.parametrize("own_key, named", [(None, []), ("nobody", []), ("99", []), ("twice", [8, 9]), ("2", [2, 8])])
def test_own_key_is_one_key(account: SimulatedAccount, own_key: str | None, named: list[int], check_mode: bool) -> None:
    for name in ("2" if own_key == "2" else "twice", "twice"):
        account.add(name, is_used=True)
    with pytest.raises(InvalidOption) as error:
        run(account, check_mode, **{**REVOKE, "own_key": own_key})
    assert (error.value.kind, error.value.details) == ("invalid_option", {"option": "own_key"})
    assert account.sent == (["GET"] if own_key else [])
    assert all(str(key_id) in str(error.value) for key_id in named)


def test_only_the_kinds_are_revoked(account: SimulatedAccount) -> None:
    assert run(account, **REVOKE, revoke_kinds=["idle"], max_idle="1d")["summary"]["unknown"] == 4
    assert sorted(account.keys) == [ADMIN], "only the own key is not idle"


def test_limit_and_order(account: SimulatedAccount) -> None:
    account.use(account.secrets[3])
    account.clock.elapsed += DAY
    result = run(account, **REVOKE, max_revocations=2)
    assert (ids(result["revoked"]), result["left"], len(result["warnings"])) == ([5, 7], [ADMIN, 3], 1)
    assert "max_revocations" in reasons(result)[3]
    assert ids(run(account, **REVOKE, max_revocations=2)["revoked"]) == [3]


def test_key_that_a_rotation_deploys_is_not_revoked(account: SimulatedAccount) -> None:
    created, _secret = account.create("laptop-4")
    account.clock.elapsed += 60
    result = run(account, **REVOKE, revoke_kinds=["unknown", "never_used"])
    assert created in account.keys
    assert "grace period" in reasons(result)[created]


def test_service_that_records_no_uses(account: SimulatedAccount, monkeypatch: pytest.MonkeyPatch) -> None:
    for key in account.keys.values():
        key["last_used_at"] = None
    monkeypatch.setattr(SimulatedAccount, "use", lambda self, secret: None)
    result = run(account, **REVOKE, revoke_kinds=["never_used"])
    assert (result["revoked"], len(account.keys), len(result["warnings"])) == ([], 7, 1)
    assert (set(outcomes(result).values()), len(result["left"])) == ({"kept"}, 7)
    assert (reasons(result)[ADMIN], reasons(result)[3]) == (revocation.OWN_KEY, revocation.USES_NOT_LISTED)


@pytest.mark.parametrize("check_mode", [False, True])
def test_nothing_is_revoked_without_the_time_of_the_service(
    account: SimulatedAccount, monkeypatch: pytest.MonkeyPatch, check_mode: bool
) -> None:
    """The clock of this machine may be 100 days ahead."""
    monkeypatch.setattr(SimulatedClient, "knows_service_time", False)
    account.add("deploy-1", seconds=3600)
    options: dict[str, Any] = {"max_age": "1d", "max_idle": "1d", "max_keys": 2, "grace": "0"}
    result = run(account, check_mode, **REVOKE, **options, revoke_kinds=list(REVOCABLE_KINDS))
    assert (result["changed"], result["revoked"], len(account.keys)) == (False, [], 8)
    assert result["left"] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert reasons(result) == {ADMIN: revocation.OWN_KEY, **dict.fromkeys(range(2, 9), revocation.NO_SERVICE_TIME)}
    [warning] = result["warnings"]
    assert revocation.NO_SERVICE_TIME in warning
    report = run(account, **options, allowed=REVOKE["allowed"])
    assert ({each["outcome"] for each in report["findings"]}, report["warnings"]) == ({"reported"}, [])


@pytest.mark.parametrize("before_request", range(2, LISTS_BEFORE + 3))
@pytest.mark.parametrize("grace", ["0", "1h"])
def test_key_that_is_used_in_the_meantime_is_kept(account: SimulatedAccount, before_request: int, grace: str) -> None:
    account.plan(*[None] * (before_request - 1), lambda: account.use(account.secrets[5]))
    result = run(account, **REVOKE, grace=grace)
    assert (ids(result["revoked"]), result["left"]) == ([3, 7], [ADMIN, 5])
    assert reasons(result)[5].startswith("It was ")


@pytest.mark.parametrize("before_request", range(2, LISTS_BEFORE + 5))
def test_key_that_another_revokes_in_the_meantime_is_gone(account: SimulatedAccount, before_request: int) -> None:
    """Also immediately before the DELETE."""
    account.plan(*[None] * (before_request - 1), lambda: account.keys.pop(5))
    result = run(account, **REVOKE)
    assert (ids(result["revoked"]), outcomes(result)[5], result["left"]) == ([3, 7], "gone", [ADMIN])


def test_key_that_complies_by_now_is_kept(account: SimulatedAccount) -> None:
    account.plan(*[None] * LISTS_BEFORE, lambda: account.keys[3].update(name="deploy-9"))
    assert reasons(run(account, **REVOKE))[3] == revocation.COMPLIES


REQUEST = (Request("GET", "/api_keys", "request"), 1)


@pytest.mark.parametrize("number", range(1, LISTS_BEFORE + 5))
@pytest.mark.parametrize(
    "error",
    [errors.Unreachable("no response", *REQUEST, True, False), errors.Unauthorized("unauthorized", *REQUEST, 401)],
    ids=lambda error: error.kind,
)
def test_error_of_each_request(account: SimulatedAccount, number: int, error: errors.RequestFailed) -> None:
    """The result of a failed task has what was revoked, and the error names the keys that were not."""
    account.plan(*[None] * (number - 1), Mock(side_effect=error))
    with pytest.raises(errors.RequestFailed if number <= LISTS_BEFORE else ClouddbError) as raised:
        run(account, **REVOKE)
    before_each = max(0, number - LISTS_BEFORE - 1) // 2
    assert sorted(account.keys) == [key_id for key_id in range(1, 8) if key_id not in LAPTOPS[:before_each]]
    if number > LISTS_BEFORE:
        result, remaining = raised.value.result, LAPTOPS[before_each:]
        assert (ids(result["revoked"]), result["changed"]) == (LAPTOPS[:before_each], before_each > 0)
        assert (result["left"], raised.value.details["key_ids"]) == ([ADMIN, *remaining], remaining)
        assert {reasons(result)[key_id] for key_id in remaining} == {revocation.NOT_REACHED}
        may_be_revoked = (number - LISTS_BEFORE) % 2 == 0 and error.may_have_acted
        assert ("may still be valid" in str(raised.value)) is may_be_revoked


@pytest.mark.parametrize("check_mode", [False, True])
def test_surplus_ends_with_the_revocation_of_other_keys(check_mode: bool) -> None:
    """Three keys, the second one of an unknown name, and an account that may have two besides the own."""
    account = SimulatedAccount()
    oldest, stray, _newest = (account.add(name, seconds=DAY, is_used=True)[0] for name in ("ok-a", "stray", "ok-b"))
    account.clock.elapsed += DAY
    allowed = [{"name": "ok-*"}, {"name": "administrator"}]
    options = {**REVOKE, "allowed": allowed, "max_keys": 3, "revoke_kinds": ["unknown", "over_limit"]}
    result = run(account, check_mode, **options)
    assert (ids(result["revoked"]), result["left"]) == ([stray], [])
    surplus = [(each["key_id"], each["outcome"]) for each in result["findings"] if each["kind"] == "over_limit"]
    assert surplus == [(oldest, "gone")]


@pytest.mark.parametrize("key_id", [2, 7])
def test_limit_counts_whatever_key_another_revokes(account: SimulatedAccount, key_id: int) -> None:
    """Also a key that complies, and one that the task would revoke last."""
    account.plan(*[None] * LISTS_BEFORE, lambda: account.keys.pop(key_id))
    result = run(account, **REVOKE, max_revocations=1)
    assert (result["revoked"], f"(id {key_id})" in result["diff"]["after"]) == ([], False)
    assert "max_revocations" in reasons(result)[3]


# No key is revoked that must not be, whatever others do with the account's keys between any two requests


names = st.sampled_from(["declared", "one-of-1", "one-of-2", "other", "administrator"])
numbers = st.integers(0, 9)
ages = st.sampled_from([None, 60, 7200, "2d"])
kinds = st.just(set(REVOCABLE_KINDS)) | st.sets(st.sampled_from(REVOCABLE_KINDS), min_size=1)
# What others do before a request of the task: use one key or all, create or revoke one, or let time pass; or an error.
actions = st.tuples(st.sampled_from(["use", "use all", "create", "revoke", "wait", "error"]), numbers, names)


class NotingClient(SimulatedClient):
    """Notes which key is revoked after which list, and when it was fetched."""

    def __init__(self, account: SimulatedAccount) -> None:
        super().__init__(account)
        self.lists: list[tuple[dict[int, dict[str, Any]], float]] = []
        self.revoked: list[tuple[int, dict[int, dict[str, Any]], float]] = []

    def request(self, method: str, segments: Sequence[str | int], *_others: Any, **options: Any) -> Response:
        response = super().request(method, segments, **options)
        if method == "GET":
            self.lists.append(({key["id"]: key for key in response.json}, self.account.clock.elapsed))
        else:
            self.revoked.append((int(segments[1]), *self.lists[-1]))
        return response


class KeyPolicy(RuleBasedStateMachine):
    """An account with keys that come, go and are used, and runs of the module with all kinds of policies."""

    @initialize(of_names=st.lists(names, min_size=4, max_size=8))
    def age_keys(self, of_names: list[str]) -> None:
        """Most runs revoke keys only if there are some that nobody has used for long."""
        self.account = SimulatedAccount()
        for position, name in enumerate(of_names):
            self.create(name, position % 3 > 0)
        self.wait(300_000)

    # What others do, with no key or with one of those that are not the administrator's

    def some(self, number: int) -> list[int]:
        active = self.account.active
        return [active[number % len(active)]] if active else []

    @rule(name=names, is_used=st.booleans())
    def create(self, name: str, is_used: bool) -> None:
        self.account.add(name, seconds=0, is_used=is_used)

    @rule(number=numbers)
    def use(self, number: int) -> None:
        for key_id in self.some(number):
            self.account.use(self.account.secrets[key_id])

    @rule(number=numbers)
    def revoke(self, number: int) -> None:
        for key_id in self.some(number):
            del self.account.keys[key_id]

    @rule(number=numbers, field=st.sampled_from(["created_at", "last_used_at"]), value=st.sampled_from([None, "", "x"]))
    def send_another_time(self, number: int, field: str, value: Any) -> None:
        for key_id in self.some(number):
            self.account.keys[key_id][field] = value

    @rule(seconds=st.sampled_from([30, 3600, 100_000]))
    def wait(self, seconds: int) -> None:
        self.account.clock.elapsed += seconds

    # A run

    @rule(
        options=st.fixed_dictionaries(
            {
                "revoke_kinds": kinds.map(sorted),
                "max_age": ages,
                "max_idle": ages,
                "max_keys": st.sampled_from([None, 2, 5]),
                "grace": st.sampled_from([0, 60, 3600]),
                "max_revocations": st.integers(1, 4),
            }
        ),
        undisturbed=st.integers(0, LISTS_BEFORE + 3),
        meanwhile=st.lists(actions, max_size=8),
    )
    def enforce(self, options: dict[str, Any], undisturbed: int, meanwhile: list[tuple[str, int, str]]) -> None:
        client = NotingClient(self.account)
        self.account.plan(*[None] * undisturbed, *(self.action(*each) for each in meanwhile))
        allowed = [{"name": "declared"}, {"name": "one-of-*", "max_keys": 3}]
        params = {**options, "allowed": allowed, "action": "revoke", "own_key": "1"}
        reported: dict[str, Any] = {}
        try:
            reported = api_key_policy.run(params, client, False)
        except ClouddbError as error:
            reported = error.result
        self.account.plan()
        assert ids(reported.get("revoked", [])) == [key_id for key_id, _listed, _at in client.revoked]
        for key_id, listed, at in client.revoked:
            # What others have revoked counts, as far as the list shows it.
            assert len((set(client.lists[0][0]) - set(listed)) | {key_id}) <= options["max_revocations"]
            check(listed[key_id], list(listed.values()), at, params)

    def action(self, kind: str, number: int, name: str) -> Any:
        return {
            "use": lambda: self.use(number),
            "use all": lambda: [self.use(position) for position in range(len(self.account.keys))],
            "create": lambda: self.create(name, number > 5),
            "revoke": lambda: self.revoke(number),
            "wait": lambda: self.wait(number),
            "error": "refused" if number > 7 else None,
        }[kind]

    @invariant()
    def own_key_is_active(self) -> None:
        assert ADMIN in self.account.keys


def check(key: dict[str, Any], keys: list[dict[str, Any]], at: float, params: dict[str, Any]) -> None:
    """By the list before its revocation, the key was neither used within the grace period nor declared and within all limits."""
    assert key["created_at"] not in (None, "", "x") and key["last_used_at"] != "x"
    recent = (EPOCH + timedelta(seconds=at - params["grace"])).isoformat()
    assert max(key["created_at"], key["last_used_at"] or "") < recent
    named = [other["name"] for other in keys]
    is_declared = named.count("declared") == 1 if key["name"] == "declared" else key["name"].startswith("one-of-")
    limit = params["max_keys"] or len(keys)
    is_over_limit = sum(name.startswith("one-of-") for name in named) > 3 or len(keys) > limit
    checks_ages = {"expired", "idle", "never_used"} & set(params["revoke_kinds"])
    assert not is_declared or is_over_limit or checks_ages


TestKeyPolicy = KeyPolicy.TestCase
