# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Brings the API keys of a name to the state that a task asks for: present or absent. Keeps P2, P3, P5, P6 and P9."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Callable

from .._errors import ClouddbError, Result, SecretFileError
from .._files.secret_file import SecretFile
from .._http.client import Client
from .._http.errors import RequestFailed
from .._options import NOT_CREATED_KEY_ID
from .._timestamps import BEGINNING, timestamp_of
from .keys import (
    CreatedKey,
    Key,
    NamedKeys,
    as_revoked,
    choose_key,
    create_key,
    is_valid_secret,
    list_keys,
    not_revoked,
    orphaned_key,
    retry_advice,
    revoke_created_key,
    revoke_key,
    with_new_key,
)
from .scope import KeyScope


def present(
    client: Client, name: str, scope: KeyScope, dest: SecretFile | None, regenerate: str, check_mode: bool
) -> Result:
    """Create or replace the key of this name where needed, and write its secret to C(dest), if given.

    C(regenerate) is C(never), C(if_lost) or C(always). Returns the result of the module api_key. Raises InvalidOption,
    ClouddbError, SecretFileError and what Client raises.
    """
    if dest is None:
        return _present_in_result(client, name, scope, regenerate, check_mode)
    dest.check_path()
    # Tasks that share the file run one after the other: otherwise one could find another's key without its secret.
    with dest.held():
        return _present_in_file(client, name, scope, dest, regenerate, check_mode)


def _present_in_result(client: Client, name: str, scope: KeyScope, regenerate: str, check_mode: bool) -> Result:
    keys = NamedKeys(name, scope, list_keys(client, scope))
    if keys.of_the_name and regenerate != "always":
        return _unchanged(keys.of_the_name)
    if check_mode:
        return {**_planned(keys), "key": None}
    return _create(client, keys, None)


def _present_in_file(
    client: Client, name: str, scope: KeyScope, dest: SecretFile, regenerate: str, check_mode: bool
) -> Result:
    secret = dest.read_key()
    keys = NamedKeys(name, scope, list_keys(client, scope))
    must_be_replaced = regenerate == "always" and keys.of_the_name
    if not must_be_replaced and _is_secret(client, keys, dest, secret, regenerate):
        # In check mode, set_attributes() changes nothing and returns whether it would.
        return _unchanged(keys.of_the_name, changed=dest.set_attributes(dest.path))
    result: Result = {}
    try:
        # The temporary file is written before the key is created, so that no key is created whose secret can't be written.
        with dest.replacement(check_space=True) as write:
            result = _planned(keys) if check_mode else _create(client, keys, write)
    except SecretFileError as error:
        if not result:
            raise
        problem = f"{error} The new key {result['api_key']['id']} is in use."
        raise SecretFileError(problem, error.details, result) from error
    return result


def _create(client: Client, keys: NamedKeys, write: Callable[[str], None] | None) -> Result:
    """Create a key, C(write) its secret or put it into the result, and then revoke the older keys of the name.

    If another host was earlier, the created key is revoked instead. Returns the task's result. If an older key can't be
    revoked, the error holds the result.
    """
    created = create_key(client, keys)
    try:
        if keys.of_the_name:
            # This task, or another host, may revoke the key that the task has authenticated with.
            client = with_new_key(client, created, keys.scope)
        kept, warnings = choose_key(client, keys, created)
    except BaseException as error:
        # Even if the task is interrupted: nobody has the secret.
        revoke_created_key(client, created, str(error) or type(error).__name__, keys.scope)
        raise
    if kept["id"] != created.id:
        return _revoke_later_key(client, created, keys, kept, has_dest=write is not None)
    result = {**_result(True, keys.of_the_name, [kept], kept, []), "warnings": warnings}
    if write is None:
        result["key"] = created.secret
    else:
        try:
            write(created.secret)
        except SecretFileError as error:
            # Not if the task is interrupted: the file may already hold the secret.
            revoke_created_key(client, created, str(error), keys.scope)
            raise SecretFileError(f"{error} The new key {created.id} was revoked.", error.details) from error
    return {**result, "revoked": revoke_all(client, keys.of_the_name, keys.scope, result, created.id)}


def absent(
    client: Client, key_id: int | None, name: str | None, scope: KeyScope, allow_multiple: bool, check_mode: bool
) -> Result:
    """Revoke the key of this id, or the key of this name (several only with C(allow_multiple)).

    In check mode, an earlier task would create the key with the id NOT_CREATED_KEY_ID.
    Returns the result of the module api_key. Raises ClouddbError and what Client raises.
    """
    listed = list_keys(client, scope)
    if key_id == NOT_CREATED_KEY_ID:
        planned = _planned_key(None)
        return _result(True, [planned], [], None, [as_revoked(planned)])
    by_id = [key for key in listed if key["id"] == key_id]
    keys = by_id if name is None else NamedKeys(name, scope, listed).of_the_name
    if len(keys) > 1 and not allow_multiple:
        raise ClouddbError(
            "several_keys",
            f"{len(keys)} keys are named '{name}' ({_ids(keys)}). "
            "Set id to revoke one of them, or allow_multiple: true to revoke all.",
            {"key_ids": [key["id"] for key in keys]},
        )
    # The one used last may be the task's own key, without which no other could be revoked.
    in_order = sorted(keys, key=lambda key: timestamp_of(key, "last_used_at") or BEGINNING)
    revoked = [as_revoked(key) for key in in_order] if check_mode else revoke_all(client, in_order, scope, {})
    return _result(bool(revoked), keys, [], None, revoked)


def _is_secret(client: Client, keys: NamedKeys, dest: SecretFile, secret: str | None, regenerate: str) -> bool:
    """Whether the service accepts what the file holds, which then counts as the secret of the key of this name.

    Raises ClouddbError if it does and there is no such key, or if it does not and the key must not be replaced.
    """
    is_valid = bool(secret and is_valid_secret(client.with_api_key(secret), keys.scope))
    existing = keys.of_the_name
    if is_valid and not existing:
        raise ClouddbError(
            "other_key",
            f"{dest.option}: {dest.path} holds another key that the service accepts: no key is named '{keys.name}'. Its "
            f"secret would be lost. Set {dest.option} to another path, or remove the file first.",
            {"key_ids": []},
        )
    if existing and not is_valid and regenerate == "never":
        reasons = {None: f"{dest.path} does not exist.", "": f"{dest.path} is empty."}
        reason = reasons.get(secret, f"The service rejects the key in {dest.path}.")
        raise ClouddbError(
            "secret_unavailable",
            f"A key named '{keys.name}' exists ({_ids(existing)}), but its secret is no longer available. {reason} "
            "The service shows a secret only once. Set regenerate: if_lost to replace the key.",
            {"key_ids": [key["id"] for key in existing]},
        )
    return is_valid


def _revoke_later_key(client: Client, created: CreatedKey, keys: NamedKeys, kept: Key, has_dest: bool) -> Result:
    """Revoke the key that this task created, because another host was earlier. Returns the task's result."""
    reason = (
        f"Key {kept['id']} of the same name was created a moment earlier by another host or task, which has its secret."
    )
    revoke_created_key(client, created, reason, keys.scope)
    not_written = " dest was not written." if has_dest else ""
    warning = f"{reason} Key {created.id}, which this task had created, was revoked.{not_written}"
    return {**_result(False, keys.of_the_name, keys.of_the_name, kept, []), "warnings": [warning]}


def _unchanged(existing: Sequence[Key], changed: bool = False) -> Result:
    """The result of keys that are kept. C(changed) is whether anything else was changed."""
    result = _result(changed, existing, existing, existing[0], [])
    if len(existing) > 1:
        result["warnings"] = [
            f"{len(existing)} keys are named '{existing[0]['name']}' ({_ids(existing)}), and none of them was changed. "
            "An interrupted task can leave a key whose secret nobody has. "
            "Revoke unused keys by id, or set regenerate: always to replace all of them with one new key."
        ]
    return result


def _planned(keys: NamedKeys) -> Result:
    """What check mode says of a key that would be created."""
    key = _planned_key(keys.name)
    return _result(True, keys.of_the_name, [key], key, [as_revoked(old) for old in keys.of_the_name])


def _planned_key(name: str | None) -> Key:
    return {"id": None, "name": name, "created_at": None, "last_used_at": None, "last_used_from_addr": ""}


def revoke_all(
    client: Client, keys: Sequence[Key], scope: KeyScope, result: Result, new_id: int | None = None
) -> list[Key]:
    """Revoke the keys in this order, and return the revocation results of those that were still active.

    Raises ClouddbError with C(result), the task's result so far. It may hold the secret of the key C(new_id), which replaces these.
    """
    revoked: list[Key] = []
    for position, key in enumerate(keys):
        try:
            revocation = revoke_key(client, key, scope)
        except RequestFailed as error:
            remaining = [other["id"] for other in keys[position:]]
            problem = f"{not_revoked(remaining, error)} {retry_advice(error)}"
            if new_id is not None:
                problem = f"The new key {new_id} is in use. {not_revoked(remaining, error)} Revoke them with state=absent and id."
            result = {**result, "changed": new_id is not None or bool(revoked), "revoked": revoked}
            raise orphaned_key(problem, remaining, error, result) from error
        if revocation:
            revoked.append(revocation)
    return revoked


def _result(changed: bool, before: Sequence[Key], after: Sequence[Key], key: Key | None, revoked: list[Key]) -> Result:
    return {
        "changed": changed,
        "api_key": key,
        "revoked": revoked,
        "diff": {"before": {"api_keys": list(before)}, "after": {"api_keys": list(after)}},
    }


def _ids(keys: Sequence[Key]) -> str:
    return f"{'id' if len(keys) == 1 else 'ids'} {', '.join(str(key['id']) for key in keys)}"
