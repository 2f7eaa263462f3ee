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
    """An overload lasts while busy projects are polled too late, because there are too many of them or requests are slow."""

    def __init__(self, interval: float):
        self._interval = interval
        self._is_overloaded = False

    def note(self, delay: float) -> None:
        """Busy projects are polled this number of seconds too late."""
        if delay > 2 * self._interval and not self._is_overloaded:
            self._is_overloaded = True
            logger.warning(
                "The changes of busy projects are detected %.0f s late, because too few requests per minute are sent for all of them. "
                "Increase requests_per_minute if the account's limit allows it, or select projects with project_ids.",
                delay,
            )
        elif delay < self._interval and self._is_overloaded:
            self._is_overloaded = False
            logger.warning("The changes of busy projects are detected in time again.")
