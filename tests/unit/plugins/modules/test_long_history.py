# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a creation has failed long ago is not worth to read all operations of a large project."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.tests.unit.support.resource_task import SHOP, task
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox


@pytest.fixture
def seed() -> dict[str, Any]:
    # One operation a minute, so that those of a day are in the first 15 of 20 pages of 100.
    return {"projects": [{"id": SHOP, "name": "shop", "age": "90d", "generate_operations": 2000}]}


def test_operations_of_others_are_read_for_a_day_and_not_further(sandbox: Sandbox, client: Client) -> None:
    sandbox.fault("rewrite", path="*/operations", times=None, set={"operations.*.branch_id": "br-other-12345678"})
    task(client, module="branch", name="main", check_mode=True)
    assert sandbox.sent().count(f"GET /projects/{SHOP}/operations") == 15
