# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Shapes of answers that were recorded from the service, in all modules: each goes through as without them."""

from __future__ import annotations

import json
from itertools import product
from types import ModuleType
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import ClouddbError
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.modules import branch, branch_restore, project
from ansible_collections.clouddb.control.tests.unit.support.each_module import (
    CHANGES,
    EACH_MODULE,
    SHOP,
    name_of,
    of_every_module,
    sampled,
)
from ansible_collections.clouddb.control.tests.unit.support.module_main import defaults_of
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox
from clouddb_sandbox import rules

Options = dict[str, Any]
YEAR_1 = "0001-01-01T00:00:00Z"
TIMES = ("created_at", "updated_at")
PERIODS = ("consumption_period_start", "consumption_period_end", "quota_reset_at")


def each(kind: str, *names: str, value: Any) -> dict[str, Any]:
    """These fields of each resource of this kind, in lists and alone."""
    plural = {"branch": "branches"}.get(kind, f"{kind}s")
    return {f"{place}.{name}": value for place in (f"{plural}.*", kind) for name in names}


SHAPES: dict[str, dict[str, Any]] = {
    # A list of branches, September 2026
    "archived branches": {"set": each("branch", "current_state", value="archived")},
    "periods of the year 1": {"set": each("project", *PERIODS, value=YEAR_1)},  # A new project
    # A list of keys, September 2025
    "two addresses": {"set": {"*.last_used_from_addr": "192.0.2.1,198.51.100.7"}},
    "creators of keys as texts": {"set": {"*.created_by": "5f0c9d3e-2b7a-4c1d-8e6f-7a9b0c1d2e3f"}},
    "keys that were never used": {"set": {"*.last_used_at": None, "*.last_used_from_addr": ""}},
    # A list of projects, September 2025
    "projects without locked": {"omit": ["projects.*.locked", "project.locked"]},
    "further fields of projects": {"set": each("project", "compute_last_active_at", "owner", value=None)},
    # An answer to POST branches, October 2025
    "whole seconds": {"set": each("operation", *TIMES, value="2026-01-01T00:00:00Z")},
    # The document has 33 actions
    "actions beyond the contract": {"set": each("operation", "action", value="timeline_archive")},
    "slugs": {"set": {**each("branch", "slug", value="b"), **each("project", "slug", value="p")}},
    # A new project, September 2025
    "hosts with a cell": {"set": each("endpoint", "host", value="ep-1.c-2.us-west-2.aws.clouddb.example")},
    # An answer to POST branches, October 2025
    "numbers of databases": {"set": each("database", "id", value=4_294_967_296)},
    # An answer to DELETE of a project
    "no operations": {"method": "DELETE", "omit": ["operations"]},
    "empty bodies": {"method": "DELETE", "empty": True},
}
# What other clients of the service are tested with: kenchan0130/terraform-provider-neon, alchemy-run/distilled
SECRET = "a-password-that-nobody-asked-for"
USAGE = ("compute_time_seconds", "active_time_seconds", "written_data_bytes", "data_transfer_bytes", "cpu_used_sec")
OPTIONAL_OF_BRANCH = ("parent_id", "parent_lsn", "parent_timestamp", "init_source", "last_reset_at", "creation_source")
OPTIONAL_OF_COMPUTE = ("name", "last_active", "started_at", "suspended_at", "pooler_mode", "passwordless_access")
SHAPES |= {
    "passwords in lists of roles": {"method": "GET", "set": each("role", "password", value=SECRET)},
    "keys without last_used_at": {"omit": ["*.last_used_at", "last_used_at"]},
    "an empty pagination": {"method": "GET", "path": "*/branches", "set": {"pagination": {}}},
    "lists without pagination": {"method": "GET", "omit": ["pagination"]},
    "operations without a branch": {"omit": list(each("operation", "branch_id", "total_duration_ms", value=None))},
    "few fields of branches": {"omit": list(each("branch", *OPTIONAL_OF_BRANCH, *USAGE, value=None))},
    "few fields of computes": {"omit": list(each("endpoint", *OPTIONAL_OF_COMPUTE, value=None))},
    "empty lists in the answer to POST": {
        "method": "POST",
        "set": {name: [] for name in ("operations", "roles", "databases", "endpoints", "connection_uris")},
    },
    "annotations of branches": {"set": {"annotation": {"object": {"type": "branch"}, "value": {}}, "annotations": {}}},
    "applications beside projects": {"set": {"unavailable_project_ids": [], "applications": {}, "integrations": {}}},
    "settings that the service has filled": {
        "set": each("project", "settings", value={"quota": {}, "allowed_ips": {"ips": ["0.0.0.0/0"]}, "hipaa": False})
    },
    "an address without a port": {"set": {"uri": "postgres://app:secret@db.clouddb.example/clouddb"}},
}
# Shapes that answers can have at once, for each change; with --hypothesis-profile=soak, there is each alone, too.
NEVER_USED = {"keys that were never used"}
ABSENCES = {name for name, shape in SHAPES.items() if "omit" in shape} | {"empty lists in the answer to POST"}
TOGETHER = [
    pytest.param(SHAPES.keys() - ABSENCES - NEVER_USED, id="values"),
    pytest.param(ABSENCES, id="absences"),
    pytest.param(NEVER_USED, id="keys that were never used"),
    *(pytest.param({name}, id=f"only {name}", marks=pytest.mark.soak) for name in SHAPES),
]
POST = {"method": "POST"}
ANSWERS = {
    **{"rate_limit": {}, "timeout": {"method": "GET"}, "locked": POST, "endpoint_busy": POST},
    "branch_not_ready": {**POST, "path": "/projects/*/*"},
}


@pytest.fixture
def seed() -> dict[str, Any]:
    done = {"id": "done", "action": "create_branch", "age": "1d"}
    return {"projects": [{"id": SHOP, "name": "shop", "age": "2d", "operations": [done]}]}


def run(client: Client, module: ModuleType, options: Options) -> dict[str, Any]:
    # Two modules write files, if the task has dest.
    attributes = [lambda *_arguments: False] if name_of(module) in ("api_key", "connection_info") else []
    return dict(module.run({**defaults_of(module), **options}, client, False, *attributes))


@of_every_module
@pytest.mark.parametrize("shapes", TOGETHER)
def test_each_shape(sandbox: Sandbox, client: Client, module: ModuleType, options: Options, shapes: set[str]) -> None:
    for name, shape in SHAPES.items():
        if name in shapes:
            sandbox.fault("rewrite", times=None, **shape)
    result = run(client, module, options)
    assert result["changed"] == (name_of(module) in CHANGES)
    assert SECRET not in json.dumps(result)


def with_each(*answers: str) -> pytest.MarkDecorator:
    """Each module with each of these answers; for each change, one in three."""
    rows = [(answer, *each) for answer, each in product(answers, EACH_MODULE)]
    return pytest.mark.parametrize("answer, module, options", sampled(*rows, stride=3))


@with_each(*ANSWERS)
def test_it_is_ridden_out(sandbox: Sandbox, client: Client, module: ModuleType, options: Options, answer: str) -> None:
    sandbox.fault("recorded", answer=answer, **ANSWERS[answer])
    assert run(client, module, options)["changed"] == (name_of(module) in CHANGES)


NOT_FOUND = ("no_route", "organization_key")


@with_each("plan", "not_in_plan", *NOT_FOUND)
def test_a_recorded_refusal_is_reported_in_its_words(
    sandbox: Sandbox, client: Client, module: ModuleType, options: Options, answer: str
) -> None:
    sandbox.fault("recorded", answer=answer, times=None)
    with pytest.raises(ClouddbError) as failed:
        run(client, module, options)
    # A project that is not found has a message of its own.
    assert rules.ANSWERS[answer].message in str(failed.value) or (answer in NOT_FOUND and SHOP in str(failed.value))


def test_a_parent_that_is_not_found_yet(sandbox: Sandbox, client: Client) -> None:
    """After a restore from it, for half a minute. Nothing is created then."""
    sandbox.api("POST", f"/projects/{SHOP}/branches", {"branch": {"name": "dev"}})
    sandbox.advance(60)
    sandbox.fault("hidden_source")
    run(client, branch_restore, {"project": SHOP, "name": "dev"})
    child = {"project": SHOP, "name": "child", "parent": "main"}
    with pytest.raises(ClouddbError, match="branch not found"):
        run(client, branch, child)
    sandbox.advance(30)
    assert run(client, branch, child)["changed"] is True


DELETIONS = [(branch, {"project": SHOP, "name": "dev", "state": "absent"}), (project, {"id": SHOP, "state": "absent"})]


@pytest.mark.parametrize("shape", ["no operations", "empty bodies"])
@pytest.mark.parametrize("module, options", DELETIONS)
def test_recorded_deletion(sandbox: Sandbox, client: Client, module: ModuleType, options: Options, shape: str) -> None:
    sandbox.api("POST", f"/projects/{SHOP}/branches", {"branch": {"name": "dev"}})
    sandbox.advance(60)
    sandbox.fault("rewrite", times=None, **SHAPES[shape])
    assert run(client, module, options)["changed"] is True
    sandbox.control("DELETE", "/faults")
    sandbox.advance(60)
    assert run(client, module, options)["changed"] is False
