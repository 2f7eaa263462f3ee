# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Revokes the older keys of a rotation, or the new one if its deployment failed, by evidence of all consumers. Keeps P3 and P6."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import NoReturn

from .._errors import ClouddbError, InvalidOption
from .._http.client import Client
from .._keys.api import Key, as_revoked, not_revoked, numbered, revoke_key, sentence
from .._keys.ensure import Result, revoke_all
from .evidence import Evidence, RotationRefused
from .plan import Rotation, remaining_grace_period, surplus
from .record import COMMITTED, checksum

# The Date header has a resolution of one second.
CLOCK_TOLERANCE = timedelta(seconds=2)
OWN_KEY_LEFT = (
    "{} of this name is the task's own key, and not revoked. Switch to the newest key, then run the role again."
)


class RotationFailed(ClouddbError):
    """The new key was not deployed to all consumers."""

    kind = "rotation_failed"


def revoke(
    client: Client, rotation: Rotation, key_id: int | None, keep: int, grace_period: float, check_mode: bool
) -> Result:
    """Revoke the keys older than C(key_id), which must be the newest, if the evidence shows that every consumer holds it.

    C(key_id) None means that the key would be created, in check mode. The key that this task authenticates with is not
    revoked; C(left) has its id then. Raises RotationRefused, with nothing revoked, OrphanedKey and what a Client raises.
    """
    keys = rotation.keys
    if key_id is not None:
        _require_newest(client, rotation, key_id, grace_period)
    elif not check_mode:
        raise InvalidOption("key_id", "is required")
    older, _unrecorded = surplus(rotation, keys if key_id is None else keys[:-1], keep)
    own = rotation.own_keys(client.connection.api_key)
    revocable = [key for key in older if key["id"] not in own]
    left = [key["id"] for key in older if key["id"] in own]
    result: Result = {
        "changed": bool(revocable),
        "api_key": keys[-1] if keys else None,
        "left": left,
        "warnings": [OWN_KEY_LEFT.format(numbered(left))] if left else [],
    }
    if check_mode:
        return {**result, "revoked": [as_revoked(key) for key in revocable]}
    revoked = revoke_all(client, revocable, result)
    return {**result, "changed": bool(revoked), "revoked": revoked}


def withdraw(
    client: Client, rotation: Rotation, key_id: int, secret: str, errors: Mapping[str, str], check_mode: bool
) -> NoReturn:
    """Revoke the new key if the evidence shows that no consumer holds it any more, and raise RotationFailed in any case.

    C(errors) are the errors of the consumers, by name.
    """
    consumers = rotation.expected()
    holding = [name for name in consumers if not _cannot_hold(rotation.evidence.get(name), key_id, secret)]
    failed = {name: errors.get(name) for name in consumers if errors.get(name) or name not in rotation.evidence}
    texts = [f"{name}: {sentence(text or 'The host left the play')}" for name, text in failed.items()]
    restored = [name for name in consumers if name not in failed and name not in holding]
    if restored:
        texts.append(f"Rolled back: {', '.join(restored)}.")
    key = next((key for key in [*rotation.keys, *rotation.foreign_keys] if key["id"] == key_id), None)
    texts.append(_withdrawal(client, key_id, key, holding, check_mode))
    if others := [other["id"] for other in rotation.keys if other["id"] != key_id]:
        texts.append(f"{numbered(others)} of this name {'is' if len(others) == 1 else 'are'} unchanged.")
    raise RotationFailed(
        f"Key {key_id} could not be deployed to all consumers. {' '.join(texts)} Fix the errors and run the role again.",
        {"consumers": list(failed), "key_ids": [key_id] if key else []},
    )


def _withdrawal(client: Client, key_id: int, key: Key | None, holding: Sequence[str], check_mode: bool) -> str:
    """Revoke the key unless consumers may hold it; the sentence that says so."""
    if key is None:
        return f"Key {key_id} has been revoked by another rotation or by somebody else."
    if holding:
        return f"Key {key_id} is still valid, because it may be in use on {', '.join(holding)}."
    if check_mode:
        return f"Key {key_id} would be revoked."
    try:
        revoke_key(client, key)
    except ClouddbError as error:
        return f"{not_revoked([key_id], error)} {sentence(error)}"
    return f"Key {key_id} was revoked."


def _require_newest(client: Client, rotation: Rotation, key_id: int, grace_period: float) -> None:
    """Raise RotationRefused unless every consumer is committed to the key, it is the newest, and the grace period is over."""
    # Without evidence a key counts as somebody else's, so whether it is the newest is known only afterwards.
    problems = {name: _reason_to_refuse(rotation.evidence.get(name), key_id) for name in rotation.expected()}
    refused = {name: problem for name, problem in problems.items() if problem}
    if refused:
        texts = " ".join(f"{name} {problem}." for name, problem in refused.items())
        raise RotationRefused(
            f"No key was revoked, because key {key_id} is not confirmed on all consumers: {texts} "
            "Run the role again, and only once at a time.",
            {"consumers": sorted(refused), "key_ids": [key_id]},
        )
    if not rotation.keys or rotation.keys[-1]["id"] != key_id:
        raise RotationRefused(
            f"Key {key_id} is not the newest key of this name any more. No key was revoked. Another rotation is running or "
            "was interrupted. Run the role again, and only once at a time.",
            {"key_ids": [key_id]},
        )
    remaining = remaining_grace_period(grace_period, rotation, client.service_now() + CLOCK_TOLERANCE)
    if remaining:
        raise RotationRefused(
            f"No key was revoked, because the grace period ends in {remaining:.0f} seconds. Run the role again then."
        )


def _reason_to_refuse(evidence: Evidence | None, key_id: int) -> str:
    """Why this evidence does not show that the consumer holds the key; empty if it does."""
    if evidence is None:
        return "has given no evidence in this run"
    if evidence.key_id != key_id:
        return f"holds {f'key {evidence.key_id}' if evidence.key_id else 'another secret or none'}"
    if evidence.accepted is not True:
        return "holds a secret that the service does not accept"
    return "" if evidence.state == COMMITTED else "may still be rolled back"


def _cannot_hold(evidence: Evidence | None, key_id: int, secret: str) -> bool:
    """Whether the consumer does not hold this secret, nor may return to it."""
    return (
        evidence is not None
        and evidence.tasks_rolled_back
        and evidence.withdrawn == key_id
        and checksum(secret) not in (evidence.sha256, evidence.return_sha256)
    )
