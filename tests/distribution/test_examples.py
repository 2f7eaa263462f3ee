# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The examples rotate a key in a store as a user runs them. Each store is read without Ansible."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from conftest import User
from sandbox import API_KEY
from stores import HashiVaultSecret, KubernetesSecret, Store, VaultedVariable

WEEK = 7 * 86400
Stores = Callable[[type[Any]], Any]

FAIL = """\
---
- name: Deploy the key to another consumer
  ansible.builtin.fail:
    msg: The disk is full.
"""


def with_failure(user: User, store: Store) -> dict[str, list[str]]:
    """The setting by which another consumer fails once the store has the key."""
    (user.folder / "tasks" / "fail.yml").write_text(FAIL, encoding="utf-8")
    return {"api_key_rotation_hand_over_tasks": [store.update_tasks, "tasks/fail.yml"]}


def prepared(user: User, store: Store) -> str:
    """Store a key that was created by hand, and return it."""
    secret = str(user.sandbox.api("POST", "/api_keys", {"key_name": "by hand"})["key"])
    store.put_key(secret)
    return secret


def stored(user: User, store: Store) -> str:
    """The stored key, which the service accepts."""
    secret = store.key()
    assert secret and user.sandbox.accepts(secret)
    return secret


def test_key_is_stored_and_rotated(user: User, store: Store) -> None:
    others = store.others()
    assert user.rotate(store).changed()
    first = stored(user, store)
    written = store.writes()
    assert not user.rotate(store).changed()
    assert store.writes() == written and store.key() == first

    secrets = [first]
    for _week in range(2):
        # One hour less than a week, because schedules are not exact.
        user.sandbox.advance(WEEK - 3600)
        assert user.rotate(store).changed()
        secrets.append(stored(user, store))
    # Those who have not read the new key yet still use the previous one.
    assert [user.sandbox.accepts(secret) for secret in secrets] == [False, True, True]
    assert store.others() == others


def test_check_mode_changes_nothing(user: User, store: Store) -> None:
    previous, others, written = prepared(user, store), store.others(), store.writes()
    run = user.rotate(store, "--check", "--diff")
    assert run.status == 0
    assert (store.key(), store.others(), store.writes()) == (previous, others, written)
    assert user.keys(store) == []


def test_failure_of_the_store_is_rolled_back(user: User, store: Store) -> None:
    previous, others = prepared(user, store), store.others()
    store.reject_writes()
    run = user.rotate(store)
    assert run.status == 2
    assert (stored(user, store), store.others()) == (previous, others)
    if store.is_readable:
        assert user.keys(store) == []
    else:
        # The previous key can't be stored either, and the secret may contain the new one.
        [orphaned] = user.keys(store)
        assert named_as_valid(run.output, orphaned)


def test_failure_of_another_consumer_is_rolled_back(user: User, store: Store) -> None:
    previous = prepared(user, store)
    others, written = store.others(), store.writes()
    run = user.rotate(store, api_key=previous, **with_failure(user, store))
    assert run.status == 2
    assert "Deploy the key to another consumer" in run.output
    assert (stored(user, store), store.others()) == (previous, others)
    assert user.keys(store) == []
    # The new key was stored, and then the previous one; a file has its previous content.
    assert (store.writes() == written) == isinstance(store, VaultedVariable)
    # The next run stores a key.
    assert user.rotate(store).changed()
    assert stored(user, store) != previous


def test_failed_first_rotation_leaves_no_key(user: User, store: Store) -> None:
    others = store.others()
    run = user.rotate(store, **with_failure(user, store))
    assert run.status == 2
    # A secret of GitHub can't be read, so it gets the key of the job.
    assert store.key() == (None if store.is_readable else API_KEY)
    assert store.others() == others
    assert user.keys(store) == []
    assert user.rotate(store).changed()
    assert stored(user, store)


def test_revoked_key_is_not_restored(user: User, stores: Stores) -> None:
    for kind in (VaultedVariable, HashiVaultSecret, KubernetesSecret):
        store = stores(kind)
        store.put_key("a-key-that-was-revoked")
        run = user.rotate(store, **with_failure(user, store))
        assert run.status == 2
        assert stored(user, store) != "a-key-that-was-revoked"
        [kept] = user.keys(store)
        assert named_as_valid(run.output, kept)


def named_as_valid(output: str, key_id: int) -> bool:
    """Whether the message of a failure says that this key is still valid."""
    return re.search(rf"\b{key_id}\b[^.]*\bvalid\b", output) is not None
