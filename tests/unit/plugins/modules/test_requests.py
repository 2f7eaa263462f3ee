# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many requests a task sends, the polls of its operations included: what an account's rate limit counts."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.module_utils._http.connection import Connection
from ansible_collections.clouddb.control.plugins.module_utils._http.errors import NotFound, StatusError
from ansible_collections.clouddb.control.plugins.module_utils._http.message import Request
from ansible_collections.clouddb.control.plugins.module_utils._http.response import Response
from ansible_collections.clouddb.control.plugins.modules import connection_info, operation_info, project_info
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


# In accounts of up to thirty thousand projects


Options = dict[str, Any]
DEFAULT_LIMIT = 10


class LargeAccount(Client):
    """A client of an account that pages as the published API document says. C(most): the largest limit that it takes, and C(refuses)
    whether it refuses a larger one; C(searches): whether it knows C(search)."""

    def __init__(self, number: int, most: int = 400, refuses: bool = False, searches: bool = True) -> None:
        super().__init__(Connection("https://control.example.com/api/v2", "key"))
        self.projects = [{"id": f"calm-hill-{100000 + index}", "name": f"shop-{index}"} for index in range(number)]
        self.most, self.refuses, self.searches = most, refuses, searches
        self.sent = 0

    def get(self, *segments: str | int, query: Mapping[str, Any] | None = None) -> Response:
        self.sent += 1
        query, request = query or {}, Request("GET", "/", "id", query)
        if len(segments) == 3:
            created_at = "2020-01-01T00:00:00Z"
            operation = {"id": f"{segments[1]}-1", "status": "finished", "created_at": created_at}
            return Response({"operations": [operation], "pagination": {"cursor": created_at}}, request)
        if len(segments) == 2:
            found = [each for each in self.projects if each["id"] == segments[1]]
            if not found:
                raise NotFound("no such project", request, 1, 404)
            return Response({"project": found[0]}, request)
        limit = int(query.get("limit", DEFAULT_LIMIT))
        if self.refuses and limit > self.most:
            raise StatusError("refused", request, 1, 400, {"message": "limit is too large"})
        search = query.get("search", "") if self.searches else ""
        listed = [each for each in self.projects if search in each["name"] or search in each["id"]]
        first = next((index + 1 for index, each in enumerate(listed) if each["id"] == query.get("cursor")), 0)
        page = listed[first : first + min(limit, self.most)]
        return Response({"projects": page, **({"pagination": {"cursor": page[-1]["id"]}} if page else {})}, request)


@pytest.mark.parametrize(
    "module, number, options, service, found, most",
    [
        (project_info, 3_000, {}, {}, 3_000, 9),
        (project_info, 30_000, {"name": "shop-29999"}, {}, 1, 2),
        (project_info, 3_000, {"name": "shop-2"}, {}, 1, 4),  # a part of a thousand names
        (project_info, 3_000, {"name": "blog"}, {}, 0, 10),
        (project_info, 3_000, {}, {"most": 100}, 3_000, 31),
        (project_info, 3_000, {}, {"most": 100, "refuses": True}, 3_000, 33),
        (project_info, 1_000, {}, {"most": 10, "refuses": True}, 1_000, 104),
        (project_info, 3_000, {"name": "shop-2999"}, {"searches": False}, 1, 9),
        (project_info, 3_000, {"name": "blog"}, {"searches": False}, 0, 9),
        (operation_info, 1_000, {"created_after": "24h", "workers": 1}, {}, 0, 1_004),
    ],
)
def test_requests_in_a_large_account(
    module: ModuleType, number: int, options: Options, service: Options, found: int, most: int
) -> None:
    client = LargeAccount(number, **service)
    result = module.run({**defaults_of(module), **options}, client, False)
    assert len(result["projects" if module is project_info else "operations"]) == found
    assert client.sent == most


def shop(**fields: Any) -> dict[str, Any]:
    return {"projects": [{"id": SHOP, "name": "shop", **fields}]}


# Others have many operations since the creation of the branch, or one a minute, those of a day in 15 of 20 pages.
MANY = [{"action": "apply_config", "age": "3d", "branch_id": "br-other"}] * 1_150


@pytest.mark.parametrize(
    "seed, pages", [(shop(age="9d", operations=MANY), 10), (shop(age="90d", generate_operations=2_000), 15)]
)
def test_a_history_of_others_is_read_no_further_than_it_helps(sandbox: Sandbox, client: Client, pages: int) -> None:
    sandbox.fault("page_limit", items=100, times=None)
    sandbox.fault("rewrite", path="*/operations", times=None, set={"operations.*.branch_id": "br-other-12345678"})
    assert task(client, "branch", check_mode=True, name="main")["changed"] is False
    assert sandbox.sent().count(f"GET /projects/{SHOP}/operations") == pages
