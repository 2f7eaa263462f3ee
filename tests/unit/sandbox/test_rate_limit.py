# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rate limit: the token bucket with a fake clock, and the responses to a client."""

from __future__ import annotations

import pytest

from clouddb_sandbox.rate_limit import RateLimit, RateLimiter

LIMIT_OF_TWO = {"per_minute": 1, "burst": 2}


class FakeMonotonic:
    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def monotonic():
    return FakeMonotonic()


@pytest.fixture
def limiter(monotonic):
    limiter = RateLimiter(monotonic)
    limiter.set(RateLimit())
    return limiter


def count_allowed(limiter, requests):
    return sum(limiter.consume() == 0 for _request in range(requests))


class TestRateLimiter:
    def test_a_full_bucket_allows_one_burst(self, limiter):
        assert count_allowed(limiter, 100) == 40

    def test_sustained_rate_is_per_minute(self, limiter, monotonic):
        allowed = count_allowed(limiter, 40)
        for _second in range(60):
            monotonic.now += 1
            allowed += count_allowed(limiter, 100)
        assert allowed == pytest.approx(40 + 700, abs=1)

    def test_a_long_pause_refills_at_most_one_burst(self, limiter, monotonic):
        count_allowed(limiter, 40)
        monotonic.now += 3600
        assert count_allowed(limiter, 100) == 40

    def test_returned_seconds_lead_to_the_next_token(self, limiter, monotonic):
        count_allowed(limiter, 40)
        seconds = limiter.consume()
        assert seconds == pytest.approx(60 / 700)
        monotonic.now += seconds / 2
        assert limiter.consume() == pytest.approx(seconds / 2)
        monotonic.now += seconds
        assert limiter.consume() == 0


class TestResponses:
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
            assert response.json()["code"] == "TOO_MANY_REQUESTS"
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
