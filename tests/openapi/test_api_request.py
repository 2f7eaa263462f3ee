# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""api_request against the mock: every operation of the document, with its example body and its example response."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from conftest import Examples
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
MASKED_BY_NAME = {"email_and_password"}
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
CREATE_BRANCH = "POST /projects/{project_id}/branches"
# What can be created, by path: the array in the response that lists it, a body, and fields of the object for that body
OBJECTS: dict[str, tuple[str | None, dict[str, Any], dict[str, Any]]] = {
    "/projects": ("projects", {"project": {"name": "shop"}}, {"name": "shop"}),
    "/api_keys": (None, {"key_name": "ci"}, {"name": "ci"}),
    f"{PROJECT}/branches": ("branches", {"branch": {"name": "dev2"}}, {"name": "dev2"}),
    f"{PROJECT}/endpoints": (
        "endpoints",
        {"endpoint": {"branch_id": "br-aged-salad-637688", "type": "read_write"}},
        {"branch_id": "br-aged-salad-637688", "type": "read_write"},
    ),
    f"{BRANCH}/roles": ("roles", {"role": {"name": "sally"}}, {"name": "sally"}),
    f"{BRANCH}/databases": ("databases", {"database": {"name": "app", "owner_name": "casey"}}, {"name": "app"}),
}


def run(service: MockService, operation: str, path: str, check_mode: bool = False, **options: Any) -> Outcome:
    given = {option: value for option, value in options.items() if value is not None}
    connection = {"base_url": service.base_url, "api_key": "bearer-key"}
    return run_main(api_request, {**connection, "method": operation, "path": path, **given}, check_mode=check_mode)


def strings(value: Any, *fields: str) -> Iterator[tuple[Any, Any, set[str]]]:
    """The strings in a response: the object or array that has it, its index there, and the names of the fields around it."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for index, inner in entries:
        names = (*fields, index) if isinstance(index, str) else fields
        if isinstance(inner, str):
            yield value, index, set(names)
        yield from strings(inner, *names)


def test_all_operations_but_two_use_json(contract: Contract) -> None:
    others = {name for name, operation in contract.operations.items() if not contract.document.has_only_json(operation)}
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
    request = contract.document.example_request(operation)
    status, example = contract.document.example_response(operation)
    body, expected = copy.deepcopy(example), copy.deepcopy(example)
    secrets = [holder[index] for holder, index, fields in strings(request.body) if fields & SECRETS]
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


def test_other_successful_statuses(contract: Contract, service: MockService) -> None:
    """Such as 204 instead of 200 for an object that is gone already."""
    tested = 0
    for operation in contract.operations.values():
        for status in contract.document.successes(operation)[1:]:
            service.respond_once(str(operation), status)
            request = contract.document.example_request(operation)
            result = run(service, operation.method, request.path, body=request.body).success
            assert (result["status"], result["json"]) == (status, None)
            tested += 1
    assert tested >= 4


def test_check_mode_sends_nothing_but_get(contract: Contract, service: MockService, operation: Operation) -> None:
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
    field, body, match = OBJECTS[path]
    operation, example, items = listed(contract, path, field)
    existing = {**items[0], **match}
    service.reply(str(operation), with_items(example, field, [existing]), with_items(example, field, []))
    service.reply("GET /projects/{project_id}/operations", {"operations": []})

    result = run(service, "POST", path, body=body, find={"list": field, "match": match}).success

    assert (result["changed"], result["object"]) == (False, existing)
    assert {name.partition(" ")[0] for name, _body in service.sent} == {"GET"}


@pytest.mark.parametrize("path", OBJECTS)
def test_missing_object_is_created(contract: Contract, service: MockService, examples: Examples, path: str) -> None:
    field, body, match = OBJECTS[path]
    operation, example, _items = listed(contract, path, field)
    create = str(operation).replace("GET", "POST")
    [name] = body
    created = {**(examples[create][name] if field else examples[create]), **match}
    service.reply(create, {**examples[create], name: created} if field else created)
    service.reply(str(operation), with_items(example, field, []))

    result = run(service, "POST", path, body=body, find={"list": field, "match": match}, wait=False).success

    shown = {name: MASK if name in SECRETS else value for name, value in created.items()}
    assert (result["changed"], result["object"]) == (True, shown)
    assert service.sent == [(str(operation), None), (create, body)]


@pytest.mark.parametrize(
    ("path", "identifier"),
    [
        (f"{PROJECT}/branches", "id"),
        (f"{PROJECT}/endpoints", "id"),
        (f"{BRANCH}/databases", "name"),
        (f"{BRANCH}/roles", "name"),
    ],
)
def test_only_an_existing_object_is_deleted(
    contract: Contract, service: MockService, path: str, identifier: str
) -> None:
    field = path.rpartition("/")[2]
    operation, example, items = listed(contract, path, field)
    for value, expected in (("absent", ["GET"]), (items[0][identifier], ["GET", "DELETE"])):
        service.sent.clear()
        # Each page but the first one is empty.
        service.reply(str(operation), with_items(example, field, items[:1]), with_items(example, field, []))
        find = {"list": field, "match": {identifier: value}}
        result = run(service, "DELETE", f"{path}/{{{identifier}}}", find=find, wait=False).success
        assert (result["changed"], result["object"]) == ("DELETE" in expected, None)
        assert list(dict.fromkeys(name.partition(" ")[0] for name, _body in service.sent)) == expected


def test_update_is_sent_only_if_a_field_differs(service: MockService, examples: Examples) -> None:
    branches = "GET /projects/{project_id}/branches"
    [branch, *_others] = examples[branches]["branches"]
    update = "PATCH /projects/{project_id}/branches/{branch_id}"
    service.reply(update, {**examples[update], "branch": {**branch, "name": "other"}})
    for name, expected in ((branch["name"], False), ("other", True)):
        service.reply(branches, examples[branches], with_items(examples[branches], "branches", []))
        find = {"list": "branches", "match": {"id": branch["id"]}}
        body = {"branch": {"name": name}}
        result = run(service, "PATCH", f"{PROJECT}/branches/{{id}}", body=body, find=find, wait=False).success
        assert result["changed"] is expected
    assert service.sent[-1] == (update, {"branch": {"name": "other"}})


def test_operations_of_the_response_are_waited_for(service: MockService, examples: Examples) -> None:
    finished = examples[CREATE_BRANCH]["operations"]
    running = [{**operation, "status": "running"} for operation in finished]
    service.reply(CREATE_BRANCH, {**examples[CREATE_BRANCH], "operations": running})
    service.reply("GET /projects/{project_id}/operations", {"operations": running}, {"operations": finished})
    service.reply(
        "GET /projects/{project_id}/operations/{operation_id}", *({"operation": one[0]} for one in (running, finished))
    )
    result = run(service, "POST", f"{PROJECT}/branches", body={"branch": {"name": "dev2"}}).success
    assert result["operations"] == finished
    assert result["polls"] >= 2


def test_locked_project_is_waited_for(service: MockService) -> None:
    service.respond_once(CREATE_BRANCH, 423)
    result = run(service, "POST", f"{PROJECT}/branches", body={"branch": {"name": "dev2"}}, wait=False).success
    assert result["status"] == 201
    assert [name for name, _body in service.sent if name == CREATE_BRANCH] == [CREATE_BRANCH] * 2


def test_failure_has_the_fields_of_the_error(service: MockService) -> None:
    service.respond_once(CREATE_BRANCH, 422)
    outcome = run(service, "POST", f"{PROJECT}/branches", body={"branch": {"name": "dev2"}})
    assert (outcome.failure["status"], outcome.failure["message"]) == (422, "anymessage")
    assert outcome.failure["request_id"] == "anyrequestid"


def test_all_pages_of_a_list(service: MockService, examples: Examples) -> None:
    example = examples["GET /projects"]
    pages = [
        {**with_items(example, "projects", [project]), "pagination": {"cursor": project["id"]}}
        for project in example["projects"]
    ]
    # The list may be incomplete.
    pages[0]["unavailable_project_ids"] = ["lost-sea-1"]
    service.reply("GET /projects", *pages, with_items(example, "projects", []))
    result = run(service, "GET", "projects", all_pages=True, find={"list": "projects"}).success
    assert result["json"]["projects"] == example["projects"]


def listed(contract: Contract, path: str, field: str | None) -> tuple[Operation, Any, list[dict[str, Any]]]:
    """The operation that lists what is at this path, its example response, and the items in that."""
    operation = contract.find(Request(EnvironBuilder(path).get_environ()))
    assert operation
    _status, example = contract.document.example_response(operation)
    return operation, example, example[field] if field else example


def with_items(example: Any, field: str | None, items: list[dict[str, Any]]) -> Any:
    """An example response with other items in its list."""
    return {**example, field: items} if field else items
