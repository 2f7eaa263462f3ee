# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the sandbox refuses about resources: check mode foresees it, or the reason why nothing that it reads shows it.

Of the limits of the account's plan, the error says what frees room."""

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
from ansible_collections.clouddb.control.plugins.module_utils._http.failures import AFTER_LIMITS
from ansible_collections.clouddb.control.plugins.module_utils._resources.refusals import root_of
from ansible_collections.clouddb.control.tests.unit.support.resource_task import SHOP, failing, task, writes
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox
from clouddb_sandbox.limits import COUNTED

# Of resources with a module.
FILES = [
    f"{folder}{name}.py"
    for name in ("branches", "computes", "databases", "projects", "roles", "snapshots")
    for folder in ("", "routes/")
] + ["recovery.py"]
REFUSED = {409, 412, 422}

DEV = {"module": "branch", "name": "dev"}
PROTECTED, EXPIRES, DELETED = {**DEV, "protected": True}, {**DEV, "expires_at": "7d"}, {**DEV, "state": "absent"}
KID = {**DEV, "name": "kid", "parent": "dev"}
COMPUTE = {"module": "compute", "branch": "dev"}
NO_COMPUTE, UNFIT = {**COMPUTE, "state": "absent"}, {**COMPUTE, "min_cu": 4, "max_cu": 1}
RESTORE = {"module": "branch_restore", "name": "dev"}
OWN_ID = "ID"  # the id of dev
OF_ITSELF = {**RESTORE, "source": OWN_ID}
USER = {"module": "database_user", "branch": "dev", "name": "app"}
DATABASE = {"module": "database", "branch": "dev", "name": "orders", "owner": "app"}
SCHEDULED = {**DEV, "backup_schedule": [{"frequency": "daily", "hour": 3}]}
OF_OLD = {**RESTORE, "timestamp": "400d", "source": "main", "preserve_as": "old"}
NO_SHOP = {"module": "project", "name": "shop", "state": "absent"}


class Row(NamedTuple):
    """A task that is refused after others, with the failure's option or kind, a remedy, and the start of the message."""

    earlier: list[dict[str, Any]]
    options: dict[str, Any]
    failure: str
    remedy: str = ""
    text: str = ""


# By the message of the sandbox, with its values as {}.
FORESEEN: dict[str, Row] = {
    "branch {} cannot have children: it expires at {}": Row([EXPIRES], KID, "parent"),
    "branch {} cannot expire: it has children": Row([DEV, KID], EXPIRES, "expires_at", "deletes them"),
    "branch {} cannot expire: it is protected or the project's default branch": Row([PROTECTED], EXPIRES, "expires_at"),
    "branch {} cannot be the default branch: it expires at {}": Row([EXPIRES], {**DEV, "default": True}, "default"),
    "cannot delete branch {}: it is protected": Row(
        [PROTECTED], DELETED, "refused", text="Branch dev cannot be deleted: it is protected"
    ),
    "cannot delete branch {}: it is the project's default branch": Row(
        [], {**DELETED, "name": "main"}, "refused", text="Branch main cannot be deleted: it is the default"
    ),
    "cannot delete branch {}: it has children; delete {} first": Row(
        [DEV, KID],
        DELETED,
        "refused",
        "deletes them",
        "Branch dev cannot be deleted: other branches were created from it. Delete these first: kid.",
    ),
    "branch {} cannot be restored: it is protected": Row([PROTECTED], RESTORE, "refused"),
    "the history of branch {} does not contain {}": Row([DEV], OF_OLD, "timestamp"),
    "source_timestamp or source_lsn is required: the branch is its own source": Row([DEV], OF_ITSELF, "source"),
    "preserve_under_name is required: the branch has children, or is its own source": Row(
        [DEV],
        {**RESTORE, "lsn": "0/1E8A5B0"},
        "preserve_as",
        text="preserve_as: is required to restore a branch from its own history.",
    ),
    "{} has a {} named {} already": Row(
        [DEV, {**DEV, "name": "demo"}],
        {**DEV, "new_name": "demo"},
        "new_name",
        text="new_name: there is another branch of this name",
    ),
    "autoscaling_limit_min_cu must not exceed autoscaling_limit_max_cu": Row([DEV], UNFIT, "min_cu"),
    "endpoint {} cannot be deleted: its branch is protected": Row([PROTECTED], NO_COMPUTE, "refused"),
    "cannot delete role {}: it owns {}": Row([DEV, USER, DATABASE], {**USER, "state": "absent"}, "refused", "does so"),
    "branch {} cannot be recovered before its parent {}": Row(
        [DEV, KID, {**KID, "state": "absent"}, DELETED], {**KID, "state": "recovered"}, "refused", "recovers it"
    ),
    "cannot delete the root branch": Row([{**DEV, "default": True}], {**DELETED, "name": "main"}, "refused"),
    "branch {} cannot have {}: it is not a root branch": Row([DEV], SCHEDULED, "backup_schedule"),
    "project {} cannot be deleted: it has a protected branch": Row([PROTECTED], NO_SHOP, "refused", "does so"),
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
    """With the message of the run, or as a warning if an earlier task may solve the problem.

    As in https://github.com/ansible/ansible/issues/23981
    """
    earlier, options, failure, remedy, text = FORESEEN[message]
    for each in earlier:
        task(client, **each)
        sandbox.advance(60)
    options = {name: branch_id(sandbox, "dev") if value == OWN_ID else value for name, value in options.items()}
    sent = len(writes(sandbox))
    if remedy:
        planned = task(client, check_mode=True, **options)
        [foreseen] = planned["warnings"]
        assert planned["changed"] is True
    else:
        with pytest.raises(ClouddbError) as refusal:
            task(client, check_mode=True, **options)
        foreseen = str(refusal.value)
        assert (refusal.value.details.get("option") or refusal.value.kind) == failure
    assert len(writes(sandbox)) == sent
    with pytest.raises(ClouddbError) as error:
        task(client, **options)
    assert (error.value.details.get("option") or error.value.kind) == failure
    assert foreseen == f"{error.value}{f' Unless an earlier task {remedy}, this task will fail.' if remedy else ''}"
    assert str(error.value).startswith(text)
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


def branch_id(sandbox: Sandbox, name: str) -> str:
    branches = sandbox.api("GET", f"/projects/{SHOP}/branches")["branches"]
    return next(str(each["id"]) for each in branches if each["name"] == name)


# The task that exceeds each limit of the sandbox, and what its error names.
OVER_LIMIT: dict[str, tuple[dict[str, Any], str]] = {
    "projects": ({"module": "project", "name": "store"}, "with project and state: absent"),
    "branches": (DEV, "with branch, name_pattern, older_than and state: absent"),
    "root_branches": ({**DEV, "schema_only": True}, "without schema_only"),
    "computes": (DEV, "compute: false"),
    "snapshots": ({"module": "snapshot", "name": "nightly"}, "with snapshot and state: absent"),
    "databases": ({**DATABASE, "branch": None, "owner": "clouddb_owner"}, "with database and state: absent"),
    "users": ({**USER, "branch": None}, "with database_user and state: absent"),
}


@pytest.mark.parametrize("limit", COUNTED)
def test_the_error_names_what_frees_room(sandbox: Sandbox, client: Client, limit: str) -> None:
    options, advice = OVER_LIMIT[limit]
    sandbox.control("PUT", "/limits", {limit: 0})
    with pytest.raises(ClouddbError) as error:
        task(client, **options)
    assert f"{COUNTED[limit][0]} limit exceeded. " in str(error.value)
    assert advice in str(error.value)
    assert error.value.details["status"] == 422


def test_each_published_code_has_advice() -> None:
    """Those of the service's own list that a sweep or an option answers; the sandbox has no others."""
    codes = {f"{kind.upper().replace(' ', '_')}_LIMIT_EXCEEDED" for kind, _counted in COUNTED.values()}
    published = {"BRANCHES_PROTECTED_LIMIT_EXCEEDED", "ACTIVE_ENDPOINTS_LIMIT_EXCEEDED"}
    assert AFTER_LIMITS.keys() == codes | published


@pytest.mark.parametrize(
    "fields, is_root",
    [
        ({}, True),
        ({"created_at": "2026-11-03T00:00:00Z"}, False),
        ({"created_at": None}, False),
        ({"parent_id": "br-0"}, False),
        ({"restored_from": "snap-1"}, False),
        ({"init_source": "schema-only"}, False),
    ],
    ids=str,
)
def test_the_root_branch_is_the_oldest_one_that_was_made_of_nothing(fields: dict[str, Any], is_root: bool) -> None:
    """As in https://neon.com/docs/manage/branches#root-branch"""
    first = {"id": "br-1", "created_at": "2026-11-01T00:00:00Z", "init_source": "parent-data", **fields}
    second = {"id": "br-2", "parent_id": "br-1", "created_at": "2026-11-02T00:00:00Z"}
    assert (root_of([second, first]), root_of([])) == ("br-1" if is_root else None, None)
