# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Responses with any JSON or other bytes: modules, inventory and event source return a correct result or a typed error.

No text of the service becomes a template, a control sequence or the id of something else.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from typing import Any
from unittest import mock

import pytest
from ansible.inventory.data import InventoryData
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.clouddb.control.plugins.inventory import projects as inventory_projects
from ansible_collections.clouddb.control.plugins.module_utils._errors import ClouddbError
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.module_utils._projects import Filters
from ansible_collections.clouddb.control.plugins.module_utils._untrusted import is_id
from ansible_collections.clouddb.control.plugins.modules import (
    operation_info,
    operation_wait,
    project_info,
)
from ansible_collections.clouddb.control.plugins.plugin_utils._events.changes import SeenOperations, read_operations
from ansible_collections.clouddb.control.plugins.plugin_utils._events.emitter import event_of
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

# Valid in texts, but not in ids.
HOSTILE = [
    "{{ lookup('ansible.builtin.pipe', 'id') }}",
    *("{% raw %}", "-o", ".", "..", "db1.yml", "\x1b[31m\x07", "\u202e", "two\nlines", "\0", "../x", "a/b"),
    "$ANSIBLE_VAULT;1.1;AES256",
]
numbers = st.integers() | st.floats() | st.sampled_from([10**30, 10**4000, -(2**63) - 1])
texts = st.text(max_size=20) | st.sampled_from(["", ".", "..", "a", "p", "finished", "x" * 5000, "\ud800", *HOSTILE])
hostile = st.sampled_from(HOSTILE)
names = st.text(max_size=5) | st.sampled_from(["id", "status", "cursor", "__ansible_type", "__ansible_vault", *HOSTILE])
anything = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=4,
)
times = st.sampled_from(
    ["2026-11-21T07:00:00Z", "2026-11-21T08:00:00.123456789+02:00", "9999-12-31T23:59:59-14:00", "soon"]
)
ids = st.sampled_from(["a", "b", "p"])
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
    project_id=st.sampled_from(["p", "p", "p", "p", "p", "p", "p", "a"]),
    action=st.sampled_from(["start_compute", "new"]),
    status=statuses,
    created_at=times,
    failures_count=st.integers(0, 3),
    error=st.none() | hostile,
)
project = thing(id=ids, name=hostile, region_id=hostile, created_at=times, ansible_host=hostile)
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
    """The result of the module, or None if it raised a typed error; checks that either is valid JSON that Ansible can pass on."""
    service.replies = {endpoint: list(scripted_replies) for endpoint, scripted_replies in script.items()}
    service.sent = defaultdict(list)
    service.requests.clear()
    try:
        result = run(scripted(service, api_retries=1).client)
    except ClouddbError as error:
        failure = error.as_result()
        assert failure["msg"].strip()
        assert failure["failure"]["kind"]
        json.dumps(failure, allow_nan=False)
        # Operations of a wait are data; the rest is shown.
        shown = {field: value for field, value in failure.items() if field not in ("operations", "warnings")}
        assert all(text.isprintable() for text in texts_of(shown))
        return None
    json.dumps(result, ensure_ascii=False, allow_nan=False).encode()
    assert all(not has_template(name) for name in names_of(result))
    return result


def texts_of(value: Any) -> list[str]:
    """All strings in this value, the names of its fields included."""
    if isinstance(value, dict):
        return [*value, *(text for item in value.values() for text in texts_of(item))]
    if isinstance(value, list):
        return [text for item in value for text in texts_of(item)]
    return [value] if isinstance(value, str) else []


def names_of(value: Any) -> list[str]:
    """The names of all fields in this value."""
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return [*(value if isinstance(value, dict) else []), *(name for item in inner for name in names_of(item))]


def has_template(text: str) -> bool:
    return re.search(r"\{[{%#]", text) is not None


def ids_of(things: list[dict[str, Any]]) -> list[Any]:
    return [thing["id"] for thing in things]


@given(scripts("projects"))
def test_project_info(service: FuzzingService, script: Script) -> None:
    options = ["project_id", "name", "region_id", "page_size", "query", "fields"]
    params = {**dict.fromkeys(options), "required": False}
    result = result_of(service, script, lambda client: project_info.run(params, client, False))
    if result:
        assert ids_of(result["projects"]) == service.sent_ids("projects")


SELECT_ALL = {
    **dict.fromkeys(["query", "operation_id", "status", "action", "branch_id", "endpoint_id"]),
    **dict.fromkeys(["created_after", "max_results", "fields"]),
    "summary_only": False,
}


@given(scripts("operations"))
def test_operation_info_of_a_project(service: FuzzingService, script: Script) -> None:
    params = {**SELECT_ALL, "project": None, "project_id": "p", "page_size": 2, "workers": 1}
    result = result_of(service, script, lambda client: operation_info.run(params, client, False))
    if result:
        assert sorted(ids_of(result["operations"])) == sorted(service.sent_ids("operations"))
        assert {operation.get("project_id") for operation in result["operations"]} <= {"p", None}
        assert result["summary"]["total"] == len(result["operations"])


@given(scripts("operation", "operations"), st.booleans(), st.booleans())
def test_operation_wait(service: FuzzingService, script: Script, by_id: bool, check_mode: bool) -> None:
    """The wait succeeds only if the service reported a final status of success for every operation."""
    limits = {"timeout": 10, "interval": 5, "failed_grace": 0, "lookback": 0, "workers": 1}
    selected = {"project": None, "project_id": "p", "operation_id": ["a", "b"] if by_id else None, "operations": None}
    params = {**limits, **selected}
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


@given(scripts("projects", "operations"))
def test_inventory(service: FuzzingService, script: Script) -> None:
    """Each project is a host, whose name is no path, no template and no other project's; all values are marked as unsafe."""
    options = {"filters": Filters(), "query": {}, "page_size": None, "operations": True, "workers": 1}
    account = result_of(service, script, lambda client: inventory_projects._fetch(client, options))
    if account:
        inventory = populated(account)
        hosts = {host.vars["clouddb_id"]: host for host in inventory.hosts.values()}
        assert sorted(hosts) == sorted(service.sent_ids("projects"))
        for host in hosts.values():
            assert is_id(host.name)
            assert not host.name.startswith((".", "-"))
            assert not host.name.lower().endswith((".yml", ".yaml", ".json"))
            assert all(re.fullmatch("composed|clouddb_[A-Za-z0-9_]+|inventory_\\w+", name) for name in host.vars)
            assert all(is_unsafe(text) for name in host.vars for text in texts_of(host.vars[name]))
        assert all(re.fullmatch(r"\w+", name) for name in inventory.groups)


def populated(account: dict[str, Any]) -> InventoryData:
    """The inventory of this account, with a composed variable and a group from the service's texts."""
    plugin = inventory_projects.InventoryModule()
    plugin.inventory = InventoryData()
    plugin.templar = Templar(loader=DataLoader())
    plugin.display = mock.Mock()
    options = {
        "hostnames": ["name", "id"],
        "hostvars_prefix": "clouddb_",
        "compose": {"composed": "[clouddb_name | default('') | string, 'x ' ~ (clouddb_region_id | default(''))]"},
        "keyed_groups": [{"key": "clouddb_region_id | default('x', true) | string", "prefix": "", "separator": ""}],
        "leading_separator": False,
        "use_extra_vars": False,
    }
    with mock.patch.object(plugin, "get_option", side_effect=options.get):
        plugin._populate(account)
    warned = [str(call.args[0]) for call in plugin.display.warning.call_args_list]
    assert all(text.isprintable() for text in warned)
    return plugin.inventory


def is_unsafe(text: str) -> bool:
    """Whether Ansible leaves this text as it is: it is marked as unsafe, or, since ansible-core 2.19, not marked as trusted."""
    try:
        from ansible._internal._datatag._tags import TrustedAsTemplate
    except ImportError:  # ansible-core up to 2.18
        return getattr(text, "__UNSAFE__", False)
    return not TrustedAsTemplate.is_tagged_on(text)


@given(scripts("operation", "operations"), project)
def test_events(service: FuzzingService, script: Script, listed_project: dict[str, Any]) -> None:
    """The texts of an event are displayable and hold no templates; its operation belongs to the project."""

    def events(client: Client) -> dict[str, Any]:
        seen = SeenOperations(datetime(1990, 1, 1, tzinfo=timezone.utc))
        changes = seen.changes(read_operations(client, "p", seen, ()))
        return {"events": [event_of(change, {**listed_project, "id": "p"}) for change in changes]}

    try:
        json.dumps(listed_project, ensure_ascii=False, allow_nan=False).encode()
    except (RecursionError, ValueError):
        return  # the list of projects would not have been accepted
    result = result_of(service, script, events)
    for event in result["events"] if result else []:
        assert not any(has_template(text) or "$ANSIBLE_VAULT" in text for text in texts_of(event))
        assert all(text.isprintable() for text in texts_of(event))
        assert is_id(event["clouddb"]["operation"]["id"])
        assert event["clouddb"]["operation"].get("project_id") in ("p", None)
