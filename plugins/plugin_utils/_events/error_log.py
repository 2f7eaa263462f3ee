# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Logs an outage or an overload once when it begins, and once when it is over."""

from __future__ import annotations

import logging

from ...module_utils._clock import Clock
from ...module_utils._errors import RequestFailed

logger = logging.getLogger("clouddb.control.operations")


class ErrorLog:
    """The names of what can't be polled at present: an outage lasts while there is any."""

    def __init__(self, clock: Clock):
        self._clock = clock
        self._failing: set[str] = set()
        self._failing_since = 0.0

    def failed(self, name: str, error: RequestFailed) -> None:
        """A poll has failed."""
        if not self._failing:
            self._failing_since = self._clock.monotonic()
            logger.warning("Polling failed. It is retried until it succeeds. %s", error)
        self._failing.add(name)

    def succeeded(self, name: str) -> None:
        """A poll has succeeded."""
        if self._failing == {name}:
            logger.warning("Polling succeeds again, after %.0f s.", self._clock.monotonic() - self._failing_since)
        self._failing.discard(name)


class OverloadLog:
    """An overload lasts while busy projects are polled too late, because there are more of them than the requests suffice for."""

    def __init__(self, interval: float, requests_per_minute: int):
        self._interval = interval
        self._requests_per_minute = requests_per_minute
        self._is_overloaded = False

    def note(self, delay: float) -> None:
        """Busy projects are polled this number of seconds too late."""
        if delay > 2 * self._interval and not self._is_overloaded:
            self._is_overloaded = True
            logger.warning(
                "%d requests per minute do not suffice for the projects that are busy. Their changes are detected %.0f s late. "
                "Increase requests_per_minute if the account's limit allows it, or select projects with project_ids.",
                self._requests_per_minute,
                delay,
            )
        elif delay < self._interval and self._is_overloaded:
            self._is_overloaded = False
            logger.warning("The requests suffice for the busy projects again.")
