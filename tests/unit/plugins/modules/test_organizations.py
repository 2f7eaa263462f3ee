# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Accounts that require an organization, in all modules that list projects, and keys of an organization or a project."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import ClouddbError
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.module_utils._http.connection import Connection
from ansible_collections.clouddb.control.plugins.modules import api_key_info, api_key_policy
from ansible_collections.clouddb.control.tests.unit.support.api_key_task import ids
from ansible_collections.clouddb.control.tests.unit.support.api_key_task import task as api_key_task
from ansible_collections.clouddb.control.tests.unit.support.each_module import module_named
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import FakeClock
from ansible_collections.clouddb.control.tests.unit.support.module_main import defaults_of, run_main
from ansible_collections.clouddb.control.tests.unit.support.resource_task import SHOP, writes
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox
from clouddb_sandbox.response_models import ORGANIZATION_ID as ORG
from clouddb_sandbox.response_models import USER_NAME

Options = dict[str, Any]
BLOG = "red-moon-34567890"
# The scopes of keys
WHOLE = {"org_id": ORG}
LIMITED = {**WHOLE, "project_id": SHOP}
BY_NAME: list[tuple[str, Options]] = [
    ("project", {"name": "shop"}),
    ("project_info", {"name": "shop", "required": True}),
    ("branch_info", {"project": "shop"}),
    ("operation_info", {"project": "shop"}),
    ("operation_wait", {"project": "shop"}),
]
BY_ID: list[tuple[str, Options]] = [
    ("project", {"id": SHOP}),
    ("project_info", {"project_id": SHOP, "required": True}),
    ("branch_info", {"project": SHOP}),
    ("operation_info", {"project": SHOP}),
    ("operation_info", {"project_id": SHOP}),
    ("operation_wait", {"project": SHOP}),
]


@pytest.fixture
def seed() -> dict[str, Any]:
    return {"projects": [{"id": SHOP, "name": "shop"}, {"id": BLOG, "name": "shop", "org_id": "org-2"}]}


@pytest.fixture
def limited_key(client: Client) -> str:
    return str(api_key_task(client, name="ci", **LIMITED)["key"])


def result(module: str, sandbox: Sandbox, key: str | None = None, **options: Any) -> dict[str, Any]:
    connected = {"base_url": sandbox.base_url, "api_key": key or sandbox.api_key, **options}
    return run_main(module_named(module), connected).result


@pytest.mark.parametrize("module, options", BY_NAME)
def test_the_error_names_the_organizations_of_the_key(sandbox: Sandbox, module: str, options: Options) -> None:
    sandbox.fault("require_org_id")
    failed = result(module, sandbox, **options)
    advice = f"Set org_id or CLOUDDB_ORG_ID to one of: {ORG} ({USER_NAME}), org-2 (org-2)."
    assert (failed["failure"]["status"], failed["msg"].count(advice)) == (400, 1)


def test_the_error_stays_if_the_organizations_cannot_be_fetched(sandbox: Sandbox) -> None:
    sandbox.fault("require_org_id")
    sandbox.fault("status", status=403, path="/users/me/organizations")
    refused = "org_id is required, you can find it on your organization settings page."
    assert result("project_info", sandbox)["msg"] == f"GET /projects returned 400 Bad Request: {refused}"


@pytest.mark.parametrize("module, options", BY_NAME)
def test_the_option_or_the_environment_sets_the_organization(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, module: str, options: Options
) -> None:
    sandbox.fault("require_org_id")
    monkeypatch.setenv("CLOUDDB_ORG_ID", "")
    assert result(module, sandbox, **options)["failure"]["status"] == 400
    assert "failure" not in result(module, sandbox, org_id=ORG, **options)
    monkeypatch.setenv("CLOUDDB_ORG_ID", "org-2")
    assert "failure" not in result(module, sandbox, org_id=ORG, **options)
    lists = [each for each in sandbox.requests() if each["path"].endswith("/projects") and each["status"] < 300]
    assert lists and not any("org-2" in each["query"] for each in lists)
    assert "failure" not in result(module, sandbox, **options)
    assert "org_id=org-2" in [each["query"] for each in sandbox.requests() if each["path"].endswith("/projects")][-1]


def test_the_variable_sets_the_organization_of_a_new_project(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOUDDB_ORG_ID", "org-2")
    assert result("project", sandbox, name="new", wait=False)["project"]["org_id"] == "org-2"
    # A project of another organization that is selected by its id.
    assert result("project", sandbox, id=SHOP, name="renamed", wait=False)["project"]["name"] == "renamed"


def test_no_variable_sets_the_scope_of_a_key(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOUDDB_ORG_ID", "org-2")
    assert len(result("api_key_info", sandbox)["api_keys"]) == 1


@pytest.mark.parametrize("module, options", BY_ID)
def test_a_key_of_a_project_works_by_its_id(sandbox: Sandbox, limited_key: str, module: str, options: Options) -> None:
    assert "failure" not in result(module, sandbox, limited_key, **options)
    others = {name: BLOG if name != "required" else True for name in options}
    assert result(module, sandbox, limited_key, **others)["failed"]


def test_the_message_names_the_project_that_a_limited_key_cannot_access(sandbox: Sandbox, limited_key: str) -> None:
    failed = result("branch_info", sandbox, limited_key, project=BLOG)
    assert f"project: the API key cannot access {BLOG}." in failed["msg"]
    assert failed["failure"]["kind"] == "not_found"


@pytest.mark.parametrize("module, options", [*BY_NAME, ("project_info", {})])
def test_an_unknown_organization_is_an_error(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, module: str, options: Options
) -> None:
    monkeypatch.setenv("CLOUDDB_ORG_ID", "org-nope")
    failed = result(module, sandbox, **options)
    problem = "org_id: there is no organization org-nope (CLOUDDB_ORG_ID), or the API key cannot access it."
    assert f"{problem} Set org_id to one of: {ORG}" in failed["msg"]
    assert failed["failure"]["kind"] == "not_found"


def test_a_message_about_a_missing_project_names_its_organization(sandbox: Sandbox) -> None:
    failed = result("branch_info", sandbox, project="shpo", org_id=ORG)
    assert f"there is no project 'shpo' in the organization {ORG} (org_id)" in failed["msg"]


@pytest.mark.parametrize("org_id", [None, ORG])
@pytest.mark.parametrize("module, options", [*BY_NAME, ("project", {"name": "shop", "state": "absent"})])
def test_by_name_the_message_says_why_a_key_that_is_limited_to_a_project_is_refused(
    sandbox: Sandbox,
    monkeypatch: pytest.MonkeyPatch,
    limited_key: str,
    module: str,
    options: Options,
    org_id: str | None,
) -> None:
    if org_id:
        monkeypatch.setenv("CLOUDDB_ORG_ID", org_id)
    failed = result(module, sandbox, limited_key, **options)
    assert "limited to" in failed["msg"] and "set the id of the project" in failed["msg"]
    assert failed["failure"]["kind"] == "not_found"


def listed(client: Client, **scope: str) -> list[int]:
    return ids(api_key_info.run({"name": None, "fields": None, **scope}, client, False)["api_keys"])


def test_a_key_of_a_project_is_created_once_and_only_for_it(sandbox: Sandbox, client: Client, clock: FakeClock) -> None:
    first, second = (api_key_task(client, name="ci", **LIMITED) for _run in range(2))
    assert [first["changed"], second["changed"], second["api_key"]["id"]] == [True, False, first["api_key"]["id"]]
    assert first["api_key"]["project_id"] == SHOP
    own = Client(Connection(sandbox.base_url, first["key"]), clock.clock)
    assert own.get("projects", SHOP).object("project")["id"] == SHOP
    with pytest.raises(ClouddbError):
        own.get("projects", BLOG)


def test_keys_of_another_scope_do_not_count(client: Client) -> None:
    scopes: list[dict[str, str]] = [LIMITED, {**WHOLE, "project_id": BLOG}, WHOLE, {}]
    created = [api_key_task(client, name="ci", **scope)["api_key"]["id"] for scope in scopes]
    assert len({*created}) == 4
    assert listed(client, **LIMITED) == created[:1]
    assert {*created[:3]} <= {*listed(client, **WHOLE)}
    assert ids(api_key_task(client, name="ci", state="absent", **LIMITED)["revoked"]) == created[:1]
    assert [api_key_task(client, name="ci", **scope)["changed"] for scope in scopes] == [True, False, False, False]


def test_a_secret_that_is_lost_is_replaced(client: Client, tmp_path: Path) -> None:
    dest = tmp_path / "key"
    first = api_key_task(client, name="ci", dest=dest, **LIMITED)
    assert api_key_task(client, name="ci", dest=dest, regenerate="if_lost", **LIMITED)["changed"] is False
    dest.write_text("lost-secret-0123456789")
    second = api_key_task(client, name="ci", dest=dest, regenerate="if_lost", **LIMITED)
    assert ids(second["revoked"]) == [first["api_key"]["id"]]


def test_a_key_that_can_access_more_is_no_secret_of_a_project(sandbox: Sandbox, client: Client, tmp_path: Path) -> None:
    api_key_task(client, name="ci", **LIMITED)
    dest = tmp_path / "key"
    dest.write_text(sandbox.api_key)
    with pytest.raises(ClouddbError) as error:
        api_key_task(client, name="ci", dest=dest, regenerate="if_lost", **LIMITED)
    assert (error.value.kind, dest.read_text()) == ("other_key", sandbox.api_key)


def test_a_new_key_that_can_access_more_than_was_asked_for_is_revoked(sandbox: Sandbox, client: Client) -> None:
    sandbox.fault("status", status=200, method="POST", body={"id": 900, "key": "wide-secret-0123456789", "name": "ci"})
    with pytest.raises(ClouddbError) as error:
        api_key_task(client, name="ci", **LIMITED)
    assert error.value.kind == "wrong_scope"
    assert writes(sandbox)[-1] == f"DELETE /organizations/{ORG}/api_keys/900"


def test_a_project_requires_an_organization(sandbox: Sandbox, client: Client) -> None:
    with pytest.raises(ClouddbError, match="requires org_id"):
        api_key_task(client, name="ci", project_id=SHOP)
    assert not writes(sandbox)


def test_the_policy_for_an_organization_reviews_its_keys_only(client: Client) -> None:
    api_key_task(client, name="old")
    org_key = api_key_task(client, name="old", **WHOLE)["api_key"]["id"]
    options = {"allowed": [{"name": "none"}], "grace": 0, "action": "revoke", "own_key": "1", **WHOLE}
    result = api_key_policy.run({**defaults_of(api_key_policy), **options}, client, False)
    # The service does not list when keys of an organization were used, so they are only reported.
    assert {finding["key_id"] for finding in result["findings"] if finding["key_id"]} == {org_key}
    assert result["left"] == [org_key]
