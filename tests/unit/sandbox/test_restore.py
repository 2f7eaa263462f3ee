# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Branches from other branches and from a time in their history, and the default branch."""

from __future__ import annotations

import pytest

PROJECT = "wispy-lake-12345678"
BRANCHES = f"projects/{PROJECT}/branches"


def now(service):
    return service.ok("GET", "/_sandbox/clock")["now"]


def get(service, name):
    return next(branch for branch in service.ok("GET", BRANCHES)["branches"] if branch["name"] == name)


def create(service, name, **branch):
    service.create_finished_branch(branch={"name": name, **branch})
    return get(service, name)


def databases(service, name):
    found = service.ok("GET", f"{BRANCHES}/{get(service, name)['id']}/databases")["databases"]
    return [database["name"] for database in found]


def add_database(service, name, database):
    assert service.create_database(get(service, name)["id"], database).status_code == 201
    service.advance(5)


def restore(service, name, source, **body):
    path = f"{BRANCHES}/{get(service, name)['id']}/restore"
    return service.request("POST", path, json={"source_branch_id": get(service, source)["id"], **body})


def restored(service, *names, **body):
    response = restore(service, *names, **body)
    assert response.status_code == 200, response.text
    service.advance(5)
    return response.json()


def test_reset_to_the_parent(service):
    """The branch keeps its id and its compute, and its operations lock it."""
    before = create(service, "dev")
    endpoints = service.ok("GET", f"{BRANCHES}/{before['id']}/endpoints")
    add_database(service, "dev", "own")
    add_database(service, "main", "new")
    response = restore(service, "dev", "main").json()
    actions = [operation["action"] for operation in response["operations"]]
    assert actions == ["create_branch", "suspend_compute", "start_compute"]
    assert (response["branch"]["id"], response["branch"]["current_state"]) == (before["id"], "init")
    assert restore(service, "dev", "main").status_code == 423
    service.advance(5)
    after = get(service, "dev")
    changed = ("updated_at", "last_reset_at", "state_changed_at")
    assert {**after, **dict.fromkeys(changed)} == {**before, **dict.fromkeys(changed)}
    assert after["last_reset_at"] > before["updated_at"]
    assert databases(service, "dev") == ["clouddb", "new"]
    assert service.ok("GET", f"{BRANCHES}/{before['id']}/endpoints") == endpoints


def test_passwords_are_those_of_the_source(service):
    dev, main = create(service, "dev")["id"], service.default_branch()
    reset = service.ok("POST", f"{BRANCHES}/{dev}/roles/clouddb_owner/reset_password")["role"]["password"]
    service.advance(5)
    restored(service, "dev", "main")
    revealed = [service.ok("GET", f"{BRANCHES}/{id}/roles/clouddb_owner/reveal_password") for id in (dev, main)]
    assert revealed[0] == revealed[1] != {"password": reset}


def test_restore_to_a_time(service):
    """Of its own history. The previous state, with the children, is kept under another name."""
    create(service, "dev")
    time = now(service)
    service.advance(60)
    add_database(service, "dev", "later")
    child = create(service, "child", parent_id=get(service, "dev")["id"])
    restored(service, "dev", "dev", source_timestamp=time, preserve_under_name="dev_old")
    dev, kept = get(service, "dev"), get(service, "dev_old")
    assert (dev["parent_timestamp"], dev["parent_id"]) == (time, kept["id"])
    assert kept["parent_id"] == service.default_branch()
    assert get(service, "child") == {**child, "parent_id": kept["id"]}
    assert (databases(service, "dev"), databases(service, "dev_old")) == (["clouddb"], ["clouddb", "later"])


def test_restored_root_branch_stays_the_default_branch(service):
    """Both it and the branch with the previous state are root branches."""
    restored(service, "main", "main", source_lsn="0/1DE2850", preserve_under_name="main_old")
    main, kept = get(service, "main"), get(service, "main_old")
    assert (main["default"], main.get("parent_id"), main["parent_lsn"]) == (True, None, "0/1DE2850")
    assert (kept["default"], kept.get("parent_id")) == (False, None)


def test_restore_from_a_child(service):
    create(service, "dev")
    add_database(service, "dev", "new")
    restored(service, "main", "dev", preserve_under_name="main_old")
    assert get(service, "main")["parent_id"] == get(service, "dev")["id"]
    assert get(service, "dev")["parent_id"] == get(service, "main_old")["id"]
    assert databases(service, "main") == ["clouddb", "new"]


@pytest.mark.parametrize(
    ("name", "source", "body", "status"),
    [
        ("dev", "dev", {"preserve_under_name": "old"}, 422),
        ("dev", "dev", {"source_lsn": "0/1"}, 422),
        ("main", "dev", {}, 422),
        ("dev", "main", {"preserve_under_name": "main"}, 409),
        ("dev", "main", {"source_lsn": "0/1", "source_timestamp": "2026-01-01T00:00:00Z"}, 422),
        ("dev", "main", {"source_timestamp": "2020-01-01T00:00:00Z"}, 422),
        ("dev", "main", {"source_timestamp": "2999-01-01T00:00:00Z"}, 422),
        ("dev", "main", {"source_lsn": "1"}, 400),
        ("dev", "main", {"source_branch_id": "none"}, 404),
    ],
)
def test_restore_that_is_refused_changes_nothing(service, name, source, body, status):
    create(service, "dev")
    before = service.ok("GET", BRANCHES)
    assert restore(service, name, source, **body).status_code == status
    assert service.ok("GET", BRANCHES) == before


def test_restore_whose_operation_fails(service):
    create(service, "dev")
    service.plan([[0, "failed"]], action="create_branch")
    assert restored(service, "dev", "main")["operations"][0]["status"] == "failed"
    assert get(service, "dev")["current_state"] == "init"


def test_branch_from_a_time(service):
    time = now(service)
    service.advance(60)
    add_database(service, "main", "later")
    create(service, "then", parent_timestamp=time)
    create(service, "at", parent_lsn="0/1DE2850")
    assert (databases(service, "then"), databases(service, "at")) == (["clouddb"], ["clouddb", "later"])
    assert (get(service, "then")["parent_timestamp"], get(service, "at")["parent_lsn"]) == (time, "0/1DE2850")
    early = {"name": "early", "parent_timestamp": "2020-01-01T00:00:00Z"}
    assert service.request("POST", BRANCHES, json={"branch": early}).status_code == 422


def test_schema_only_branch_is_a_root_branch(service):
    branch = create(service, "empty", init_source="schema-only", parent_id=service.default_branch())
    assert (branch["init_source"], branch.get("parent_id"), branch["default"]) == ("schema-only", None, False)
    assert databases(service, "empty") == ["clouddb"]


def test_set_as_default(service):
    """The previous default branch can be deleted then, unless it has children."""
    create(service, "dev", init_source="schema-only")
    path = f"{BRANCHES}/{get(service, 'dev')['id']}"
    response = service.ok("POST", f"{path}/set_as_default")
    assert (response["branch"], response["operations"]) == (get(service, "dev"), [])
    assert [get(service, name)["default"] for name in ("main", "dev")] == [False, True]
    assert service.create_finished_branch(branch={"name": "child"})
    assert get(service, "child")["parent_id"] == get(service, "dev")["id"]
    assert service.request("DELETE", path).status_code == 422
    assert service.request("DELETE", f"{BRANCHES}/{get(service, 'main')['id']}").status_code == 200


def test_branch_that_expires_cannot_become_the_default_branch(service):
    create(service, "dev", expires_at=service.later(days=1))
    assert service.request("POST", f"{BRANCHES}/{get(service, 'dev')['id']}/set_as_default").status_code == 422
