# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sandbox accepts the requests of the public service's document, its responses are valid by that document, and the rows of the
table of resources have only what it has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import requests
from conftest import ROLE, SPARE_ROLE, Account
from contract import Contract, query_parameters
from werkzeug.test import EnvironBuilder
from werkzeug.wrappers import Request, Response

from ansible_collections.clouddb.control.plugins.module_utils._http.pages import LARGEST
from ansible_collections.clouddb.control.plugins.module_utils._resources import kinds
from ansible_collections.clouddb.control.tests.unit.support.openapi_rows import ROWS, Described, problems, resolved
from ansible_collections.clouddb.control.tests.unit.support.sandbox import API_KEY
from clouddb_sandbox.app import openapi_document
from clouddb_sandbox.paths import BASE_PATH

SANDBOX_OPERATIONS = {
    f"{method.upper()} {path.removeprefix(BASE_PATH)}"
    for path, item in openapi_document()["paths"].items()
    for method in item
    if path.startswith(BASE_PATH)
}
# Bodies of requests for which the document has no example, by the end of their path
BODIES: dict[str, Any] = {
    "restore": {"name": "restored", "finalize_restore": True},
    "finalize_restore": {"name": "kept"},
    "backup_schedule": {"schedule": [{"frequency": "daily", "hour": 3, "retention_seconds": 86400}]},
    "{snapshot_id}": {"snapshot": {"name": "release"}},
    "permissions": {"email": "colleague@example.com"},
}


def branch_for(account: Account, path: str) -> dict[str, str]:
    """The branch that a request of snapshots is possible for, if it is not just any."""
    if path.endswith("/finalize_restore"):
        restored = account.create("/projects/{project_id}/snapshots/{snapshot_id}/restore", {})
        return {"branch_id": restored["branch"]["id"]}
    return {"branch_id": account.parent_id} if path.endswith(("/snapshot", "/backup_schedule")) else {}


# The README names them, and why.
DROPPED_FIELDS = {
    "POST /projects project.branch.annotations",
    "POST /projects/{project_id}/branches annotation_value",
    "POST /projects/{project_id}/branches branch.archived",
    "POST /projects/{project_id}/branches/{branch_id}/roles role.no_login",
    "PATCH /projects/{project_id}/endpoints/{endpoint_id} endpoint.branch_id",
    # Ours only: the newer @neon/sdk 6.1.2 has it.
    "PATCH /projects/{project_id}/snapshots/{snapshot_id} snapshot.expires_at",
}
BOUNDS = ("type", "minimum", "maximum", "minLength", "maxLength", "pattern", "enum")


@pytest.mark.smoke
@pytest.mark.parametrize("name", sorted(SANDBOX_OPERATIONS))
def test_a_body_has_the_schema_of_the_document(contract: Contract, name: str) -> None:
    theirs = schema_of_body(contract.document.content, contract.operations[name].definition)
    method, path = name.split()
    ours = schema_of_body(openapi_document(), openapi_document()["paths"][BASE_PATH + path][method.lower()])
    found = set(differences(contract.document.content, theirs, ours))
    dropped = {each for each in DROPPED_FIELDS if each.startswith(f"{name} ")}
    assert {f"{name} {difference}" for difference in found} == dropped


def schema_of_body(document: dict[str, Any], operation: dict[str, Any]) -> dict[str, Any]:
    body = resolved(document, operation.get("requestBody", {}))
    schema: dict[str, Any] = body["content"]["application/json"]["schema"] if body else {}
    return schema


def differences(
    content: dict[str, Any], theirs: dict[str, Any], ours: dict[str, Any], place: str = ""
) -> Iterator[str]:
    """The fields that one of the schemas lacks, and the bounds that only theirs has; ours may have more."""
    theirs, ours = resolved(content, theirs), of_value(ours)
    yield from (f"{place}{bound}" for bound in BOUNDS if bound in theirs and theirs[bound] != ours.get(bound))
    fields, our_fields = theirs.get("properties", {}), ours.get("properties", {})
    if fields or theirs.get("type") != "object":
        yield from (f"{place}{field}" for field in fields.keys() ^ our_fields.keys())
    for field in fields.keys() & our_fields.keys():
        yield from differences(content, fields[field], our_fields[field], f"{place}{field}.")
    if "items" in theirs:
        yield from differences(content, theirs["items"], ours["items"], f"{place}*.")


def of_value(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of our value when it is not null, in the words of the document."""
    schema = resolved(openapi_document(), schema)
    forms = [each for each in schema.get("anyOf", []) if each != {"type": "null"}]
    schema = resolved(openapi_document(), forms[0]) if forms else schema
    return {**schema, "enum": [schema["const"]]} if "const" in schema else schema


@pytest.mark.parametrize("name", sorted(SANDBOX_OPERATIONS))
def test_example_request_gets_a_valid_response(account: Account, contract: Contract, name: str) -> None:
    operation = contract.operations[name]
    key = {"key_id": account.org_key_id} if "{org_id}" in operation.path else {}
    # A role that owns a database is not deleted.
    role = {"role_name": SPARE_ROLE} if name.startswith("DELETE") else {}
    path = operation.path.format(**{**account.parameters, **key, **role, **branch_for(account, operation.path)})
    if path.endswith("/recover"):
        account.sandbox.api("DELETE", path.removesuffix("/recover"))
        account.sandbox.advance(60)
    query = {field: account.parameters[field] for field in query_parameters(operation) & account.parameters.keys()}
    end = operation.path.rsplit("/", 1)[1]
    body = BODIES[end] if name.startswith("P") and end in BODIES else contract.document.example_body(operation)
    if operation.path.endswith("{branch_id}/restore"):
        body = {"source_branch_id": account.parent_id}
    own = {"branch": ("parent_id", account.parent_id), "endpoint": ("branch_id", account.bare_branch_id)}
    for kind, (field, value) in {**own, "database": ("owner_name", ROLE)}.items():
        if body and field in body.get(kind, {}):
            body = {kind: {**body[kind], field: value}}
    sent = {"json": body, "headers": {"Authorization": f"Bearer {API_KEY}"}}
    received = requests.request(operation.method, account.sandbox.base_url + path, params=query, timeout=60, **sent)
    assert received.ok, received.text

    request = Request(EnvironBuilder(path, method=operation.method, query_string=query, **sent).get_environ())
    assert contract.request_errors(request) == []
    response = Response(received.content, received.status_code, mimetype=received.headers["Content-Type"])
    assert contract.response_errors(request, response) == []


@pytest.mark.smoke
def test_error_is_valid(account: Account, contract: Contract) -> None:
    """api.md shows no error bodies. By the document they are alike for every operation."""
    headers = {"Authorization": "Bearer invalid"}
    for name in sorted(SANDBOX_OPERATIONS):
        operation = contract.operations[name]
        path = operation.path.format(**account.parameters)
        received = requests.request(operation.method, account.sandbox.base_url + path, headers=headers, timeout=60)
        request = Request(EnvironBuilder(path, method=operation.method).get_environ())
        response = Response(received.content, received.status_code, mimetype=received.headers["Content-Type"])
        assert received.status_code == 401
        assert contract.response_errors(request, response) == []


def test_validation_notices_invalid_bodies(contract: Contract) -> None:
    headers = {"Authorization": "Bearer key"}
    create = EnvironBuilder("/api_keys", method="POST", json={"key_name": "ci", "title": "ci"}, headers=headers)
    assert contract.request_errors(Request(create.get_environ()))
    listed = Request(EnvironBuilder("/projects", headers=headers).get_environ())
    assert contract.request_errors(listed) == []
    assert contract.response_errors(listed, Response('{"projects": []}', mimetype="application/json"))


@pytest.mark.smoke
@pytest.mark.parametrize("name", ROWS)
def test_a_row_is_what_the_document_describes(contract: Contract, name: str) -> None:
    assert set(problems(getattr(kinds, name), Described(contract.document.content))) <= {
        "PATCH /projects/{}/snapshots/{} has no expires_at"  # but the newer @neon/sdk 6.1.2 has it
    }


def largest_pages(content: Mapping[str, Any]) -> set[tuple[str, int]]:
    """The maximum of C(limit) of each list in a document, with the last segment of its path."""
    found = set()
    for path, item in content["paths"].items():
        for parameter in (*item.get("parameters", ()), *item.get("get", {}).get("parameters", ())):
            limit = resolved(content, parameter)
            if limit["name"] == "limit" and path.startswith((f"{BASE_PATH}/projects", "/projects")):
                found.add((path.rsplit("/", 1)[-1], limit["schema"]["maximum"]))
    return found


@pytest.mark.smoke
def test_pages_are_as_large_as_the_document_allows(contract: Contract) -> None:
    published = largest_pages(contract.document.content)
    assert LARGEST.items() <= published
    assert {*LARGEST.items()} - {("shared", LARGEST["shared"])} <= largest_pages(openapi_document()) <= published
