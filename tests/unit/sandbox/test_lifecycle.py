# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lifecycle of operations as the clock advances: the functions, and over HTTP."""

from __future__ import annotations

import pytest

from clouddb_sandbox import lifecycle
from clouddb_sandbox.clock import SECOND

PROJECT = "wispy-lake-12345678"
RECOVERY = [(0, "scheduling"), (1, "running"), (2, "failed"), (3, "running"), (4, "failed"), (5, "finished")]


@pytest.mark.parametrize(
    "seconds, status, since, failures",
    [
        (-1, "scheduling", 0, 0),
        (0.999999, "scheduling", 0, 0),
        (1, "running", 1, 0),
        (2.5, "failed", 2, 1),
        (4, "failed", 4, 2),
        (1e9, "finished", 5, 2),
    ],
)
def test_state_at(seconds, status, since, failures):
    created_at = 1_700_000_000 * SECOND
    state = lifecycle.state_at(RECOVERY, created_at, created_at + int(seconds * SECOND))
    assert state == (status, created_at + since * SECOND, failures)


def test_completion_time_is_none_without_a_terminal_status():
    assert lifecycle.completion_time(RECOVERY, 10) == 10 + 5 * SECOND
    assert lifecycle.completion_time([(0, "running")], 10) is None
    assert lifecycle.completion_time([(0, "failed"), (1, "cancelling")], 10) is None


@pytest.mark.parametrize("status", lifecycle.STATUSES)
def test_timeline_to_reaches_the_status(status):
    timeline = lifecycle.check_timeline(lifecycle.timeline_to(status, 8))
    assert lifecycle.state_at(timeline, 0, 8 * SECOND).status == status


@pytest.mark.parametrize("action", lifecycle.ACTIONS)
def test_default_timelines_finish_within_5_seconds(action):
    timeline = lifecycle.check_timeline(lifecycle.DEFAULT_TIMELINES[action])
    offset, status = timeline[-1]
    assert status == "finished"
    assert 0.1 <= offset <= 5


@pytest.mark.parametrize(
    "timeline, message",
    [
        ([], "must be 0"),
        ([(1, "running")], "must be 0"),
        ([(0, "running"), (0, "finished")], "must increase"),
        ([(0, "done")], "unknown status done"),
    ],
)
def test_invalid_timeline_raises_value_error(timeline, message):
    with pytest.raises(ValueError, match=message):
        lifecycle.check_timeline(timeline)


class TestOverHttp:
    def test_fields_follow_the_timeline(self, service):
        """updated_at, failures_count and error depend on the timeline and the clock. api.md: "A failed operation is
        reported through the operation's `status` value `failed`, not through an HTTP error"."""
        service.plan([[0, "running"], [10, "failed"], [20, "running"], [30, "finished"]], error="disk full")
        operation = service.create_branch()["operations"][0]
        seen = []
        for _step in range(4):
            now = service.operation(operation)
            seen.append((now["status"], now["failures_count"], now.get("error"), now["updated_at"]))
            service.advance(10)
        assert [entry[:3] for entry in seen] == [
            ("running", 0, None),
            ("failed", 1, "disk full"),
            ("running", 1, None),
            ("finished", 1, None),
        ]
        assert [entry[3] for entry in seen] == sorted({entry[3] for entry in seen})

    def test_use_of_a_compute_postpones_its_suspension(self, service):
        service.advance(200)
        service.create_database(service.default_branch())
        service.advance(299)
        assert "suspend_compute" not in {operation["action"] for operation in service.operations()}
        service.advance(1)
        assert service.operations()[0]["action"] == "suspend_compute"

    def test_platform_operations_of_one_advance_are_limited(self, serve):
        service = serve({"projects": [{"id": PROJECT}], "generate": {"projects": 100}})
        service.advance(5 * 365 * 86400)
        operations = service.operations()
        assert 12 <= len(operations) < 16
        now = service.ok("GET", "/_sandbox/clock")["now"]
        assert operations[0]["created_at"][:10] in (now[:10], operations[1]["created_at"][:10])
        service.advance(7200)
        assert len(service.operations()) == len(operations) + 3

    def test_platform_operations_do_not_depend_on_the_number_of_requests(self, serve):
        service = serve({"projects": [{"id": PROJECT}]})
        start = service.ok("GET", f"projects/{PROJECT}")["project"]["created_at"]
        for _step in range(12):
            service.advance(1200)
            service.get("projects")
        actions = [operation["action"] for operation in reversed(service.operations())]
        assert start < service.operations()[-1]["created_at"]
        assert actions == ["suspend_compute", "check_availability", "start_compute"] * 2
