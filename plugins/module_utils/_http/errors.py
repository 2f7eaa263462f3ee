# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The errors of requests (api.md, Errors). Keeps P2 and P11."""

from __future__ import annotations

from typing import Any

from .._errors import ClouddbError
from .session import REFUSED, TRANSIENT_STATUSES, Request


class RequestFailed(ClouddbError):
    """A request without a usable response.

    C(may_have_acted) is set if the service may have carried out the request, at any of its attempts.
    """

    may_have_acted = False
    retry_after: float | None = None

    def __init__(self, message: str, request: Request, attempts: int, details: dict[str, Any] | None = None):
        sent = {"method": request.method, "path": request.path, "attempts": attempts, "request_id": request.request_id}
        super().__init__(message, {**sent, **(details or {})})
        self.request, self.attempts = request, attempts


class ServiceUnreachable(RequestFailed):
    """No complete response: no connection, a broken one, a timeout, or a certificate that is not trusted."""

    kind = "unreachable"

    def __init__(self, message: str, request: Request, attempts: int, may_have_acted: bool, transient: bool):
        super().__init__(message, request, attempts)
        self.may_have_acted = may_have_acted
        self.transient = transient


class StatusError(RequestFailed):
    """A response with an HTTP status other than 2xx.

    C(error_body) holds those of C(message), C(code) and C(request_id) that the service sent; its request id is shown.
    """

    kind = "http_status"

    def __init__(
        self, message: str, request: Request, attempts: int, status: int, error_body: dict[str, str] | None = None
    ):
        super().__init__(message, request, attempts, {"status": status, **(error_body or {})})
        self.status = status
        self.transient = status in TRANSIENT_STATUSES
        self.may_have_acted = status not in REFUSED


class Unauthorized(StatusError):
    """401: the key is missing, invalid or revoked."""

    kind = "unauthorized"


class NotFound(StatusError):
    """404: there is no such resource, or the key may not access it."""

    kind = "not_found"


class UnexpectedResponse(RequestFailed):
    """A response that api.md does not describe: HTML, malformed JSON, or JSON of another shape."""

    kind = "unexpected_response"
    may_have_acted = True
