# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many requests a task sends, the polls of its operations included: what an account's rate limit counts."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.modules import connection_info
from ansible_collections.clouddb.control.tests.unit.support.module_main import defaults_of
from ansible_collections.clouddb.control.tests.unit.support.resource_task import SHOP, task
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox

ABSENT, CHECK = {"state": "absent"}, {"check_mode": True}
BRANCH = {"module": "branch", "name": "preview"}
USER = {"module": "database_user", "name": "app", "branch": "preview"}
DATABASE = {"module": "database", "name": "orders", "owner": "app", "branch": "preview"}
URI = {"module": "connection_info", "database": "orders", "branch": "preview"}
COMPUTE = {"module": "compute", "branch": "preview"}
# The tasks of a play, each with its number of requests if the project is named by its name, and by its id.
PLAY: list[tuple[dict[str, Any], int, int]] = [
    ({**BRANCH, **CHECK}, 3, 2),
    (BRANCH, 8, 7),
    (BRANCH, 4, 3),
    ({**BRANCH, **CHECK}, 4, 3),
    ({**BRANCH, "protected": True}, 7, 6),
    ({**BRANCH, "protected": False}, 7, 6),
    (USER, 8, 6),
    (USER, 5, 3),
    ({**USER, "update_password": "always"}, 9, 7),
    (DATABASE, 8, 6),
    (DATABASE, 5, 3),
    (URI, 5, 3),
    ({**URI, "user": "app"}, 4, 2),
    (COMPUTE, 5, 4),
    ({**COMPUTE, "max_cu": 2}, 9, 8),
    ({**COMPUTE, "state": "restarted"}, 10, 9),
    ({"module": "branch_info"}, 3, 2),
    ({"module": "database_info", "branch": "preview"}, 4, 2),
    ({**DATABASE, **ABSENT}, 9, 7),
    ({**USER, **ABSENT}, 9, 7),
    ({"module": "branch_restore", "name": "preview"}, 10, 9),
    ({**BRANCH, **ABSENT, **CHECK}, 5, 4),
    ({**BRANCH, **ABSENT}, 7, 6),
    ({**BRANCH, **ABSENT}, 4, 3),
]


def run(client: Client, options: dict[str, Any]) -> None:
    if options["module"] == "connection_info":
        connection_info.run({**defaults_of(connection_info), **options}, client, False, lambda path: False)
    else:
        task(client, **options)


@pytest.mark.parametrize("project", ["shop", SHOP])
def test_requests_of_a_play(sandbox: Sandbox, client: Client, project: str) -> None:
    # The project has operations that are older than the branch of the play.
    sandbox.api("POST", f"/projects/{SHOP}/branches", {"branch": {"name": "old"}})
    sandbox.advance(100)
    counted = []
    for options, _by_name, _by_id in PLAY:
        before = len(sandbox.sent())
        run(client, {"project": project, **options})
        counted.append((options, len(sandbox.sent()) - before))
        sandbox.advance(100)
    assert counted == [(options, by_id if project == SHOP else by_name) for options, by_name, by_id in PLAY]
