# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rate limit: how many requests pass, by a clock that the test moves, and what a client meets."""

from __future__ import annotations

import pytest

from clouddb_sandbox.rate_limit import RateLimit, RateLimiter

NONE_LEFT = {"per_minute": 1, "burst": 2}


class Time:
    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def time():
    return Time()


@pytest.fixture
def limiter(time):
    limiter = RateLimiter(time)
    limiter.set(RateLimit())
    return limiter


def passing(limiter, attempts):
    return sum(limiter.take() == 0 for _try in range(attempts))


class TestLimiter:
    def test_without_a_limit_all_pass(self, time):
        assert passing(RateLimiter(time), 10_000) == 10_000

    def test_a_burst_passes_and_no_more(self, limiter):
        assert passing(limiter, 100) == 40

    def test_in_a_minute_so_many_pass(self, limiter, time):
        passed = passing(limiter, 40)
        for _second in range(60):
            time.now += 1
            passed += passing(limiter, 100)
        assert passed == pytest.approx(40 + 700, abs=1)

    def test_a_long_pause_saves_up_one_burst(self, limiter, time):
        passing(limiter, 40)
        time.now += 3600
        assert passing(limiter, 100) == 40

    def test_after_the_seconds_it_says_the_next_one_passes(self, limiter, time):
        passing(limiter, 40)
        seconds = limiter.take()
        assert seconds == pytest.approx(60 / 700)
        time.now += seconds / 2
        assert limiter.take() == pytest.approx(seconds / 2)
        time.now += seconds
        assert limiter.take() == 0


class TestRequests:
    def test_off_until_it_is_set(self, service):
        assert service.ok("GET", "/_sandbox/rate_limit") == {"rate_limit": None}
        assert {service.get("projects").status_code for _try in range(60)} == {200}

    def test_default(self, service):
        set_to = service.ok("PUT", "/_sandbox/rate_limit", json={})
        assert set_to == service.ok("GET", "/_sandbox/rate_limit") == {"rate_limit": {"per_minute": 700, "burst": 40}}

    def test_refused(self, service):
        """With 429 and an error body; nothing is written, the account's other keys are refused too, faults keep."""
        other = service.as_key(service.create_key("other")["key"])
        service.ok("PUT", "/_sandbox/rate_limit", json=NONE_LEFT)
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

    def test_without_a_good_key_nothing_counts(self, service):
        service.ok("PUT", "/_sandbox/rate_limit", json=NONE_LEFT)
        assert {service.as_key("wrong" * 8).get("projects").status_code for _try in range(5)} == {401}
        assert service.get("projects").status_code == 200

    def test_the_sandbox_s_own_endpoints_are_free(self, service):
        service.ok("PUT", "/_sandbox/rate_limit", json=NONE_LEFT)
        for _try in range(5):
            service.ok("GET", "/_sandbox/requests")
        assert service.get("projects").status_code == 200

    def test_bad_settings(self, service):
        for body in ({"per_minute": 0}, {"burst": 0}, {"per_minute": "many"}, {"per_second": 1}):
            assert service.request("PUT", "/_sandbox/rate_limit", json=body).status_code == 400, body
        assert service.ok("GET", "/_sandbox/rate_limit") == {"rate_limit": None}

    def test_gone_with_the_process(self, serve):
        serve().ok("PUT", "/_sandbox/rate_limit", json=NONE_LEFT)
        assert serve().ok("GET", "/_sandbox/rate_limit") == {"rate_limit": None}
