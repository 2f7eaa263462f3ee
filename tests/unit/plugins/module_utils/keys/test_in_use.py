# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which keys a task may authenticate with."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._keys.api import list_keys
from ansible_collections.clouddb.control.plugins.module_utils._keys.in_use import keys_in_use, own_key_candidates
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
