# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whom the key is sent to: tasks against services with certificates of all kinds, in environments of all kinds."""

from __future__ import annotations

import socket
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

import pytest

from ansible_collections.clouddb.control.plugins.modules import (
    api_key,
    api_key_info,
    operation_info,
    operation_wait,
    project_info,
)
from ansible_collections.clouddb.control.tests.unit.plugins.security.certificates import DAY, Authority
from ansible_collections.clouddb.control.tests.unit.support.module_main import Ended, HasMain, run_main
from ansible_collections.clouddb.control.tests.unit.support.scripted_client import API_KEY, Scripted, Serve, page
from ansible_collections.clouddb.control.tests.unit.support.scripted_service import reply

ADVICE = "Set ca_path or REQUESTS_CA_BUNDLE"
YEAR = timedelta(days=365)
# The environment that a task may find, and what its options say; ours and theirs are the bundles of the two authorities.
TRUSTING: list[tuple[dict[str, str], dict[str, Any]]] = [
    ({}, {"ca_path": "ours"}),
    ({"REQUESTS_CA_BUNDLE": "ours"}, {}),
    ({"CURL_CA_BUNDLE": "ours"}, {}),
    ({"REQUESTS_CA_BUNDLE": "theirs"}, {"ca_path": "ours"}),
    ({"REQUESTS_CA_BUNDLE": "theirs"}, {"validate_certs": False}),
    ({"CURL_CA_BUNDLE": "theirs"}, {"validate_certs": False}),
    ({}, {"validate_certs": False}),
    ({}, {"validate_certs": False, "ca_path": "theirs"}),
]
REFUSING: list[tuple[dict[str, str], dict[str, Any]]] = [
    ({}, {}),
    ({}, {"ca_path": "theirs"}),
    ({"REQUESTS_CA_BUNDLE": "theirs"}, {}),
    ({"CURL_CA_BUNDLE": "theirs"}, {}),
    ({"REQUESTS_CA_BUNDLE": "ours"}, {"ca_path": "theirs"}),
    ({"SSL_CERT_FILE": "ours"}, {"ca_path": "theirs"}),
    ({"PYTHONHTTPSVERIFY": "0"}, {}),
]


def task(served: Scripted, module: HasMain = project_info, **options: Any) -> Ended:
    return run_main(module, {"base_url": served.service.base_url, "api_key": API_KEY, **options})


def described(case: tuple[dict[str, str], dict[str, Any]]) -> str:
    return " ".join(f"{name}={value}" for part in case for name, value in part.items()) or "nothing set"


def bundles(
    monkeypatch: pytest.MonkeyPatch,
    authority: Authority,
    stranger: Authority,
    case: tuple[dict[str, str], dict[str, Any]],
) -> dict[str, Any]:
    """Set the environment of this case; its options."""
    paths = {"ours": authority.bundle, "theirs": stranger.bundle}
    environment, options = ({name: paths.get(value, value) for name, value in part.items()} for part in case)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return options


@pytest.mark.parametrize("case", TRUSTING, ids=described)
def test_trusted_certificates_are_accepted(
    serve: Serve,
    monkeypatch: pytest.MonkeyPatch,
    authority: Authority,
    stranger: Authority,
    case: tuple[dict[str, str], dict[str, Any]],
) -> None:
    served = serve(page("projects", []), tls=authority.server())
    ended = task(served, **bundles(monkeypatch, authority, stranger, case))
    assert ended.success["projects"] == []
    assert "InsecureRequestWarning" not in ended.printed


@pytest.mark.parametrize("case", REFUSING, ids=described)
def test_untrusted_certificates_get_no_request(
    serve: Serve,
    monkeypatch: pytest.MonkeyPatch,
    authority: Authority,
    stranger: Authority,
    case: tuple[dict[str, str], dict[str, Any]],
) -> None:
    served = serve(tls=authority.server())
    ended = task(served, **bundles(monkeypatch, authority, stranger, case))
    assert (ended.failure["kind"], ended.failure["attempts"]) == ("unreachable", 1)
    assert " is not trusted: " in ended.result["msg"] and ADVICE in ended.result["msg"]
    assert served.requests == []


@pytest.mark.parametrize(
    ("name", "valid", "says"),
    [
        ("127.0.0.2", (-DAY, DAY), "IP address mismatch"),
        ("control.example.com", (-DAY, DAY), "IP address mismatch"),
        ("127.0.0.1", (-YEAR, -DAY), "certificate has expired"),
        ("127.0.0.1", (DAY, YEAR), "certificate is not yet valid"),
    ],
    ids=["another address", "a name", "expired", "not yet valid"],
)
@pytest.mark.parametrize(
    "module, options", [(project_info, {}), (api_key, {"name": "deploy"})], ids=["reading", "creating"]
)
def test_invalid_certificates_of_a_trusted_authority_are_refused(
    serve: Serve,
    authority: Authority,
    module: HasMain,
    options: dict[str, Any],
    name: str,
    valid: tuple[timedelta, timedelta],
    says: str,
) -> None:
    served = serve(tls=authority.server(name, valid))
    ended = task(served, module, ca_path=authority.bundle, **options)
    assert (ended.failure["kind"], ended.failure["attempts"]) == ("unreachable", 1)
    assert f" is not trusted: {says}" in ended.result["msg"]
    # Another bundle would not help.
    assert ADVICE not in ended.result["msg"]
    assert served.requests == []


def test_a_wait_ends_at_an_untrusted_certificate(serve: Serve, authority: Authority) -> None:
    served = serve(tls=authority.server())
    ended = task(served, operation_wait, project_id="shop", timeout=60)
    assert (ended.failure["kind"], ended.result["polls"]) == ("unreachable", 1)


@pytest.mark.parametrize(
    "module, options",
    [
        (api_key, {"name": "x"}),
        (api_key_info, {}),
        (project_info, {}),
        (operation_info, {}),
        (operation_wait, {"project_id": "shop"}),
    ],
    ids=["api_key", "api_key_info", "project_info", "operation_info", "operation_wait"],
)
def test_http_is_refused_before_the_name_lookup(
    monkeypatch: pytest.MonkeyPatch, module: HasMain, options: dict[str, Any]
) -> None:
    def nowhere(*args: Any, **kwargs: Any) -> NoReturn:
        raise AssertionError(f"looked for {args[0]}")

    monkeypatch.setattr(socket, "getaddrinfo", nowhere)
    for host in (
        "control.example.com",
        "192.0.2.7",
        "localhost.example.com",
        "127.0.0.1.example.com",
        "[2001:db8::1]",
        "0.0.0.0",
    ):
        ended = run_main(module, {"base_url": f"http://{host}/api/v2", "api_key": API_KEY, **options})
        assert ended.failure == {"kind": "invalid_option", "option": "base_url"}
        assert "plain http would show the key" in ended.result["msg"]


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
