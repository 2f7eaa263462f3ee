# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""api_request with any responses in any order: an outcome or a readable error, and no second object by accident."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.clouddb.control.plugins.module_utils._errors import REFUSED_TEMPORARILY, ClouddbError
from ansible_collections.clouddb.control.plugins.modules import api_request
from ansible_collections.clouddb.control.tests.unit.support.scripted_client import scripted
from ansible_collections.clouddb.control.tests.unit.support.scripted_service import (
    HANG_UP,
    Reply,
    Request,
    ScriptedService,
    reply,
    scripted_service,
)

SECRET = "secret-of-a-response-0123456789"
OPTIONS: dict[str, Any] = {
    "query": None,
    "status_code": None,
    "all_pages": False,
    "wait": True,
    "timeout": 20,
    "interval": 5,
    "failed_grace": 0,
    "lock_timeout": 20,
    "secret_fields": [],
    "expose_secrets": False,
    "path": "projects/p/branches",
    "find": {"path": None, "list": "branches", "match": {"name": "preview"}, "query": None},
    "body": {"branch": {"name": "preview"}},
}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "a", "preview", "..", "{{ x }}"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["id", "name", "key"]), inner),
    max_leaves=3,
)
operations = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.sampled_from(["a", "b"]),
            "project_id": st.just("p"),
            "branch_id": st.just("br-1"),
            "status": st.sampled_from(["running", "finished", "failed", "odd"]),
            "created_at": st.just("2026-11-21T08:00:00Z"),
        }
    ),
    max_size=2,
)
branches = st.lists(
    st.fixed_dictionaries({"id": st.sampled_from(["br-1", "br-2"]), "name": st.sampled_from(["main", "preview"])}),
    max_size=2,
)
objects = st.fixed_dictionaries(
    {},
    optional={
        "branch": st.fixed_dictionaries({"id": st.just("br-1"), "name": st.just("preview")}) | json_values,
        "branches": branches | json_values,
        "operations": operations | json_values,
        "operation": json_values,
        "password": st.just(SECRET),
        "unavailable_project_ids": json_values,
    },
)
statuses = st.sampled_from([200, 200, 201, 204, 400, 404, 409, 423, 429, 500, 503])
replies = st.builds(reply, objects | json_values, statuses) | st.just(HANG_UP) | st.just(reply(b"<html>"))


class AnyService(ScriptedService):
    """Responds with the script, then with an empty list, and counts the requests that may have been carried out."""

    creations = 0

    def reply_to(self, request: Request) -> Reply:
        response = self.script.pop(0) if self.script else reply({"branches": [], "operations": []})
        status = int(response.raw.split()[1]) if response.raw else 0
        self.creations += request.method == "POST" and status not in REFUSED_TEMPORARILY
        return response


@pytest.fixture(scope="module")
def service() -> Iterator[AnyService]:
    with scripted_service(service_class=AnyService) as running:
        yield running
        running.script.clear()


@pytest.mark.parametrize("method", ["GET", "POST", "PATCH", "DELETE"])
@pytest.mark.parametrize("check_mode", [False, True])
@given(script=st.lists(replies, max_size=8))
def test_any_responses(service: AnyService, method: str, check_mode: bool, script: list[Reply]) -> None:
    service.script[:], service.creations = script, 0
    service.requests.clear()
    options = {**OPTIONS, "method": method, "body": None if method in ("GET", "DELETE") else OPTIONS["body"]}
    if method in ("PATCH", "DELETE"):
        options["path"] += "/{id}"
    try:
        result = api_request.run(options, scripted(service, api_retries=1).client, check_mode)
    except ClouddbError as error:
        result = error.as_result()
        assert result["failure"]["kind"] not in ("error", "unexpected")
    assert SECRET not in str(result)
    assert service.creations <= 1
    sent = {request.method for request in service.requests}
    assert sent <= ({"GET"} if check_mode else {"GET", method})
