# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits of a plan, recorded answers, and other shapes of responses."""

from __future__ import annotations

import pytest

from clouddb_sandbox.rules import ANSWERS

PROJECT = "wispy-lake-12345678"
PATH = f"projects/{PROJECT}"
BRANCHES = f"{PATH}/branches"


def creations(service):
    default, database = service.default_branch(), {"name": "orders", "owner_name": "clouddb_owner"}
    return {
        "projects": (("projects", {"project": {}}), "PROJECTS"),
        "branches": ((BRANCHES, {"endpoints": []}), "BRANCHES"),
        "root_branches": ((BRANCHES, {"branch": {"init_source": "schema-only"}}), "ROOT_BRANCHES"),
        "computes": ((f"{PATH}/endpoints", {"endpoint": {"branch_id": default, "type": "read_only"}}), "ENDPOINTS"),
        "databases": ((f"{BRANCHES}/{default}/databases", {"database": database}), "DATABASES"),
        "users": ((f"{BRANCHES}/{default}/roles", {"role": {"name": "app"}}), "ROLES"),
    }


@pytest.mark.parametrize("limit", ["projects", "branches", "root_branches", "computes", "databases", "users"])
def test_a_limit_has_its_code(service, limit):
    """There is one of each already."""
    (path, body), code = creations(service)[limit]
    service.ok("PUT", "/_sandbox/limits", json={limit: 1})
    refused = service.request("POST", path, json=body)
    assert (refused.status_code, refused.json()["code"]) == (422, f"{code}_LIMIT_EXCEEDED")
    service.ok("PUT", "/_sandbox/limits", json={limit: 2})
    assert service.request("POST", path, json=body).status_code == 201


def test_what_a_branch_brings_counts(service):
    """Its compute, and the branch that a restore keeps."""
    service.ok("PUT", "/_sandbox/limits", json={"computes": 1})
    assert service.request("POST", BRANCHES, json={}).json()["code"] == "ENDPOINTS_LIMIT_EXCEEDED"
    service.ok("PUT", "/_sandbox/limits", json={"branches": 1})
    default = service.default_branch()
    body = {"source_branch_id": default, "source_lsn": "0/1", "preserve_under_name": "old"}
    refused = service.request("POST", f"{BRANCHES}/{default}/restore", json=body)
    assert refused.json()["code"] == "BRANCHES_LIMIT_EXCEEDED"


def test_what_adds_nothing_is_not_limited(service):
    """Even if there are more than the limit, as after a change of the plan."""
    service.ok("PUT", "/_sandbox/limits", json={"computes": 0, "root_branches": 0})
    service.ok("POST", BRANCHES, json={"endpoints": []})


def test_a_deleted_project_makes_room(service):
    service.ok("PUT", "/_sandbox/limits", json={"projects": 1})
    service.ok("DELETE", PATH)
    service.ok("POST", "projects", json={"project": {}})


def test_limits_of_the_start(serve):
    service = serve(limits={"projects": 0})
    assert service.ok("GET", "/_sandbox/limits")["projects"] == 0
    assert service.request("POST", "projects", json={"project": {}}).json()["code"] == "PROJECTS_LIMIT_EXCEEDED"


@pytest.mark.parametrize("name", ANSWERS)
def test_recorded_answers(service, name):
    """Without Retry-After. The request is not processed."""
    before = service.branches()
    service.fault("recorded", answer=name, method="POST")
    response = service.request("POST", BRANCHES, json={})
    answer = ANSWERS[name]
    assert (response.status_code, "Retry-After" in response.headers) == (answer.status, False)
    if "html" in response.headers["Content-Type"]:
        assert response.text == answer.message
    else:
        assert (response.json()["message"], response.json()["code"]) == (answer.message, "")
    assert service.branches() == before


def test_rewrite(service):
    """Of successful responses only."""
    changed = {"branches.*.current_state": "archived", "none.*.x": 1}
    service.fault("rewrite", path=f"/{BRANCHES}", set=changed, omit=["branches.*.protected", "annotations"])
    page = service.ok("GET", BRANCHES)
    assert page["branches"][0]["current_state"] == "archived"
    assert not {"protected", "annotations"} & {*page["branches"][0], *page}
    service.fault("rewrite", method="DELETE", empty=True, times=2)
    assert service.request("DELETE", f"{BRANCHES}/{service.default_branch()}").json()["message"]
    service.create_role()
    deleted = service.request("DELETE", f"{BRANCHES}/{service.default_branch()}/roles/app")
    assert (deleted.status_code, deleted.content) == (200, b"")


def test_hidden_source(service):
    """With all that is below it, from the restore on."""
    branch, default = service.create_finished_branch(), f"{BRANCHES}/{service.default_branch()}"
    service.fault("hidden_source")
    service.ok("POST", f"{branch}/restore", json={"source_branch_id": default.rsplit("/", 1)[1]})
    assert {service.get(path).status_code for path in (default, f"{default}/roles")} == {404}
    assert service.get(branch).status_code == 200
    child = {"branch": {"name": "child", "parent_id": default.rsplit("/", 1)[1]}}
    assert service.request("POST", BRANCHES, json=child).status_code == 404
    assert service.request("POST", BRANCHES, data="[" * 20_000).status_code == 400
    service.advance(30)
    assert service.get(default).status_code == 200
    service.ok("POST", BRANCHES, json=child)
