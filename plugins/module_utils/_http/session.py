# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The requests session: what is sent with every request, and one exchange with the service. Keeps P1, P2, P4 and P5.

Works with urllib3 1.25 to 2.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import traceback
from collections.abc import Mapping
from functools import cache
from http.client import HTTPResponse
from typing import TYPE_CHECKING, Any, Callable
from urllib.parse import urlsplit

from .connection import Connection, is_loopback
from .message import Request

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
COLLECTION_VERSION = "3.1.0-dev0"
MAX_CONNECTIONS = 32
# The first of these is urllib3's own. An address that drops packets takes up to 7 seconds, not all of api_timeout: the host may have
# another one, as where IPv6 does not work.
SOCKET_OPTIONS = [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)]
if hasattr(socket, "TCP_SYNCNT"):  # Linux
    SOCKET_OPTIONS.append((socket.IPPROTO_TCP, socket.TCP_SYNCNT, 2))


def missing_requests() -> str:
    """The message for REQUESTS_IMPORT_ERROR, without a full stop."""
    return (
        f"The Python package requests is missing for {sys.executable} on {os.uname().nodename}. "
        f"Install it with: {sys.executable} -m pip install requests"
    )


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
                raise ConnectionError(f"{missing} bytes of the body are missing")
        except (ConnectionError, RequestException):
            if response.status_code < 400:
                raise
            body = b""
        return response.status_code, response.headers, body
