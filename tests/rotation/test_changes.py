# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rotations after changes of the inventory, the account or the files, and other uses of the role."""

from __future__ import annotations

from typing import Any

import pytest
from account import Account, Run
from invariants import State, lockouts, secrets, unrepaired, violations
from scenarios import PLAIN


def check(account: Account, run: Run, before: State, **options: Any) -> None:
    found = violations(account, run, before, **options)
    assert not found, "\n".join([*found, run.end()])


def complete(account: Account) -> bool:
    state = account.observe()
    held = {state.accepted.get(state.files.get(f"{host}.key", "")) for host in account.hosts}
    return len(state.active) == 1 and held == {state.newest}


def repair(account: Account) -> None:
    """The next undisturbed run completes the rotation."""
    run = account.run(api_key_rotation_max_age="30d")
    assert not unrepaired(account, run), "\n".join([*unrepaired(account, run), run.end()])


@pytest.mark.parametrize("state", ["empty", "rotated"])
def test_two_plays_for_different_hosts(account: Account, state: str) -> None:
    before = account.restore(state)
    [play] = PLAIN.playbook(account.variables(tasks=False))

    run = account.play([{**play, "hosts": "web1,web2"}, {**play, "hosts": "web3"}])

    if state == "rotated":
        check(account, run, before)
    else:
        # Each play has hosts, and therefore a key, of its own.
        after = account.observe()
        assert not lockouts(run, before, after, {"what": ""}), run.end()
        assert run.status == 0 and set(secrets(after.files)) == set(after.accepted), run.end()
        assert f"Key {after.active[0]} of this name remains valid, and no record" in run.messages(), run.end()
    repair(account)


def test_lists_of_hosts_that_are_known_do_not_travel(account: Account) -> None:
    """Each host would return the names of all others. The role and the records agree on what the hosts of the play are."""
    account.restore("empty")
    account.hosts = ("web1", "Web2", "db1")
    runs = [account.run(), account.run()]
    account.hosts = ("web1", "Web2")
    runs.append(account.run(api_key_rotation_max_age="30d"))

    lists = [[line["host_lists"] for line in run.trace if "host_lists" in line] for run in runs]
    assert [run.status for run in runs] == [0, 0, 0], "".join(run.end() for run in runs)
    assert lists == [[], [], [['["Web2", "db1", "web1"]']] * 2]


def test_role_twice_in_a_play(account: Account) -> None:
    before = account.restore("rotated")
    [play] = PLAIN.playbook(account.variables(tasks=False))

    run = account.play([{**play, "tasks": play["tasks"] * 2}])

    check(account, run, before)
    assert run.status == 0 and complete(account), run.end()


def test_two_keys_in_a_play(account: Account) -> None:
    before = account.restore("rotated")
    [play] = PLAIN.playbook(account.variables(tasks=False))
    other = {
        "api_key_rotation_name": "other-{timestamp}",
        "api_key_rotation_dest": f"{account.files_folder}/{{{{ inventory_hostname }}}}_other.key",
    }
    [task] = play["tasks"]

    run = account.play([{**play, "tasks": [{**task, "vars": other}, task]}])

    assert run.status == 0 and complete(account), run.end()
    [key] = [key for key in account.sandbox.api("GET", "/api_keys") if key["name"].startswith("other-")]
    held = {account.key_id((account.files_folder / f"{host}_other.key").read_text()) for host in account.hosts}
    assert held == {key["id"]}
    assert before.newest not in account.observe().active
