# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Databases of a branch."""

from __future__ import annotations

import pytest

PROJECT = "wispy-lake-12345678"


@pytest.fixture
def databases(service):
    """The path of the default branch's databases."""
    return f"projects/{PROJECT}/branches/{service.default_branch()}/databases"


def names(service, databases):
    return [database["name"] for database in service.ok("GET", databases)["databases"]]


def test_get_returns_the_list_item(service, databases):
    created = service.create_database(service.default_branch()).json()["database"]
    assert service.ok("GET", f"{databases}/orders") == {"database": created}
    assert service.ok("GET", databases)["databases"][1] == created


def test_owner_is_a_role_of_the_branch(service, databases):
    body = {"database": {"name": "orders", "owner_name": "nobody"}}
    for method, path in (("POST", databases), ("PATCH", f"{databases}/clouddb")):
        assert service.request(method, path, json=body).status_code == 404
    assert names(service, databases) == ["clouddb"]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [({"name": "sales"}, ("sales", "clouddb_owner")), ({"name": None, "owner_name": "app"}, ("orders", "app"))],
)
def test_update(service, databases, changes, expected):
    """Fields that are missing or null stay as they are. The id stays the same."""
    service.ok("POST", databases.replace("/databases", "/roles"), json={"role": {"name": "app"}})
    service.advance(5)
    before = service.create_database(service.default_branch()).json()["database"]
    service.advance(5)
    changed = service.ok("PATCH", f"{databases}/orders", json={"database": changes})["database"]
    assert (changed["name"], changed["owner_name"]) == expected
    assert (changed["id"], changed["created_at"]) == (before["id"], before["created_at"])
    assert before["updated_at"] < changed["updated_at"]
    assert service.ok("GET", f"{databases}/{expected[0]}")["database"] == changed
    assert names(service, databases) == ["clouddb", expected[0]]


def test_duplicate_names_get_409(service, databases):
    service.create_database(service.default_branch())
    service.advance(5)
    started = service.operations()
    response = service.request("PATCH", f"{databases}/orders", json={"database": {"name": "clouddb"}})
    assert (response.status_code, response.json()["code"]) == (409, "CONFLICT")
    assert service.create_database(service.default_branch()).status_code == 409
    assert names(service, databases) == ["clouddb", "orders"]
    assert service.operations() == started


def test_same_name_on_another_branch(service):
    path = service.create_finished_branch()
    service.create_database(service.default_branch())
    assert service.create_database(path.rsplit("/", 1)[1]).status_code == 201


def test_names_with_special_characters(service, databases):
    name = "büro/& 100 %2F?#"
    service.ok("POST", databases, json={"database": {"name": name, "owner_name": "clouddb_owner"}})
    path = f"{databases}/b%C3%BCro%2F%26%20100%20%252F%3F%23"
    assert service.ok("GET", path)["database"]["name"] == name
    service.advance(5)
    assert service.ok("DELETE", path)["database"]["name"] == name
    assert names(service, databases) == ["clouddb"]
