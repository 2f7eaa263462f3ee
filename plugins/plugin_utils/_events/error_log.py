# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Logs an outage once when it begins, and once when it is over. Keeps P11."""

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
