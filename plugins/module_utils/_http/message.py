# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A request, its response as it came, and what the status says about whether the service acted. Keeps P2."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

# The project has unfinished operations; the request was refused.
LOCKED = 423
# After these, the same GET or DELETE may succeed later. Gateways send 408 or, for example, 522 for a service that is briefly down.
TRANSIENT_STATUSES = frozenset({408, LOCKED, 429, *range(500, 600)})
UNAVAILABLE = 503
# The service refuses a request in these words, with status 422, while what the request is about is being created or changed.
NOT_READY = re.compile(r"\bnot (yet )?ready\b", re.IGNORECASE)
UNPROCESSABLE = 422
# After these, the service did not act, nor will it.
REFUSED_PERMANENTLY = frozenset(
    {400, 401, 402, 403, 404, 405, 407, 409, 410, 411, 412, 413, 414, 415, 417, 421, 422, 425, 426, 428, 431, 451}
)
# After the other two, it did not act either, and may do so later, so that even a POST may be retried. After any other status, it may have
# acted: a gateway may send it when the service is done, and a redirect is a usual response to a POST that succeeded.
REFUSED = REFUSED_PERMANENTLY | {LOCKED, 429}


class Request(NamedTuple):
    """A request; C(path) is encoded and follows base_url, C(query) and the JSON object C(body) are not encoded yet."""

    method: str
    path: str
    request_id: str
    query: Mapping[str, Any] | None = None
    body: Mapping[str, Any] | None = None


class RawResponse(NamedTuple):
    """A response with its complete body, and the number of C(attempts) that it took to get it.

    C(acted_before) is set if the service may have carried out one of the earlier attempts, C(out_of_time) if the deadline left
    no time for another one.
    """

    status: int
    headers: Mapping[str, str]
    content: bytes
    attempts: int
    acted_before: bool
    out_of_time: bool = False

    def __repr__(self) -> str:
        return f"RawResponse({self.status}, ...)"  # without the content, which may hold a secret

    @property
    def transient(self) -> bool:
        """Whether the same request may get another status later."""
        return self.status in TRANSIENT_STATUSES or self.not_ready

    @property
    def not_ready(self) -> bool:
        """Whether the service did nothing because what the request is about is not ready yet, such as C(branch not ready yet)."""
        if self.status != UNPROCESSABLE:
            return False
        message = self._error_fields().get("message")
        return isinstance(message, str) and NOT_READY.search(message) is not None

    @property
    def may_have_acted(self) -> bool:
        """Whether the service may have carried out this attempt or an earlier one."""
        is_refused = self._says_when_to_retry_or_why() if self.status == UNAVAILABLE else self.status in REFUSED
        return self.acted_before or not is_refused

    def _says_when_to_retry_or_why(self) -> bool:
        """Whether a 503 has Retry-After and is no HTML page, or is an error of the service itself.

        A gateway sends any other one, even when it has passed the request on. The service's errors have C(message) and C(code), which
        are texts (GeneralError of the published API document). What gateways send as JSON has no code, or a number. Varnish sends
        Retry-After with its own page.
        """
        if "Retry-After" in self.headers:
            return not self.content.lstrip().startswith(b"<")
        fields = self._error_fields()
        return all(isinstance(fields.get(field), str) for field in ("message", "code"))

    def _error_fields(self) -> dict[str, Any]:
        """The fields of the body; none if it is no JSON object."""
        try:
            body = json.loads(self.content)
        except (RecursionError, ValueError):
            return {}
        return body if isinstance(body, dict) else {}
