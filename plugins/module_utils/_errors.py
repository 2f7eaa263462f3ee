# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What can go wrong, one class a kind; each renders itself as the result of a failed task.

No error ever holds a header or a key.
"""

from __future__ import annotations

from typing import Any

# Answers after which the same GET or DELETE is worth sending again (the service's rate limit among them).
TRANSIENT_STATUSES = frozenset({423, 429, 500, 502, 503, 504})
# Answers that say that the service did not act, so that even a POST may be sent again.
REFUSED_STATUSES = frozenset({423, 429, 503})


class ClouddbError(Exception):
    """Base of all errors of this collection.

    The message is one readable sentence. The details become RV(failure), the result fields stand beside it.
    """

    kind = "error"
    transient = False

    def __init__(self, message: str, details: dict[str, Any] | None = None, result: dict[str, Any] | None = None):
        super().__init__(message)
        self.details = details or {}
        self.result = result or {}

    def as_result(self) -> dict[str, Any]:
        """The arguments of C(fail_json): C(msg), C(failure) and what else the task has to tell."""
        return {**self.result, "msg": str(self), "failure": {"kind": self.kind, **self.details}}


class InvalidOption(ClouddbError):
    """An option's value is wrong; raised before any request is sent."""

    kind = "invalid_option"

    def __init__(self, option: str, problem: str):
        super().__init__(f"{option}: {problem}", {"option": option})


class SecretFileError(ClouddbError):
    """The file that a secret is to be written to can't be read or written."""

    kind = "secret_file"


class RequestFailed(ClouddbError):
    """A request that brought no usable response.

    C(may_have_acted) tells whether the service may have carried out what it was asked for.
    """

    may_have_acted = False
    retry_after: float | None = None

    def __init__(self, message: str, method: str, path: str, attempts: int, request_id: str, **details: Any):
        super().__init__(
            message, {"method": method, "path": path, "attempts": attempts, "request_id": request_id, **details}
        )
        self.attempts = attempts


class ServiceUnreachable(RequestFailed):
    """No answer came, or only a part of one: no connection, a broken one, a timeout, a certificate that is not trusted."""

    kind = "unreachable"

    def __init__(
        self, message: str, method: str, path: str, attempts: int, request_id: str, sent: bool, transient: bool
    ):
        super().__init__(message, method, path, attempts, request_id)
        self.may_have_acted = sent
        self.transient = transient


class StatusError(RequestFailed):
    """The service answered with an HTTP status other than 2xx (api.md, Errors).

    C(told) holds those of C(message), C(code) and C(request_id) that the service's error body has.
    """

    kind = "http_status"

    def __init__(
        self, message: str, method: str, path: str, attempts: int, request_id: str, status: int, told: dict[str, str]
    ):
        super().__init__(message, method, path, attempts, request_id, status=status)
        self.details.update(told)
        self.status = status
        self.transient = status in TRANSIENT_STATUSES
        self.may_have_acted = status >= 500 and status not in REFUSED_STATUSES


class Unauthorized(StatusError):
    """401: the key is missing, invalid or revoked."""

    kind = "unauthorized"


class NotFound(StatusError):
    """404: there is no such object, or the key may not reach it."""

    kind = "not_found"


class UnexpectedResponse(RequestFailed):
    """A 2xx answer that is not what api.md describes: HTML, malformed JSON, JSON of another shape."""

    kind = "unexpected_response"
    may_have_acted = True
