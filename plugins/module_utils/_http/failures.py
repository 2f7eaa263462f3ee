# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a failed attempt or an error status means: the typed error and its message. Keeps P2, P5 and P11.

Loaded when a request has failed.
"""

from __future__ import annotations

import re
import ssl
import sys
from contextlib import suppress
from http import HTTPStatus
from http.client import BadStatusLine, HTTPException, IncompleteRead, LineTooLong
from typing import Any, NamedTuple

from .._clock import Clock
from .._errors import sentence
from .._secrets import Masker
from .._untrusted import PROJECT_ID, UnsupportedJson, decode, displayable
from .attempt import AttemptError
from .backoff import retry_after_seconds
from .connection import Connection
from .errors import NotFound, StatusError, Unauthorized, Unreachable
from .message import TRANSIENT_STATUSES, RawResponse, Request

with suppress(ImportError):  # which session.py reports
    from requests import RequestException
    from requests.exceptions import ChunkedEncodingError, InvalidSchema, InvalidURL, ProxyError
    from urllib3.exceptions import (
        ConnectTimeoutError,
        DecodeError,
        HTTPError,
        LocationParseError,
        NewConnectionError,
        ReadTimeoutError,
    )

# The end of every base_url (api.md, Versioning).
API_PATH = "/api/v2"
# What the service says where only the key of a user may go (404).
ORGANIZATION_KEY = "not allowed for organization api key"
# And where the key of a project may not go (404).
PROJECT_KEY = "outside the project this key is scoped to"
REDIRECTS = frozenset({300, 301, 302, 303, 307, 308})
# OpenSSL's codes for certificates that no CA bundle would make valid: not yet valid, expired, another host's, another address's, weak
# keys or digests, and what Python 3.13 and later check strictly.
INVALID_WITH_ANY_BUNDLE = frozenset({9, 10, 62, 64, *range(66, 69), *range(85, 95)})
# Those of them that a wrong clock can lead to.
INVALID_AT_THIS_TIME = frozenset({9, 10})
# What OpenSSL reports, the latter from 3.2 to 3.5, when the other side speaks another protocol.
NO_TLS = ("wrong version number", "record layer failure")
PROXY_VARIABLES = "HTTPS_PROXY, HTTP_PROXY and ALL_PROXY"
PROXY_ADVICE = f"base_url, and {PROXY_VARIABLES} in the environment."
# Of an error's body: the fields that say what is wrong, and those that say more about it. Of each, the first one with a text counts.
SUMMARY = ("message", "msg", "error_description", "title", "error")
DETAIL = ("detail", "errors")
# What frees room below a limit of the account's plan, by the C(code) of the answer. Where the service sends none, its words
# are those of the code.
AFTER_LIMITS = {
    "PROJECTS_LIMIT_EXCEEDED": "Delete a project that is no longer needed, with project and state: absent.",
    "BRANCHES_LIMIT_EXCEEDED": "Delete branches that are no longer needed, for example with branch, name_pattern, older_than and state: absent.",
    "ROOT_BRANCHES_LIMIT_EXCEEDED": "Branches with schema_only, and those that restores from a snapshot make and keep, such as main (old), are root"
    " branches. Delete those that are no longer needed, with branch and state: absent, or create branches without schema_only.",
    "BRANCHES_PROTECTED_LIMIT_EXCEEDED": "Set protected: false on another branch, with branch.",
    "ENDPOINTS_LIMIT_EXCEEDED": "Delete computes that are no longer needed, with compute and state: absent, or create branches with compute: false.",
    "ACTIVE_ENDPOINTS_LIMIT_EXCEEDED": "Suspend a compute that is not in use, with compute and state: suspended, or set a shorter suspend_timeout.",
    "DATABASES_LIMIT_EXCEEDED": "Delete a database that is no longer needed, with database and state: absent.",
    "ROLES_LIMIT_EXCEEDED": "Delete a user that is no longer needed, with database_user and state: absent.",
    "SNAPSHOTS_LIMIT_EXCEEDED": "Delete a snapshot that is no longer needed, with snapshot and state: absent, or set expires_at on each.",
}
# Those that urllib3 decodes; the session asks for gzip.
DECODED = frozenset({"", "identity", "gzip", "x-gzip", "deflate"})


# Attempts without a response


class _Failure(NamedTuple):
    """A failed attempt: the library's C(error), None if the time was up, and C(chain), this error and those wrapped in it."""

    error: BaseException | None
    chain: list[BaseException]
    was_sent: bool

    def has(self, *types: type[BaseException]) -> bool:
        """Whether one of the errors is of these types."""
        return any(isinstance(each, types) for each in self.chain)

    def is_timeout(self) -> bool:
        """Whether the time was up. Connections that are refused in urllib3 1, or that the system gives up, count among the timeouts."""
        return self.error is None or (
            self.has(ConnectTimeoutError, ReadTimeoutError)
            and not self.has(NewConnectionError)
            and not getattr(self.chain[-1], "errno", None)
        )

    def is_certificate_of_other_host(self) -> bool:
        """Whether the certificate is that of another host, by urllib3's own check."""
        return any(type(each).__name__ == "CertificateError" for each in self.chain)

    def is_untrusted_certificate(self) -> bool:
        """Whether the service's certificate was refused, or there is no CA bundle, which requests reports by a plain OSError."""
        return (
            self.is_certificate_of_other_host()
            or self.has(ssl.SSLCertVerificationError)
            or any(getattr(each, "library", None) == "X509" for each in self.chain)
            or (
                isinstance(self.error, OSError)
                and not isinstance(self.error, (RequestException, ConnectionError, ssl.SSLError))
            )
        )

    def verify_codes(self) -> set[Any]:
        """OpenSSL's codes for what is wrong with the certificate."""
        return {getattr(each, "verify_code", None) for each in self.chain}

    def is_invalid_certificate(self) -> bool:
        """Whether the certificate is not trusted, whatever the CA bundle."""
        return bool(self.verify_codes() & INVALID_WITH_ANY_BUNDLE) or self.is_certificate_of_other_host()

    def exceeds_limit_of_headers(self) -> bool:
        """Whether the headers are more, or longer, than Python reads."""
        return type(self.chain[-1]) in (HTTPException, LineTooLong)

    def speaks_no_tls(self) -> bool:
        """Whether the other side of a new TLS connection speaks another protocol, such as HTTP."""
        texts = [str(each) for each in self.chain if isinstance(each, ssl.SSLError)]
        return not self.was_sent and any(part in text for part in NO_TLS for text in texts)

    def is_invalid_address(self) -> bool:
        """Whether an address cannot be read: base_url is checked before, so it is that of a proxy."""
        return not self.was_sent and (
            self.has(InvalidSchema, InvalidURL, LocationParseError) or isinstance(self.error, (TypeError, ValueError))
        )

    def reason(self) -> str:
        """What the innermost error says, unless it may quote a response or the password of a proxy."""
        error = self.chain[-1]
        text = str(getattr(error, "verify_message", None) or getattr(error, "strerror", None) or error)
        if refusal := re.match(r"Tunnel connection failed: \d{3}\b", text):
            return refusal.group()
        if isinstance(error, BadStatusLine) and not isinstance(error, OSError):
            return "the response does not begin with an HTTP status"
        if self.has(IncompleteRead, ChunkedEncodingError):
            return "the body is incomplete"
        if self.has(DecodeError):
            return "the body is not valid gzip"
        if self.exceeds_limit_of_headers():
            return text.removeprefix("got ")
        is_shown = isinstance(error, OSError) or self.is_certificate_of_other_host()
        return text if is_shown and text else type(error).__name__


def _chain(error: BaseException | None) -> list[BaseException]:
    """The error and those that requests and urllib3 have wrapped in it, the outermost first."""
    chain: list[BaseException] = []
    while error is not None and error not in chain:
        chain.append(error)
        inner = [getattr(error, "reason", None), getattr(error, "original_error", None), *error.args]
        if isinstance(error, HTTPError):
            inner += [error.__cause__, error.__context__]
        error = next((each for each in inner if isinstance(each, BaseException)), None)
    return chain


def _classified(failure: _Failure) -> tuple[bool, str]:
    """Whether the same request may succeed later, and the message, which unreachable_error() formats. The first case counts."""
    # Another encoding is that of headers, which hold the password of a proxy.
    if isinstance(failure.error, UnicodeError) and getattr(failure.error, "encoding", "") == "utf-8":
        return False, "{name} was not sent: a value in it is not valid Unicode."
    if type(failure.error).__name__ == "InvalidJSONError":  # which old versions of requests lack
        return False, "{name} was not sent: its body has a number that JSON cannot represent, such as .nan or .inf."
    if failure.is_timeout():
        if failure.was_sent:
            return True, "{name} got no complete response from {base_url} within {limit}.{advice_on_limit}"
        return True, "{name} was not sent: no connection to {route} was made within {limit}.{advice_on_limit}"
    untrusted = "The certificate of {base_url} is not trusted: {reason}. "
    if failure.is_invalid_certificate():
        clock = " and the clock of this machine" if failure.verify_codes() & INVALID_AT_THIS_TIME else ""
        return False, untrusted + f"No CA bundle changes that. Check base_url{clock}, or replace the certificate."
    if failure.is_untrusted_certificate():
        advice = "Set ca_path or REQUESTS_CA_BUNDLE to the CA bundle of the authority that signed it."
        return False, untrusted + advice
    if failure.speaks_no_tls():
        if failure.has(ProxyError):
            advice = "Begin its address in {proxy_variables} with http."
            return False, "{name} was not sent: the proxy does not speak TLS. " + advice
        advice = "Check the port and the scheme of base_url."
        return False, "{name} was not sent: {base_url} does not speak TLS. " + advice
    if failure.is_invalid_address():
        if "SOCKS" in str(failure.error):
            advice = "Install PySocks for {python}, or unset {proxy_variables} in the environment."
            return False, "{name} was not sent: the library PySocks, which SOCKS proxies require, is missing. " + advice
        # The library's text may quote the password of a proxy.
        return False, "{name} was not sent: an address is not valid. Check " + PROXY_ADVICE
    if failure.exceeds_limit_of_headers():
        return (
            False,
            "{name} got a response from {base_url} that Python does not read: {reason}. A proxy may add headers.",
        )
    if not isinstance(failure.error, (OSError, HTTPError)):
        return False, "{name} failed with an unexpected {error}."
    if failure.was_sent:
        return True, "{name} got no complete response from {base_url}: the connection broke ({reason})."
    return True, "{name} was not sent: no connection to {route} could be made ({reason}). Check {advice}"


def unreachable_error(
    failed: AttemptError,
    connection: Connection,
    masker: Masker,
    request: Request,
    attempts: int,
    seconds: float,
    acted_before: bool,
) -> Unreachable:
    """The error that a failed attempt of at most C(seconds) ends with.

    C(acted_before) is set if the service may have carried out an earlier attempt.
    """
    failure = _Failure(failed.cause, _chain(failed.cause), failed.was_sent)
    transient, text = _classified(failure)
    is_api_timeout = seconds == connection.api_timeout
    uses_proxy = failure.has(ProxyError)
    advice = PROXY_ADVICE if uses_proxy else "base_url and the network."
    message = text.format(
        name=f"{request.method} {request.path}",
        base_url=connection.base_url,
        route=f"{connection.base_url} through the proxy" if uses_proxy else connection.base_url,
        advice=advice,
        limit=f"api_timeout ({seconds:.3g} s)" if is_api_timeout else f"the remaining {seconds:.3g} s",
        advice_on_limit=f" Increase api_timeout, or check {advice}" if is_api_timeout else "",
        reason=failure.reason().rstrip(".") if failure.chain else "",
        error=type(failure.error).__name__,
        python=sys.executable,
        proxy_variables=PROXY_VARIABLES,
    )
    if attempts > 1:
        message += f" {attempts} attempts were made."
    message += _earlier_attempt_note(request, acted_before and not failed.was_sent)
    may_have_acted = failed.was_sent or acted_before
    return Unreachable(masker.text(message), request, attempts, may_have_acted, transient)


def _earlier_attempt_note(request: Request, acted_before: bool) -> str:
    return " An earlier attempt may have been carried out." if acted_before and request.method != "GET" else ""


# Error statuses


def status_error(response: RawResponse, base_url: str, masker: Masker, request: Request, clock: Clock) -> StatusError:
    """The error for a response with a status other than 2xx (api.md, Errors)."""
    status = response.status
    # What is sent with other statuses is no reason, and may hold a secret.
    is_quoted = status >= 400 and not _unknown_encoding(response)
    body = _error_fields(response.content, masker) if is_quoted else {}
    phrase = next((known.phrase for known in HTTPStatus if known == status), "")
    # Many services repeat the phrase of the status.
    reason = body.get("message", "").removeprefix(f"{phrase}. ")
    is_explained = reason not in ("", phrase)
    message = f"{request.method} {request.path} returned {status} {phrase}".rstrip()
    if response.attempts > 1:
        message += f" after {response.attempts} attempts"
    message += f": {sentence(reason)}" if is_explained else "."
    message += _earlier_attempt_note(request, response.acted_before)
    error_class: type[StatusError] = StatusError
    if status == 401:
        error_class = Unauthorized
        # Most services say it themselves.
        message += "" if is_explained else " The API key is invalid or was revoked."
        message += " Check api_key or CLOUDDB_API_KEY."
    elif status == 404:
        error_class = NotFound
        message += _advice_after_404(request.path, base_url, reason if is_explained else "")
    elif advice := AFTER_LIMITS.get(body.get("code") or reason.rstrip(".").upper().replace(" ", "_")):
        message += f" {advice}"
    elif 200 <= status < 300:
        message += " The task does not accept this status."
    elif status in REDIRECTS:
        message += " Redirects are not followed, so that the key is sent to base_url only."
        message += " Set base_url to the service's own address."
    elif _is_empty_or_html(response.content) and status not in TRANSIENT_STATUSES:
        message += " The response is not one of the control API. Check base_url."
    error = error_class(message, request, response.attempts, status, body)
    error.may_have_acted, error.transient = response.may_have_acted, response.transient
    error.not_ready, error.out_of_time = response.not_ready, response.out_of_time
    error.retry_after = retry_after_seconds(response.headers, clock.utcnow())
    return error


def _advice_after_404(path: str, base_url: str, reason: str) -> str:
    if not base_url.endswith(API_PATH):
        return f" Check base_url, which should end with {API_PATH}, but is {base_url}."
    if ORGANIZATION_KEY in reason.lower():
        return " The API key belongs to an organization. Set org_id, or use the key of a user for this path."
    if PROJECT_KEY in reason.lower():
        return " The API key is limited to that project: set the id of the project, or use another key."
    if path == "/projects":
        return f" The API key may be limited to a project: set the id of the project. If it is not, check base_url, which is {base_url}."
    if path.count("/") == 1:
        return f" The service has no such path. Check the path and base_url, which is {base_url}."
    project, hint = re.match("/projects/([^/]+)", path), ""
    if project and not PROJECT_ID.fullmatch(project[1]):
        hint = f" If '{project[1]}' is the name of a project, set its id, or set the option project."
    if reason:
        return f" Check the ids and names in the request, base_url, and whether the API key may access them.{hint}"
    return f" There is no such resource, or the API key may not access it. Check the path, its ids and base_url.{hint}"


def _error_fields(content: bytes, masker: Masker) -> dict[str, str]:
    """The service's reason as C(message), its C(code) and its C(request_id), those that the body has."""
    if _is_empty_or_html(content):
        return {}
    text = content.decode(errors="replace")
    try:
        body = masker.data(decode(content))
    except (ValueError, RecursionError):
        body = text
    outer = body if isinstance(body, dict) else {}
    inner = outer["error"] if isinstance(outer.get("error"), dict) else {}
    fields = {
        "message": _reason(body) or (_reason(text) if body else ""),
        "code": _scalar(outer.get("code")) or _scalar(inner.get("code")),
        "request_id": _scalar(outer.get("request_id")) or _scalar(inner.get("request_id")),
    }
    return {name: displayable(masker.text(value)) for name, value in fields.items() if value}


def _is_empty_or_html(content: bytes) -> bool:
    """Whether the body is not that of an API, but for example that of a proxy."""
    return content.lstrip()[:1] in (b"", b"<")


def _reason(value: Any) -> str:
    """What a part of the body says, on one line. An object without the usual fields says all its texts."""
    if isinstance(value, str):
        return " ".join(value.split())
    if isinstance(value, list):
        return "; ".join(filter(None, map(_reason, value)))
    if not isinstance(value, dict):
        return ""
    # Some services begin the names with a capital.
    fields = {name.lower(): inner for name, inner in value.items()}
    summary, detail = _first(fields, SUMMARY), _first(fields, DETAIL)
    if not summary and not detail:
        return "; ".join(f"{name}: {text}" for name, inner in value.items() if (text := _reason(inner)))
    said = summary if detail in summary else f"{sentence(summary)} {detail}" if summary else detail
    place = _place(fields.get("loc") or fields.get("field"))
    return f"{place}: {said}" if place else said


def _place(value: Any) -> str:
    """Which part of the request is wrong: its path there, as FastAPI names it, or a name."""
    return ".".join(map(str, value)) if isinstance(value, list) else _reason(value)


def _first(fields: dict[str, Any], names: tuple[str, ...]) -> str:
    return next(filter(None, (_reason(fields.get(name)) for name in names)), "")


def _scalar(value: Any) -> str:
    return str(value) if isinstance(value, (str, int)) and not isinstance(value, bool) else ""


# Bodies that are not JSON


def _unknown_encoding(response: RawResponse) -> str:
    """The encoding of the body, if it was not decoded because nobody has asked for it."""
    named = response.headers.get("Content-Encoding", "")
    if {each.strip().lower() for each in named.split(",")} <= DECODED:
        return ""
    try:
        response.content.decode()  # as where the package brotli is installed
    except UnicodeDecodeError:
        return displayable(named, 30)
    return ""


def json_problem(error: Exception, response: RawResponse, masker: Masker) -> str:
    """Why a body could not be decoded, as the end of a sentence; C(error) is the one that decode() has raised."""
    if isinstance(error, UnsupportedJson):
        return masker.text(str(error))
    if isinstance(error, RecursionError):
        return "it has too many levels of arrays and objects"
    if encoding := _unknown_encoding(response):
        return f"its body is encoded with '{encoding}', which was not asked for. A proxy may ignore Accept-Encoding"
    if not response.content.strip():
        return "its body is empty"
    if response.content.lstrip()[:1] == b"<":
        return (
            "it is an HTML page, not JSON. "
            "Check base_url, and whether a proxy or a gateway responds in place of the service"
        )
    return "its body is not valid JSON"
