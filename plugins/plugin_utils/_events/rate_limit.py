# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A client that keeps below the account's rate limit. Keeps P12."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from ...module_utils._clock import Clock
from ...module_utils._http.client import Client
from ...module_utils._http.connection import Connection
from ...module_utils._http.errors import RequestFailed
from ...module_utils._http.response import Response

# For pages after the first one. A list of projects can have hundreds of them, so it does not begin anew because one fails.
ATTEMPTS_OF_PAGE = 3
# In seconds.
PAUSE_BEFORE_RETRY = 1.0


class PacedClient(Client):
    """Spaces its GET requests evenly, so that there are no more than C(requests_per_minute), and honors C(Retry-After).

    Keeps P1 and P3: one wrong C(Date) moves no boundary.
    """

    def __init__(self, connection: Connection, clock: Clock, requests_per_minute: int):
        super().__init__(connection, clock)
        self._spacing = 60 / requests_per_minute
        self._next_request = clock.monotonic()
        self._lock = threading.Lock()
        # What the monotonic clock has to be added to for the service's time, according to the latest two responses.
        self._readings: list[datetime] = []

    def service_now(self) -> datetime:
        """The time by the service's clock, according to the lesser C(Date) of the latest two responses: a single one may be wrong."""
        if not self._readings:
            return super().service_now()
        return min(self._readings) + timedelta(seconds=self.clock.monotonic())

    def get(self, *segments: str | int, query: Mapping[str, Any] | None = None) -> Response:
        """As Client.get(), after a pause if need be."""
        attempts = ATTEMPTS_OF_PAGE if query and "cursor" in query else 1
        while True:
            with self._lock:
                pause = self._next_request - self.clock.monotonic()
                if pause > 0:
                    self.clock.sleep(pause)
                self._next_request = max(self._next_request, self.clock.monotonic()) + self._spacing
            attempts -= 1
            try:
                response = super().get(*segments, query=query)
                with self._lock:
                    reading = super().service_now() - timedelta(seconds=self.clock.monotonic())
                    self._readings = [*self._readings[-1:], reading]
                return response
            except RequestFailed as error:
                if error.retry_after:
                    # It applies to the other polls that are under way, too.
                    with self._lock:
                        self._next_request = max(self._next_request, self.clock.monotonic() + error.retry_after)
                if not attempts or not error.transient:
                    raise
            self.clock.sleep(PAUSE_BEFORE_RETRY)
