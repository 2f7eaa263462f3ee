# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The queries of extensions/audit find the project in the sample results of the modules, and nothing in empty ones."""

from __future__ import annotations

import importlib
from typing import Any

import jq
import pytest
import yaml
from workspace import CHECKOUT

QUERIES: dict[str, dict[str, str]] = yaml.safe_load(
    (CHECKOUT / "extensions" / "audit" / "event_query.yml").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("name", QUERIES)
def test_query_finds_the_project_of_a_result(name: str) -> None:
    module = importlib.import_module(f"ansible_collections.clouddb.control.plugins.modules.{name.split('.')[2]}")
    returned = yaml.safe_load(module.RETURN)
    result: dict[str, Any] = {key: value.get("sample") for key, value in returned.items()}
    query = jq.compile(QUERIES[name]["query"])
    [node] = query.input(result).all()
    assert node.keys() == {"name", "canonical_facts", "facts"}
    assert node["name"] and node["canonical_facts"]["id"] in str(result)
    # Check mode has no ids yet, and a failed task no resource.
    for value in ({"id": None}, {}, None):
        assert not query.input(dict.fromkeys(result, value)).all()
