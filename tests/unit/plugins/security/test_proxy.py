# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tasks behind a real proxy. All host names resolve to this machine: in the proxy by its plugin, in the task by a stub."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import ServiceUnreachable
from ansible_collections.clouddb.control.plugins.modules import api_key, project_info
from ansible_collections.clouddb.control.tests.unit.plugins.security.certificates import OTHER_HOST, Authority
from ansible_collections.clouddb.control.tests.unit.support.module_main import HasMain, Outcome, run_main
from ansible_collections.clouddb.control.tests.unit.support.scripted_client import API_KEY, Scripted, Serve, page

HOST = "control.example.com"
GUARDED_HOST = "guarded.example.com"
CREDENTIALS = "somebody:proxy-password"


class Proxy:
    """C(address) is its host and port; C(received) are the requests that it recorded."""

    def __init__(self, port: int, record: Path):
        self.address = f"127.0.0.1:{port}"
        self._record = record

    def received(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._record.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[Proxy]:
    """A proxy for each test: ansible-test runs each test in a process of its own, which skips the teardown of module fixtures."""
    folder = tmp_path / "proxy"
    folder.mkdir()
    record, port_file = folder / "record", folder / "port"
    record.touch()
    options = {
        "hostname": "127.0.0.1",
        "port": 0,
        "port-file": port_file,
        "num-acceptors": 1,
        "num-workers": 1,
        "data-dir": folder,
    }
    options.update({"plugins": "recording_proxy.RecordingProxy", "log-file": folder / "log"})
    command = [
        sys.executable,
        "-m",
        "proxy",
        *(part for name, value in options.items() for part in (f"--{name}", str(value))),
    ]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent), "PROXY_RECORD": str(record)}
    with subprocess.Popen(
        command, env=environment, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            while not (port_file.exists() and port_file.read_text(encoding="ascii").strip()):
                assert process.poll() is None, (folder / "log").read_text(encoding="utf-8")
                time.sleep(0.05)
            yield Proxy(int(port_file.read_text(encoding="ascii")), record)
        finally:
            os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture(autouse=True)
def resolve_all_names_to_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    lookup = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, *args, **kwargs: lookup("127.0.0.1", *args, **kwargs))


def task(served: Scripted, host: str, module: HasMain = project_info, **options: Any) -> Outcome:
    """The outcome of a task whose base_url has this host instead of the address."""
    base_url = served.service.base_url.replace("127.0.0.1", host)
    return run_main(module, {"base_url": base_url, "api_key": API_KEY, "api_retries": 0, **options})


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
    monkeypatch.setenv(variable, f"http://{proxy.address}")
    served = serve(page("projects", []), tls=authority.server(HOST))
    assert not task(served, HOST, ca_path=authority.bundle).failed
    assert_received_the_key(served)
    [received] = proxy.received()
    assert (received["method"], received["host"]) == ("CONNECT", HOST)
    assert "authorization" not in received["headers"]
    assert API_KEY not in str(received)


def test_certificate_is_validated_behind_a_proxy(
    serve: Serve, proxy: Proxy, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", f"http://{proxy.address}")
    served = serve(tls=authority.server("elsewhere.example.com"))
    outcome = task(served, HOST, ca_path=authority.bundle)
    assert re.search(f" is not trusted: ({OTHER_HOST})", outcome.result["msg"])
    assert served.requests == []


@pytest.mark.parametrize(
    "no_proxy", [HOST, "example.com", ".example.com", "other.example.com,control.example.com", "*"]
)
def test_no_proxy_is_honored(
    serve: Serve, proxy: Proxy, authority: Authority, monkeypatch: pytest.MonkeyPatch, no_proxy: str
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", f"http://{proxy.address}")
    monkeypatch.setenv("NO_PROXY", no_proxy)
    served = serve(page("projects", []), tls=authority.server(HOST))
    assert not task(served, HOST, ca_path=authority.bundle).failed
    assert_received_the_key(served)
    assert proxy.received() == []


def test_no_proxy_of_another_host_is_ignored(
    serve: Serve, proxy: Proxy, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", f"http://{proxy.address}")
    monkeypatch.setenv("NO_PROXY", "other.example.com,example.org")
    served = serve(page("projects", []), tls=authority.server(HOST))
    assert not task(served, HOST, ca_path=authority.bundle).failed
    assert len(proxy.received()) == 1


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
@pytest.mark.parametrize("tls", [False, True])
def test_loopback_bypasses_proxies(
    serve: Serve, proxy: Proxy, authority: Authority, monkeypatch: pytest.MonkeyPatch, host: str, tls: bool
) -> None:
    for variable in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(variable, f"http://{proxy.address}")
    served = serve(page("projects", []), tls=authority.server(host) if tls else False)
    assert not task(served, host, ca_path=authority.bundle).failed
    assert_received_the_key(served)
    assert proxy.received() == []


def test_http_through_a_proxy_needs_allow_http(serve: Serve, proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://{proxy.address}")
    served = serve(page("projects", []))
    assert task(served, HOST).failure == {"kind": "invalid_option", "option": "base_url"}
    assert proxy.received() == served.requests == []
    assert not task(served, HOST, allow_http=True).failed
    assert API_KEY in proxy.received()[0]["headers"]["authorization"]


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
    monkeypatch.setenv("HTTPS_PROXY", f"http://{credentials}{proxy.address}")
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
    monkeypatch.setenv("HTTPS_PROXY", f"http://{proxy.address}")
    with pytest.raises(ServiceUnreachable, match="407") as error:
        client.post("api_keys", body={"key_name": "deploy"})
    assert (error.value.attempts, error.value.may_have_acted) == (3, False)
    assert len(proxy.received()) == 3


@pytest.mark.parametrize(
    "proxy_url",
    [
        f"http://{CREDENTIALS}@127.0.0.1:1",
        f"http://{CREDENTIALS}@127.0.0.1:port",
        f"http://{CREDENTIALS}@127.0.0.1:99999",
        f"http://{CREDENTIALS}@[half",
        "http://somebody:proxy-pass/word@127.0.0.1:1",
        "http://somebody:[proxy-pass]@127.0.0.1:1",
        "http://somebody:proxy-pass[word@127.0.0.1:1",
        "http://somebody:proxy-pass€@127.0.0.1:1",
        "http://somebody:proxy-pass@",
    ],
)
@pytest.mark.parametrize("module, options", [(project_info, {}), (api_key, {"name": "deploy"})])
def test_proxy_errors_do_not_quote_the_password(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, module: HasMain, options: dict[str, Any], proxy_url: str
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", proxy_url)
    outcome = task(serve(tls=True), HOST, module, **options)
    assert outcome.failure["kind"] == "unreachable"
    assert "Unicode" not in outcome.printed and "unexpected" not in outcome.printed
    assert "proxy-pass" not in outcome.printed
