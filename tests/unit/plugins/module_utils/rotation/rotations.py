# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Confirmations of the hosts web1 and web2 of an account with keys, and the steps of a rotation by them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import ClouddbError
from ansible_collections.clouddb.control.plugins.module_utils._rotation.confirmation import (
    Confirmation,
    id_of_list,
    run_from,
)
from ansible_collections.clouddb.control.plugins.module_utils._rotation.record import (
    KnownKey,
    checksum,
    checksum_of,
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


def known(account: SimulatedAccount, ids: list[int], *hosts: str) -> dict[int, KnownKey]:
    """The keys as records have them, once their deployments were completed."""
    names = list(hosts) or ["web1", "web2"]
    return {key_id: KnownKey(names, checksum(account.secrets[key_id]), True) for key_id in ids}


def confirmation(account: SimulatedAccount, host: str, key_id: int | None, **fields: Any) -> Confirmation:
    """The confirmation of a host that is committed to this key."""
    secret = account.secrets.get(key_id or 0)
    run = run_from({"run": "run", "variables": fields.pop("variables", {})}, check_mode=False)
    return Confirmation(
        **{
            "host": host,
            "run": run.id,
            "variables": run.variables,
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
            "rolled_back": None,
            **fields,
        }
    )


def run(account: SimulatedAccount, step: str, *found: Confirmation, check_mode: bool = False, **options: Any) -> Any:
    results = [one.as_result(id_of_list(options.get("play_hosts", ["web1", "web2"]))) for one in found]
    params = {
        "step": step,
        "name": "deploy-{timestamp}",
        "run": "run",
        "variables": {},
        "confirmations": [result["confirmation"] for result in results],
        "play_hosts": ["web1", "web2"],
        "host_lists": [text for result in results for text in result["host_lists"]],
        "hosts": [],
        "retired_hosts": [],
        "own_key": None,
        "max_age": "30d",
        "keep": 0,
        "grace_period": 0.0,
        "tags": [],
        "key_id": None,
        "key": None,
        "errors": {},
        **options,
    }
    return api_key_rotation.run(params, account.client(), check_mode)


def both(account: SimulatedAccount, key_id: int | None, **fields: Any) -> list[Confirmation]:
    return [confirmation(account, host, key_id, **fields) for host in ("web1", "web2")]


def refusal(account: SimulatedAccount, step: str, *found: Confirmation, **options: Any) -> ClouddbError:
    """The error of a step that is refused, after which all keys are as before."""
    before = list(account.keys)
    with pytest.raises(ClouddbError) as error:
        run(account, step, *found, **options)
    assert list(account.keys) == before
    return error.value
