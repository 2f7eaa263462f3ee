# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs api_request, and the task that creates a branch."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import ClouddbError
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.modules import api_request

SHOP, BLOG = "wispy-lake-12345678", "red-moon-34567890"
BRANCHES = f"projects/{SHOP}/branches"
PREVIEW = {
    "path": BRANCHES,
    "find": {"list": "branches", "match": {"name": "preview"}},
    "body": {"branch": {"name": "preview"}},
}

DEFAULTS: dict[str, Any] = {
    **dict.fromkeys(("query", "body", "status_code", "find")),
    "all_pages": False,
    "wait": True,
    "timeout": 300.0,
    "interval": 5.0,
    "failed_grace": 0.0,
    "lock_timeout": 300.0,
    "secret_fields": [],
    "expose_secrets": False,
}


def task(client: Client, method: str = "GET", check_mode: bool = False, **options: Any) -> dict[str, Any]:
    """The result of the module with these options."""
    params = {**DEFAULTS, "method": method, **options}
    if params["find"]:
        params["find"] = {"path": None, "list": None, "match": None, "query": None, **params["find"]}
    return api_request.run(params, client, check_mode)


def failing(client: Client, method: str = "GET", **options: Any) -> dict[str, Any]:
    """The result of the module when it fails with these options."""
    with pytest.raises(ClouddbError) as error:
        task(client, method, **options)
    return error.value.as_result()
