# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The requests session: what is sent with every request, and one exchange with the service. Keeps P1, P2, P4 and P5.

Works with urllib3 1.25 to 2.
"""

from __future__ import annotations

import json
import os
import re
import socket
import sys
import threading
import traceback
from collections.abc import Mapping
from functools import cache
from http.client import HTTPResponse
from typing import TYPE_CHECKING, Any, Callable, NamedTuple
from urllib.parse import urlsplit

from .connection import Connection, is_loopback

REQUESTS_IMPORT_ERROR: str | None = None
try:
    import requests
    from requests import RequestException, Session
    from requests.adapters import HTTPAdapter
    from urllib3 import disable_warnings
    from urllib3.exceptions import InsecureRequestWarning
except ImportError:
    REQUESTS_IMPORT_ERROR = traceback.format_exc()
    if not TYPE_CHECKING:
        # Placeholders, so that this file can be imported and the module can name the missing library.
        HTTPAdapter = Session = object

# As the User-Agent header has it; a test compares it with galaxy.yml.
COLLECTION_VERSION = "2.1.0-dev0"
MAX_CONNECTIONS = 32
# The first of these is urllib3's own. An address that drops packets takes up to 7 seconds, not all of api_timeout: the host may have
# another one, as where IPv6 does not work.
SOCKET_OPTIONS = [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)]
if hasattr(socket, "TCP_SYNCNT"):  # Linux
    SOCKET_OPTIONS.append((socket.IPPROTO_TCP, socket.TCP_SYNCNT, 2))

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


def missing_requests() -> str:
    """The message for REQUESTS_IMPORT_ERROR, without a full stop."""
    return (
        f"The Python package requests is missing for {sys.executable} on {os.uname().nodename}. "
        f"Install it with: {sys.executable} -m pip install requests"
    )


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


class BodyError(Exception):
    """The body of a response ends early."""


class FinalResponse(HTTPResponse):
    """Skips interim responses such as 103, of which there may be any number before the final one (RFC 9110, 15.2)."""

    def begin(self) -> None:
        """Read the status line and the headers of the final response."""
        super().begin()
        # It skips 100 itself.
        while 101 < self.status < 200:
            # begin() does nothing for a response that has headers.
            self.headers = self.msg = None  # type: ignore[assignment]
            super().begin()


class AttemptConnection:
    """Notifies the attempt that uses it before it sends a request. Connecting, even through a proxy and TLS, comes before."""

    response_class: Any = FinalResponse
    sock: Any

    def request(self, *args: Any, **kwargs: Any) -> None:
        """Send a request; never for an abandoned attempt."""
        if self.sock is None:
            self.connect()  # type: ignore[attr-defined]
        attempt: Any = threading.current_thread()
        attempt.begin_to_send(self.sock)
        super().request(*args, **kwargs)  # type: ignore[misc]


@cache
def attempt_pool(pool: Any) -> Any:
    """This class of connection pools with connections that notify their attempt."""
    if issubclass(pool.ConnectionCls, AttemptConnection):
        return pool
    connection = type(pool.ConnectionCls.__name__, (AttemptConnection, pool.ConnectionCls), {})
    return type(pool.__name__, (pool,), {"ConnectionCls": connection})


def _use_attempt_pools(manager: Any) -> Any:
    pools = manager.pool_classes_by_scheme
    manager.pool_classes_by_scheme = {scheme: attempt_pool(pool) for scheme, pool in pools.items()}
    return manager


class AttemptAdapter(HTTPAdapter):
    """Uses connections that notify their attempt, directly and through proxies of all kinds."""

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, socket_options=SOCKET_OPTIONS, **kwargs)
        _use_attempt_pools(self.poolmanager)

    def proxy_manager_for(self, proxy: Any, **kwargs: Any) -> Any:
        return _use_attempt_pools(super().proxy_manager_for(proxy, socket_options=SOCKET_OPTIONS, **kwargs))


def open_session(connection: Connection) -> Session:
    """A session that authenticates with the connection's key."""
    session = Session()
    session.auth = _bearer(connection.api_key)
    session.headers.update(
        {
            "Accept": "application/json",
            "Accept-Encoding": "gzip",
            "User-Agent": f"clouddb.control/{COLLECTION_VERSION}",
        }
    )
    adapter = AttemptAdapter(pool_maxsize=MAX_CONNECTIONS)
    for scheme in ("https://", "http://"):
        session.mount(scheme, adapter)
    if not connection.validate_certs:
        # The user has chosen; a warning at each request says nothing new.
        disable_warnings(InsecureRequestWarning)
    return session


def _bearer(api_key: str) -> Callable[[requests.PreparedRequest], requests.PreparedRequest]:
    """Sets the Authorization header as the session's auth, because requests lets .netrc replace a plain header."""

    def authorize(request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {api_key}"
        return request

    return authorize


def exchange(
    session: Session, connection: Connection, request: Request, seconds: float
) -> tuple[int, Mapping[str, str], bytes]:
    """Send the request and read its response: status, headers and complete body.

    The body of an error response is empty if it cannot be read, because its status says what happened.
    To be called in an Attempt; C(seconds) bounds each single step, so that the thread of an abandoned one ends.
    """
    host = urlsplit(connection.base_url).hostname or ""
    with session.request(
        request.method,
        connection.base_url + request.path,
        params=request.query,
        json=request.body,
        headers={"X-Request-ID": request.request_id},
        allow_redirects=False,
        # Requests to this machine bypass every proxy: over plain http, a proxy would see the key.
        proxies={"no_proxy": host} if is_loopback(host) else None,
        # Given with each request: a session's setting would give way to REQUESTS_CA_BUNDLE.
        verify=connection.validate_certs and (connection.ca_path or None),
        timeout=seconds,
        stream=True,
    ) as response:
        try:
            body = response.content
            if missing := response.raw.length_remaining:
                raise BodyError(f"{missing} bytes of the body are missing")
        except (BodyError, RequestException):
            if response.status_code < 400:
                raise
            body = b""
        return response.status_code, response.headers, body
