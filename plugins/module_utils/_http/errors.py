# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The errors of requests (api.md, Errors). Keeps P2 and P11."""

from __future__ import annotations

from typing import Any

from .._errors import ClouddbError, FailureKind
from .message import REFUSED, TRANSIENT_STATUSES, Request

KINDS_OF_STATUSES: dict[int, FailureKind] = {401: "unauthorized", 404: "not_found"}


class RequestFailed(ClouddbError):
    """A request without a usable response.

    C(may_have_acted) is set if the service may have carried out the request, at any of its attempts.
    """

    may_have_acted = False
    retry_after: float | None = None
    # Whether the deadline of the client left no time for another attempt.
    out_of_time = False

    def __init__(
        self,
        kind: FailureKind,
        message: str,
        request: Request,
        attempts: int,
        details: dict[str, Any] | None = None,
    ):
        sent = {"method": request.method, "path": request.path, "attempts": attempts, "request_id": request.request_id}
        super().__init__(kind, message, {**sent, **(details or {})})
        self.request, self.attempts = request, attempts


class Unreachable(RequestFailed):
    """No complete response: no connection, a broken one, a timeout, or a certificate that is not trusted."""

    def __init__(self, message: str, request: Request, attempts: int, may_have_acted: bool, transient: bool):
        super().__init__("unreachable", message, request, attempts)
        self.may_have_acted = may_have_acted
        self.transient = transient


class StatusError(RequestFailed):
    """A response with an HTTP status other than 2xx.

    C(error_body) holds those of C(message), C(code) and C(request_id) that the service sent; its request id is shown.
    C(not_ready) is set if the service did nothing because what the request is about is not ready yet: the same request, whatever
    its method, may succeed later, as after 423.
    """

    not_ready = False

    def __init__(
        self, message: str, request: Request, attempts: int, status: int, error_body: dict[str, str] | None = None
    ):
        kind = KINDS_OF_STATUSES.get(status, "http_status")
        super().__init__(kind, message, request, attempts, {"status": status, **(error_body or {})})
        self.status = status
        self.transient = status in TRANSIENT_STATUSES
        self.may_have_acted = status not in REFUSED


class Unauthorized(StatusError):
    """401: the key is missing, invalid or revoked."""


class NotFound(StatusError):
    """404: there is no such resource, or the key may not access it."""


class UnexpectedResponse(RequestFailed):
    """A response that api.md does not describe: HTML, malformed JSON, or JSON of another shape."""

    may_have_acted = True

    def __init__(self, message: str, request: Request, attempts: int):
        super().__init__("unexpected_response", message, request, attempts)
