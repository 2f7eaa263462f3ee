# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The HTTP client: sends one request of the control API, returns its JSON or raises a typed error.

It knows nothing of keys, projects or operations. Keeps P5: what it returns and raises contains no secrets, unless its caller
has asked for them.
"""

from __future__ import annotations

import copy
import uuid
from collections.abc import Container, Mapping, Sequence
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import quote

from .._clock import SYSTEM_CLOCK, Clock, Deadline
from .._secrets import Masker
from .._untrusted import decode
from .connection import Connection, checked_key
from .message import Request
from .response import Response
from .session import MAX_CONNECTIONS
from .transport import Transport

MAX_WORKERS = MAX_CONNECTIONS
SUCCESS = range(200, 300)
NO_CONTENT = 204


class Client:
    """A client of the service for one API key, which several threads may use at once.

    Methods raise Unreachable, StatusError (Unauthorized, NotFound) or UnexpectedResponse. The secrets in responses are
    masked, except for those of with_secrets(). C(trace) is the list that gets a line for each attempt of a request.
    """

    def __init__(
        self,
        connection: Connection,
        clock: Clock = SYSTEM_CLOCK,
        masker: Masker | None = None,
        trace: list[str] | None = None,
    ):
        self.connection = connection
        self.clock = clock
        self.masker = masker or Masker(connection.api_key)
        self._trace = trace
        self._transport = Transport(connection, self.masker, clock, trace)
        self._deadline: Deadline | None = None
        self._retries = connection.api_retries
        self._masks = True
        # One value, which copies of the client share: what one of them learns, all know. Empty as long as no response had a Date.
        self._service_ahead: list[timedelta] = []
        # The C(limit) that the service has taken for a list, by the name of the list; 0: none. All copies of a client share it.
        self.page_limits: dict[str, int] = {}

    def get(self, *segments: str | int, query: Mapping[str, Any] | None = None) -> Response:
        """GET the path of these segments."""
        return self.request("GET", segments, query=query)

    def post(self, *segments: str | int, body: Mapping[str, Any]) -> Response:
        """POST a JSON object to the path of these segments."""
        return self.request("POST", segments, body=body)

    def delete(self, *segments: str | int) -> Response:
        """DELETE the path of these segments."""
        return self.request("DELETE", segments)

    def with_api_key(self, api_key: str) -> Client:
        """A client of the same service with another key, which the errors of both do not quote. Raises InvalidOption for no key."""
        key = checked_key("key", api_key)
        self.masker.hide_key(key)
        return Client(self.connection._replace(api_key=key), self.clock, self.masker, self._trace)

    def with_secrets(self) -> Client:
        """The same client for a caller that needs the secrets in responses. It has to mask what it returns of them."""
        client = copy.copy(self)
        client._masks = False
        return client

    def with_deadline(self, deadline: Deadline, retries: bool = False) -> Client:
        """The same client for a caller that polls until a deadline.

        Each request is attempted once, or with C(retries) as often as without a deadline, and ends by the deadline.
        """
        client = copy.copy(self)
        client._deadline, client._retries = deadline, self.connection.api_retries if retries else 0
        return client

    @property
    def knows_service_time(self) -> bool:
        """Whether a response had a Date. Without one, service_now() is no reason to revoke or delete anything."""
        return bool(self._service_ahead)

    def service_now(self) -> datetime:
        """The time by the service's clock (aware, UTC), according to the Date header of the latest response.

        The local time as long as no response had one.
        """
        return self.clock.utcnow() + next(iter(self._service_ahead), timedelta(0))

    def request(
        self,
        method: str,
        segments: Sequence[str | int],
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        accept: Container[int] = SUCCESS,
        retry_locked: bool = True,
        may_be_empty: bool = False,
    ) -> Response:
        """Send any request. Raises StatusError for a status that C(accept) lacks.

        An accepted error status is raised as well if it would hide that an earlier attempt may have changed something.
        Without C(retry_locked), a 423 is not retried, nor what is not ready. With C(may_be_empty), the JSON of an empty body is None.
        """
        request = Request(method, path_of(segments), str(uuid.uuid4()), query, body)
        response = self._transport.send(request, self._retries, self._deadline, retry_locked)
        self._learn_service_time(response.headers.get("Date"))
        hides_change = response.acted_before and method != "GET" and response.status not in SUCCESS
        if response.status not in accept or hides_change:
            from .failures import status_error  # 5 % of the time of a task without an error

            raise status_error(response, self.connection.base_url, self.masker, request, self.clock)
        result = Response(None, request, response.attempts, response.status)
        if (may_be_empty or response.status == NO_CONTENT) and not response.content.strip():
            return result
        try:
            value = decode(response.content)
            json = self.masker.data(value, content=response.content) if self._masks else value
        except (RecursionError, ValueError) as error:
            from .failures import json_problem

            raise result.unexpected(json_problem(error, response, self.masker)) from None
        return result._replace(json=json)

    def _learn_service_time(self, date: str | None) -> None:
        try:
            self._service_ahead[:] = [parsedate_to_datetime(date or "") - self.clock.utcnow()]
        except (TypeError, ValueError, IndexError, OverflowError):
            # Without a readable Date, what is known of the service's clock stays.
            return


def path_of(segments: Sequence[str | int]) -> str:
    """The path below base_url, encoded."""
    return "/" + "/".join(quote(str(segment), safe="") for segment in segments)
