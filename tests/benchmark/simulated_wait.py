# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The collection's wait for a simulated service, on a clock that does not really sleep."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, cast
from unittest import mock

from ansible_collections.clouddb.control.plugins.module_utils._clock import Deadline
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.module_utils._http.response import Response
from ansible_collections.clouddb.control.plugins.module_utils._operations import wait
from ansible_collections.clouddb.control.plugins.module_utils._operations.wait_state import OperationRef, WaitState
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import FakeClock

# Seconds from a request to its response.
LATENCY = 0.1
TIMEOUT = 3600
LIMITS = wait.Limits(interval=5, failed_grace=0, workers=1)


class PollIntervals(NamedTuple):
    """The first interval in seconds, the factor by which each next one is longer, and the longest."""

    first: float
    growth: float
    longest: float


OURS = PollIntervals(wait.FIRST_POLL_INTERVAL, wait.POLL_INTERVAL_GROWTH, LIMITS.interval)


class Outcome(NamedTuple):
    """C(lag): seconds from the end of the operation to the end of the wait. C(requests): number of requests."""

    lag: float
    requests: int


class SimulatedService:
    """Has the methods of a client. Its only operation finishes after C(duration) seconds."""

    def __init__(self, duration: float):
        self._time = FakeClock()
        self._duration = duration
        self.clock = self._time.clock
        self.requests = 0

    def with_deadline(self, deadline: Deadline) -> SimulatedService:
        return self

    def get(self, *segments: str | int, query: Mapping[str, Any] | None = None) -> Response:
        self.requests += 1
        status = "finished" if self._time.elapsed + LATENCY / 2 >= self._duration else "running"
        self._time.elapsed += LATENCY
        return Response({"operation": {"id": segments[-1], "status": status}}, "GET", "/", 1, "")

    def lag(self) -> float:
        return self._time.elapsed - self._duration


def simulate(duration: float, intervals: PollIntervals = OURS) -> Outcome:
    """Wait for one operation that finishes C(duration) seconds after the first poll began."""
    service = SimulatedService(duration)
    limits = LIMITS._replace(interval=intervals.longest)
    state = WaitState(service.clock, TIMEOUT, [OperationRef("project", "operation")])
    with (
        mock.patch.object(wait, "FIRST_POLL_INTERVAL", intervals.first),
        mock.patch.object(wait, "POLL_INTERVAL_GROWTH", intervals.growth),
    ):
        wait.Wait(cast(Client, service), limits, state).run()
    return Outcome(service.lag(), service.requests)
