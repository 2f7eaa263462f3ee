# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs tasks of the modules of resources."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import ClouddbError
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.tests.unit.support.each_module import module_named
from ansible_collections.clouddb.control.tests.unit.support.module_main import defaults_of
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox

SHOP = "wispy-lake-12345678"


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
