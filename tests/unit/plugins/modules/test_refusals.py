# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the sandbox refuses about resources: check mode foresees it, or the reason why nothing that it reads shows it."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import clouddb_sandbox
from ansible_collections.clouddb.control.plugins.module_utils._errors import ClouddbError
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.module_utils._http.errors import StatusError
from ansible_collections.clouddb.control.tests.unit.support.resource_task import SHOP, failing, task, writes
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox

# Of resources with a module.
FILES = [
    f"{folder}{name}.py"
    for name in ("branches", "computes", "databases", "projects", "roles", "snapshots")
    for folder in ("", "routes/")
] + ["recovery.py"]
REFUSED = {409, 412, 422}

DEV = {"module": "branch", "name": "dev"}
KID = {**DEV, "name": "kid", "parent": "dev"}
COMPUTE = {"module": "compute", "branch": "dev"}
RESTORE = {"module": "branch_restore", "name": "dev"}
USER = {"module": "database_user", "branch": "dev", "name": "app"}
DATABASE = {"module": "database", "branch": "dev", "name": "orders", "owner": "app"}
OWN_ID = "ID"  # the id of dev


class Foreseen(NamedTuple):
    """A task that is refused after others, and the kind of the failure or its option; C(warns) if an earlier task may help."""

    earlier: list[dict[str, Any]]
    options: dict[str, Any]
    failure: str
    warns: bool = False


# By the message of the sandbox, with its values as {}.
FORESEEN: dict[str, Foreseen] = {
    "branch {} cannot have children: it expires at {}": Foreseen([{**DEV, "expires_at": "7d"}], KID, "parent"),
    "branch {} cannot expire: it has children": Foreseen([DEV, KID], {**DEV, "expires_at": "7d"}, "expires_at", True),
    "branch {} cannot expire: it is protected or the project's default branch": Foreseen(
        [{**DEV, "protected": True}], {**DEV, "expires_at": "7d"}, "expires_at"
    ),
    "branch {} cannot be the default branch: it expires at {}": Foreseen(
        [{**DEV, "expires_at": "7d"}], {**DEV, "default": True}, "default"
    ),
    "cannot delete branch {}: it is protected": Foreseen(
        [{**DEV, "protected": True}], {**DEV, "state": "absent"}, "refused"
    ),
    "cannot delete branch {}: it is the project's default branch": Foreseen(
        [], {**DEV, "name": "main", "state": "absent"}, "refused"
    ),
    "cannot delete branch {}: it has children; delete {} first": Foreseen(
        [DEV, KID], {**DEV, "state": "absent"}, "refused", True
    ),
    "branch {} cannot be restored: it is protected": Foreseen([{**DEV, "protected": True}], RESTORE, "refused"),
    "the history of branch {} does not contain {}": Foreseen(
        [DEV], {**RESTORE, "timestamp": "400d", "source": "main", "preserve_as": "old"}, "timestamp"
    ),
    "source_timestamp or source_lsn is required: the branch is its own source": Foreseen(
        [DEV], {**RESTORE, "source": OWN_ID}, "source"
    ),
    "preserve_under_name is required: the branch has children, or is its own source": Foreseen(
        [DEV], {**RESTORE, "lsn": "0/1E8A5B0"}, "preserve_as"
    ),
    "{} has a {} named {} already": Foreseen([DEV, {**DEV, "name": "demo"}], {**DEV, "new_name": "demo"}, "new_name"),
    "autoscaling_limit_min_cu must not exceed autoscaling_limit_max_cu": Foreseen(
        [DEV], {**COMPUTE, "min_cu": 4, "max_cu": 1}, "min_cu"
    ),
    "endpoint {} cannot be deleted: its branch is protected": Foreseen(
        [{**DEV, "protected": True}], {**COMPUTE, "state": "absent"}, "refused"
    ),
    "cannot delete role {}: it owns {}": Foreseen([DEV, USER, DATABASE], {**USER, "state": "absent"}, "refused", True),
    "branch {} cannot be recovered before its parent {}": Foreseen(
        [DEV, KID, {**KID, "state": "absent"}, {**DEV, "state": "absent"}],
        {**KID, "state": "recovered"},
        "refused",
        True,
    ),
    "branch {} cannot have {}: it is not a root branch": Foreseen(
        [DEV], {**DEV, "backup_schedule": [{"frequency": "daily", "hour": 3}]}, "backup_schedule"
    ),
    "project {} cannot be deleted: it has a protected branch": Foreseen(
        [{**DEV, "protected": True}], {"module": "project", "name": "shop", "state": "absent"}, "refused", True
    ),
}
IN_OPTIONS = "the module itself refuses these values, before any request"
UNSHOWN = {
    "a timestamp and an LSN are mutually exclusive": IN_OPTIONS,
    "expires_at must be in the future, and at most 30 days ahead": IN_OPTIONS,
    "expires_at must be in the future": IN_OPTIONS,
    "branch {} is not one that was restored from a snapshot to replace another": "the module replaces the branch at once",
    "branch {} is not deleted": "the module recovers no branch that is there",
    "project {} is not deleted": "the module recovers no project that is there",
    "branch {} has a read_write compute already": "the compute that is there is the one that the task is about",
    "region_id must be that of the project": "the module sets no region of a compute",
    "the autoscaling limits must not differ by more than {} compute units": "a bound of the plan, which no list shows",
    "the database name {} is reserved": "the service may reserve further names, and no list shows them",
    "the role name {} is protected": "the service may protect further names, and no list shows them",
    "autoscaling_limit_max_cu must not exceed {}": "a bound of the service, which no list shows",
    "restore from snapshot on target branch is still ongoing": "it passes, and the branch does not show it",
    "a role name cannot exceed {} bytes": "a bound of the service, which no list shows",
    "region {} is not available; use one of {}": "the list of regions is not that of a resource, and its error names them",
    "the passwords of project {} are not stored": "no module asks for a stored password",
}


def messages() -> set[str]:
    """The messages of the sandbox's refusals, from its source."""
    found: set[str] = set()
    root = Path(clouddb_sandbox.__file__).parent
    for name in [*FILES, "responses.py"]:
        for node in ast.walk(ast.parse((root / name).read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "HTTPException":
                status, text = node.args
                parts = text.values if isinstance(text, ast.JoinedStr) else [text]
                if isinstance(status, ast.Constant) and status.value in REFUSED:
                    found.add("".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in parts))
    return found


def test_each_refusal_of_the_sandbox_is_foreseen_or_has_a_reason() -> None:
    assert messages() == FORESEEN.keys() | UNSHOWN.keys()


@pytest.mark.parametrize("message", FORESEEN)
def test_check_mode_foresees_what_the_service_refuses(sandbox: Sandbox, client: Client, message: str) -> None:
    foreseen = FORESEEN[message]
    for options in foreseen.earlier:
        task(client, **options)
        sandbox.advance(60)
    options = {
        name: branch_id(sandbox, "dev") if value == OWN_ID else value for name, value in foreseen.options.items()
    }
    sent = len(writes(sandbox))
    if foreseen.warns:
        [warning] = task(client, check_mode=True, **options)["warnings"]
        assert warning.endswith("this task will fail.")
    else:
        with pytest.raises(ClouddbError) as planned:
            task(client, check_mode=True, **options)
        assert (planned.value.details.get("option") or planned.value.kind) == foreseen.failure
    assert len(writes(sandbox)) == sent
    with pytest.raises(ClouddbError) as error:
        task(client, **options)
    assert (error.value.details.get("option") or error.value.kind) == foreseen.failure
    refused = error.value.__cause__
    assert isinstance(refused, StatusError)
    assert {**refused.details, **error.value.details} == error.value.details
    assert re.search(re.escape(message).replace(r"\{\}", ".*"), str(refused))


def test_only_a_protected_branch_keeps_a_project(client: Client) -> None:
    planned = task(client, "project", check_mode=True, name="shop", state="absent")
    assert (planned["changed"], planned["warnings"]) == (True, [])


def test_another_protected_branch_keeps_no_compute(client: Client) -> None:
    for branch in (DEV, {**DEV, "name": "kept", "protected": True}):
        task(client, **branch)
    assert task(client, check_mode=True, **COMPUTE, state="absent")["changed"] is True


def test_a_refusal_lists_the_branches_once(sandbox: Sandbox, client: Client) -> None:
    task(client, **DEV)
    sandbox.advance(60)
    before = len(sandbox.requests())
    task(client, check_mode=True, **RESTORE, timestamp="10s", preserve_as="dev-before")
    lists = [each["query"] for each in sandbox.requests()[before:] if each["path"].endswith("/branches")]
    assert len([query for query in lists if "search" not in query]) == 1


def test_the_history_is_that_of_the_parent_or_the_source(sandbox: Sandbox, client: Client) -> None:
    sandbox.advance(3600)
    task(client, **DEV)
    sandbox.advance(60)
    kid = {"module": "branch", "name": "kid", "from_timestamp": "10m"}
    assert failing(client, check_mode=True, **kid, parent="dev")["option"] == "from_timestamp"
    restore = {**RESTORE, "timestamp": "10m", "preserve_as": "kept"}
    assert failing(client, check_mode=True, **restore, source=branch_id(sandbox, "dev"))["option"] == "timestamp"
    assert task(client, check_mode=True, **kid, parent="main")["changed"]
    assert task(client, check_mode=True, **restore, source="main")["changed"]
    task(client, "project", name="shop", history_retention=0)
    assert failing(client, check_mode=True, **kid, parent="main")["option"] == "from_timestamp"


def test_a_parent_that_an_earlier_task_would_create_has_no_history_yet(client: Client) -> None:
    planned = task(client, check_mode=True, **{**KID, "parent": "later"}, from_timestamp="1h")
    assert (planned["changed"], len(planned["warnings"])) == (True, 1)


def branch_id(sandbox: Sandbox, name: str) -> str:
    branches = sandbox.api("GET", f"/projects/{SHOP}/branches")["branches"]
    return next(str(each["id"]) for each in branches if each["name"] == name)
