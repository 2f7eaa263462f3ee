# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Brings the API keys of a name to the state that a task asks for: present or absent."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

from .._errors import ClouddbError, RequestFailed, SecretFileError, sentence
from .._files.secret_file import SECRET_SIZE, SecretFile
from .._http.client import Client
from .._options import NOT_CREATED_KEY_ID
from .api import (
    EARLIEST,
    CreatedKey,
    Key,
    OrphanedKey,
    as_revoked,
    create_key,
    earliest_new_key,
    is_valid_secret,
    list_keys,
    not_revoked,
    numbered,
    require_accepted,
    retry_advice,
    revoke_key,
    roll_back,
    time_of,
)

Result = dict[str, Any]


class SecretUnavailable(ClouddbError):
    """A key exists, but its secret is no longer available."""

    kind = "secret_unavailable"


class OtherKey(ClouddbError):
    """The file holds the secret of another key, which would be overwritten."""

    kind = "other_key"


class MultipleKeys(ClouddbError):
    """Several keys have the name of the one to revoke."""

    kind = "several_keys"


def present(client: Client, name: str, dest: SecretFile | None, regenerate: str, check_mode: bool) -> Result:
    """Create or replace the key of this name where needed, and write its secret to C(dest), if given.

    C(regenerate) is C(never), C(if_lost) or C(always). Returns the result of the module api_key. Raises InvalidOption,
    SecretUnavailable, OtherKey, OrphanedKey, SecretFileError and what Client raises.
    """
    if dest is None:
        return _present(client, name, None, regenerate, check_mode)
    dest.check_path()
    # Tasks that share the file run one after the other: otherwise one could find another's key without its secret.
    # A task that may not create files there only reads it.
    with dest.held() if dest.may_create_files() and not check_mode else nullcontext():
        return _present(client, name, dest, regenerate, check_mode)


def _present(client: Client, name: str, dest: SecretFile | None, regenerate: str, check_mode: bool) -> Result:
    listed = list_keys(client)
    existing = [key for key in listed if key.get("name") == name]
    if existing and not _needs_replacement(client, existing, dest, regenerate):
        return _unchanged(existing, dest, check_mode)
    if dest:
        dest.check_replaceable()
        if not existing:
            _require_no_other_key(client, name, dest)
    if check_mode:
        return _planned(name, existing, dest)
    known_ids = [key["id"] for key in listed]
    # The temporary file is written before the key is created, so that no key is created whose secret can't be written.
    with dest.replacement(size=SECRET_SIZE) if dest else nullcontext() as write:
        created = create_key(client, name, known_ids)
        with _rolled_back_on_error(client, created):
            key, warnings = _earliest_new_key(client, name, created, known_ids)
            is_ours = key["id"] == created.id
            if is_ours and existing:
                require_accepted(client, created)
            if is_ours and write:
                write(created.secret)
    if not is_ours:
        return _roll_back_later_key(client, existing, created, key, dest)
    result = {**_result(True, existing, [key], key, []), "warnings": warnings}
    if dest is None:
        result["key"] = created.secret
    if existing:
        # With the new key, because this task may have authenticated with one of the old ones.
        result["revoked"] = revoke_all(client.with_api_key(created.secret), existing, result, created.id)
    if dest:
        _set_attributes(dest, result)
    return result


def absent(client: Client, key_id: int | None, name: str | None, allow_multiple: bool, check_mode: bool) -> Result:
    """Revoke the key of this id, or the key of this name (several only with C(allow_multiple)).

    In check mode, an earlier task would create the key with the id NOT_CREATED_KEY_ID.
    Returns the result of the module api_key. Raises MultipleKeys, OrphanedKey and what Client raises.
    """
    listed = list_keys(client)
    if key_id == NOT_CREATED_KEY_ID:
        planned = _planned_key(None)
        return _result(True, [planned], [], None, [as_revoked(planned)])
    keys = [key for key in listed if (key["id"] == key_id if name is None else key.get("name") == name)]
    if len(keys) > 1 and not allow_multiple:
        raise MultipleKeys(
            f"{len(keys)} keys are named '{name}' (ids {_ids(keys)}). "
            "Set id to revoke one of them, or allow_multiple: true to revoke all.",
            {"key_ids": [key["id"] for key in keys]},
        )
    # The one used last may be the task's own key, without which no other could be revoked.
    in_order = sorted(keys, key=lambda key: time_of(key, "last_used_at") or EARLIEST)
    revoked = [as_revoked(key) for key in in_order] if check_mode else revoke_all(client, in_order, {})
    return _result(bool(revoked), keys, [], None, revoked)


def _needs_replacement(client: Client, existing: Sequence[Key], dest: SecretFile | None, regenerate: str) -> bool:
    if dest is None or regenerate == "always":
        return regenerate == "always"
    reason = _reason_unavailable(client, dest)
    if reason and regenerate == "never":
        raise SecretUnavailable(_secret_unavailable(existing, reason), {"key_ids": [key["id"] for key in existing]})
    return reason is not None


def _reason_unavailable(client: Client, dest: SecretFile) -> str | None:
    """The sentence that says why the secret in this file is of no use; None when the service accepts it."""
    secret = dest.read()
    if secret is None:
        return f"{dest.path} does not exist."
    if not secret:
        return f"{dest.path} is empty."
    if not is_valid_secret(client.with_api_key(secret)):
        return f"The service rejects the key in {dest.path}."
    return None


def _require_no_other_key(client: Client, name: str, dest: SecretFile) -> None:
    """Raise OtherKey when the file holds a valid key, which can only be one of another name."""
    secret = dest.read()
    if secret and is_valid_secret(client.with_api_key(secret)):
        raise OtherKey(
            f"{dest.option}: {dest.path} holds another key that the service accepts: no key is named '{name}'. Its secret "
            f"would be lost. Set {dest.option} to another path, or remove the file first."
        )


def _set_attributes(dest: SecretFile, result: Result) -> None:
    """Set what only the file itself can have, such as file system attributes. Raises SecretFileError with the result."""
    try:
        dest.set_attributes(dest.path)
    except SecretFileError as error:
        problem = f"{error} The new key {result['api_key']['id']} is in use, and its secret is in {dest.path}."
        raise SecretFileError(problem, error.details, result) from error


def _secret_unavailable(existing: Sequence[Key], reason: str) -> str:
    name = existing[0]["name"]
    if len(existing) == 1:
        return (
            f"A key named '{name}' exists (id {_ids(existing)}), but its secret is no longer available. {reason} "
            "The service shows a secret only once. Set regenerate: if_lost to replace the key."
        )
    return (
        f"{len(existing)} keys named '{name}' exist (ids {_ids(existing)}), but their secrets are no longer available. "
        f"{reason} The service shows a secret only once. Set regenerate: if_lost to replace all of them with one new key."
    )


def _unchanged(existing: Sequence[Key], dest: SecretFile | None, check_mode: bool) -> Result:
    changed = False
    if dest:
        # In check mode, set_attributes() changes nothing and returns whether it would.
        changed = dest.set_attributes(dest.path) if check_mode else dest.update_attributes()
    result = _result(changed, existing, existing, existing[0], [])
    if len(existing) > 1:
        result["warnings"] = [
            f"{len(existing)} keys are named '{existing[0]['name']}' (ids {_ids(existing)}), and none of them was changed. "
            "An interrupted task can leave a key whose secret nobody has. "
            "Revoke unused keys by id, or set regenerate: always to replace all of them with one new key."
        ]
    return result


def _planned(name: str, existing: Sequence[Key], dest: SecretFile | None) -> Result:
    """What check mode says of a key that would be created."""
    key = _planned_key(name)
    result = _result(True, existing, [key], key, [as_revoked(old) for old in existing])
    return result if dest else {**result, "key": None}


def _planned_key(name: str | None) -> Key:
    return {"id": None, "name": name, "created_at": None, "last_used_at": None, "last_used_from_addr": ""}


@contextmanager
def _rolled_back_on_error(client: Client, created: CreatedKey) -> Iterator[None]:
    """Revoke the created key if the block fails, even if it is interrupted: nobody would have the secret."""
    try:
        yield
    except BaseException as error:
        roll_back(client, created, str(error) or type(error).__name__)
        raise


def _earliest_new_key(
    client: Client, name: str, created: CreatedKey, known_ids: Collection[int]
) -> tuple[Key, list[str]]:
    """The key that is kept, and warnings; the one that this task created when the keys can't be listed."""
    try:
        return earliest_new_key(client, name, created, known_ids), []
    except RequestFailed as error:
        warning = (
            f"Key {created.id} was created, but the keys could not be listed again: another host may have created a key "
            f"named '{name}' at the same time. Check with api_key_info that there is only one. Error: {sentence(error)}"
        )
        return created.public, [warning]


def _roll_back_later_key(
    client: Client, existing: Sequence[Key], created: CreatedKey, earlier: Key, dest: SecretFile | None
) -> Result:
    """Another host was earlier: its key is kept, the one that this task created is revoked."""
    reason = f"Key {earlier['id']} of the same name was created a moment earlier by another host or task, which has its secret."
    roll_back(client, created, reason)
    warning = f"{reason} Key {created.id}, which this task had created, was revoked."
    if dest:
        warning += f" {dest.path} was not written."
    return {**_result(False, existing, existing, earlier, []), "warnings": [warning]}


def revoke_all(client: Client, keys: Sequence[Key], result: Result, new_id: int | None = None) -> list[Key]:
    """The revocation results. C(new_id) is the id of the key that replaces these.

    Raises OrphanedKey with the task's result so far, which may hold the secret of the new key.
    """
    revoked: list[Key] = []
    for position, key in enumerate(keys):
        try:
            revocation = revoke_key(client, key)
        except RequestFailed as error:
            remaining = [other["id"] for other in keys[position:]]
            result = {**result, "changed": new_id is not None or bool(revoked), "revoked": revoked}
            raise OrphanedKey(
                _revocation_failed(revoked, remaining, new_id, error), remaining, error, result
            ) from error
        if revocation:
            revoked.append(revocation)
    return revoked


def _revocation_failed(
    revoked: Sequence[Key], remaining: Sequence[int], new_id: int | None, error: RequestFailed
) -> str:
    problem = not_revoked(remaining, error)
    if revoked:
        verb = "was" if len(revoked) == 1 else "were"
        problem = f"{numbered([key['id'] for key in revoked])} {verb} revoked. {problem}"
    if new_id is None:
        return f"{problem} {retry_advice(error)}"
    which = "it" if len(remaining) == 1 else "them"
    return f"The new key {new_id} is in use. {problem} Revoke {which} with state=absent and id."


def _result(changed: bool, before: Sequence[Key], after: Sequence[Key], key: Key | None, revoked: list[Key]) -> Result:
    return {
        "changed": changed,
        "api_key": key,
        "revoked": revoked,
        "diff": {"before": {"api_keys": list(before)}, "after": {"api_keys": list(after)}},
    }


def _ids(keys: Sequence[Key]) -> str:
    return ", ".join(str(key["id"]) for key in keys)
