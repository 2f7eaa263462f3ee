# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Computes, which the API calls endpoints."""

from __future__ import annotations

import pytest

PROJECT = "wispy-lake-12345678"
ENDPOINTS = f"projects/{PROJECT}/endpoints"


@pytest.fixture
def branch(service):
    """The path of a branch without a compute."""
    return service.create_finished_branch(endpoints=[])


@pytest.fixture
def compute(service):
    """The path of an active compute."""
    created = service.create_branch(endpoints=[{"type": "read_write"}])
    service.advance(5)
    return f"{ENDPOINTS}/{created['endpoints'][0]['id']}"


def state_of(service, compute):
    return service.ok("GET", compute)["endpoint"]["current_state"]


def actions_of(response):
    return [operation["action"] for operation in response["operations"]]


def test_create_and_delete(service, branch):
    """It is `init` until it has started, and locks its branch. A second deletion gets 204."""
    created = service.create_compute(branch, autoscaling_limit_max_cu=2, suspend_timeout_seconds=-1, name="web").json()
    compute = f"{ENDPOINTS}/{created['endpoint']['id']}"
    assert actions_of(created) == ["start_compute"]
    assert created["operations"][0]["endpoint_id"] == created["endpoint"]["id"]
    assert created["endpoint"]["current_state"] == "init"
    assert created["endpoint"].items() >= {"autoscaling_limit_max_cu": 2, "suspend_timeout_seconds": -1}.items()
    assert service.create_compute(branch, type="read_only").status_code == 423
    service.advance(5)
    current = service.ok("GET", compute)["endpoint"]
    assert current["started_at"] > created["endpoint"]["started_at"]
    assert current == {**created["endpoint"], "current_state": "active", "started_at": current["started_at"]}
    assert service.ok("GET", f"{branch}/endpoints") == {"endpoints": [current]}
    assert actions_of(service.ok("DELETE", compute)) == ["suspend_compute"]
    assert service.request("DELETE", compute).status_code == 204
    assert service.ok("GET", f"{branch}/endpoints") == {"endpoints": []}


def test_branch_has_one_read_write_compute_and_any_number_of_others(service, compute):
    branch = f"projects/{PROJECT}/branches/{service.ok('GET', compute)['endpoint']['branch_id']}"
    for _replica in range(2):
        assert service.create_compute(branch, type="read_only").status_code == 201
        service.advance(5)
    assert service.create_compute(branch).status_code == 409
    listed = service.ok("GET", f"{branch}/endpoints")["endpoints"]
    assert [endpoint["type"] for endpoint in listed] == ["read_write", "read_only", "read_only"]
    assert None not in service.ok("DELETE", f"{ENDPOINTS}/{listed[2]['id']}")["endpoint"].values()
    service.advance(5)
    assert actions_of(service.ok("DELETE", branch)) == ["suspend_compute"] * 2


def test_update_changes_the_fields_that_are_given(service, compute):
    before = service.ok("GET", compute)["endpoint"]
    changes = {"autoscaling_limit_min_cu": 1, "autoscaling_limit_max_cu": 4, "settings": {"pg_settings": {"a": "1"}}}
    changed = service.ok("PATCH", compute, json={"endpoint": changes})
    assert actions_of(changed) == ["apply_config"]
    assert changed["endpoint"].pop("updated_at") > before["updated_at"]
    del before["updated_at"], before["last_active"], changed["endpoint"]["last_active"]
    assert changed["endpoint"] == {**before, **changes}
    service.advance(5)
    assert service.request("PATCH", compute, json={"endpoint": {"autoscaling_limit_max_cu": 0.5}}).status_code == 422


def test_start_and_suspend(service, compute):
    """The state changes when the operation is finished. Nothing is started if it is the wanted one."""
    for action, state in (("suspend", "idle"), ("start", "active")):
        before = state_of(service, compute)
        response = service.ok("POST", f"{compute}/{action}")
        assert actions_of(response) == [f"{action}_compute"]
        assert response["endpoint"]["current_state"] == state_of(service, compute) == before
        assert service.request("POST", f"{compute}/{action}").status_code == 423
        service.advance(5)
        assert state_of(service, compute) == state
        assert service.ok("POST", f"{compute}/{action}")["operations"] == []


def test_failed_start_leaves_the_state(service, compute):
    """Until the platform itself changes it."""
    service.finished("POST", f"{compute}/suspend")
    service.plan([[0, "failed"]], action="start_compute")
    service.ok("POST", f"{compute}/start")
    assert state_of(service, compute) == "idle"
    service.advance(7200)
    assert state_of(service, compute) == "active"


def test_changed_timeout_applies_at_once(service, compute):
    service.ok("PATCH", compute, json={"endpoint": {"suspend_timeout_seconds": 60}})
    service.advance(59)
    assert state_of(service, compute) == "active"
    service.advance(1)
    assert state_of(service, compute) == "idle"
    service.ok("PATCH", compute, json={"endpoint": {"suspend_timeout_seconds": 120}})
    assert state_of(service, compute) == "idle"


def test_platform_never_suspends_a_compute_without_a_timeout(service, branch):
    compute = f"{ENDPOINTS}/{service.create_compute(branch, suspend_timeout_seconds=-1).json()['endpoint']['id']}"
    service.advance(7 * 86400)
    assert state_of(service, compute) == "active"
