# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check mode beside the run: for each module, state and state of the resource, check, run, check, run.

In random plays, so is each task, and the account after it is compared. With faults, requests of the first run fail,
before or after the service has processed them.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from random import Random
from typing import Any, NamedTuple

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import ClouddbError
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.tests.unit.support.each_module import sampled
from ansible_collections.clouddb.control.tests.unit.support.resource_task import SHOP, task, writes
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox

Options = dict[str, Any]
DEV = {"module": "branch", "name": "dev"}
COMPUTE = {"module": "compute", "branch": "dev"}
USER = {"module": "database_user", "branch": "dev", "name": "app"}
DATABASE = {"module": "database", "branch": "dev", "name": "orders", "owner": "app"}
RESTORE = {"module": "branch_restore", "name": "dev"}
SNAPSHOT = {"module": "snapshot", "name": "nightly"}
OF_SNAPSHOT = {"module": "branch_restore", "name": "main", "snapshot": "nightly"}
SCHEDULE = {"backup_schedule": [{"frequency": "daily", "hour": 3, "retention": "7d"}]}
BLOG = {"module": "project", "name": "blog"}
MAXIMUM = {"min_cu": None, "max_cu": 2.0, "suspend_timeout": None}
MINIMUM = {**MAXIMUM, "min_cu": 4.0, "max_cu": None}

# The resource that is there before: its tasks, or what is done to it by the service's API.
PREPARED: dict[str, list[Options]] = {
    "nothing": [],
    "dev": [DEV],
    "dev, expiring": [{**DEV, "expires_at": "7d"}],
    "dev and backup": [DEV, {**DEV, "name": "backup"}],
    "dev, suspended": [DEV, {**COMPUTE, "state": "suspended"}],
    "dev, being suspended": [DEV, {**COMPUTE, "state": "suspended", "wait": False}],
    "dev, being started": [DEV, {**COMPUTE, "state": "suspended"}, {**COMPUTE, "state": "started", "wait": False}],
    "dev, unfinished": [{**DEV, "wait": False}],
    "user": [DEV, USER],
    "user, unfinished": [DEV, {**USER, "wait": False}],
    "database": [DEV, USER, DATABASE],
    "snapshot": [SNAPSHOT],
    "snapshot, expiring": [{**SNAPSHOT, "expires_at": "7d"}],
    "main, of a snapshot": [SNAPSHOT, OF_SNAPSHOT],
    "main, with a schedule": [{**DEV, "name": "main", **SCHEDULE}],
    "dev, deleted": [DEV, {**DEV, "state": "absent"}],
    "blog, deleted": [{**BLOG, "state": "absent"}],
    "shop, small": [{**BLOG, "name": "shop", "default_compute": MAXIMUM}],
}
SCENARIOS: list[tuple[str, Options, str | None]] = [
    # What is there, the task, and the option or the kind of its refusal.
    *((there, DEV, None) for there in ("nothing", "dev", "dev, unfinished")),
    *((there, {**DEV, "state": "absent"}, None) for there in ("nothing", "dev", "dev, unfinished")),
    *((there, {**DEV, "protected": True}, None) for there in ("nothing", "dev", "dev, unfinished")),
    *((there, {**DEV, "default": True}, None) for there in ("nothing", "dev", "dev, unfinished")),
    ("dev", {**DEV, "expires_at": "7d"}, None),
    ("dev, expiring", {**DEV, "expires_at": "never"}, None),
    ("dev", {**DEV, "new_name": "demo"}, None),
    ("dev, expiring", {**DEV, "protected": True}, "protected"),
    ("dev", {**DEV, "name": "kid", "parent": "dev", "protected": True, "expires_at": "7d"}, "protected"),
    ("nothing", {**DEV, "name": "main", "expires_at": "7d"}, "expires_at"),
    *(
        (there, {**COMPUTE, "state": state}, None)
        for there in ("dev", "dev, suspended", "dev, being suspended", "dev, being started")
        for state in ("started", "suspended", "restarted")
    ),
    ("dev", {**COMPUTE, "max_cu": 4}, None),
    ("dev", {**COMPUTE, "type": "read_only"}, None),
    ("dev", {**COMPUTE, "state": "absent"}, None),
    ("dev", {**COMPUTE, "min_cu": 8}, "min_cu"),
    *((there, USER, None) for there in ("dev", "user", "user, unfinished")),
    *((there, {**USER, "update_password": "always"}, None) for there in ("dev", "user")),
    *((there, {**USER, "state": "absent"}, None) for there in ("dev", "user")),
    *((there, DATABASE, None) for there in ("user", "database")),
    ("database", {**DATABASE, "owner": "clouddb_owner"}, None),
    ("database", {**DATABASE, "state": "absent"}, None),
    ("dev", RESTORE, None),
    ("dev", {**RESTORE, "timestamp": "1s", "preserve_as": "dev-before"}, None),
    ("dev and backup", {**RESTORE, "preserve_as": "backup"}, "preserve_as"),
    *((there, SNAPSHOT, None) for there in ("nothing", "snapshot")),
    *((there, {**SNAPSHOT, "state": "absent"}, None) for there in ("nothing", "snapshot")),
    *((there, {**SNAPSHOT, "expires_at": "7d"}, None) for there in ("snapshot", "snapshot, expiring")),
    ("snapshot, expiring", {**SNAPSHOT, "expires_at": "never"}, None),
    ("dev", {**SNAPSHOT, "branch": "dev"}, "branch"),
    ("snapshot", OF_SNAPSHOT, None),
    ("main, of a snapshot", {**RESTORE, "name": "main", "timestamp": "1s", "preserve_as": "kept"}, "source"),
    *((there, {**DEV, "name": "main", **SCHEDULE}, None) for there in ("nothing", "main, with a schedule")),
    ("main, with a schedule", {**DEV, "name": "main", "backup_schedule": []}, None),
    *((there, {**DEV, "state": "recovered"}, None) for there in ("dev", "dev, deleted")),
    *((there, {**BLOG, "state": "recovered"}, None) for there in ("nothing", "blog, deleted")),
    ("nothing", {"module": "project", "name": "new"}, None),
    ("nothing", {"module": "project", "name": "new", "branch_name": "prod", "database_name": "orders"}, None),
    *(
        ("nothing", {"module": "project", "name": name, "default_compute": sizes}, "default_compute")
        for name, sizes in (("new", {**MAXIMUM, "min_cu": 4.0}), ("shop", {**MAXIMUM, "min_cu": 4.0}))
    ),
    ("shop, small", {"module": "project", "name": "shop", "default_compute": MINIMUM}, "default_compute"),
    ("nothing", {"module": "project", "name": "shop", "history_retention": "3d"}, None),
    ("nothing", {"module": "project", "name": "shop", "state": "absent"}, None),
]


class Outcome(NamedTuple):
    """Whether the task reports C(changed), with the names of the diff's fields, or what is refused; and its texts."""

    reported: tuple[bool, dict[str, list[str]]] | str
    texts: list[str]


def outcome(client: Client, check_mode: bool, options: dict[str, Any]) -> Outcome:
    try:
        result = task(client, check_mode=check_mode, **options)
    except ClouddbError as error:
        return Outcome(error.details.get("option") or error.kind, [str(error)])
    # What is deleted is shown as it is, and an unfinished branch has this field too.
    diff = {side: sorted({*fields} - {"pending_state"}) for side, fields in result["diff"].items()}
    return Outcome((result["changed"], diff), result["warnings"])


# For each change, a scenario either waits or does not.
ROWS = [(*scenario, wait) for number, scenario in enumerate(SCENARIOS) for wait in (not number % 2, bool(number % 2))]


@pytest.mark.parametrize(
    ("there", "options", "refusal", "wait"),
    sampled(*ROWS, stride=2),
    ids=[f"{there}: {' '.join(map(str, options.values()))}{' wait' * wait}" for there, options, _refusal, wait in ROWS],
)
def test_they_agree(sandbox: Sandbox, client: Client, there: str, options: Options, refusal: Any, wait: bool) -> None:
    for prepared in PREPARED[there]:
        task(client, **prepared)
    if "unfinished" not in there and "being" not in there:
        sandbox.advance(30)
    before = len(writes(sandbox))
    for run in range(2):
        planned = outcome(client, True, {**options, "wait": wait}).reported
        assert len(writes(sandbox)) == before or run
        assert outcome(client, False, {**options, "wait": wait}).reported == planned
        if refusal:
            assert planned == refusal
        # Time passes between the runs, in which unfinished work ends.
        sandbox.advance(30)


def test_a_deletion_under_way_is_over_for_both(sandbox: Sandbox, client: Client) -> None:
    task(client, **DEV)
    sandbox.fault("lingering_deletion", seconds=20)
    task(client, **DEV, state="absent", wait=False)
    planned, done = (outcome(client, mode, {**DEV, "state": "absent"}).reported for mode in (True, False))
    assert planned == done
    created = task(client, check_mode=True, **DEV)
    assert (created["changed"], created["branch"]["id"]) == (True, None)


@pytest.mark.parametrize("options", [DEV, {**DEV, "protected": True}, {**DEV, "default": True}])
def test_a_creation_that_failed_fails_the_task(sandbox: Sandbox, client: Client, options: Options) -> None:
    sandbox.plan((0, "scheduling"), (1, "failed"), action="create_branch")
    assert outcome(client, False, DEV).reported == "wait_failed"
    planned = task(client, check_mode=True, **options)
    assert (planned["changed"], ["has failed" in each for each in planned["warnings"]]) == (False, [True])
    assert outcome(client, False, options).reported == "wait_failed"


def test_the_plan_has_no_fields_of_the_request(sandbox: Sandbox, client: Client) -> None:
    planned = task(client, check_mode=True, **DEV)
    assert planned["branch"] == {"id": None, "name": "dev"}
    task(client, **DEV)
    sandbox.advance(60)
    planned = task(client, check_mode=True, **RESTORE, timestamp="1s", preserve_as="dev-before")
    assert not {"source_branch_id", "source_timestamp", "preserve_under_name"} & planned["branch"].keys()


STEPS, SEEDS = 25, 50
STEPS_OF_SAMPLE = 5
IN_A_WEEK = f"{datetime.now(timezone.utc) + timedelta(days=7):%Y-%m-%dT00:00:00Z}"
FAULTS = ({"kind": "lost_answer"}, {"kind": "reset"}, *({"kind": "status", "status": each} for each in (502, 423)))
BRANCHES = ("main", "dev", "kid")
STATES = ("present", "present", "absent")
# The values of options, by module; None: the option is not set.
OPTIONS: dict[str, dict[str, tuple[Any, ...]]] = {
    "branch": {
        "name": ("dev", "kid"),
        "parent": (None, None, "main", "dev"),
        "protected": (None, None, False, True),
        "expires_at": (None, None, "never", IN_A_WEEK),
        "default": (None, None, None, True),
        "state": STATES,
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
        "state": STATES,
    },
    "database": {
        "branch": BRANCHES,
        "name": ("orders", "stock"),
        "owner": ("clouddb_owner", "app", "web"),
        "state": STATES,
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


def account(sandbox: Sandbox) -> Any:
    """What the project has, without what changes by itself."""
    project = f"/projects/{SHOP}"
    found = [sandbox.api("GET", project)["project"]]
    fields = ("name", "parent_id", "protected", "expires_at", "default", "type", "owner_name", "branch_id")
    for branch in sandbox.api("GET", f"{project}/branches")["branches"]:
        for kind in ("endpoints", "roles", "databases"):
            found += sandbox.api("GET", f"{project}/branches/{branch['id']}/{kind}")[kind]
        found.append(branch)
    limits = ("autoscaling_limit_min_cu", "autoscaling_limit_max_cu", "history_retention_seconds")
    return sorted(str({name: each.get(name) for name in (*fields, *limits)}) for each in found)


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
            fault, skip = random.choice(FAULTS), random.randrange(2)
            sandbox.fault(**fault, times=1, skip=skip, method=random.choice(("GET", "POST", "PATCH", "DELETE")))
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
        is_action = bool({"branch_restore", "restarted", "always"} & {str(each) for each in options.values()})
        if isinstance(done.reported, tuple) and not is_action:
            unchanged = (account(sandbox), len(writes(sandbox))) == (after, sent) and not again.reported[0]
            assert unchanged, f"not idempotent: {where}: {done}, {again}"


@pytest.mark.parametrize("with_faults", [False, True], ids=["no faults", "faults"])
@pytest.mark.parametrize("number", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, SEEDS))])
def test_they_agree_in_random_plays(
    sandbox: Sandbox, client: Client, number: int, with_faults: bool, is_soak: bool
) -> None:
    play(sandbox, client, number, STEPS if is_soak else STEPS_OF_SAMPLE, with_faults)
