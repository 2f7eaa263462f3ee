# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""api_request against the mock: every operation of the document, with its example body and its example response."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from document import Operation
from mock_service import Contract, MockService
from werkzeug.test import EnvironBuilder
from werkzeug.wrappers import Request

from ansible_collections.clouddb.control.plugins.modules import api_request
from ansible_collections.clouddb.control.tests.unit.support.module_main import Outcome, run_main

pytestmark = pytest.mark.usefixtures("no_delays")

MASK = "VALUE_SPECIFIED_IN_NO_LOG_PARAMETER"
# Fields of the document's responses that give access to something.
SECRETS = {
    "api_token",
    "client_secret",
    "connection_uri",
    "key",
    "password",
    "s3_secret_access_key",
    "secret_server_key",
}
# Fields that are masked although they give no access: their names contain that of a secret.
MASKED_BY_NAME = {"email_and_password", "token_id", "token_id_short"}
# Fields that the document marks as sensitive because they name people, databases or hosts.
PRIVATE = {
    *("address_city", "address_country", "address_line1", "address_line2", "address_postal_code", "address_state"),
    *("column_name", "database", "database_name", "db_name", "email", "granted_to_email", "host", "last_name", "login"),
    *(
        "masking_function",
        "masking_value",
        "name",
        "pooler_host",
        "pub_client_key",
        "schema_name",
        "state",
        "table_name",
    ),
    *("tax_id", "username"),
}
ADDRESS = "postgresql://alex:{password}@ep-cool-darkness-123456.example.com/neondb?sslmode=require"

PROJECT = "/projects/spring-example-302709"
BRANCH = f"{PROJECT}/branches/br-aged-salad-637688"
OBJECTS = {
    # A list, its name in the response, and what is created in it
    "/projects": ("projects", {"project": {"name": "shiny-wind-028834"}}),
    "/api_keys": (None, {"key_name": "mykey_1"}),
    f"{PROJECT}/branches": ("branches", {"branch": {"name": "dev2"}}),
    f"{PROJECT}/endpoints": ("endpoints", {"endpoint": {"branch_id": "br-aged-salad-637688", "type": "read_write"}}),
    f"{BRANCH}/roles": ("roles", {"role": {"name": "sally"}}),
    f"{BRANCH}/databases": ("databases", {"database": {"name": "neondb", "owner_name": "casey"}}),
}


def run(service: MockService, operation: str, path: str, check_mode: bool = False, **options: Any) -> Outcome:
    connection = {"base_url": service.base_url, "api_key": "bearer-key"}
    return run_main(api_request, {**connection, "method": operation, "path": path, **options}, check_mode=check_mode)


def strings(value: Any, *fields: str) -> Iterator[tuple[Any, Any, set[str]]]:
    """The strings in a response: the object or array that has it, its index there, and the names of the fields around it."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for index, inner in entries:
        names = (*fields, index) if isinstance(index, str) else fields
        if isinstance(inner, str):
            yield value, index, set(names)
        yield from strings(inner, *names)


def is_json(contract: Contract, operation: Operation) -> bool:
    """Whether bodies of requests and responses are JSON."""
    responses = [operation.definition["responses"][status] for status in operation.definition["responses"]]
    holders = [operation.definition.get("requestBody", {}), *responses]
    return all(set(contract.document.resolve(each).get("content", {})) <= {"application/json"} for each in holders)


def test_all_operations_but_two_use_json(contract: Contract) -> None:
    others = {name for name, operation in contract.operations.items() if not is_json(contract, operation)}
    branch = "/projects/{project_id}/branches/{branch_id}"
    assert others == {
        f"GET {branch}/buckets/{{bucket_name}}/objects/{{object_key}}/download",
        f"POST {branch}/functions/{{slug}}/deployments",
    }
    assert len(contract.operations) > 150


def test_fields_that_the_document_marks_as_sensitive_are_known(contract: Contract) -> None:
    objects = {"connection_uris", "roles"}
    schemas = contract.document.content["components"]["schemas"].values()
    sensitive = {field for schema in schemas for field in schema.get("x-sensitive", [])}
    assert sensitive | {"client_secret"} == SECRETS | PRIVATE | objects


def test_every_operation(contract: Contract, service: MockService, operation: Operation) -> None:
    """The request is valid, and the result is the example response without its secrets."""
    if not is_json(contract, operation):
        return
    request = contract.document.example_request(operation)
    status, body = contract.document.example_response(operation)
    body = copy.deepcopy(body)
    expected = copy.deepcopy(body)
    secrets = []
    for (holder, index, fields), (shown, _index, _fields) in zip(list(strings(body)), list(strings(expected))):
        if fields & SECRETS:
            secrets.append(f"secret-{len(secrets)}-of-the-response")
            holder[index] = secrets[-1]
        if fields & (SECRETS | MASKED_BY_NAME):
            shown[index] = MASK
    service.reply(str(operation), body)

    options = {"query": request.query, "body": request.body, "wait": False}
    outcome = run(service, operation.method, request.path, **options)

    result = outcome.success
    assert (result["changed"], result["status"]) == (operation.method != "GET", status)
    assert result["json"] == expected
    assert service.sent == [(str(operation), request.body)]
    assert [secret for secret in secrets if secret in outcome.printed] == []


def test_check_mode_sends_nothing_but_get(contract: Contract, service: MockService, operation: Operation) -> None:
    if not is_json(contract, operation):
        return
    request = contract.document.example_request(operation)
    options = {"query": request.query, "body": request.body}
    result = run(service, operation.method, request.path, check_mode=True, **options).success
    assert result["changed"] == (operation.method != "GET")
    assert [method for method, _body in service.sent] == ([str(operation)] if operation.method == "GET" else [])


@pytest.mark.parametrize("address", [ADDRESS.format(password="p-4ssw0rd"), ADDRESS.format(password="p%2F4ssw0rd")])
def test_address_with_a_password_is_masked(service: MockService, address: str) -> None:
    service.reply("GET /projects/{project_id}/connection_uri", {"uri": address})
    query = {"database_name": "neondb", "role_name": "alex", "pooled": True}
    outcome = run(service, "GET", f"{PROJECT}/connection_uri", query=query)
    assert outcome.success["json"] == {"uri": MASK}
    assert "4ssw0rd" not in outcome.printed
    assert run(service, "GET", f"{PROJECT}/connection_uri", query=query, expose_secrets=True).success["json"] == {
        "uri": address
    }


@pytest.mark.parametrize("path", OBJECTS)
def test_existing_object_is_not_created(contract: Contract, service: MockService, path: str) -> None:
    listed, body = OBJECTS[path]
    [fields] = [value for value in body.values() if isinstance(value, dict)] or [{"name": body.get("key_name")}]
    operation = list_operation(contract, path)
    _status, example = contract.document.example_response(operation)
    items = example[listed] if listed else example
    first = {**items[0], **fields}
    service.reply(
        str(operation), {**example, listed: [first]} if listed else [first], {**example, listed: []} if listed else []
    )
    service.reply("GET /projects/{project_id}/operations", {"operations": []})

    result = run(service, "POST", path, body=body, find={"list": listed, "match": fields}).success

    assert (result["changed"], result["object"]) == (False, first)
    assert not [name for name, _body in service.sent if not name.startswith("GET")]


@pytest.mark.parametrize("path", OBJECTS)
def test_missing_object_is_created(contract: Contract, service: MockService, path: str) -> None:
    listed, body = OBJECTS[path]
    operation = list_operation(contract, path)
    _status, example = contract.document.example_response(operation)
    service.reply(str(operation), {**example, listed: []} if listed else [])
    result = run(
        service, "POST", path, body=body, wait=False, find={"list": listed, "match": {"name": "absent"}}
    ).success
    assert result["changed"] is True
    assert [sent for sent in service.sent if sent[1] is not None] == [(str(operation).replace("GET", "POST"), body)]


@pytest.mark.parametrize("item", ["branch", "database", "role", "endpoint"])
def test_missing_object_is_not_deleted(contract: Contract, service: MockService, item: str) -> None:
    path, listed = (f"{PROJECT}/branches", "branches") if item == "branch" else (f"{BRANCH}/{item}s", f"{item}s")
    if item == "endpoint":
        path = f"{PROJECT}/endpoints"
    identifier = "{name}" if item in ("database", "role") else "{id}"
    find = {"list": listed, "match": {"name": "absent"}}
    operation = list_operation(contract, path)
    _status, example = contract.document.example_response(operation)
    service.reply(str(operation), example, {**example, listed: []})
    assert run(service, "DELETE", f"{path}/{identifier}", find=find).success["changed"] is False

    service.sent.clear()
    service.reply(str(operation), example, {**example, listed: []})
    # The last one, because the databases of the example have the same id.
    find["match"] = {identifier.strip("{}"): example[listed][-1][identifier.strip("{}")]}
    deleted = run(service, "DELETE", f"{path}/{identifier}", find=find, wait=False).success
    assert (deleted["changed"], deleted["object"]) == (True, None)
    assert [name.partition(" ")[0] for name, _body in service.sent][-1] == "DELETE"


def test_update_is_sent_only_if_a_field_differs(contract: Contract, service: MockService) -> None:
    _status, example = contract.document.example_response(contract.operations["GET /projects/{project_id}/branches"])
    service.reply("GET /projects/{project_id}/branches", example, {**example, "branches": []})
    [branch, *_others] = example["branches"]
    options = {"find": {"list": "branches", "match": {"id": branch["id"]}}, "wait": False}
    same = run(service, "PATCH", f"{PROJECT}/branches/{{id}}", body={"branch": {"name": branch["name"]}}, **options)
    assert same.success["changed"] is False
    service.reply("GET /projects/{project_id}/branches", example, {**example, "branches": []})
    other = run(service, "PATCH", f"{PROJECT}/branches/{{id}}", body={"branch": {"name": "other"}}, **options)
    assert other.success["changed"] is True
    assert service.sent[-1] == ("PATCH /projects/{project_id}/branches/{branch_id}", {"branch": {"name": "other"}})


def test_operations_of_the_response_are_waited_for(contract: Contract, service: MockService) -> None:
    create = contract.operations["POST /projects/{project_id}/branches"]
    _status, body = contract.document.example_response(create)
    finished = body["operations"]
    running = [{**operation, "status": "running"} for operation in finished]
    service.reply(str(create), {**body, "operations": running})
    service.reply("GET /projects/{project_id}/operations", {"operations": running}, {"operations": finished})
    service.reply(
        "GET /projects/{project_id}/operations/{operation_id}", *({"operation": one[0]} for one in (running, finished))
    )
    result = run(service, "POST", f"{PROJECT}/branches", body={"branch": {"name": "dev2"}}).success
    assert result["operations"] == finished
    assert result["polls"] >= 2


def test_locked_project_is_waited_for(contract: Contract, service: MockService) -> None:
    """The document describes errors by one response, whatever their status."""
    create = "POST /projects/{project_id}/branches"
    service.fail_once(create, 423)
    result = run(service, "POST", f"{PROJECT}/branches", body={"branch": {"name": "dev2"}}, wait=False).success
    assert (result["status"], [name for name, _body in service.sent if name == create]) == (201, [create] * 2)


def test_failure_has_the_fields_of_the_error(service: MockService) -> None:
    service.fail_once("POST /projects/{project_id}/branches", 422)
    outcome = run(service, "POST", f"{PROJECT}/branches", body={"branch": {"name": "dev2"}})
    assert (outcome.failure["status"], outcome.failure["message"]) == (422, "anymessage")
    assert outcome.failure["request_id"] == "anyrequestid"


def test_all_pages_of_a_list(contract: Contract, service: MockService) -> None:
    _status, example = contract.document.example_response(contract.operations["GET /projects"])
    pages = [
        {**example, "projects": [project], "pagination": {"cursor": project["id"]}} for project in example["projects"]
    ]
    # The list may be incomplete.
    pages[0]["unavailable_project_ids"] = ["lost-sea-1"]
    service.reply("GET /projects", *pages, {**example, "projects": []})
    result = run(service, "GET", "projects", all_pages=True, find={"list": "projects"}).success
    assert result["json"]["projects"] == example["projects"]


def list_operation(contract: Contract, path: str) -> Operation:
    """The operation that lists what is at this path."""
    operation = contract.find(Request(EnvironBuilder(path=path, method="GET").get_environ()))
    assert operation
    return operation
