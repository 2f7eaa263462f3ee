# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decides whether a new key is needed, by evidence of all consumers. Keeps P3, P6 and P11."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from .._errors import InvalidOption
from .._http.client import Client
from .._keys.api import Key, numbered
from .._keys.ensure import Result
from .._timestamps import parse_timestamp, timestamp_of
from .evidence import Evidence, RotationRefused, recorded_keys
from .record import KnownKey, checksum, keys_as_json

PLACEHOLDER = "{timestamp}"
TIMESTAMP_FORMAT = "%Y%m%dT%H%M%SZ"


class Rotation(NamedTuple):
    """What is rotated: the active C(keys) of a C(name) with C({timestamp}) in it, the earliest first.

    C(foreign_keys) have such a name as well, but were used by unknown consumers, and are left alone. C(consumers) are
    those that the user has named, C(hosts) those of the play, C(former_consumers) those that hold a key no longer.
    C(evidence) is that of this run's latest step, by consumer. C(now) is the time by the service's clock. C(own_key) is the
    id of the key that the user has named as the task's own, if any.
    """

    name: str
    keys: Sequence[Key]
    foreign_keys: Sequence[Key]
    consumers: Sequence[str]
    hosts: Sequence[str]
    former_consumers: Sequence[str]
    evidence: Mapping[str, Evidence]
    now: datetime
    own_key: int | None = None

    def recorded(self) -> dict[int, KnownKey]:
        """What is recorded of the keys, by key id."""
        active = {key["id"] for key in self.keys}
        recorded = recorded_keys(self.evidence.values())
        return {key_id: key for key_id, key in recorded.items() if key_id in active}

    def own_keys(self, secret: str) -> set[int | None]:
        """The ids of the keys that the task authenticates with: those recorded with this secret, and the one that the user named."""
        recorded = {key_id for key_id, key in self.recorded().items() if key.sha256 == checksum(secret)}
        return {*recorded, self.own_key}

    def revocable(self) -> list[Key]:
        """The keys of which it is known who holds them.

        Records name their consumers and have their checksums. Without any record, the user names all consumers and the own key.
        """
        if self.own_key is not None and self.has_no_record():
            return list(self.keys)
        recorded = self.recorded()
        return [key for key in self.keys if key["id"] in recorded]

    def expected(self) -> list[str]:
        """Every consumer that may hold one of the keys, or is to hold the next one."""
        recorded = {name for key in self.recorded().values() for name in key.consumers}
        former = set(self.former_consumers) - {*self.hosts, *self.consumers}
        return sorted({*self.hosts, *self.consumers, *recorded} - former)

    def unconfirmed(self, key_id: int) -> list[str]:
        """Every expected consumer without evidence that the deployment of this key to it is complete."""
        known = self.recorded().get(key_id)
        confirmed = {
            name
            for name in (known.consumers if known else ())
            if name in self.evidence and self.evidence[name].has_deployed(key_id)
        }
        return [name for name in self.expected() if name not in confirmed]

    def is_recorded(self) -> bool:
        """Whether every consumer has a record, so that it is known who may hold a key."""
        return all(one.has_record for one in self.evidence.values())

    def has_no_record(self) -> bool:
        """Whether no consumer has a record."""
        return bool(self.evidence) and not any(one.has_record for one in self.evidence.values())

    def show_files(self) -> bool:
        """Whether every consumer has a file, so that it can show which key it holds at any time."""
        return all(evidence.has_file for evidence in self.evidence.values())


def managed_keys(listed: Sequence[Key], name: str) -> list[Key]:
    """Those of the keys whose name is C(name) with a time in it. Raises InvalidOption unless it has the placeholder once."""
    if name.count(PLACEHOLDER) != 1 or name.strip() == PLACEHOLDER:
        raise InvalidOption("name", f"must contain {PLACEHOLDER} exactly once, and other characters, not '{name}'")
    pattern = re.escape(name).replace(re.escape(PLACEHOLDER), "[0-9]{8}T[0-9]{6}Z")
    return [key for key in listed if isinstance(key.get("name"), str) and re.fullmatch(pattern, key["name"])]


def split_foreign(keys: Sequence[Key], evidence: Mapping[str, Evidence]) -> tuple[list[Key], list[Key]]:
    """The keys of these consumers, and those that were used although no record names them: others may use these.

    A key that was never used may be that of an interrupted deployment, which is then repeated. Without records, the user has
    named all consumers.
    """
    if evidence and not any(one.has_record for one in evidence.values()):
        return list(keys), []
    recorded = recorded_keys(evidence.values())
    foreign = [key for key in keys if key.get("last_used_at") and key["id"] not in recorded]
    return [key for key in keys if key not in foreign], foreign


def plan(
    client: Client, rotation: Rotation, max_age: timedelta, keep: int, grace_period: float, tags: Sequence[str]
) -> Result:
    """Whether a new key is needed, and what is to be done then. Changes nothing.

    Returns C(reason) (empty: no new key is needed), C(message) about it, C(name) of a new key, C(api_key) (the newest key
    or None), C(plan) for the steps that follow (all consumers, and what is recorded of the active keys), C(left) (ids of
    keys that are not revoked), C(revoke) (whether there are keys to revoke), and C(grace_period) (its remaining seconds).
    Raises RotationRefused and what a Client raises.
    """
    keys = rotation.keys
    consumers = rotation.expected()
    if tags:
        raise _tags_refused(rotation, tags)
    _require_evidence(rotation, consumers)
    if not rotation.is_recorded() and not rotation.consumers:
        raise RotationRefused(
            "The key is deployed by tasks only, and without a record nothing shows who uses it. No key was created or "
            "revoked. Set the consumers of the key explicitly, or a path for the record."
        )
    reason = _reason_for_new_key(rotation, max_age)
    older, unrecorded = surplus(rotation, keys if reason else keys[:-1], keep)
    # Only a file shows which key a consumer holds, other than in the run that deploys it.
    waiting = [] if reason or rotation.show_files() else older
    unknown = [*rotation.foreign_keys, *unrecorded]
    return {
        "changed": False,
        "reason": reason,
        "message": f"A new key is needed: {reason}." if reason else f"Key {keys[-1]['id']} is up to date.",
        "name": rotation.name.replace(PLACEHOLDER, rotation.now.strftime(TIMESTAMP_FORMAT)),
        "api_key": keys[-1] if keys else None,
        "plan": {"consumers": consumers, "older_keys": keys_as_json(rotation.recorded())},
        "left": [key["id"] for key in [*unknown, *waiting]],
        "warnings": [*_unknown_warnings(unknown, rotation), *_waiting_warnings(waiting)],
        "revoke": bool(older) and not waiting,
        "grace_period": grace_period
        if reason
        else remaining_grace_period(grace_period, rotation, client.service_now()),
    }


def surplus(rotation: Rotation, older: Sequence[Key], keep: int) -> tuple[list[Key], list[Key]]:
    """The older keys beyond the latest C(keep): those that may be revoked, and the others.

    Who holds one of the others is unknown. It may be the key that this task authenticates with.
    """
    revocable = rotation.revocable()
    named = [key for key in older if key in revocable]
    kept = (named or older)[-keep:] if keep else []
    return (
        [key for key in named if key not in kept],
        [key for key in older if key not in named and key not in kept],
    )


def _tags_refused(rotation: Rotation, tags: Sequence[str]) -> RotationRefused:
    message = (
        f"The run is limited to or by tags ({', '.join(tags)}), which may skip the deployment tasks. No key was created or "
        "revoked. Run the play without tags."
    )
    without = rotation.unconfirmed(rotation.keys[-1]["id"]) if rotation.keys else []
    if not without:
        return RotationRefused(message)
    return RotationRefused(
        f"{message} Key {rotation.keys[-1]['id']} is not confirmed on {', '.join(without)}.", {"consumers": without}
    )


def _require_evidence(rotation: Rotation, consumers: Sequence[str]) -> None:
    _require_separate_files(rotation)
    missing = [name for name in consumers if name not in rotation.evidence]
    if missing:
        raise RotationRefused(
            f"There is no evidence of this run from {', '.join(missing)}. {_recording_consumers(rotation, missing)}"
            "No key was created or revoked. The role requires all consumers of the key at the same time: check that they "
            "are reachable, that the strategy is linear, and that none is excluded by serial, limit or job slices. Name "
            "those that no longer use the key in api_key_rotation_former_consumers, and leave them out of the play.",
            {"consumers": missing},
        )


def _require_separate_files(rotation: Rotation) -> None:
    consumers: dict[str, list[str]] = {}
    for name, evidence in rotation.evidence.items():
        for place in set(evidence.places):
            consumers.setdefault(place, []).append(name)
    shared = sorted({tuple(names) for names in consumers.values() if len(names) > 1})
    if shared:
        texts = "; ".join(", ".join(names) for names in shared)
        raise RotationRefused(
            f"No key was created or revoked, because these have the same file for the secret or the record: {texts}. The names "
            "lead to the same host, or to a directory that the hosts share. Set a file for each host. If they are the same host, "
            "leave all but one of them out of the play, and name those in api_key_rotation_former_consumers.",
            {"consumers": sorted({name for names in shared for name in names})},
        )


def _recording_consumers(rotation: Rotation, missing: Sequence[str]) -> str:
    """A sentence that names those whose records name the missing consumers; empty if no record does."""
    recording = sorted(
        name
        for name, evidence in rotation.evidence.items()
        if any(set(missing) & set(key.consumers) for key in evidence.known_keys.values())
    )
    return f"The records of {', '.join(recording)} name them as consumers. " if recording else ""


def _reason_for_new_key(rotation: Rotation, max_age: timedelta) -> str:
    """Why a new key is needed; empty if none is."""
    if not rotation.keys:
        return "there is no key of this name yet"
    newest = rotation.keys[-1]
    created_at = timestamp_of(newest, "created_at")
    if created_at is None:
        raise RotationRefused(
            f"The service sent no valid created_at of key {newest['id']}, so it is not known which key is the newest. No key "
            "was created or revoked. Run the task again. If the error remains, revoke that key by its id with "
            "clouddb.control.api_key and state=absent, once nothing uses it."
        )
    # The time may be a second behind created_at.
    if not max_age or rotation.now - created_at >= max_age:
        return f"key {newest['id']} has reached its maximum age"
    if rotation.is_recorded():
        without = rotation.unconfirmed(newest["id"])
        return f"key {newest['id']} is not confirmed on {', '.join(without)}" if without else ""
    if not newest.get("last_used_at"):
        return f"key {newest['id']} was never used, so its deployment was not completed"
    return ""


def remaining_grace_period(grace_period: float, rotation: Rotation, now: datetime) -> float:
    """The seconds that remain of the grace period after the latest deployment."""
    deployed = [parse_timestamp(one.deployed_at) for one in rotation.evidence.values() if one.deployed_at]
    if not deployed:
        return 0.0
    return max(0.0, grace_period - (now - max(deployed)).total_seconds())


def _waiting_warnings(waiting: Sequence[Key]) -> list[str]:
    if not waiting:
        return []
    return [
        f"{numbered([key['id'] for key in waiting])} of this name remain valid until the next rotation, because consumers "
        "without a file can show which key they hold only when it is deployed."
    ]


def _unknown_warnings(unknown: Sequence[Key], rotation: Rotation) -> list[str]:
    if not unknown:
        return []
    ids = [key["id"] for key in unknown]
    remain, them = ("remains", "it") if len(ids) == 1 else ("remain", "them")
    if rotation.has_no_record():
        return [
            f"{numbered(ids)} of this name {remain} valid, because without a record nothing shows whether this task "
            f"authenticates with {them}. Set api_key_rotation_own_key to the id of the task's own key, or api_key_rotation_record."
        ]
    return [
        f"{numbered(ids)} of this name {remain} valid, because no record of these consumers names {them}: other hosts may use "
        f"{them}, or this task itself. Give other hosts a name of their own. Revoke a key that nothing uses by its id with "
        "clouddb.control.api_key and state=absent."
    ]
