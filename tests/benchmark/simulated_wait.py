# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The collection's own waiting code against an imaginary service, on a clock whose pauses take no time."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple, cast
from unittest import mock

from ansible_collections.clouddb.control.plugins.module_utils._clock import Deadline
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.module_utils._http.response import Response
from ansible_collections.clouddb.control.plugins.module_utils._operations import schedule
from ansible_collections.clouddb.control.plugins.module_utils._operations import wait as waiting
from ansible_collections.clouddb.control.plugins.module_utils._operations.wait_state import Target
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import FakeClock

# Seconds from a request to its response.
LATENCY = 0.1
LIMITS = waiting.Limits(timeout=3600, interval=5, failed_grace=0, workers=1)


class Pauses(NamedTuple):
    """A first pause in seconds, the factor by which each next one is longer, and the longest."""

    first: float
    growth: float
    longest: float


OURS = Pauses(schedule.FIRST_PAUSE, schedule.GROWTH, LIMITS.interval)


class Outcome(NamedTuple):
    """Seconds from an operation's end to the wait's, and the requests that were sent."""

    lag: float
    requests: int


class ImaginaryService:
    """Stands in for a client; its only operation ends after C(duration) seconds."""

    def __init__(self, duration: float):
        self._time = FakeClock()
        self._duration = duration
        self.clock = self._time.clock
        self.requests = 0

    def until(self, deadline: Deadline) -> ImaginaryService:
        return self

    def get(self, *segments: str | int, query: Mapping[str, Any] | None = None) -> Response:
        self.requests += 1
        status = "finished" if self._time.elapsed + LATENCY / 2 >= self._duration else "running"
        self._time.elapsed += LATENCY
        return Response({"operation": {"id": segments[-1], "status": status}}, "GET", "/", 1, "")

    def lag(self) -> float:
        return self._time.elapsed - self._duration


def simulate(duration: float, pauses: Pauses = OURS) -> Outcome:
    """Wait for one operation that ends so many seconds after the first look began."""
    service = ImaginaryService(duration)
    limits = LIMITS._replace(interval=pauses.longest)
    begin = partial(schedule.Schedule, next_pause=pauses.first)
    with mock.patch.object(waiting, "Schedule", begin), mock.patch.object(schedule, "GROWTH", pauses.growth):
        waiting.Wait(cast(Client, service), [Target("project", "operation")], limits).until_ended()
    return Outcome(service.lag(), service.requests)
