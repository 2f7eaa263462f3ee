# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""api_key_info against the sandbox."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.modules import api_key_info
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox


@pytest.fixture
def seed() -> dict[str, Any]:
    return {"api_keys": [{"name": "deploy", "age": "1d"}, {"name": "deploy", "age": "2d"}, {"name": "ci", "age": "3d"}]}


def task(client: Client, check_mode: bool = False, **options: Any) -> dict[str, Any]:
    """The result of the module with these options."""
    return api_key_info.run({"name": None, "fields": None, **options}, client, check_mode)


@pytest.mark.parametrize("check_mode", [False, True], ids=["real", "check mode"])
def test_returns_all_keys_sorted_by_creation_time(sandbox: Sandbox, client: Client, check_mode: bool) -> None:
    result = task(client, check_mode)
    assert not result["changed"]
    assert [key["name"] for key in result["api_keys"]] == ["ci", "deploy", "deploy", "sandbox"]
    assert sorted(key["id"] for key in result["api_keys"]) == sorted(
        key["id"] for key in sandbox.api("GET", "/api_keys")
    )
    created = [key["created_at"] for key in result["api_keys"]]
    assert created == sorted(created)


def test_name_is_matched_exactly(sandbox: Sandbox, client: Client) -> None:
    later, earlier = sandbox.keys("deploy")
    assert task(client, name="deploy")["api_keys"] == [earlier, later]
    assert task(client, name="dep")["api_keys"] == []


def test_fields_reduce_each_key(sandbox: Sandbox, client: Client) -> None:
    [key] = sandbox.keys("ci")
    assert task(client, name="ci", fields=["name", "id"]) == {
        "changed": False,
        "api_keys": [{"id": key["id"], "name": "ci"}],
        "warnings": [],
    }
