# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Clients of the public service accept the sandbox, and this collection's requests are valid by the service's document."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from conftest import NODE, PROJECT, SPARE_ROLE, Account
from contract import Contract
from neon_api import NeonAPI
from requests import PreparedRequest
from requests.adapters import HTTPAdapter
from werkzeug.test import EnvironBuilder
from werkzeug.wrappers import Request

from ansible_collections.clouddb.control.tests.unit.support.each_module import EACH_MODULE, name_of
from ansible_collections.clouddb.control.tests.unit.support.module_main import run_main
from ansible_collections.clouddb.control.tests.unit.support.sandbox import API_KEY
from clouddb_sandbox.paths import BASE_PATH

# Commands of neon that its session below lacks, with the id or name that each prints
COMMANDS = {
    "me": "sandbox@clouddb.example",
    "api-keys create --name wiki": "wiki",
    "api-keys revoke {key_id}": "{key_id}",
    "api-keys list": "ci",
    "orgs list": "{org_id}",
    f"projects get {PROJECT}": PROJECT,
    f"projects update {PROJECT} --name wiki": "wiki",
    "branches get preview": "{branch_id}",
    "branches set-default preview": "{branch_id}",
    "branches add-compute preview --type read_only": "{branch_id}",
    "snapshots list": "{snapshot_id}",
    "snapshots get {snapshot_id}": "{snapshot_id}",
    "snapshots create --branch main --name nightly": "nightly",
    "snapshots update {snapshot_id} --name release": "release",
    "snapshots delete {snapshot_id}": "{snapshot_id}",
    "snapshots schedule set --branch main --frequency daily --hour 3": "daily",
    "snapshots schedule get --branch main": "[]",
    "databases delete neondb --branch preview": "neondb",
    f"roles delete {SPARE_ROLE} --branch preview": SPARE_ROLE,
    "operations list": "{operation_id}",
    "cs": "clouddb_owner",
    "cs --pooled": "-pooler.",
}


@pytest.fixture
def neon(account: Account, installed: Path, tmp_path: Path) -> Callable[..., str]:
    """Runs a command of neon, and returns its output."""

    def run(command: str, project_id: str = PROJECT) -> str:
        options = ["--api-host", account.sandbox.base_url, "--api-key", API_KEY, "--output", "json", "--no-analytics"]
        if not command.startswith(("me", "api-keys", "orgs", "projects")):
            options += ["--project-id", project_id]
        program = [NODE, installed / "node_modules/.bin/neon", *command.split(), *options]
        environment = {"cwd": tmp_path, "env": {"HOME": str(tmp_path)}}
        ran = subprocess.run(program, **environment, capture_output=True, text=True, check=False, timeout=60)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    return run


@pytest.mark.parametrize("command", COMMANDS)
def test_neon(account: Account, neon: Callable[..., str], command: str) -> None:
    assert COMMANDS[command].format(**account.parameters) in neon(command.format(**account.parameters))


def test_a_session_of_neon(account: Account, neon: Callable[..., str]) -> None:
    """What it lists is what it has changed before, also by another name of the branch and after a restore."""
    account.sandbox.control("PUT", "/clock", {"speed": 1000})
    created = json.loads(neon("projects create --name wiki --database neondb --role neondb_owner"))
    project_id = created["project"]["id"]

    def run(command: str) -> Any:
        return json.loads(neon(command, project_id))

    def names(command: str) -> list[str]:
        return [each["name"] for each in run(command)]

    assert project_id in neon("projects list")
    review = run("branches create --name review")["branch"]["id"]
    password = run("roles create --branch review --name app")["password"]
    run("databases create --branch review --name orders --owner-name app")
    connection = "connection-string final --role-name app --database-name orders"
    run("branches rename review final")
    before = neon(connection, project_id)
    assert f"//app:{password}@" in before
    assert "/orders?" in before
    assert run("branches reset final --parent --preserve-under-name kept")["id"] == review
    assert sorted(names("branches list")) == ["final", "kept", "main"]
    assert names("databases list --branch final") == ["neondb"]
    assert names("roles list --branch kept") == ["neondb_owner", "app"]
    run("branches restore final kept")
    assert neon(connection, project_id) == before
    # Its parent is the branch that it was restored from.
    run("branches delete final")
    run("branches delete kept")
    assert names("branches list") == ["main"]
    taken = run("snapshots create --branch main --name nightly")
    run("snapshots restore nightly --name preview")
    run("snapshots finalize preview --name before")
    run(f"snapshots restore {taken['id']} --target-branch main --finalize")
    assert sorted(names("branches list")) == ["before", "main", "main (old)"]
    neon(f"projects delete {project_id}")
    assert project_id not in neon("projects list")
    assert project_id in neon("projects list --recoverable-only")
    neon(f"projects recover {project_id}")
    assert project_id in neon("projects list")


def test_neon_api(account: Account) -> None:
    """It reads all fields of a response."""
    api = NeonAPI(API_KEY, base_url=f"{account.sandbox.base_url}/")
    project = api.project_create(project={"name": "wiki", "branch": {"name": "trunk"}}).project.id
    account.sandbox.advance(60)
    branch_id = api.branch_create(project, branch={"name": "dev"}, endpoints=[{"type": "read_write"}]).branch.id
    [endpoint] = [each.id for each in api.endpoints(project).endpoints if each.branch_id == branch_id]
    at = (project, branch_id)
    for change in (
        lambda: api.role_create(*at, "app"),
        lambda: api.role_password_reset(*at, "app"),
        lambda: api.database_create(*at, database={"name": "orders", "owner_name": "app"}),
        lambda: api.database_update(*at, "orders", database={"name": "sales"}),
        lambda: api.endpoint_suspend(project, endpoint),
        lambda: api.endpoint_start(project, endpoint),
    ):
        account.sandbox.advance(60)
        change()
    assert [key.name for key in api.api_keys()] == ["sandbox", "ci"]
    assert {each.id for each in api.projects().projects} == {PROJECT, project}
    assert [each.name for each in api.branches(project).branches] == ["dev", "trunk"]
    assert [each.name for each in api.roles(*at).roles] == ["clouddb_owner", "app"]
    assert [each.name for each in api.databases(*at).databases] == ["clouddb", "sales"]
    assert api.database(*at, "sales").database.owner_name == "app"
    assert api.operation(PROJECT, account.parameters["operation_id"]).operation.project_id == PROJECT
    for delete in (
        lambda: api.database_delete(*at, "sales"),
        lambda: api.endpoint_delete(project, endpoint),
        lambda: api.branch_delete(*at),
        lambda: api.project_delete(project),
    ):
        account.sandbox.advance(60)
        delete()
    assert [each.id for each in api.projects().projects] == [PROJECT]


@pytest.mark.smoke
def test_requests_of_the_modules(account: Account, contract: Contract, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[PreparedRequest] = []
    send = HTTPAdapter.send

    def record(adapter: HTTPAdapter, request: PreparedRequest, **options: Any) -> Any:
        if request.headers["User-Agent"].startswith("clouddb.control/"):
            sent.append(request)
        return send(adapter, request, **options)

    monkeypatch.setattr(HTTPAdapter, "send", record)
    account.sandbox.control("PUT", "/clock", {"speed": 1000})
    branches = f"projects/{PROJECT}/branches"
    operations_of, below = {"project_id": PROJECT}, {"project": PROJECT, "interval": 0.1}
    in_b: dict[str, Any] = {"project": PROJECT, "branch": "b"}
    store, org_id = {"name": "store", "interval": 0.1}, account.parameters["org_id"]
    expires_at = (datetime.now(timezone.utc) + timedelta(days=7)).isoformat()
    modules = {name_of(module): module for module, _options in EACH_MODULE}
    for name, options in (
        ("api_key", {"name": "new"}),
        ("api_key", {"name": "ci", "state": "absent"}),
        ("api_key_info", {}),
        ("project_info", {"page_size": 400, "query": {"search": "shop", "org_id": org_id}}),
        ("operation_info", {**operations_of, "page_size": 1000}),
        ("operation_wait", {**operations_of, "operation_id": [account.parameters["operation_id"]]}),
        ("api_request", {"method": "GET", "path": branches}),
        ("api_request", {"method": "POST", "path": branches, "body": {"branch": {"name": "x"}}, "wait": False}),
        ("branch", {**below, "name": "b", "parent": "main", "protected": True}),
        ("branch", {**below, "name": "b", "protected": False, "expires_at": expires_at}),
        ("branch", {**below, "name": "c", "from_timestamp": "1s", "schema_only": True, "compute": False}),
        ("branch", {**below, "name": "d", "from_lsn": "0/1E8A5B0", "default": True}),
        ("branch", {**below, "name": "main", "default": True}),
        ("branch_info", {"project": PROJECT}),
        ("compute", {**below, "branch": "b", "min_cu": 0.5, "max_cu": 2, "suspend_timeout": "5m"}),
        ("compute", {**below, "branch": "b", "type": "read_only", "suspend_timeout": -1}),
        *(("compute", {**below, "branch": "b", "state": state}) for state in ("suspended", "started", "restarted")),
        ("compute_info", in_b),
        ("branch_restore", {**below, "name": "b"}),
        ("branch_restore", {**below, "name": "b", "source": "main", "lsn": "0/1E8A5B0"}),
        ("branch_restore", {**below, "name": "d", "timestamp": "1s", "preserve_as": "e"}),
        ("database_user", {**below, "branch": "b", "name": "app"}),
        ("database_user", {**below, "branch": "b", "name": "app", "update_password": "always"}),
        ("database_user_info", in_b),
        ("database", {**below, "branch": "b", "name": "orders", "owner": "app"}),
        ("database_info", in_b),
        ("connection_info", {**in_b, "database": "orders"}),
        ("connection_info", {**in_b, "database": "orders", "pooled": True, "read_only": True}),
        ("compute", {**below, "branch": "b", "type": "read_only", "state": "absent"}),
        ("database", {**below, "branch": "b", "name": "orders", "owner": "clouddb_owner"}),
        ("database", {**below, "branch": "b", "name": "orders", "state": "absent"}),
        ("database_user", {**below, "branch": "b", "name": "app", "state": "absent"}),
        ("branch", {**below, "name": "b", "state": "absent"}),
        ("branch", {**below, "name": "b", "state": "recovered"}),
        ("branch", {**below, "name": "main", "default": True, "backup_schedule": [{"frequency": "daily", "hour": 3}]}),
        ("snapshot", {**below, "branch": "main", "name": "s", "lsn": "0/1E8A5B0", "expires_at": expires_at}),
        ("snapshot_info", {"project": PROJECT, "branch": "main"}),
        ("branch_restore", {**below, "name": "main", "snapshot": "s"}),
        ("snapshot", {**below, "name": "s", "state": "absent"}),
        ("project", {**store, "region_id": "aws-us-east-2", "pg_version": 17, "org_id": org_id}),
        ("project", {**store, "history_retention": "1h", "settings": {"quota": {"active_time_seconds": 3600}}}),
        ("project", {**store, "state": "absent"}),
        ("project", {**store, "state": "recovered"}),
    ):
        assert run_main(modules[name], {"base_url": account.sandbox.base_url, "api_key": API_KEY, **options}).success
    for request in sent:
        path, _mark, query = request.path_url.removeprefix(BASE_PATH).partition("?")
        parts = {"method": request.method, "query_string": query, "data": request.body or b""}
        received = Request(EnvironBuilder(path, headers=dict(request.headers), **parts).get_environ())
        assert contract.request_errors(received) == []
    assert {request.method for request in sent} == {"GET", "POST", "PATCH", "PUT", "DELETE"}
