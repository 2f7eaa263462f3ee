# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Databases and roles of a branch, their passwords, and the connection URIs that contain these."""

from __future__ import annotations

import json
from urllib.parse import unquote, urlsplit

import pytest

PROJECT = "wispy-lake-12345678"
CONNECTION_URI = f"projects/{PROJECT}/connection_uri"


@pytest.fixture
def branch(service):
    return f"projects/{PROJECT}/branches/{service.default_branch()}"


@pytest.fixture
def databases(service):
    return f"projects/{PROJECT}/branches/{service.default_branch()}/databases"


def names_of(service, databases):
    return [database["name"] for database in service.ok("GET", databases)["databases"]]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [({"name": "sales"}, ("sales", "clouddb_owner")), ({"name": None, "owner_name": "app"}, ("orders", "app"))],
)
def test_update_of_a_database(service, databases, changes, expected):
    """Fields that are missing or null stay as they are. The id stays the same."""
    service.finished("POST", databases.replace("/databases", "/roles"), json={"role": {"name": "app"}})
    before = service.create_database(service.default_branch()).json()["database"]
    service.advance(5)
    changed = service.ok("PATCH", f"{databases}/orders", json={"database": changes})["database"]
    assert (changed["name"], changed["owner_name"]) == expected
    assert (changed["id"], changed["created_at"]) == (before["id"], before["created_at"])
    assert before["updated_at"] < changed["updated_at"]
    assert service.ok("GET", f"{databases}/{expected[0]}")["database"] == changed
    assert names_of(service, databases) == ["clouddb", expected[0]]


def test_database_with_special_characters(service, databases):
    name = "büro/& 100 %2F?#"
    service.ok("POST", databases, json={"database": {"name": name, "owner_name": "clouddb_owner"}})
    path = f"{databases}/b%C3%BCro%2F%26%20100%20%252F%3F%23"
    assert service.ok("GET", path)["database"]["name"] == name
    service.advance(5)
    assert service.ok("DELETE", path)["database"]["name"] == name
    assert names_of(service, databases) == ["clouddb"]


def create_role(service, branch, name="app"):
    return service.finished("POST", f"{branch}/roles", json={"role": {"name": name}})["role"]


def test_create(service, branch):
    response = service.request("POST", f"{branch}/roles", json={"role": {"name": "app"}})
    assert response.status_code == 201
    role = response.json()["role"]
    password = role.pop("password")
    assert len(password) >= 16
    assert role.keys() == {"branch_id", "name", "protected", "created_at", "updated_at"}
    assert (role["name"], role["protected"]) == ("app", False)
    assert service.ok("GET", f"{branch}/roles/app") == {"role": role}
    assert service.ok("GET", f"{branch}/roles")["roles"][1] == role
    assert service.ok("GET", f"{branch}/roles/app/reveal_password") == {"password": password}


def test_reset_password(service, branch):
    role = create_role(service, branch)
    reset = service.ok("POST", f"{branch}/roles/app/reset_password")["role"]
    assert reset["password"] != role["password"]
    assert role["updated_at"] < reset["updated_at"]
    assert service.ok("GET", f"{branch}/roles/app/reveal_password")["password"] == reset["password"]


def test_delete(service, branch):
    create_role(service, branch)
    deleted = service.ok("DELETE", f"{branch}/roles/app")["role"]
    assert (deleted["name"], "password" in deleted) == ("app", False)
    assert [role["name"] for role in service.ok("GET", f"{branch}/roles")["roles"]] == ["clouddb_owner"]


def test_new_project_has_connection_uri_and_role_with_password(service):
    created = service.ok("POST", "projects", json={"project": {"name": "wiki", "region_id": "aws-us-east-2"}})
    (role,), (database,), (connection,) = created["roles"], created["databases"], created["connection_uris"]
    (endpoint,) = created["endpoints"]
    assert (database["name"], database["owner_name"], role["name"]) == ("clouddb", "clouddb_owner", "clouddb_owner")
    assert connection["connection_parameters"] == {
        "database": "clouddb",
        "password": role["password"],
        "role": "clouddb_owner",
        "host": endpoint["host"],
        "pooler_host": f"{endpoint['id']}-pooler.aws-us-east-2.clouddb.example",
    }
    uri = f"postgresql://clouddb_owner:{role['password']}@{endpoint['host']}/clouddb?sslmode=require"
    assert connection["connection_uri"] == uri


def test_new_branch_has_a_connection_uri_with_one_role_and_one_database(service, branch):
    """As in the public service: not with more of them, nor without a compute."""
    created = service.create_branch()
    (connection,) = created["connection_uris"]
    revealed = service.ok("GET", f"{branch}/roles/clouddb_owner/reveal_password")["password"]
    assert connection["connection_parameters"]["password"] == revealed
    assert connection["connection_parameters"]["host"] == created["endpoints"][0]["host"]
    assert "connection_uris" not in service.create_branch(endpoints=[])
    create_role(service, branch)
    assert "connection_uris" not in service.create_branch()
    service.finished("DELETE", f"{branch}/roles/app")
    assert "connection_uris" in service.create_branch()
    service.create_database(service.default_branch())
    service.advance(5)
    assert "connection_uris" not in service.create_branch()


def test_connection_uri(service, branch):
    """Of the default branch, unless branch_id is given. Names are encoded."""
    role = create_role(service, branch, "me@home/ü")
    uri = service.ok("GET", CONNECTION_URI, params={"database_name": "clouddb", "role_name": "me@home/ü"})["uri"]
    parts = urlsplit(uri)
    assert (unquote(parts.username), parts.password) == ("me@home/ü", role["password"])
    assert (parts.scheme, parts.path, parts.query) == ("postgresql", "/clouddb", "sslmode=require")
    computes = service.ok("GET", f"projects/{PROJECT}/endpoints")["endpoints"]
    hosts = {each["branch_id"]: each["host"] for each in computes}
    assert parts.hostname == hosts[service.default_branch()]
    other = service.create_branch()["branch"]["id"]
    params = {"database_name": "clouddb", "role_name": "clouddb_owner", "branch_id": other}
    host = urlsplit(service.ok("GET", CONNECTION_URI, params=params)["uri"]).hostname
    assert host not in hosts.values()


def test_connection_uri_of_another_compute_and_of_the_pooler(service):
    replica, writer = {"type": "read_only"}, {"type": "read_write"}
    created = service.create_branch(endpoints=[replica, writer])
    params = {"database_name": "clouddb", "role_name": "clouddb_owner", "branch_id": created["branch"]["id"]}
    replica, writer = created["endpoints"]

    def host(**more):
        return urlsplit(service.ok("GET", CONNECTION_URI, params={**params, **more})["uri"]).hostname

    assert (host(), host(endpoint_id=replica["id"])) == (writer["host"], replica["host"])
    assert host(pooled="true", endpoint_id=replica["id"]) == replica["host"].replace(".", "-pooler.", 1)
    del params["branch_id"]
    assert service.get(CONNECTION_URI, **params, endpoint_id=replica["id"]).status_code == 404


def test_passwords_are_only_in_responses_that_are_about_them(service, branch):
    role = create_role(service, branch)
    created = service.create_branch()
    secrets = {role["password"], service.finished("GET", f"{branch}/roles/clouddb_owner/reveal_password")["password"]}
    project = f"projects/{PROJECT}"
    below_project = ("", "/branches", "/endpoints", "/operations")
    below_branch = ("", "/roles", "/roles/app", "/databases")
    paths = ["projects", *(project + below for below in below_project), *(branch + below for below in below_branch)]
    responses = [
        json.dumps(created),
        *(service.get(path).text for path in paths),
        service.get("/_sandbox/requests").text,
        service.request("DELETE", f"{branch}/roles/app").text,
        service.request("DELETE", f"{project}/branches/{created['branch']['id']}").text,
        service.request("POST", f"{branch}/roles", json={"role": {"name": "late"}}).text,
    ]
    assert all(len(text) > 20 for text in responses)
    assert [text for text in responses if any(secret in text for secret in secrets)] == []


def test_projects_have_different_passwords(serve):
    """Also those of the same seed."""
    service = serve({"generate": {"projects": 3}})
    params = {"database_name": "clouddb", "role_name": "clouddb_owner"}
    paths = [f"projects/{project['id']}/connection_uri" for project in service.ok("GET", "projects")["projects"]]
    uris = [service.ok("GET", path, params=params)["uri"] for path in paths]
    assert len({urlsplit(uri).password for uri in uris}) == 3
