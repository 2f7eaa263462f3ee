# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decides whether a new key is needed, by the confirmations of all hosts that use it. Keeps P3, P6 and P11."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from .._errors import ClouddbError, InvalidOption, Result
from .._keys.keys import Key, numbered
from .._keys.scope import KeyScope
from .._timestamps import parse_timestamp, timestamp_of
from .confirmation import Confirmation, names_text, recorded_keys
from .host_lists import id_of_list, keys_with_ids
from .record import KnownKey, checksum

PLACEHOLDER = "{timestamp}"
TIMESTAMP_FORMAT = "%Y%m%dT%H%M%SZ"
# Why keys remain valid.
NOT_RECORDED = (
    ", and no record of these hosts shows who uses {}. Use another name for the keys of other hosts. Revoke keys that "
    "nothing uses by their ids."
)
NO_OWN_KEY = (
    ", because without a record nothing shows which key is the task's own. Set api_key_rotation_own_key to the id of the "
    "task's own key, or api_key_rotation_record."
)
MISSING = "No new key is needed yet, so nothing was created or revoked. The role fails once one is needed."
WITHOUT_FILE = (
    " until the next rotation, because hosts without a file can show which key they hold only when it is deployed."
)
INCOMPLETE = (
    " until a later rotation, because no record shows that the deployment was completed, and hosts may have the key "
    "nevertheless."
)


class Rotation(NamedTuple):
    """What is rotated: the active C(keys) of a name with C({timestamp}) in it, the earliest first.

    C(foreign_keys) have such a name as well, but no record names them: others may use them, so they are left alone. With
    C(none_has_record), no host has a record, and all keys count as C(keys). C(hosts) are all that may use one of the keys, or
    are to use the next one. C(confirmations) are those of this run's latest step, by host. C(recorded) is what the records
    say of C(keys), by key id. C(now) is the time by the service's clock. C(own_key) is the id of the key that the user has
    named as the task's own, if any.
    """

    keys: Sequence[Key]
    foreign_keys: Sequence[Key]
    hosts: Sequence[str]
    confirmations: Mapping[str, Confirmation]
    recorded: Mapping[int, KnownKey]
    now: datetime
    own_key: int | None
    none_has_record: bool
    scope: KeyScope

    def own_keys(self, secret: str) -> set[int | None]:
        """The ids of the task's own key: those that are recorded with this secret, and the one that the user named."""
        return {self.own_key, *(key_id for key_id, key in self.recorded.items() if key.sha256 == checksum(secret))}

    def unconfirmed(self, key_id: int) -> list[str]:
        """The hosts that this key was not to be deployed to, and those that report that its deployment is not complete."""
        known = self.recorded.get(key_id)
        to_deploy_to = {*known.hosts} if known else set()
        incomplete = {name for name, one in self.confirmations.items() if not one.has_deployed(key_id)}
        return [name for name in self.hosts if name not in to_deploy_to or name in incomplete]

    def all_have_records(self) -> bool:
        """Whether every host that reported has a record, so that it is known who may use a key."""
        return all(one.has_record for one in self.confirmations.values())

    def superseded(self, keys: Sequence[Key], keep: int) -> list[Key]:
        """Those of the keys, the earliest first, that are not kept once all hosts have a newer one.

        For each host, C(keep) of the keys that were deployed to it are kept, and all later ones: one whose deployment was not
        completed does not count, but the host may have it.
        """
        if not keep:
            return list(keys)
        if self.none_has_record:
            kept = _latest(keys, keep, [key for key in keys if self.was_deployed(key)])
            return [key for key in keys if key not in kept]
        kept_ids = set()
        for host, found in self.confirmations.items():
            of_host = [key for key in keys if host in self.recorded[key["id"]].hosts]
            deployed = [key for key in of_host if found.was_deployed(key["id"])]
            kept_ids |= {key["id"] for key in _latest(of_host, keep, deployed)}
        return [key for key in keys if key["id"] not in kept_ids]

    def was_deployed(self, key: Key) -> bool:
        """Whether the deployment of the key was completed. Without a record, that is not known, but the service accepted the key."""
        if self.none_has_record:
            return bool(timestamp_of(key, "last_used_at"))
        hosts = self.recorded[key["id"]].hosts
        return all(found.was_deployed(key["id"]) for host, found in self.confirmations.items() if host in hosts)

    def may_revoke(self) -> bool:
        """Whether it is known who uses the keys: by the records, or else because the user has named all hosts and the own key."""
        return self.own_key is not None or not self.none_has_record


def _latest(keys: Sequence[Key], number: int, counted: Sequence[Key]) -> Sequence[Key]:
    """The last keys, of which this number is C(counted); all if there are not as many."""
    return keys[keys.index(counted[-number]) :] if len(counted) >= number else keys


def rotation_of(
    name: str,
    listed: Sequence[Key],
    named_hosts: Iterable[str],
    retired_hosts: Iterable[str],
    confirmations: Mapping[str, Confirmation],
    now: datetime,
    own_key: int | None,
    scope: KeyScope,
) -> Rotation:
    """The rotation of the keys of this name. To C(named_hosts), those of the records are added, except for C(retired_hosts).

    Raises InvalidOption.
    """
    if name.count(PLACEHOLDER) != 1 or name.strip() == PLACEHOLDER:
        raise InvalidOption("name", f"must contain {PLACEHOLDER} exactly once, and other characters, not '{name}'")
    pattern = re.escape(name).replace(re.escape(PLACEHOLDER), "[0-9]{8}T[0-9]{6}Z")
    managed = [key for key in listed if isinstance(key.get("name"), str) and re.fullmatch(pattern, key["name"])]
    recorded = recorded_keys(confirmations.values())
    none_has_record = bool(confirmations) and not any(one.has_record for one in confirmations.values())
    keys = [key for key in managed if none_has_record or key["id"] in recorded]
    ids = {key["id"] for key in keys}
    recorded = {key_id: key for key_id, key in recorded.items() if key_id in ids}
    recorded_hosts = {name for key in recorded.values() for name in key.hosts}
    return Rotation(
        keys,
        [key for key in managed if key["id"] not in ids],
        sorted({*named_hosts} | (recorded_hosts - {*retired_hosts})),
        confirmations,
        recorded,
        now,
        own_key,
        none_has_record,
        scope,
    )


def plan(rotation: Rotation, params: Mapping[str, Any], max_age: timedelta, grace_period: float) -> Result:
    """Whether a new key is needed, and what is to be done then. Changes nothing.

    Returns C(reason) (empty: no new key is needed), C(message) about it, C(name) of a new key, C(api_key) (the newest key
    or None), C(hosts) (all that use the keys), C(older_keys) and C(host_lists) (what is recorded of the active keys, for
    keys_from_ids()), C(left) (ids of keys that are not revoked), C(revoke) (whether there are keys to revoke), and
    C(grace_period) (its remaining seconds). Raises ClouddbError.
    """
    keys, missing = rotation.keys, [name for name in rotation.hosts if name not in rotation.confirmations]
    _require_all_known(rotation, params)
    reason = _reason_for_new_key(rotation, max_age)
    if reason and missing:
        raise ClouddbError(
            "rotation_refused",
            f"A new key is needed: {reason}. {_missing_text(rotation, missing)} No key was created or revoked. Make "
            "every host reachable and include it in the play, without limit, serial, when or AWX job slicing. Add hosts that no "
            "longer use the key to api_key_rotation_retired_hosts.",
            {"hosts": missing},
        )
    older_keys = keys if reason else keys[:-1]
    superseded = rotation.superseded(older_keys, params["keep"])
    obstacle = _obstacle(rotation, bool(reason), missing)
    incomplete = [key for key in older_keys if key not in superseded and not rotation.was_deployed(key)]
    left = [(rotation.foreign_keys, NOT_RECORDED), (superseded if obstacle else [], obstacle), (incomplete, INCOMPLETE)]
    warnings = [f"{_missing_text(rotation, missing)} {MISSING}"] if missing else []
    for some, why in left:
        if some and why != MISSING:
            warnings.append(f"{remain(some)} valid{why.format('it' if len(some) == 1 else 'them')}")
    known_keys, host_lists = keys_with_ids(rotation.recorded, id_of_list(rotation.hosts))
    return {
        "changed": False,
        "reason": reason,
        "message": f"A new key is needed: {reason}." if reason else f"Key {keys[-1]['id']} is up to date.",
        "name": params["name"].replace(PLACEHOLDER, rotation.now.strftime(TIMESTAMP_FORMAT)),
        "api_key": keys[-1] if keys else None,
        "hosts": rotation.hosts,
        "older_keys": known_keys,
        "host_lists": host_lists,
        "left": [key["id"] for some, _why in left for key in some],
        "warnings": warnings,
        "revoke": bool(superseded) and not obstacle,
        "grace_period": grace_period if reason else _remaining(grace_period, rotation),
    }


def _require_all_known(rotation: Rotation, params: Mapping[str, Any]) -> None:
    """Raise ClouddbError if deployment tasks or hosts that use the key may be left out without a trace."""
    if params["tags"]:
        raise ClouddbError(
            "rotation_refused",
            f"The run is limited to or by tags ({', '.join(params['tags'])}), which may skip the deployment tasks. No key was "
            "created or revoked. Run the play without tags.",
        )
    if not rotation.all_have_records() and not params["hosts"]:
        raise ClouddbError(
            "rotation_refused",
            "The key is deployed by tasks only, and without a record nothing shows who uses it. No key was created or "
            "revoked. Set api_key_rotation_hosts to the hosts that use the key, or set api_key_rotation_record.",
        )


def _missing_text(rotation: Rotation, missing: Sequence[str]) -> str:
    """A sentence about hosts that did not report, and whose records name them."""
    recording = sorted(
        name
        for name, confirmation in rotation.confirmations.items()
        if any(set(missing) & set(key.hosts) for key in confirmation.known_keys.values())
    )
    text = f"{names_text(missing)} did not report in this run"
    if not recording:
        return f"{text}."
    return (
        f"{text}, but {'it uses' if len(missing) == 1 else 'they use'} this key (recorded on {names_text(recording)})."
    )


def _reason_for_new_key(rotation: Rotation, max_age: timedelta) -> str:
    """Why a new key is needed; empty if none is."""
    if not rotation.keys:
        return "there is no key of this name yet"
    newest = rotation.keys[-1]
    created_at = timestamp_of(newest, "created_at")
    if created_at is None:
        raise ClouddbError(
            "rotation_refused",
            f"The service sent no valid created_at of key {newest['id']}, so it is not known which key is the newest. No key "
            "was created or revoked. Run the task again. If the error remains, revoke that key by its id with "
            "clouddb.control.api_key and state=absent, once nothing uses it.",
        )
    # The time may be a second behind created_at.
    if not max_age or rotation.now - created_at >= max_age:
        return f"key {newest['id']} has reached its maximum age"
    if rotation.all_have_records():
        without = rotation.unconfirmed(newest["id"])
        return f"key {newest['id']} is not confirmed on {names_text(without)}" if without else ""
    if not rotation.was_deployed(newest):
        return f"key {newest['id']} was never used, so its deployment was not completed"
    return ""


def _remaining(grace_period: float, rotation: Rotation) -> float:
    """The seconds that remain of the grace period after the latest deployment."""
    deployed = [parse_timestamp(one.deployed_at) for one in rotation.confirmations.values() if one.deployed_at]
    if not deployed:
        return 0.0
    return max(0.0, grace_period - (rotation.now - max(deployed)).total_seconds())


def _obstacle(rotation: Rotation, is_new: bool, missing: Sequence[str]) -> str:
    """Why no older key can be revoked in this run; empty if they can, once all hosts have the newest key."""
    if not rotation.may_revoke():
        return NO_OWN_KEY
    if missing:
        return MISSING
    # Only a file shows which key a host holds, other than in the run that deploys it.
    return "" if is_new or all(one.has_file for one in rotation.confirmations.values()) else WITHOUT_FILE


def remain(keys: Sequence[Key]) -> str:
    """The beginning of a sentence about keys that are not revoked."""
    return f"{numbered([key['id'] for key in keys])} of this name {'remains' if len(keys) == 1 else 'remain'}"
