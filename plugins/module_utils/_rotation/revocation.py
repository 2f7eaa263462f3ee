# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Revokes the older keys of a rotation, or the new one if its deployment failed, once all hosts allow it. Keeps P3 and P6."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import NoReturn

from .._errors import ClouddbError, InvalidOption, Result, sentence
from .._http.client import Client
from .._http.errors import RequestFailed
from .._keys.ensure import revoke_all
from .._keys.keys import Key, as_revoked, not_revoked, numbered, revoke_key
from .._keys.scope import KeyScope
from .._timestamps import BEGINNING, timestamp_of
from .confirmation import MAX_AGE, NAMED_HOSTS, Confirmation, names_text
from .plan import Rotation, remain
from .record import COMMITTED, checksum


def revoke(
    client: Client, rotation: Rotation, key_id: int | None, keep: int, grace_period: float, check_mode: bool
) -> Result:
    """Revoke the keys older than C(key_id), which must be the newest, if every host has confirmed that it holds it.

    C(key_id) None means that the key would be created, in check mode. The task's own key and those that somebody else uses
    are not revoked; C(left) has their ids then. Raises ClouddbError and what a Client raises.
    """
    keys = rotation.keys
    if key_id is not None:
        _require_committed(rotation, key_id)
    elif not check_mode:
        raise InvalidOption("key_id", "is required")
    older = rotation.superseded(keys if key_id is None else keys[:-1], keep) if rotation.may_revoke() else []
    own_ids = rotation.own_keys(client.connection.api_key)
    own = [key for key in older if key["id"] in own_ids]
    of_others, warnings = _used_by_others(rotation, [key for key in older if key not in own], grace_period)
    if own:
        advice = "of this name. Switch to the newest key, then run the role again."
        warnings.append(f"The task's own key is not revoked: {numbered(_ids(own)).lower()} {advice}")
    revocable = [key for key in older if key not in [*own, *of_others]]
    result: Result = {
        "api_key": keys[-1] if keys else None,
        "left": _ids([*of_others, *own]),
        "warnings": warnings,
    }
    revoked = (
        [as_revoked(key) for key in revocable] if check_mode else revoke_all(client, revocable, rotation.scope, result)
    )
    return {**result, "changed": bool(revoked), "revoked": revoked}


def _used_by_others(rotation: Rotation, older: Sequence[Key], grace_period: float) -> tuple[list[Key], list[str]]:
    """Those of the older keys that no record names, and that were used since this rotation replaced them; with a warning."""
    newer = [key for key in rotation.keys if key not in older]
    own = [key for key in newer if key["id"] == rotation.own_key]
    if not rotation.none_has_record or not newer:
        return [], []
    latest = [*own, *newer][0]
    deployed_at = timestamp_of(latest, "created_at")
    # A run of the role uses the former key until it ends, at the latest when confirmations are too old.
    margin = MAX_AGE + timedelta(seconds=grace_period)
    used = [
        key
        for key in older
        if deployed_at is None or (timestamp_of(key, "last_used_at") or BEGINNING) > deployed_at + margin
    ]
    if not used:
        return [], []
    warning = (
        f"{remain(used)} valid, because of a use after key {latest['id']} was deployed, which may be somebody else's. Use a "
        "separate api_key_rotation_name for each store. Revoke keys that nothing uses by their ids."
    )
    return used, [warning]


def _ids(keys: Sequence[Key]) -> list[int]:
    return [key["id"] for key in keys]


def roll_back(
    client: Client, rotation: Rotation, key_id: int, secret: str, errors: Mapping[str, str], check_mode: bool
) -> NoReturn:
    """Revoke the new key if every host has confirmed that it no longer holds it. Always raises ClouddbError.

    C(errors) are the errors of the hosts, by name.
    """
    hosts, confirmations = rotation.hosts, rotation.confirmations
    holding = [name for name in hosts if not _cannot_hold(confirmations.get(name), key_id, secret)]
    failed = [name for name in hosts if errors.get(name) or name not in confirmations]
    texts = [f"{name}: {sentence(errors.get(name) or 'The host left the play')}" for name in failed[:NAMED_HOSTS]]
    if len(failed) > NAMED_HOSTS:
        texts.append(f"{len(failed) - NAMED_HOSTS} more hosts failed.")
    restored = [name for name in hosts if name not in failed and name not in holding]
    if restored:
        texts.append(f"Rolled back: {names_text(restored)}.")
    key = next((key for key in [*rotation.keys, *rotation.foreign_keys] if key["id"] == key_id), None)
    texts.append(_revocation(client, key_id, key, rotation.scope, holding, check_mode))
    raise ClouddbError(
        "rotation_failed",
        f"Key {key_id} could not be deployed to all hosts. {' '.join(texts)} The older keys are unchanged. Fix the errors and run "
        "the role again.",
        {"hosts": failed, "key_ids": [key_id] if key else []},
    )


def _revocation(
    client: Client, key_id: int, key: Key | None, scope: KeyScope, holding: Sequence[str], check_mode: bool
) -> str:
    """Revoke the key unless hosts may hold it; the sentence that says so."""
    if key is None:
        return f"Key {key_id} has been revoked by another rotation or by somebody else."
    if holding:
        return f"Key {key_id} is still valid, because it may be in use on {names_text(holding)}."
    if check_mode:
        return f"Key {key_id} would be revoked."
    try:
        revoke_key(client, key, scope)
    except RequestFailed as error:
        return f"{not_revoked([key_id], error)} {sentence(error)}"
    return f"Key {key_id} was revoked."


def _require_committed(rotation: Rotation, key_id: int) -> None:
    """Raise ClouddbError unless every host is committed to the key, and it is the newest."""
    # Without confirmations no record names the key, so whether it is the newest is known only afterwards.
    problems = {name: _reason_to_refuse(rotation.confirmations.get(name), key_id) for name in rotation.hosts}
    refused = {name: problem for name, problem in problems.items() if problem}
    if refused:
        texts = [f"{name} {problem}." for name, problem in list(refused.items())[:NAMED_HOSTS]]
        if len(refused) > NAMED_HOSTS:
            texts.append(f"So it is on {len(refused) - NAMED_HOSTS} more hosts.")
        raise ClouddbError(
            "rotation_refused",
            f"No key was revoked, because key {key_id} is not confirmed on all hosts: {' '.join(texts)} "
            "Run the role again, and only once at a time.",
            {"hosts": sorted(refused), "key_ids": [key_id]},
        )
    if not rotation.keys or rotation.keys[-1]["id"] != key_id:
        raise ClouddbError(
            "rotation_refused",
            f"Key {key_id} is no longer the newest key of this name. No key was revoked. Another rotation is running or "
            "was interrupted. Run the role again, and only once at a time.",
            {"key_ids": [key_id]},
        )


def _reason_to_refuse(confirmation: Confirmation | None, key_id: int) -> str:
    """Why the host has not confirmed that it holds the key; empty if it has."""
    if confirmation is None:
        return "did not report in this run"
    if confirmation.key_id != key_id:
        return f"holds {f'key {confirmation.key_id}' if confirmation.key_id else 'another secret or none'}"
    if confirmation.accepted is not True:
        return "holds a secret that the service does not accept"
    return "" if confirmation.state == COMMITTED else "may still be rolled back"


def _cannot_hold(confirmation: Confirmation | None, key_id: int, secret: str) -> bool:
    """Whether the host does not hold this secret, nor may return to it."""
    return (
        confirmation is not None
        and confirmation.tasks_rolled_back
        and confirmation.rolled_back == key_id
        and checksum(secret) not in (confirmation.sha256, confirmation.return_sha256)
    )
