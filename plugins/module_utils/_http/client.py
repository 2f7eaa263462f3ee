# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The HTTP client: sends one request of the control API, gives back its JSON or raises a typed error.

It knows nothing of keys, projects or operations.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any, Callable
from urllib.parse import quote, urlsplit

from .._clock import SYSTEM_CLOCK, Clock, Deadline
from .._errors import ClouddbError, NotFound, RequestFailed, ServiceUnreachable, StatusError, Unauthorized
from .._version import COLLECTION_VERSION
from . import transport
from .body import MAX_RESPONSE_SIZE
from .connection import Connection, encodings, is_loopback
from .response import Response

MAX_SERVICE_TEXT = 500
MAX_WORKERS = 32
SHORTEST_TIMEOUT = 0.001
# A service whose clock is further off than this has sent a Date that means nothing.
WIDEST_GAP = timedelta(days=3660)


class Client:
    """One session with the service.

    Methods raise ServiceUnreachable, StatusError (Unauthorized, NotFound) or UnexpectedResponse. It may be used by
    several threads at once.
    """

    def __init__(self, connection: Connection, clock: Clock = SYSTEM_CLOCK, deadline: Deadline | None = None):
        self.connection = connection
        self.clock = clock
        self._deadline = deadline
        self._service_ahead = timedelta(0)
        self._session = _session(connection, clock)
        # What goes to this machine goes past every proxy: over plain http, a proxy would see the key.
        host = urlsplit(connection.base_url).hostname or ""
        self._proxies = {"no_proxy": host} if is_loopback(host) else None

    def get(self, *segments: str | int, query: Mapping[str, Any] | None = None) -> Response:
        """GET the path of these segments."""
        return self._request("GET", segments, query=query)

    def post(self, *segments: str | int, body: Mapping[str, Any]) -> Response:
        """POST a JSON object to the path of these segments."""
        return self._request("POST", segments, body=body)

    def delete(self, *segments: str | int) -> Response:
        """DELETE the path of these segments."""
        return self._request("DELETE", segments)

    def with_api_key(self, api_key: str) -> Client:
        """The same service, asked with another key."""
        return Client(self.connection._replace(api_key=api_key), self.clock)

    def until(self, deadline: Deadline) -> Client:
        """The same service for a caller that polls until a deadline.

        Each request is attempted once, and ends by the deadline.
        """
        return Client(self.connection._replace(api_retries=0), self.clock, deadline)

    def service_now(self) -> datetime:
        """The time by the service's clock (aware, UTC), as the latest answer's Date header told it."""
        return self.clock.utcnow() + self._service_ahead

    def _request(
        self,
        method: str,
        segments: tuple[str | int, ...],
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> Response:
        # Some time has to be left, as urllib3 takes no zero.
        total = max(self._deadline.remaining(), SHORTEST_TIMEOUT) if self._deadline else None
        path = "/" + "/".join(quote(str(segment), safe="", errors="replace") for segment in segments)
        request_id = str(uuid.uuid4())
        try:
            response = self._session.request(
                method,
                self.connection.base_url + path,
                params=query,
                json=body,
                headers={"X-Request-ID": request_id},
                proxies=self._proxies,
                # Given with each request: a session's setting would give way to REQUESTS_CA_BUNDLE.
                verify=self.connection.validate_certs and (self.connection.ca_path or None),
                # requests takes urllib3's Timeout; its type hints do not say so.
                timeout=transport.timeout_of(self.connection.api_timeout, total),  # type: ignore[arg-type]
            )
        except UnicodeError:
            raise ClouddbError(f"{method} {path} can't be sent: a value in it is not valid Unicode") from None
        except Exception as error:  # pylint: disable=broad-except
            # Also one that nobody expects: a library's error may quote the request's headers, and is never shown as it is.
            raise self._without_answer(error, method, path, request_id) from None
        self._learn_service_time(response.headers.get("Date"))
        attempts: int = response.raw.attempts  # type: ignore[union-attr]  # a WholeBody
        if not 200 <= response.status_code < 300:
            raise self._status_error(response, method, path, attempts, request_id)
        try:
            return Response(json.loads(response.content), method, path, attempts, request_id)
        except (ValueError, RecursionError):
            raise Response(None, method, path, attempts, request_id).unexpected(
                _why_not_json(response.content)
            ) from None

    def _without_answer(self, error: Exception, method: str, path: str, request_id: str) -> RequestFailed:
        attempts = getattr(next(iter(error.args), None), "attempts", 1)
        if transport.is_too_large(error):
            return Response(None, method, path, attempts, request_id).unexpected(
                f"it is larger than {MAX_RESPONSE_SIZE // 2**20} MiB"
            )
        trusted = not transport.is_untrusted_certificate(error)
        sent = trusted and not transport.is_never_sent(error)
        transient = trusted and isinstance(error, (OSError, transport.HTTPError))
        message = f"{self.connection.base_url} did not answer {method} {path}: {transport.describe_fault(error)}{_after(attempts)}"
        return ServiceUnreachable(
            self._without_key(message), method, path, attempts, request_id, sent=sent, transient=transient
        )

    def _status_error(
        self, response: transport.requests.Response, method: str, path: str, attempts: int, request_id: str
    ) -> StatusError:
        status = response.status_code
        told = self._error_body(response.content)
        name = next((f" {known.phrase}" for known in HTTPStatus if known == status), "")
        message = f"the service answered {status}{name} to {method} {path}{_after(attempts)}"
        if "message" in told:
            message += f": {told['message']}"
        error_class: type[StatusError] = StatusError
        if status == 401:
            error_class = Unauthorized
            message += "; the key is not valid or was revoked: check api_key or CLOUDDB_API_KEY"
        elif status == 404:
            error_class = NotFound
            message += "; there is no such object, or this key may not reach it" + (
                "" if told else ", or base_url is wrong"
            )
        elif 300 <= status < 400:
            message += "; redirects are not followed, so that the key stays with base_url: set base_url to the service's own address"
        elif not told and status not in transport.TRANSIENT_STATUSES:
            message += "; the answer is not one of the control API: check base_url"
        error = error_class(message, method, path, attempts, request_id, status, told)
        error.retry_after = transport.retry_after_seconds(response.headers)
        return error

    def _error_body(self, content: bytes) -> dict[str, str]:
        """The service's C(message), C(code) and C(request_id), where the body has them (api.md leaves its shape open)."""
        try:
            body = json.loads(content)
        except (ValueError, RecursionError):
            return {}
        if not isinstance(body, dict):
            return {}
        told = {field: body.get(field) for field in ("message", "code", "request_id")}
        return {
            field: self._without_key(text)[:MAX_SERVICE_TEXT]
            for field, text in told.items()
            if isinstance(text, str) and text
        }

    def _without_key(self, text: str) -> str:
        for spelling in encodings(self.connection.api_key):
            text = text.replace(spelling, "********")
        return text

    def _learn_service_time(self, date: str | None) -> None:
        try:
            ahead = parsedate_to_datetime(date or "") - self.clock.utcnow()
        except (TypeError, ValueError, IndexError, OverflowError):
            # No readable Date: what was known of the service's clock stays.
            return
        if abs(ahead) < WIDEST_GAP:
            self._service_ahead = ahead


def _bearer(api_key: str) -> Callable[[transport.requests.PreparedRequest], transport.requests.PreparedRequest]:
    """Sets the Authorization header; an auth callable, because requests lets .netrc replace a plain header."""

    def authorize(request: transport.requests.PreparedRequest) -> transport.requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {api_key}"
        return request

    return authorize


def _session(connection: Connection, clock: Clock) -> transport.requests.Session:
    session = transport.NoRedirectSession()
    session.auth = _bearer(connection.api_key)
    session.headers.update(
        {"Accept": "application/json", "Accept-Encoding": "gzip", "User-Agent": f"clouddb.control/{COLLECTION_VERSION}"}
    )
    retries = transport.FaultRetry.with_tries(connection.api_retries, clock.sleep)
    adapter = transport.WholeBodyAdapter(pool_maxsize=MAX_WORKERS, max_retries=retries)
    session.mount("https://", adapter)
    session.mount("http://", adapter)
    if not connection.validate_certs:
        transport.silence_certificate_warnings()
    return session


def _after(attempts: int) -> str:
    return f" (tried {attempts} times)" if attempts > 1 else ""


def _why_not_json(content: bytes) -> str:
    if not content.strip():
        return "its body is empty"
    if content.lstrip()[:1] == b"<":
        return "it is an HTML page, not JSON; check base_url, and whether a proxy or a gateway answers in the service's place"
    return "its body is not valid JSON"
