# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Evidence of the consumers web1 and web2 of an account with keys, and the steps of a rotation by it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._rotation.evidence import (
    Evidence,
    RotationRefused,
    run_from,
)
from ansible_collections.clouddb.control.plugins.module_utils._rotation.record import (
    KnownKey,
    checksum,
    checksum_of,
    keys_as_json,
)
from ansible_collections.clouddb.control.plugins.modules import api_key_rotation
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import EPOCH
from ansible_collections.clouddb.control.tests.unit.support.simulated_account import SimulatedAccount

Keys = tuple[SimulatedAccount, list[int]]


def add_key(account: SimulatedAccount, is_used: bool = True) -> int:
    """The id of a new key, an hour later than the last."""
    account.clock.elapsed += 3600
    key_id, secret = account.create(f"deploy-{(EPOCH + timedelta(seconds=account.clock.elapsed)):%Y%m%dT%H%M%SZ}")
    if is_used:
        account.use(secret)
    return key_id


def known(account: SimulatedAccount, ids: list[int], *consumers: str) -> dict[int, KnownKey]:
    """The keys as records have them."""
    names = list(consumers) or ["web1", "web2"]
    return {key_id: KnownKey(names, checksum(account.secrets[key_id])) for key_id in ids}


def evidence(account: SimulatedAccount, consumer: str, key_id: int | None, **fields: Any) -> Evidence:
    """Evidence that the consumer is committed to this key."""
    secret = account.secrets.get(key_id or 0)
    run = run_from({"run": "run", "variables": fields.pop("variables", {})}, check_mode=False)
    return Evidence(
        **{
            "consumer": consumer,
            "run": run.id,
            "variables": run.variables,
            "step": "commit",
            "has_file": True,
            "has_record": True,
            "sha256": checksum_of(secret),
            "accepted": secret and account.is_active(secret),
            "checked_at": account.now(),
            "key_id": key_id,
            "state": "committed" if key_id else None,
            "deployed_at": account.now() if key_id else None,
            "return_sha256": None,
            "known_keys": known(account, list(account.keys)),
            "fingerprint": "",
            "withdrawn": None,
            **fields,
        }
    )


def run(account: SimulatedAccount, step: str, *found: Evidence, check_mode: bool = False, **options: Any) -> Any:
    params = {
        "step": step,
        "name": "deploy-{timestamp}",
        "run": "run",
        "variables": {},
        "evidence": [one.as_dict() for one in found],
        "known_keys": [keys_as_json(one.known_keys) for one in found],
        "hosts": ["web1", "web2"],
        "consumers": [],
        "former_consumers": [],
        "own_key": None,
        "max_age": "30d",
        "keep": 0,
        "grace_period": 0.0,
        "tags": [],
        "key_id": None,
        "key": None,
        "plan": None,
        "errors": {},
        **options,
    }
    return api_key_rotation.run(params, account.client(), check_mode)


def both(account: SimulatedAccount, key_id: int | None, **fields: Any) -> list[Evidence]:
    return [evidence(account, host, key_id, **fields) for host in ("web1", "web2")]


def inspected(account: SimulatedAccount, key_id: int | None, **fields: Any) -> list[Evidence]:
    return both(account, key_id, **{"step": "inspect", **fields})


def refusal(account: SimulatedAccount, step: str, *found: Evidence, **options: Any) -> RotationRefused:
    """The error of a step that is refused, after which all keys are as before."""
    before = list(account.keys)
    with pytest.raises(RotationRefused) as error:
        run(account, step, *found, **options)
    assert list(account.keys) == before
    return error.value
