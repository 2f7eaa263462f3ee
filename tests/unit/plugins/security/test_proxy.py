# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tasks behind a proxy. All host names resolve to this machine: in the proxy and, by a stub, in the task."""

from __future__ import annotations

import base64
import re
import socket
from typing import Any, Callable

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._http.errors import ServiceUnreachable
from ansible_collections.clouddb.control.plugins.modules import project_info
from ansible_collections.clouddb.control.tests.unit.plugins.security.certificates import OTHER_HOST, Authority
from ansible_collections.clouddb.control.tests.unit.support.module_main import Outcome, run_main
from ansible_collections.clouddb.control.tests.unit.support.scripted_client import API_KEY, Scripted, Serve, page
from ansible_collections.clouddb.control.tests.unit.support.scripted_service import TUNNEL, Reply, reply

HOST = "control.example.com"
CREDENTIALS = "somebody:proxy-password"
PROJECTS = page("projects", [])
REFUSAL = reply(b"", 407)

# behind(*script, variable, credentials)
Behind = Callable[..., Scripted]


@pytest.fixture
def behind(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> Behind:
    """Starts a proxy that follows a script, and names it in the environment."""

    def start(*script: Reply, variable: str = "HTTPS_PROXY", credentials: str = "") -> Scripted:
        proxy = serve(*script)
        monkeypatch.setenv(variable, f"http://{credentials}127.0.0.1:{proxy.service.address[1]}")
        return proxy

    return start


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
def test_https_proxy_sees_only_the_host(serve: Serve, behind: Behind, authority: Authority, variable: str) -> None:
    proxy = behind(TUNNEL, variable=variable)
    served = serve(PROJECTS, tls=authority.server(HOST))
    assert not task(served, HOST, ca_path=authority.bundle).failed
    assert_received_the_key(served)
    [received] = proxy.requests
    assert (received.method, received.target.partition(":")[0]) == ("CONNECT", HOST)
    assert API_KEY not in str(received.headers)


def test_certificate_is_validated_behind_a_proxy(serve: Serve, behind: Behind, authority: Authority) -> None:
    behind(TUNNEL)
    served = serve(tls=authority.server("elsewhere.example.com"))
    outcome = task(served, HOST, ca_path=authority.bundle)
    assert re.search(f" is not trusted: ({OTHER_HOST})", outcome.result["msg"])
    assert served.requests == []


@pytest.mark.parametrize(
    "no_proxy, is_bypassed", [(HOST, True), ("other.example.com,.example.com", True), ("example.org", False)]
)
def test_no_proxy_is_honored(
    serve: Serve,
    behind: Behind,
    authority: Authority,
    monkeypatch: pytest.MonkeyPatch,
    no_proxy: str,
    is_bypassed: bool,
) -> None:
    behind(*([] if is_bypassed else [TUNNEL]))
    monkeypatch.setenv("NO_PROXY", no_proxy)
    served = serve(PROJECTS, tls=authority.server(HOST))
    assert not task(served, HOST, ca_path=authority.bundle).failed
    assert_received_the_key(served)


@pytest.mark.parametrize("host, tls", [("127.0.0.1", False), ("localhost", True)])
def test_loopback_bypasses_proxies(serve: Serve, behind: Behind, authority: Authority, host: str, tls: bool) -> None:
    proxies = [behind(variable=variable) for variable in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")]
    served = serve(PROJECTS, tls=authority.server(host) if tls else False)
    assert not task(served, host, ca_path=authority.bundle).failed
    assert_received_the_key(served)
    assert [proxy.requests for proxy in proxies] == [[], [], []]


def test_http_through_a_proxy_needs_allow_http(serve: Serve, behind: Behind) -> None:
    proxy, served = behind(PROJECTS, variable="HTTP_PROXY"), serve()
    assert task(served, HOST).failure == {"kind": "invalid_option", "option": "base_url"}
    assert proxy.requests == served.requests == []
    assert not task(served, HOST, allow_http=True).failed
    assert API_KEY in proxy.requests[0].headers["Authorization"]


@pytest.mark.parametrize("credentials", [CREDENTIALS, ""])
def test_credentials_are_sent_to_the_proxy(
    serve: Serve, behind: Behind, authority: Authority, credentials: str
) -> None:
    proxy = behind(REFUSAL, credentials=credentials and f"{credentials}@")
    outcome = task(serve(tls=authority.server(HOST)), HOST, ca_path=authority.bundle)
    sent = f"Basic {base64.b64encode(credentials.encode()).decode()}" if credentials else None
    assert [request.headers["Proxy-Authorization"] for request in proxy.requests] == [sent]
    assert "407" in outcome.result["msg"]
    assert "-password" not in outcome.printed


def test_a_refused_tunnel_means_not_sent(serve: Serve, behind: Behind, authority: Authority) -> None:
    """The first request uses no proxy. Then the environment changes, and the proxy refuses the POST."""
    served = serve(PROJECTS, tls=authority.server(HOST))
    port = served.service.base_url.rpartition(":")[2].partition("/")[0]
    client = serve(base_url=f"https://{HOST}:{port}/api/v2", ca_path=authority.bundle, api_retries=2).client
    client.get("projects")
    behind(*[REFUSAL] * 3)
    with pytest.raises(ServiceUnreachable) as error:
        client.post("api_keys", body={"key_name": "deploy"})
    assert (error.value.attempts, error.value.may_have_acted) == (3, False)


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
