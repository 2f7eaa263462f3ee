# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keys of an organization, and keys that are limited to a project, against the sandbox."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import ClouddbError
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.module_utils._http.connection import Connection
from ansible_collections.clouddb.control.plugins.modules import api_key_info, api_key_policy
from ansible_collections.clouddb.control.tests.unit.support.api_key_task import ids, task, writes
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import FakeClock
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox

SHOP, BLOG = "wispy-lake-12345678", "red-moon-34567890"


@pytest.fixture
def seed() -> dict[str, Any]:
    return {"projects": [{"id": SHOP, "name": "shop"}, {"id": BLOG, "name": "blog"}]}


@pytest.fixture
def organization(sandbox: Sandbox) -> dict[str, str]:
    return {"org_id": sandbox.api("GET", "/users/me/organizations")["organizations"][0]["id"]}


@pytest.fixture
def limited(organization: dict[str, str]) -> dict[str, str]:
    return {**organization, "project_id": SHOP}


def listed(client: Client, **scope: str) -> list[dict[str, Any]]:
    keys: list[dict[str, Any]] = api_key_info.run({"name": None, "fields": None, **scope}, client, False)["api_keys"]
    return keys


def test_a_key_of_a_project_is_created_once_and_can_access_only_that(
    sandbox: Sandbox, client: Client, clock: FakeClock, limited: dict[str, str]
) -> None:
    first, second = (task(client, name="ci", **limited) for _run in range(2))
    assert [first["changed"], second["changed"], second["api_key"]["id"]] == [True, False, first["api_key"]["id"]]
    assert first["api_key"]["project_id"] == SHOP
    own = Client(Connection(sandbox.base_url, first["key"]), clock.clock)
    assert own.get("projects", SHOP).object("project")["id"] == SHOP
    with pytest.raises(ClouddbError):
        own.get("projects", BLOG)


def test_keys_of_another_scope_do_not_count(
    client: Client, organization: dict[str, str], limited: dict[str, str]
) -> None:
    scopes: list[dict[str, str]] = [limited, {**organization, "project_id": BLOG}, organization, {}]
    created = [task(client, name="ci", **scope)["api_key"]["id"] for scope in scopes]
    assert len({*created}) == 4
    assert [key["id"] for key in listed(client, **limited)] == created[:1]
    assert {*created[:3]} <= {key["id"] for key in listed(client, **organization)}
    assert ids(task(client, name="ci", state="absent", **limited)["revoked"]) == created[:1]
    assert [task(client, name="ci", **scope)["changed"] for scope in scopes] == [True, False, False, False]


@pytest.mark.parametrize("is_limited", [False, True])
def test_a_secret_that_is_lost_is_replaced(
    client: Client, tmp_path: Path, organization: dict[str, str], limited: dict[str, str], is_limited: bool
) -> None:
    scope, dest = limited if is_limited else organization, tmp_path / "key"
    first = task(client, name="ci", dest=dest, **scope)
    assert task(client, name="ci", dest=dest, regenerate="if_lost", **scope)["changed"] is False
    dest.write_text("lost-secret-0123456789")
    second = task(client, name="ci", dest=dest, regenerate="if_lost", **scope)
    assert ids(second["revoked"]) == [first["api_key"]["id"]]


def test_a_key_that_can_access_more_is_not_the_secret_of_a_key_of_a_project(
    sandbox: Sandbox, client: Client, tmp_path: Path, limited: dict[str, str]
) -> None:
    task(client, name="ci", **limited)
    dest = tmp_path / "key"
    dest.write_text(sandbox.api_key)
    with pytest.raises(ClouddbError) as error:
        task(client, name="ci", dest=dest, regenerate="if_lost", **limited)
    assert (error.value.kind, dest.read_text()) == ("other_key", sandbox.api_key)


def test_a_new_key_that_can_access_more_than_was_asked_for_is_revoked(
    sandbox: Sandbox, client: Client, limited: dict[str, str]
) -> None:
    sandbox.fault("status", status=200, method="POST", body={"id": 900, "key": "wide-secret-0123456789", "name": "ci"})
    with pytest.raises(ClouddbError) as error:
        task(client, name="ci", **limited)
    assert error.value.kind == "wrong_scope"
    assert writes(sandbox)[-1] == f"DELETE /organizations/{limited['org_id']}/api_keys/900"


def test_a_project_requires_an_organization(sandbox: Sandbox, client: Client) -> None:
    with pytest.raises(ClouddbError, match="requires org_id"):
        task(client, name="ci", project_id=SHOP)
    assert not writes(sandbox)


def test_the_policy_for_an_organization_reviews_its_keys_only(client: Client, organization: dict[str, str]) -> None:
    task(client, name="old")
    org_key = task(client, name="old", **organization)["api_key"]["id"]
    options: dict[str, Any] = {
        "allowed": [{"name": "none", "owner": None, "reason": None, "max_keys": None}],
        **dict.fromkeys(("max_age", "max_idle", "max_keys")),
        "grace": 0,
        "action": "revoke",
        "revoke_kinds": ["unknown"],
        "max_revocations": 10,
        "own_key": "1",
    }
    result = api_key_policy.run({**options, **organization}, client, False)
    # The service does not list when keys of an organization were used, so they are only reported.
    assert {finding["key_id"] for finding in result["findings"] if finding["key_id"]} == {org_key}
    assert result["left"] == [org_key]
