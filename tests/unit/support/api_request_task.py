# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs api_request, and the task that creates a branch."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import ClouddbError
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.modules import api_request
from ansible_collections.clouddb.control.tests.unit.support.module_main import defaults_of

SHOP, BLOG = "wispy-lake-12345678", "red-moon-34567890"
BRANCHES = f"projects/{SHOP}/branches"
PREVIEW = {
    "path": BRANCHES,
    "find": {"list": "branches", "match": {"name": "preview"}},
    "body": {"branch": {"name": "preview"}},
}


def task(client: Client, method: str = "GET", check_mode: bool = False, **options: Any) -> dict[str, Any]:
    """The result of the module with these options."""
    params = {**defaults_of(api_request), "method": method, **options}
    if params["find"]:
        params["find"] = {"path": None, "list": None, "match": None, "query": None, **params["find"]}
    return api_request.run(params, client, check_mode)


def failing(client: Client, method: str = "GET", **options: Any) -> dict[str, Any]:
    """The result of the module when it fails with these options."""
    with pytest.raises(ClouddbError) as error:
        task(client, method, **options)
    return error.value.as_result()
