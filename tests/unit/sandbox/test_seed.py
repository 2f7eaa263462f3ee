# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The seed: the objects that it creates, and the messages about an invalid one."""

from __future__ import annotations

import math
from collections import Counter
from datetime import timedelta

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._timestamps import parse_timestamp
from clouddb_sandbox.seed_models import validate_seed

PROJECT = "wispy-lake-12345678"


def one_project(**fields):
    return {"projects": [fields]}


def operations(*each):
    return one_project(id=PROJECT, operations=[*each])


def one_operation(**fields):
    return operations({"action": "start_compute", **fields})


class TestAccount:
    def test_keys_with_secret_and_age(self, serve):
        service = serve({"api_keys": [{"name": "ci", "key": "c" * 64, "age": "30d"}, {"name": "ci"}]})
        assert [key["name"] for key in service.keys()] == ["sandbox", "ci", "ci"]
        assert service.as_key("c" * 64).get("projects").status_code == 200
        sandbox, old, new = (parse_timestamp(key["created_at"]) for key in service.keys())
        assert timedelta(days=30) <= new - old < timedelta(days=30, seconds=1)
        assert sandbox < new

    def test_last_use_of_keys(self, serve):
        keys = [
            {"name": "idle", "age": "300d", "key": "u" * 64, "last_used": "40d"},
            {"name": "young", "last_used": "2h"},
            {"name": "unused", "age": "300d"},
        ]
        service = serve({"api_keys": keys})
        _sandbox, idle, young, unused = service.keys()
        now = parse_timestamp(service.ok("GET", "/_sandbox/clock")["now"])
        assert timedelta(days=40) <= now - parse_timestamp(idle["last_used_at"]) < timedelta(days=40, minutes=1)
        assert timedelta(days=300) <= now - parse_timestamp(idle["created_at"]) < timedelta(days=300, minutes=1)
        assert idle["last_used_from_addr"] == "127.0.0.1"
        assert young["created_at"] == young["last_used_at"]
        assert (unused["last_used_at"], unused["last_used_from_addr"]) == (None, "")
        service.as_key("u" * 64).get("projects")
        assert parse_timestamp(service.keys()[1]["last_used_at"]) >= now

    def test_all_fields_of_a_project(self, serve):
        fields = {"id": PROJECT, "name": "shop", "platform_id": "azure", "region_id": "azure-westeurope"}
        fields |= {"provisioner": "k8s-pod", "pg_version": 15, "locked": True, "cpu_used_sec": 23004200}
        fields |= {"proxy_host": "westeurope.example", "branch_logical_size_limit": 204800, "org_id": "org-1"}
        fields |= {"created_at": "2022-11-30T18:41:29.123456Z", "updated_at": "2022-12-07T00:00:01.5Z"}
        service = serve({"projects": [fields]})
        (project,) = service.ok("GET", "projects")["projects"]
        assert project.items() >= {**fields, "updated_at": "2022-12-07T00:00:01.500000Z"}.items()
        assert project["branch_logical_size_limit_bytes"] == 204800 * 1024**2

    def test_defaults_are_those_of_a_new_project(self, serve):
        service = serve({"projects": [{"id": PROJECT, "name": "x"}]})
        created = service.ok("POST", "projects", json={"project": {"name": "x"}})["project"]
        seeded = service.ok("GET", f"projects/{PROJECT}")["project"]
        own = ("id", "created_at", "updated_at", "consumption_period_start", "consumption_period_end")
        assert {k: v for k, v in seeded.items() if k not in own} == {k: v for k, v in created.items() if k not in own}

    def test_project_without_compute_has_no_platform_operations(self, serve):
        service = serve({"projects": [{"id": PROJECT, "compute": False}]})
        service.advance(86400)
        assert service.operations() == []

    def test_seed_is_ignored_if_the_database_exists(self, serve):
        serve({"projects": [{"id": PROJECT}]})
        assert len(serve({"projects": [{}, {}, {}]}).ok("GET", "projects")["projects"]) == 1


class TestOperations:
    @pytest.mark.parametrize("status", ["running", "finished", "failed"])
    def test_status(self, serve, status):
        service = serve(one_operation(status=status, age="2h", id="op-1"))
        (operation,) = service.operations()
        assert (operation["id"], operation["status"]) == ("op-1", status)
        assert operation["failures_count"] == (status == "failed")

    def test_age_and_duration(self, serve):
        service = serve(one_operation(age="2h", duration=90))
        (operation,) = service.operations()
        created_at = parse_timestamp(operation["created_at"])
        assert parse_timestamp(operation["updated_at"]) == created_at + timedelta(seconds=90)
        assert operation["total_duration_ms"] == 90_000
        now = parse_timestamp(service.ok("GET", "/_sandbox/clock")["now"])
        assert timedelta(hours=2) <= now - created_at < timedelta(hours=2, seconds=1)

    def test_timeline_continues_with_the_clock(self, serve):
        service = serve(one_operation(timeline=[[0, "running"], [60, "failed"]], error="out of memory"))
        (operation,) = service.operations()
        assert operation["status"] == "running"
        service.advance(60)
        assert service.operation(operation)["error"] == "out of memory"

    def test_branch_and_endpoint_ids(self, serve):
        service = serve(
            operations(
                {"action": "create_branch", "branch_id": "br-1"},
                {"action": "start_compute", "branch_id": "br-1", "endpoint_id": "ep-1"},
                {"action": "check_availability"},
            )
        )
        check, start, branch = service.operations()
        assert "endpoint_id" not in branch
        assert (start["branch_id"], start["endpoint_id"]) == ("br-1", "ep-1")
        assert check["branch_id"] == service.default_branch()
        assert check["endpoint_id"].startswith("ep-")

    def test_a_project_is_as_old_as_its_oldest_operation(self, serve):
        service = serve(one_operation(age="3d"))
        assert service.operations()[0]["created_at"] == service.ok("GET", "projects")["projects"][0]["created_at"]


class TestGenerated:
    def test_number_of_generated_objects(self, serve):
        generate = {"projects": 30, "operations_per_project": 3}
        service = serve({"projects": [{"id": PROJECT, "generate_operations": 1000}], "generate": generate})
        projects = service.ok("GET", "projects", params={"limit": 400})["projects"]
        assert len({project["id"] for project in projects}) == len(projects) == 31
        assert len(service.operations(projects[0]["id"])) == 3
        found = service.operations()
        assert len({operation["action"] for operation in found}) == 8
        assert Counter(operation["status"] for operation in found) == {"failed": 20, "finished": 980}

    def test_each_generated_project_has_objects_of_its_own(self, serve):
        service = serve({"generate": {"projects": 2, "operations_per_project": 60}})
        found = []
        for project in service.ok("GET", "projects")["projects"]:
            path = f"projects/{project['id']}"
            [branch] = service.ok("GET", f"{path}/branches")["branches"]
            [compute] = service.ok("GET", f"{path}/endpoints")["endpoints"]
            [database] = service.ok("GET", f"{path}/branches/{branch['id']}/databases")["databases"]
            role = f"{path}/branches/{branch['id']}/roles/{database['owner_name']}"
            operations = service.operations(project["id"])
            assert {each["branch_id"] for each in (compute, *operations)} == {branch["id"]}
            assert {each.get("endpoint_id", compute["id"]) for each in operations} == {compute["id"]}
            assert [each["status"] for each in operations].count("failed") == 1
            password = service.ok("GET", f"{role}/reveal_password")["password"]
            ids = [each["id"] for each in (project, branch, compute, database, *operations)]
            found += [project["name"], *ids, password]
        assert len(set(found)) == len(found) == 2 * 66
        assert {"project-0001", "project-0002"} <= set(found)

    def test_generated_ids_are_reproducible(self, serve, tmp_path):
        seed = {"generate": {"projects": 5, "operations_per_project": 2}}

        def ids(service):
            projects = [project["id"] for project in service.ok("GET", "projects")["projects"]]
            return [(project, [item["id"] for item in service.operations(project)]) for project in projects]

        first = ids(serve(seed))
        for file in tmp_path.iterdir():
            file.unlink()
        assert ids(serve(seed)) == first


@pytest.mark.parametrize(
    "seed, message",
    [
        ([], "seed: "),
        ({"project": []}, "project: Extra inputs"),
        (one_project(colour="red"), "projects.0.colour: Extra inputs"),
        (one_project(created_at="2026-01-01T00:00:00"), "projects.0.created_at: .*timezone"),
        (one_project(age="old"), "projects.0.age: must be a number of seconds, or an age such as .*, not 'old'"),
        (one_project(age=True), "projects.0.age: must be a number of seconds, .*, not True"),
        (one_project(age=-1), "projects.0.age: must be a number of seconds, .*, not -1"),
        (
            one_project(age=1, created_at="2026-01-01T00:00:00Z"),
            "projects.0: .*age and created_at are mutually exclusive",
        ),
        ({"projects": [{"id": "a"}, {"id": "a"}]}, "seed: .*projects: id: must be unique, but a occurs more than once"),
        (one_operation(action="explode"), "projects.0.operations.0.action: .*'explode' is not one of apply_config"),
        (one_operation(status="done"), "projects.0.operations.0.status: .*'done' is not one of scheduling"),
        (one_operation(duration=1e14), "projects.0.operations.0.duration: "),
        (one_operation(timeline=[[0, "running"], [1e14, "failed"]]), "projects.0.operations.0.timeline: .*not exceed"),
        (one_operation(timeline=[[0, "running"], [math.nan, "failed"]]), "projects.0.operations.0.timeline: "),
        (one_project(age="999999999999w"), "projects.0.age: "),
        (one_project(created_at="0001-01-01T00:00:00+14:00"), "projects.0.created_at: "),
        (one_project(history_retention_seconds=10**20), "projects.0.history_retention_seconds: "),
        (
            one_operation(timeline=[[0, "running"]], status="failed"),
            "projects.0.operations.0: .*timeline and status or duration are mutually exclusive",
        ),
        ({"api_keys": [{"name": "ci", "key": "short"}]}, "api_keys.0.key: String should have at least 16"),
        ({"api_keys": [{"name": "ci", "key": "a key with white space"}]}, "api_keys.0.key: "),
        (one_project(id="my project"), "projects.0.id: "),
        (
            {"api_keys": [{"name": "ci", "age": "2d", "last_used": "3d"}]},
            "api_keys.0: .*last_used must not be longer ago than age",
        ),
    ],
)
def test_invalid_seed_raises_value_error(seed, message):
    with pytest.raises(ValueError, match=message):
        validate_seed(seed)


def test_messages_contain_no_secrets():
    for seed in (
        {"api_keys": [{"name": "ci", "key": "secret"}]},
        {"api_keys": [{"name": "a", "key": "secret" * 9}, {"name": "b", "key": "secret" * 9}]},
        {"api_keys": [{"name": "ci", "secret": "secret-value"}]},
    ):
        with pytest.raises(ValueError, match="api_keys") as caught:
            validate_seed(seed)
        assert "secretsecret" not in str(caught.value)
        assert "secret-value" not in str(caught.value)
        assert "input_value" not in str(caught.value)


def test_an_invalid_seed_creates_no_database(serve, tmp_path):
    with pytest.raises(ValueError, match="colour"):
        serve({"colour": "red"})
    assert list(tmp_path.iterdir()) == []
    assert serve(one_project(id=PROJECT)).ok("GET", "projects")["projects"]
