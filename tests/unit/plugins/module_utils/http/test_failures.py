# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The complete message of each failed attempt and error status, and whether the same request may succeed later."""

from __future__ import annotations

import json
import ssl
import sys
from http.client import BadStatusLine, HTTPException, IncompleteRead

import pytest
from requests import exceptions as requests_exceptions
from urllib3 import exceptions as urllib3_exceptions

from ansible_collections.clouddb.control.plugins.module_utils._errors import ServiceUnreachable
from ansible_collections.clouddb.control.plugins.module_utils._http.attempt import AttemptError
from ansible_collections.clouddb.control.plugins.module_utils._http.body import BodyError
from ansible_collections.clouddb.control.plugins.module_utils._http.connection import Connection
from ansible_collections.clouddb.control.plugins.module_utils._http.failures import error_of, status_error
from ansible_collections.clouddb.control.plugins.module_utils._http.session import RawResponse, Request
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import FakeClock

URL = "https://control.example.com/api/v2"
CONNECTION = Connection(URL, "the-secret-key")
POST = Request("POST", "/api_keys", None, {}, "request-1")
GET = POST._replace(method="GET")
WITHIN = f"was not sent: no connection to {URL} was made within"


class CertificateError(ValueError):
    """As the one of urllib3 before version 2."""


def unreachable(
    cause: BaseException | None,
    was_sent: bool = False,
    request: Request = POST,
    attempts: int = 1,
    seconds: float = 30.0,
    acted_before: bool = False,
) -> ServiceUnreachable:
    error = error_of(AttemptError(cause, was_sent), CONNECTION, request, attempts, seconds, acted_before)
    assert isinstance(error, ServiceUnreachable)
    assert error.details == {
        "method": request.method,
        "path": "/api_keys",
        "attempts": attempts,
        "request_id": "request-1",
    }
    return error


def tls_error(error: ssl.SSLError) -> requests_exceptions.SSLError:
    return requests_exceptions.SSLError(
        urllib3_exceptions.MaxRetryError(None, "/api_keys", urllib3_exceptions.SSLError(error))  # type: ignore[arg-type]
    )


def certificate_error(code: int, text: str) -> requests_exceptions.SSLError:
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


REISSUE = " No CA bundle changes that. The certificate, or that of its authority, must be reissued."
BUNDLE = " Set ca_path or REQUESTS_CA_BUNDLE to the CA bundle of the authority that signed it."


@pytest.mark.parametrize(
    "cause, was_sent, message, transient",
    [
        (
            None,
            False,
            f"POST /api_keys {WITHIN} api_timeout (30 s). Increase api_timeout, or check base_url and the network.",
            True,
        ),
        (
            None,
            True,
            f"POST /api_keys got no complete response from {URL} within api_timeout (30 s). Increase api_timeout, or check base_url and the network.",
            True,
        ),
        (
            ConnectionResetError(104, "Connection reset by peer"),
            True,
            f"The certificate of {URL} is not trusted: Connection reset by peer.{BUNDLE}",
            False,
        ),
        (
            requests_exceptions.ConnectionError(
                urllib3_exceptions.ProtocolError("aborted", ConnectionResetError(104, "reset"))
            ),
            True,
            f"POST /api_keys got no complete response from {URL}: the connection broke (reset).",
            True,
        ),
        (
            requests_exceptions.ConnectionError(
                urllib3_exceptions.ProtocolError("aborted", ConnectionResetError(104, "reset"))
            ),
            False,
            f"POST /api_keys was not sent: no connection to {URL} could be made (reset). Check base_url and the network.",
            True,
        ),
        (
            BodyError("3 bytes of the body are missing"),
            True,
            f"POST /api_keys got no complete response from {URL}: the connection broke (3 bytes of the body are missing).",
            True,
        ),
        (
            requests_exceptions.InvalidURL("Invalid proxy http://user:password@"),
            False,
            "POST /api_keys was not sent: an address is not valid. "
            "Check base_url, and HTTPS_PROXY, HTTP_PROXY and ALL_PROXY in the environment.",
            False,
        ),
        (
            requests_exceptions.InvalidSchema("no connection adapters"),
            False,
            "POST /api_keys was not sent: an address is not valid. "
            "Check base_url, and HTTPS_PROXY, HTTP_PROXY and ALL_PROXY in the environment.",
            False,
        ),
        (
            RuntimeError("can't start new thread"),
            False,
            "POST /api_keys failed with an unexpected RuntimeError: can't start new thread",
            False,
        ),
        (
            RuntimeError("the-secret-key is odd"),
            False,
            "POST /api_keys failed with an unexpected RuntimeError: ******** is odd",
            False,
        ),
        *(
            (
                error,
                False,
                "POST /api_keys was not sent: an address is not valid. "
                "Check base_url, and HTTPS_PROXY, HTTP_PROXY and ALL_PROXY in the environment.",
                False,
            )
            for error in (
                ValueError("'password' does not appear to be an IPv6 address"),
                TypeError("password"),
                UnicodeEncodeError("latin-1", "password€", 8, 9, "ordinal not in range(256)"),
            )
        ),
        (
            KeyError("password"),
            False,
            "POST /api_keys failed with an unexpected KeyError.",
            False,
        ),
        (
            requests_exceptions.ProxyError(
                urllib3_exceptions.ProxyError("Unable to connect to proxy", urllib3_exceptions.ConnectTimeoutError())
            ),
            False,
            f"POST /api_keys {WITHIN} api_timeout (30 s). Increase api_timeout, or check base_url and the network.",
            True,
        ),
        (
            requests_exceptions.ConnectionError(),
            False,
            f"POST /api_keys was not sent: no connection to {URL} could be made (ConnectionError). Check base_url and the network.",
            True,
        ),
        (
            requests_exceptions.ConnectionError(urllib3_exceptions.LocationParseError("x")),
            False,
            f"POST /api_keys was not sent: no connection to {URL} could be made (Failed to parse: x). Check base_url and the network.",
            False,
        ),
        (
            urllib3_exceptions.LocationParseError("x"),
            False,
            f"POST /api_keys was not sent: no connection to {URL} could be made (Failed to parse: x). Check base_url and the network.",
            False,
        ),
        (
            certificate_error(20, "unable to get local issuer certificate"),
            False,
            f"The certificate of {URL} is not trusted: unable to get local issuer certificate.{BUNDLE}",
            False,
        ),
        *(
            (certificate_error(code, "no"), False, f"The certificate of {URL} is not trusted: no.", False)
            for code in (9, 10, 62, 64)
        ),
        *(
            (certificate_error(code, "no"), False, f"The certificate of {URL} is not trusted: no.{REISSUE}", False)
            for code in (66, 68, 85, 94)
        ),
        *(
            (
                tls_error(error),
                False,
                f"POST /api_keys was not sent: {URL} does not speak TLS. Check the port and the scheme of base_url.",
                False,
            )
            for error in (tls_with_http(), ssl.SSLError(1, "[SSL] record layer failure (_ssl.c:1033)"))
        ),
        (
            requests_exceptions.ProxyError(tls_error(tls_with_http())),
            False,
            "POST /api_keys was not sent: the proxy does not speak TLS. "
            "Begin its address in HTTPS_PROXY, HTTP_PROXY and ALL_PROXY with http.",
            False,
        ),
        (
            requests_exceptions.InvalidSchema("Missing dependencies for SOCKS support."),
            False,
            "POST /api_keys was not sent: the library PySocks, which SOCKS proxies require, is missing. "
            f"Install PySocks for {sys.executable}, or unset HTTPS_PROXY, HTTP_PROXY and ALL_PROXY in the environment.",
            False,
        ),
        (certificate_error(63, "no"), False, f"The certificate of {URL} is not trusted: no.{BUNDLE}", False),
        (
            requests_exceptions.SSLError(urllib3_exceptions.SSLError(CertificateError("hostname mismatch"))),
            False,
            f"The certificate of {URL} is not trusted: hostname mismatch.",
            False,
        ),
        (
            requests_exceptions.SSLError(urllib3_exceptions.SSLError(ssl.SSLError(1, "wrong version number"))),
            True,
            f"POST /api_keys got no complete response from {URL}: the connection broke (wrong version number).",
            True,
        ),
        (
            requests_exceptions.ProxyError(
                urllib3_exceptions.ProxyError("Unable to connect to proxy", OSError(0, "Tunnel connection failed: 407"))
            ),
            False,
            f"POST /api_keys was not sent: no connection to {URL} could be made (Tunnel connection failed: 407). Check base_url and the network.",
            True,
        ),
    ],
)
def test_messages_of_failed_attempts(
    cause: BaseException | None, was_sent: bool, message: str, transient: bool
) -> None:
    error = unreachable(cause, was_sent)
    assert str(error) == message
    assert (error.transient, error.may_have_acted) == (transient, was_sent)


SECRET_RESPONSE = '{"id": 7, "key": "the-new-secret"}'


@pytest.mark.parametrize(
    "cause, reason",
    [
        (BadStatusLine(SECRET_RESPONSE), "the response does not begin with an HTTP status"),
        (IncompleteRead(SECRET_RESPONSE.encode()), "the body is incomplete"),
        (urllib3_exceptions.InvalidHeader(SECRET_RESPONSE), "InvalidHeader"),
        (HTTPException(SECRET_RESPONSE), "HTTPException"),
        (OSError(f"Tunnel connection failed: 502 {SECRET_RESPONSE}"), "Tunnel connection failed: 502"),
    ],
)
def test_responses_are_not_quoted(cause: Exception, reason: str) -> None:
    wrapped = requests_exceptions.ConnectionError(urllib3_exceptions.ProtocolError("Connection aborted.", cause))
    assert str(unreachable(wrapped, was_sent=True)) == (
        f"POST /api_keys got no complete response from {URL}: the connection broke ({reason})."
    )


def test_unexpected_errors_after_the_request_are_not_quoted() -> None:
    error = unreachable(RuntimeError(SECRET_RESPONSE), was_sent=True)
    assert str(error) == "POST /api_keys failed with an unexpected RuntimeError."


def test_errors_without_a_text_are_named() -> None:
    error = requests_exceptions.ConnectionError(urllib3_exceptions.ProtocolError("aborted", ConnectionResetError()))
    assert str(unreachable(error)).endswith(" could be made (ConnectionResetError). Check base_url and the network.")


@pytest.mark.parametrize("cause, context", [("cause", None), (None, "context")])
def test_errors_behind_an_error_are_named(cause: str | None, context: str | None) -> None:
    error = urllib3_exceptions.ProtocolError("aborted")
    error.__cause__ = OSError(5, cause) if cause else None
    error.__context__ = OSError(5, context) if context else None
    assert f"could be made ({cause or context})." in str(unreachable(requests_exceptions.ConnectionError(error)))


def test_the_remaining_time_of_a_deadline_is_named() -> None:
    assert str(unreachable(None, seconds=0.12345)) == f"POST /api_keys {WITHIN} the remaining 0.123 s."


def test_the_number_of_attempts_is_named() -> None:
    assert str(unreachable(None, attempts=2, seconds=1.0)) == (
        f"POST /api_keys {WITHIN} the remaining 1 s. 2 attempts were made."
    )


@pytest.mark.parametrize(
    "request_, was_sent, note",
    [
        (POST, False, " An earlier attempt may have been carried out."),
        (POST, True, ""),
        (GET, False, ""),
    ],
)
def test_an_earlier_attempt_is_mentioned(request_: Request, was_sent: bool, note: str) -> None:
    error = unreachable(None, was_sent, request_, attempts=2, seconds=1.0, acted_before=True)
    assert str(error).endswith(f" within the remaining 1 s. 2 attempts were made.{note}")
    assert error.may_have_acted


def raw(
    status: int, content: bytes = b"", acted_before: bool = False, attempts: int = 1, **headers: str
) -> RawResponse:
    return RawResponse(status, headers, content, attempts, acted_before)


@pytest.mark.parametrize("status", [200, 299])
def test_a_success_that_is_not_accepted(status: int) -> None:
    phrase = {200: " OK", 299: ""}[status]
    error = status_error(raw(status), CONNECTION, POST, FakeClock().clock)
    assert str(error) == f"POST /api_keys returned {status}{phrase}. The task does not accept this status."


def test_a_redirect() -> None:
    error = status_error(raw(307), CONNECTION, GET, FakeClock().clock)
    assert "Redirects are not followed" in str(error)


def test_an_error_status_after_an_attempt_that_may_have_acted() -> None:
    error = status_error(raw(404, acted_before=True, attempts=2), CONNECTION, POST, FakeClock().clock)
    assert str(error) == (
        "POST /api_keys returned 404 Not Found after 2 attempts. An earlier attempt may have been carried out. "
        f"The service has no such path. Check base_url, which is {URL}."
    )
    assert error.may_have_acted


# Of public services: the body, the reason that the message gives, and the code.
REASONS: dict[str, tuple[object, str, str | None]] = {
    "Neon": ({"request_id": "r-9", "code": "", "message": "branch not found"}, "branch not found.", None),
    "Supabase": ({"code": 400, "error_code": "bad_email", "msg": "Invalid email"}, "Invalid email.", "400"),
    "DigitalOcean": ({"id": "unauthorized", "message": "No access."}, "No access.", None),
    "Google": (
        {"error": {"code": 404, "message": "No project p.", "errors": [{"message": "No project p.", "reason": "x"}]}},
        "No project p.",
        "404",
    ),
    "Stripe": ({"error": {"type": "card", "code": "declined", "message": "Declined"}}, "Declined.", "declined"),
    "AWS": ({"Message": "User is not authorized"}, "User is not authorized.", None),
    "OAuth": ({"error": "invalid_token", "error_description": "It expired"}, "It expired.", None),
    "Spring": ({"status": 409, "error": "Conflict", "path": "/x"}, "", None),
    "NestJS": ({"message": ["too long", "too short"], "error": "Conflict"}, "too long; too short.", None),
    "FastAPI": ({"detail": "The key is busy"}, "The key is busy.", None),
    "FastAPI, validation": (
        {"detail": [{"loc": ["body", "roles", 0], "msg": "Field required"}, {"loc": [], "msg": "Odd"}]},
        "body.roles.0: Field required; Odd.",
        None,
    ),
    "RFC 9457": ({"title": "No credit.", "detail": "You have 30.", "status": 409}, "No credit. You have 30.", None),
    "RFC 9457, about:blank": ({"title": "Conflict", "detail": "You have 30."}, "You have 30.", None),
    "JSON:API": (
        {"errors": [{"title": "Invalid", "detail": "Name too long", "code": "E1"}, {"detail": "Odd"}, "Old"]},
        "Invalid. Name too long; Odd; Old.",
        None,
    ),
    "GitHub": (
        {"message": "Validation failed", "errors": [{"field": "title", "message": "missing"}]},
        "Validation failed. title: missing.",
        None,
    ),
    "ASP.NET": (
        {"title": "Invalid.", "errors": {"Name": ["is required", "is odd"], "Id": []}},
        "Invalid. Name: is required; is odd.",
        None,
    ),
    "Salesforce": ([{"message": "Session expired", "errorCode": "X"}], "Session expired.", None),
    "Envoy": (b"upstream connect error\r\n  reset reason: x\n", "upstream connect error reset reason: x.", None),
    "a JSON text": ("Try later", "Try later.", None),
    "texts in other fields": ({"status": "no", "quota": {"of": "keys"}}, "status: no; quota: of: keys.", None),
    "no texts": ({"ok": False, "message": None}, '{"ok": false, "message": null}.', None),
    "nothing": ({}, "", None),
    "no JSON": (b'{"message": "no', '{"message": "no.', None),
    "JSON that is not supported": (b'{"message": "\\ud800"}', '{"message": "\\ud800"}.', None),
    "a number": (b"9" * 30, "9" * 30 + ".", None),
}


@pytest.mark.parametrize("body, reason, code", REASONS.values())
def test_the_reason_of_the_service(body: object, reason: str, code: str | None) -> None:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    error = status_error(raw(409, content), CONNECTION, POST, FakeClock().clock)
    assert str(error) == f"POST /api_keys returned 409 Conflict{f': {reason}' if reason else '.'}"
    assert error.details.get("code") == code


def test_the_request_id_within_an_error() -> None:
    error = status_error(raw(409, b'{"error": {"request_id": 7}}'), CONNECTION, POST, FakeClock().clock)
    assert error.details["request_id"] == "7"


@pytest.mark.parametrize("content", [b"", b" \n", b"\n<!DOCTYPE html><title>Sign in</title>"])
@pytest.mark.parametrize("status, is_blamed", [(304, True), (400, True), (403, True), (429, False), (503, False)])
def test_base_url_is_blamed_for_html_and_empty_bodies(content: bytes, status: int, is_blamed: bool) -> None:
    error = status_error(raw(status, content), CONNECTION, POST, FakeClock().clock)
    assert ("Check base_url" in str(error), "message" in error.details) == (is_blamed, False)


@pytest.mark.parametrize("status", [200, 303])
def test_bodies_of_other_statuses_are_not_quoted(status: int) -> None:
    error = status_error(raw(status, SECRET_RESPONSE.encode()), CONNECTION, POST, FakeClock().clock)
    assert "the-new-secret" not in str(error.as_result())


@pytest.mark.parametrize("content", [b'{"message": "%s"}', b"%s", b'{"x": ["%s"]}'])
def test_long_reasons_are_cut_after_they_are_redacted(content: bytes) -> None:
    long = content % (b"x" * 490 + CONNECTION.api_key.encode() * 100)
    error = status_error(raw(409, long), CONNECTION, POST, FakeClock().clock)
    assert len(error.details["message"]) == 500
    assert CONNECTION.api_key[:4] not in str(error.as_result())


def test_retry_after_without_a_date_is_by_the_local_clock() -> None:
    headers = {"Retry-After": "Sat, 21 Nov 2026 08:00:42 GMT"}
    assert status_error(raw(409, **headers), CONNECTION, POST, FakeClock().clock).retry_after == 42
    assert status_error(raw(409, **{"Retry-After": "7"}), CONNECTION, POST, FakeClock().clock).retry_after == 7
