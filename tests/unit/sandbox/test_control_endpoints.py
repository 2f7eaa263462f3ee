# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The control endpoints: clock, operation plans, request log, and the rate limit, first with a fake clock."""

from __future__ import annotations

from datetime import timedelta
from unittest.mock import Mock

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._timestamps import parse_timestamp
from clouddb_sandbox.clock import MAX_TIME, Clock, format_timestamp
from clouddb_sandbox.rate_limit import RateLimit, RateLimiter

PROJECT = "wispy-lake-12345678"


class TestClock:
    def test_speed_applies_to_operations_and_can_be_changed(self, serve):
        """A real second is hours of sandbox time, so an operation is finished when it is fetched."""
        service = serve({"projects": [{"id": PROJECT}]}, speed=50_000)
        operation = service.create_branch()["operations"][0]
        assert service.operation(operation)["status"] == "finished"
        changed = service.ok("PUT", "/_sandbox/clock", json={"speed": 0})
        assert changed["speed"] == 0
        now = service.ok("GET", "/_sandbox/clock")["now"]
        assert parse_timestamp(now) - parse_timestamp(changed["now"]) < timedelta(seconds=0.001)

    def test_clock_and_speed_persist_across_restart(self, serve):
        service = serve()
        advanced = service.advance(10 * 86400)["now"]
        created = service.create_key()["created_at"]
        restarted = serve(speed=None)
        clock = restarted.ok("GET", "/_sandbox/clock")
        assert advanced < created < clock["now"]
        assert clock["speed"] == 0

    def test_time_is_limited_to_the_last_date(self):
        clock = Clock(MAX_TIME - 10, speed=1e9)
        clock.set(1e9, advance=1e9)
        assert format_timestamp(clock.now()) == "9999-12-31T00:00:00.000000Z"


class TestOperationPlans:
    def test_times_limits_the_number_of_operations(self, service):
        """Null is without a limit, until the plans are cleared."""
        for times, expected in ((2, ["failed", "failed", "running"]), (None, ["failed"] * 3)):
            service.plan([[0, "failed"]], times=times, action="create_branch")
            branches = [service.create_branch(endpoints=[]) for _branch in range(3)]
            assert [branch["operations"][0]["status"] for branch in branches] == expected
            service.advance(5)
        assert service.ok("DELETE", "/_sandbox/operation_plans") == {"operation_plans": []}
        assert service.create_branch(endpoints=[])["operations"][0]["status"] == "running"

    def test_action_selects_operations(self, service):
        service.plan([[0, "failed"]], action="start_compute")
        create_branch, start_compute = service.create_branch()["operations"]
        assert (create_branch["status"], start_compute["status"]) == ("running", "failed")

    def test_project_id_selects_operations(self, service):
        other = service.finished("POST", "projects", json={"project": {}})["project"]["id"]
        service.plan([[0, "failed"]], project_id=other)
        assert service.create_branch(endpoints=[])["operations"][0]["status"] == "running"
        created = service.ok("POST", f"projects/{other}/branches", json={"endpoints": []})
        assert created["operations"][0]["status"] == "failed"

    def test_platform_operations_follow_only_plans_with_their_action(self, service):
        """A plan without an action is kept for operations that requests start."""
        service.plan([[0, "failed"]])
        service.plan([[0, "failed"]], action="check_availability")
        service.advance(3600)
        statuses = {item["action"]: item["status"] for item in service.operations()}
        assert statuses == {"suspend_compute": "finished", "check_availability": "failed"}
        assert len(service.ok("GET", "/_sandbox/operation_plans")["operation_plans"]) == 1


class TestRequestLog:
    def test_entries(self, service):
        service.request("GET", "projects?limit=7&search=a%20b", headers={"X-Request-ID": "r-1", "User-Agent": "me/1"})
        service.as_key("wrong").get("nowhere")
        first, second = service.log()
        assert first.pop("seconds") >= 0
        expected = {"method": "GET", "path": "/api/v2/projects", "query": "limit=7&search=a%20b", "status": 200}
        assert first == {**expected, "request_id": "r-1", "user_agent": "me/1"}
        assert (second["path"], second["status"]) == ("/api/v2/nowhere", 401)


LIMIT_OF_TWO = {"per_minute": 1, "burst": 2}


@pytest.fixture
def monotonic():
    return Mock(return_value=1000.0)


@pytest.fixture
def limiter(monotonic):
    limiter = RateLimiter(monotonic)
    limiter.set(RateLimit())
    return limiter


def count_allowed(limiter, requests):
    return sum(limiter.consume() == 0 for _request in range(requests))


class TestRateLimiter:
    def test_sustained_rate_is_per_minute(self, limiter, monotonic):
        allowed = count_allowed(limiter, 40)
        for _second in range(60):
            monotonic.return_value += 1
            allowed += count_allowed(limiter, 100)
        assert allowed == pytest.approx(40 + 700, abs=1)

    def test_a_long_pause_refills_at_most_one_burst(self, limiter, monotonic):
        count_allowed(limiter, 40)
        monotonic.return_value += 3600
        assert count_allowed(limiter, 100) == 40

    def test_returned_seconds_lead_to_the_next_token(self, limiter, monotonic):
        count_allowed(limiter, 40)
        seconds = limiter.consume()
        assert seconds == pytest.approx(60 / 700)
        monotonic.return_value += seconds / 2
        assert limiter.consume() == pytest.approx(seconds / 2)
        monotonic.return_value += seconds
        assert limiter.consume() == 0


class TestRateLimit:
    def test_disabled_by_default(self, service):
        assert service.ok("GET", "/_sandbox/rate_limit") == {"rate_limit": None}
        assert {service.get("projects").status_code for _request in range(50)} == {200}

    def test_requests_above_the_limit_get_429(self, service):
        """Nothing is written, the limit covers all keys of the account, and the request uses no fault."""
        other = service.as_key(service.create_key("other")["key"])
        service.ok("PUT", "/_sandbox/rate_limit", json=LIMIT_OF_TWO)
        assert [other.get("projects").status_code, service.get("projects").status_code] == [200, 200]
        service.fault("status", status=418)
        for client in (service, other):
            response = client.request("POST", "api_keys", json={"key_name": "ci"})
            assert response.status_code == 429
            assert 1 <= int(response.headers["Retry-After"]) <= 60
            assert response.json()["code"] == ""
        assert len(service.ok("GET", "/_sandbox/faults")["faults"]) == 1
        service.ok("DELETE", "/_sandbox/rate_limit")
        assert service.get("projects").status_code == 418
        assert [key["name"] for key in service.keys()] == ["sandbox", "other"]

    def test_401_responses_and_control_endpoints_do_not_count(self, service):
        service.ok("PUT", "/_sandbox/rate_limit", json=LIMIT_OF_TWO)
        for _request in range(5):
            assert service.as_key("wrong" * 8).get("projects").status_code == 401
            service.ok("GET", "/_sandbox/requests")
        assert service.get("projects").status_code == 200
