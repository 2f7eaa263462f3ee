# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The service's contract, statement by statement: each test quotes the statements that it verifies."""

from __future__ import annotations

import itertools
import re
import sqlite3
from datetime import datetime, timedelta
from urllib.parse import quote

import pytest

from ansible_collections.clouddb.control.tests.unit.support.sandbox import API_KEY

PROJECT = "wispy-lake-12345678"
TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


def assert_types(item, types):
    """Assert that these fields have exactly these types: a bool is not an int. The sandbox adds fields of the public service."""
    assert {name: type(item.get(name)) for name in types} == types


def parse_timestamp(text):
    assert TIMESTAMP.fullmatch(text), text
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


class TestService:
    def test_a_key_works_with_all_projects(self, serve):
        """api.md: "They belong to an account and work with any project of that account"."""
        service = serve({"generate": {"projects": 3, "operations_per_project": 1}})
        other = service.as_key(service.create_key()["key"])
        for project in other.ok("GET", "projects")["projects"]:
            (operation,) = other.operations(project["id"])
            assert other.operation(operation) == operation

    @pytest.mark.soak
    def test_number_of_keys_is_unlimited(self, service):
        """api.md: "An account may create an unlimited number of keys." "API keys per account: unlimited"."""
        created = [service.create_key("same name") for _number in range(101)]
        assert len({key["id"] for key in created}) == 101
        assert len(service.keys()) == 102

    def test_keys_do_not_expire(self, service):
        """api.md: "A key stays valid until it is revoked"."""
        other = service.as_key(service.create_key()["key"])
        service.advance(9 * 365 * 86400)
        assert other.get("api_keys").status_code == 200

    def test_base_url_ends_with_the_version(self, service):
        """api.md: "The base address {base_url} ends with a version segment, `v2`, after an `api` segment"."""
        assert service.base_url.endswith("/api/v2")


class TestApiKeys:
    def test_create(self, service):
        """api.md: "POST /api_keys": "Response: the API key creation result (`id`, `key`)"."""
        created = service.create_key("deploy")
        assert_types(created, {"id": int, "key": str, "name": str, "created_at": str})
        assert service.as_key(created["key"]).get("projects").status_code == 200

    @pytest.mark.parametrize(
        "path, body",
        [
            ("projects", lambda name: {"project": {"name": name}}),
            (f"projects/{PROJECT}/branches", lambda name: {"branch": {"name": name}}),
        ],
    )
    def test_length_of_names(self, service, path, body):
        """As in the public service's OpenAPI document."""
        assert service.ok("POST", path, json=body("x" * 256))

    def test_secret_is_random(self, service):
        """api.md: "key: the generated secret, described as 64-bit and randomly generated"."""
        secrets = {service.create_key()["key"] for _number in range(20)}
        assert len(secrets) == 20
        assert all(re.fullmatch("[a-z0-9]{64}", secret) for secret in secrets)

    def test_secret_is_not_retrievable(self, serve, tmp_path):
        """api.md: "returned only at creation and not retrievable afterwards"; nor is it in the database."""
        service = serve()
        created = service.create_key()
        later = [
            service.get("api_keys").text,
            service.get("/_sandbox/requests").text,
            service.request("DELETE", f"api_keys/{created['id']}").text,
        ]
        assert not any(created["key"] in text for text in later)
        stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())
        assert created["name"].encode() in stored
        assert created["key"].encode() not in stored
        assert API_KEY.encode() not in stored

    def test_list(self, service):
        """api.md: "Response: a JSON array (not wrapped in an object)"; the last use is null and empty before."""
        created = service.create_key("deploy")
        listed = {name: created[name] for name in ("id", "name", "created_at")}
        unused = service.keys()[1]
        assert unused.items() >= {**listed, "last_used_at": None, "last_used_from_addr": ""}.items()
        other = service.as_key(created["key"])
        other.get("projects")
        (_own, used) = service.keys()
        assert used == {**unused, "last_used_at": used["last_used_at"], "last_used_from_addr": "127.0.0.1"}
        assert_types(used, {"id": int, "name": str, "created_at": str, "last_used_at": str})
        assert parse_timestamp(used["created_at"]) < parse_timestamp(used["last_used_at"])
        assert service.keys()[1] == used
        service.advance(60)
        other.get("nowhere")
        later = parse_timestamp(service.keys()[1]["last_used_at"])
        assert later - parse_timestamp(used["last_used_at"]) >= timedelta(seconds=60)

    def test_revoke(self, service):
        """api.md: "Effective immediately; any later request using the key fails with 401"."""
        created = service.create_key("deploy")
        other = service.as_key(created["key"])
        assert other.get("projects").status_code == 200
        revoked = service.ok("DELETE", f"api_keys/{created['id']}")
        assert_types(revoked, {"id": int, "revoked": bool, "last_used_at": str, "last_used_from_addr": str})
        assert (revoked["id"], revoked["name"], revoked["revoked"]) == (created["id"], "deploy", True)
        assert other.get("projects").status_code == 401
        assert [key["name"] for key in service.keys()] == ["sandbox"]

    def test_revocation_is_irreversible(self, serve):
        """api.md: "Revocation is irreversible": neither a second one nor a restart with the same key reactivates it."""
        service = serve()
        created = service.create_key()
        service.ok("DELETE", f"api_keys/{created['id']}")
        assert service.request("DELETE", f"api_keys/{created['id']}").status_code == 404
        service.ok("DELETE", "api_keys/1")
        assert serve().get("projects").status_code == 401

    def test_restart_with_another_first_key_adds_it(self, serve):
        """The account remains accessible after its key file is lost."""
        serve({"projects": [{"id": PROJECT}]})
        restarted = serve(api_key="another" * 9)
        assert len(restarted.ok("GET", "projects")["projects"]) == 1
        assert [key["name"] for key in restarted.keys()] == ["sandbox", "sandbox"]

    def test_ids_and_times_increase(self, service):
        """Ids are not reused, and no two keys have the same `created_at`, so the earliest key is unique."""
        first = service.create_key()
        service.ok("DELETE", f"api_keys/{first['id']}")
        created = [first, *(service.create_key() for _number in range(5))]
        assert [key["id"] for key in created] == sorted({key["id"] for key in created})
        assert [key["created_at"] for key in created] == sorted({key["created_at"] for key in created})


class TestProjects:
    def test_list(self, service):
        """api.md: "Response: object with `projects`, an array of Project objects", and the table of their fields."""
        (project,) = service.ok("GET", "projects")["projects"]
        strings = ("id", "name", "platform_id", "region_id", "provisioner", "proxy_host", "created_at", "updated_at")
        numbers = ("pg_version", "cpu_used_sec", "branch_logical_size_limit")
        assert_types(project, {**dict.fromkeys(strings, str), **dict.fromkeys(numbers, int), "locked": bool})
        parse_timestamp(project["created_at"])
        parse_timestamp(project["updated_at"])

    def test_pages_contain_every_project_once(self, serve):
        """Newest first, with any page size; the empty page after the last has no `pagination`."""
        service = serve({"generate": {"projects": 12}})
        names = [f"project-{number:04d}" for number in range(12, 0, -1)]
        for limit in (None, 1, 5, 12, 400):
            seen, params = [], {"limit": limit} if limit else {}
            while (page := service.ok("GET", "projects", params=params))["projects"]:
                assert len(page["projects"]) <= (limit or 10)
                seen += [project["name"] for project in page["projects"]]
                params["cursor"] = page["pagination"]["cursor"]
            assert "pagination" not in page
            assert seen == names


class TestOperations:
    def test_fields(self, service):
        """api.md: the table of the fields; `endpoint_id` is "absent on operations that have no compute"."""
        create_branch, start_compute = service.create_branch()["operations"]
        assert (create_branch["action"], create_branch["status"]) == ("create_branch", "running")
        assert (start_compute["action"], start_compute["status"]) == ("start_compute", "scheduling")
        for operation in (create_branch, start_compute):
            path = f"projects/{PROJECT}/operations/{operation['id']}"
            assert service.ok("GET", path) == {"operation": operation}
            assert operation in service.operations()
            assert (operation["project_id"], operation["failures_count"]) == (PROJECT, 0)
            strings = ("id", "branch_id", "action", "status", "created_at", "updated_at")
            assert_types(operation, {**dict.fromkeys(strings, str), "failures_count": int})
            assert parse_timestamp(operation["created_at"]) <= parse_timestamp(operation["updated_at"])
        assert "endpoint_id" not in create_branch
        assert start_compute["endpoint_id"]
        assert create_branch["branch_id"] == start_compute["branch_id"]

    def test_create_timeline(self, service):
        """api.md: "create_timeline: Creates a project with a default branch"."""
        created = service.ok("POST", "projects", json={"project": {"name": "wiki", "pg_version": 16}})
        project = created["project"]
        assert (project["name"], project["pg_version"]) == ("wiki", 16)
        assert [operation["action"] for operation in created["operations"]] == ["create_timeline", "start_compute"]
        assert service.ok("GET", "projects")["projects"][0]["id"] == project["id"]
        (branch,) = service.ok("GET", f"projects/{project['id']}/branches")["branches"]
        assert branch["default"] is True
        assert {operation["branch_id"] for operation in created["operations"]} == {branch["id"]}

    def test_delete_tenant(self, service):
        """api.md: "Deletes stored data when a project is deleted." Its operation can still be fetched."""
        deleted = service.ok("DELETE", f"projects/{PROJECT}")
        assert [operation["action"] for operation in deleted["operations"]] == ["delete_tenant"]
        assert service.ok("GET", "projects")["projects"] == []
        assert service.get(f"projects/{PROJECT}").status_code == 404
        service.advance(5)
        assert [operation["status"] for operation in service.operations()] == ["finished"]
        service.advance(86400)
        assert len(service.operations()) == 1

    def test_apply_storage_config(self, service):
        """api.md: "started by, for example, updating a project's history retention period"."""
        body = {"project": {"history_retention_seconds": 3600}}
        changed = service.ok("PATCH", f"projects/{PROJECT}", json=body)
        assert [operation["action"] for operation in changed["operations"]] == ["apply_storage_config"]
        assert service.ok("GET", f"projects/{PROJECT}")["project"]["history_retention_seconds"] == 3600

    def test_platform_starts_operations(self, service):
        """api.md: the periodic check, and a suspension "after a period of inactivity"."""
        service.advance(299)
        assert service.operations() == []
        service.advance(1)
        assert [operation["action"] for operation in service.operations()] == ["suspend_compute"]
        service.advance(7200)
        actions = [operation["action"] for operation in reversed(service.operations())]
        assert actions == ["suspend_compute", "check_availability", "start_compute", "suspend_compute"]
        assert all("endpoint_id" in operation for operation in service.operations())

    def test_branch_without_compute_is_not_checked(self, service):
        """api.md: "Branches without a compute are not checked"."""
        created = service.create_branch(branch={"name": "idle"}, endpoints=[])
        assert [operation["action"] for operation in created["operations"]] == ["create_branch"]
        service.advance(86400)
        of_branch = [item for item in service.operations() if item["branch_id"] == created["branch"]["id"]]
        assert [operation["action"] for operation in of_branch] == ["create_branch"]


class TestPaging:
    @pytest.fixture
    def many(self, serve):
        """Three operations at a time have the same `created_at`."""
        operations = [{"id": f"op-{number:02d}", "action": "start_compute", "age": number // 3} for number in range(20)]
        return serve({"projects": [{"id": PROJECT, "operations": operations}]})

    def test_every_operation_once(self, many):
        """api.md: newest first by `created_at`; the cursor is sent as it came. Only the empty page after the last has none."""
        created = [operation["created_at"] for operation in many.operations()]
        assert created == sorted(created, reverse=True)
        assert len(set(created)) == 7
        everything = [operation["id"] for operation in many.operations()]
        assert len(set(everything)) == 20
        for limit in (1, 2, 3, 7, 20, 1000):
            path, seen, cursor = f"projects/{PROJECT}/operations?limit={limit}", [], ""
            while (page := many.ok("GET", path + cursor))["operations"]:
                assert len(page["operations"]) <= limit
                seen += [operation["id"] for operation in page["operations"]]
                assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d", page["pagination"]["cursor"])
                cursor = "&cursor=" + quote(page["pagination"]["cursor"], safe="")
            assert page == {"operations": []}
            assert seen == everything

    def test_new_operations_do_not_shift_pages(self, many):
        """A page starts at its cursor, even if operations were added since."""
        first = many.ok("GET", f"projects/{PROJECT}/operations", params={"limit": 10})
        many.advance(5)
        many.create_branch()
        rest = many.operations(cursor=first["pagination"]["cursor"])
        seen = [operation["id"] for operation in first["operations"] + rest]
        assert sorted(seen) == [f"op-{number:02d}" for number in range(20)]

    def test_cursor_must_be_encoded(self, many):
        """api.md: "It is URL-encoded when sent." A cursor that is invalid or not encoded gets 400."""
        cursor = many.ok("GET", f"projects/{PROJECT}/operations")["pagination"]["cursor"]
        assert "+" in cursor
        for invalid in (cursor, "x", "", "2026-01-01T00:00:00Z", quote("9" * 4 + cursor[4:], safe="")[:-1]):
            response = many.get(f"projects/{PROJECT}/operations?cursor={invalid}")
            assert response.status_code == 400, invalid
            assert "cursor" in response.json()["message"]


class TestDependentRequests:
    def test_failed_operation_does_not_lock(self, service):
        """api.md: "4. Treat `failed` as a failure": it is complete, unless the platform retries it."""
        service.plan([[0, "running"], [1, "failed"]], times=2)
        branch_id = service.create_branch()["branch"]["id"]
        service.advance(1)
        assert service.create_database(branch_id).status_code == 201
        service.plan([[0, "running"], [1, "failed"], [9, "finished"]], times=2)
        branch_id = service.create_branch()["branch"]["id"]
        service.advance(1)
        assert service.create_database(branch_id).status_code == 423

    def test_platform_operations_do_not_lock(self, service):
        """Clients cannot know when the platform starts them."""
        service.advance(300)
        assert [operation["status"] for operation in service.operations()] == ["scheduling"]
        assert service.create_database(service.default_branch()).status_code == 201


# Bodies of the requests that have one, by the end of their path.
BODIES = {
    "api_keys": {"key_name": "x"},
    "branches": {},
    "databases": {"database": {"name": "x", "owner_name": "clouddb_owner"}},
    "backup_schedule": {"schedule": []},
    "{snapshot_id}": {"snapshot": {}},
    "permissions": {"email": "colleague@example.com"},
    "{member_id}": {"role": "viewer"},
    "endpoints": {"endpoint": {"branch_id": "none", "type": "read_only"}},
    "restore": {"source_branch_id": "none"},
    "roles": {"role": {"name": "x"}},
    "{branch_id}": {"branch": {}},
    "{database_name}": {"database": {}},
    "{endpoint_id}": {"endpoint": {}},
    "{project_id}": {"project": {}},
}

# Whose deletion gets 404 if they do not exist
ANSWER_404 = ("project_id", "key_id", "member_id", "permission_id", "snapshot_id")


class TestErrors:
    def test_unknown_ids_get_404(self, service):
        """Those of another project as well; except that the deletion of what a project does not have gets 204."""
        own, other = service.create_branch(), service.finished("POST", "projects", json={"project": {}})

        def ids_of(created):
            lists = {name: created[f"{name}s"][0]["id"] for name in ("endpoint", "operation")}
            return {"branch_id": created["branch"]["id"], **{f"{name}_id": found for name, found in lists.items()}}

        names = {"database_name": "clouddb", "role_name": "clouddb_owner", "permission_id": "none", "member_id": "none"}
        names["snapshot_id"] = "none"
        known = {"project_id": PROJECT, "org_id": "org-sandbox-12345678", "key_id": 1, **names, **ids_of(own)}
        for path, item in service.ok("GET", "/openapi.json")["paths"].items():
            parameters, last = re.findall(r"{(\w+)}", path), path.rsplit("/", 1)[1]
            for method, unknown in itertools.product(item, parameters):
                is_gone = (method, last) == ("delete", f"{{{unknown}}}") and unknown not in ANSWER_404
                for each in sorted({"4711", str(ids_of(other).get(unknown, 4711))}):
                    target = path.format(**{**known, unknown: each})
                    response = service.request(method.upper(), target, params=names, json=BODIES.get(last))
                    assert response.status_code == (204 if is_gone else 404), (method, target)
                    assert is_gone or response.json()["code"] == ""
        assert len(service.operations()) == 2

    def test_body_and_request_id(self, service):
        """Like the public service: `message`, `code`, `request_id`. The client's `X-Request-ID` is returned."""
        for path, status in (("nowhere", 404), ("projects?limit=x", 400), ("projects/none", 404)):
            response = service.request("GET", path, headers={"X-Request-ID": "mine-1"})
            assert response.status_code == status
            assert_types(response.json(), {"message": str, "code": str, "request_id": str})
            assert response.json()["request_id"] == response.headers["X-Request-ID"] == "mine-1"
        assert service.get("nowhere").json()["request_id"] != service.get("nowhere").json()["request_id"]

    def test_unsupported_method_gets_405(self, service):
        response = service.request("PUT", f"projects/{PROJECT}")
        assert (response.status_code, response.json()["code"]) == (405, "")
        assert response.headers["Allow"] == "DELETE, GET, PATCH"

    @pytest.mark.parametrize(
        ("body", "content_type", "message"),
        [
            ("{", "application/json", "body"),
            ('{"key_name": "ci"}', None, "Content-Type"),
            ('{"key_name": "ci"}', "text/plain", "Content-Type"),
        ],
    )
    def test_a_body_that_is_not_json_or_not_declared_as_json_gets_400(self, service, body, content_type, message):
        """As curl sends it without a header. The message names the header."""
        response = service.request("POST", "api_keys", data=body, headers={"Content-Type": content_type})
        assert (response.status_code, response.json()["code"]) == (400, "")
        assert message in response.json()["message"]

    def test_internal_error_gets_500(self, serve, tmp_path):
        """With a JSON body and the usual headers."""
        service = serve()
        with sqlite3.connect(tmp_path / "sandbox.sqlite") as db:
            db.execute("ALTER TABLE projects RENAME TO lost")
        response = service.get("projects")
        assert (response.status_code, response.json()["code"]) == (500, "")
        assert response.headers["X-Request-ID"] == response.json()["request_id"]

    def test_date_header_follows_the_clock(self, service):
        """On every response, including 401."""
        service.advance(400 * 86400)
        now = service.ok("GET", "/_sandbox/clock")["now"]
        expected = parse_timestamp(now).strftime("%a, %d %b %Y %H:%M:%S GMT")
        assert service.get("projects").headers["Date"] == expected
        assert service.as_key("wrong").get("projects").headers["Date"] == expected
