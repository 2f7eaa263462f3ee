# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""main() of api_request against the sandbox: secrets, and a misspelt list."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._secrets import MASK
from ansible_collections.clouddb.control.plugins.modules import api_request
from ansible_collections.clouddb.control.tests.unit.support.module_main import Outcome, run_main
from ansible_collections.clouddb.control.tests.unit.support.return_values import undocumented_fields
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox

SHOP = "wispy-lake-12345678"
BRANCHES = f"projects/{SHOP}/branches"
SECRET = "hunter2-hunter2-hunter2"

pytestmark = pytest.mark.usefixtures("no_delays")


@pytest.fixture
def seed() -> dict[str, Any]:
    return {"projects": [{"id": SHOP, "name": "shop"}]}


def run(sandbox: Sandbox, check_mode: bool = False, **options: Any) -> Outcome:
    connection = {"base_url": sandbox.base_url, "api_key": sandbox.api_key}
    outcome = run_main(api_request, {**connection, "path": BRANCHES, **options}, check_mode, diff=True)
    assert undocumented_fields(api_request, outcome.result) == []
    return outcome


@pytest.mark.parametrize("check_mode", [False, True])
def test_secrets_of_the_body_are_not_printed(sandbox: Sandbox, check_mode: bool) -> None:
    outcome = run(
        sandbox,
        check_mode,
        method="POST",
        path="projects",
        body={"project": {"name": "x", "password": SECRET, "custom": f"{SECRET}2", "pin": "a"}},
        secret_fields=["custom"],
        wait=False,
    )
    assert outcome.success["changed"]
    assert SECRET not in outcome.printed
    assert outcome.result["invocation"]["module_args"]["body"]["project"]["name"] == "x"


def test_a_name_that_is_also_a_password_stays_readable(sandbox: Sandbox) -> None:
    """The next task asks for the role by this name. Other values may contain the password by chance."""
    branch = run(sandbox, find={"list": "branches", "match": {"name": "main"}}).success["object"]["id"]
    outcome = run(
        sandbox,
        method="POST",
        path=f"{BRANCHES}/{branch}/roles",
        body={"role": {"name": "analytics1", "password": "analytics1"}},
        find={"list": "roles", "match": {"name": "analytics1"}},
        wait=False,
    )
    assert (outcome.success["object"]["name"], outcome.success["object"]["password"]) == ("analytics1", MASK)
    assert outcome.success["request"]["body"] == {"role": {"name": "analytics1", "password": MASK}}
    assert outcome.result["invocation"]["module_args"]["find"]["match"] == {"name": "analytics1"}


def test_secrets_of_the_response_are_not_in_its_message(sandbox: Sandbox) -> None:
    error = f"cannot set {SECRET}"
    sandbox.fault("status", status=400, method="POST", body={"password": SECRET, "message": error})
    outcome = run(sandbox, method="POST", body={"branch": {}}, status_code=[400])
    assert outcome.success["json"] == {"password": MASK, "message": f"cannot set {MASK}"}


def test_an_error_of_the_service_that_quotes_a_secret_is_censored(sandbox: Sandbox) -> None:
    for secret in (SECRET, "hunter"):
        sandbox.fault("status", status=400, method="POST", body={"message": f"the password '{secret}' is too weak"})
        outcome = run(sandbox, method="POST", body={"role": {"password": secret}})
        assert outcome.failure["status"] == 400
        assert secret not in outcome.printed


def test_secrets_in_the_lookup_and_in_the_query_are_not_printed(sandbox: Sandbox) -> None:
    find = {"list": "branches", "match": {"password": f"{SECRET}1", "pin": "1234"}, "query": {"token": f"{SECRET}2"}}
    query = {"api_key": f"{SECRET}3", "page": "7"}
    outcome = run(sandbox, find=find, query=query, secret_fields=["pin"])
    assert outcome.success["object"] is None
    assert SECRET not in outcome.printed
    shown = outcome.result["invocation"]["module_args"]
    assert (shown["find"]["list"], shown["query"]["page"]) == ("branches", "7")
    assert shown["find"]["match"]["pin"] == MASK


def test_an_unknown_list_is_named_with_the_existing_ones(sandbox: Sandbox) -> None:
    for field in ("branchs", None):
        outcome = run(sandbox, find={"list": field, "match": {"name": "main"}})
        assert outcome.failure == {"kind": "invalid_option", "option": "find.list"}
        assert "branches" in outcome.result["msg"]
