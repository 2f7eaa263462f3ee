# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Branches: the requests beyond api.md, with the responses of the public service; last, restores and the default branch."""

from __future__ import annotations

import pytest

PROJECT = "wispy-lake-12345678"
BRANCHES = f"projects/{PROJECT}/branches"


def test_a_project_is_created_with_the_names_of_its_branch_and_of_what_the_branch_has(service):
    names = {"name": "trunk", "role_name": "app", "database_name": "orders"}
    created = service.ok("POST", "projects", json={"project": {"branch": names}})
    assert (created["branch"]["name"], created["roles"][0]["name"]) == ("trunk", "app")
    assert [(each["name"], each["owner_name"]) for each in created["databases"]] == [("orders", "app")]
    assert f"//app:{created['roles'][0]['password']}@" in created["connection_uris"][0]["connection_uri"]


def test_the_change_of_a_state_has_a_time(service):
    """That of the latest one, such as the end of a restore."""
    branch = service.create_branch(branch={"name": "dev"})["branch"]
    path = f"{BRANCHES}/{branch['id']}"
    service.advance(60)
    service.ok("POST", f"{path}/restore", json={"source_branch_id": branch["parent_id"]})
    times = [service.ok("GET", path)["branch"]["state_changed_at"]]
    service.advance(60)
    times.append(service.ok("GET", path)["branch"]["state_changed_at"])
    assert branch["created_at"] < times[0] < times[1]


def test_state_of_a_branch_is_init_until_its_creation_is_finished(service):
    """Forever, if that fails. Later operations don't matter."""
    service.plan([[0, "running"], [1, "failed"], [2, "finished"]], action="create_branch")
    service.plan([[0, "running"], [1, "failed"]], action="create_branch")
    service.plan([[0, "failed"]], action="start_compute")
    for name in ("retried", "broken"):
        assert service.create_branch(branch={"name": name})["branch"]["current_state"] == "init"

    def states():
        return [branch["current_state"] for branch in service.branches()]

    service.advance(1)
    assert states() == ["ready", "init", "init"]
    service.advance(3600)
    assert states() == ["ready", "ready", "init"]


def test_rename(service):
    path = service.create_finished_branch(branch={"name": "preview"})
    before = service.ok("GET", path)["branch"]
    changed = service.ok("PATCH", path, json={"branch": {"name": "review"}})
    assert changed["operations"] == []
    assert changed["branch"] == {**before, "name": "review", "updated_at": changed["branch"]["updated_at"]}
    assert before["updated_at"] < changed["branch"]["updated_at"]
    assert service.ok("GET", path)["branch"] == changed["branch"]
    service.ok("PATCH", path, json={"branch": {"name": "review"}})
    assert service.names() == ["main", "review"]


def test_delete(service):
    """It suspends the branch's compute, and the branch's name can be used again."""
    path = service.create_finished_branch(branch={"name": "preview"})
    branch = service.ok("GET", path)["branch"]
    (endpoint,) = service.ok("GET", f"{path}/endpoints")["endpoints"]
    deleted = service.ok("DELETE", path)
    assert deleted["branch"] == branch
    (operation,) = deleted["operations"]
    expected = {"action": "suspend_compute", "branch_id": branch["id"], "endpoint_id": endpoint["id"]}
    assert service.operation(operation).items() >= {**expected, "status": "scheduling"}.items()
    assert service.names() == ["main"]
    for below in ("", "/databases", "/roles", "/endpoints", "/databases/clouddb", "/roles/clouddb_owner"):
        assert service.get(path + below).status_code == 404
    assert service.create_branch(branch={"name": "preview"})["branch"]["id"] != branch["id"]
    assert service.ok("DELETE", service.create_finished_branch(endpoints=[]))["operations"] == []


def test_a_deleted_branch_has_no_platform_operations(service):
    path = service.create_finished_branch()
    (operation,) = service.ok("DELETE", path)["operations"]
    service.advance(86400)
    of_branch = [item for item in service.operations() if item["branch_id"] == operation["branch_id"]]
    assert [item["action"] for item in of_branch] == ["suspend_compute", "start_compute", "create_branch"]


def test_expired_branch_is_gone(service):
    path = service.create_finished_branch(branch={"expires_at": service.later(days=30)})
    service.advance(29 * 86400)
    assert service.ok("GET", path)
    service.advance(86400)
    assert service.get(path).status_code == 404


def test_branch_with_children_cannot_be_deleted(service):
    path = service.create_finished_branch(branch={"name": "parent"})
    parent = service.ok("GET", path)["branch"]
    child = service.create_finished_branch(branch={"name": "child", "parent_id": parent["id"]})
    assert service.request("DELETE", path).status_code == 422
    service.ok("DELETE", child)
    service.ok("DELETE", path)
    assert service.names() == ["main"]


def test_new_branch_has_the_databases_and_roles_of_its_parent(service):
    """A role has the same password on both, until it is reset on one."""
    parent = service.create_finished_branch(branch={"name": "parent"})
    role = service.finished("POST", f"{parent}/roles", json={"role": {"name": "app"}})["role"]
    service.finished("POST", f"{parent}/databases", json={"database": {"name": "orders", "owner_name": "app"}})
    created = service.create_branch(branch={"name": "child", "parent_id": role["branch_id"]})
    child = f"{BRANCHES}/{created['branch']['id']}"
    assert created["roles"] == service.ok("GET", f"{child}/roles")["roles"]
    assert [role["name"] for role in created["roles"]] == ["clouddb_owner", "app"]
    assert created["databases"] == service.ok("GET", f"{child}/databases")["databases"]
    assert [item["owner_name"] for item in created["databases"]] == ["clouddb_owner", "app"]
    assert {item["branch_id"] for item in created["roles"] + created["databases"]} == {created["branch"]["id"]}
    service.advance(5)
    assert service.ok("GET", f"{child}/roles/app/reveal_password")["password"] == role["password"]
    service.ok("POST", f"{child}/roles/app/reset_password")
    assert service.ok("GET", f"{parent}/roles/app/reveal_password")["password"] == role["password"]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "databases", {"database": {"name": "x", "owner_name": "clouddb_owner"}}),
        ("PATCH", "databases/clouddb", {"database": {"name": "x"}}),
        ("DELETE", "databases/clouddb", None),
        ("POST", "roles", {"role": {"name": "x"}}),
        ("DELETE", "roles/app", None),
        ("POST", "roles/clouddb_owner/reset_password", None),
    ],
)
def test_changes_of_databases_and_roles_start_apply_config(service, method, path, body):
    """On the branch's compute, if it has one; and the operation locks the branch."""
    service.create_role()
    branch = service.create_finished_branch()
    (endpoint,) = service.ok("GET", f"{branch}/endpoints")["endpoints"]
    (operation,) = service.ok(method, f"{branch}/{path}", json=body)["operations"]
    assert (operation["action"], operation["endpoint_id"]) == ("apply_config", endpoint["id"])
    assert service.operation(operation) == operation
    assert service.request("POST", f"{branch}/roles", json={"role": {"name": "y"}}).status_code == 423
    idle = service.create_finished_branch(endpoints=[])
    (operation,) = service.ok(method, f"{idle}/{path}", json=body)["operations"]
    assert "endpoint_id" not in operation


@pytest.mark.parametrize("below", ["", "/databases/clouddb", "/roles/app"])
def test_second_deletion_gets_204(service, below):
    """As in the public service: it is without a body, starts nothing, and is not locked by the first one."""
    service.create_role()
    path = service.create_finished_branch() + below
    service.ok("DELETE", path)
    started = service.operations()
    response = service.request("DELETE", path)
    assert (response.status_code, response.content) == (204, b"")
    assert service.operations() == started


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
    [compute] = service.ok("GET", f"{BRANCHES}/{before['id']}/endpoints")["endpoints"]
    add_database(service, "dev", "own")
    add_database(service, "main", "new")
    response = restore(service, "dev", "main").json()
    actions = [operation["action"] for operation in response["operations"]]
    assert actions == ["create_branch", "delete_timeline", "suspend_compute", "start_compute"]
    assert (response["branch"]["id"], response["branch"]["current_state"]) == (before["id"], "resetting")
    assert restore(service, "dev", "main").status_code == 423
    service.advance(5)
    after = get(service, "dev")
    changed = ("updated_at", "last_reset_at", "state_changed_at")
    assert {**after, **dict.fromkeys(changed)} == {**before, **dict.fromkeys(changed)}
    assert after["last_reset_at"] > before["updated_at"]
    assert databases(service, "dev") == ["clouddb", "new"]
    [restarted] = service.ok("GET", f"{BRANCHES}/{before['id']}/endpoints")["endpoints"]
    assert (restarted["id"], restarted["host"]) == (compute["id"], compute["host"])
    assert restarted["started_at"] > compute["started_at"]


def test_passwords_are_those_of_the_source(service):
    dev, main = create(service, "dev")["id"], service.default_branch()
    reset = service.finished("POST", f"{BRANCHES}/{dev}/roles/clouddb_owner/reset_password")["role"]["password"]
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


def test_restore_whose_operation_fails(service):
    create(service, "dev")
    service.plan([[0, "failed"]], action="create_branch")
    assert restored(service, "dev", "main")["operations"][0]["status"] == "failed"
    assert get(service, "dev")["current_state"] == "resetting"


def test_branch_from_a_time(service):
    time = now(service)
    service.advance(60)
    add_database(service, "main", "later")
    create(service, "then", parent_timestamp=time)
    create(service, "at", parent_lsn="0/1DE2850")
    assert (databases(service, "then"), databases(service, "at")) == (["clouddb"], ["clouddb", "later"])
    assert (get(service, "then")["parent_timestamp"], get(service, "at")["parent_lsn"]) == (time, "0/1DE2850")


def test_schema_only_branch_is_a_root_branch(service):
    branch = create(service, "empty", init_source="schema-only", parent_id=service.default_branch())
    assert (branch["init_source"], branch.get("parent_id"), branch["default"]) == ("schema-only", None, False)
    assert databases(service, "empty") == ["clouddb"]


def test_set_as_default(service):
    """The previous one is deleted neither before nor afterward, if the project was created with it."""
    create(service, "dev", init_source="schema-only")
    path = f"{BRANCHES}/{get(service, 'dev')['id']}"
    response = service.ok("POST", f"{path}/set_as_default")
    assert (response["branch"], response["operations"]) == (get(service, "dev"), [])
    assert [get(service, name)["default"] for name in ("main", "dev")] == [False, True]
    assert service.create_finished_branch(branch={"name": "child"})
    assert get(service, "child")["parent_id"] == get(service, "dev")["id"]
    assert service.request("DELETE", path).status_code == 422
    assert (
        service.request("DELETE", f"{BRANCHES}/{get(service, 'main')['id']}").json()["message"]
        == "cannot delete the root branch"
    )
