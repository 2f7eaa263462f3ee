# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of rules: each rule has a source and a test of its name or a refusal here, and the role's README shows it."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from json import dumps
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

import pytest

from clouddb_sandbox.middleware import MAX_BODY
from clouddb_sandbox.rules import (
    LOCKED,
    NO_ROUTE,
    NOT_FOR_ORGANIZATIONS,
    OUTSIDE_THE_PROJECT,
    REGIONS,
    RULES,
    answers_table,
    table,
)

README = Path(__file__).resolve().parents[3] / "roles" / "sandbox" / "README.md"
PROJECT = "wispy-lake-12345678"
ORG = "org-sandbox-12345678"
KEYS = f"organizations/{ORG}/api_keys"
PATH = f"projects/{PROJECT}"
BRANCHES = f"{PATH}/branches"


def refused(response, status=422):
    """The message of a refusal, whose code is empty."""
    body = response.json()
    assert (response.status_code, body["code"]) == (status, ""), response.text
    return body["message"]


def create_project(service, **project):
    return service.request("POST", "projects", json={"project": project})


def create_branch(service, **branch):
    return service.request("POST", BRANCHES, json={"branch": branch})


def organization_key(service, org_id=ORG, **body):
    created = service.ok("POST", f"organizations/{org_id}/api_keys", json={"key_name": "ci", **body})
    return service.as_key(created["key"])


def role_password(service, branch, role="clouddb_owner"):
    return service.ok("GET", f"{branch}/roles/{role}/reveal_password")["password"]


@pytest.fixture
def default(service):
    return f"{BRANCHES}/{service.default_branch()}"


@pytest.fixture
def protected(service):
    return service.create_finished_branch(branch={"name": "production", "protected": True})


class Refusal(NamedTuple):
    """A request with a JSON body that is refused, with the name of its rule, if it is in the table of rules.

    C($) is followed by a name of C(account): a path, the id at the end of a path, or a time. C(text) is in the message.
    A request may begin with the name of the key that it has.
    """

    rule: str
    status: int
    request: str
    body: Any = None
    text: str = ""


PROJECTS: list[Any] = [
    *({"name": name} for name in (7, "", "x" * 257)),
    {"pg_version": 13},
    {"history_retention_seconds": 2_592_001},
    {"org_id": "Org_1"},
    {"settings": []},
    *({"settings": {"quota": {"active_time_seconds": value}}} for value in ("3600", -1)),
    *({"settings": {"allowed_ips": value}} for value in ({"ips": "192.0.2.1"}, {"protected_branches_only": "yes"})),
    {"settings": {"audit_log_level": "all"}},
    {"settings": {"maintenance_window": {"weekdays": [1]}}},
    {"settings": {"maintenance_window": {"weekdays": [8], "start_time": "01:00", "end_time": "02:00"}}},
    {"settings": {"maintenance_window": {"weekdays": [1], "start_time": "1am", "end_time": "02:00"}}},
    {"store_passwords": "yes"},
    {"autoscaling_limit_max_cu": 0.1},
    {"default_endpoint_settings": {"autoscaling_limit_min_cu": 0.1}},
    {"default_endpoint_settings": {"pg_settings": {"max_connections": 100}}},
]
KEY_NAMES: list[Any] = [None, {}, [], "deploy", {"name": "deploy"}, *({"key_name": name} for name in (None, 7, ""))]
SCHEDULES: list[dict[str, Any]] = [
    *({"frequency": "daily", "hour": 3, "retention_seconds": seconds} for seconds in (1, 35 * 86400 + 1)),
    {"frequency": "daily", "hour": 24},
    *({"frequency": frequency, "hour": 3} for frequency in ("hourly", "weekly", "monthly")),
    {"frequency": "weekly", "hour": 3, "day": 8},
]
SCHEDULE = {"schedule": [{"frequency": "daily", "hour": 3, "retention_seconds": 86400}]}
OF_PROJECT = (
    "$other",
    "${project}9",
    "$keys",
    "api_keys",
    "users/me",
    "nowhere",
    "/_sandbox/clock",
    "/_sandbox/faults",
)
ROLES = ("neon_superuser", "cloud_admin", "zenith_admin", "public", "none", "pg_app")
DATABASES = ("postgres", "template0", "template1")
LIMITS = (0, -1, "many", "1.5", "")
CURSORS = ([2**63, 1], ["a", 2**63], ["a", "1"], [1.5, 1], ["a"])
POINTS = (("$dev_id", "$before"), ("$main_id", "$before_all"), ("$dev_id", "$tomorrow"))
OTHER_ORG = "org-nope-12345678"
TOO_SMALL = {"project": {"default_endpoint_settings": {"autoscaling_limit_min_cu": 4, "autoscaling_limit_max_cu": 2}}}
URI = "GET $project/connection_uri"
OF_MAIN = {"source_branch_id": "$main_id"}
EXPIRES = {"branch": {"expires_at": "$tomorrow"}}
TIMELINE = [[0, "failed"]]

REFUSALS: list[tuple[Any, ...]] = [
    *(("fields_of_bodies", 400, "POST projects", {"project": each}, "body.") for each in PROJECTS),
    ("fields_of_bodies", 400, "POST projects", {}, "body."),
    ("fields_of_bodies", 400, "PATCH $project", {"project": {"history_retention_seconds": False}}, "body."),
    ("fields_of_bodies", 400, "POST $branches", {"branch": {"name": "x" * 257}}, "body."),
    ("fields_of_bodies", 400, "PATCH $branches/br-x", {"branch": {"name": ""}}, "body."),
    ("fields_of_bodies", 400, "POST $branches/br-x/roles", {"role": {}}, "body."),
    ("fields_of_bodies", 400, "POST $computes", {"endpoint": {"branch_id": "$bare_id", "type": "other"}}, "body."),
    ("fields_of_bodies", 400, "POST $bare/restore", {**OF_MAIN, "source_lsn": "1"}, "body."),
    *(("key_names", 400, "POST api_keys", body, "body") for body in (*KEY_NAMES, {"key_name": "x" * 65})),
    ("regions", 422, "POST projects", {"project": {"region_id": "eu-central-1"}}, "aws-eu-central-1"),
    ("organizations", 404, f"GET projects?org_id={OTHER_ORG}", None, OTHER_ORG),
    ("organizations", 404, "POST projects", {"project": {"org_id": OTHER_ORG}}, OTHER_ORG),
    ("organizations", 404, f"GET organizations/{OTHER_ORG}/api_keys", None, OTHER_ORG),
    ("org_key_on_account_paths", 404, "organization POST api_keys", {"key_name": "x"}, NOT_FOR_ORGANIZATIONS),
    *(
        ("org_key_on_account_paths", 404, f"organization GET {path}", None, NOT_FOR_ORGANIZATIONS)
        for path in ("api_keys", "users/me", "users/me/organizations", "regions")
    ),
    (
        "project_key_elsewhere",
        404,
        "project GET projects",
        None,
        f'{OUTSIDE_THE_PROJECT}; subject_project_id:"{PROJECT}"',
    ),
    ("project_key_elsewhere", 404, "project POST projects", {"project": {}}, OUTSIDE_THE_PROJECT),
    *(("project_key_elsewhere", 404, f"project GET {path}", None, OUTSIDE_THE_PROJECT) for path in OF_PROJECT),
    ("project_key_deletes_no_project", 404, "project DELETE $project"),
    ("", 404, "POST $keys", {"key_name": "ci", "project_id": "none"}),
    *(("", 404, f"DELETE api_keys/{key}") for key in (4711, 2**63 - 1, -1)),
    *(("", 400, f"DELETE api_keys/{key}") for key in ("x", 2**63, -(2**63) - 1)),
    *(("pages_of_projects", 400, f"GET projects?limit={limit}", None, "limit") for limit in (*LIMITS, 401)),
    ("pages_of_projects", 400, "GET projects?cursor=no-project", None, "cursor"),
    *(("pages_of_operations", 400, f"GET $project/operations?limit={each}", None, "limit") for each in (*LIMITS, 1001)),
    *(
        ("pages_of_operations", 400, f"GET $project/operations?cursor={cursor}", None, "cursor")
        for cursor in (PROJECT, "2026-13-01T00:00:00.000000000000000001%2B00:00")
    ),
    *(("pages_of_branches", 400, f"GET $branches?limit={limit}", None, "limit") for limit in (0, 10_001)),
    ("pages_of_branches", 400, "GET $branches?sort_by=id", None, "sort_by"),
    *(
        ("pages_of_branches", 400, f"GET $branches?cursor={cursor}", None, "cursor")
        for cursor in ("x", "e30=", *(urlsafe_b64encode(dumps(keys).encode()).decode() for keys in CURSORS))
    ),
    ("compute_sizes", 422, "POST projects", TOO_SMALL, "must not exceed"),
    ("compute_sizes", 422, "PATCH $project", TOO_SMALL, "must not exceed"),
    ("computes_of_a_branch", 409, "POST $computes", {"endpoint": {"branch_id": "$dev_id", "type": "read_write"}}),
    ("", 404, "POST $computes", {"endpoint": {"branch_id": "none", "type": "read_write"}}),
    (
        "computes_of_a_branch",
        422,
        "POST $computes",
        {"endpoint": {"branch_id": "$bare_id", "type": "read_write", "region_id": "x"}},
        "region",
    ),
    *(("protected_role_names", 422, "POST $main/roles", {"role": {"name": name}}, name) for name in ROLES),
    *(
        ("protected_role_names", 422, "POST projects", {"project": {"branch": {"role_name": each}}}, each)
        for each in ROLES
    ),
    ("role_name_length", 422, "POST $main/roles", {"role": {"name": "ä" * 32}}, "bytes"),
    *(
        ("reserved_database_names", 422, request, {"database": {"name": name, "owner_name": "app"}}, name)
        for name in DATABASES
        for request in ("POST $main/databases", "PATCH $main/databases/clouddb")
    ),
    *(
        ("reserved_database_names", 422, "POST projects", {"project": {"branch": {"database_name": name}}}, name)
        for name in DATABASES
    ),
    ("", 404, "POST $main/databases", {"database": {"name": "x", "owner_name": "nobody"}}),
    ("", 404, "PATCH $main/databases/clouddb", {"database": {"name": "x", "owner_name": "nobody"}}),
    ("", 409, "POST $main/databases", {"database": {"name": "orders", "owner_name": "app"}}),
    ("", 409, "PATCH $main/databases/orders", {"database": {"name": "clouddb"}}),
    ("", 409, "POST $main/roles", {"role": {"name": "app"}}),
    ("owner_of_a_database", 422, "DELETE $main/roles/clouddb_owner", None, "clouddb"),
    ("", 400, f"{URI}?database_name=clouddb"),
    ("", 400, f"{URI}?role_name=clouddb_owner"),
    ("", 404, f"{URI}?database_name=none&role_name=clouddb_owner"),
    ("", 404, f"{URI}?database_name=clouddb&role_name=none"),
    ("", 404, f"{URI}?database_name=clouddb&role_name=clouddb_owner&branch_id=none"),
    ("", 404, f"{URI}?database_name=clouddb&role_name=clouddb_owner&branch_id=$bare_id", None, "compute"),
    ("protected_branches", 422, "DELETE $protected", None, "protected"),
    ("protected_branches", 422, "POST $protected/restore", OF_MAIN, "protected"),
    ("protected_branches", 422, "DELETE $protected_compute", None, "protected"),
    ("protected_branches", 422, "DELETE $project", None, "protected"),
    ("expiration", 422, "PATCH $other_main", EXPIRES, "default branch"),
    ("expiration", 422, "PATCH $protected", EXPIRES, "protected"),
    ("expiration", 422, "PATCH $expiring", {"branch": {"protected": True}}, "protected"),
    ("expiration", 422, "PATCH $dev", EXPIRES, "has children"),
    ("expiration", 422, "POST $branches", {"branch": {"parent_id": "$expiring_id"}}, "expires at"),
    ("expiration", 422, "POST $expiring/set_as_default", None, "expires at"),
    *(
        ("expiration", 422, request, {"branch": {"name": "x", "expires_at": time}}, "at most 30 days ahead")
        for request in ("PATCH $bare", "POST $branches")
        for time in ("$yesterday", "$now", "$in_31_days")
    ),
    *(
        (
            "history_of_a_branch",
            422,
            "POST $branches",
            {"branch": {"parent_id": id, "parent_timestamp": time}},
            "history",
        )
        for id, time in POINTS
    ),
    *(
        ("history_of_a_branch", 422, "POST $dev/restore", {"source_branch_id": id, "source_timestamp": time}, "history")
        for id, time in POINTS
    ),
    ("restore_to_itself", 422, "POST $main/restore", {**OF_MAIN, "preserve_under_name": "old"}, "is required"),
    ("restore_to_itself", 422, "POST $main/restore", {**OF_MAIN, "source_lsn": "0/1"}, "is required"),
    ("restore_to_itself", 422, "POST $main/restore", {"source_branch_id": "$bare_id"}, "has children"),
    ("", 409, "POST $bare/restore", {**OF_MAIN, "preserve_under_name": "main"}),
    ("", 422, "POST $bare/restore", {**OF_MAIN, "source_lsn": "0/1", "source_timestamp": "$now"}, "exclusive"),
    ("", 404, "POST $bare/restore", {"source_branch_id": "none"}),
    ("", 409, "POST $branches", {"branch": {"name": "main"}}),
    ("", 409, "PATCH $bare", {"branch": {"name": "main"}}),
    ("deletions_of_branches", 422, "DELETE $main", None, "default branch"),
    ("deletions_of_branches", 422, "DELETE $dev", None, "$child_id"),
    ("locked", 423, "PATCH $busy", {"branch": {"name": "x"}}, LOCKED),
    ("locked", 423, "DELETE $busy", None, LOCKED),
    ("locked", 423, "POST $busy/databases", {"database": {"name": "x", "owner_name": "app"}}, LOCKED),
    ("locked", 423, "PATCH $busy/databases/clouddb", {"database": {"name": "x"}}, LOCKED),
    ("locked", 423, "DELETE $busy/databases/clouddb", None, LOCKED),
    ("locked", 423, "POST $busy/roles", {"role": {"name": "x"}}, LOCKED),
    ("locked", 423, "DELETE $busy/roles/free", None, LOCKED),
    ("locked", 423, "POST $busy/roles/app/reset_password", None, LOCKED),
    ("locked", 423, "POST $busy_branches", {"branch": {"parent_id": "$busy_id"}}, LOCKED),
    ("locked", 423, "PATCH $busy_project", {"project": {"history_retention_seconds": 1}}, LOCKED),
    ("locked", 423, "DELETE $busy_project", None, LOCKED),
    ("codes", 404, "GET projects/none"),
    ("codes", 401, "wrong GET projects"),
    *(("", 404, f"GET {path}") for path in ("/projects", "/api/projects", "/api/v1/projects")),
    ("malformed_ids", 404, "GET projects/a%20b/branches", None, NO_ROUTE),
    ("malformed_ids", 404, "GET projects/no-project-1/branches", None, "not found"),
    ("members", 400, "PATCH $admin", {"role": "owner"}),
    ("members", 422, "DELETE $admin", None, "last admin"),
    ("permissions", 400, "POST $project/permissions", {"email": "nobody"}),
    ("recovery_of_a_project", 422, "POST $project/recover", None, "is not deleted"),
    ("recovery_of_a_branch", 422, "POST $bare/recover", None, "is not deleted"),
    ("snapshots_of_root_branches", 422, "POST $dev/snapshot", None, "not a root branch"),
    ("snapshots_of_root_branches", 422, "PUT $dev/backup_schedule", SCHEDULE, "not a root branch"),
    ("snapshots_of_root_branches", 422, "POST $main/snapshot?timestamp=2020-01-01T00:00:00Z", None, "history"),
    ("snapshots_of_root_branches", 422, "POST $main/snapshot?expires_at=2020-01-01T00:00:00Z", None, "in the future"),
    (
        "times_of_a_snapshot",
        422,
        "POST $main/snapshot?timestamp=2020-01-01T00:00:00Z&lsn=0/1",
        None,
        "mutually exclusive",
    ),
    *(("backup_schedules", 400, "PUT $main/backup_schedule", {"schedule": [each]}, "body.") for each in SCHEDULES),
    (
        "backup_schedules",
        400,
        "PUT $main/backup_schedule",
        {"schedule": [{"frequency": "daily"}]},
        "must specify the hour",
    ),
    ("changes_of_a_snapshot", 422, "PATCH $snapshot", {"snapshot": {"expires_at": "$yesterday"}}, "in the future"),
    ("finalized_restores", 422, "POST $main/finalize_restore", None, "to replace another"),
    ("finalized_restores", 422, "POST $dev/finalize_restore", None, "to replace another"),
    *(("", 400, "PUT /_sandbox/clock", {"speed": speed}, "speed") for speed in (-1, "fast")),
    *(("", 400, "PUT /_sandbox/clock", {"advance": seconds}, "advance") for seconds in (-1, 1e12)),
    ("", 400, "PUT /_sandbox/clock", {"now": 1}, "now"),
    *(("", 400, "POST /_sandbox/operation_plans", plan, "timeline") for plan in ({}, {"timeline": []})),
    ("", 400, "POST /_sandbox/operation_plans", {"timeline": [[0, "done"]]}, "timeline"),
    ("", 400, "POST /_sandbox/operation_plans", {"timeline": [[0, "running"], [1e14, "failed"]]}, "timeline"),
    ("", 400, "POST /_sandbox/operation_plans", {"timeline": TIMELINE, "action": "explode"}, "action"),
    ("", 400, "POST /_sandbox/operation_plans", {"timeline": TIMELINE, "times": 0}, "times"),
    ("", 400, "POST /_sandbox/operation_plans", {"timeline": TIMELINE, "project": "x"}, "project"),
    *(("", 400, "POST /_sandbox/faults", fault, "kind") for fault in ({}, {"kind": "nonsense"})),
    ("", 400, "POST /_sandbox/faults", {"kind": "status"}, "status"),
    ("", 400, "POST /_sandbox/faults", {"kind": "status", "status": 503, "seconds": 1}, "seconds"),
    ("", 400, "POST /_sandbox/faults", {"kind": "stall", "seconds": -1}, "seconds"),
    ("", 400, "POST /_sandbox/faults", {"kind": "reset", "times": 0}, "times"),
    ("", 400, "POST /_sandbox/faults", {"kind": "reset", "method": "DELET"}, "method"),
    ("", 400, "POST /_sandbox/faults", {"kind": "list_lag", "seconds": 1e14}, "seconds"),
    ("", 400, "POST /_sandbox/faults", {"kind": "lingering_deletion", "seconds": 1, "again": 500}, "again"),
]


@pytest.fixture(scope="module")
def account(shared):
    """Clients of an account with an operation plan, by their key, its C(names) and C(content)."""
    main = f"{BRANCHES}/{shared.default_branch()}"
    names = {"project": PATH, "branches": BRANCHES, "computes": f"{PATH}/endpoints", "main": main}
    shared.ok("PATCH", PATH, json={"project": {"history_retention_seconds": 604_800}})
    shared.advance(3600)
    names |= {"before": shared.later(0), "before_all": shared.later(-1.1), "keys": KEYS}
    shared.create_role()
    shared.create_database(shared.default_branch(), owner="app")
    shared.advance(3600)
    names["snapshot"] = f"{PATH}/snapshots/{take(shared, main)['id']}"
    names["dev"] = shared.create_finished_branch(branch={"name": "dev"})
    names["bare"] = shared.create_finished_branch(branch={"name": "bare"}, endpoints=[])
    names["expiring"] = shared.create_finished_branch(branch={"name": "expiring", "expires_at": shared.later(10)})
    names["child"] = shared.create_finished_branch(
        branch={"name": "child", "parent_id": names["dev"].rsplit("/", 1)[1]}
    )
    names["protected"] = shared.create_finished_branch(branch={"name": "production", "protected": True})
    [compute] = shared.ok("GET", f"{names['protected']}/endpoints")["endpoints"]
    names["protected_compute"] = f"{PATH}/endpoints/{compute['id']}"
    [admin] = shared.ok("GET", f"organizations/{ORG}/members")["members"]
    names["admin"] = f"organizations/{ORG}/members/{admin['member']['id']}"
    for name in ("other", "busy"):
        created = create_project(shared, branch={"role_name": "app"}).json()
        names["busy_project"] = names[name] = f"projects/{created['project']['id']}"
        names["busy_branches"] = f"{names[name]}/branches"
        names[f"{name}_main"] = f"{names['busy_branches']}/{created['branch']['id']}"
        shared.advance(5)
    shared.finished("POST", f"{names['busy_main']}/roles", json={"role": {"name": "free"}})
    names["busy"] = f"{names['busy_branches']}/{shared.ok('POST', names['busy_branches'], json={})['branch']['id']}"
    names |= {f"{name}_id": path.rsplit("/", 1)[-1] for name, path in names.items()}
    times = {"yesterday": -1, "now": 0, "tomorrow": 1, "in_31_days": 30.001}
    names |= {name: shared.later(days) for name, days in times.items()}
    shared.plan([[0, "failed"]])
    clients = {"organization": organization_key(shared), "project": organization_key(shared, project_id=PROJECT)}
    return {"": shared, "wrong": shared.as_key("x"), **clients, "names": names, "content": content(shared)}


def content(service):
    """All that the account has, except when its keys were used."""
    state = service.application.app.state.sandbox
    tables = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT IN ('clock', 'api_keys')"
    read = [f"SELECT * FROM {name}" for (name,) in state.store._db.execute(tables)]
    read += ["SELECT id, revoked_at FROM api_keys", "SELECT origin, speed FROM clock"]
    return [[tuple(row) for row in state.store._db.execute(query)] for query in read], state.faults.remaining()


@pytest.mark.parametrize("row", REFUSALS, ids=lambda row: " ".join(map(str, (row[0] or "contract", *row[2:4]))))
def test_a_refusal_changes_nothing(account, row):
    """And its code is empty."""
    refusal, names, before = Refusal(*row), account["names"], account["content"]
    *key, method, path = Template(refusal.request).substitute(names).split(" ")
    body = json.loads(Template(dumps(refusal.body)).substitute(names))
    response = account["".join(key)].request(method, path, json=body)
    account["content"] = content(account[""])
    assert Template(refusal.text).substitute(names) in refused(response, refusal.status)
    assert account["content"] == before


def test_each_rule_has_a_source_and_a_test():
    names = [rule.name for rule in RULES]
    assert len(names) == len(set(names))
    assert all(rule.source for rule in RULES)
    assert {*names} - {row[0] for row in REFUSALS} - {name.removeprefix("test_") for name in globals()} == set()


def test_the_readme_shows_the_tables():
    text = README.read_text(encoding="utf-8")
    assert table() in text
    assert answers_table() in text


def test_unknown_fields(service):
    settings = {"quotas": {"active_time_seconds": 1}, "allowed_ips": {"ips": ["192.0.2.1"], "ipss": []}}
    created = create_project(service, name="wiki", settings=settings, colour="blue").json()["project"]
    assert created["settings"] == {"allowed_ips": {"ips": ["192.0.2.1"]}}
    assert "colour" not in created
    # These, only a compute that is created by itself has.
    endpoint = {"type": "read_write", "name": "web", "disabled": True, "autoscaling_limit_max_cu": 2}
    [compute] = service.create_branch(endpoints=[endpoint])["endpoints"]
    assert (compute.get("name"), compute["disabled"], compute["autoscaling_limit_max_cu"]) == (None, False, 2)


def test_every_field_of_the_schema_is_kept(service):
    """Even one that has no effect. The deprecated limits are those of default_endpoint_settings."""
    fields = {"provisioner": "k8s-pod", "store_passwords": False}
    limits = {"autoscaling_limit_min_cu": 0.5, "autoscaling_limit_max_cu": 2}
    created = create_project(service, **fields, **limits, default_endpoint_settings={"autoscaling_limit_max_cu": 1})
    project = created.json()["project"]
    assert {name: project[name] for name in fields} == fields
    assert project["default_endpoint_settings"] == {**limits, "autoscaling_limit_max_cu": 1}
    options = {"provisioner": "k8s-pod", "pooler_mode": "transaction", "passwordless_access": False, "name": "web"}
    branch = service.create_finished_branch(endpoints=[])
    compute = service.create_compute(branch, **options).json()["endpoint"]
    assert {name: compute[name] for name in options} == options


@pytest.mark.parametrize("depth", [60, 260, 900, 20_000])
def test_a_body_that_is_nested_deeply_gets_400(service, depth):
    """Whatever is stored, lists go on."""
    nested = '{"project": {"settings": ' + '{"a":' * depth + "1" + "}" * depth + "}}"
    headers = {"Content-Type": "application/json"}
    assert service.request("PATCH", PATH, data=nested, headers=headers).status_code == 400
    fault = nested.replace('{"project": {"settings":', '{"kind": "status", "status": 500, "body": {"a":')
    assert service.request("POST", "/_sandbox/faults", data=fault, headers=headers).status_code == 400
    assert service.get("projects").status_code == service.get("/_sandbox/faults").status_code == 200


def test_a_body_that_is_too_large_gets_413(served):
    """With its length, or in chunks."""
    for data in (b"x" * (MAX_BODY + 1), iter([b"x" * MAX_BODY, b"x"])):
        refused(served.request("PATCH", PATH, data=data), 413)
    assert served.ok("GET", PATH)


def test_key_names(service):
    assert service.create_key("x" * 64)["name"] == "x" * 64


def test_regions(service):
    assert {create_project(service, region_id=region).status_code for region in REGIONS} == {201}
    listed = service.ok("GET", "regions")["regions"]
    assert {region["region_id"] for region in listed} == REGIONS.keys()
    assert [region["region_id"] for region in listed if region["default"]] == ["aws-eu-central-1"]


def test_org_of_the_key(serve):
    service = serve({"projects": [{"name": "shop", "org_id": "org-1"}, {"name": "wiki"}]})
    assert [each["id"] for each in service.ok("GET", "users/me/organizations")["organizations"]][1:] == ["org-1"]
    key = organization_key(service, "org-1")
    assert [project["name"] for project in key.ok("GET", "projects")["projects"]] == ["shop"]
    assert create_project(key).json()["project"]["org_id"] == "org-1"
    refused(key.get("projects", org_id="org-sandbox-12345678"), 404)


def test_org_key_on_account_paths(service):
    assert [each["id"] for each in service.ok("GET", "users/me/organizations")["organizations"]] == [ORG]
    key = organization_key(service)
    assert key.get("projects").status_code == key.get(KEYS).status_code == 200


def test_keys_of_the_organization(service):
    """They are listed beside the user's own keys, without `last_used_at` until they are used."""
    own = service.keys()
    created = service.ok("POST", KEYS, json={"key_name": "ci"})
    assert created.keys() == {"id", "key", "name", "created_at", "created_by"}
    (listed,) = service.ok("GET", KEYS)
    assert (listed["id"], listed["name"], "last_used_at" in listed) == (created["id"], "ci", False)
    assert [key["id"] for key in service.keys()] == [key["id"] for key in own]
    key = service.as_key(created["key"])
    assert key.get("projects").status_code == 200
    assert "last_used_at" in service.ok("GET", KEYS)[0]
    assert service.request("DELETE", f"api_keys/{created['id']}").status_code == 404
    assert service.ok("DELETE", f"{KEYS}/{created['id']}")["revoked"] is True
    assert key.get("projects").status_code == 401
    assert service.request("DELETE", f"{KEYS}/{own[0]['id']}").status_code == 404


def test_key_that_is_limited_to_a_project(service):
    created = service.ok("POST", KEYS, json={"key_name": "ci", "project_id": PROJECT})
    assert created["project_id"] == service.ok("GET", KEYS)[0]["project_id"] == PROJECT
    key = service.as_key(created["key"])
    for path in (f"projects/{PROJECT}", f"projects/{PROJECT}/branches"):
        assert key.get(path).status_code == 200, path


def test_org_id_is_required(serve):
    """By the seed, after each start, unless the key implies it."""
    seed = {"projects": [{"name": "shop"}], "require_org_id": True}
    for _start in range(2):
        service = serve(seed)
        assert service.get("projects").status_code == 400
        assert len(service.ok("GET", "projects", params={"org_id": ORG})["projects"]) == 1
        assert organization_key(service).get("projects").status_code == 200


def test_project_key_deletes_no_project(service):
    """But it deletes branches of its project."""
    key = organization_key(service, project_id=PROJECT)
    key.ok("DELETE", service.create_finished_branch())


def test_pages_of_projects(serve):
    service = serve({"generate": {"projects": 23}})
    first = service.ok("GET", "projects")
    assert (len(first["projects"]), first["pagination"]["cursor"]) == (10, first["projects"][-1]["id"])
    service.ok("DELETE", f"projects/{first['pagination']['cursor']}")  # the cursor goes on to be one
    second = service.ok("GET", "projects", params={"limit": 400, "cursor": first["pagination"]["cursor"]})["projects"]
    assert len({each["id"] for each in first["projects"] + second}) == 23


def test_search_for_projects(service):
    create_project(service, name="Big Shop")
    for part, names in (
        ("SHO", {"shop", "Big Shop"}),
        ("1234567", {"shop"}),
        ("WISPY-LAKE-1", {"shop"}),
        ("nothing", set()),
    ):
        found = service.ok("GET", "projects", params={"search": part})["projects"]
        assert {each["name"] for each in found} == names, part


def test_pages_of_branches(service):
    for name in ("b", "c", "a"):
        service.create_finished_branch(branch={"name": name})
    renamed = f"{BRANCHES}/{service.branches()[1]['id']}"
    service.ok("PATCH", renamed, json={"branch": {"name": "bb"}})

    def names(**params):
        return [branch["name"] for branch in service.ok("GET", BRANCHES, params=params)["branches"]]

    assert names() == ["bb", "a", "c", "main"]
    assert names(sort_by="created_at", sort_order="asc") == ["main", "bb", "c", "a"]
    assert names(search="BB") == ["bb"]
    assert names(search=renamed.rsplit("/", 1)[1][3:]) == ["bb"]
    assert names(sort_by="name") == ["main", "c", "bb", "a"]
    assert "bb" in names(search="B")
    pages = (("name", "desc", ["bb", "a"]), ("name", "asc", ["c", "main"]), ("created_at", "asc", ["c", "a"]))
    for sort_by, order, last in pages:
        query = {"limit": 2, "sort_by": sort_by, "sort_order": order}
        page = service.ok("GET", BRANCHES, params=query)
        rest = service.ok("GET", BRANCHES, params={**query, "cursor": page["pagination"]["next"]})
        assert [branch["name"] for branch in rest["branches"]] == last
        assert rest["pagination"] == {"sort_by": sort_by, "sort_order": order}
    service.fault("page_limit", items=2)
    assert names(sort_by="name") == ["main", "c"]


def test_compute_of_a_new_branch(service):
    created = service.create_branch(branch={"name": "a"})
    assert [operation["action"] for operation in created["operations"]] == ["create_branch", "start_compute"]
    service.advance(5)
    assert service.create_branch(endpoints=[])["endpoints"] == []


@pytest.mark.parametrize(
    "least, most, status",
    [
        *((0.2, 1, 400), (2, 1, 422), (0.25, 8.5, 422), (0.25, 8.25, 201)),
        *((8, 16, 201), (9, 17, 422), (56, 56, 201), (57, 57, 422)),
    ],
)
def test_compute_sizes(service, least, most, status):
    branch = service.create_finished_branch(endpoints=[])
    fields = {"autoscaling_limit_min_cu": least, "autoscaling_limit_max_cu": most}
    assert service.create_compute(branch, **fields).status_code == status


def test_parts_of_settings(service, default):
    project, (compute,) = PATH, service.ok("GET", f"{default}/endpoints")["endpoints"]
    places = ((project, "project", "quota"), (f"{project}/endpoints/{compute['id']}", "endpoint", "pg_settings"))
    for path, wrapper, part in places:
        before = {part: {"work_mem": "1"} if part == "pg_settings" else {"active_time_seconds": 1}}
        after = {part: {"jit": "off"} if part == "pg_settings" else {"written_data_bytes": 2}}
        other = {"preload_libraries": {"use_defaults": True}}
        for settings in ({**before, **other}, after):
            changed = service.finished("PATCH", path, json={wrapper: {"settings": settings}})
            assert [operation["action"] for operation in changed["operations"]] == ["apply_config"]
        assert changed[wrapper]["settings"] == {**after, **other}


def test_disabled_computes(service, default):
    [compute] = service.ok("GET", f"{default}/endpoints")["endpoints"]
    path = f"{PATH}/endpoints/{compute['id']}"
    for disabled, actions in ((True, ["apply_config", "suspend_compute"]), (True, ["apply_config"])):
        changed = service.ok("PATCH", path, json={"endpoint": {"disabled": disabled}})
        assert [each["action"] for each in changed["operations"]] == actions
        service.advance(5)
        assert service.ok("GET", path)["endpoint"]["current_state"] == "idle"


def test_owner_of_a_new_project(service):
    for branch, owner in (
        ({}, "clouddb_owner"),
        ({"database_name": "blog"}, "blog_owner"),
        ({"role_name": "me"}, "me"),
    ):
        created = create_project(service, branch=branch).json()
        assert [each["owner_name"] for each in created["databases"]] == [owner]


@pytest.mark.parametrize(
    ("seconds", "status"), [(-2, 400), (1, 400), (59, 400), (604_801, 400), (-1, 201), (0, 201), (60, 201)]
)
def test_suspend_timeout(service, seconds, status):
    branch = service.create_finished_branch(endpoints=[])
    assert service.create_compute(branch, suspend_timeout_seconds=seconds).status_code == status


def test_stored_passwords(service, default):
    created = create_project(service, name="wiki", store_passwords=False).json()
    assert created["project"]["store_passwords"] is False
    branch = f"projects/{created['project']['id']}/branches/{created['branch']['id']}"
    refused(service.get(f"{branch}/roles/clouddb_owner/reveal_password"), 412)
    assert role_password(service, default)


def test_role_name_length(service, default):
    for allowed in ("ä" * 31, "pgbouncer"):  # not the prefix pg_
        service.finished("POST", f"{default}/roles", json={"role": {"name": allowed}})


def test_owner_of_a_database(service, default):
    """It can be deleted when its databases are another's, or gone."""
    service.finished("DELETE", f"{default}/databases/clouddb")
    service.ok("DELETE", f"{default}/roles/clouddb_owner")


def test_protected_branches(service, protected):
    service.ok("PATCH", protected, json={"branch": {"protected": False}})
    service.ok("POST", f"{protected}/restore", json={"source_branch_id": service.default_branch()})


def test_restricted_actions(service, protected, default):
    restricted = service.ok("GET", protected)["branch"]["restricted_actions"]
    assert [action["name"] for action in restricted] == ["restore", "delete-rw-endpoint"]
    assert {action["reason"] for action in restricted} == {"the branch is protected"}
    assert "restricted_actions" not in service.ok("GET", default)["branch"]


def test_passwords_from_protected_branches(service, protected):
    child = service.create_finished_branch(branch={"parent_id": protected.rsplit("/", 1)[1]})
    password = role_password(service, child)
    assert password != role_password(service, protected)
    service.ok("POST", f"{child}/restore", json={"source_branch_id": protected.rsplit("/", 1)[1]})
    assert role_password(service, child) == password


def test_expiration(service, default):
    branch = service.create_finished_branch(branch={"name": "dev", "expires_at": service.later(days=10)})
    before = service.ok("GET", branch)["branch"]
    assert before["ttl_interval_seconds"] == 864_000
    service.advance(86_400)
    service.ok("POST", f"{branch}/restore", json={"source_branch_id": default.rsplit("/", 1)[1]})
    after = service.ok("GET", branch)["branch"]
    assert after["ttl_interval_seconds"] == 864_000
    assert before["expires_at"] < after["expires_at"] <= service.later(days=10).replace("+00:00", "Z")
    service.advance(5)
    assert "expires_at" not in service.ok("PATCH", branch, json={"branch": {"expires_at": None}})["branch"]


def test_history_of_a_branch(service):
    """The project is a day old, as its history retention is long."""
    service.advance(3600)
    time = service.later(days=-0.01)
    assert create_branch(service, parent_id=service.default_branch(), parent_timestamp=time).status_code == 201


def test_operations_of_a_restore(service, default):
    branch, source = service.create_finished_branch(), {"source_branch_id": default.rsplit("/", 1)[1]}
    for body, second in (({}, "delete_timeline"), ({"preserve_under_name": "old"}, "suspend_compute")):
        started = service.ok("POST", f"{branch}/restore", json={**source, **body})["operations"]
        assert (started[1]["action"], started[1]["branch_id"]) == (second, branch.rsplit("/", 1)[1])
        service.advance(5)
    assert service.ok("GET", branch)["branch"]["current_state"] == "ready"


@pytest.mark.parametrize("lock", ["branch", "project"])
def test_locked(serve, lock):
    service = serve({"projects": [{"id": PROJECT, "age": "1d"}]}, lock=lock)
    default = f"{BRANCHES}/{service.default_branch()}"
    other = f"{BRANCHES}/{service.create_branch(branch={'name': 'dev'})['branch']['id']}"
    assert refused(service.request("DELETE", other), 423) == LOCKED
    response = service.request("PATCH", default, json={"branch": {"name": "trunk"}})
    assert response.status_code == {"branch": 200, "project": 423}[lock]


def test_evidence(service, default):
    """Of the latest operation, unless that has failed."""
    [compute] = service.ok("GET", f"{default}/endpoints")["endpoints"]
    path = f"{PATH}/endpoints/{compute['id']}"

    def times():
        endpoint = service.ok("GET", path)["endpoint"]
        return endpoint.get("started_at"), endpoint.get("suspended_at")

    service.finished("POST", f"{path}/start")
    before = times()
    service.plan([[0, "failed"]], action="suspend_compute")
    service.finished("POST", f"{path}/suspend")
    assert times() == before
    service.finished("POST", f"{path}/suspend")
    assert times()[0] == before[0]
    assert times()[1] > (before[1] or before[0])
    service.finished("POST", f"{path}/start")
    started = times()
    assert started[0] > started[1] > before[0]
    service.ok("PATCH", path, json={"endpoint": {"name": "web"}})
    assert times() == started
    service.advance(7200)
    assert times()[0] > started[0]
    assert times()[1] > started[1]


def test_usage(service):
    service.ok("PATCH", PATH, json={"project": {"settings": {"quota": {"active_time_seconds": 60}}}})
    project = service.ok("GET", PATH)["project"]
    used = ("active_time_seconds", "compute_time_seconds", "data_storage_bytes_hour")
    for name in (*used, "written_data_bytes", "data_transfer_bytes"):
        assert isinstance(project[name], int), name
    assert project["consumption_period_start"] < project["consumption_period_end"]
    assert project["settings"]["quota"] == {"active_time_seconds": 60}


def test_members(service):
    members = f"organizations/{ORG}/members"
    [user] = service.ok("GET", members)["members"]
    path = f"{members}/{user['member']['id']}"
    assert user["member"]["role"] == "admin"
    assert service.ok("PATCH", path, json={"role": "viewer"}) == service.ok("GET", path)
    assert service.ok("DELETE", path) == {}
    assert service.get(path).status_code == 404


def test_members_of_the_seed(serve):
    service = serve({"members": [{"email": "colleague@example.com", "role": "viewer"}]})
    members = service.ok("GET", f"organizations/{ORG}/members")["members"]
    shown = {each["user"]["email"]: each["member"]["role"] for each in members}
    assert shown == {"colleague@example.com": "viewer", "sandbox@clouddb.example": "admin"}


def test_permissions(service):
    path = f"{PATH}/permissions"
    granted = service.ok("POST", path, json={"email": "colleague@example.com"})
    assert service.ok("GET", path)["project_permissions"] == [granted]
    revoked = service.ok("DELETE", f"{path}/{granted['id']}")
    assert revoked == {**granted, "revoked_at": revoked["revoked_at"]}
    assert service.ok("GET", path)["project_permissions"] == []


def recoverable(service, **params):
    page = service.ok("GET", "projects", params={"recoverable": True, **params})
    return [project["id"] for project in page["projects"]]


def test_recovery_of_a_project(service, default):
    """With all that it had, but not what had been deleted before."""
    service.create_finished_branch(branch={"name": "review"})
    service.finished("DELETE", service.create_finished_branch(branch={"name": "gone"}))
    before = service.branches(), role_password(service, default), service.ok("GET", f"{PATH}/endpoints")["endpoints"][0]
    deleted = service.ok("DELETE", PATH)["project"]
    assert service.request("POST", f"{PATH}/recover").status_code == 423
    service.advance(5)
    assert recoverable(service) == recoverable(service, search="shop") == [PROJECT]
    [listed] = service.ok("GET", "projects", params={"recoverable": True})["projects"]
    assert deleted.keys() & {"deleted_at", "recoverable_until"} == set()
    assert listed["recoverable_until"] > service.later(6) > listed["deleted_at"]
    recovered = service.ok("POST", f"{PATH}/recover")
    assert [branch["name"] for branch in recovered["branches"]] == ["main", "review"]
    endpoint = service.ok("GET", f"{PATH}/endpoints")["endpoints"][0]
    assert (service.branches(), role_password(service, default)) == before[:2]
    assert (endpoint["host"], endpoint["current_state"]) == (before[2]["host"], "idle")
    assert recoverable(service) == []


def test_a_project_is_recovered_within_seven_days(service):
    service.ok("DELETE", PATH)
    service.finished("PUT", "/_sandbox/limits", json={"projects": 0})
    assert service.request("POST", f"{PATH}/recover").json()["code"] == "PROJECTS_LIMIT_EXCEEDED"
    service.ok("PUT", "/_sandbox/limits", json={})
    service.advance(7 * 86400)
    assert service.request("POST", f"{PATH}/recover").status_code == 404
    assert recoverable(service) == []


def deleted_branches(service, **params):
    page = service.ok("GET", BRANCHES, params={"include_deleted": True, **params})
    return {branch["name"]: branch["recovery"] for branch in page["branches"] if "recovery" in branch}


def test_recovery_of_a_branch(service):
    kept = service.create_finished_branch(branch={"name": "kept", "expires_at": service.later(1)})
    before = service.ok("GET", kept)["branch"], role_password(service, kept), service.ok("GET", f"{kept}/endpoints")
    service.ok("DELETE", kept)
    service.ok("DELETE", service.create_finished_branch(branch={"name": "hard"}), params={"hard_delete": True})
    service.create_finished_branch(branch={"name": "expired", "expires_at": service.later(1)})
    service.advance(86400)
    shown = deleted_branches(service)
    assert {name: each["deletion_method"] for name, each in shown.items()} == {"kept": "user", "expired": "ttl"}
    assert shown["kept"]["deleted_at"] < shown["expired"]["deleted_at"] < shown["kept"]["recoverable_until"]
    assert deleted_branches(service, search="exp").keys() == {"expired"}
    assert deleted_branches(service, include_deleted=False) == {}
    assert service.names() == ["main"]
    recovered = service.ok("POST", f"{kept}/recover")
    gone = ("expires_at", "ttl_interval_seconds")
    assert recovered["branch"] == {name: value for name, value in before[0].items() if name not in gone}
    assert role_password(service, kept) == before[1]
    assert [each["host"] for each in recovered["endpoints"]] == [each["host"] for each in before[2]["endpoints"]]
    assert recovered["endpoints"][0]["current_state"] == "idle"


def test_a_branch_is_recovered_within_seven_days_after_its_parent_unless_its_name_is_taken(service):
    parent = service.create_finished_branch(branch={"name": "parent"})
    child = service.create_finished_branch(branch={"name": "child", "parent_id": parent.rsplit("/", 1)[1]})
    for path in (child, parent):
        service.finished("DELETE", path)
    assert "before its parent" in refused(service.request("POST", f"{child}/recover"))
    other = service.create_finished_branch(branch={"name": "parent"})
    assert service.request("POST", f"{parent}/recover").status_code == 409
    service.ok("DELETE", other)
    service.ok("PUT", "/_sandbox/limits", json={"branches": 1})
    assert service.request("POST", f"{parent}/recover").json()["code"] == "BRANCHES_LIMIT_EXCEEDED"
    service.finished("PUT", "/_sandbox/limits", json={})
    for path in (parent, child):
        service.ok("POST", f"{path}/recover")
    service.ok("DELETE", child)
    service.advance(7 * 86400)
    assert service.request("POST", f"{child}/recover").status_code == 404
    assert deleted_branches(service) == {}


def take(service, branch, **params):
    """Take a snapshot, and let its operations finish."""
    taken = service.finished("POST", f"{branch}/snapshot", params=params)
    return taken["snapshot"]


def listed_snapshots(service):
    return service.ok("GET", f"{PATH}/snapshots")["snapshots"]


def test_snapshots_of_root_branches(service, default):
    first = take(service, default)
    assert (first["name"], first["manual"], "timestamp" in first) == (first["id"], True, False)
    second = take(service, default, name="nightly", timestamp=service.later(-0.5), expires_at=service.later(1))
    assert second["timestamp"] < second["created_at"] < second["expires_at"]
    assert second["source_branch_id"] == default.rsplit("/", 1)[1]
    assert listed_snapshots(service) == [second, first]
    service.advance(86400)
    assert listed_snapshots(service) == [first]


def test_backup_schedules(service, default):
    path, daily = f"{default}/backup_schedule", {"frequency": "daily", "hour": 3}
    assert service.ok("GET", path) == {"schedule": []}
    weekly, monthly = {"frequency": "weekly", "day": 7}, {"frequency": "monthly", "day": 31}
    for items in ([daily, {**daily, **weekly}, {**daily, **monthly}], []):
        assert service.ok("PUT", path, json={"schedule": items}) == {}
        assert service.ok("GET", path) == {"schedule": [{**each, "retention_seconds": 35 * 86400} for each in items]}


def test_operations_of_a_snapshot(service, default):
    taken = service.ok("POST", f"{default}/snapshot")
    started = taken["operations"]
    assert [each["action"] for each in started] == ["create_branch", "timeline_archive"]
    [own_id] = {each["branch_id"] for each in started}
    assert own_id not in [each["id"] for each in service.branches()]
    path = f"{PATH}/snapshots/{taken['snapshot']['id']}"
    assert service.request("DELETE", path).status_code == 423
    service.advance(5)
    assert [each["branch_id"] for each in service.ok("DELETE", path)["operations"]] == [own_id]
    service.ok("PATCH", default, json={"branch": {"protected": True}})


def test_changes_of_a_snapshot(service, default):
    snapshot = take(service, default, name="nightly", expires_at=service.later(1))
    path = f"{PATH}/snapshots/{snapshot['id']}"

    def changed(**changes):
        return service.ok("PATCH", path, json={"snapshot": changes})["snapshot"]

    assert changed(name="release") == {**snapshot, "name": "release"}
    assert changed(expires_at=service.later(2))["expires_at"] > snapshot["expires_at"]
    assert "expires_at" not in changed(expires_at=None)
    deleted = service.request("DELETE", path)
    assert deleted.status_code == 202
    assert [each["action"] for each in deleted.json()["operations"]] == ["delete_timeline"]
    assert listed_snapshots(service) == []
    assert service.request("DELETE", path).status_code == 404


def restore_snapshot(service, snapshot, **body):
    return service.finished("POST", f"{PATH}/snapshots/{snapshot['id']}/restore", json=body)


def by_name(service):
    return {branch["name"]: branch for branch in service.branches()}


def test_restore_of_a_snapshot(service, default):
    """In one step: the connection strings stay, the id does not."""
    snapshot = take(service, default, name="nightly")
    service.create_role("later")
    service.ok("PATCH", default, json={"branch": {"protected": True}})
    service.ok("PUT", f"{default}/backup_schedule", json=SCHEDULE)
    [host] = [each["host"] for each in service.ok("GET", f"{PATH}/endpoints")["endpoints"]]
    restored = restore_snapshot(service, snapshot, finalize_restore=True)
    assert [each["action"] for each in restored["operations"]] == ["create_branch", "suspend_compute", "start_compute"]
    assert [each["host"] for each in restored["endpoints"]] == [host]
    new, old = (by_name(service)[name] for name in ("main", "main (old)"))
    assert f"{BRANCHES}/{old['id']}" == default
    assert (new["id"], new["default"], new["protected"]) == (restored["branch"]["id"], True, True)
    assert (old["default"], old["protected"], "parent_id" in new) == (False, False, False)
    assert (new["restored_from"], new["restored_as"]) == (snapshot["id"], old["id"])
    assert new["restore_status"] == "finalized"
    path = f"{BRANCHES}/{new['id']}"
    assert [role["name"] for role in service.ok("GET", f"{path}/roles")["roles"]] == ["clouddb_owner"]
    assert role_password(service, path) == role_password(service, default)
    assert service.ok("GET", f"{path}/backup_schedule") == SCHEDULE
    assert service.ok("GET", f"{default}/backup_schedule") == {"schedule": []}
    restore_snapshot(service, snapshot, finalize_restore=True, target_branch_id=new["id"])
    assert service.names() == ["main (old)", "main (old 2)", "main"]
    assert service.ok("DELETE", default)["branch"]["id"] == old["id"]


def test_deletions_of_branches(service, default):
    """Of those without a parent, only the one that the project was created with stays, until a snapshot takes its place."""
    copy = service.create_finished_branch(branch={"name": "copy", "init_source": "schema-only"}, endpoints=[])
    body = {"source_branch_id": default.rsplit("/", 1)[1], "source_lsn": "0/1", "preserve_under_name": "backup"}
    service.finished("POST", f"{default}/restore", json=body)
    snapshot = take(service, default)
    preview = restore_snapshot(service, snapshot, name="preview")["branch"]["id"]
    other = service.create_finished_branch(branch={"name": "other", "init_source": "schema-only"}, endpoints=[])
    service.ok("POST", f"{other}/set_as_default")
    assert service.request("DELETE", default).json()["message"] == "cannot delete the root branch"
    service.finished("DELETE", f"{BRANCHES}/{by_name(service)['backup']['id']}")
    service.finished("POST", f"{BRANCHES}/{preview}/finalize_restore")
    for path in (default, copy, f"{BRANCHES}/{preview}"):
        service.finished("DELETE", path)
    assert service.names() == ["other"]


def test_restore_of_a_snapshot_in_steps(service, default):
    """By default, next to its target, which is the branch that the snapshot is of."""
    snapshot = take(service, default)
    review = service.create_finished_branch(branch={"name": "review"}, endpoints=[])
    target_id = default.rsplit("/", 1)[1]
    branch = restore_snapshot(service, snapshot, name="preview")["branch"]
    path = f"{BRANCHES}/{branch['id']}"
    assert (branch["restore_status"], branch["restored_as"], branch["current_state"]) == ("restored", target_id, "init")
    assert service.ok("GET", f"{path}/endpoints")["endpoints"][0]["current_state"] == "active"
    assert service.request("POST", f"{path}/finalize_restore", json={"name": "review"}).status_code == 409
    finalized = service.ok("POST", f"{path}/finalize_restore", json={"name": "before"})
    assert [each["action"] for each in finalized["operations"]] == ["suspend_compute", "start_compute"]
    service.advance(5)
    assert (by_name(service)["main"]["id"], by_name(service)["before"]["id"]) == (branch["id"], target_id)
    assert "to replace another" in refused(service.request("POST", f"{path}/finalize_restore"))
    restore_snapshot(service, snapshot, target_branch_id=review.rsplit("/", 1)[1], finalize_restore=True)
    assert "parent_id" not in by_name(service)["review"]
    service.ok("PUT", "/_sandbox/limits", json={"root_branches": 2})
    full = service.request("POST", f"{PATH}/snapshots/{snapshot['id']}/restore")
    assert full.json()["code"] == "ROOT_BRANCHES_LIMIT_EXCEEDED"


def test_a_snapshot_has_what_was_there_at_its_time(service, default):
    service.create_role("later")
    service.advance(60)
    snapshot = take(service, default, timestamp=service.later(-0.5))
    path = f"{BRANCHES}/{restore_snapshot(service, snapshot, finalize_restore=True)['branch']['id']}"
    assert [role["name"] for role in service.ok("GET", f"{path}/roles")["roles"]] == ["clouddb_owner"]


def test_history_after_a_snapshot(service, default):
    restored = restore_snapshot(service, take(service, default), finalize_restore=True)["branch"]["id"]
    body = {"source_branch_id": restored, "source_timestamp": service.later(0), "preserve_under_name": "kept"}
    assert "still ongoing" in refused(service.request("POST", f"{BRANCHES}/{restored}/restore", json=body))


def test_snapshots_limit(service, default):
    service.ok("PUT", "/_sandbox/limits", json={"snapshots": 1})
    take(service, default)
    assert refused(service.request("POST", f"{default}/snapshot")) == "snapshots limit exceeded"
