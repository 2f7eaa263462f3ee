# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decides about the rotation of a key: whether a new key is needed, and which keys may be revoked, by evidence of all consumers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple, NoReturn

from .._errors import ClouddbError, InvalidOption
from .._http.client import Client
from .._timestamps import parse_timestamp
from .api import Key, list_keys, not_revoked, numbered, revoke_key, sentence
from .ensure import Result, revoke_all
from .evidence import Evidence, RotationRefused, recorded_consumers
from .record import COMMITTED, checksum

PLACEHOLDER = "{timestamp}"
TIMESTAMP_FORMAT = "%Y%m%dT%H%M%SZ"
# The interval between the lists of keys that show which keys are in use, in seconds.
LIST_INTERVAL = 1.0
# The Date header has whole seconds only.
CLOCK_TOLERANCE = timedelta(seconds=2)


class RotationFailed(ClouddbError):
    """The new key was not deployed to all consumers."""

    kind = "rotation_failed"


class Rotation(NamedTuple):
    """What is rotated: the active C(keys) of a C(name) with C({timestamp}) in it, the earliest first.

    C(foreign_keys) have such a name as well, but were used by unknown consumers, and are left alone. C(consumers) are those that the user has named, C(hosts) those of the play, C(former_consumers) those that hold a
    key no longer. C(evidence) is that of this run's latest step, by consumer. C(now) is the time by the service's clock.
    """

    name: str
    keys: Sequence[Key]
    foreign_keys: Sequence[Key]
    consumers: Sequence[str]
    hosts: Sequence[str]
    former_consumers: Sequence[str]
    evidence: Mapping[str, Evidence]
    now: datetime

    def recorded(self) -> dict[int, list[str]]:
        """The recorded consumers of the keys, by key id."""
        active = {key["id"] for key in self.keys}
        recorded = recorded_consumers(self.evidence.values())
        return {key_id: names for key_id, names in recorded.items() if key_id in active}

    def expected(self) -> list[str]:
        """Every consumer that may hold one of the keys, or is to hold the next one."""
        recorded = {name for names in self.recorded().values() for name in names}
        former = set(self.former_consumers) - set(self.hosts)
        return sorted({*self.hosts, *self.consumers, *recorded} - former)

    def is_recorded(self) -> bool:
        """Whether every consumer has a record, so that it is known who may hold a key."""
        return all_recorded(self.evidence)

    def show_files(self) -> bool:
        """Whether every consumer has a file, so that it can show which key it holds at any time."""
        return all(evidence.has_file for evidence in self.evidence.values())


def managed_keys(listed: Sequence[Key], name: str) -> list[Key]:
    """Those of the keys whose name is C(name) with a time in it. Raises InvalidOption unless it has the placeholder once."""
    if name.count(PLACEHOLDER) != 1 or name.strip() == PLACEHOLDER:
        raise InvalidOption("name", f"must contain {PLACEHOLDER} exactly once, and other characters, not '{name}'")
    pattern = re.escape(name).replace(re.escape(PLACEHOLDER), "[0-9]{8}T[0-9]{6}Z")
    return [key for key in listed if isinstance(key.get("name"), str) and re.fullmatch(pattern, key["name"])]


def all_recorded(evidence: Mapping[str, Evidence]) -> bool:
    """Whether every consumer has a record."""
    return all(one.has_record for one in evidence.values())


def split_foreign(keys: Sequence[Key], evidence: Mapping[str, Evidence]) -> tuple[list[Key], list[Key]]:
    """The keys of these consumers, and those that were used although no record names them: others use these.

    A key that was never used was never deployed. Without records, the user has named all consumers.
    """
    if not all_recorded(evidence):
        return list(keys), []
    recorded = recorded_consumers(evidence.values())
    foreign = [key for key in keys if key.get("last_used_at") and key["id"] not in recorded]
    return [key for key in keys if key not in foreign], foreign


def time_of_list(listed: Sequence[Key], now: datetime) -> datetime:
    """The time by the clock that sets created_at: that of the latest use of a key, which was the list request itself."""
    uses = [parse_timestamp(key["last_used_at"]) for key in listed if isinstance(key.get("last_used_at"), str)]
    return max(uses, default=now)


def plan(
    client: Client, rotation: Rotation, max_age: timedelta, keep: int, grace_period: float, tags: Sequence[str]
) -> Result:
    """Whether a new key is needed, and what is to be done then. Changes nothing.

    Returns C(reason) (empty: no new key is needed), C(name) of a new key, C(api_key) (the newest key or None),
    C(consumers), C(older_keys) (the consumers of the active keys, by key id), C(left) (ids of keys of unknown consumers),
    C(revoke) (whether there are keys to
    revoke), and C(grace_period) (its remaining seconds). Raises RotationRefused and what a Client raises.
    """
    keys = rotation.keys
    consumers = rotation.expected()
    if tags:
        raise RotationRefused(
            f"The run is limited to or by tags ({', '.join(tags)}), which may skip the deployment tasks. No key was created "
            "or revoked. Run the play without tags."
        )
    _require_evidence(rotation, consumers)
    if not rotation.is_recorded() and not rotation.consumers:
        raise RotationRefused(
            "The key is deployed by tasks only, and without a record nothing shows who uses it. No key was created or "
            "revoked. Set the consumers of the key explicitly, or a path for the record."
        )
    older = surplus(keys[:-1], keep)
    reason = _why_new(client, rotation, consumers, older, max_age)
    return {
        "changed": False,
        "reason": reason,
        "name": rotation.name.replace(PLACEHOLDER, rotation.now.strftime(TIMESTAMP_FORMAT)),
        "api_key": keys[-1] if keys else None,
        "consumers": consumers,
        "older_keys": {str(key_id): names for key_id, names in rotation.recorded().items()},
        "left": [key["id"] for key in rotation.foreign_keys],
        "warnings": _foreign_warnings(rotation.foreign_keys),
        # Only a file shows which key a consumer holds, other than in the run that deploys it.
        "revoke": bool(surplus(keys, keep)) if reason else bool(older) and rotation.show_files(),
        "grace_period": grace_period if reason else _remaining(grace_period, rotation, client.service_now()),
    }


def revoke(
    client: Client, rotation: Rotation, key_id: int | None, keep: int, grace_period: float, check_mode: bool
) -> Result:
    """Revoke the keys older than C(key_id), which must be the newest, if the evidence shows that every consumer holds it.

    C(key_id) None means that the key would be created, in check mode. The key that this task authenticates with and
    others that are in use are not revoked; C(left) are their ids. Raises RotationRefused, with nothing revoked,
    OrphanedKey and what a Client raises.
    """
    keys = rotation.keys
    if key_id is not None:
        _require_newest(client, rotation, key_id, grace_period)
    elif not check_mode:
        raise InvalidOption("key_id", "is required")
    older = surplus(keys if key_id is None else keys[:-1], keep)
    in_use, own_is_known = _keys_in_use(client) if older else (set(), True)
    revocable = [key for key in older if own_is_known and key["id"] not in in_use]
    result: Result = {
        "changed": bool(revocable),
        "api_key": keys[-1] if keys else None,
        "left": [key["id"] for key in older if key not in revocable],
        "warnings": _warnings(older, in_use, own_is_known),
    }
    if check_mode:
        return {**result, "revoked": [{**key, "revoked": True} for key in revocable]}
    revoked = revoke_all(client, revocable, result)
    return {**result, "changed": bool(revoked), "revoked": revoked}


def withdraw(
    client: Client, rotation: Rotation, key_id: int, secret: str, errors: Mapping[str, str], check_mode: bool
) -> NoReturn:
    """Revoke the new key if the evidence shows that no consumer holds it any more, and raise RotationFailed in any case.

    C(errors) are the errors of the consumers, by name.
    """
    consumers = rotation.expected()
    holding = [name for name in consumers if not _is_free_of(rotation.evidence.get(name), key_id, secret)]
    failed = {name: errors.get(name, "") for name in consumers if name in errors or name not in rotation.evidence}
    texts = " ".join(f"{name}: {sentence(text or 'The host left the play')}" for name, text in failed.items())
    restored = [name for name in consumers if name not in failed and name not in holding]
    if restored:
        texts += f" Rolled back: {', '.join(restored)}."
    key = next((key for key in [*rotation.keys, *rotation.foreign_keys] if key["id"] == key_id), None)
    raise RotationFailed(
        f"Key {key_id} could not be deployed to all consumers. {texts} {_withdrawal(client, key_id, key, holding, check_mode)} "
        f"{_unchanged([other['id'] for other in rotation.keys if other['id'] != key_id])}Fix the errors and run the role again.",
        {"consumers": list(failed), "key_ids": [key_id] if key and holding else []},
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


def _unchanged(key_ids: Sequence[int]) -> str:
    if not key_ids:
        return ""
    return f"{numbered(key_ids)} of this name {'is' if len(key_ids) == 1 else 'are'} unchanged. "


def surplus(older: Sequence[Key], keep: int) -> list[Key]:
    """The older keys to revoke: all that were never used, and of the others all but the latest C(keep)."""
    used = [key["id"] for key in older if key.get("last_used_at")]
    kept = used[len(used) - keep :] if keep else []
    return [key for key in older if key["id"] not in kept]


def _require_evidence(rotation: Rotation, consumers: Sequence[str]) -> None:
    missing = [name for name in consumers if name not in rotation.evidence]
    if missing:
        raise RotationRefused(
            f"There is no evidence of this run from {', '.join(missing)}. No key was created or revoked. The role requires "
            "all consumers of the key at the same time: check that they are reachable, that the strategy is linear, and "
            "that none is excluded by serial, limit or job slices. Name those that no longer use the key in "
            "former_consumers.",
            {"consumers": missing},
        )


def _require_newest(client: Client, rotation: Rotation, key_id: int, grace_period: float) -> None:
    """Raise RotationRefused unless the key is the newest, every consumer is committed to it, and the grace period is over."""
    if not rotation.keys or rotation.keys[-1]["id"] != key_id:
        raise RotationRefused(
            f"Key {key_id} is not the newest key of this name any more. No key was revoked. Another rotation is running or "
            "was interrupted. Run the role again, and only once at a time.",
            {"key_ids": [key_id]},
        )
    problems = {name: _why_not(rotation.evidence.get(name), key_id) for name in rotation.expected()}
    refused = {name: problem for name, problem in problems.items() if problem}
    if refused:
        texts = " ".join(f"{name} {problem}." for name, problem in refused.items())
        raise RotationRefused(
            f"No key was revoked, because the newest key, {key_id}, is not confirmed on all consumers: {texts} "
            "Run the role again, and only once at a time.",
            {"consumers": sorted(refused), "key_ids": [key_id]},
        )
    remaining = _remaining(grace_period, rotation, client.service_now() + CLOCK_TOLERANCE)
    if remaining:
        raise RotationRefused(
            f"No key was revoked, because the grace period ends in {remaining:.0f} seconds. Run the role again then."
        )


def _why_not(evidence: Evidence | None, key_id: int) -> str:
    """Why this evidence does not show that the consumer holds the key; empty if it does."""
    if evidence is None:
        return "has given no evidence in this run"
    if evidence.key_id != key_id:
        return f"holds {f'key {evidence.key_id}' if evidence.key_id else 'another secret or none'}"
    if evidence.accepted is not True:
        return "holds a secret that the service does not accept"
    return "" if evidence.state == COMMITTED else "may still be rolled back"


def _is_free_of(evidence: Evidence | None, key_id: int, secret: str) -> bool:
    """Whether the consumer does not hold this secret, nor may return to it."""
    return (
        evidence is not None
        and evidence.tasks_rolled_back
        and evidence.withdrawn == key_id
        and checksum(secret) not in (evidence.sha256, evidence.return_sha256)
    )


def _why_new(
    client: Client,
    rotation: Rotation,
    consumers: Sequence[str],
    older: Sequence[Key],
    max_age: timedelta,
) -> str:
    """Why a new key is needed; empty if none is."""
    if not rotation.keys:
        return "there is no key of this name yet"
    newest = rotation.keys[-1]
    if rotation.now - parse_timestamp(newest["created_at"]) >= max_age:
        return f"key {newest['id']} has reached its maximum age"
    if rotation.is_recorded():
        without = [name for name in consumers if not rotation.evidence[name].has_deployed(newest["id"])]
        return f"key {newest['id']} is not confirmed on {', '.join(without)}" if without else ""
    if not newest.get("last_used_at"):
        return f"key {newest['id']} was never used, so its deployment was not completed"
    # One of several places may have used the key before the others had it. If it is the key that this task authenticates
    # with, and the only one in use, it is deployed.
    if older:
        in_use, own_is_known = _keys_in_use(client)
        others = [key for key in older if key["id"] not in in_use]
        if own_is_known and others and in_use != {newest["id"]}:
            return f"older keys are still valid, so the deployment of key {newest['id']} may be incomplete"
    return ""


def _keys_in_use(client: Client) -> tuple[set[int], bool]:
    """The ids of keys that are used now, and whether the one that this task authenticates with is surely among them.

    The service does not say which key a request was sent with, but when each key was last used: a key whose last use
    changes with every list is this task's own, unless the service records uses late.
    """
    lists = []
    for position in range(3):
        if position:
            client.clock.sleep(LIST_INTERVAL)
        lists.append({key["id"]: key.get("last_used_at") for key in list_keys(client)})
    first, then = (
        {key_id for key_id, used_at in later.items() if earlier.get(key_id) != used_at}
        for earlier, later in zip(lists, lists[1:])
    )
    return first | then, bool(first & then)


def _remaining(grace_period: float, rotation: Rotation, now: datetime) -> float:
    """The seconds that remain of the grace period after the latest deployment."""
    deployed = [parse_timestamp(one.deployed_at) for one in rotation.evidence.values() if one.deployed_at]
    if not deployed:
        return 0.0
    return max(0.0, grace_period - (now - max(deployed)).total_seconds())


def _warnings(older: Sequence[Key], in_use: set[int], own_is_known: bool) -> list[str]:
    """Why older keys are not revoked."""
    left = [key["id"] for key in older]
    if older and not own_is_known:
        return [
            "No key was revoked, because the service does not show which key this task authenticates with. "
            f"{numbered(left)} remain valid. Check that none of them is the key you authenticate with, then revoke them "
            "by id with clouddb.control.api_key and state=absent."
        ]
    used = [key_id for key_id in left if key_id in in_use]
    if not used:
        return []
    return [
        f"{numbered(used)} of this name {'was' if len(used) == 1 else 'were'} used within the last seconds, and not "
        "revoked. It is either the key that this task authenticates with, or still in use elsewhere. Switch to the "
        "newest key, then run the role again."
    ]


def _foreign_warnings(foreign_keys: Sequence[Key]) -> list[str]:
    if not foreign_keys:
        return []
    ids = [key["id"] for key in foreign_keys]
    return [
        f"{numbered(ids)} of this name {'was' if len(ids) == 1 else 'were'} used, but no record of these consumers names "
        f"{'it' if len(ids) == 1 else 'them'}, so others may use {'it' if len(ids) == 1 else 'them'}. The rotation leaves "
        f"{'it' if len(ids) == 1 else 'them'} alone. Give other hosts a name of their own. Revoke a key that nothing uses "
        "by its id with clouddb.control.api_key and state=absent."
    ]
