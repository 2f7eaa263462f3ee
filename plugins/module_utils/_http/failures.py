# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a failed attempt or an error status means: the typed error and its message. Loaded when something has failed."""

from __future__ import annotations

import re
import ssl
import sys
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
from .error_body import error_fields, is_empty_or_html
from .session import RawResponse, Request

# The end of every base_url (api.md, Versioning).
API_PATH = "/api/v2"
REDIRECTS = frozenset({300, 301, 302, 303, 307, 308})
# OpenSSL's codes for certificates that no CA bundle would make valid: not yet valid, expired, another host's, another address's.
INVALID_WITH_ANY_BUNDLE = frozenset({9, 10, 62, 64})
# Those for certificates that break a rule: keys or digests that are too weak, and those that Python 3.13 and later check strictly.
BREAKS_RULE = frozenset({*range(66, 69), *range(85, 95)})
# What OpenSSL reports, the latter from 3.2 to 3.5, when the other side speaks another protocol.
NO_TLS = ("wrong version number", "record layer failure")
PROXY_VARIABLES = "HTTPS_PROXY, HTTP_PROXY and ALL_PROXY"


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
        transient=_is_transient(attempt),
    )


def _earlier_attempt_note(request: Request, acted_before: bool) -> str:
    return " An earlier attempt may have been carried out." if acted_before and request.method != "GET" else ""


def _message(attempt: AttemptError, name: str, connection: Connection, seconds: float) -> str:
    """What happened, without the errors that the libraries wrap around it, and what to do."""
    from requests.exceptions import ProxyError
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
        reason = sentence(_innermost(_root_cause(error)))
        return f"The certificate of {base_url} is not trusted: {reason}{_certificate_advice(error)}"
    if _speaks_no_tls(attempt):
        if isinstance(error, ProxyError):
            return (
                f"{name} was not sent: the proxy does not speak TLS. Begin its address in {PROXY_VARIABLES} with http."
            )
        return f"{name} was not sent: {base_url} does not speak TLS. Check the port and the scheme of base_url."
    if _is_invalid_address(error) and not attempt.was_sent:
        if "SOCKS" in str(error):
            return (
                f"{name} was not sent: the library PySocks, which SOCKS proxies require, is missing. "
                f"Install PySocks for {sys.executable}, or unset {PROXY_VARIABLES} in the environment."
            )
        # The library's text may quote the password of a proxy.
        return (
            f"{name} was not sent: an address is not valid. Check base_url, and {PROXY_VARIABLES} in the environment."
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


def _is_transient(attempt: AttemptError) -> bool:
    """Whether the same request may succeed later."""
    from urllib3.exceptions import HTTPError

    error = attempt.cause
    if error is None:
        return True
    # A ValueError is about what was to be sent or where to, and stays the same.
    is_about_request = isinstance(error, ValueError) or isinstance(_root_cause(error), ValueError)
    is_known = isinstance(error, (OSError, HTTPError, BodyError)) and not is_about_request
    return is_known and not _is_untrusted_certificate(error) and not _speaks_no_tls(attempt)


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


def _certificate_advice(error: BaseException) -> str:
    """What to do about an untrusted certificate. The reason says it of one that is expired or another host's."""
    codes = {getattr(reason, "verify_code", None) for reason in _tls_reasons(error)}
    if codes & BREAKS_RULE:
        return " No CA bundle changes that. The certificate, or that of its authority, must be reissued."
    if codes & INVALID_WITH_ANY_BUNDLE or any(
        type(reason).__name__ == "CertificateError" for reason in _tls_reasons(error)
    ):
        return ""
    return " Set ca_path or REQUESTS_CA_BUNDLE to the CA bundle of the authority that signed it."


def _speaks_no_tls(attempt: AttemptError) -> bool:
    """Whether the other side of a new TLS connection speaks another protocol, such as HTTP."""
    if attempt.was_sent or attempt.cause is None:
        return False
    errors = [str(reason) for reason in _tls_reasons(attempt.cause) if isinstance(reason, ssl.SSLError)]
    return any(text in error for text in NO_TLS for error in errors)


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
    # What is sent with other statuses is no reason, and may hold a secret.
    body = error_fields(response.content, connection) if status >= 400 else {}
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
        message += _advice_after_404(request.path, connection.base_url, is_explained)
    elif 200 <= status < 300:
        message += " The task does not accept this status."
    elif status in REDIRECTS:
        message += " Redirects are not followed, so that the key is sent to base_url only."
        message += " Set base_url to the service's own address."
    elif is_empty_or_html(response.content) and status not in TRANSIENT_STATUSES:
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
