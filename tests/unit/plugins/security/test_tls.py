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
from typing import Any, Callable, NoReturn

import pytest
import trustme

from ansible_collections.clouddb.control.plugins.module_utils._http.errors import Unreachable
from ansible_collections.clouddb.control.plugins.modules import api_key_info, project_info
from ansible_collections.clouddb.control.tests.unit.support.each_module import of_every_module
from ansible_collections.clouddb.control.tests.unit.support.module_main import HasMain, Outcome, run_main
from ansible_collections.clouddb.control.tests.unit.support.scripted_client import API_KEY, Scripted, Serve, page
from ansible_collections.clouddb.control.tests.unit.support.scripted_service import TUNNEL, Reply, reply

DAY = timedelta(days=1)
# How errors describe a certificate of another host: the words of OpenSSL, and those of urllib3 1.
OTHER_HOST = "(Hostname|IP address) mismatch|hostname '.*' doesn't match"
ADVICE = "Set ca_path or REQUESTS_CA_BUNDLE"
YEAR = timedelta(days=365)
# Environment and options of a task. "right" is the bundle of the authority that issued the certificate, "wrong" that of the other one.
TRUSTING: list[tuple[dict[str, str], dict[str, Any]]] = [
    ({}, {"ca_path": "right"}),
    ({"REQUESTS_CA_BUNDLE": "right"}, {}),
    ({"CURL_CA_BUNDLE": "right"}, {}),
    ({"REQUESTS_CA_BUNDLE": "wrong"}, {"ca_path": "right"}),
    ({"REQUESTS_CA_BUNDLE": "wrong"}, {"validate_certs": False}),
    ({}, {"validate_certs": False, "ca_path": "wrong"}),
]
REFUSING: list[tuple[dict[str, str], dict[str, Any]]] = [
    ({}, {}),
    ({}, {"ca_path": "wrong"}),
    ({"REQUESTS_CA_BUNDLE": "wrong"}, {}),
    ({"REQUESTS_CA_BUNDLE": "right"}, {"ca_path": "wrong"}),
    ({"SSL_CERT_FILE": "right"}, {"ca_path": "wrong"}),
    ({"PYTHONHTTPSVERIFY": "0"}, {}),
]


class Authority:
    """C(bundle) is the path of its CA bundle."""

    def __init__(self, folder: Path):
        self._authority = trustme.CA()
        self.bundle = str(folder / "authority.pem")
        self._authority.cert_pem.write_to_path(self.bundle)

    def server(self, name: str = "127.0.0.1", valid: tuple[timedelta, timedelta] = (-DAY, DAY)) -> ssl.SSLContext:
        """The TLS settings of a server of this name, with a certificate that is C(valid) from and until these times from now."""
        now = datetime.now(timezone.utc)
        certificate = self._authority.issue_cert(name, not_before=now + valid[0], not_after=now + valid[1])
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        certificate.configure_cert(context)
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


def case_id(case: tuple[dict[str, str], dict[str, Any]]) -> str:
    return " ".join(f"{name}={value}" for part in case for name, value in part.items()) or "nothing set"


@pytest.fixture
def options(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, authority: Authority, other_authority: Authority
) -> dict[str, Any]:
    """Set the environment of a case; returns its options."""
    paths = {"right": authority.bundle, "wrong": other_authority.bundle}
    environment, options = ({name: paths.get(value, value) for name, value in part.items()} for part in request.param)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return options


@pytest.mark.parametrize("options", TRUSTING, ids=case_id, indirect=True)
def test_trusted_certificates_are_accepted(serve: Serve, authority: Authority, options: dict[str, Any]) -> None:
    served = serve(page("projects", []), tls=authority.server())
    outcome = task(served, **options)
    assert outcome.success["projects"] == []
    assert "InsecureRequestWarning" not in outcome.printed


@pytest.mark.parametrize("options", REFUSING, ids=case_id, indirect=True)
def test_untrusted_certificates_get_no_request(serve: Serve, authority: Authority, options: dict[str, Any]) -> None:
    served = serve(tls=authority.server())
    outcome = task(served, **options)
    assert (outcome.failure["kind"], outcome.failure["attempts"]) == ("unreachable", 1)
    assert " is not trusted: " in outcome.result["msg"] and ADVICE in outcome.result["msg"]
    assert served.requests == []


@pytest.mark.parametrize(
    "name, valid, part",
    [
        ("control.example.com", (-DAY, DAY), OTHER_HOST),
        ("127.0.0.1", (-YEAR, -DAY), "certificate has expired"),
        ("127.0.0.1", (DAY, YEAR), "certificate is not yet valid"),
    ],
)
def test_invalid_certificates_of_a_trusted_authority_are_refused(
    serve: Serve, authority: Authority, name: str, valid: tuple[timedelta, timedelta], part: str
) -> None:
    served = serve(tls=authority.server(name, valid))
    outcome = task(served, ca_path=authority.bundle)
    assert (outcome.failure["kind"], outcome.failure["attempts"]) == ("unreachable", 1)
    assert re.search(f" is not trusted: ({part})", outcome.result["msg"])
    # A CA bundle would not help.
    assert ADVICE not in outcome.result["msg"]
    assert served.requests == []


@of_every_module
def test_http_is_refused_before_the_name_lookup(
    monkeypatch: pytest.MonkeyPatch, module: HasMain, options: dict[str, Any]
) -> None:
    def nowhere(*args: Any, **kwargs: Any) -> NoReturn:
        raise AssertionError(f"looked up {args[0]}")

    monkeypatch.setattr(socket, "getaddrinfo", nowhere)
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


def task_for(host: str, served: Scripted, **options: Any) -> Outcome:
    """The outcome of a task whose base_url has this host instead of the address."""
    base_url = served.service.base_url.replace("127.0.0.1", host)
    return task(served, base_url=base_url, api_retries=0, **options)


def assert_received_the_key(served: Scripted) -> None:
    assert [request.headers.get_all("Authorization") for request in served.requests] == [[f"Bearer {API_KEY}"]]


@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "https_proxy", "ALL_PROXY"])
def test_https_proxy_sees_only_the_host(serve: Serve, behind: Behind, authority: Authority, variable: str) -> None:
    proxy = behind(TUNNEL, variable=variable)
    served = serve(PROJECTS, tls=authority.server(HOST))
    assert not task_for(HOST, served, ca_path=authority.bundle).failed
    assert_received_the_key(served)
    [received] = proxy.requests
    assert (received.method, received.target.partition(":")[0]) == ("CONNECT", HOST)
    assert API_KEY not in str(received.headers)


def test_certificate_is_validated_behind_a_proxy(serve: Serve, behind: Behind, authority: Authority) -> None:
    behind(TUNNEL)
    served = serve(tls=authority.server("elsewhere.example.com"))
    outcome = task_for(HOST, served, ca_path=authority.bundle)
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
    assert not task_for(HOST, served, ca_path=authority.bundle).failed
    assert_received_the_key(served)


@pytest.mark.parametrize("host, tls", [("127.0.0.1", False), ("localhost", True)])
def test_loopback_bypasses_proxies(serve: Serve, behind: Behind, authority: Authority, host: str, tls: bool) -> None:
    proxies = [behind(variable=variable) for variable in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")]
    served = serve(PROJECTS, tls=authority.server(host) if tls else False)
    assert not task_for(host, served, ca_path=authority.bundle).failed
    assert_received_the_key(served)
    assert [proxy.requests for proxy in proxies] == [[], [], []]


def test_http_through_a_proxy_needs_allow_http(serve: Serve, behind: Behind) -> None:
    proxy, served = behind(PROJECTS, variable="HTTP_PROXY"), serve()
    assert task_for(HOST, served).failure == {"kind": "invalid_option", "option": "base_url"}
    assert proxy.requests == served.requests == []
    assert not task_for(HOST, served, allow_http=True).failed
    assert API_KEY in proxy.requests[0].headers["Authorization"]


@pytest.mark.parametrize("credentials", [CREDENTIALS, ""])
def test_credentials_are_sent_to_the_proxy(
    serve: Serve, behind: Behind, authority: Authority, credentials: str
) -> None:
    proxy = behind(REFUSAL, credentials=credentials and f"{credentials}@")
    outcome = task_for(HOST, serve(tls=authority.server(HOST)), ca_path=authority.bundle)
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
    outcome = task_for(HOST, serve(tls=True))
    assert outcome.failure["kind"] == "unreachable"
    assert "Unicode" not in outcome.printed and "unexpected" not in outcome.printed
    assert "proxy-pass" not in outcome.printed
