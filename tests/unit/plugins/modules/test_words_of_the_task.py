# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the service says about a field is followed by the option of the task that sets it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import ClouddbError
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.module_utils._timestamps import parse_timestamp
from ansible_collections.clouddb.control.tests.unit.support.resource_task import SHOP, task, writes
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox

PROJECT = {"module": "project", "name": "shop"}
STORE = {"module": "project", "name": "store"}
COMPUTE = {"module": "compute"}


BYTES = {"written_data_bytes": 5}


def message(client: Client, **options: Any) -> str:
    with pytest.raises(ClouddbError) as error:
        task(client, **options)
    return str(error.value)


@pytest.mark.parametrize(
    ("options", "bound", "field"),
    [
        ({**PROJECT, "history_retention": "90d"}, 2592000, "history_retention_seconds"),
        ({**STORE, "history_retention": "90d"}, 2592000, "history_retention_seconds"),
        ({**COMPUTE, "max_cu": 200}, 16, "autoscaling_limit_max_cu"),
        ({**COMPUTE, "suspend_timeout": "8d"}, 604800, "suspend_timeout_seconds"),
        ({"module": "project_info", "page_size": 5000}, 400, "limit"),
        ({"module": "operation_info", "page_size": 5000}, 1000, "limit"),
    ],
)
def test_the_option_of_a_field_that_is_refused(client: Client, options: Any, bound: int, field: str) -> None:
    *_others, option = options
    assert message(client, **options).endswith(f" {bound}. The option {option} sets {field}.")


@pytest.mark.parametrize(
    ("module", "options"),
    [
        ("project", {"name": "store", "region_id": "mars"}),
        ("project_info", {"query": {"limit": 5000}}),
        ("operation_info", {"query": {"limit": 5000}}),
    ],
)
def test_a_field_that_no_other_option_sets(client: Client, module: str, options: dict[str, Any]) -> None:
    assert "The option" not in message(client, module=module, **options)


@pytest.mark.parametrize(
    ("settings", "where", "hint"),
    [
        ({"quotas": {"active_time_seconds": 1}}, "settings.quotas", "Did you mean settings.quota?"),
        ({"unknown": 1}, "settings.unknown", "settings has: allowed_ips, quota."),
        ({"quota": {"active_time": 1}}, "settings.quota.active_time", "settings.quota has: written_data_bytes."),
        ({"quota": {**BYTES, "x": None}, "hipaa": None, "no": 1}, "settings.no", "settings has: allowed_ips, quota."),
    ],
)
def test_a_setting_that_is_ignored_is_named(client: Client, settings: dict[str, Any], where: str, hint: str) -> None:
    task(client, **PROJECT, settings={"quota": BYTES, "allowed_ips": {"ips": []}})
    [warning] = task(client, **PROJECT, settings=settings)["warnings"]
    assert warning == f"PATCH /projects/{{id}} was accepted, but the resource differs in: {where}. {hint}"


@pytest.mark.parametrize(("name", "number"), [("pr-*", 1), ("pr-[0-9]", 1), ("pr-1", 0)])
def test_a_pattern_that_names_no_branch_is_warned_of(sandbox: Sandbox, client: Client, name: str, number: int) -> None:
    for check_mode in (True, False):
        result = task(client, "branch", check_mode, name=name, state="absent")
        hints = ["set name_pattern" in each for each in result["warnings"]]
        assert (result["changed"], hints) == (False, [True] * number)
    assert writes(sandbox) == []


def test_a_branch_whose_name_is_a_pattern_is_deleted_without_a_warning(sandbox: Sandbox, client: Client) -> None:
    task(client, "branch", name="pr-*")
    sandbox.advance(60)
    result = task(client, "branch", name="pr-*", state="absent")
    assert (result["changed"], result["warnings"]) == (True, [])


@pytest.mark.parametrize(
    ("option", "options"),
    [
        ("from_timestamp", {"module": "branch", "name": "old"}),
        ("timestamp", {"module": "branch_restore", "name": "main", "preserve_as": "old"}),
        ("timestamp", {"module": "snapshot", "name": "old", "branch": "main"}),
    ],
)
def test_a_time_before_the_history_is_refused_with_its_beginning(
    sandbox: Sandbox, client: Client, option: str, options: dict[str, Any]
) -> None:
    kept = sandbox.api("GET", f"/projects/{SHOP}")["project"]["history_retention_seconds"]
    [main] = sandbox.api("GET", f"/projects/{SHOP}/branches")["branches"]
    since = (parse_timestamp(main["created_at"]) + timedelta(seconds=1)).isoformat(timespec="seconds")[:19]
    early = {**options, option: "400d"}
    for check_mode in (True, False):
        said = message(client, check_mode=check_mode, **early)
        assert said == f"{option}: the history of branch main begins at {since}Z. Set a later time."
    sandbox.advance(60)
    task(client, check_mode=True, **options, **{option: f"{since}Z"})
    assert len(writes(sandbox)) == 1
    sandbox.advance(2 * kept)
    assert f"The project keeps {kept} s (history_retention). Set a later time." in message(client, **early)


@pytest.mark.parametrize("module", ["branch", "project"])
def test_what_cannot_be_recovered_is_said_to_be_gone(client: Client, module: str) -> None:
    said = f"name: there is no {module} 'gone'. None of this name that was deleted can be recovered"
    assert message(client, module=module, name="gone", state="recovered").startswith(said)


def test_several_resources_of_a_name_are_named_by_the_option(sandbox: Sandbox, client: Client) -> None:
    sandbox.api("POST", "/projects", {"project": {"name": "shop"}})
    said = message(client, **PROJECT, state="absent")
    assert said.startswith("name: 2 resources match: ") and SHOP in said
