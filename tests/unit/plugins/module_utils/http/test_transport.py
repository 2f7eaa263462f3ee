# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which requests are retried and when, over real sockets, on a clock whose pauses take no time."""

from __future__ import annotations

import gzip
import importlib
import random
import socket
import sys
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils import _http as http
from ansible_collections.clouddb.control.plugins.module_utils._http import session
from ansible_collections.clouddb.control.plugins.module_utils._http.errors import (
    RequestFailed,
    ServiceUnreachable,
    StatusError,
    Unauthorized,
)
from ansible_collections.clouddb.control.tests.unit.support.attempt_timeouts import time_out_when_hanging
from ansible_collections.clouddb.control.tests.unit.support.scripted_client import (
    API_KEY,
    METHODS,
    Scripted,
    Serve,
    each_method,
)
from ansible_collections.clouddb.control.tests.unit.support.scripted_service import (
    CUT_OFF,
    HANG_UP,
    NOT_NOW,
    RESET,
    SILENCE,
    Reply,
    reply,
)

OK = reply({"done": True})
PACKED = gzip.compress(b'{"done": true}', mtime=0)
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
BROKEN = {
    "hang up": HANG_UP,
    "reset": RESET,
    "cut headers": Reply(b"HTTP/1.1 200 OK\r\nContent-Length: 14\r\n"),
    "truncated body": reply(b'{"done": ', Content_Length="100"),
    "chunks that end early": Reply(CHUNKED + b'5\r\n{"don\r\n'),
    "a chunk without a size": Reply(CHUNKED + b"nonsense\r\n{}\r\n0\r\n\r\n"),
    "no gzip": reply(b"no gzip", Content_Encoding="gzip"),
    "no http": Reply(b"SSH-2.0-OpenSSH_9.2\r\n"),
}
each_broken = pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
ATTEMPTS = {"GET": 2, "DELETE": 2, "POST": 1}


@pytest.fixture
def full_jitter(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, float]]:
    """Records the bounds of each random pause, and makes it as long as possible."""
    bounds: list[tuple[float, float]] = []

    def uniform(low: float, high: float) -> float:
        bounds.append((low, high))
        return high

    monkeypatch.setattr(random, "uniform", uniform)
    return bounds


def fails(served: Scripted, method: str) -> RequestFailed:
    with pytest.raises(RequestFailed) as error:
        METHODS[method](served.client)
    assert API_KEY not in repr(error.value.as_result())
    return error.value


# Which requests are retried


@pytest.mark.parametrize("method", ["GET", "DELETE"])
@pytest.mark.parametrize("failure", [HANG_UP, *(reply({}, status) for status in (408, 423, 429, 500, 503, 522))])
def test_get_and_delete_are_retried(serve: Serve, method: str, failure: Reply) -> None:
    served = serve(failure, failure, OK)
    response = METHODS[method](served.client)
    assert (response.json, response.attempts, len(served.clock.pauses)) == ({"done": True}, 3, 2)
    first, *others = (sorted(request.headers.items()) for request in served.requests)
    assert others == [first, first]


@each_broken
@pytest.mark.parametrize("method, attempts", ATTEMPTS.items())
def test_after_a_broken_response_the_service_may_have_acted(
    serve: Serve, method: str, attempts: int, broken: Reply
) -> None:
    served = serve(*[broken] * attempts, api_retries=1)
    error = fails(served, method)
    assert isinstance(error, ServiceUnreachable)
    assert (error.attempts, error.may_have_acted, error.transient) == (attempts, True, True)
    assert len(served.clock.pauses) == attempts - 1


@pytest.mark.parametrize(
    "refusal", [reply({}, 423), reply({}, 429), NOT_NOW, reply(b"closed for an hour", 503, Retry_After="3600")]
)
def test_post_is_retried_after_a_refusal(serve: Serve, refusal: Reply) -> None:
    served = serve(refusal, OK)
    assert METHODS["POST"](served.client).attempts == 2
    assert [request.json for request in served.requests] == [{"key_name": "ci"}] * 2


@each_method
@pytest.mark.parametrize(
    "headers, limit",
    [
        ({f"X-Debug-{number}": "x" for number in range(150)}, "more than 100 headers"),
        ({"X-Debug": "x" * 70_000}, "more than 65536 bytes when reading header line"),
    ],
)
def test_more_headers_than_python_reads(serve: Serve, method: str, headers: dict[str, str], limit: str) -> None:
    """https://github.com/ansible/ansible/issues/82780"""
    error = fails(serve(reply({}, **headers)), method)
    assert f"that Python does not read: {limit}. A proxy may add headers." in str(error)
    assert (error.attempts, error.transient, error.may_have_acted) == (1, False, True)


def test_the_system_gives_up_an_address_that_drops_packets_after_seven_seconds(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the thirty of api_timeout: they come after two more packets, and the rest is for the next address."""
    connect, found = socket.socket.connect, []

    def connecting(sock: socket.socket, address: Any) -> None:
        found.append([sock.getsockopt(socket.IPPROTO_TCP, each) for each in (socket.TCP_SYNCNT, socket.TCP_NODELAY)])
        connect(sock, address)

    monkeypatch.setattr(socket.socket, "connect", connecting)
    serve(OK).client.get("projects")
    assert found == [[2, 1]]


@pytest.mark.parametrize("method, repeated", [("PUT", True), ("PATCH", False)])
def test_a_request_that_replaces_is_repeated(serve: Serve, method: str, repeated: bool) -> None:
    served = serve(HANG_UP, *([OK] if repeated else []))
    if repeated:
        assert served.client.request(method, ("projects", "p"), body={}).attempts == 2
    else:
        with pytest.raises(ServiceUnreachable):
            served.client.request(method, ("projects", "p"), body={})


@pytest.mark.parametrize("retry_locked, attempts", [(True, 2), (False, 1)])
def test_a_locked_project_is_retried_unless_the_caller_waits(serve: Serve, retry_locked: bool, attempts: int) -> None:
    served = serve(*[reply({}, 423)] * attempts, api_retries=1)
    with pytest.raises(StatusError) as error:
        served.client.request("POST", ["projects"], retry_locked=retry_locked)
    assert error.value.attempts == attempts


@each_method
def test_a_service_that_comes_back_is_reached(serve: Serve, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    served = serve(OK)
    connect, lookup = socket.socket.connect, socket.getaddrinfo
    errors = [ConnectionRefusedError(111, "Connection refused"), socket.timeout("timed out")]
    unknown = [socket.gaierror(socket.EAI_NONAME, "Name or service not known")]

    def connecting(*args: Any) -> None:
        if errors:
            raise errors.pop(0)
        connect(*args)

    def looking_up(*args: Any, **kwargs: Any) -> Any:
        if unknown:
            raise unknown.pop()
        return lookup(*args, **kwargs)

    monkeypatch.setattr(socket.socket, "connect", connecting)
    monkeypatch.setattr(socket, "getaddrinfo", looking_up)
    assert METHODS[method](served.client).attempts == 4


@pytest.mark.parametrize("method, attempts", ATTEMPTS.items())
@pytest.mark.parametrize(
    "silent", [SILENCE, Reply(b"HTTP/1.1 200 OK\r\nContent-Le", hangs=True), Reply(CHUNKED, hangs=True)]
)
def test_api_timeout_bounds_silence(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, method: str, attempts: int, silent: Reply
) -> None:
    served = serve(*[silent] * attempts, api_timeout=60, api_retries=1)
    time_out_when_hanging(monkeypatch, served.service)
    error = fails(served, method)
    assert "within api_timeout (60 s). Increase api_timeout" in str(error)
    assert (error.attempts, error.may_have_acted, error.transient) == (attempts, True, True)


@pytest.mark.parametrize(
    "headers, body",
    [
        ({"Content_Length": "100"}, b'{"mess'),
        ({"Content_Encoding": "gzip"}, b"not gzip"),
    ],
)
def test_the_status_counts_if_the_body_of_an_error_cannot_be_read(
    serve: Serve, headers: dict[str, str], body: bytes
) -> None:
    refused, denied, failed = (reply(body, status, **headers) for status in (429, 401, 500))
    assert serve(refused, OK).client.post("api_keys", body={"key_name": "x"}).attempts == 2
    assert isinstance(fails(serve(denied), "POST"), Unauthorized)
    assert fails(serve(failed), "POST").details["status"] == 500


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


@pytest.mark.parametrize(
    "retry_after, pause",
    [
        ("0", 0),
        (" 7 ", 7),
        ("61", 60),
        ("9" * 400, 60),
        ("Sat, 21 Nov 2026 08:00:42 GMT", 42),
        ("Fri, 31 Dec 2100 23:59:59 GMT", 60),
        ("Sat, 01 Jan 2000 00:00:00 GMT", 0),
        # Unreadable, so it is the backoff.
        *((text, 0.5) for text in ("", "-5", "soon", "1.5", "9" * 5000, "Sat, 21 Nov", "nan", "\xff")),
        ("Fri, 31 Dec 99999999999999999999 23:59:59 GMT", 0.5),
    ],
)
@pytest.mark.parametrize("method, status", [("GET", 500), ("POST", 503)])
def test_retry_after_is_honored_and_clamped(
    serve: Serve, full_jitter: list[tuple[float, float]], method: str, status: int, retry_after: str, pause: float
) -> None:
    served = serve(reply({}, status, Retry_After=retry_after), OK)
    METHODS[method](served.client)
    assert served.clock.pauses == [pause]


def test_a_retry_after_date_is_compared_with_the_date_of_the_response(serve: Serve) -> None:
    # The local clock is an hour ahead of the service's.
    headers = {"Date": "Sat, 21 Nov 2026 07:00:00 GMT", "Retry_After": "Sat, 21 Nov 2026 07:00:42 GMT"}
    served = serve(reply({}, 503, **headers), OK)
    served.client.get("projects")
    assert served.clock.pauses == [42]


# Responses


INTERIM = b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
COMPLETE = b'HTTP/1.1 200 OK\r\nContent-Length: 14\r\nConnection: close\r\n\r\n{"done": true}'


@pytest.mark.parametrize(
    "raw",
    [
        CHUNKED + b'6\r\n{"done\r\n8\r\n": true}\r\n0\r\n\r\n',
        b'HTTP/1.0 200 OK\r\n\r\n{"done": true}',
        CONTINUE + COMPLETE,
        INTERIM + CONTINUE + b"HTTP/1.1 102 Processing\r\n\r\n" + INTERIM + COMPLETE,
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s" % (len(PACKED), PACKED),
    ],
    ids=["chunks", "until the end of the connection", "continue", "interim responses", "gzip"],
)
def test_bodies_are_read_in_every_transfer_encoding(serve: Serve, raw: bytes) -> None:
    served = serve(Reply(raw))
    response = served.client.post("api_keys", body={})
    assert (response.json, response.attempts) == ({"done": True}, 1)
    assert served.requests[0].headers["Accept-Encoding"] == "gzip"


def test_the_session_file_imports_without_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "requests", None)
    monkeypatch.delitem(sys.modules, session.__name__)
    monkeypatch.setattr(http, "session", session)
    without = importlib.import_module(session.__name__)
    assert "requests" in str(without.REQUESTS_IMPORT_ERROR).splitlines()[-1]
    assert without.Session is object
    assert session.REQUESTS_IMPORT_ERROR is None


@pytest.mark.parametrize("method", ["POST", "PATCH"])
@pytest.mark.parametrize(
    "error_reply",
    [
        *(reply({"message": "oh", "code": ""}, status) for status in (500, 502, 504)),
        CUT_OFF,
        reply(b"", 503),
        reply(b"<html>", 503),
        reply([{"message": "oh", "code": ""}], 503),
        reply(b"[" * 100_000, 503),
        # https://github.com/senaite/senaite.lims/issues/41
        reply(b"<!DOCTYPE html>\n<html><title>503 Backend fetch failed</title></html>", 503, Retry_After="5"),
        # https://github.com/anomalyco/sst/issues/2232
        reply({"message": "Service Unavailable"}, 503),
        # https://github.com/GoogleCloudPlatform/esp-v2/issues/430
        reply({"message": "upstream connect error. reset reason: connection termination", "code": 503}, 503),
    ],
)
def test_post_and_patch_are_not_retried_if_the_service_may_have_acted(
    serve: Serve, method: str, error_reply: Reply
) -> None:
    served = serve(error_reply)
    with pytest.raises(StatusError) as raised:
        served.client.request(method, ["projects"], body={})
    error = raised.value
    assert (error.attempts, error.may_have_acted, error.transient) == (1, True, True)
    assert served.clock.pauses == []
