# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tasks send the key only to trusted services: certificates and CA bundles in options and environment."""

from __future__ import annotations

import re
import socket
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

import pytest

from ansible_collections.clouddb.control.plugins.modules import api_key_info, project_info
from ansible_collections.clouddb.control.tests.unit.plugins.security.certificates import DAY, OTHER_HOST, Authority
from ansible_collections.clouddb.control.tests.unit.support.each_module import of_every_module
from ansible_collections.clouddb.control.tests.unit.support.module_main import HasMain, Outcome, run_main
from ansible_collections.clouddb.control.tests.unit.support.scripted_client import API_KEY, Scripted, Serve, page
from ansible_collections.clouddb.control.tests.unit.support.scripted_service import reply

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
