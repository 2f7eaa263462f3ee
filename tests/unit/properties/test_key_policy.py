# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""No policy revokes a key that it must not, whatever others do with the account's keys between any two requests."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, cast

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ansible_collections.clouddb.control.plugins.module_utils._errors import ClouddbError
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.module_utils._http.errors import ServiceUnreachable
from ansible_collections.clouddb.control.plugins.module_utils._http.response import Response
from ansible_collections.clouddb.control.plugins.module_utils._http.session import Request
from ansible_collections.clouddb.control.plugins.module_utils._policy.policy import REVOCABLE_KINDS
from ansible_collections.clouddb.control.plugins.modules import api_key_policy
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import EPOCH
from ansible_collections.clouddb.control.tests.unit.support.simulated_account import (
    ADMIN_SECRET,
    SimulatedAccount,
    SimulatedClient,
)

ADMIN = 1
NAMES = ("declared", "one-of-1", "one-of-2", "other", "administrator")
# The requests of a run before those for each key.
LISTS_BEFORE = 1
ALLOWED = [{"name": "declared"}, {"name": "one-of-*", "max_keys": 3}]

names = st.sampled_from(NAMES)
numbers = st.integers(0, 9)
ages = st.sampled_from([None, 60, 7200, "2d"])
# What others do before a request of the task: use one key or all, create or revoke one, or let time pass; or an error.
actions = st.tuples(st.sampled_from(["use", "use all", "create", "revoke", "wait", "error"]), numbers, names)


class NotingClient(SimulatedClient):
    """Notes which key is revoked after which list, and when it was fetched."""

    def __init__(self, account: SimulatedAccount) -> None:
        super().__init__(account, ADMIN_SECRET)
        self.lists: list[tuple[dict[int, dict[str, Any]], float]] = []
        self.revoked: list[tuple[int, dict[int, dict[str, Any]], float]] = []

    def get(self, *segments: str | int) -> Response:
        response = super().get(*segments)
        self.lists.append(({key["id"]: key for key in response.json}, self.account.clock.elapsed))
        return response

    def delete(self, *segments: str | int) -> Response:
        response = super().delete(*segments)
        self.revoked.append((int(segments[1]), *self.lists[-1]))
        return response


class KeyPolicy(RuleBasedStateMachine):
    """An account with keys that come, go and are used, and runs of the module with all kinds of policies."""

    def __init__(self) -> None:
        super().__init__()
        self.account = SimulatedAccount()

    @initialize(of_names=st.lists(names, min_size=4, max_size=8))
    def age_keys(self, of_names: list[str]) -> None:
        """Most runs revoke keys only if there are some that nobody has used for long."""
        for position, name in enumerate(of_names):
            self.create(name, position % 3 > 0)
        self.wait(300_000)

    # What others do

    @rule(name=names, is_used=st.booleans())
    def create(self, name: str, is_used: bool) -> None:
        _key_id, secret = self.account.create(name)
        if is_used:
            self.account.use(secret)

    @rule(number=numbers)
    def use(self, number: int) -> None:
        ids = [key_id for key_id in self.account.keys if key_id != ADMIN]
        if ids:
            self.account.use(self.account.secrets[ids[number % len(ids)]])

    @rule(number=numbers)
    def revoke(self, number: int) -> None:
        ids = [key_id for key_id in self.account.keys if key_id != ADMIN]
        if ids:
            del self.account.keys[ids[number % len(ids)]]

    @rule(number=numbers, field=st.sampled_from(["created_at", "last_used_at"]), value=st.sampled_from([None, "", "x"]))
    def send_another_time(self, number: int, field: str, value: Any) -> None:
        ids = [key_id for key_id in self.account.keys if key_id != ADMIN]
        if ids:
            self.account.keys[ids[number % len(ids)]][field] = value

    @rule(seconds=st.sampled_from([30, 3600, 100_000]))
    def wait(self, seconds: int) -> None:
        self.account.clock.elapsed += seconds

    # A run

    @rule(
        kinds=st.just(set(REVOCABLE_KINDS)) | st.sets(st.sampled_from(REVOCABLE_KINDS), min_size=1),
        max_age=ages,
        max_idle=ages,
        max_keys=st.sampled_from([None, 2, 5]),
        grace=st.sampled_from([0, 60, 3600]),
        limit=st.integers(1, 4),
        undisturbed=st.integers(0, LISTS_BEFORE + 3),
        meanwhile=st.lists(actions, max_size=8),
    )
    def enforce(
        self,
        kinds: set[str],
        max_age: Any,
        max_idle: Any,
        max_keys: int | None,
        grace: int,
        limit: int,
        undisturbed: int,
        meanwhile: list[tuple[str, int, str]],
    ) -> None:
        client = NotingClient(self.account)
        self.account.plan(*[None] * undisturbed, *(self.action(*each) for each in meanwhile))
        params = {
            "allowed": ALLOWED,
            "max_age": max_age,
            "max_idle": max_idle,
            "max_keys": max_keys,
            "action": "revoke",
            "own_key": "1",
            "revoke_kinds": sorted(kinds),
            "max_revocations": limit,
            "grace": grace,
        }
        reported: dict[str, Any] = {}
        try:
            reported = api_key_policy.run(params, cast(Client, client), False)
        except ClouddbError as error:
            reported = error.result
        self.account.plan()
        revoked = [key_id for key_id, _listed, _at in client.revoked]
        assert [key["id"] for key in reported.get("revoked", [])] == revoked
        for key_id, listed, at in client.revoked:
            # What others have revoked counts, as far as the list shows it.
            assert len((set(client.lists[0][0]) - set(listed)) | {key_id}) <= limit
            check(listed[key_id], list(listed.values()), at, params)

    def action(self, kind: str, number: int, name: str) -> Callable[[], None]:
        def error() -> None:
            raise ServiceUnreachable("no response", Request("GET", "/api_keys", "request"), 1, False, True)

        return {
            "use": lambda: self.use(number),
            "use all": lambda: [self.use(position) for position in range(len(self.account.keys))] and None,
            "create": lambda: self.create(name, number > 5),
            "revoke": lambda: self.revoke(number),
            "wait": lambda: self.wait(number),
            "error": error if number > 7 else lambda: None,
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
    is_over_limit = sum(name.startswith("one-of-") for name in named) > 3 or len(keys) > (
        params["max_keys"] or len(keys)
    )
    checks_ages = {"expired", "idle", "never_used"} & set(params["revoke_kinds"])
    assert not is_declared or is_over_limit or checks_ages


TestKeyPolicy = KeyPolicy.TestCase
