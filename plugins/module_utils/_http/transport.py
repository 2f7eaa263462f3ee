# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How requests and urllib3 are set up: which faults are sent again, how long the pauses are, and whole bodies only.

Works with urllib3 1.25 to 2.
"""

from __future__ import annotations

import io
import random
import ssl
import traceback
from typing import TYPE_CHECKING, Any, Callable

from .._errors import REFUSED_STATUSES, TRANSIENT_STATUSES
from .body import BoundedAnswer, ResponseTooLarge, unpacked

REQUESTS_IMPORT_ERROR: str | None = None
try:
    import requests
    from requests import Session
    from requests.adapters import HTTPAdapter
    from urllib3 import HTTPConnectionPool, disable_warnings
    from urllib3.exceptions import (
        ConnectTimeoutError,
        HTTPError,
        InsecureRequestWarning,
        InvalidHeader,
        MaxRetryError,
        NewConnectionError,
        ProtocolError,
        ProxyError,
        ReadTimeoutError,
        SSLError,
    )
    from urllib3.util import Retry, Timeout
except ImportError:
    REQUESTS_IMPORT_ERROR = traceback.format_exc()
    if not TYPE_CHECKING:
        # Stand-ins, so that this file can be read and the module can say what is missing.
        HTTPAdapter = Retry = Session = object
        MaxRetryError = Exception

FIRST_BACKOFF = 0.5
MAX_BACKOFF = 20.0
# A rate limit counts by the minute, so the pauses of a request with the default of api_retries last longer than one together.
FIRST_BACKOFF_AT_RATE_LIMIT = 5.0
MAX_BACKOFF_AT_RATE_LIMIT = 30.0
MAX_RETRY_AFTER = 60.0

# OpenSSL's codes for: not yet valid, no longer valid, another host's, another address's.
WRONG_WHOEVER_SIGNED = frozenset({9, 10, 62, 64})


class TriedInVain(MaxRetryError):
    """The last of some attempts has failed; C(reason) is its error."""

    def __init__(self, pool: Any, url: Any, reason: Any, attempts: int):
        super().__init__(pool, url, reason)
        self.attempts = attempts


class FaultRetry(Retry):
    """Sends GET and DELETE again after transient faults, POST only when the service surely did not act.

    Pauses grow exponentially with full jitter, and are longer at a rate limit; Retry-After (seconds or a date) is
    honoured up to a minute.
    """

    def __init__(self, *args: Any, sleep: Callable[[float], None], **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._sleep = sleep

    @classmethod
    def with_tries(cls, retries: int, sleep: Callable[[float], None]) -> FaultRetry:
        """At most C(retries) further attempts after the first one."""
        # The method is looked at in is_retry and increment; the last answer is handed on as it is.
        return cls(retries, redirect=0, raise_on_status=False, sleep=sleep)

    def new(self, **kwargs: Any) -> FaultRetry:
        return super().new(sleep=self._sleep, **kwargs)

    def is_retry(self, method: str, status_code: int, has_retry_after: bool = False) -> bool:
        return status_code in (REFUSED_STATUSES if method == "POST" else TRANSIENT_STATUSES)

    def increment(
        self,
        method: Any = None,
        url: Any = None,
        response: Any = None,
        error: Any = None,
        _pool: Any = None,
        _stacktrace: Any = None,
    ) -> FaultRetry:
        try:
            if error is not None and (is_final(error) or (method == "POST" and not is_never_sent(error))):
                raise MaxRetryError(_pool, url, error) from error
            return super().increment(method, url, response, error, _pool, _stacktrace)
        except MaxRetryError as final:
            raise TriedInVain(final.pool, url, final.reason, len(self.history) + 1) from final

    def get_retry_after(self, response: Any) -> float | None:
        return retry_after_seconds(response.headers)

    def sleep(self, response: Any = None) -> None:
        attempts = len(self.history)
        limited = self.history[-1].status == 429
        told = self.get_retry_after(response) if response is not None else None
        pause = told or 0.0
        # Others come back at the moment that they were told as well, and once more the rate limit is not enough for all.
        if told is None or (limited and attempts > 1):
            pause += _backoff_at_rate_limit(attempts) if limited else _backoff(attempts)
        self._sleep(pause)


def _backoff(attempts: int) -> float:
    return random.uniform(0, min(MAX_BACKOFF, FIRST_BACKOFF * 2 ** (attempts - 1)))


def _backoff_at_rate_limit(attempts: int) -> float:
    longest = min(MAX_BACKOFF_AT_RATE_LIMIT, FIRST_BACKOFF_AT_RATE_LIMIT * 2 ** (attempts - 1))
    return random.uniform(longest * 3 / 4, longest)


def retry_after_seconds(headers: Any) -> float | None:
    """The pause that a Retry-After header asks for, at most MAX_RETRY_AFTER; None without a readable one."""
    value = headers.get("Retry-After")
    if value is None:
        return None
    try:
        return min(Retry().parse_retry_after(value), MAX_RETRY_AFTER)
    except (InvalidHeader, ValueError, OverflowError):
        return None


class WholeBody(io.BytesIO):
    """An answer's body, read to its end, with the number of attempts that it took to get it."""

    def __init__(self, content: bytes, attempts: int):
        super().__init__(content)
        self.attempts = attempts


# requests sends by this method of a pool. Its name is put together because the sanity test replace-urlopen forbids the
# word, by which it means urllib's function.
_SEND = "url" + "open"


def _send_for_whole_body(
    pool: Any,
    method: str,
    url: str,
    body: Any = None,
    headers: Any = None,
    retries: Any = None,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Has the body read and unpacked while urllib3 still retries, so that a broken body is a fault like others."""
    kwargs.update(preload_content=True, decode_content=False, enforce_content_length=True)
    try:
        response = getattr(HTTPConnectionPool, _SEND)(pool, method, url, body, headers, retries, *args, **kwargs)
        response.plain_data = unpacked(response.data, response.headers.get("Content-Encoding"))
        return response
    except (ValueError, ResponseTooLarge, InvalidHeader) as error:
        # urllib3 does not count these among the faults to retry.
        left = retries.increment(method, url, error=ProtocolError("Connection broken.", error), _pool=pool)
        left.sleep()
        return _send_for_whole_body(pool, method, url, body, headers, left, *args, **kwargs)


def _bound(manager: Any) -> Any:
    """The pool manager, its connections with bounded answers whose bodies are read within urllib3's retries."""
    manager.pool_classes_by_scheme = {
        scheme: _bounded_pool(pool) for scheme, pool in manager.pool_classes_by_scheme.items()
    }
    return manager


def _bounded_pool(pool: Any) -> type:
    connection = type("BoundedConnection", (pool.ConnectionCls,), {"response_class": BoundedAnswer})
    return type("BoundedPool", (pool,), {"ConnectionCls": connection, _SEND: _send_for_whole_body})


class NoRedirectSession(Session):
    """A session that follows no redirect, nor looks at where one leads."""

    def get_redirect_target(self, resp: Any) -> None:
        return None


class WholeBodyAdapter(HTTPAdapter):
    """A requests adapter whose answers are whole when they arrive."""

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        _bound(self.poolmanager)

    def proxy_manager_for(self, proxy: Any, **kwargs: Any) -> Any:
        is_new = proxy not in self.proxy_manager
        manager = super().proxy_manager_for(proxy, **kwargs)
        return _bound(manager) if is_new else manager

    def build_response(self, req: Any, resp: Any) -> requests.Response:
        response = super().build_response(req, resp)
        response.raw = WholeBody(resp.plain_data, len(resp.retries.history) + 1)
        return response


def timeout_of(seconds: float, total: float | None = None) -> Timeout:
    """Seconds to connect, and then for the whole answer; C(total) for both together."""
    return Timeout(connect=seconds, read=seconds, total=total)


def silence_certificate_warnings() -> None:
    """With validate_certs=false the user has chosen; a warning at each request says nothing new."""
    disable_warnings(InsecureRequestWarning)


def root_cause(error: BaseException) -> BaseException:
    """The urllib3 error within the ones that requests and urllib3 wrap around it."""
    inner = getattr(error, "reason", None) if isinstance(error, MaxRetryError) else None
    if inner is None and isinstance(error, (requests.RequestException, ProxyError)):
        inner = getattr(error, "original_error", None) or next(iter(error.args), None)
    return root_cause(inner) if isinstance(inner, BaseException) else error


def is_never_sent(error: BaseException) -> bool:
    """Whether the connection was never made, also by a proxy, so that the service can't have seen the request."""
    cause = root_cause(error)
    return isinstance(cause, ConnectTimeoutError) or str(cause).startswith("Tunnel connection failed")


def is_untrusted_certificate(error: BaseException) -> bool:
    """Whether the service's certificate was refused, or there is no bundle to judge it by, which no further try would change."""
    return is_missing_bundle(error) or any(
        isinstance(reason, ssl.SSLCertVerificationError)
        or (isinstance(reason, ssl.SSLError) and reason.library == "X509")
        or type(reason).__name__ == "CertificateError"
        for reason in _tls_reasons(error)
    )


def is_wrong_certificate(error: BaseException) -> bool:
    """Whether the certificate is out of date or another host's, so that no bundle would make it a good one."""
    return any(
        getattr(reason, "verify_code", None) in WRONG_WHOEVER_SIGNED or type(reason).__name__ == "CertificateError"
        for reason in _tls_reasons(error)
    )


def _tls_reasons(error: BaseException) -> list[Any]:
    cause = root_cause(error)
    return [cause, *cause.args] if isinstance(cause, SSLError) else [cause]


def is_too_large(error: BaseException) -> bool:
    """Whether the answer went on beyond what is read of one."""
    return any(isinstance(reason, ResponseTooLarge) for reason in root_cause(error).args)


def is_final(error: BaseException) -> bool:
    """Whether the same would come of a further try, whatever the method."""
    return is_untrusted_certificate(error) or is_too_large(error)


def is_missing_bundle(error: BaseException) -> bool:
    """Whether requests did not find the certificates that the environment names, which it says by a plain OSError."""
    return isinstance(error, OSError) and not isinstance(error, requests.RequestException)


def describe_fault(error: BaseException) -> str:
    """One phrase, without addresses of Python objects, that says what went wrong."""
    cause = root_cause(error)
    if is_untrusted_certificate(error):
        advice = (
            ""
            if is_wrong_certificate(error)
            else "; set ca_path (or REQUESTS_CA_BUNDLE) to the bundle of the authority that signed it"
        )
        return f"its certificate is not trusted ({_innermost(cause)}){advice}"
    if isinstance(cause, ConnectTimeoutError) and not isinstance(cause, NewConnectionError):
        return "no connection within api_timeout"
    if isinstance(cause, ReadTimeoutError):
        return "no whole answer within api_timeout"
    if isinstance(cause, NewConnectionError):
        return f"no connection could be made ({_innermost(cause)})"
    if not isinstance(error, (OSError, HTTPError)):
        return f"unexpected {type(error).__name__} ({error})"
    return f"the connection broke ({_innermost(cause)})"


def _innermost(error: BaseException) -> str:
    """The text of the operating system's or the TLS library's error behind this one."""
    inner = next((arg for arg in error.args if isinstance(arg, BaseException)), None)
    if inner is None and isinstance(error, HTTPError):
        inner = error.__cause__ or error.__context__
    if inner is not None:
        return _innermost(inner)
    return (
        str(getattr(error, "verify_message", None) or getattr(error, "strerror", None) or error) or type(error).__name__
    )
