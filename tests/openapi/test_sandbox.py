# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sandbox accepts the requests of the public service's document, and its responses are valid by that document."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from mock_service import BASE_PATH, Contract
from werkzeug.test import EnvironBuilder
from werkzeug.wrappers import Request, Response

from ansible_collections.clouddb.control.tests.unit.support.sandbox import API_KEY, Sandbox, running_sandbox
from clouddb_sandbox.app import create_app
from clouddb_sandbox.settings import Settings

PROJECT = "wispy-lake-12345678"
BRANCHES = "/projects/{project_id}/branches"
# The role that owns the database in the document's example requests
ROLE = "casey"

SANDBOX_OPERATIONS = {
    f"{method.upper()} {path.removeprefix(BASE_PATH)}"
    for path, item in create_app(Settings(Path(":memory:"), API_KEY)).openapi()["paths"].items()
    for method in item
    if path.startswith(BASE_PATH)
}

USAGE = {"active_time_seconds", "compute_time_seconds", "data_transfer_bytes", "written_data_bytes"}
# Fields that the document requires and the sandbox omits, by object; an object without a name by its operation.
# api.md has none of them: its objects have fewer fields, and it leaves open what branches and computes have.
OMITTED = {
    "project": {
        *(*USAGE, "active_time", "data_storage_bytes_hour", "consumption_period_start", "consumption_period_end"),
        *("branch_logical_size_limit_bytes", "creation_source", "owner_id", "store_passwords"),
    },
    "branch": {
        *USAGE,
        "cpu_used_sec",
        "creation_source",
        "current_state",
        "protected",
        "state_changed_at",
    },
    "endpoint": {
        *("autoscaling_limit_max_cu", "autoscaling_limit_min_cu", "created_at", "creation_source", "current_state"),
        *("disabled", "passwordless_access", "pooler_enabled", "pooler_mode", "provisioner", "proxy_host"),
        *("region_id", "settings", "suspend_timeout_seconds", "type", "updated_at"),
    },
    "operation": {"total_duration_ms"},
    "GET /api_keys": {"created_by"},
    "POST /api_keys": {"created_by"},
    "DELETE /api_keys/{key_id}": {"created_by", "created_at"},
    "GET /projects": {"applications", "integrations"},
    f"GET {BRANCHES}": {"annotations"},
    f"GET {BRANCHES}/{{branch_id}}": {"annotation"},
}


class Account:
    """A sandbox with a project, a branch with a role and a database, and nothing unfinished."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.parameters: dict[str, Any] = {"project_id": PROJECT, "role_name": ROLE, "database_name": "neondb"}
        self.parameters["key_id"] = sandbox.keys("ci")[0]["id"]
        self.parent_id = sandbox.api("GET", BRANCHES.format(**self.parameters))["branches"][0]["id"]
        branch = self.create(BRANCHES, {"branch": {"name": "preview"}})
        self.parameters.update(branch_id=branch["branch"]["id"], endpoint_id=branch["endpoints"][0]["id"])
        self.parameters["operation_id"] = branch["operations"][0]["id"]
        self.create(BRANCHES + "/{branch_id}/roles", {"role": {"name": ROLE}})
        self.create(BRANCHES + "/{branch_id}/databases", {"database": {"name": "neondb", "owner_name": ROLE}})

    def create(self, path: str, body: Any) -> Any:
        """Create an object, and let its operations finish, because unfinished ones lock the project."""
        created = self.sandbox.api("POST", path.format(**self.parameters), body)
        self.sandbox.advance(60)
        return created

    def body(self, example: Any) -> Any:
        """The example body with the ids of this account."""
        if example and "parent_id" in example.get("branch", {}):
            return {"branch": {**example["branch"], "parent_id": self.parent_id}}
        return example


@pytest.fixture
def account(tmp_path: Path) -> Iterator[Account]:
    seed = {"projects": [{"id": PROJECT, "name": "shop", "age": "1d"}], "api_keys": [{"name": "ci"}]}
    with running_sandbox(tmp_path, **seed) as running:
        yield Account(running)


@pytest.mark.parametrize("name", sorted(SANDBOX_OPERATIONS))
def test_example_request_gets_a_valid_response(account: Account, contract: Contract, name: str) -> None:
    operation = contract.operations[name]
    example = contract.document.example_request(operation)
    path = operation.path.format(**account.parameters)
    documented = {parameter["name"] for parameter in operation.definition["parameters"] if parameter["in"] == "query"}
    query = {field: value for field, value in account.parameters.items() if field in documented}
    sent = {"json": account.body(example.body), "headers": {"Authorization": f"Bearer {API_KEY}"}}
    received = requests.request(operation.method, account.sandbox.base_url + path, params=query, timeout=60, **sent)
    assert received.ok, received.text

    request = Request(EnvironBuilder(path, method=operation.method, query_string=query, **sent).get_environ())
    assert contract.request_errors(request) == []
    response = Response(received.content, received.status_code, mimetype=received.headers["Content-Type"])
    errors = contract.response_errors(request, response)
    assert [error for error in errors if not is_known(error, name)] == []


def test_error_is_valid(account: Account, contract: Contract) -> None:
    """api.md shows no error bodies. By the document they are alike for every operation."""
    headers = {"Authorization": "Bearer invalid"}
    for name in sorted(SANDBOX_OPERATIONS):
        operation = contract.operations[name]
        path = operation.path.format(**account.parameters)
        received = requests.request(operation.method, account.sandbox.base_url + path, headers=headers, timeout=60)
        request = Request(EnvironBuilder(path, method=operation.method).get_environ())
        response = Response(received.content, received.status_code, mimetype=received.headers["Content-Type"])
        assert received.status_code == 401
        assert contract.response_errors(request, response) == []


def is_known(error: str, operation: str) -> bool:
    """Whether a field is missing that OMITTED has."""
    missing = re.search(r"\$(?:.*\.(\w+))?(?:\[\d+\])?: '(\w+)' is a required property$", error)
    if not missing:
        return False
    plural, field = missing.groups()
    name = re.sub(r"(?<=ch)es$|s$", "", plural) if plural else operation
    return field in OMITTED.get(name, set())
