# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tasks send the key only to trusted services: certificates and CA bundles in options and environment, and proxies."""

from __future__ import annotations

import base64
import re
import socket
import ssl
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
import trustme

from ansible_collections.clouddb.control.plugins.module_utils._http.errors import Unreachable
from ansible_collections.clouddb.control.plugins.modules import api_key_info, project_info
from ansible_collections.clouddb.control.tests.unit.support.each_module import of_every_module
from ansible_collections.clouddb.control.tests.unit.support.module_main import HasMain, Outcome, run_main
from ansible_collections.clouddb.control.tests.unit.support.scripted_client import API_KEY, Scripted, Serve, page
from ansible_collections.clouddb.control.tests.unit.support.scripted_service import TUNNEL, Reply, reply

DAY, YEAR = timedelta(days=1), timedelta(days=365)
# How errors describe a certificate of another host: the words of OpenSSL, and those of urllib3 1.
OTHER_HOST = "(Hostname|IP address) mismatch|hostname '.*' doesn't match"
# Options and environment of a task. "right" is the bundle of the authority that issued the certificate, "wrong" that of the other one.
TRUSTING: list[dict[str, Any]] = [
    *({name: "right"} for name in ("ca_path", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")),
    *({"REQUESTS_CA_BUNDLE": "wrong", **option} for option in ({"ca_path": "right"}, {"validate_certs": False})),
    {"validate_certs": False, "ca_path": "wrong"},
]
REFUSING: list[dict[str, Any]] = [
    *({}, {"PYTHONHTTPSVERIFY": "0"}, {"ca_path": "wrong"}, {"REQUESTS_CA_BUNDLE": "wrong"}),
    *({name: "right", "ca_path": "wrong"} for name in ("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE")),
]


class Authority:
    """C(bundle) is the path of its CA bundle."""

    def __init__(self, folder: Path):
        self._authority = trustme.CA()
        self.bundle = str(folder / "authority.pem")
        self._authority.cert_pem.write_to_path(self.bundle)

    def server(self, name: str = "127.0.0.1", since: timedelta = -DAY, until: timedelta = DAY) -> ssl.SSLContext:
        """The TLS settings of a server of this name, with a certificate that is valid from and until these times from now."""
        now = datetime.now(timezone.utc)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._authority.issue_cert(name, not_before=now + since, not_after=now + until).configure_cert(context)
        return context


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def other_authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """An authority that has issued none of the certificates."""
    return Authority(tmp_path_factory.mktemp("other-authority"))


def task(served: Scripted, module: HasMain = project_info, **options: Any) -> Outcome:
    return run_main(module, {"base_url": served.service.base_url, "api_key": API_KEY, **options})


def assert_not_trusted(served: Scripted, outcome: Outcome, problem: str = "") -> None:
    """The connection is refused, with this problem, before anything is sent. C(ca_path) is advised unless it would not help."""
    assert (outcome.failure["kind"], outcome.failure["attempts"]) == ("unreachable", 1)
    assert re.search(f" is not trusted: ({problem})", outcome.result["msg"])
    assert ("Set ca_path or REQUESTS_CA_BUNDLE" in outcome.result["msg"]) == (not problem)
    assert served.requests == []


@pytest.fixture
def options(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, authority: Authority, other_authority: Authority
) -> dict[str, Any]:
    """Set the environment of a case, whose names are in upper case; returns its options."""
    paths = {"right": authority.bundle, "wrong": other_authority.bundle}
    case = {name: paths.get(value, value) for name, value in request.param.items()}
    for name in filter(str.isupper, case):
        monkeypatch.setenv(name, case[name])
    return {name: value for name, value in case.items() if name.islower()}


@pytest.mark.parametrize("options", TRUSTING, ids=str, indirect=True)
def test_trusted_certificates_are_accepted(serve: Serve, authority: Authority, options: dict[str, Any]) -> None:
    served = serve(page("projects", []), tls=authority.server())
    outcome = task(served, **options)
    assert outcome.success["projects"] == []
    assert "InsecureRequestWarning" not in outcome.printed


@pytest.mark.parametrize("options", REFUSING, ids=str, indirect=True)
def test_untrusted_certificates_get_no_request(serve: Serve, authority: Authority, options: dict[str, Any]) -> None:
    served = serve(tls=authority.server())
    assert_not_trusted(served, task(served, **options))


@pytest.mark.parametrize(
    "problem, server",
    [
        (OTHER_HOST, {"name": "control.example.com"}),
        ("certificate has expired", {"since": -YEAR, "until": -DAY}),
        ("certificate is not yet valid", {"since": DAY, "until": YEAR}),
    ],
)
def test_invalid_certificates_of_a_trusted_authority_are_refused(
    serve: Serve, authority: Authority, problem: str, server: dict[str, Any]
) -> None:
    served = serve(tls=authority.server(**server))
    assert_not_trusted(served, task(served, ca_path=authority.bundle), problem)


@of_every_module
def test_http_is_refused_before_the_name_lookup(
    monkeypatch: pytest.MonkeyPatch, module: HasMain, options: dict[str, Any]
) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **_options: pytest.fail(f"looked up {args[0]}"))
    outcome = run_main(module, {"base_url": "http://control.example.com/api/v2", "api_key": API_KEY, **options})
    assert outcome.failure == {"kind": "invalid_option", "option": "base_url"}


def test_netrc_does_not_replace_the_key(
    serve: Serve, authority: Authority, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    netrc = tmp_path / ".netrc"
    netrc.write_text("machine 127.0.0.1\n  login somebody\n  password else\ndefault login somebody password else\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("HOME", str(tmp_path))
    served = serve(reply([]), page("projects", []), tls=authority.server())
    for module in (api_key_info, project_info):
        assert not task(served, module, ca_path=authority.bundle).failed
    assert [request.headers.get_all("Authorization") for request in served.requests] == [[f"Bearer {API_KEY}"]] * 2


# Behind a proxy. All host names resolve to this machine: in the proxy and, by a stub, in the task.

HOST = "control.example.com"
CREDENTIALS = "somebody:proxy-password"
PROJECTS = page("projects", [])
REFUSAL = reply(b"", 407)


@pytest.fixture
def behind(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> Serve:
    """Starts a proxy that follows a script, and names it in the environment."""

    def start(*script: Reply, variable: str = "HTTPS_PROXY", credentials: str = "") -> Scripted:
        proxy = serve(*script)
        monkeypatch.setenv(variable, f"http://{credentials}127.0.0.1:{proxy.service.address[1]}")
        return proxy

    return start


@pytest.fixture
def serve_tls(serve: Serve, authority: Authority, monkeypatch: pytest.MonkeyPatch) -> Serve:
    """Starts a service of this name, with a certificate of a trusted authority."""
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", authority.bundle)
    return lambda *script, name=HOST: serve(*script, tls=authority.server(name))


@pytest.fixture(autouse=True)
def resolve_all_names_to_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    lookup = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, *args, **kwargs: lookup("127.0.0.1", *args, **kwargs))


def task_for(served: Scripted, host: str = HOST, **options: Any) -> Outcome:
    """The outcome of a task whose base_url has this host instead of the address."""
    base_url = served.service.base_url.replace("127.0.0.1", host)
    return task(served, base_url=base_url, api_retries=0, **options)


def assert_receives_the_key(served: Scripted, host: str = HOST) -> None:
    assert not task_for(served, host).failed
    assert [request.headers.get_all("Authorization") for request in served.requests] == [[f"Bearer {API_KEY}"]]


@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "https_proxy", "ALL_PROXY"])
def test_https_proxy_sees_only_the_host(serve_tls: Serve, behind: Serve, variable: str) -> None:
    proxy = behind(TUNNEL, variable=variable)
    assert_receives_the_key(serve_tls(PROJECTS))
    [received] = proxy.requests
    assert (received.method, received.target.partition(":")[0]) == ("CONNECT", HOST)
    assert API_KEY not in str(received.headers)


def test_certificate_is_validated_behind_a_proxy(serve_tls: Serve, behind: Serve) -> None:
    behind(TUNNEL)
    served = serve_tls(name="elsewhere.example.com")
    assert_not_trusted(served, task_for(served), OTHER_HOST)


@pytest.mark.parametrize(
    "no_proxy, tunnels", [(HOST, []), ("other.example.com,.example.com", []), ("example.org", [TUNNEL])]
)
def test_no_proxy_is_honored(
    serve_tls: Serve, behind: Serve, monkeypatch: pytest.MonkeyPatch, no_proxy: str, tunnels: list[Reply]
) -> None:
    behind(*tunnels)
    monkeypatch.setenv("NO_PROXY", no_proxy)
    assert_receives_the_key(serve_tls(PROJECTS))


@pytest.mark.parametrize("host, tls", [("127.0.0.1", False), ("localhost", True)])
def test_loopback_bypasses_proxies(serve: Serve, serve_tls: Serve, behind: Serve, host: str, tls: bool) -> None:
    proxies = [behind(variable=variable) for variable in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")]
    assert_receives_the_key(serve_tls(PROJECTS, name=host) if tls else serve(PROJECTS), host)
    assert [proxy.requests for proxy in proxies] == [[], [], []]


def test_http_through_a_proxy_needs_allow_http(serve: Serve, behind: Serve) -> None:
    proxy, served = behind(PROJECTS, variable="HTTP_PROXY"), serve()
    assert task_for(served).failure == {"kind": "invalid_option", "option": "base_url"}
    assert proxy.requests == served.requests == []
    assert not task_for(served, allow_http=True).failed
    assert API_KEY in proxy.requests[0].headers["Authorization"]


@pytest.mark.parametrize("credentials", [CREDENTIALS, ""])
def test_credentials_are_sent_to_the_proxy(serve_tls: Serve, behind: Serve, credentials: str) -> None:
    proxy = behind(REFUSAL, credentials=credentials and f"{credentials}@")
    outcome = task_for(serve_tls())
    sent = f"Basic {base64.b64encode(credentials.encode()).decode()}" if credentials else None
    assert [request.headers["Proxy-Authorization"] for request in proxy.requests] == [sent]
    assert "407" in outcome.result["msg"]
    assert "-password" not in outcome.printed


def test_a_refused_tunnel_means_not_sent(serve: Serve, serve_tls: Serve, behind: Serve) -> None:
    """The first request uses no proxy. Then the environment changes, and the proxy refuses the POST."""
    base_url = serve_tls(PROJECTS).service.base_url.replace("127.0.0.1", HOST)
    client = serve(base_url=base_url, api_retries=2).client
    client.get("projects")
    behind(*[REFUSAL] * 3)
    with pytest.raises(Unreachable) as error:
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
    outcome = task_for(serve(tls=True))
    assert outcome.failure["kind"] == "unreachable"
    assert "Unicode" not in outcome.printed and "unexpected" not in outcome.printed
    assert "proxy-pass" not in outcome.printed
