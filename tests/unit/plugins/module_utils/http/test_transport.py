# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which requests are retried and when, over real sockets, on a clock whose pauses take no time."""

from __future__ import annotations

import gzip
import importlib
import random
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils import _http as http
from ansible_collections.clouddb.control.plugins.module_utils._errors import (
    RequestFailed,
    ServiceUnreachable,
    StatusError,
    Unauthorized,
)
from ansible_collections.clouddb.control.plugins.module_utils._http import session
from ansible_collections.clouddb.control.tests.unit.support.attempt_timeouts import (
    time_out_when,
    time_out_when_received,
)
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import EPOCH
from ansible_collections.clouddb.control.tests.unit.support.scripted_client import (
    API_KEY,
    METHODS,
    Scripted,
    Serve,
    each_method,
)
from ansible_collections.clouddb.control.tests.unit.support.scripted_service import HANG_UP, RESET, Reply, reply

OK = reply({"done": True})
TRUNCATED = reply(b'{"done": ', Content_Length="100")
BROKEN_CHUNKS = Reply(b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"don\r\n')
INVALID_CHUNK = Reply(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n{}\r\n0\r\n\r\n")
NEGATIVE_CHUNK = Reply(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-f\r\n{}\r\n0\r\n\r\n")
NOT_HTTP = Reply(b"SSH-2.0-OpenSSH_9.2\r\n")
BROKEN = {
    "hang up": HANG_UP,
    "reset": RESET,
    "truncated body": TRUNCATED,
    "chunks that end early": BROKEN_CHUNKS,
    "a chunk without a size": INVALID_CHUNK,
    "a chunk of a negative size": NEGATIVE_CHUNK,
    "no http": NOT_HTTP,
}
each_broken = pytest.mark.parametrize("broken", BROKEN.values())
idempotent = pytest.mark.parametrize("method", ["GET", "DELETE"])


@pytest.fixture
def full_jitter(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, float]]:
    """Records the bounds of each random pause, and makes it as long as possible."""
    bounds: list[tuple[float, float]] = []

    def uniform(low: float, high: float) -> float:
        bounds.append((low, high))
        return high

    monkeypatch.setattr(random, "uniform", uniform)
    return bounds


@contextmanager
def refused_address() -> Iterator[str]:
    """A base URL whose port refuses connections."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{reserved.getsockname()[1]}"


def fails(served: Scripted, method: str) -> RequestFailed:
    with pytest.raises(RequestFailed) as error:
        METHODS[method](served.client)
    assert API_KEY not in repr(error.value.as_result())
    return error.value


# Which requests are retried


@idempotent
@pytest.mark.parametrize("status", [423, 429, 500, 502, 503, 504])
def test_get_and_delete_are_retried_after_a_transient_status(serve: Serve, method: str, status: int) -> None:
    served = serve(reply({}, status), reply({}, status), OK)
    response = METHODS[method](served.client)
    assert (response.json, response.attempts, len(served.clock.pauses)) == ({"done": True}, 3, 2)


@idempotent
@each_broken
def test_get_and_delete_are_retried_after_a_broken_response(serve: Serve, method: str, broken: Reply) -> None:
    served = serve(broken, broken, OK)
    response = METHODS[method](served.client)
    assert (response.json, response.attempts, len(served.clock.pauses)) == ({"done": True}, 3, 2)


@pytest.mark.parametrize("status", [423, 429, 503])
def test_post_is_retried_after_a_refusal(serve: Serve, status: int) -> None:
    served = serve(reply({}, status), OK)
    assert METHODS["POST"](served.client).attempts == 2
    assert [request.json for request in served.requests] == [{"key_name": "ci"}] * 2


@pytest.mark.parametrize("status", [500, 502, 504])
def test_post_is_not_retried_if_the_service_may_have_acted(serve: Serve, status: int) -> None:
    served = serve(reply({"message": "oh"}, status))
    error = fails(served, "POST")
    assert (error.attempts, error.may_have_acted, error.transient) == (1, True, True)
    assert served.clock.pauses == []


@each_broken
def test_post_is_not_retried_after_a_broken_response(serve: Serve, broken: Reply) -> None:
    served = serve(broken)
    error = fails(served, "POST")
    assert isinstance(error, ServiceUnreachable)
    assert (error.attempts, error.may_have_acted, error.transient) == (1, True, True)
    assert served.clock.pauses == []


@each_method
@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 409, 410, 422, 501, 505])
def test_other_statuses_are_not_retried(serve: Serve, method: str, status: int) -> None:
    served = serve(reply({}, status))
    error = fails(served, method)
    assert (error.attempts, error.transient, len(served.requests)) == (1, False, 1)
    assert served.clock.pauses == []


@each_method
def test_a_refused_connection_is_retried(serve: Serve, method: str) -> None:
    with refused_address() as base_url:
        served = serve(base_url=base_url, api_retries=3)
        error = fails(served, method)
    assert isinstance(error, ServiceUnreachable)
    path = "/api_keys/7" if method == "DELETE" else "/api_keys"
    assert str(error) == (
        f"{method} {path} was not sent: no connection to {base_url} could be made (Connection refused). Check base_url and the network. 4 attempts were made."
    )
    assert (error.attempts, error.may_have_acted, error.transient, len(served.clock.pauses)) == (4, False, True, 3)


@each_method
def test_a_service_that_comes_back_is_reached(serve: Serve, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    served = serve(OK)
    connect = socket.socket.connect
    errors = [ConnectionRefusedError(111, "Connection refused"), socket.timeout("timed out")]

    def connecting(*args: Any) -> None:
        if errors:
            raise errors.pop(0)
        connect(*args)

    monkeypatch.setattr(socket.socket, "connect", connecting)
    assert METHODS[method](served.client).attempts == 3


@pytest.mark.parametrize("method, attempts", [("PUT", 2), ("PATCH", 1)])
def test_a_request_that_replaces_is_repeated(serve: Serve, method: str, attempts: int) -> None:
    served = serve(*[HANG_UP] * attempts, api_retries=1)
    with pytest.raises(ServiceUnreachable):
        served.client.request(method, ("projects", "p"), body={})
    assert len(served.requests) == attempts


def test_a_connection_timeout_means_not_sent(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    def connecting(*args: Any) -> None:
        raise socket.timeout("timed out")

    monkeypatch.setattr(socket.socket, "connect", connecting)
    error = fails(serve(api_retries=1), "POST")
    assert str(error).startswith("POST /api_keys was not sent: no connection to ")
    assert str(error).endswith(
        " was made within api_timeout (30 s). Increase api_timeout, or check base_url and the network. 2 attempts were made."
    )
    assert (error.may_have_acted, error.transient) == (False, True)


def test_an_unknown_host_name_means_not_sent(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    def lookup(*args: Any, **kwargs: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    error = fails(serve(base_url="https://control.example.com", api_retries=1), "POST")
    assert "no connection to https://control.example.com could be made (Name or service not known)." in str(error)
    assert not error.may_have_acted


@pytest.mark.parametrize("method, attempts", [("GET", 2), ("DELETE", 2), ("POST", 1)])
def test_api_timeout_bounds_silence(serve: Serve, monkeypatch: pytest.MonkeyPatch, method: str, attempts: int) -> None:
    time_out_when(monkeypatch, lambda attempt: attempt.was_sent)
    with socket.create_server(("127.0.0.1", 0)) as never_accepts:
        base_url = f"http://127.0.0.1:{never_accepts.getsockname()[1]}"
        error = fails(serve(base_url=base_url, api_timeout=60, api_retries=1), method)
    path = "/api_keys/7" if method == "DELETE" else "/api_keys"
    assert str(error).startswith(f"{method} {path} got no complete response from {base_url} within api_timeout (60 s).")
    assert (error.attempts, error.may_have_acted, error.transient) == (attempts, True, True)
    assert len(error.details.pop("request_id")) == 36
    assert error.details == {"method": method, "path": path, "attempts": attempts}


@pytest.mark.parametrize("slow_from", [0, 20, 200], ids=["status line", "headers", "body"])
@pytest.mark.parametrize("method, attempts", [("GET", 2), ("POST", 1)])
def test_api_timeout_bounds_a_dripping_response(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, method: str, attempts: int, slow_from: int
) -> None:
    raw = b"HTTP/1.1 200 OK\r\nX-Filler: %s\r\nContent-Length: 1000\r\n\r\n%s" % (b"x" * 100, b" " * 1000)
    served = serve(*[Reply(raw, slow_from=slow_from)] * attempts, api_timeout=60, api_retries=1)
    time_out_when_received(monkeypatch, served.service)
    error = fails(served, method)
    assert "got no complete response from" in str(error) and "within api_timeout (60 s)." in str(error)
    assert (error.attempts, error.may_have_acted, error.transient) == (attempts, True, True)


def test_a_slow_response_within_api_timeout_is_accepted(serve: Serve) -> None:
    slow = Reply(b'HTTP/1.1 200 OK\r\nContent-Length: 14\r\nConnection: close\r\n\r\n{"done": true}', slow_from=60)
    served = serve(slow, OK)
    assert [served.client.get("projects").attempts for _request in range(2)] == [1, 1]


@pytest.mark.parametrize(
    "headers, body",
    [
        ({"Content_Length": "100"}, b'{"mess'),
        ({"Content_Encoding": "br"}, b"{}"),
        ({"Content_Encoding": "gzip"}, b"not gzip"),
    ],
)
def test_the_status_counts_if_the_body_of_an_error_cannot_be_read(
    serve: Serve, headers: dict[str, str], body: bytes
) -> None:
    refused, denied, failed = (reply(body, status, **headers) for status in (503, 401, 500))
    invalid = reply(body, 400, **headers)

    assert serve(refused, OK).client.post("api_keys", body={"key_name": "x"}).attempts == 2
    assert isinstance(fails(serve(denied), "POST"), Unauthorized)
    assert fails(serve(invalid), "POST").details["status"] == 400
    error = fails(serve(failed), "POST")
    assert isinstance(error, StatusError)
    assert (error.status, error.attempts) == (500, 1)
    assert serve(failed, OK).client.get("projects").attempts == 2


# Number of attempts


@each_method
@pytest.mark.parametrize("retries", [0, 1, 3])
def test_api_retries_limits_the_attempts(serve: Serve, method: str, retries: int) -> None:
    served = serve(*[reply({"message": "later"}, 503)] * (retries + 1), api_retries=retries)
    error = fails(served, method)
    assert isinstance(error, StatusError)
    assert error.as_result()["failure"]["attempts"] == retries + 1
    assert len(served.clock.pauses) == retries
    assert (f" after {retries + 1} attempts: later." in str(error)) == (retries > 0)


@idempotent
@each_broken
def test_api_retries_limits_the_attempts_after_broken_responses(serve: Serve, method: str, broken: Reply) -> None:
    error = fails(serve(*[broken] * 3, api_retries=2), method)
    assert (error.attempts, error.may_have_acted, error.transient) == (3, True, True)
    assert str(error).endswith(" 3 attempts were made.")
    assert not any(word in str(error) for word in ("object at 0x", "Max retries", "HTTPConnectionPool", "Traceback"))


def test_errors_of_different_kinds_count_together(serve: Serve) -> None:
    served = serve(HANG_UP, reply({}, 429), TRUNCATED, reply({}, 404))
    error = fails(served, "GET")
    assert (error.attempts, len(served.clock.pauses)) == (4, 3)


def test_each_request_has_its_own_attempts(serve: Serve) -> None:
    served = serve(HANG_UP, OK, HANG_UP, OK, api_retries=1)
    assert [served.client.get("projects").attempts for _request in range(2)] == [2, 2]


@idempotent
def test_all_attempts_have_the_same_request_id(serve: Serve, method: str) -> None:
    served = serve(HANG_UP, reply({}, 500), OK)
    METHODS[method](served.client)
    assert len({request.headers["X-Request-ID"] for request in served.requests}) == 1
    assert {request.headers["Authorization"] for request in served.requests} == {f"Bearer {API_KEY}"}


# Length of the pauses


@pytest.mark.parametrize("error", [reply({}, 503), HANG_UP], ids=["status", "hang up"])
def test_backoff_doubles_with_full_jitter_up_to_its_maximum(
    serve: Serve, full_jitter: list[tuple[float, float]], error: Reply
) -> None:
    served = serve(*[error] * 8, OK, api_retries=8)
    served.client.get("projects")
    assert full_jitter == [(0, 0.5), (0, 1.0), (0, 2.0), (0, 4.0), (0, 8.0), (0, 16.0), (0, 20.0), (0, 20.0)]
    assert served.clock.pauses == [bound for _low, bound in full_jitter]


def test_backoff_at_a_rate_limit_is_longer(serve: Serve, full_jitter: list[tuple[float, float]]) -> None:
    served = serve(*[reply({}, 429)] * 4, HANG_UP, OK)
    served.client.get("projects")
    assert full_jitter == [(3.75, 5.0), (7.5, 10.0), (15.0, 20.0), (22.5, 30.0), (0, 8.0)]


def test_a_second_429_adds_backoff_to_retry_after(serve: Serve, full_jitter: list[tuple[float, float]]) -> None:
    served = serve(*[reply({}, 429, Retry_After="1")] * 4, OK)
    served.client.get("projects")
    assert served.clock.pauses == [1, 1 + 10, 1 + 20, 1 + 30]


@pytest.mark.parametrize("status", [423, 429, 500, 503])
@pytest.mark.parametrize(
    "retry_after, pause",
    [
        ("0", 0),
        ("7", 7),
        (" 7 ", 7),
        ("60", 60),
        ("61", 60),
        ("9" * 400, 60),
        ("Fri, 31 Dec 2100 23:59:59 GMT", 60),
        ("Sat, 01 Jan 2000 00:00:00 GMT", 0),
    ],
)
def test_retry_after_is_honored_and_clamped(serve: Serve, status: int, retry_after: str, pause: float) -> None:
    served = serve(reply({}, status, Retry_After=retry_after), OK)
    served.client.get("projects")
    assert served.clock.pauses == [pause]


def test_retry_after_may_be_a_date(serve: Serve) -> None:
    assert EPOCH.isoformat() == "2026-11-21T08:00:00+00:00"
    served = serve(reply({}, 503, Retry_After="Sat, 21 Nov 2026 08:00:42 GMT"), OK)
    served.client.get("projects")
    assert served.clock.pauses == [42]


def test_a_retry_after_date_is_compared_with_the_date_of_the_response(serve: Serve) -> None:
    # The local clock is an hour ahead of the service's.
    headers = {"Date": "Sat, 21 Nov 2026 07:00:00 GMT", "Retry_After": "Sat, 21 Nov 2026 07:00:42 GMT"}
    served = serve(reply({}, 503, **headers), OK)
    served.client.get("projects")
    assert served.clock.pauses == [42]


@pytest.mark.parametrize(
    "retry_after",
    [
        "",
        "-5",
        "soon",
        "1.5",
        "9" * 5000,
        "Sat, 21 Nov",
        "Fri, 31 Dec 99999999999999999999 23:59:59 GMT",
        "1e400",
        "nan",
        "\xff",
    ],
    ids=[
        "empty",
        "negative",
        "text",
        "fraction",
        "number of many digits",
        "half a date",
        "year out of range",
        "exponent",
        "nan",
        "not ascii",
    ],
)
def test_an_unreadable_retry_after_falls_back_to_backoff(
    serve: Serve, full_jitter: list[tuple[float, float]], retry_after: str
) -> None:
    served = serve(reply({}, 503, Retry_After=retry_after), OK)
    served.client.get("projects")
    assert served.clock.pauses == [0.5]


def test_retry_after_is_honored_for_post(serve: Serve) -> None:
    served = serve(reply({}, 429, Retry_After="9"), OK)
    METHODS["POST"](served.client)
    assert served.clock.pauses == [9]


# Bodies


@pytest.mark.parametrize(
    "raw",
    [
        b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\n{"done\r\n8\r\n": true}\r\n0\r\n\r\n',
        b'HTTP/1.0 200 OK\r\n\r\n{"done": true}',
        b'HTTP/1.1 200 OK\r\nContent-Encoding: identity\r\nContent-Length: 14\r\n\r\n{"done": true}',
    ],
)
def test_bodies_are_read_in_every_transfer_encoding(serve: Serve, raw: bytes) -> None:
    assert serve(Reply(raw)).client.get("projects").json == {"done": True}


def test_gzip_bodies_are_unpacked(serve: Serve) -> None:
    served = serve(reply(gzip.compress(b'{"done": true}', mtime=0), Content_Encoding="gzip"))
    assert served.client.get("projects").json == {"done": True}
    assert served.requests[0].headers["Accept-Encoding"] == "gzip"


@pytest.mark.parametrize(
    "body, encoding, part",
    [
        (gzip.compress(b'{"done": true}', mtime=0)[:-9], "gzip", "the compressed body ends early"),
        (b'{"done": true}', "gzip", "incorrect header check"),
        (b'{"done": true}', "br", "the body has another encoding than gzip, which was asked for"),
    ],
)
def test_a_body_that_cannot_be_unpacked_is_a_broken_response(
    serve: Serve, body: bytes, encoding: str, part: str
) -> None:
    broken = reply(body, Content_Encoding=encoding)
    assert serve(broken, OK).client.get("projects").attempts == 2
    error = fails(serve(broken), "POST")
    assert part in str(error)
    assert isinstance(error, ServiceUnreachable)


@pytest.mark.parametrize(
    "raw, part",
    [
        (b"HTTP/1.1 200 OK\r\nContent-Type: application/js", "the headers of the response end early"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 14\r\n", "the headers of the response end early"),
        (b"HTTP/1.1 103 Early Hints\r\nLink: a", "the headers of the response end early"),
        (
            b'HTTP/1.1 200 OK\r\nBearer the-secret\r\nContent-Length: 14\r\n\r\n{"done": true}',
            "the headers of the response are malformed",
        ),
        (b'{"id": 7, "key": "the-secret"}', "the response does not begin with an HTTP status"),
    ],
)
def test_incomplete_or_malformed_headers_are_a_broken_response(
    serve: Serve, caplog: pytest.LogCaptureFixture, raw: bytes, part: str
) -> None:
    assert serve(Reply(raw), OK).client.get("projects").attempts == 2
    error = fails(serve(Reply(raw)), "POST")
    assert (error.may_have_acted, str(error).partition(": ")[2]) == (True, f"the connection broke ({part}).")
    assert caplog.text == ""


def test_the_session_file_imports_without_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "requests", None)
    monkeypatch.delitem(sys.modules, session.__name__)
    monkeypatch.setattr(http, "session", session)
    without = importlib.import_module(session.__name__)
    assert "requests" in str(without.REQUESTS_IMPORT_ERROR).splitlines()[-1]
    assert without.Session is object
    assert session.REQUESTS_IMPORT_ERROR is None


def test_a_body_that_cannot_be_unpacked_is_retried(serve: Serve) -> None:
    served = serve(reply({}, 503), reply(b"no gzip", Content_Encoding="gzip"), reply({"done": True}))
    assert served.client.get("projects").attempts == 3
    first, *others = (sorted(request.headers.items()) for request in served.requests)
    assert others == [first, first]


def test_attempts_with_bodies_that_cannot_be_unpacked_are_counted(serve: Serve) -> None:
    served = serve(reply({}, 503), reply(b"no gzip", Content_Encoding="gzip"), api_retries=1)
    with pytest.raises(ServiceUnreachable) as raised:
        served.client.get("projects")
    assert raised.value.attempts == 2


def test_post_is_not_retried_after_a_body_that_cannot_be_unpacked(serve: Serve) -> None:
    served = serve(reply(b"no gzip", Content_Encoding="gzip"))
    with pytest.raises(ServiceUnreachable) as raised:
        served.client.post("api_keys", body={})
    assert raised.value.may_have_acted
    assert len(served.requests) == 1
