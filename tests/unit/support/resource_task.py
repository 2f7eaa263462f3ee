# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs tasks of the modules of resources."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import ClouddbError
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox

SHOP = "wispy-lake-12345678"
MODULES = "ansible_collections.clouddb.control.plugins.modules."
DEFAULTS: dict[str, Any] = {
    **dict.fromkeys(
        ("org_id", "id", "branch", "parent", "expires_at", "protected", "owner", "older_than", "name_pattern")
    ),
    **dict.fromkeys(("region_id", "pg_version", "history_retention", "settings")),
    **dict.fromkeys(("from_timestamp", "from_lsn", "schema_only", "default")),
    **dict.fromkeys(("min_cu", "max_cu", "suspend_timeout", "source", "timestamp", "lsn", "preserve_as")),
    "type": "read_write",
    "update_password": "on_create",
    "compute": True,
    "project": "shop",
    "state": "present",
    "wait": True,
    "timeout": 300,
    "interval": 5,
    "failed_grace": 0,
    "max_deletions": 10,
}


def task(client: Client, module: str, check_mode: bool = False, **options: Any) -> dict[str, Any]:
    result: dict[str, Any] = importlib.import_module(MODULES + module).run({**DEFAULTS, **options}, client, check_mode)
    return result


def failing(client: Client, **options: Any) -> dict[str, Any]:
    with pytest.raises(ClouddbError) as error:
        task(client, **options)
    failure: dict[str, Any] = error.value.as_result()["failure"]
    return failure


def writes(sandbox: Sandbox) -> list[str]:
    return [line for line in sandbox.sent() if not line.startswith("GET")]
