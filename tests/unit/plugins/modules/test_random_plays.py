# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random plays on one project: each task in check mode, run, in check mode, and run again, and the account after each.

With faults, requests of the first run fail, before or after the service has processed them.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from random import Random
from typing import Any, NamedTuple

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import ClouddbError
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.tests.unit.support.resource_task import SHOP, task, writes
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox

STEPS, SEEDS = 25, 50
STEPS_OF_SAMPLE = 5
IN_A_WEEK = f"{datetime.now(timezone.utc) + timedelta(days=7):%Y-%m-%dT00:00:00Z}"
FAULTS = (
    {"kind": "lost_answer"},
    {"kind": "reset"},
    {"kind": "status", "status": 502},
    {"kind": "status", "status": 423},
)
BRANCHES = ("main", "dev", "kid")
# The values of options, by module; None: the option is not set.
OPTIONS: dict[str, dict[str, tuple[Any, ...]]] = {
    "branch": {
        "name": ("dev", "kid"),
        "parent": (None, None, "main", "dev"),
        "protected": (None, None, False, True),
        "expires_at": (None, None, "never", IN_A_WEEK),
        "default": (None, None, None, True),
        "state": ("present", "present", "absent"),
    },
    "compute": {
        "branch": BRANCHES,
        "type": ("read_write", "read_only"),
        "min_cu": (None, 1),
        "max_cu": (2, 4),
        "state": ("present", "started", "suspended", "restarted", "absent"),
    },
    "database_user": {
        "branch": BRANCHES,
        "name": ("app", "web"),
        "update_password": ("on_create", "always"),
        "state": ("present", "present", "absent"),
    },
    "database": {
        "branch": BRANCHES,
        "name": ("orders", "stock"),
        "owner": ("clouddb_owner", "app", "web"),
        "state": ("present", "present", "absent"),
    },
    "branch_restore": {"name": ("main", "dev"), "timestamp": (None, "1s"), "preserve_as": (None, "old")},
    "project": {"name": ("shop",), "history_retention": (None, "1d", "3d")},
}
WEIGHTS = (6, 4, 3, 4, 1, 1)


def random_task(random: Random) -> dict[str, Any]:
    """A task with random options; whether it waits, too."""
    [module] = random.choices([*OPTIONS], WEIGHTS)
    options = {name: random.choice(values) for name, values in OPTIONS[module].items()}
    chosen = {name: value for name, value in options.items() if value is not None}
    return {"module": module, **chosen, "wait": random.random() < 0.8}


class Outcome(NamedTuple):
    """Whether a task reports a change, and the names of the fields in its diff, or what is refused; and what it says."""

    reported: tuple[bool, dict[str, list[str]]] | str
    texts: list[str]


def outcome(client: Client, check_mode: bool, options: dict[str, Any]) -> Outcome:
    """The outcome of a task."""
    try:
        result = task(client, check_mode=check_mode, **options)
    except ClouddbError as error:
        return Outcome(error.details.get("option") or error.kind, [str(error)])
    diff = {side: sorted({*fields} - {"pending_state"}) for side, fields in result["diff"].items()}
    return Outcome((result["changed"], diff), result["warnings"])


def account(sandbox: Sandbox) -> Any:
    """What the project has, without what changes by itself."""
    found = []
    project = f"/projects/{SHOP}"
    fields = ("name", "parent_id", "protected", "expires_at", "default", "type", "owner_name", "branch_id")
    for branch in sandbox.api("GET", f"{project}/branches")["branches"]:
        for kind in ("endpoints", "roles", "databases"):
            found += sandbox.api("GET", f"{project}/branches/{branch['id']}/{kind}")[kind]
        found.append(branch)
    limits = ("autoscaling_limit_min_cu", "autoscaling_limit_max_cu")
    found.append(sandbox.api("GET", project)["project"])
    return sorted(
        str({name: each.get(name) for name in (*fields, *limits, "history_retention_seconds")}) for each in found
    )


def assert_agree(planned: Outcome, done: Outcome, where: str) -> None:
    """Both report the same. The run may also fail where check mode warns of what an earlier task would have created."""
    needs_earlier_task = isinstance(done.reported, str) and planned.texts
    assert needs_earlier_task or done.reported == planned.reported, f"{where}: {planned}, {done}"


def play(sandbox: Sandbox, client: Client, seed: int, steps: int, with_faults: bool) -> None:
    """Run a play, and raise AssertionError at the first disagreement."""
    random = Random(seed)
    for step in range(steps):
        options = random_task(random)
        where = f"seed {seed}, step {step}: {options}"
        before, sent = account(sandbox), len(writes(sandbox))
        planned = outcome(client, True, options)
        assert len(writes(sandbox)) == sent, f"check mode sends a request: {where}"
        assert account(sandbox) == before, f"check mode changes something: {where}"
        if with_faults:
            fault = random.choice(FAULTS)
            sandbox.fault(
                **fault, times=1, skip=random.randrange(2), method=random.choice(("GET", "POST", "PATCH", "DELETE"))
            )
        done = outcome(client, False, options)
        sandbox.control("DELETE", "/faults")
        if not with_faults:
            assert_agree(planned, done, where)
        sandbox.advance(60)
        after = account(sandbox)
        again = outcome(client, True, options)
        sent = len(writes(sandbox))
        assert_agree(again, outcome(client, False, options), f"again, {where}")
        sandbox.advance(60)
        is_action = (
            options["module"] == "branch_restore" or "restarted" in options.values() or "always" in options.values()
        )
        if isinstance(done.reported, tuple) and not is_action:
            unchanged = (account(sandbox), len(writes(sandbox))) == (after, sent) and not again.reported[0]
            assert unchanged, f"not idempotent: {where}: {done}, {again}"


@pytest.mark.parametrize("with_faults", [False, True], ids=["no faults", "faults"])
@pytest.mark.parametrize("number", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, SEEDS))])
def test_check_mode_is_the_run(sandbox: Sandbox, client: Client, number: int, with_faults: bool, is_soak: bool) -> None:
    play(sandbox, client, number, STEPS if is_soak else STEPS_OF_SAMPLE, with_faults)
