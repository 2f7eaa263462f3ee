# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The typed errors; each renders itself as the result of a failed task. Keeps P2 and P11.

No error ever holds a header or a key. Modules load this file before anything that fails on a Python older than 3.9.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

if sys.version_info < (3, 9):  # noqa: UP036
    version = ".".join(map(str, sys.version_info[:3]))
    message = (
        f"The module needs Python 3.9 or later, and {sys.executable} is Python {version}. "
        "Set ansible_python_interpreter to a later one on the host."
    )
    sys.stdout.write(json.dumps({"failed": True, "msg": message, "failure": {"kind": "unsupported_python"}}))
    raise SystemExit(1)

from ._untrusted import MAX_MESSAGE_LENGTH, displayable, walk

# The project has unfinished operations; the request was refused.
LOCKED = 423
# After these, the same GET or DELETE may succeed later (the service's rate limit is among them).
TRANSIENT_STATUSES = frozenset({LOCKED, 429, 500, 502, 503, 504})
# After these, the service did not act, and may do so later, so that even a POST may be retried.
REFUSED_TEMPORARILY = frozenset({LOCKED, 429, 503})
# After these, the service did not act either, nor will it. After any other status, it may have acted: a gateway may
# send it when the service is done, and a redirect is a usual response to a POST that succeeded.
REFUSED_PERMANENTLY = frozenset(
    {400, 401, 402, 403, 404, 405, 407, 409, 410, 411, 412, 413, 414, 415, 417, 421, 422, 425, 426, 428, 431, 451}
)


def sentence(text: object) -> str:
    """The text, ended by one full stop or question mark, so that another sentence can follow it."""
    complete = str(text).rstrip(".")
    return complete if complete.endswith("?") else f"{complete}."


class ClouddbError(Exception):
    """Base of all errors of this collection.

    The message consists of complete sentences. C(details) become RV(failure), C(result) holds further fields of the task's result.
    Texts of the service in the message and in C(details) are made displayable here.
    """

    kind = "unexpected"
    transient = False

    def __init__(self, message: str, details: dict[str, Any] | None = None, result: dict[str, Any] | None = None):
        super().__init__(displayable(message, MAX_MESSAGE_LENGTH))
        self.details = _displayable(details or {})
        self.result = result or {}

    def as_result(self) -> dict[str, Any]:
        """The arguments of C(fail_json): C(msg), C(failure) and the further fields of the result."""
        return {**self.result, "msg": str(self), "failure": {"kind": self.kind, **self.details}}


def _displayable(details: Mapping[str, Any]) -> dict[str, Any]:
    shown: dict[str, Any] = walk(dict(details), lambda text: displayable(text, MAX_MESSAGE_LENGTH))
    return shown


class InvalidOption(ClouddbError):
    """An option's value is wrong; raised before any request that changes something."""

    kind = "invalid_option"

    def __init__(self, option: str, problem: str):
        super().__init__(sentence(f"{option}: {problem}"), {"option": option})


class SecretFileError(ClouddbError):
    """The file that a secret is to be written to cannot be read or written."""

    kind = "secret_file"


class RequestFailed(ClouddbError):
    """A request without a usable response.

    C(may_have_acted) is set if the service may have carried out the request, at any of its attempts.
    """

    may_have_acted = False
    retry_after: float | None = None

    def __init__(self, message: str, method: str, path: str, attempts: int, request_id: str, **details: Any):
        super().__init__(
            message, {"method": method, "path": path, "attempts": attempts, "request_id": request_id, **details}
        )
        self.attempts = attempts


class ServiceUnreachable(RequestFailed):
    """No complete response: no connection, a broken one, a timeout, or a certificate that is not trusted."""

    kind = "unreachable"

    def __init__(
        self, message: str, method: str, path: str, attempts: int, request_id: str, sent: bool, transient: bool
    ):
        super().__init__(message, method, path, attempts, request_id)
        self.may_have_acted = sent
        self.transient = transient


class StatusError(RequestFailed):
    """A response with an HTTP status other than 2xx (api.md, Errors).

    C(error_body) holds those of C(message), C(code) and C(request_id) that the service sent.
    """

    kind = "http_status"

    def __init__(
        self,
        message: str,
        method: str,
        path: str,
        attempts: int,
        request_id: str,
        status: int,
        error_body: dict[str, str],
    ):
        super().__init__(message, method, path, attempts, request_id, status=status)
        self.details.update(_displayable(error_body))
        self.status = status
        self.transient = status in TRANSIENT_STATUSES
        self.may_have_acted = status not in REFUSED_TEMPORARILY | REFUSED_PERMANENTLY


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
