# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check mode beside the run: for each module, state and state of the resource, check, run, check, run.

In random plays, so is each task, and the account after it is compared. With faults, requests of the first run fail,
before or after the service has processed them.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from random import Random
from typing import Any, NamedTuple

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import ClouddbError
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.module_utils._options import NOT_CREATED_ID
from ansible_collections.clouddb.control.tests.unit.support.each_module import sampled
from ansible_collections.clouddb.control.tests.unit.support.resource_task import SHOP, task, writes
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox

Options = dict[str, Any]
DEV = {"module": "branch", "name": "dev"}
COMPUTE = {"module": "compute", "branch": "dev"}
USER = {"module": "database_user", "branch": "dev", "name": "app"}
ALWAYS = {**USER, "update_password": "always"}
DATABASE = {"module": "database", "branch": "dev", "name": "orders", "owner": "app"}
RESTORE = {"module": "branch_restore", "name": "dev"}
SNAPSHOT = {"module": "snapshot", "name": "nightly"}
OF_SNAPSHOT = {"module": "branch_restore", "name": "main", "snapshot": "nightly"}
SCHEDULE = {"backup_schedule": [{"frequency": "daily", "hour": 3, "retention": "7d"}]}
BLOG, SHOP_ITSELF, STORE = ({"module": "project", "name": name} for name in ("blog", "shop", "new"))
IN_A_WEEK, IN_TWO_MONTHS = (
    f"{datetime.now(timezone.utc) + timedelta(days=days):%Y-%m-%dT00:00:00Z}" for days in (7, 60)
)
MAXIMUM = {"min_cu": None, "max_cu": 2.0, "suspend_timeout": None}
MINIMUM = {**MAXIMUM, "min_cu": 4.0, "max_cu": None}

# The resource that is there before: its tasks, or what is done to it by the service's API.
PREPARED: dict[str, list[Options]] = {
    "nothing": [],
    "dev": [DEV],
    "dev, expiring": [{**DEV, "expires_at": "7d"}],
    "dev and backup": [DEV, {**DEV, "name": "backup"}],
    "dev, bare": [{**DEV, "compute": False}],
    "dev, sized": [DEV, {**COMPUTE, "max_cu": 4.0, "suspend_timeout": 300}],
    "dev, suspended": [DEV, {**COMPUTE, "state": "suspended"}],
    "dev, being suspended": [DEV, {**COMPUTE, "state": "suspended", "wait": False}],
    "dev, being started": [DEV, {**COMPUTE, "state": "suspended"}, {**COMPUTE, "state": "started", "wait": False}],
    "dev, unfinished": [{**DEV, "wait": False}],
    "replica": [DEV, {**COMPUTE, "type": "read_only"}],
    "user": [DEV, USER],
    "user, unfinished": [DEV, {**USER, "wait": False}],
    "database": [DEV, USER, DATABASE],
    "snapshot": [SNAPSHOT],
    "snapshot, expiring": [{**SNAPSHOT, "expires_at": "7d"}],
    "main, of a snapshot": [SNAPSHOT, OF_SNAPSHOT],
    "main, with a schedule": [{**DEV, "name": "main", **SCHEDULE}],
    "dev, deleted": [DEV, {**DEV, "state": "absent"}],
    "blog, deleted": [{**BLOG, "state": "absent"}],
    "shop, small": [{**SHOP_ITSELF, "default_compute": MAXIMUM}],
}
SIZED = {"min_cu": 0.5, "max_cu": 2.0, "suspend_timeout": "5m"}
SIZES = {"autoscaling_limit_min_cu": 0.5, "autoscaling_limit_max_cu": 2, "suspend_timeout_seconds": 300}
FIELDS = {"name": "primary", "pg_settings": {"work_mem": "8MB"}, "disabled": True}
STORED_FIELDS = {"name": "primary", "settings": {"pg_settings": {"work_mem": "8MB"}}, "disabled": True}
STORED_SCHEDULE = {"schedule": [{"frequency": "daily", "hour": 3, "retention_seconds": 604_800}]}
CREATIONS = tuple(f"POST {end}" for end in ("branches", "endpoints", "roles", "databases", "snapshot", "projects"))
IDLE, ACTIVE = {"current_state": "idle"}, {"current_state": "active"}


class Scenario(NamedTuple):
    """What is there, and a task: the requests that the service carries out, or the option for which it is C(refused).

    C(shown) are fields of the diff, and of the resource then.
    """

    there: str
    options: Options
    sent: str = ""
    shown: Options = {}
    refused: str = ""


CHANGES: list[tuple[Any, ...]] = [
    ("nothing", DEV, "POST branches", {"name": "dev"}),
    *((there, DEV) for there in ("dev", "dev, unfinished")),
    ("nothing", {**DEV, "state": "absent"}),
    *((there, {**DEV, "state": "absent"}, "DELETE") for there in ("dev", "dev, unfinished")),
    # Other options have no effect then.
    *(
        ("dev", {**DEV, **ignored, "state": "absent"}, "DELETE")
        for ignored in ({"expires_at": "2024-12-15T18:02:16Z"}, {"parent": "shopp"}, {"default": True})
    ),
    ("nothing", {**DEV, "protected": True}, "POST branches", {"protected": True}),
    *((there, {**DEV, "protected": True}, "PATCH", {"protected": True}) for there in ("dev", "dev, unfinished")),
    ("nothing", {**DEV, "default": True}, "POST branches POST set_as_default", {"name": "dev", "default": True}),
    *(
        (there, {**DEV, "default": True}, "POST set_as_default", {"default": True})
        for there in ("dev", "dev, unfinished")
    ),
    ("nothing", {**DEV, "from_lsn": "0/1E8A5B0"}, "POST branches"),
    ("nothing", {**DEV, "expires_at": "never"}, "POST branches"),
    ("dev", {**DEV, "expires_at": "7d"}, "PATCH"),
    ("dev", {**DEV, "expires_at": IN_A_WEEK}, "PATCH"),
    ("dev", {**DEV, "expires_at": "never", "protected": True}, "PATCH", {"protected": True}),
    ("dev, expiring", {**DEV, "expires_at": "never"}, "PATCH", {"expires_at": None}),
    ("dev", {**DEV, "new_name": "demo"}, "PATCH", {"name": "demo"}),
    ("dev", {**DEV, "new_name": "demo", "protected": True}, "PATCH", {"name": "demo", "protected": True}),
    ("dev", {**COMPUTE, "state": "suspended"}, "POST suspend", IDLE),
    ("dev", {**COMPUTE, "state": "started"}),
    ("dev", {**COMPUTE, "state": "restarted"}, "POST restart"),
    ("dev, suspended", {**COMPUTE, "state": "suspended"}),
    ("dev, suspended", {**COMPUTE, "state": "started"}, "POST start", ACTIVE),
    ("dev, suspended", {**COMPUTE, "state": "restarted"}, "POST restart"),
    ("dev, being suspended", {**COMPUTE, "state": "started"}, "POST start", ACTIVE),
    ("dev, being suspended", {**COMPUTE, "state": "suspended"}),
    ("dev, being suspended", {**COMPUTE, "state": "restarted"}, "POST restart"),
    ("dev, being started", {**COMPUTE, "state": "started"}),
    ("dev, being started", {**COMPUTE, "state": "suspended"}, "POST suspend", IDLE),
    ("dev, being started", {**COMPUTE, "state": "restarted"}, "POST restart"),
    ("dev, bare", {**COMPUTE, **SIZED}, "POST endpoints", {"type": "read_write", **SIZES}),
    ("dev", {**COMPUTE, **SIZED, "type": "read_only"}, "POST endpoints", {"type": "read_only", **SIZES}),
    ("dev", {**COMPUTE, "type": "read_only"}, "POST endpoints"),
    ("dev, sized", {**COMPUTE, "min_cu": 1}, "PATCH", {"autoscaling_limit_min_cu": 1}),
    ("dev, sized", {**COMPUTE, "max_cu": 8}, "PATCH", {"autoscaling_limit_max_cu": 8}),
    # As in https://github.com/kislerdm/terraform-provider-neon/pull/220, which lost the -1
    *(
        ("dev, sized", {**COMPUTE, "suspend_timeout": each}, "PATCH", {"suspend_timeout_seconds": seconds})
        for each, seconds in (("1h", 3600), (-1, -1), ("-1", -1), (0, 0))
    ),
    ("dev, suspended", COMPUTE),
    ("dev, suspended", {**COMPUTE, "max_cu": 2.0}, "PATCH", {"autoscaling_limit_max_cu": 2}),
    ("dev", {**COMPUTE, **FIELDS}, "PATCH", STORED_FIELDS),
    ("dev", {**COMPUTE, "state": "absent"}, "DELETE"),
    ("replica", {**COMPUTE, "type": "read_only", "state": "absent"}, "DELETE"),
    ("dev", USER, "POST roles", {"name": "app"}),
    *((there, USER) for there in ("user", "user, unfinished")),
    ("dev", ALWAYS, "POST roles"),
    ("user", ALWAYS, "POST reset_password"),
    ("dev", {**USER, "state": "absent"}),
    *(("user", {**user, "state": "absent"}, "DELETE") for user in (USER, ALWAYS)),
    ("user", DATABASE, "POST databases", {"name": "orders", "owner_name": "app"}),
    ("database", DATABASE),
    ("database", {**DATABASE, "owner": "clouddb_owner"}, "PATCH", {"owner_name": "clouddb_owner"}),
    ("database", {**DATABASE, "state": "absent"}, "DELETE"),
    ("dev", RESTORE, "POST restore"),
    ("dev", {**RESTORE, "timestamp": "1s", "preserve_as": "dev-before"}, "POST restore"),
    ("nothing", SNAPSHOT, "POST snapshot", {"name": "nightly"}),
    ("snapshot", SNAPSHOT),
    ("nothing", {**SNAPSHOT, "state": "absent"}),
    ("snapshot", {**SNAPSHOT, "state": "absent"}, "DELETE"),
    ("snapshot", {**SNAPSHOT, "expires_at": "7d"}, "PATCH"),
    ("snapshot, expiring", {**SNAPSHOT, "expires_at": "7d"}),
    ("snapshot, expiring", {**SNAPSHOT, "expires_at": IN_TWO_MONTHS}, "PATCH"),
    ("snapshot, expiring", {**SNAPSHOT, "expires_at": "never"}, "PATCH", {"expires_at": None}),
    ("snapshot", OF_SNAPSHOT, "POST restore"),
    ("nothing", {**DEV, "name": "main", **SCHEDULE}, "PUT backup_schedule", STORED_SCHEDULE),
    ("main, with a schedule", {**DEV, "name": "main", **SCHEDULE}),
    ("main, with a schedule", {**DEV, "name": "main", "backup_schedule": []}, "PUT backup_schedule", {"schedule": []}),
    ("nothing", {**DEV, "schema_only": True, **SCHEDULE}, "POST branches PUT backup_schedule", STORED_SCHEDULE),
    ("dev", {**DEV, "state": "recovered"}),
    ("dev, deleted", {**DEV, "state": "recovered"}, "POST recover"),
    ("nothing", {**BLOG, "state": "recovered"}),
    ("blog, deleted", {**BLOG, "state": "recovered"}, "POST recover"),
    ("nothing", STORE, "POST projects", {"name": "new"}),
    ("nothing", {**STORE, "branch_name": "prod", "database_name": "orders"}, "POST projects"),
    ("nothing", {**SHOP_ITSELF, "history_retention": "3d"}, "PATCH", {"history_retention_seconds": 259_200}),
    ("nothing", {**STORE, "id": SHOP}, "PATCH", {"name": "new"}),
    ("nothing", {**SHOP_ITSELF, "state": "absent"}, "DELETE"),
    ("nothing", {**SHOP_ITSELF, "id": SHOP, "state": "absent"}, "DELETE"),
    ("nothing", {**SHOP_ITSELF, "id": "gone-lake-12345678", "state": "absent"}),
]
REFUSED: list[tuple[str, Options, str]] = [
    ("dev, expiring", {**DEV, "protected": True}, "protected"),
    ("dev", {**DEV, "name": "kid", "parent": "dev", "protected": True, "expires_at": "7d"}, "protected"),
    ("nothing", {**DEV, "name": "main", "expires_at": "7d"}, "expires_at"),
    ("dev and backup", {**DEV, "parent": "backup"}, "parent"),
    ("dev", {**DEV, "new_name": "demo", "state": "absent"}, "new_name"),
    ("dev", {**COMPUTE, "min_cu": 8}, "min_cu"),
    ("dev and backup", {**RESTORE, "preserve_as": "backup"}, "preserve_as"),
    ("dev", {**RESTORE, "timestamp": "2099-01-01T00:00:00Z"}, "timestamp"),
    ("dev", {**SNAPSHOT, "branch": "dev"}, "branch"),
    *(
        ("snapshot", {**SNAPSHOT, "expires_at": value}, "expires_at")
        for value in ("2020-01-01T00:00:00Z", "2030-01-01")
    ),
    ("main, of a snapshot", {**RESTORE, "name": "main", "timestamp": "1s", "preserve_as": "kept"}, "source"),
    ("nothing", {**STORE, "default_compute": {**MAXIMUM, "min_cu": 4.0}}, "default_compute"),
    ("nothing", {**SHOP_ITSELF, "default_compute": {**MAXIMUM, "min_cu": 4.0}}, "default_compute"),
    ("shop, small", {**SHOP_ITSELF, "default_compute": MINIMUM}, "default_compute"),
    ("nothing", {**BLOG, "id": SHOP, "state": "absent"}, "name"),
    ("nothing", {**SHOP_ITSELF, "pg_version": 16}, "pg_version"),
    *(("nothing", {**SHOP_ITSELF, "id": id, "region_id": "aws-us-east-2"}, "region_id") for id in (None, SHOP)),
]
SCENARIOS = [*(Scenario(*row) for row in CHANGES), *(Scenario(*row[:2], refused=row[2]) for row in REFUSED)]


class Outcome(NamedTuple):
    """Whether the task reports C(changed), with the names of the diff's fields, or what is refused; and its texts and result."""

    reported: tuple[bool, dict[str, list[str]]] | str
    texts: list[str]
    result: dict[str, Any] = {}


def outcome(client: Client, check_mode: bool, options: dict[str, Any]) -> Outcome:
    try:
        result = task(client, check_mode=check_mode, **options)
    except ClouddbError as error:
        return Outcome(" ".join([error.kind, *error.details.get("option", "").split()]), [str(error)])
    # What is deleted is shown as it is, and an unfinished branch has this field too.
    diff = {side: sorted({*fields} - {"pending_state"}) for side, fields in result["diff"].items()}
    return Outcome((result["changed"], diff), result["warnings"], result)


def done_by(sandbox: Sandbox) -> list[str]:
    """The requests that the service has carried out: their methods, and the end of the path of a POST or PUT."""
    lines = [f"{each['method']} {each['path']}" for each in sandbox.requests() if each["status"] < 300]
    return [re.sub(r"^(P[OU]\S+) .*/(\w+)|^(\w+) .*", r"\1 \2\3", line).strip() for line in lines if line[:3] != "GET"]


# For each change, a scenario either waits or does not.
ROWS = [(each, wait) for number, each in enumerate(SCENARIOS) for wait in (not number % 2, bool(number % 2))]


@pytest.mark.parametrize(
    ("scenario", "wait"),
    sampled(*ROWS, stride=2),
    ids=[f"{each.there}: {' '.join(map(str, each.options.values()))}{' wait' * wait}" for each, wait in ROWS],
)
def test_they_agree(sandbox: Sandbox, client: Client, scenario: Scenario, wait: bool) -> None:
    """Of what the task sends, too; and a second run changes nothing, unless the task is an action."""
    options, resource = {**scenario.options, "wait": wait}, scenario.options["module"].removesuffix("_restore")
    for prepared in PREPARED[scenario.there]:
        task(client, **prepared)
    if "unfinished" not in scenario.there and "being" not in scenario.there:
        sandbox.advance(30)
    sandbox.state.request_log.clear()
    planned = outcome(client, True, options)
    assert writes(sandbox) == []
    done = outcome(client, False, options)
    assert (done.reported, done.result.keys()) == (planned.reported, planned.result.keys())
    assert " ".join(done_by(sandbox)) == scenario.sent
    if scenario.refused:
        assert planned.reported == f"invalid_option {scenario.refused}"
    else:
        assert scenario.shown.items() <= planned.result["diff"]["after"].items()
        assert done.reported[0] is bool(scenario.sent)
    if wait and not scenario.refused:
        assert {each["status"] for each in done.result["operations"]} <= {"finished"}
    if scenario.sent == "DELETE":
        assert done.result[resource] is None
    elif scenario.sent.startswith(CREATIONS):
        assert (planned.result[resource]["id"], done.result["diff"]["before"]) == (None, {})
    if wait or "current_state" not in scenario.shown:
        assert {name: done.result[resource].get(name) for name in scenario.shown} == scenario.shown
    # Time passes between the runs, in which unfinished work ends.
    sandbox.advance(30)
    sandbox.state.request_log.clear()
    planned, done = (outcome(client, check_mode, options) for check_mode in (True, False))
    assert done.reported == planned.reported
    if scenario.sent == "POST restart":
        assert (done.reported[0], done_by(sandbox)) == (True, ["POST restart"])
    elif not scenario.refused and scenario.sent != "POST restore" and scenario.options != ALWAYS:
        assert (done.reported[0], writes(sandbox)) == (False, [])


EACH_STATE = ("present", "started", "suspended", "restarted")
ON_MAIN = {"module": "database", "name": "clouddb", "owner": "clouddb_owner"}
# What is there, a task, and the start of the message of the run; without one, an earlier task creates it in the run.
MISSING: list[tuple[str, Options, str]] = [
    *(
        ("dev, bare", {**COMPUTE, "state": state}, "branch: dev has no compute of type read_write.")
        for state in EACH_STATE[1:]
    ),
    *(
        ("dev", {**COMPUTE, "branch": "dve", "state": state}, "branch: there is no branch 'dve'.")
        for state in EACH_STATE
    ),
    *(
        ("dev", {**COMPUTE, option: NOT_CREATED_ID, "state": state}, "")
        for option in ("project", "branch", "id")
        for state in EACH_STATE
    ),
    *(
        ("dev", {**RESTORE, option: "mian"}, f"{option}: there is no branch 'mian'. Did you mean main?")
        for option in ("name", "source")
    ),
    *(("dev", {**RESTORE, option: NOT_CREATED_ID}, "") for option in ("project", "source")),
    ("nothing", OF_SNAPSHOT, "snapshot: there is no snapshot 'nightly'."),
    ("nothing", {**OF_SNAPSHOT, "project": "none"}, "project: there is no project 'none'."),
    ("nothing", {**OF_SNAPSHOT, "snapshot": NOT_CREATED_ID}, ""),
    ("nothing", {**ON_MAIN, "project": "shopp"}, "project: there is no project 'shopp'."),
    ("nothing", {**ON_MAIN, "branch": "shopp"}, "branch: there is no branch 'shopp'."),
    *(("nothing", {**ON_MAIN, option: NOT_CREATED_ID}, "") for option in ("project", "branch")),
    ("nothing", {**ON_MAIN, "project": NOT_CREATED_ID, "state": "absent"}, ""),
    ("nothing", {**ON_MAIN, "owner": "nobody"}, "owner: there is no user 'nobody'."),
    (
        "nothing",
        {**ON_MAIN, "name": "orders", "owner": "clouddb_ower"},
        "owner: there is no user 'clouddb_ower'. Did you mean clouddb_owner?",
    ),
    ("nothing", {**DEV, "parent": "shopp"}, "parent: there is no branch 'shopp'."),
    ("nothing", {**DEV, "parent": "shopp", "from_timestamp": "1h"}, "parent: there is no branch 'shopp'."),
    ("nothing", {**DEV, "new_name": "demo"}, "name: there is no branch 'dev'."),
    ("nothing", {"module": "project", "id": "gone-lake-12345678"}, "id: there is no project"),
    ("nothing", {**DEV, "state": "recovered"}, "name: there is no branch 'dev'."),
]


@pytest.mark.parametrize(("there", "options", "message"), MISSING)
def test_what_an_earlier_task_may_create(
    sandbox: Sandbox, client: Client, there: str, options: Options, message: str
) -> None:
    """As in https://github.com/theforeman/foreman-ansible-modules/issues/536; a name may be misspelled, which is a warning."""
    for prepared in PREPARED[there]:
        task(client, **prepared)
    sandbox.state.request_log.clear()
    planned = task(client, check_mode=True, **options)
    assert (planned["changed"], len(planned["warnings"]), writes(sandbox)) == (True, int(bool(message)), [])
    if options["module"] == "compute":
        assert (planned["compute"]["id"], NOT_CREATED_ID in str(planned)) == (None, False)
    if message:
        with pytest.raises(ClouddbError, match=f"^{re.escape(message)}") as error:
            task(client, **options)
        failure = {"kind": "not_found", "option": message.partition(":")[0]}
        assert error.value.as_result()["failure"].items() >= failure.items()
        [warning] = planned["warnings"]
        assert warning.startswith(message.partition(" Did you mean")[0])
        assert warning.endswith(" Unless an earlier task creates it, this task will fail.")
        assert not message.startswith("owner") or warning.startswith(str(error.value))
    assert done_by(sandbox) == []


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
