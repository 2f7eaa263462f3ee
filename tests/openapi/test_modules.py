# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules, inventory and event source against the mock: valid requests, and the document's examples as results."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from conftest import Examples
from mock_service import Contract, MockService

from ansible_collections.clouddb.control.extensions.eda.plugins.event_source import operations as event_source
from ansible_collections.clouddb.control.plugins.modules import (
    api_key,
    api_key_deployment,
    api_key_info,
    api_key_rotation,
    operation_info,
    operation_wait,
    project_info,
)
from ansible_collections.clouddb.control.tests.unit.support.module_main import Outcome, run_main

pytestmark = pytest.mark.usefixtures("no_delays")

LIST_KEYS = "GET /api_keys"
CREATE_KEY = "POST /api_keys"
REVOKE_KEY = "DELETE /api_keys/{key_id}"
LIST_PROJECTS = "GET /projects"
LIST_OPERATIONS = "GET /projects/{project_id}/operations"
GET_OPERATION = "GET /projects/{project_id}/operations/{operation_id}"
CREATE_BRANCH = "POST /projects/{project_id}/branches"


def connection(service: MockService) -> dict[str, Any]:
    return {"base_url": service.base_url, "api_key": "bearer-key"}


def run(module: ModuleType, service: MockService, **options: Any) -> Outcome:
    return run_main(module, {**connection(service), **options})


def sent(service: MockService) -> list[str]:
    return [operation for operation, _body in service.sent]


def test_api_key_info_returns_the_keys(service: MockService, examples: Examples) -> None:
    newest_last = sorted(examples[LIST_KEYS], key=lambda key: key["created_at"])
    assert run(api_key_info, service).success["api_keys"] == newest_last


def test_api_key_is_created(service: MockService, examples: Examples, tmp_path: Path) -> None:
    created = examples[CREATE_KEY]
    listed = {**examples[LIST_KEYS][0], **{name: created[name] for name in ("id", "name", "created_at")}}
    service.reply(LIST_KEYS, examples[LIST_KEYS], [*examples[LIST_KEYS], listed])

    result = run(api_key, service, name="mykey", dest=str(tmp_path / "key")).success

    assert (result["changed"], result["api_key"]["id"]) == (True, created["id"])
    assert (tmp_path / "key").read_text(encoding="utf-8").strip() == created["key"]
    assert service.sent == [(LIST_KEYS, None), (CREATE_KEY, {"key_name": "mykey"}), (LIST_KEYS, None)]


def test_existing_api_key_is_unchanged(service: MockService, examples: Examples) -> None:
    existing = examples[LIST_KEYS][0]
    result = run(api_key, service, name=existing["name"]).success
    assert (result["changed"], result["api_key"]) == (False, existing)
    assert sent(service) == [LIST_KEYS]


@pytest.mark.parametrize("option", ["id", "name"])
def test_api_key_is_revoked(service: MockService, examples: Examples, option: str) -> None:
    existing = examples[LIST_KEYS][0]
    service.reply(REVOKE_KEY, {**examples[REVOKE_KEY], "id": existing["id"], "name": existing["name"]})
    result = run(api_key, service, state="absent", **{option: existing[option]}).success
    assert (result["changed"], [key["id"] for key in result["revoked"]]) == (True, [existing["id"]])
    assert sent(service) == [LIST_KEYS, REVOKE_KEY]


def test_rotation_is_planned_and_a_deployed_key_inspected(
    service: MockService, examples: Examples, tmp_path: Path
) -> None:
    (tmp_path / "key").write_text(examples[CREATE_KEY]["key"], encoding="utf-8")
    files = {"dest": str(tmp_path / "key"), "record": str(tmp_path / "record")}
    inspected = run(api_key_deployment, service, step="inspect", consumer="web1", run="first", **files).success
    assert inspected["evidence"]["accepted"] is True

    options = {"evidence": [inspected["evidence"]], "hosts": ["web1"], "max_age": "0"}
    planned = run(api_key_rotation, service, step="plan", name="mykey_{timestamp}", run="first", **options).success
    assert planned["reason"]
    assert sent(service) == [LIST_KEYS, LIST_KEYS]


def test_project_info_returns_the_projects(service: MockService, examples: Examples) -> None:
    assert run(project_info, service).success["projects"] == examples[LIST_PROJECTS]["projects"]


def test_project_info_fetches_all_pages(service: MockService, examples: Examples) -> None:
    example = examples[LIST_PROJECTS]
    first, second = example["projects"]
    pages = [
        {**example, "projects": [first], "pagination": {"cursor": "a cursor/+="}},
        {**example, "projects": [second], "pagination": {"cursor": "b"}, "unavailable_project_ids": ["lost-sea-1"]},
        {**example, "projects": []},
    ]
    service.reply(LIST_PROJECTS, *pages)
    options = {"page_size": 400, "query": {"search": "wind", "org_id": "org-morning-bread-81040908"}}
    result = run(project_info, service, **options).success
    assert result["projects"] == [first, second]
    assert "lost-sea-1" in str(result["warnings"])
    assert sent(service) == [LIST_PROJECTS] * 3


@pytest.mark.parametrize("option", ["project_id", "name", "region_id"])
def test_project_info_selects_projects(service: MockService, examples: Examples, option: str) -> None:
    field = option.replace("project_", "")
    value = examples[LIST_PROJECTS]["projects"][0][field]
    expected = [project for project in examples[LIST_PROJECTS]["projects"] if project[field] == value]
    assert run(project_info, service, **{option: value}).success["projects"] == expected


def test_operation_info_lists_operations_of_a_project(service: MockService, examples: Examples) -> None:
    expected = examples[LIST_OPERATIONS]["operations"]
    options = {"project_id": expected[0]["project_id"], "page_size": 1000}
    result = run(operation_info, service, **options).success
    assert result["operations"] == expected
    assert result["summary"]["by_status"] == {"finished": 1}


def test_operation_info_lists_operations_of_all_projects(service: MockService, examples: Examples) -> None:
    project = {**examples[LIST_PROJECTS]["projects"][0], "id": "spring-example-302709"}
    service.reply(LIST_PROJECTS, {**examples[LIST_PROJECTS], "projects": [project]})
    result = run(operation_info, service).success
    assert result["operations"] == examples[LIST_OPERATIONS]["operations"]
    assert {LIST_PROJECTS, LIST_OPERATIONS} == set(sent(service))


def test_operation_info_fetches_an_operation(service: MockService, examples: Examples) -> None:
    expected = examples[GET_OPERATION]["operation"]
    options = {"project_id": expected["project_id"], "operation_id": expected["id"]}
    assert run(operation_info, service, **options).success["operations"] == [expected]
    assert sent(service) == [GET_OPERATION]


def test_operation_wait_accepts_the_operations_of_a_response(service: MockService, examples: Examples) -> None:
    """Those of the example are finished already, so they are given with a status that is not."""
    finished = examples[LIST_OPERATIONS]["operations"]
    started = [{**operation, "status": "scheduling"} for operation in examples[CREATE_BRANCH]["operations"]]
    running = [{**operation, "status": "running"} for operation in finished]
    service.reply(LIST_OPERATIONS, {"operations": running}, {"operations": finished})
    service.reply(GET_OPERATION, {"operation": running[0]}, {"operation": finished[0]})
    result = run(operation_wait, service, operations=started).success
    assert result["operations"] == finished
    assert result["polls"] >= 2


def test_operation_wait_finds_unfinished_operations(service: MockService, examples: Examples) -> None:
    [finished] = examples[LIST_OPERATIONS]["operations"]
    running = {**finished, "status": "running"}
    service.reply(LIST_OPERATIONS, {"operations": [running]}, {"operations": []}, {"operations": [finished]})
    service.reply(GET_OPERATION, {"operation": finished})
    result = run(operation_wait, service, project_id=finished["project_id"], lookback=0).success
    assert result["operations"] == [finished]


@pytest.mark.parametrize("status", ["failed", "error", "cancelled"])
def test_operation_wait_fails_with_the_error(service: MockService, examples: Examples, status: str) -> None:
    failed = {**examples[GET_OPERATION]["operation"], "status": status, "error": "no capacity"}
    service.reply(GET_OPERATION, {"operation": failed})
    options = {"project_id": failed["project_id"], "operation_id": [failed["id"]]}
    outcome = run(operation_wait, service, **options)
    assert outcome.failed and outcome.result["failed_ids"] == [failed["id"]]
    assert "no capacity" in outcome.result["msg"]


def test_every_status_is_known(contract: Contract, service: MockService, examples: Examples) -> None:
    """A status that this collection does not know would be unfinished, with a warning."""
    statuses = contract.document.content["components"]["schemas"]["OperationStatus"]["enum"]
    example = examples[GET_OPERATION]["operation"]
    for status in statuses:
        service.reply(GET_OPERATION, {"operation": {**example, "status": status}})
        options = {"project_id": example["project_id"], "operation_id": [example["id"]], "timeout": 1}
        assert "warnings" not in run(operation_wait, service, **options).result, status


def test_error_of_the_service_is_shown(service: MockService) -> None:
    outcome = run(operation_info, service, project_id="shiny-wind-028834", operation_id="not-a-uuid")
    assert "is not a 'uuid'" in outcome.result["msg"]
    assert {name: outcome.failure[name] for name in ("kind", "status", "request_id")} == {
        "kind": "http_status",
        "status": 400,
        "request_id": "mock",
    }
    assert len(service.violations) == 1
    service.violations.clear()


def test_inventory_has_the_projects(service: MockService, examples: Examples, tmp_path: Path) -> None:
    config = {"plugin": "clouddb.control.projects", **connection(service), "page_size": 400, "operations": True}
    path = tmp_path / "test.clouddb.yml"
    path.write_text(yaml.safe_dump({**config, "hostnames": ["id"]}), encoding="utf-8")
    projects = examples[LIST_PROJECTS]["projects"]
    failed = {**examples[LIST_OPERATIONS]["operations"][0], "status": "failed", "project_id": projects[0]["id"]}
    service.reply(LIST_PROJECTS, {**examples[LIST_PROJECTS], "projects": projects[:1]})
    service.reply(LIST_OPERATIONS, {"operations": [failed]})
    command = ["ansible-inventory", "--inventory", str(path), "--list"]
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    listed = json.loads(printed, object_hook=lambda value: value.get("__ansible_unsafe", value))

    [variables] = listed["_meta"]["hostvars"].values()
    assert list(listed["_meta"]["hostvars"]) == [projects[0]["id"]]
    assert {f"clouddb_{name}": value for name, value in projects[0].items()}.items() <= variables.items()
    assert {LIST_PROJECTS, LIST_OPERATIONS} == set(sent(service))


def test_event_source_emits_a_change(service: MockService, examples: Examples) -> None:
    [operation] = examples[LIST_OPERATIONS]["operations"]
    project = {**examples[LIST_PROJECTS]["projects"][0], "id": operation["project_id"]}
    service.reply(LIST_PROJECTS, {**examples[LIST_PROJECTS], "projects": [project]})
    service.reply(LIST_OPERATIONS, {"operations": []}, {"operations": [operation]})

    async def first_event() -> dict[str, Any]:
        queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        options = {**connection(service), "interval": 0.1, "requests_per_minute": 6000}
        source = asyncio.create_task(event_source.main(queue, options))
        event = asyncio.create_task(queue.get())
        await asyncio.wait([source, event], timeout=60, return_when=asyncio.FIRST_COMPLETED)
        source.cancel()
        return event.result()

    event = asyncio.run(first_event())["clouddb"]
    assert (event["operation"], event["project"], event["previous_status"]) == (operation, project, None)
