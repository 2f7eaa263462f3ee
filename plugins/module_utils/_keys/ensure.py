# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Brings the API keys of a name to the state that a task asks for: present or absent."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

from .._errors import ClouddbError, RequestFailed
from .._http.client import Client
from .api import (
    CreatedKey,
    Key,
    OrphanedKey,
    create_key,
    first_created,
    is_accepted,
    keys_named,
    list_keys,
    revoke_key,
    revoke_unwanted,
)
from .secret_file import SecretFile

Result = dict[str, Any]


class KeyLost(ClouddbError):
    """A key exists, but its secret can't be had again."""

    kind = "key_lost"


class SeveralKeys(ClouddbError):
    """One key was meant, several have its name."""

    kind = "several_keys"


def present(client: Client, name: str, dest: SecretFile | None, regenerate: str, check_mode: bool) -> Result:
    """See to it that there is a key of this name, and that C(dest), if given, holds a secret that the service takes.

    Raises KeyLost, OrphanedKey, SecretFileError and what Client raises.
    """
    if dest is None:
        return _present(client, name, None, regenerate, check_mode)
    dest.check()
    # Tasks that share the file go one after the other, lest one finds the key of another without its secret.
    with nullcontext() if check_mode else dest.held():
        return _present(client, name, dest, regenerate, check_mode)


def _present(client: Client, name: str, dest: SecretFile | None, regenerate: str, check_mode: bool) -> Result:
    existing = keys_named(client, name)
    if existing and not _is_to_be_replaced(client, existing, dest, regenerate):
        return _kept(existing, dest)
    if check_mode:
        planned = {"id": None, "name": name, "created_at": None}
        return {
            **_result(True, existing, [planned], planned, [{**key, "revoked": True} for key in existing]),
            **({} if dest else {"key": None}),
        }
    known_ids = [key["id"] for key in existing]
    # The file is made before the key, so that a key is never created for a place that can't be written.
    with dest.replacement() if dest else nullcontext() as put:
        created = create_key(client, name, known_ids)
        warnings = []
        try:
            try:
                stays = first_created(client, name, created, known_ids)
            except RequestFailed as fault:
                stays = created.public
                unknown = f"Whether another host created a key named '{name}' at the same time is not known"
                warnings.append(f"{unknown}, as the keys could not be listed again: {fault}.")
            if put and stays["id"] == created.public["id"]:
                put(created.secret)
        except BaseException as error:
            revoke_unwanted(client, created, str(error) or type(error).__name__)
            raise
        if stays["id"] != created.public["id"]:
            return _yielded(client, existing, created, stays, dest)
    result = {
        **_result(True, existing, [stays], stays, []),
        "warnings": warnings,
        **({} if dest else {"key": created.secret}),
    }
    if existing:
        # With the new key: one of the old ones may be the key that this task has used so far.
        result["revoked"] = _revoke_all(
            client.with_api_key(created.secret), existing, result, f"the new key {stays['id']} is in use"
        )
    if dest:
        dest.set_attributes(dest.path)
    return result


def absent(client: Client, key_id: int | None, name: str | None, allow_multiple: bool, check_mode: bool) -> Result:
    """Revoke the key of this id, or the key of this name (several only with C(allow_multiple)).

    Raises SeveralKeys, OrphanedKey and what Client raises.
    """
    keys = [key for key in list_keys(client) if key["id"] == key_id] if name is None else keys_named(client, name)
    if len(keys) > 1 and not allow_multiple:
        raise SeveralKeys(
            f"{len(keys)} keys are named '{name}' (ids {_ids(keys)}): give the id of the one to revoke, or set allow_multiple: true to revoke all",
            {"key_ids": [key["id"] for key in keys]},
        )
    revoked = (
        [{**key, "revoked": True} for key in keys]
        if check_mode
        else _revoke_all(client, keys, {}, "the revocation is not complete")
    )
    return _result(bool(revoked), keys, [], None, revoked)


def _is_to_be_replaced(client: Client, existing: Sequence[Key], dest: SecretFile | None, regenerate: str) -> bool:
    if regenerate == "always" or dest is None:
        return regenerate == "always"
    loss = _loss(client, dest)
    if loss and regenerate == "never":
        raise KeyLost(
            f"a key named '{existing[0]['name']}' exists (id {_ids(existing)}), but its secret is lost: {loss}. "
            "A secret is shown only once; set regenerate: if_lost to replace the key",
            {"key_ids": [key["id"] for key in existing]},
        )
    return loss is not None


def _loss(client: Client, dest: SecretFile) -> str | None:
    """Why the secret in this file counts as lost; None when the service takes it."""
    secret = dest.read()
    if not secret:
        return f"{dest.path} {'does not exist' if secret is None else 'is empty'}"
    return None if is_accepted(client, secret) else f"the service refuses the key in {dest.path}"


def _kept(existing: Sequence[Key], dest: SecretFile | None) -> Result:
    result = _result(dest is not None and dest.set_attributes(dest.path), existing, existing, existing[0], [])
    if len(existing) > 1:
        interrupted = "After a task that was interrupted, nobody has the secret of one of them"
        way_out = "revoke by its id what nobody uses, or set regenerate: always to replace all of them by one"
        result["warnings"] = [
            f"{len(existing)} keys are named '{existing[0]['name']}' (ids {_ids(existing)}); none was changed. {interrupted}: {way_out}."
        ]
    return result


def _yielded(
    client: Client, existing: Sequence[Key], created: CreatedKey, stays: Key, dest: SecretFile | None
) -> Result:
    """Another host was earlier: its key stays, ours goes."""
    key_id = created.public["id"]
    revoke_unwanted(client, created, f"key {stays['id']} of the same name was created earlier by somebody else")
    warning = f"Key {stays['id']} of the same name was created a moment earlier by somebody else; key {key_id}, made by this task, was revoked again"
    warning += f" and {dest.path} was not written." if dest else "."
    return {**_result(False, existing, existing, stays, []), "warnings": [warning]}


def _revoke_all(client: Client, keys: Sequence[Key], result: Result, state: str) -> list[Key]:
    """The revocation results. Raises OrphanedKey, which carries the task's result so far: a secret in it is not lost."""
    revoked: list[Key] = []
    for position, key in enumerate(keys):
        try:
            revocation = revoke_key(client, key)
        except RequestFailed as fault:
            left = keys[position:]
            result = {**result, "changed": bool(result or revoked), "revoked": revoked}
            problem = f"{state}, but these keys {'may still be' if fault.may_have_acted else 'are still'} valid: {_ids(left)} ({fault})"
            raise OrphanedKey(problem, [key["id"] for key in left], fault, result) from fault
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
    return ", ".join(str(key["id"]) for key in keys)
