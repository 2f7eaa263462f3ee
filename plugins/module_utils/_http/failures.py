# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a failed attempt or an error status means: the typed error and its message. Loaded when something has failed."""

from __future__ import annotations

import json
import re
import ssl
from http import HTTPStatus
from http.client import BadStatusLine, IncompleteRead
from typing import Any

from .._clock import Clock
from .._errors import (
    TRANSIENT_STATUSES,
    ClouddbError,
    NotFound,
    ServiceUnreachable,
    StatusError,
    Unauthorized,
    sentence,
)
from .attempt import AttemptError
from .backoff import retry_after_seconds
from .body import BodyError
from .connection import Connection
from .session import RawResponse, Request

# The end of every base_url (api.md, Versioning).
API_PATH = "/api/v2"
REDIRECTS = frozenset({300, 301, 302, 303, 307, 308})
MAX_SERVICE_TEXT = 500  # characters
MAX_ERROR_BODY = 2**16  # bytes; a larger body is not decoded
# OpenSSL's codes for certificates that no CA bundle would make valid: not yet valid, expired, another host's, another address's.
INVALID_WITH_ANY_BUNDLE = frozenset({9, 10, 62, 64})


def error_of(
    attempt: AttemptError, connection: Connection, request: Request, attempts: int, seconds: float, acted_before: bool
) -> ClouddbError:
    """The error that a failed attempt of at most C(seconds) ends with: ServiceUnreachable, unless the request cannot be sent.

    C(acted_before) is set if the service may have carried out an earlier attempt.
    """
    cause = attempt.cause
    name = f"{request.method} {request.path}"
    # What is encoded otherwise are headers: the password of a proxy.
    if isinstance(cause, UnicodeError) and getattr(cause, "encoding", None) == "utf-8":
        return ClouddbError(f"{name} cannot be sent: a value in it is not valid Unicode.")
    message = _message(attempt, name, connection, seconds)
    if attempts > 1:
        message += f" {attempts} attempts were made."
    message += _earlier_attempt_note(request, acted_before and not attempt.was_sent)
    return ServiceUnreachable(
        connection.redact(message),
        request.method,
        request.path,
        attempts,
        request.request_id,
        sent=attempt.was_sent or acted_before,
        transient=_is_transient(cause),
    )


def _earlier_attempt_note(request: Request, acted_before: bool) -> str:
    return " An earlier attempt may have been carried out." if acted_before and request.method != "GET" else ""


def _message(attempt: AttemptError, name: str, connection: Connection, seconds: float) -> str:
    """What happened, without the errors that the libraries wrap around it, and what to do."""
    from urllib3.exceptions import HTTPError

    error, base_url = attempt.cause, connection.base_url
    if error is None or _is_timeout(error):
        limit, advice = f"the remaining {seconds:.3g} s", ""
        if seconds == connection.api_timeout:
            limit = f"api_timeout ({seconds:.3g} s)"
            advice = " Increase api_timeout, or check base_url and the network."
        if attempt.was_sent:
            return f"{name} got no complete response from {base_url} within {limit}.{advice}"
        return f"{name} was not sent: no connection to {base_url} was made within {limit}.{advice}"
    if _is_untrusted_certificate(error):
        message = f"The certificate of {base_url} is not trusted: {sentence(_innermost(_root_cause(error)))}"
        if not _is_invalid_certificate(error):
            message += " Set ca_path or REQUESTS_CA_BUNDLE to the CA bundle of the authority that signed it."
        return message
    if _is_invalid_address(error) and not attempt.was_sent:
        # The library's text may quote the password of a proxy.
        return (
            f"{name} was not sent: an address is not valid. "
            "Check base_url, and HTTPS_PROXY, HTTP_PROXY and ALL_PROXY in the environment."
        )
    if not isinstance(error, (OSError, HTTPError, BodyError)):
        text = f"{name} failed with an unexpected {type(error).__name__}"
        # A library's text may quote the response, or what it could not read of an address.
        return f"{text}: {error}" if isinstance(error, RuntimeError) and not attempt.was_sent else f"{text}."
    reason = _innermost(_root_cause(error))
    if attempt.was_sent:
        return f"{name} got no complete response from {base_url}: the connection broke ({reason})."
    return f"{name} was not sent: no connection to {base_url} could be made ({reason}). Check base_url and the network."


def _is_invalid_address(error: BaseException) -> bool:
    """Whether an address can't be read: base_url is checked before, so it is that of a proxy."""
    from requests.exceptions import InvalidSchema, InvalidURL
    from urllib3.exceptions import HTTPError

    is_unexpected = isinstance(error, (TypeError, ValueError)) and not isinstance(
        error, (OSError, HTTPError, BodyError)
    )
    return is_unexpected or isinstance(error, (InvalidSchema, InvalidURL))


def _is_transient(error: BaseException | None) -> bool:
    """Whether the same request may succeed later."""
    from urllib3.exceptions import HTTPError

    if error is None:
        return True
    # A ValueError is about what was to be sent or where to, and stays the same.
    is_about_request = isinstance(error, ValueError) or isinstance(_root_cause(error), ValueError)
    is_known = isinstance(error, (OSError, HTTPError, BodyError)) and not is_about_request
    return is_known and not _is_untrusted_certificate(error)


def _is_timeout(error: BaseException) -> bool:
    from urllib3.exceptions import ConnectTimeoutError, NewConnectionError, ReadTimeoutError

    cause = _root_cause(error)
    # In urllib3 1, a connection that was refused counts among the timeouts.
    return isinstance(cause, (ConnectTimeoutError, ReadTimeoutError)) and not isinstance(cause, NewConnectionError)


def _is_untrusted_certificate(error: BaseException) -> bool:
    """Whether the service's certificate was refused, or there is no CA bundle to verify it with."""
    return _is_missing_bundle(error) or any(
        isinstance(reason, ssl.SSLCertVerificationError)
        or (isinstance(reason, ssl.SSLError) and getattr(reason, "library", None) == "X509")
        or type(reason).__name__ == "CertificateError"
        for reason in _tls_reasons(error)
    )


def _is_invalid_certificate(error: BaseException) -> bool:
    """Whether the certificate is expired or another host's, so that no CA bundle would make it valid."""
    return any(
        getattr(reason, "verify_code", None) in INVALID_WITH_ANY_BUNDLE or type(reason).__name__ == "CertificateError"
        for reason in _tls_reasons(error)
    )


def _tls_reasons(error: BaseException) -> list[Any]:
    cause = _root_cause(error)
    return [cause, *cause.args]


def _is_missing_bundle(error: BaseException) -> bool:
    """Whether requests did not find the CA bundle that the environment names, which it reports by a plain OSError."""
    from requests import RequestException

    return isinstance(error, OSError) and not isinstance(error, (RequestException, ssl.SSLError))


def _root_cause(error: BaseException) -> BaseException:
    """The urllib3 error within the ones that requests and urllib3 wrap around it."""
    from requests import RequestException
    from urllib3.exceptions import ProxyError

    inner = getattr(error, "reason", None)
    if inner is None and isinstance(error, (RequestException, ProxyError)):
        inner = getattr(error, "original_error", None) or next(iter(error.args), None)
    return _root_cause(inner) if isinstance(inner, BaseException) else error


def _innermost(error: BaseException) -> str:
    """The text of the operating system's or the TLS library's error behind this one."""
    from urllib3.exceptions import HTTPError

    inner = next((arg for arg in error.args if isinstance(arg, BaseException)), None)
    if inner is None and isinstance(error, HTTPError):
        inner = error.__cause__ or error.__context__
    if inner is not None:
        return _innermost(inner)
    return _own_text(error) or type(error).__name__


def _own_text(error: BaseException) -> str:
    """The error's text, without what it may quote: a response, or one of a proxy, may hold a secret."""
    from urllib3.exceptions import LocationParseError, NewConnectionError

    text = str(getattr(error, "verify_message", None) or getattr(error, "strerror", None) or error)
    if refusal := re.match(r"Tunnel connection failed: \d{3}\b", text):
        return refusal.group()
    if isinstance(error, BadStatusLine) and not isinstance(error, OSError):
        return "the response does not begin with an HTTP status"
    if isinstance(error, IncompleteRead):
        return "the body is incomplete"
    quotes_nothing = (BodyError, OSError, LocationParseError, NewConnectionError)
    is_certificate = type(error).__name__ == "CertificateError"
    return text if isinstance(error, quotes_nothing) or is_certificate else ""


def status_error(response: RawResponse, connection: Connection, request: Request, clock: Clock) -> StatusError:
    """The error for a response with a status other than 2xx (api.md, Errors)."""
    status = response.status
    body = _error_body(response.content, connection)
    phrase = next((f" {known.phrase}" for known in HTTPStatus if known == status), "")
    message = f"{request.method} {request.path} returned {status}{phrase}"
    if response.attempts > 1:
        message += f" after {response.attempts} attempts"
    message += f": {sentence(body['message'])}" if "message" in body else "."
    message += _earlier_attempt_note(request, response.acted_before)
    error_class: type[StatusError] = StatusError
    if status == 401:
        error_class = Unauthorized
        # Most services say it themselves.
        message += "" if "message" in body else " The API key is invalid or was revoked."
        message += " Check api_key or CLOUDDB_API_KEY."
    elif status == 404:
        error_class = NotFound
        message += _advice_after_404(request.path, connection.base_url, "message" in body)
    elif 200 <= status < 300:
        message += " The task does not accept this status."
    elif status in REDIRECTS:
        message += " Redirects are not followed, so that the key is sent to base_url only."
        message += " Set base_url to the service's own address."
    elif not body and status not in TRANSIENT_STATUSES:
        message += " The response is not one of the control API. Check base_url."
    error = error_class(
        message, request.method, request.path, response.attempts, request.request_id, status, error_body=body
    )
    error.may_have_acted = error.may_have_acted or response.acted_before
    error.retry_after = retry_after_seconds(response.headers, clock.utcnow())
    return error


def _advice_after_404(path: str, base_url: str, is_explained: bool) -> str:
    if not base_url.endswith(API_PATH):
        return f" Check base_url, which should end with {API_PATH}, but is {base_url}."
    if path.count("/") == 1:
        return f" The service has no such path. Check base_url, which is {base_url}."
    if is_explained:
        return " Check its id and base_url, and whether the API key may access it."
    return " There is no such object, or the API key may not access it. Check its id and base_url."


def _error_body(content: bytes, connection: Connection) -> dict[str, str]:
    """The service's C(message), C(code) and C(request_id), where the body has them (api.md leaves its shape open)."""
    if len(content) > MAX_ERROR_BODY:
        return {}
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(body, dict):
        return {}
    fields = {field: body.get(field) for field in ("message", "code", "request_id")}
    return {
        field: connection.redact(text)[:MAX_SERVICE_TEXT]
        for field, text in fields.items()
        if isinstance(text, str) and text
    }
