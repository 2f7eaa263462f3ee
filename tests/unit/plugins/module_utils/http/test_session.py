# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The session's limits, and the waits that it must not make."""

from __future__ import annotations

import socket

import pytest
import requests
from urllib3 import HTTPConnectionPool
from urllib3.connection import HTTPConnection

from ansible_collections.clouddb.control.plugins.module_utils._http import session
from ansible_collections.clouddb.control.plugins.module_utils._http.connection import Connection
from ansible_collections.clouddb.control.plugins.module_utils._http.session import MAX_CONNECTIONS, open_session
from ansible_collections.clouddb.control.plugins.module_utils._version import COLLECTION_VERSION

CONNECTION = Connection("https://control.example.com/api/v2", "s3cret")


def test_limits() -> None:
    opened = open_session(CONNECTION)
    assert opened.request_ids.maxlen == 1000
    assert MAX_CONNECTIONS == 32
    assert opened.session.get_adapter(opened.base_url)._pool_maxsize == 32


def test_what_is_sent_with_each_request() -> None:
    opened = open_session(CONNECTION)
    headers = opened.session.headers
    assert (headers["Accept"], headers["Accept-Encoding"]) == ("application/json", "gzip")
    assert headers["User-Agent"] == f"clouddb.control/{COLLECTION_VERSION}"
    prepared = opened.session.prepare_request(requests.Request("GET", opened.base_url))
    assert prepared.headers["Authorization"] == "Bearer s3cret"
    assert opened.session.cookies.get_policy().is_not_allowed("control.example.com")


@pytest.mark.parametrize(
    "host, proxies",
    [
        ("127.0.0.1:8080", {"no_proxy": "127.0.0.1"}),
        ("[::1]", {"no_proxy": "::1"}),
        ("localhost", {"no_proxy": "localhost"}),
        ("control.example.com", None),
    ],
)
def test_requests_to_this_machine_bypass_proxies(host: str, proxies: dict[str, str] | None) -> None:
    assert open_session(CONNECTION._replace(base_url=f"http://{host}/api/v2")).proxies == proxies


def test_connections_to_a_proxy() -> None:
    adapter = session.AttemptAdapter()
    for _request in range(2):
        manager = adapter.proxy_manager_for("http://proxy.example.com:3128", timeout=7.0)
        assert manager.pool_classes_by_scheme == adapter.poolmanager.pool_classes_by_scheme
    assert manager.connection_pool_kw["timeout"] == 7.0


def test_connections_of_other_proxies() -> None:
    class SocksConnection(HTTPConnection):
        pass

    class SocksPool(HTTPConnectionPool):
        ConnectionCls = SocksConnection

    pool = session.attempt_pool(SocksPool)
    assert issubclass(pool, SocksPool)
    assert pool.ConnectionCls.__mro__[1:3] == (session.AttemptConnection, SocksConnection)


def test_a_session_needs_an_attempt() -> None:
    with pytest.raises(RuntimeError, match="^the session is used outside an attempt$"):
        session._attempt()


@pytest.mark.parametrize("timeout", [5.0, None])
def test_polling_a_socket_keeps_its_timeout(timeout: float | None) -> None:
    ours, other = socket.socketpair()
    with ours, other:
        ours.settimeout(timeout)
        assert not session._is_readable(ours)
        assert ours.gettimeout() == timeout
        with session._without_waiting(ours):
            assert ours.gettimeout() == 0
        other.sendall(b"x")
        assert session._is_readable(ours)
        assert ours.gettimeout() == timeout
