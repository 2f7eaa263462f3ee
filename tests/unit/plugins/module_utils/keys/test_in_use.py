# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which keys a task may authenticate with."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._keys.api import list_keys
from ansible_collections.clouddb.control.plugins.module_utils._keys.in_use import keys_in_use, own_key_candidates
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import EPOCH
from ansible_collections.clouddb.control.tests.unit.support.in_one_test import in_one_test
from ansible_collections.clouddb.control.tests.unit.support.simulated_account import ADMIN_SECRET, SimulatedAccount


@pytest.fixture
def account() -> SimulatedAccount:
    """An account with the key of the administrator, and key 2."""
    account = SimulatedAccount()
    account.create("deploy")
    return account


def candidates(account: SimulatedAccount, own_id: int, *key_ids: int) -> set[int]:
    """The candidates among these keys for a task that authenticates with key C(own_id)."""
    client = account.client(account.secrets[own_id])
    listed = list_keys(client)
    return own_key_candidates(client, listed, [key for key in listed if key["id"] in key_ids])


def test_the_only_key_of_the_account_is_the_own_one() -> None:
    account = SimulatedAccount()
    # The service records uses late.
    account.use = lambda secret: None  # type: ignore[method-assign]
    assert candidates(account, 1, 1) == {1}


def test_the_key_that_every_list_uses_is_the_own_one(account: SimulatedAccount) -> None:
    assert candidates(account, 2, 1, 2) == {2}


def test_one_key_needs_no_further_list(account: SimulatedAccount) -> None:
    assert candidates(account, 2, 2) == set()
    assert candidates(account, 1) == set()
    assert account.clock.pauses == []


def test_several_keys_are_listed_again_because_the_service_may_record_uses_after_its_response(
    account: SimulatedAccount,
) -> None:
    account.create("deploy")
    use = account.use
    late: list[str] = []

    def use_late(secret: str) -> None:
        if late:
            use(late.pop())
        late.append(secret)

    account.use = use_late  # type: ignore[method-assign]
    assert candidates(account, 2, 2, 3) == {2}


@pytest.mark.parametrize("seconds", [0, 59])
def test_key_that_was_used_lately_is_not_the_own_one(account: SimulatedAccount, seconds: int) -> None:
    account.use(account.secrets[2])
    account.clock.elapsed += seconds
    assert candidates(account, 1, 1, 2) == {1}


def test_key_that_is_used_all_the_time_is_a_candidate(account: SimulatedAccount) -> None:
    clock = account.clock.clock

    def sleep(seconds: float) -> None:
        clock.sleep(seconds)
        account.use(ADMIN_SECRET)

    account.clock.clock = clock._replace(sleep=sleep)
    assert candidates(account, 2, 1, 2) == {1, 2}


def test_key_that_is_used_once_may_not_be_the_own_one(account: SimulatedAccount) -> None:
    """Another client uses it between the first two lists, and the service records uses late."""
    use = account.use
    uses = iter([[], [2], []])

    def use_others(secret: str) -> None:
        for key_id in next(uses):
            use(account.secrets[key_id])

    account.use = use_others  # type: ignore[method-assign]
    assert keys_in_use(account.client()) == ({2}, False)
    assert account.clock.pauses == [1.0, 1.0]


def test_known_key_is_the_own_one(account: SimulatedAccount) -> None:
    account.use = lambda secret: None  # type: ignore[method-assign]
    assert keys_in_use(account.client(), own={1}) == ({1}, True)


def test_no_key_is_a_candidate_if_others_are_used_once(account: SimulatedAccount) -> None:
    use = account.use
    uses = iter([[], [], [1], [2]])

    def use_others(secret: str) -> None:
        for key_id in next(uses):
            use(account.secrets[key_id])

    account.use = use_others  # type: ignore[method-assign]
    assert candidates(account, 2, 1, 2) == set()


def test_no_key_is_a_candidate_if_the_service_records_uses_late(account: SimulatedAccount) -> None:
    use: Any = account.use
    use(account.secrets[2])
    account.use = lambda secret: None  # type: ignore[method-assign]
    assert candidates(account, 2, 1, 2) == set()


def show_uses_late(account: SimulatedAccount, lag: float, busy_id: int, in_seconds: bool) -> None:
    """The list shows a use after C(lag) seconds, and if set in whole seconds. The busy key is used all the time."""
    waiting: list[tuple[float, int]] = []

    def show(key_id: int, used_at: float) -> None:
        moment = EPOCH + timedelta(seconds=used_at)
        account.keys[key_id]["last_used_at"] = (moment.replace(microsecond=0) if in_seconds else moment).isoformat()

    def use(secret: str) -> None:
        [own_id] = [key_id for key_id, known in account.secrets.items() if known == secret]
        account.clock.elapsed += 0.001
        waiting.append((account.clock.elapsed, own_id))
        while waiting and waiting[0][0] + lag <= account.clock.elapsed:
            used_at, key_id = waiting.pop(0)
            show(key_id, used_at)
        show(busy_id, account.clock.elapsed - lag)

    account.use = use  # type: ignore[method-assign]


@in_one_test("lag", [0, 0.3, 0.9, 1, 1.1, 1.5, 1.9, 2, 2.5, 3, 4, 20, 3000])
@in_one_test("fraction", [0, 0.25, 0.5, 0.75, 0.999])
@in_one_test("in_seconds", [False, True])
def test_own_key_is_known_only_if_its_use_is_shown(lag: float, fraction: float, in_seconds: bool) -> None:
    account = SimulatedAccount()
    busy_id, _secret = account.create("busy")
    account.clock.elapsed += 100 * 86_400 + fraction
    show_uses_late(account, lag, busy_id, in_seconds)
    in_use, is_own_key_known = keys_in_use(account.client())
    assert busy_id in in_use
    assert 1 in in_use or not is_own_key_known
    assert is_own_key_known or lag > 0
    assert candidates(account, 1, 1, busy_id) in ({1, busy_id}, set())  # never the busy one alone


def test_own_key_is_unknown_without_the_time_of_the_service(account: SimulatedAccount) -> None:
    client = account.client()
    client.knows_service_time = lambda: False  # type: ignore[method-assign]
    assert keys_in_use(client) == ({1}, False)
