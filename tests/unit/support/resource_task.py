# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs tasks of the modules of resources, and of api_request."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import ClouddbError
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.modules import api_request
from ansible_collections.clouddb.control.tests.unit.support.each_module import module_named
from ansible_collections.clouddb.control.tests.unit.support.module_main import defaults_of
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox

SHOP, BLOG = "wispy-lake-12345678", "red-moon-34567890"
BRANCHES = f"projects/{SHOP}/branches"
PREVIEW = {
    "path": BRANCHES,
    "find": {"list": "branches", "match": {"name": "preview"}},
    "body": {"branch": {"name": "preview"}},
}


def task(client: Client, module: str, check_mode: bool = False, **options: Any) -> dict[str, Any]:
    imported = module_named(module)
    result: dict[str, Any] = imported.run({**defaults_of(imported), "project": "shop", **options}, client, check_mode)
    return result


def failing(client: Client, **options: Any) -> dict[str, Any]:
    with pytest.raises(ClouddbError) as error:
        task(client, **options)
    failure: dict[str, Any] = error.value.as_result()["failure"]
    return failure


def writes(sandbox: Sandbox) -> list[str]:
    """The requests other than GET that the module sent."""
    return [line for line in sandbox.sent() if not line.startswith("GET")]


def api_request_task(client: Client, method: str = "GET", check_mode: bool = False, **options: Any) -> dict[str, Any]:
    """The result of api_request with these options."""
    params = {**defaults_of(api_request), "method": method, **options}
    if params["find"]:
        params["find"] = {"path": None, "list": None, "match": None, "query": None, **params["find"]}
    return api_request.run(params, client, check_mode)


def failing_api_request(client: Client, method: str = "GET", **options: Any) -> dict[str, Any]:
    """The result of api_request when it fails with these options."""
    with pytest.raises(ClouddbError) as error:
        api_request_task(client, method, **options)
    return error.value.as_result()
