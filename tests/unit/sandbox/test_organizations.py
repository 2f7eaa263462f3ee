# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The organization of the account, its keys, and keys that are limited to a project."""

from __future__ import annotations

PROJECT = "wispy-lake-12345678"
ORG = "org-sandbox-12345678"
KEYS = f"organizations/{ORG}/api_keys"


def create_key(service, **body):
    return service.ok("POST", KEYS, json={"key_name": "ci", **body})


def test_keys_of_the_organization(service):
    """They are listed beside the user's own keys, without `last_used_at` until they are used."""
    own = service.keys()
    created = create_key(service)
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
    created = create_key(service, project_id=PROJECT)
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
        assert service.as_key(create_key(service)["key"]).get("projects").status_code == 200
