# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Confirmations: which key a host holds, as found on the host, for those who decide what may be revoked. Keeps P5 and P6."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from .._errors import ClouddbError, Result
from .._timestamps import parse_timestamp
from .host_lists import keys_from_ids, keys_with_ids
from .record import COMMITTED, DEPLOYED, KnownKey, checksum

# A confirmation is requested immediately before it is used. In a play with many hosts and few forks, that can take long.
MAX_AGE = timedelta(hours=1)
# Messages name this many hosts, and count the others.
NAMED_HOSTS = 5


class Run(NamedTuple):
    """A run of the role on all hosts of a play, and checksums of the variables that must be the same on all of them."""

    id: str
    variables: Mapping[str, str]


class Confirmation(NamedTuple):
    """What one host held.

    C(run) and C(variables) are those of the run of the role. C(sha256) is the checksum of the file's content, C(accepted)
    whether the service accepted that content at C(checked_at), by the service's clock (None: there is no content),
    C(key_id) the key that it is, where that is known. C(state) and C(deployed_at) are from the record. C(return_sha256) is
    the checksum of what a rollback may still restore. C(known_keys) are those of the record. C(fingerprint) changes
    whenever the file or the record changes. C(rolled_back) is the id of the key that was rolled back, and can't be deployed
    to the host again.
    """

    host: str
    run: str
    variables: Mapping[str, str]
    has_file: bool
    has_record: bool
    sha256: str | None
    accepted: bool | None
    checked_at: str | None
    key_id: int | None
    state: str | None
    deployed_at: str | None
    return_sha256: str | None
    known_keys: dict[int, KnownKey]
    fingerprint: str
    rolled_back: int | None
    tasks_rolled_back: bool = False

    def as_result(self, play_hosts_id: str | None) -> Result:
        """The confirmation as JSON, and the lists of hosts that its keys name by their ids, without the list with this id."""
        known_keys, host_lists = keys_with_ids(self.known_keys, play_hosts_id)
        return {"confirmation": {**self._asdict(), "known_keys": json.dumps(known_keys)}, "host_lists": host_lists}

    def was_deployed(self, key_id: int) -> bool:
        """Whether the host has recorded that the deployment of this key to it was completed."""
        return key_id in self.known_keys and self.known_keys[key_id].confirmed

    def has_deployed(self, key_id: int) -> bool:
        """Whether the deployment of this key to the host is complete, as far as the host has a record."""
        is_accepted = self.accepted is True if self.has_file else self.accepted is not False
        return self.key_id == key_id and is_accepted and self.state in (DEPLOYED, COMMITTED)


def run_from(params: Mapping[str, Any], check_mode: bool) -> Run:
    """The run that a module's options name, such that confirmations of check mode are not accepted out of check mode."""
    run = f"{params['run']} (check mode)" if check_mode else params["run"]
    variables = params["variables"].items()
    return Run(run, {name: checksum(json.dumps(value, sort_keys=True))[:8] for name, value in variables})


def confirmations_from(
    items: Iterable[Mapping[str, Any]], run: Run, hosts: Sequence[str], host_lists: Sequence[str]
) -> list[Confirmation]:
    """The confirmations of this run among those that api_key_deployment has returned, for the C(hosts) of the play."""
    own = [item for item in items if item["run"] == run.id]
    # Most hosts have the same text.
    keys = {text: keys_from_ids(json.loads(text), hosts, host_lists) for text in {item["known_keys"] for item in own}}
    return [Confirmation(**{**item, "known_keys": keys[item["known_keys"]]}) for item in own]


def current_confirmations(items: Iterable[Confirmation], run: Run, now: datetime) -> dict[str, Confirmation]:
    """Those of the confirmations of this run that are not too old, by host."""
    return {
        item.host: item
        for item in items
        if item.variables == run.variables
        and (item.checked_at is None or abs(now - parse_timestamp(item.checked_at)) <= MAX_AGE)
    }


def require_same_variables(items: Iterable[Confirmation], run: Run) -> None:
    """Raise ClouddbError if hosts took part in the run with other values of its variables."""
    differing: dict[str, list[str]] = {}
    for item in items:
        for name in {**run.variables, **item.variables}:
            if item.variables.get(name) != run.variables.get(name):
                differing.setdefault(name, []).append(item.host)
    if differing:
        texts = ", ".join(f"{name} (on {names_text(hosts)})" for name, hosts in differing.items())
        raise ClouddbError(
            "rotation_refused",
            f"All hosts of a run get the same key, but these variables differ: {texts}. No key was created or revoked. Run the "
            "role once for each group of hosts, in a separate play with its own api_key_rotation_name.",
            {"hosts": sorted({host for hosts in differing.values() for host in hosts})},
        )


def names_text(hosts: Sequence[str]) -> str:
    """The first names, and the number of the others: C(web1), C(web1 and web2), C(web1, web2 and 198 more)."""
    *others, last = hosts
    if len(hosts) > NAMED_HOSTS:
        others, last = list(hosts[:NAMED_HOSTS]), f"{len(hosts) - NAMED_HOSTS} more"
    return f"{', '.join(others)} and {last}" if others else last


def recorded_keys(confirmations: Iterable[Confirmation]) -> dict[int, KnownKey]:
    """The keys that all records together have, by id, each with all of its hosts."""
    merged: dict[int, KnownKey] = {}
    # Hosts with the same record share one object.
    for known_keys in {id(item.known_keys): item.known_keys for item in confirmations}.values():
        for key_id, key in known_keys.items():
            known = merged.get(key_id, KnownKey([], key.sha256))
            merged[key_id] = known._replace(hosts=sorted({*known.hosts, *key.hosts}))
    return merged
