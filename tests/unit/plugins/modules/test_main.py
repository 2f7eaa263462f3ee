# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""main() of every module against the sandbox: the result that a task returns."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.modules import operation_wait, project_info
from ansible_collections.clouddb.control.tests.unit.support.each_module import (
    CHANGES,
    SHOP,
    module_named,
    name_of,
    of_every_module,
)
from ansible_collections.clouddb.control.tests.unit.support.module_main import Outcome, run_main
from ansible_collections.clouddb.control.tests.unit.support.resource_task import writes
from ansible_collections.clouddb.control.tests.unit.support.return_values import missing_fields, undocumented_fields
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox

pytestmark = pytest.mark.usefixtures("no_delays")


@pytest.fixture
def seed() -> dict[str, Any]:
    operations = [
        {"id": "done", "action": "create_branch", "age": "1h"},
        {"id": "failed", "action": "apply_config", "age": "2h", "status": "failed", "error": "no capacity"},
        {"id": "unfinished", "action": "start_compute", "age": "1m", "status": "running", "branch_id": "br-other"},
    ]
    return {"projects": [{"id": SHOP, "operations": operations}]}


def run(sandbox: Sandbox, module: ModuleType, options: dict[str, Any], check_mode: bool = False) -> Outcome:
    connection = {"base_url": sandbox.base_url, "api_key": sandbox.api_key}
    return run_main(module, {**connection, **options}, check_mode)


def assert_documented(module: ModuleType, outcome: Outcome, when: str) -> None:
    """The result has the fields that RETURN documents for this case, on all levels, and no field that it does not document."""
    assert missing_fields(module, outcome.result, when) == []
    assert undocumented_fields(module, outcome.result) == []


@of_every_module
@pytest.mark.parametrize("check_mode", [False, True])
def test_success_returns_the_documented_fields(
    sandbox: Sandbox, module: ModuleType, options: dict[str, Any], check_mode: bool
) -> None:
    outcome = run(sandbox, module, options, check_mode)
    changes = name_of(module) in CHANGES
    assert outcome.success["changed"] is changes
    assert_documented(module, outcome, "success")
    assert bool(writes(sandbox)) is (changes and not check_mode)
    assert sandbox.api_key not in outcome.printed


# Tasks that select what an earlier task of the play would create. Its id is null, or an empty text before ansible-core 2.19.
LATER_TASKS: list[tuple[str, dict[str, Any]]] = [
    ("api_key", {"state": "absent", "id": None}),
    ("api_request", {"method": "DELETE", "path": f"projects/{SHOP}/branches/"}),
    ("project_info", {"project_id": None, "required": True}),
    ("operation_info", {"project_id": None}),
    ("operation_info", {"project": ""}),
    ("operation_info", {"project": "later"}),
    ("operation_info", {"project_id": None, "operation_id": None}),
    ("operation_info", {"project_id": SHOP, "operation_id": [None]}),
    ("operation_info", {"project_id": SHOP, "branch_id": None}),
    ("operation_info", {"project_id": SHOP, "endpoint_id": None}),
    ("operation_wait", {"project_id": None}),
    ("operation_wait", {"project": None}),
    ("operation_wait", {"project": "later", "operation_id": "done"}),
    ("operation_wait", {"project_id": None, "operation_id": "done"}),
    ("operation_wait", {"project_id": SHOP, "operation_id": [None]}),
    ("operation_wait", {"operations": None}),
    ("operation_wait", {"operations": [{"id": None, "project_id": SHOP}, {"id": "done", "project_id": ""}]}),
    ("project", {"id": None, "state": "absent"}),
    ("database", {"project": None, "name": "orders", "owner": "app"}),
    ("connection_info", {"project": None, "database": "orders"}),
    ("compute", {"project": None, "state": "started"}),
    ("branch_restore", {"project": None, "name": "preview", "source": None}),
    ("compute_info", {"project": None, "branch": None}),
    ("database_user_info", {"project": None}),
]


@pytest.mark.parametrize("name, options", LATER_TASKS)
def test_check_mode_accepts_what_an_earlier_task_creates(sandbox: Sandbox, name: str, options: Any) -> None:
    module = module_named(name)
    outcome = run(sandbox, module, options, check_mode=True)
    changing = ("api_key", "api_request", "branch_restore", "compute", "database", "project")
    assert outcome.success["changed"] is (name in changing)
    assert_documented(module, outcome, "success")
    # Of this resource, nothing is listed, fetched or deleted.
    assert not any(SHOP in sent or sent.startswith("DELETE") for sent in sandbox.sent())
    shown = [each for field in ("operations", "projects", "revoked") for each in outcome.result.get(field, [])]
    assert [each["id"] for each in shown] == [None] * (name in ("api_key", "project_info"))


@of_every_module
def test_failure_returns_the_documented_fields(sandbox: Sandbox, module: ModuleType, options: dict[str, Any]) -> None:
    sandbox.fault("status", status=403, times=None)
    outcome = run(sandbox, module, options)
    assert outcome.failure["status"] == 403
    assert_documented(module, outcome, "failure")


def test_failed_wait_returns_the_documented_fields(sandbox: Sandbox) -> None:
    operations = [{"id": name, "project_id": SHOP, "extra": 1} for name in ("failed", "unfinished", "done")]
    outcome = run(sandbox, operation_wait, {"operations": operations})
    assert outcome.failure == {"kind": "wait_failed"}
    assert (outcome.result["failed_ids"], outcome.result["pending_ids"]) == (["failed"], ["unfinished"])
    assert "no capacity" in outcome.result["msg"]
    assert_documented(operation_wait, outcome, "when the wait failed")


def test_connection_options_from_the_environment(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOUDDB_BASE_URL", f"{sandbox.base_url}/")
    monkeypatch.setenv("CLOUDDB_API_KEY", f" {sandbox.api_key}\r\n")
    outcome = run_main(project_info, {})
    assert outcome.success["projects"] and sandbox.api_key not in outcome.printed
