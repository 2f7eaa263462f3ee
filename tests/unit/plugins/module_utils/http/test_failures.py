# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The complete message of each failed attempt and error status, and whether the same request may succeed later."""

from __future__ import annotations

import json
import ssl
import sys
import zlib
from http.client import BadStatusLine, IncompleteRead
from typing import Any

import pytest
from requests import exceptions as requests
from urllib3 import exceptions as urllib3

from ansible_collections.clouddb.control.plugins.module_utils._http.attempt import AttemptError
from ansible_collections.clouddb.control.plugins.module_utils._http.connection import Connection
from ansible_collections.clouddb.control.plugins.module_utils._http.errors import StatusError, Unreachable
from ansible_collections.clouddb.control.plugins.module_utils._http.failures import status_error, unreachable_error
from ansible_collections.clouddb.control.plugins.module_utils._http.message import RawResponse, Request
from ansible_collections.clouddb.control.plugins.module_utils._secrets import Masker
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import FakeClock

URL = "https://control.example.com/api/v2"
CONNECTION = Connection(URL, "the-secret-key")
MASKER = Masker(CONNECTION.api_key)
POST = Request("POST", "/api_keys", "request-1", body={})
GET = POST._replace(method="GET")


class CertificateError(ValueError):
    """As the one of urllib3 before version 2."""


def unreachable(
    cause: BaseException | None, was_sent: bool = False, request: Request = POST, **earlier: Any
) -> Unreachable:
    options = {"attempts": 1, "seconds": 30.0, "acted_before": False, **earlier}
    error = unreachable_error(AttemptError(cause, was_sent), CONNECTION, MASKER, request, *options.values())
    assert isinstance(error, Unreachable)
    sent = {"method": request.method, "path": "/api_keys", "request_id": "request-1"}
    assert error.details == {**sent, "attempts": options["attempts"]}
    return error


def tls_error(error: ssl.SSLError) -> requests.SSLError:
    return requests.SSLError(urllib3.MaxRetryError(None, "/api_keys", urllib3.SSLError(error)))  # type: ignore[arg-type]


def certificate_error(code: int, text: str) -> requests.SSLError:
    error = ssl.SSLCertVerificationError(1, f"certificate verify failed: {text}")
    error.verify_code, error.verify_message = code, text
    return tls_error(error)


def tls_with_http() -> ssl.SSLError:
    """The error of a TLS connection to a server that speaks HTTP."""
    received = ssl.MemoryBIO()
    received.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    connection = ssl.create_default_context().wrap_bio(received, ssl.MemoryBIO(), server_hostname="x")
    with pytest.raises(ssl.SSLError) as error:
        connection.do_handshake()
    return error.value


def wrapped(error: BaseException, by: type[Exception] = requests.ConnectionError) -> Exception:
    return by(urllib3.ProtocolError("Connection aborted.", error))


def time_of_the_system_is_up() -> requests.ConnectTimeout:
    """The error of an address that drops packets, before C(api_timeout) is over."""
    error = urllib3.ConnectTimeoutError()
    error.__cause__ = TimeoutError(110, "Connection timed out")
    return requests.ConnectTimeout(error)


NO_BUNDLE = "Could not find a suitable TLS CA certificate bundle, invalid path: x"
SENT = f"POST /api_keys got no complete response from {URL}"
NOT_SENT = "POST /api_keys was not sent: "
UNTRUSTED = f"The certificate of {URL} is not trusted: "
BUNDLE = " Set ca_path or REQUESTS_CA_BUNDLE to the CA bundle of the authority that signed it."
NOT_YET_OR_EXPIRED = (
    " No CA bundle changes that. Check base_url and the clock of this machine, or replace the certificate."
)
REPLACE = " No CA bundle changes that. Check base_url, or replace the certificate."
CHECK_ADDRESS = "Check base_url, and HTTPS_PROXY, HTTP_PROXY and ALL_PROXY in the environment."
INCREASE = "within api_timeout (30 s). Increase api_timeout, or check base_url and the network."
SECRET_RESPONSE = '{"id": 7, "key": "the-new-secret"}'


@pytest.mark.parametrize(
    "cause, message, transient",
    [
        (None, f"{NOT_SENT}no connection to {URL} was made {INCREASE}", True),
        (
            requests.ProxyError(urllib3.ProxyError("Unable to connect to proxy", urllib3.ConnectTimeoutError())),
            f"{NOT_SENT}no connection to {URL} through the proxy was made within api_timeout (30 s). "
            f"Increase api_timeout, or c{CHECK_ADDRESS[1:]}",
            True,
        ),
        *(
            (cause, f"{NOT_SENT}no connection to {URL} could be made ({reason}). Check base_url and the network.", True)
            for cause, reason in (
                (wrapped(ConnectionRefusedError(111, "Connection refused")), "Connection refused"),
                (time_of_the_system_is_up(), "Connection timed out"),
                (requests.ConnectionError(), "ConnectionError"),
            )
        ),
        (
            requests.ProxyError(urllib3.ProxyError("no proxy", OSError(0, "Tunnel connection failed: 407"))),
            f"{NOT_SENT}no connection to {URL} through the proxy could be made (Tunnel connection failed: 407). {CHECK_ADDRESS}",
            True,
        ),
        *(
            (error, f"{NOT_SENT}an address is not valid. {CHECK_ADDRESS}", False)
            for error in (
                requests.InvalidURL("Invalid proxy http://user:password@"),
                requests.ConnectionError(urllib3.LocationParseError("x")),
                ValueError("'password' does not appear to be an IPv6 address"),
                TypeError("password"),
                UnicodeEncodeError("latin-1", "password€", 8, 9, "ordinal not in range(256)"),
            )
        ),
        (
            type("InvalidJSONError", (requests.RequestException,), {})(),  # requests 2.25 has none
            f"{NOT_SENT}its body has a number that JSON cannot represent, such as .nan or .inf.",
            False,
        ),
        (UnicodeEncodeError("utf-8", "\ud800", 0, 1, "x"), f"{NOT_SENT}a value in it is not valid Unicode.", False),
        (
            requests.InvalidSchema("Missing dependencies for SOCKS support."),
            f"{NOT_SENT}the library PySocks, which SOCKS proxies require, is missing. "
            f"Install PySocks for {sys.executable}, or unset HTTPS_PROXY, HTTP_PROXY and ALL_PROXY in the environment.",
            False,
        ),
        (KeyError("password"), "POST /api_keys failed with an unexpected KeyError.", False),
        (OSError(NO_BUNDLE), f"{UNTRUSTED}{NO_BUNDLE}.{BUNDLE}", False),
        (certificate_error(20, "no"), f"{UNTRUSTED}no.{BUNDLE}", False),
        *((certificate_error(code, "no"), f"{UNTRUSTED}no.{NOT_YET_OR_EXPIRED}", False) for code in (9, 10)),
        *((certificate_error(code, "no"), f"{UNTRUSTED}no.{REPLACE}", False) for code in (62, 64, 66, 68, 85, 94)),
        (requests.SSLError(urllib3.SSLError(CertificateError("mismatch"))), f"{UNTRUSTED}mismatch.{REPLACE}", False),
        *(
            (tls_error(error), f"{NOT_SENT}{URL} does not speak TLS. Check the port and the scheme of base_url.", False)
            for error in (tls_with_http(), ssl.SSLError(1, "[SSL] record layer failure (_ssl.c:1033)"))
        ),
        (
            requests.ProxyError(tls_error(tls_with_http())),
            f"{NOT_SENT}the proxy does not speak TLS. Begin its address in HTTPS_PROXY, HTTP_PROXY and ALL_PROXY with http.",
            False,
        ),
    ],
)
def test_requests_that_were_not_sent(cause: BaseException | None, message: str, transient: bool) -> None:
    error = unreachable(cause)
    assert str(error) == message
    assert (error.transient, error.may_have_acted) == (transient, False)


@pytest.mark.parametrize(
    "cause, message, transient",
    [
        (None, f"{SENT} {INCREASE}", True),
        (RuntimeError(SECRET_RESPONSE), "POST /api_keys failed with an unexpected RuntimeError.", False),
        *(
            (cause, f"{SENT}: the connection broke ({reason}).", True)
            for cause, reason in (
                (wrapped(ConnectionResetError(104, "reset")), "reset"),
                (wrapped(ConnectionResetError()), "ConnectionResetError"),
                (ConnectionError("3 bytes are missing"), "3 bytes are missing"),
                (tls_error(ssl.SSLError(1, "wrong version number")), "wrong version number"),
                # Responses are not quoted.
                (wrapped(BadStatusLine(SECRET_RESPONSE)), "the response does not begin with an HTTP status"),
                (wrapped(IncompleteRead(b"x")), "the body is incomplete"),
                (
                    requests.ChunkedEncodingError(urllib3.ProtocolError("Response ended early")),
                    "the body is incomplete",
                ),
                (
                    requests.ContentDecodingError(urllib3.DecodeError(zlib.error(SECRET_RESPONSE))),
                    "the body is not valid gzip",
                ),
                (wrapped(urllib3.InvalidHeader(SECRET_RESPONSE)), "InvalidHeader"),
                (wrapped(OSError(f"Tunnel connection failed: 502 {SECRET_RESPONSE}")), "Tunnel connection failed: 502"),
            )
        ),
    ],
)
def test_requests_without_a_response(cause: BaseException | None, message: str, transient: bool) -> None:
    error = unreachable(cause, was_sent=True)
    assert str(error) == message
    assert (error.transient, error.may_have_acted) == (transient, True)


@pytest.mark.parametrize(
    "request_, was_sent, note",
    [(POST, False, " An earlier attempt may have been carried out."), (POST, True, ""), (GET, False, "")],
)
def test_earlier_attempts_and_the_remaining_time_are_named(request_: Request, was_sent: bool, note: str) -> None:
    error = unreachable(None, was_sent, request_, attempts=2, seconds=0.12345, acted_before=True)
    assert str(error).endswith(f" within the remaining 0.123 s. 2 attempts were made.{note}")
    assert error.may_have_acted


def raw(status: int, content: bytes = b"", attempts: int = 1, acted: bool = False, **headers: str) -> RawResponse:
    return RawResponse(status, headers, content, attempts, acted)


CHECK_KEY = "Check api_key or CLOUDDB_API_KEY."
MOVED = (
    "Redirects are not followed, so that the key is sent to base_url only. Set base_url to the service's own address."
)
NOT_TODAY = b'{"message": "not today"}'
ORGANIZATION = b'{"message": "not allowed for organization API keys"}'
SCOPED = b'{"message": "not allowed to perform actions outside the project this key is scoped to"}'


def failure(response: RawResponse, request: Request = POST, base_url: str = URL) -> StatusError:
    return status_error(response, base_url, MASKER, request, FakeClock().clock)


def message_of(response: RawResponse, request: Request = GET, base_url: str = URL) -> str:
    return str(failure(response, request, base_url))


@pytest.mark.parametrize(
    "response, message",
    [
        (raw(401, NOT_TODAY), f"401 Unauthorized: not today. {CHECK_KEY}"),
        (raw(401), f"401 Unauthorized. The API key is invalid or was revoked. {CHECK_KEY}"),
        (raw(302), f"302 Found. {MOVED}"),
        (raw(400, NOT_TODAY), "400 Bad Request: not today."),
        (raw(400), "400 Bad Request. The response is not one of the control API. Check base_url."),
        (raw(503, attempts=3), "503 Service Unavailable after 3 attempts."),
        (raw(200), "200 OK. The task does not accept this status."),
        (raw(599, NOT_TODAY), "599: not today."),
    ],
)
def test_messages_of_statuses(response: RawResponse, message: str) -> None:
    assert message_of(response) == f"GET /api_keys returned {message}"


@pytest.mark.parametrize(
    "base, path, content, advice",
    [
        ("", "/projects/p/operations", b"", "Check base_url, which should end with /api/v2, but is {base}."),
        ("/api/v2", "/projects", NOT_TODAY, "set the id of the project. If it is not, check base_url, which is {base}."),
        ("/api/v2", "/api_keys", NOT_TODAY, "The service has no such path. Check the path and base_url, which is {base}."),
        ("/api/v2", "/projects/calm-hill-23456789", NOT_TODAY, "Check the ids and names in the request, base_url, and whether the API key may access them."),
        ("/api/v2", "/projects/shop/operations", NOT_TODAY, "If 'shop' is the name of a project, set its id, or set the option project."),
        ("/api/v2", "/projects/shop", b"", "If 'shop' is the name of a project, set its id, or set the option project."),
        ("/api/v2", "/projects/calm-hill-23456789", b"", "There is no such resource, or the API key may not access it. Check the path, its ids and base_url."),
        *(
            ("/api/v2", path, ORGANIZATION, "The API key belongs to an organization. Set org_id, or use the key of a user for this path.")
            for path in ("/api_keys", "/users/me", "/regions")
        ),
        *(
            ("/api/v2", path, SCOPED, "The API key is limited to that project: set the id of the project, or use another key.")
            for path in ("/api_keys", "/projects", "/projects/calm-hill-87654321/operations")
        ),
    ],
)  # fmt: skip
def test_404_says_what_to_check(base: str, path: str, content: bytes, advice: str) -> None:
    base_url = f"https://control.example.com{base}"
    message = message_of(raw(404, content), GET._replace(path=path), base_url)
    assert message.endswith(f" {advice.format(base=base_url)}")


def test_an_error_status_after_an_attempt_that_may_have_acted() -> None:
    error = failure(raw(404, attempts=2, acted=True))
    assert " after 2 attempts. An earlier attempt may have been carried out. " in str(error)
    assert error.may_have_acted


# {"projects": []}
ZSTD = bytes.fromhex("28b52ffd0410810000") + b'{"projects": []}' + bytes.fromhex("a1b2c3d4")

# Of public services: the body, and the reason that the message gives.
REASONS: dict[str, tuple[object, str]] = {
    "Neon": ({"request_id": "r-9", "code": "", "message": "branch not found"}, "branch not found."),
    "Google": (
        {"error": {"code": 404, "message": "No project p.", "errors": [{"message": "No project p.", "reason": "x"}]}},
        "No project p.",
    ),
    "Stripe": ({"error": {"type": "card", "code": "declined", "message": "Declined"}}, "Declined."),
    "AWS": ({"Message": "User is not authorized"}, "User is not authorized."),
    "OAuth": ({"error": "invalid_token", "error_description": "It expired"}, "It expired."),
    "Spring": ({"status": 409, "error": "Conflict", "path": "/x"}, ""),
    "NestJS": ({"message": ["too long", "too short"], "error": "Conflict"}, "too long; too short."),
    "FastAPI": ({"detail": "The key is busy"}, "The key is busy."),
    "FastAPI, validation": (
        {"detail": [{"loc": ["body", "roles", 0], "msg": "Field required"}, {"loc": [], "msg": "Odd"}]},
        "body.roles.0: Field required; Odd.",
    ),
    "RFC 9457": ({"title": "No credit.", "detail": "You have 30.", "status": 409}, "No credit. You have 30."),
    "RFC 9457, about:blank": ({"title": "Conflict", "detail": "You have 30."}, "You have 30."),
    "JSON:API": (
        {"errors": [{"title": "Invalid", "detail": "Name too long", "code": "E1"}, {"detail": "Odd"}, "Old"]},
        "Invalid. Name too long; Odd; Old.",
    ),
    "GitHub": (
        {"message": "Validation failed", "errors": [{"field": "title", "message": "missing"}]},
        "Validation failed. title: missing.",
    ),
    "ASP.NET": (
        {"title": "Invalid.", "errors": {"Name": ["is required", "is odd"], "Id": []}},
        "Invalid. Name: is required; is odd.",
    ),
    "Salesforce": ([{"message": "Session expired", "errorCode": "X"}], "Session expired."),
    "Envoy": (b"upstream connect error\r\n  reset reason: x\n", "upstream connect error reset reason: x."),
    "a JSON text": ("Try later", "Try later."),
    "texts in other fields": ({"status": "no", "quota": {"of": "keys"}}, "status: no; quota: of: keys."),
    "nothing": ({}, ""),
    "no JSON": (b'{"message": "no', '{"message": "no.'),
    "JSON that is not supported": (b'{"message": "\\ud800"}', '{"message": "\\ud800"}.'),
}


@pytest.mark.parametrize("service, body, reason", [(service, *row) for service, row in REASONS.items()])
def test_the_reason_of_the_service(service: str, body: object, reason: str) -> None:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    error = failure(raw(409, content))
    assert str(error) == f"POST /api_keys returned 409 Conflict{f': {reason}' if reason else '.'}"
    assert error.details.get("code") == {"Google": "404", "Stripe": "declined"}.get(service)


@pytest.mark.parametrize("content", [b"", b" \n", b"\n<!DOCTYPE html><title>Sign in</title>"])
@pytest.mark.parametrize("status, is_blamed", [(304, True), (400, True), (403, True), (429, False), (503, False)])
def test_base_url_is_blamed_for_html_and_empty_bodies(content: bytes, status: int, is_blamed: bool) -> None:
    error = failure(raw(status, content))
    assert ("Check base_url" in str(error), "message" in error.details) == (is_blamed, False)


@pytest.mark.parametrize("status", [200, 303])
def test_bodies_of_other_statuses_are_not_quoted(status: int) -> None:
    assert "the-new-secret" not in str(failure(raw(status, SECRET_RESPONSE.encode())).as_result())


@pytest.mark.parametrize(
    "content, encoding, reason", [(ZSTD, "zstd", "."), (ZSTD, "gzip, zstd", "."), (b"no", "br", ": no.")]
)
def test_an_error_in_an_unknown_encoding_is_quoted_only_if_decoded(content: bytes, encoding: str, reason: str) -> None:
    response = raw(409, content)._replace(headers={"Content-Encoding": encoding})
    assert message_of(response) == f"GET /api_keys returned 409 Conflict{reason}"


def test_an_error_status_carries_retry_after() -> None:
    headers = {"Retry-After": "Sat, 21 Nov 2026 08:00:42 GMT"}
    assert failure(raw(429, **headers)).retry_after == 42
    assert failure(raw(429)).retry_after is None


@pytest.mark.parametrize(
    "statuses, may_have_acted, transient",
    [
        ((400, 401, 403, 404, 405, 407, 409, 417, 421, 422, 425, 426, 428, 431, 451), False, False),
        ((423, 429), False, True),
        ((101, 300, 302, 399, 406, 416, 418, 420, 424, 427, 430, 450, 452, 499, 600, 999), True, False),
        ((408, 500, 502, 503, 504, 599), True, True),
    ],
)
def test_status_sets_transient_and_may_have_acted(statuses: Any, may_have_acted: bool, transient: bool) -> None:
    for status in statuses:
        error = StatusError("failed", Request("GET", "/projects", "id-1"), 2, status)
        assert (error.may_have_acted, error.transient) == (may_have_acted, transient), status
