# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults that resemble the life of the public service. Their times follow the sandbox's clock."""

from __future__ import annotations

import pytest

PROJECT = "wispy-lake-12345678"
BRANCHES = f"projects/{PROJECT}/branches"


def names(service, path=BRANCHES, field="branches", **params):
    return [item["name"] for item in service.ok("GET", path, params=params)[field]]


def states(service):
    return {branch["name"]: branch["current_state"] for branch in service.ok("GET", BRANCHES)["branches"]}


def create(service, name):
    return service.request("POST", BRANCHES, json={"branch": {"name": name}})


class TestListLag:
    def test_list_is_the_old_one_for_a_while(self, service):
        """Other requests know of the change, such as that of a second creator."""
        service.fault("list_lag", seconds=10)
        names(service)  # not counted, because it changes nothing
        branch = create(service, "preview").json()["branch"]
        assert create(service, "preview").status_code == 409
        assert names(service) == names(service, limit=1) == ["main"]
        assert service.ok("GET", f"{BRANCHES}/{branch['id']}")["branch"] == branch
        service.advance(9)
        assert names(service) == ["main"]
        service.advance(1)
        assert names(service) == ["main", "preview"]

    def test_each_change_is_listed_when_its_time_is_over(self, service):
        service.fault("list_lag", seconds=10, times=None)
        key = service.create_key("a")
        service.advance(6)
        service.create_key("b")
        service.ok("DELETE", f"api_keys/{key['id']}")
        seen = []
        for seconds in (0, 4, 6):
            service.advance(seconds)
            seen.append([key["name"] for key in service.keys()])
        assert seen == [["sandbox"], ["sandbox", "a"], ["sandbox", "b"]]

    def test_change_of_an_object(self, service):
        """Its name in the path may contain an encoded slash."""
        path = f"{BRANCHES}/{service.default_branch()}/databases"
        service.create_database(service.default_branch(), "a/b")
        service.advance(5)
        service.fault("list_lag", seconds=10)
        service.ok("PATCH", f"{path}/a%2Fb", json={"database": {"name": "c"}})
        assert names(service, path, "databases") == ["clouddb", "a/b"]
        assert names(service) == ["main"]
        service.ok("DELETE", "/_sandbox/faults")
        assert names(service, path, "databases") == ["clouddb", "c"]


class TestLingeringDeletion:
    @pytest.mark.parametrize("status, again", [(200, 404), (202, 409)])
    def test_branch_is_listed_until_the_time_is_over(self, service, status, again):
        """Its name is in use, and it can neither be changed nor deleted again."""
        path = service.create_finished_branch(branch={"name": "preview"})
        service.fault("lingering_deletion", seconds=60, status=status, again=again)
        deleted = service.request("DELETE", path)
        assert (deleted.status_code, deleted.json()["branch"]["current_state"]) == (status, "deleting")
        service.advance(59)
        assert states(service) == {"main": "ready", "preview": "deleting"}
        assert service.ok("GET", path)["branch"] == deleted.json()["branch"]
        assert service.request("DELETE", path).status_code == again
        assert create(service, "preview").status_code == 409
        assert service.request("PATCH", path, json={"branch": {"name": "review"}}).status_code == 423
        service.advance(1)
        assert states(service) == {"main": "ready"}
        assert (service.get(path).status_code, service.request("DELETE", path).status_code) == (404, 204)
        create(service, "preview")
        service.advance(5)
        assert states(service) == {"main": "ready", "preview": "ready"}
        service.ok("DELETE", f"{BRANCHES}/{service.ok('GET', BRANCHES)['branches'][1]['id']}")
        service.advance(5)

    def test_running_operations(self, service):
        path = service.create_finished_branch()
        service.fault("lingering_deletion", seconds=60)
        started = service.ok("DELETE", path)["operations"]
        assert [operation["action"] for operation in started] == ["suspend_compute", "delete_timeline"]
        service.advance(59)
        assert {service.operation(operation)["status"] for operation in started} == {"running"}
        service.advance(1)
        assert service.operation(started[1])["status"] == "finished"

    def test_no_operations(self, service):
        path = service.create_finished_branch()
        service.fault("lingering_deletion", seconds=60, operations="absent")
        assert service.ok("DELETE", path).keys() == {"branch"}
        service.advance(5)
        assert service.operations()[0]["status"] == "finished"
        assert service.ok("GET", path)["branch"]["current_state"] == "deleting"

    def test_other_objects(self, service):
        """A database, a role, a compute and a project."""
        branch = service.create_finished_branch()
        compute = service.ok("GET", f"{branch}/endpoints")["endpoints"][0]["id"]
        paths = [
            f"{branch}/databases/clouddb",
            f"{branch}/roles/clouddb_owner",
            f"projects/{PROJECT}/endpoints/{compute}",
        ]
        service.fault("lingering_deletion", seconds=60, operations="empty", times=None)
        for path in (*paths, f"projects/{PROJECT}"):
            service.ok("DELETE", path)
            service.advance(5)
            assert service.get(path).status_code == 200
            assert service.request("DELETE", path).status_code == 404
        assert names(service, "projects", "projects") == ["shop"]
        service.advance(50)
        assert {service.get(path).status_code for path in paths} == {404}
        service.advance(5)
        assert names(service, "projects", "projects") == []

    def test_clearing_the_faults_does_not_end_it(self, service):
        path = service.create_finished_branch()
        service.fault("lingering_deletion", seconds=60, again=409)
        service.ok("DELETE", path)
        service.ok("DELETE", "/_sandbox/faults")
        assert service.request("DELETE", path).status_code == 409

    def test_refused_deletion_does_not_linger(self, service):
        path = f"{BRANCHES}/{service.default_branch()}"
        service.fault("lingering_deletion", seconds=60, times=None)
        assert [service.request("DELETE", path).status_code for _attempt in range(2)] == [422, 422]
        assert states(service) == {"main": "ready"}

    def test_deletion_survives_a_restart(self, serve, service):
        path = service.create_finished_branch()
        service.fault("lingering_deletion", seconds=60)
        service.ok("DELETE", path)
        service = serve()
        assert service.ok("GET", path)["branch"]["current_state"] == "deleting"
        service.advance(60)
        assert service.get(path).status_code == 404


def test_lagging_list_shows_a_lingering_object_longer(service):
    """And as it was before. A lost response changes neither."""
    path = service.create_finished_branch(branch={"name": "preview"})
    service.fault("list_lag", seconds=90)
    service.fault("lingering_deletion", seconds=60, status=202)
    service.fault("lost_answer", method="DELETE")
    with pytest.raises(OSError):
        service.request("DELETE", path)
    assert states(service) == {"main": "ready", "preview": "ready"}
    assert service.ok("GET", path)["branch"]["current_state"] == "deleting"
    assert service.request("DELETE", path).status_code == 404
    service.advance(60)
    assert (service.get(path).status_code, names(service)) == (404, ["main", "preview"])
    service.advance(30)
    assert names(service) == ["main"]


class TestOperations:
    @pytest.mark.parametrize(
        "operations, expected", [("absent", {}), ("null", {"operations": None}), ("empty", {"operations": []})]
    )
    def test_missing(self, service, operations, expected):
        """They run, and lock the branch."""
        path = f"{BRANCHES}/{service.default_branch()}/databases"
        service.fault("missing_operations", operations=operations)
        created = service.create_database(service.default_branch(), operations).json()
        assert created == {"database": created["database"], **expected}
        assert service.request("DELETE", f"{path}/{operations}").status_code == 423
        assert service.operations()[0]["action"] == "apply_config"
        service.advance(5)

    def test_late(self, service):
        """Earlier ones, and those of other projects, can be fetched."""
        (earlier,) = service.create_branch(endpoints=[])["operations"]
        other = service.ok("POST", "projects", json={"project": {}})["operations"][0]
        service.fault("late_operations", seconds=3)
        late = service.create_branch(endpoints=[])["operations"][0]
        path = f"projects/{PROJECT}/operations/{late['id']}"
        service.advance(2)
        assert service.get(path).status_code == 404
        assert [operation["id"] for operation in service.operations()] == [earlier["id"]]
        assert {service.operation(operation)["status"] for operation in (earlier, other)} == {"finished"}
        service.advance(1)
        assert service.ok("GET", path)["operation"]["status"] == "finished"
        assert [operation["id"] for operation in service.operations()] == [late["id"], earlier["id"]]


class TestNormalizedName:
    @pytest.mark.parametrize(
        "rule, stored",
        [
            ({"trim": True}, "CI Key"),
            ({"lower_case": True}, " ci key "),
            ({"trim": True, "lower_case": True, "max_length": 4}, "ci k"),
        ],
    )
    def test_stored_name(self, service, rule, stored):
        """With `echo`, the response to the creation still has the name that was sent."""
        for echo, response_name in ((False, stored), (True, " CI Key ")):
            service.fault("normalized_name", echo=echo, **rule)
            created = service.create_key(" CI Key ")
            assert created["name"] == response_name
            assert [key["name"] for key in service.keys() if key["id"] == created["id"]] == [stored]

    def test_names_of_other_objects(self, service):
        service.fault("normalized_name", trim=True, echo=True, times=2)
        assert create(service, "preview ").json()["branch"]["name"] == "preview "
        assert names(service) == ["main", "preview"]
        assert create(service, " preview").status_code == 409

    def test_invalid_body_is_refused_as_usual(self, service):
        service.fault("normalized_name", trim=True, times=2)
        for content in ("[", "[]"):
            response = service.request("POST", "api_keys", data=content, headers={"Content-Type": "application/json"})
            assert response.status_code == 400


def test_ignored_change(service):
    path = service.create_finished_branch(branch={"name": "preview"})
    before = service.ok("GET", path)["branch"]
    service.fault("ignored_change")
    ignored = service.ok("PATCH", path, json={"branch": {"name": "x"}})
    assert (ignored["branch"], ignored["operations"]) == (before, [])
    assert service.ok("GET", path)["branch"] == before
    service.ok("PATCH", path, json={"branch": {"name": "x"}})
    assert names(service) == ["main", "x"]


def test_require_org_id(serve):
    service = serve({"projects": [{"name": "shop", "org_id": "org-1"}, {"name": "wiki", "org_id": "org-2"}]})
    service.fault("require_org_id")
    for params in ({}, {"org_id": ""}, {"search": "shop"}):
        response = service.get("projects", **params)
        assert (response.status_code, response.json()["message"]) == (400, "org_id is required")
    assert names(service, "projects", "projects", org_id="org-1") == ["shop"]
    assert service.ok("POST", "projects", json={"project": {}})
