# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Evidence: what a consumer holds, as found on the consumer, for those who decide what may be revoked. Keeps P5 and P6."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from .._errors import ClouddbError, InvalidOption
from .._timestamps import parse_timestamp
from .record import COMMITTED, DEPLOYED, KnownKey, checksum, keys_digest

# Evidence is requested immediately before it is used. In a play with many hosts and few forks, that can take long.
MAX_AGE = timedelta(hours=1)


class RotationRefused(ClouddbError):
    """The evidence does not allow the step. Nothing was created or revoked."""

    kind = "rotation_refused"


class Run(NamedTuple):
    """A run of the role on all hosts of a play, and the variables that must be the same on all of them, as texts by name."""

    id: str
    variables: Mapping[str, str]


class Evidence(NamedTuple):
    """What one consumer held.

    C(step), C(run) and C(variables) are the step that produced it, and those of the run of the role. C(sha256) is the checksum of the file's
    content, C(accepted) whether the service accepted that content at C(checked_at), by the service's clock (None: there
    is no content), C(key_id) the key that it is, where that is known. C(state) and C(deployed_at) are from the record.
    C(return_sha256) is the checksum of what a roll-back may still restore. C(known_keys) are those of the record.
    C(fingerprint) changes whenever the file or the record changes. C(withdrawn) is the id of the key that was rolled back,
    and can't be deployed to the consumer any more. C(places) identify the files of the consumer, where that is possible.
    """

    consumer: str
    run: str
    variables: Mapping[str, str]
    step: str
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
    withdrawn: int | None
    tasks_rolled_back: bool = False
    places: Sequence[str] = ()

    def as_dict(self) -> dict[str, Any]:
        """The evidence as JSON, with a digest in place of the known keys: these have the names of all consumers."""
        return {**self._asdict(), "known_keys": keys_digest(self.known_keys)}

    def has_deployed(self, key_id: int) -> bool:
        """Whether the deployment of this key to the consumer is complete, as far as the consumer has a record."""
        is_accepted = self.accepted is True if self.has_file else self.accepted is not False
        return self.key_id == key_id and is_accepted and self.state in (DEPLOYED, COMMITTED)


def run_from(params: Mapping[str, Any], check_mode: bool) -> Run:
    """The run that a module's options name, such that evidence of check mode is not accepted out of check mode."""
    run = f"{params['run']} (check mode)" if check_mode else params["run"]
    return Run(run, {name: _shown(value) for name, value in params["variables"].items()})


def _shown(value: Any) -> str:
    """The value as JSON. Of a long one, which can have the names of all hosts, the beginning and a checksum."""
    text = json.dumps(value, sort_keys=True)
    return text if len(text) <= 40 else f"{text[:12]}... ({checksum(text)[:8]})"


def evidence_from(items: Iterable[Mapping[str, Any]], known_keys: Iterable[dict[int, KnownKey]]) -> list[Evidence]:
    """The evidence that the modules of consumers returned, as far as the keys that it names are known. Raises InvalidOption.

    C(known_keys) are those of the consumers' records, each different content once.
    """
    known = {None: {}, **{keys_digest(keys): keys for keys in known_keys}}
    try:
        return [
            _parse({**item, "known_keys": known[item["known_keys"]]})
            for item in items
            if item and item["known_keys"] in known
        ]
    except (TypeError, ValueError, KeyError, AttributeError):
        raise InvalidOption(
            "evidence", "this is not the evidence that clouddb.control.api_key_deployment returns"
        ) from None


def _parse(data: dict[str, Any]) -> Evidence:
    evidence = Evidence(**data)
    for timestamp in filter(None, (evidence.checked_at, evidence.deployed_at)):
        parse_timestamp(timestamp)
    return evidence._replace(variables=dict(evidence.variables))


def evidence_by_consumer(items: Iterable[Evidence], run: Run, step: str, now: datetime) -> dict[str, Evidence]:
    """The evidence of this run and step that is not too old, by consumer."""
    return {
        evidence.consumer: evidence
        for evidence in items
        if (evidence.run, evidence.variables, evidence.step) == (*run, step)
        and (evidence.checked_at is None or abs(now - parse_timestamp(evidence.checked_at)) <= MAX_AGE)
    }


def require_same_variables(items: Iterable[Evidence], run: Run, step: str) -> None:
    """Raise RotationRefused if hosts took part in this run with other values of its variables."""
    # By name and value: the hosts, or none if only this task has the value.
    hosts: dict[str, dict[str, list[str]]] = {}
    for evidence in items:
        if (evidence.run, evidence.step) == (run.id, step):
            for name in {**run.variables, **evidence.variables}:
                by_value = hosts.setdefault(name, {run.variables.get(name, "null"): []})
                by_value.setdefault(evidence.variables.get(name, "null"), []).append(evidence.consumer)
    differing = {name: hosts_by_value for name, hosts_by_value in hosts.items() if len(hosts_by_value) > 1}
    if differing:
        # The values come last, because they can be many.
        texts = (
            f"{name} is {', '.join(f'{value} {_on(hosts)}' for value, hosts in hosts_by_value.items())}."
            for name, hosts_by_value in differing.items()
        )
        consumers = {name for values in differing.values() for names in values.values() for name in names}
        raise RotationRefused(
            "All hosts of a run get the same key, so the variables of the role must have the same values on all of them. No "
            "key was created or revoked. Run the role once for each group of hosts, in a separate play with a name of its "
            f"own for the keys. {' '.join(texts)}",
            {"consumers": sorted(consumers)},
        )


def _on(hosts: Sequence[str]) -> str:
    return f"on {' and '.join(hosts)}" if hosts else "in this task"


def recorded_keys(evidence: Iterable[Evidence]) -> dict[int, KnownKey]:
    """The keys that all records together have, by id, each with all of its consumers."""
    merged: dict[int, KnownKey] = {}
    # Consumers with the same record share one object.
    for known_keys in {id(item.known_keys): item.known_keys for item in evidence}.values():
        for key_id, key in known_keys.items():
            known = merged.get(key_id, KnownKey([], key.sha256))
            merged[key_id] = known._replace(consumers=sorted({*known.consumers, *key.consumers}))
    return merged
