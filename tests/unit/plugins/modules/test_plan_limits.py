# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the error says when a limit of the account's plan is reached: the service's words, and what frees room."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import ClouddbError
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.module_utils._http.failures import AFTER_LIMITS
from ansible_collections.clouddb.control.tests.unit.support.resource_task import task
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox
from clouddb_sandbox.limits import COUNTED

# The task that exceeds each limit of the sandbox, and what its error names.
TASKS: dict[str, tuple[dict[str, Any], str]] = {
    "projects": ({"module": "project", "name": "store"}, "with project and state: absent"),
    "branches": ({"module": "branch", "name": "dev"}, "with branch, name_pattern, older_than and state: absent"),
    "root_branches": ({"module": "branch", "name": "dev", "schema_only": True}, "without schema_only"),
    "computes": ({"module": "branch", "name": "dev"}, "compute: false"),
    "snapshots": ({"module": "snapshot", "name": "nightly"}, "with snapshot and state: absent"),
    "databases": (
        {"module": "database", "name": "orders", "owner": "clouddb_owner"},
        "with database and state: absent",
    ),
    "users": ({"module": "database_user", "name": "app"}, "with database_user and state: absent"),
}


@pytest.mark.parametrize("limit", COUNTED)
def test_the_error_names_what_frees_room(sandbox: Sandbox, client: Client, limit: str) -> None:
    options, advice = TASKS[limit]
    sandbox.control("PUT", "/limits", {limit: 0})
    with pytest.raises(ClouddbError) as error:
        task(client, **options)
    assert f"{COUNTED[limit][0]} limit exceeded. " in str(error.value)
    assert advice in str(error.value)
    assert error.value.details["status"] == 422


def test_each_published_code_has_advice() -> None:
    """Those of the service's own list that a sweep or an option answers; the sandbox has no others."""
    codes = {f"{kind.upper().replace(' ', '_')}_LIMIT_EXCEEDED" for kind, _counted in COUNTED.values()}
    published = {"BRANCHES_PROTECTED_LIMIT_EXCEEDED", "ACTIVE_ENDPOINTS_LIMIT_EXCEEDED"}
    assert AFTER_LIMITS.keys() == codes | published
