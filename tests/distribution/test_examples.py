# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The examples rotate a key in a store as a user runs them. Each store is read without Ansible."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import SECRET, User
from sandbox import API_KEY
from stores import VAULT, VAULT_PASSWORD, GithubSecret, KubernetesSecret, KvSecret, Store, VaultedVariable

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
    return {"api_key_rotation_deploy_tasks": [store.update_tasks, "tasks/fail.yml"]}


def prepared(user: User, store: Store) -> str:
    """Store a key that was created by hand, and return it."""
    secret = str(user.sandbox.api("POST", "/api_keys", {"key_name": "by hand"})["key"])
    store.put_key(secret)
    return secret


def stored(user: User, store: Store) -> str:
    """The stored key, which the service accepts."""
    secret = store.key()
    assert secret and user.sandbox.accepts(secret)
    # The search for secrets finds them.
    assert SECRET.fullmatch(secret) and SECRET.fullmatch(b64encode(secret.encode()).decode())
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


@pytest.mark.parametrize("kind", [VaultedVariable, pytest.param(KvSecret, marks=pytest.mark.smoke), KubernetesSecret])
def test_failure_of_the_store_is_rolled_back(user: User, stores: Stores, kind: type[Store]) -> None:
    store = stores(kind)
    previous, others = prepared(user, store), store.others()
    store.reject_writes()
    assert user.rotate(store).status == 2
    assert (stored(user, store), store.others()) == (previous, others)
    assert user.keys(store) == []


def test_key_stays_valid_if_the_rollback_fails(user: User, stores: Stores) -> None:
    store = stores(GithubSecret)
    previous = prepared(user, store)
    store.reject_writes()
    run = user.rotate(store)
    assert run.status == 2
    # The secret may contain the new key, because it can't be read.
    [kept] = user.keys(store)
    assert named_as_valid(run.output, kept)

    store.api.rejects_writes = False
    user.sandbox.advance(1)
    # As the guide says.
    assert user.rotate(store, "-e", "api_key_rotation_max_age=0", "-e", "api_key_rotation_keep=2").changed()
    assert stored(user, store) != previous
    assert user.sandbox.accepts(previous) and kept in user.keys(store)


def test_failure_of_another_consumer_is_rolled_back(user: User, store: Store) -> None:
    previous = prepared(user, store)
    others, written = store.others(), store.writes()
    run = user.rotate(store, **with_failure(user, store))
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
    assert user.rotate(store, **with_failure(user, store)).status == 2
    # A secret of GitHub can't be read, so it gets the key of the job.
    assert store.key() == (None if store.is_readable else API_KEY)
    assert store.others() == others
    assert user.keys(store) == []
    assert user.rotate(store).changed()
    assert stored(user, store)


def test_revoked_key_is_not_restored(user: User, stores: Stores) -> None:
    for kind in (VaultedVariable, KvSecret, KubernetesSecret):
        store = stores(kind)
        store.put_key("a-key-that-was-revoked")
        run = user.rotate(store, **with_failure(user, store))
        assert run.status == 2
        stored(user, store)
        [kept] = user.keys(store)
        assert named_as_valid(run.output, kept)


def test_line_ends_are_kept_and_the_rollback_is_byte_for_byte(user: User, stores: Stores) -> None:
    store = stores(VaultedVariable)
    prepared(user, store)
    content = store.file.read_bytes().replace(b"\n", b"\r\n")
    store.file.write_bytes(content)
    assert user.rotate(store, **with_failure(user, store)).status == 2
    assert store.file.read_bytes() == content
    assert user.rotate(store).changed()
    rotated = store.file.read_bytes()
    assert rotated != content and rotated.count(b"\n") == rotated.count(b"\r\n")
    stored(user, store)


SCRIPT = f"#!/bin/sh\necho '{VAULT_PASSWORD}'\n"


@pytest.mark.parametrize("password", [SCRIPT, f" {VAULT_PASSWORD}\n"], ids=["script", "leading blank"])
def test_password_that_ansible_reads_otherwise_is_named_before_a_key_is_created(
    user: User, stores: Stores, password: str
) -> None:
    store = stores(VaultedVariable)
    file = Path(store.env["ANSIBLE_VAULT_PASSWORD_FILE"])
    file.write_text(password, encoding="utf-8")
    file.chmod(0o700 if password == SCRIPT else 0o600)
    run = user.rotate(store)
    assert run.status == 2 and "If it is a script" in run.output and "If it begins with a blank" in run.output
    assert user.sandbox.sent() == []
    assert user.rotate(store, clouddb_vault_password=VAULT_PASSWORD).changed()


def test_file_that_is_encrypted_as_a_whole_is_named_before_a_key_is_created(user: User, stores: Stores) -> None:
    store = stores(VaultedVariable)
    content = VAULT.encrypt(store.file.read_bytes())
    store.file.write_bytes(content)
    run = user.rotate(store)
    assert run.status == 2 and "is encrypted as a whole" in run.output
    assert store.file.read_bytes() == content
    assert user.sandbox.sent() == []


def test_key_is_created_only_if_it_can_be_stored(user: User, stores: Stores) -> None:
    store = stores(VaultedVariable)
    content = store.file.read_bytes()
    for settings in ({"clouddb_vault_password_file": ""}, {"clouddb_variable": "api_key"}):
        run = user.rotate(store, **settings)
        assert run.status == 2
        assert "Set ANSIBLE_VAULT_PASSWORD_FILE to the file with the password, and add the line '" in run.output
    # The file has other encrypted variables, which Ansible reads only with the password.
    del store.env["ANSIBLE_VAULT_PASSWORD_FILE"]
    assert user.rotate(store).status != 0
    assert store.file.read_bytes() == content
    assert user.sandbox.sent() == []


def test_recorded_key_survives_a_rotation_that_was_not_pushed(user: User, stores: Stores) -> None:
    store = stores(VaultedVariable)
    assert user.rotate(store).changed()
    store.commit()
    pushed = stored(user, store)
    user.sandbox.advance(WEEK)
    assert user.rotate(store).changed()
    not_pushed = stored(user, store)
    store.git("checkout", "--quiet", ".")
    user.sandbox.advance(1)
    assert user.rotate(store).changed()
    assert [user.sandbox.accepts(secret) for secret in (pushed, not_pushed, stored(user, store))] == [True] * 3


def test_changed_secret_is_not_overwritten(user: User, stores: Stores) -> None:
    """A change between the read and the write is a conflict, and so is one before the rollback."""
    kv = stores(KvSecret)
    previous = prepared(user, kv)
    # A deleted secret has a version, but none that can be read.
    kv.bao.client.secrets.kv.v2.delete_latest_version_of_secret(kv.path)
    assert user.rotate(kv).status == 2
    assert kv.key() is None and user.keys(kv) == []

    kv.put_key(previous)
    change = f"""\
---
- name: Change another field
  community.hashi_vault.vault_kv2_write:
    path: {kv.path}
    data: "{{{{ clouddb_stored.secret | combine({{'password': 'changed'}}) }}}}"

- name: Fail
  ansible.builtin.fail:
"""
    (user.folder / "tasks" / "change.yml").write_text(change, encoding="utf-8")
    run = user.rotate(kv, api_key_rotation_deploy_tasks=[kv.update_tasks, "tasks/change.yml"])
    assert run.status == 2
    assert kv.others() == {"password": "changed"}
    assert stored(user, kv) != previous
    [kept] = user.keys(kv)
    assert named_as_valid(run.output, kept)


def test_conflict_in_kubernetes_is_rolled_back(user: User, stores: Stores) -> None:
    store = stores(KubernetesSecret)
    previous = prepared(user, store)
    store.api.before_write = lambda: store.api.put("default", "clouddb", password="changed")
    assert user.rotate(store).status == 2
    assert (store.key(), store.others()) == (previous, {"password": "changed"})
    assert user.keys(store) == []

    # The module does not fail if the secret was created in the meantime.
    store.api.secrets.clear()
    assert user.rotate(store).status == 2
    assert (store.key(), store.others()) == (None, {"password": "changed"})
    assert user.keys(store) == []


def named_as_valid(output: str, key_id: int) -> bool:
    """Whether the message of a failure says that this key is still valid."""
    return re.search(rf"\b{key_id}\b[^.]*\bvalid\b", output) is not None
