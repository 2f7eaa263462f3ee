# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Responses with any JSON or other bytes: each module's run() returns a correct result or raises a typed error."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.clouddb.control.plugins.module_utils._errors import ClouddbError
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.modules import (
    api_key_info,
    operation_info,
    operation_wait,
    project_info,
)
from ansible_collections.clouddb.control.tests.unit.support import api_key_task
from ansible_collections.clouddb.control.tests.unit.support.scripted_client import scripted
from ansible_collections.clouddb.control.tests.unit.support.scripted_service import (
    HANG_UP,
    Reply,
    Request,
    ScriptedService,
    reply,
    scripted_service,
)

Script = dict[str, list[Reply]]

# Method and path of each endpoint of api.md.
ENDPOINTS = {
    "projects": r"GET /projects",
    "operations": r"GET /projects/[^/]+/operations",
    "operation": r"GET /projects/[^/]+/operations/[^/]+",
    "keys": r"GET /api_keys",
    "creation": r"POST /api_keys",
    "revocation": r"DELETE /api_keys/[^/]+",
}

anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["", ".", "..", "a", "p", "finished"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5) | st.sampled_from(["id", "status", "cursor"]), inner, max_size=3)
    ),
    max_leaves=4,
)
times = st.sampled_from(
    [
        "2026-11-21T07:00:00Z",
        "2026-11-21T08:00:00.123456789+02:00",
        "1999-12-31T23:59:59Z",
        "9999-12-31T23:59:59-14:00",
        "soon",
    ]
)
ids = st.sampled_from(["a", "b", "p", "é/ü", "{{ x }}"])
key_ids = st.integers(1, 4) | st.sampled_from([0, -1, 10**30])


def thing(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """An object with these fields; in some examples one is missing or has another value, or there are further fields."""

    def variants(valid: dict[str, Any]) -> st.SearchStrategy[Any]:
        name = st.sampled_from(sorted(valid))
        return (
            st.just(valid)
            | st.just(valid)
            | st.builds(lambda field, value: {**valid, field: value}, name, anything)
            | name.map(lambda field: {other: value for other, value in valid.items() if other != field})
            | st.dictionaries(st.text(max_size=5), anything, max_size=2).map(lambda further: {**further, **valid})
        )

    return st.fixed_dictionaries(fields).flatmap(variants)


def listed(item: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(item, max_size=3)


pagination = thing(cursor=st.sampled_from(["1", "2", "3", "", "+ &"]))
statuses = st.sampled_from(
    ["scheduling", "running", "finished", "failed", "error", "skipped", "cancelled", "cancelling", "resting"]
)
operation = thing(
    id=ids,
    project_id=ids,
    action=st.sampled_from(["start_compute", "new"]),
    status=statuses,
    created_at=times,
    failures_count=st.integers(),
)
project = thing(id=ids, name=ids, region_id=ids, created_at=times)
key = thing(id=key_ids, name=st.sampled_from(["deploy", "other"]), created_at=times, last_used_at=st.none() | times)
BODIES = {
    "projects": thing(
        projects=listed(project), pagination=pagination, unavailable_project_ids=st.lists(anything, max_size=2)
    ),
    "operations": thing(operations=listed(operation), pagination=pagination),
    "operation": thing(operation=operation),
    "keys": listed(key),
    "creation": thing(
        id=key_ids, key=st.sampled_from(["s" * 64, "", "no key\n", "é"]), name=st.just("deploy"), created_at=times
    ),
    "revocation": thing(id=key_ids, name=st.just("deploy"), revoked=st.booleans()),
}


def replies(endpoint: str) -> st.SearchStrategy[Reply]:
    """Mostly valid or almost valid responses; also any JSON, any bytes, error statuses and no response."""
    valid = BODIES[endpoint].map(reply)
    broken = anything.map(reply) | st.binary(max_size=20).map(reply) | st.just(HANG_UP)
    error = st.builds(
        reply,
        thing(message=st.text(max_size=10), code=st.text(max_size=5)) | anything,
        st.sampled_from([400, 401, 404, 429, 500, 503]),
    )
    return valid | valid | valid | valid | broken | error


def scripts(*endpoints: str) -> st.SearchStrategy[Script]:
    """The replies of each of these endpoints, in order."""
    return st.fixed_dictionaries(
        {endpoint: st.lists(replies(endpoint), min_size=1, max_size=3) for endpoint in endpoints}
    )


class FuzzingService(ScriptedService):
    """Sends the next reply of the endpoint, or its last one again; C(sent) has the bodies of the responses with status 200."""

    replies: Script
    sent: dict[str, list[Any]]

    def reply_to(self, request: Request) -> Reply:
        sent_request = f"{request.method} {request.path.replace('/api/v2', '', 1)}"
        (endpoint,) = (name for name, pattern in ENDPOINTS.items() if re.fullmatch(pattern, sent_request))
        remaining = self.replies[endpoint]
        response = remaining.pop(0) if len(remaining) > 1 else remaining[0]
        if response.raw and response.raw.startswith(b"HTTP/1.1 200 "):
            self.sent[endpoint].append(response.raw.partition(b"\r\n\r\n")[2])
        return response

    def sent_json(self, endpoint: str) -> list[Any]:
        return [json.loads(body) for body in self.sent[endpoint]]

    def sent_ids(self, endpoint: str) -> list[Any]:
        """The ids of the objects in the pages of a list, without duplicates."""
        return list(dict.fromkeys(item["id"] for body in self.sent_json(endpoint) for item in body[endpoint]))


@pytest.fixture(scope="module")
def service() -> Iterator[FuzzingService]:
    with scripted_service(service_class=FuzzingService) as running:
        yield running


def result_of(
    service: FuzzingService, script: Script, run: Callable[[Client], dict[str, Any]]
) -> dict[str, Any] | None:
    """The result of the module, or None if it raised a typed error; checks that either is valid JSON."""
    service.replies = {endpoint: list(scripted_replies) for endpoint, scripted_replies in script.items()}
    service.sent = defaultdict(list)
    service.requests.clear()
    try:
        result = run(scripted(service, api_retries=1).client)
    except ClouddbError as error:
        failure = error.as_result()
        assert failure["msg"].strip()
        assert failure["failure"]["kind"]
        json.dumps(failure)
        return None
    json.dumps(result)
    return result


def ids_of(things: list[dict[str, Any]]) -> list[Any]:
    return [thing["id"] for thing in things]


@given(scripts("keys"))
def test_api_key_info(service: FuzzingService, script: Script) -> None:
    result = result_of(service, script, lambda client: api_key_info.run({"name": None}, client, False))
    if result:
        (keys,) = service.sent_json("keys")
        assert sorted(ids_of(result["api_keys"])) == sorted(ids_of(keys))


@given(scripts("projects"))
def test_project_info(service: FuzzingService, script: Script) -> None:
    params = {"project_id": None, "name": None, "region_id": None, "page_size": None, "query": None}
    result = result_of(service, script, lambda client: project_info.run(params, client, False))
    if result:
        assert ids_of(result["projects"]) == service.sent_ids("projects")


SELECT_ALL = dict.fromkeys(
    ["operation_id", "status", "action", "branch_id", "endpoint_id", "created_after", "max_results"]
)


@given(scripts("operations"))
def test_operation_info_of_a_project(service: FuzzingService, script: Script) -> None:
    params = {**SELECT_ALL, "project_id": "p", "page_size": 2, "workers": 1}
    result = result_of(service, script, lambda client: operation_info.run(params, client, False))
    if result:
        assert sorted(ids_of(result["operations"])) == sorted(service.sent_ids("operations"))
        assert result["summary"]["total"] == len(result["operations"])


@given(scripts("operation", "operations"))
def test_operation_info_of_one_operation(service: FuzzingService, script: Script) -> None:
    params = {**SELECT_ALL, "project_id": "p", "operation_id": "a", "page_size": 2, "workers": 1}
    result = result_of(service, script, lambda client: operation_info.run(params, client, False))
    if result:
        assert ids_of(result["operations"]) == ["a"] * len(service.sent["operation"])


@given(scripts("projects", "operations"), times)
def test_operation_info_of_the_account(service: FuzzingService, script: Script, created_after: str) -> None:
    params = {
        **SELECT_ALL,
        "project_id": None,
        "created_after": None if created_after == "soon" else created_after,
        "page_size": 2,
        "workers": 1,
    }
    result = result_of(service, script, lambda client: operation_info.run(params, client, False))
    if result:
        assert set(ids_of(result["operations"])) <= set(
            service.sent_ids("operations") if service.sent["operations"] else []
        )


@given(scripts("operation", "operations"), st.booleans(), st.booleans())
def test_operation_wait(service: FuzzingService, script: Script, by_id: bool, check_mode: bool) -> None:
    """The wait succeeds only if the service reported a final status of success for every operation."""
    limits = {"timeout": 10, "interval": 5, "failed_grace": 0, "lookback": 0, "workers": 1}
    params = {**limits, "project_id": "p", "operation_id": ["a", "b"] if by_id else None, "operations": None}
    result = result_of(service, script, lambda client: operation_wait.run(params, client, check_mode))
    if result:
        statuses = {operation["id"]: operation["status"] for operation in result["operations"]}
        assert check_mode or set(statuses.values()) <= {"finished", "skipped"}
        assert set(statuses) == {"a", "b"} or not by_id
        reported = [body["operation"] for body in service.sent_json("operation")]
        reported += [operation for body in service.sent_json("operations") for operation in body["operations"]]
        assert {(key, status) for key, status in statuses.items() if status} <= {
            (operation["id"], operation["status"]) for operation in reported
        }


@given(scripts("keys", "creation", "revocation"), st.sampled_from(["never", "always"]), st.booleans())
def test_api_key_present(service: FuzzingService, script: Script, regenerate: str, check_mode: bool) -> None:
    """The result has the secret of the created key. At most two POSTs are sent, none in check mode."""
    result = result_of(
        service, script, lambda client: api_key_task.task(client, check_mode, name="deploy", regenerate=regenerate)
    )
    posts = [request for request in service.requests if request.method == "POST"]
    assert len(posts) <= (0 if check_mode else 2)
    if result and result.get("key") is not None:
        assert result["key"] == service.sent_json("creation")[-1]["key"]
        assert result["changed"] is True


@given(scripts("keys", "revocation"), st.sampled_from([{"name": "deploy"}, {"id": 2}]), st.booleans())
def test_api_key_absent(service: FuzzingService, script: Script, selector: dict[str, Any], check_mode: bool) -> None:
    """Only the selected keys are revoked, and none in check mode."""
    result = result_of(
        service,
        script,
        lambda client: api_key_task.task(client, check_mode, state="absent", allow_multiple=True, **selector),
    )
    deleted = {request.path.rpartition("/")[2] for request in service.requests if request.method == "DELETE"}
    selected = (
        [
            key
            for key in (service.sent_json("keys") or [[]])[0]
            if key.get("name") == "deploy" or key["id"] == selector.get("id")
        ]
        if deleted
        else []
    )
    assert deleted <= {str(key["id"]) for key in selected}
    assert not (deleted and check_mode)
    if result:
        assert result["changed"] is bool(result["revoked"])
