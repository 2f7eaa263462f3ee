# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tasks behind a proxy. All host names resolve to this machine: in the proxy and, by a stub, in the task."""

from __future__ import annotations

import base64
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._http.errors import ServiceUnreachable
from ansible_collections.clouddb.control.plugins.modules import project_info
from ansible_collections.clouddb.control.tests.unit.plugins.security.certificates import OTHER_HOST, Authority
from ansible_collections.clouddb.control.tests.unit.support.module_main import Outcome, run_main
from ansible_collections.clouddb.control.tests.unit.support.scripted_client import API_KEY, Scripted, Serve, page
from ansible_collections.clouddb.control.tests.unit.support.scripted_service import ScriptedService, scripted_service

HOST = "control.example.com"
GUARDED_HOST = "guarded.example.com"
CREDENTIALS = "somebody:proxy-password"


def address_of(proxy: ScriptedService) -> str:
    return f"127.0.0.1:{proxy.address[1]}"


class Proxy(ScriptedService):
    """Connects clients to ports of this machine, to a guarded host only with credentials."""

    def respond(self, connection: socket.socket, stream: BinaryIO) -> None:
        request = self.receive(stream)
        if request is None:
            return
        host, _colon, port = request.target.rpartition(":")
        basic = f"Basic {base64.b64encode(CREDENTIALS.encode()).decode()}"
        if host == GUARDED_HOST and request.headers["Proxy-Authorization"] != basic:
            connection.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
        elif request.method != "CONNECT":
            connection.sendall(page("projects", []).raw)
        else:
            connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            with socket.create_connection(("127.0.0.1", int(port))) as service:
                threading.Thread(target=pump, args=[service, connection], daemon=True).start()
                pump(connection, service)


def pump(source: socket.socket, target: socket.socket) -> None:
    """Send on what is received, until the end."""
    with suppress(OSError):
        while data := source.recv(2**16):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    with scripted_service(service_class=Proxy) as running:
        yield running


@pytest.fixture(autouse=True)
def resolve_all_names_to_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    lookup = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, *args, **kwargs: lookup("127.0.0.1", *args, **kwargs))


def task(served: Scripted, host: str, **options: Any) -> Outcome:
    """The outcome of a task whose base_url has this host instead of the address."""
    base_url = served.service.base_url.replace("127.0.0.1", host)
    return run_main(project_info, {"base_url": base_url, "api_key": API_KEY, "api_retries": 0, **options})


def assert_received_the_key(served: Scripted) -> None:
    assert [request.headers.get_all("Authorization") for request in served.requests] == [[f"Bearer {API_KEY}"]]


@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "https_proxy", "ALL_PROXY"])
def test_https_proxy_sees_only_the_host(
    serve: Serve, proxy: Proxy, authority: Authority, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variable: str
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("default login somebody password else\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv(variable, f"http://{address_of(proxy)}")
    served = serve(page("projects", []), tls=authority.server(HOST))
    assert not task(served, HOST, ca_path=authority.bundle).failed
    assert_received_the_key(served)
    [received] = proxy.requests
    assert (received.method, received.target.partition(":")[0]) == ("CONNECT", HOST)
    assert API_KEY not in str(received.headers)


def test_certificate_is_validated_behind_a_proxy(
    serve: Serve, proxy: Proxy, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", f"http://{address_of(proxy)}")
    served = serve(tls=authority.server("elsewhere.example.com"))
    outcome = task(served, HOST, ca_path=authority.bundle)
    assert re.search(f" is not trusted: ({OTHER_HOST})", outcome.result["msg"])
    assert served.requests == []


@pytest.mark.parametrize(
    "no_proxy, is_bypassed", [(HOST, True), ("other.example.com,.example.com", True), ("example.org", False)]
)
def test_no_proxy_is_honored(
    serve: Serve,
    proxy: Proxy,
    authority: Authority,
    monkeypatch: pytest.MonkeyPatch,
    no_proxy: str,
    is_bypassed: bool,
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", f"http://{address_of(proxy)}")
    monkeypatch.setenv("NO_PROXY", no_proxy)
    served = serve(page("projects", []), tls=authority.server(HOST))
    assert not task(served, HOST, ca_path=authority.bundle).failed
    assert_received_the_key(served)
    assert (proxy.requests == []) is is_bypassed


@pytest.mark.parametrize("host, tls", [("127.0.0.1", False), ("localhost", True)])
def test_loopback_bypasses_proxies(
    serve: Serve, proxy: Proxy, authority: Authority, monkeypatch: pytest.MonkeyPatch, host: str, tls: bool
) -> None:
    for variable in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(variable, f"http://{address_of(proxy)}")
    served = serve(page("projects", []), tls=authority.server(host) if tls else False)
    assert not task(served, host, ca_path=authority.bundle).failed
    assert_received_the_key(served)
    assert proxy.requests == []


def test_http_through_a_proxy_needs_allow_http(serve: Serve, proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://{address_of(proxy)}")
    served = serve()
    assert task(served, HOST).failure == {"kind": "invalid_option", "option": "base_url"}
    assert proxy.requests == served.requests == []
    assert not task(served, HOST, allow_http=True).failed
    assert API_KEY in proxy.requests[0].headers["Authorization"]


@pytest.mark.parametrize(
    "credentials, is_accepted", [(f"{CREDENTIALS}@", True), ("", False), ("somebody:wrong-password@", False)]
)
def test_proxy_authentication(
    serve: Serve,
    proxy: Proxy,
    authority: Authority,
    monkeypatch: pytest.MonkeyPatch,
    credentials: str,
    is_accepted: bool,
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", f"http://{credentials}{address_of(proxy)}")
    served = serve(*([page("projects", [])] if is_accepted else []), tls=authority.server(GUARDED_HOST))
    outcome = task(served, GUARDED_HOST, ca_path=authority.bundle)
    assert outcome.failed is not is_accepted
    assert "407" in outcome.printed or is_accepted
    assert "password@" not in outcome.printed and "-password" not in outcome.printed


def test_a_refused_tunnel_means_not_sent(
    serve: Serve, proxy: Proxy, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first request uses no proxy. Then the environment changes, and the proxy refuses the POST."""
    served = serve(page("projects", []), tls=authority.server(GUARDED_HOST))
    port = served.service.base_url.rpartition(":")[2].partition("/")[0]
    client = serve(base_url=f"https://{GUARDED_HOST}:{port}/api/v2", ca_path=authority.bundle, api_retries=2).client
    client.get("projects")
    monkeypatch.setenv("HTTPS_PROXY", f"http://{address_of(proxy)}")
    with pytest.raises(ServiceUnreachable) as error:
        client.post("api_keys", body={"key_name": "deploy"})
    assert (error.value.attempts, error.value.may_have_acted) == (3, False)
    assert len(proxy.requests) == 3


@pytest.mark.parametrize(
    "proxy_url",
    [
        f"http://{CREDENTIALS}@127.0.0.1:1",
        f"http://{CREDENTIALS}@127.0.0.1:port",
        "http://somebody:proxy-pass/word@127.0.0.1:1",
        "http://somebody:[proxy-pass]@127.0.0.1:1",
        "http://somebody:proxy-pass€@127.0.0.1:1",
        "http://somebody:proxy-pass@",
    ],
)
def test_proxy_errors_do_not_quote_the_password(serve: Serve, monkeypatch: pytest.MonkeyPatch, proxy_url: str) -> None:
    monkeypatch.setenv("HTTPS_PROXY", proxy_url)
    outcome = task(serve(tls=True), HOST)
    assert outcome.failure["kind"] == "unreachable"
    assert "Unicode" not in outcome.printed and "unexpected" not in outcome.printed
    assert "proxy-pass" not in outcome.printed
