# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The client, over real sockets and on a clock whose pauses take no time: its requests, which are retried and when, and errors."""

from __future__ import annotations

import gzip
import importlib
import random
import re
import socket
import sys
import uuid
import zlib
from contextlib import nullcontext
from datetime import timedelta
from itertools import product
from typing import Any
from unittest import mock
from urllib.parse import quote, unquote

import pytest
from requests.adapters import HTTPAdapter

from ansible_collections.clouddb.control.plugins.module_utils import _http as http
from ansible_collections.clouddb.control.plugins.module_utils._clock import Deadline
from ansible_collections.clouddb.control.plugins.module_utils._http import errors, session
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import EPOCH
from ansible_collections.clouddb.control.tests.unit.support.scripted_client import (
    API_KEY,
    METHODS,
    Scripted,
    Serve,
    each_method,
    time_out_when_hanging,
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

NOT_READY = reply({"message": "branch not ready yet"}, 422)
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
Bounds = list[tuple[float, float]]
OF_SERVICE = {"message": "oh", "code": ""}
ELSEWHERE = "http://127.0.0.1:1/"
VARNISH = b"<!DOCTYPE html>\n<html><title>503 Backend fetch failed</title></html>"
# By name: what the service sends, whether the same request may succeed later, and whether the service may have acted.
SENT: dict[str, tuple[Reply, bool, bool]] = {
    **{name: (broken, True, True) for name, broken in BROKEN.items()},
    "silence": (SILENCE, True, True),
    "silence within the headers": (Reply(b"HTTP/1.1 200 OK\r\nContent-Le", hangs=True), True, True),
    "silence within the body": (Reply(CHUNKED, hangs=True), True, True),
    **{str(status): (reply(OF_SERVICE, status), True, True) for status in (408, 500, 502, 504, 522)},
    "503 without a body": (reply(b"", 503), True, True),
    "503 with a list": (reply([OF_SERVICE], 503), True, True),
    "503 that is nested deeply": (reply(b"[" * 100_000, 503), True, True),
    # https://github.com/senaite/senaite.lims/issues/41, https://github.com/anomalyco/sst/issues/2232
    "503 of Varnish": (reply(VARNISH, 503, Retry_After="5"), True, True),
    "503 without a code": (reply({"message": "Service Unavailable"}, 503), True, True),
    # https://github.com/GoogleCloudPlatform/esp-v2/issues/430
    "503 of Envoy": (reply({"message": "upstream connect error", "code": 503}, 503), True, True),
    "503 of the service": (NOT_NOW, True, False),
    "503 with Retry-After": (reply(b"closed", 503, Retry_After="3600"), True, False),
    **{str(status): (reply({}, status), True, False) for status in (423, 429)},
    "not ready": (NOT_READY, True, False),
    "422": (reply({"message": "the name is not valid"}, 422), False, False),
    "422 with these words in another field": (reply({"input": "not ready"}, 422), False, False),
    "422 with these words as text": (reply(b"not ready yet", 422), False, False),
    "400 with these words": (reply({"message": "branch not ready yet"}, 400), False, False),
    **{str(status): (reply({}, status, Location=ELSEWHERE), False, True) for status in (302, 307, 308)},
}


@pytest.fixture
def full_jitter(monkeypatch: pytest.MonkeyPatch) -> Bounds:
    """Records the bounds of each random pause, and makes it as long as possible."""
    bounds: Bounds = []
    monkeypatch.setattr(random, "uniform", lambda low, high: bounds.append((low, high)) or high)
    return bounds


def fails(served: Scripted, method: str) -> errors.RequestFailed:
    with pytest.raises(errors.RequestFailed) as error:
        METHODS[method](served.client)
    assert API_KEY not in repr(error.value.as_result())
    return error.value


def until(served: Scripted, seconds: float, **options: Any) -> Client:
    """The client, with a deadline after this time."""
    return served.client.with_deadline(Deadline.after(served.clock.clock, seconds), **options)


# Requests


@each_method
def test_sends_the_documented_headers(serve: Serve, method: str) -> None:
    served = serve(reply({}), reply({}))
    for _request in range(2):
        METHODS[method](served.client)
    first, second = served.requests
    sent = {"Accept": "application/json", "User-Agent": f"clouddb.control/{session.COLLECTION_VERSION}"}
    sent["Content-Type"] = "application/json" if method == "POST" else ""
    assert first.method == method and first.headers.get_all("Authorization") == [f"Bearer {API_KEY}"]
    assert {name: first.headers.get(name, "") for name in sent} == sent
    first_id, second_id = (request.headers["X-Request-ID"] for request in (first, second))
    assert str(uuid.UUID(first_id)) == first_id != second_id


SPECIAL = ["a/b", "a b", "a+b", "a%2Fb", "a?b#c", "a&b=c", "é日本", "..;", "2026-11-21T08:00:00.123456+02:00"]


@pytest.mark.parametrize("segment", SPECIAL)
def test_path_segments_are_encoded(serve: Serve, segment: str) -> None:
    served = serve(reply({}))
    served.client.get("projects", segment, "operations")
    assert served.targets == [f"/projects/{quote(segment, safe='')}/operations"]
    assert [unquote(part) for part in served.requests[0].path.split("/")][4] == segment


@pytest.mark.parametrize("value", [*SPECIAL, "=&=", "%", "\t\n", "a" * 3000])
def test_query_values_are_encoded(serve: Serve, value: str) -> None:
    served = serve(reply({}))
    served.client.get("projects", query={"cursor": value, "limit": 3, "tag": ["a", "b"]})
    query = [("cursor", value), ("limit", "3"), ("tag", "a"), ("tag", "b")]
    assert (served.requests[0].path, served.requests[0].query) == ("/api/v2/projects", query)


# Errors


@pytest.mark.parametrize(
    "status, kind",
    [(401, "unauthorized"), (404, "not_found"), *((status, "http_status") for status in (302, 400, 409, 423, 503))],
)
def test_an_error_status_raises_a_typed_error_with_details(serve: Serve, status: int, kind: str) -> None:
    body = {"message": "not today", "code": "NOT_TODAY", "request_id": "theirs-1"}
    failure = fails(serve(reply(body, status), api_retries=0), "GET").as_result()["failure"]
    expected = {"kind": kind, "method": "GET", "path": "/api_keys", "attempts": 1, "status": status}
    # What is sent with a redirect is no reason.
    assert failure == {**expected, **(body if status >= 400 else {"request_id": failure["request_id"]})}


@pytest.mark.parametrize(
    "method, earlier, hides",
    [("GET", HANG_UP, False), ("DELETE", HANG_UP, True), ("DELETE", reply({}, 502), True), ("DELETE", CUT_OFF, True), ("DELETE", NOT_NOW, False)],
)  # fmt: skip
def test_an_accepted_status_may_hide_an_earlier_attempt(serve: Serve, method: str, earlier: Reply, hides: bool) -> None:
    client = serve(earlier, reply({"message": "no"}, 404)).client
    with pytest.raises(errors.NotFound) if hides else nullcontext() as error:
        response = client.request(method, ["api_keys", "7"], accept={200, 404})
        assert (response.status, response.json, response.attempts) == (404, {"message": "no"}, 2)
    assert error is None or (error.value.attempts, error.value.may_have_acted) == (2, True)


NO_JSON = b"no JSON"
PACKED_TWICE = zlib.compress(gzip.compress(NO_JSON))


@pytest.mark.parametrize(
    "sent, problem",
    [
        (reply(b" \r\n"), "its body is empty"),
        (reply(b"\n  <html>"), "it is an HTML page, not JSON"),
        *((reply(body), "its body is not valid JSON") for body in (b'{"projects": [', b'{"name": "\xff"}')),
        (reply(b"[" * 100_000), "too many levels"),
        (reply(b'{"{{ x }}": 1}'), "cannot be the name of a field"),
        # As br and zstd in https://github.com/psf/requests/issues/4525, but no library decodes this one.
        (reply(b"\x1f\x9d\x90{", Content_Encoding="compress"), "which was not asked for. A proxy may ignore"),
        # These are known, and not blamed.
        (reply(NO_JSON, Content_Encoding="identity"), "its body is not valid JSON"),
        (reply(gzip.compress(NO_JSON), Content_Encoding="GZIP"), "its body is not valid JSON"),
        (reply(PACKED_TWICE, Content_Encoding="gzip, deflate"), "its body is not valid JSON"),
        # https://github.com/ansible/ansible/issues/82780
        (reply({}, **{f"X_{number}": "x" for number in range(150)}), "more than 100 headers. A proxy may add headers."),
        (reply({}, X_Debug="x" * 70_000), "more than 65536 bytes when reading header line. A proxy may add"),
    ],
)
def test_what_cannot_be_read(serve: Serve, sent: Reply, problem: str) -> None:
    served = serve(sent)
    error = fails(served, "POST")
    assert (problem in str(error), error.kind) == (
        True,
        "unreachable" if "header" in problem else "unexpected_response",
    )
    assert (error.attempts, error.transient, error.may_have_acted) == (1, False, True)
    assert error.details["request_id"] == served.requests[0].headers["X-Request-ID"]


# Secrets


ERROR = "cannot connect to postgres://u:{}@h/db"


def test_secrets_in_responses_are_masked_unless_asked_for(serve: Serve) -> None:
    shown = {"id": "a", "error": ERROR.format("********"), "password": "********", "echo": "********"}
    sent = {"id": "a", "error": ERROR.format("PW"), "password": "PW", "echo": API_KEY}
    client = serve(*[reply(sent)] * 3).client
    assert [each.get("x").json for each in (client, client.with_secrets(), client)] == [shown, sent, shown]


@pytest.mark.parametrize(
    "status, body, quoted",
    [
        (400, {"message": ERROR.format("PW")}, ERROR.format("********")),
        (400, {"data": {"password": "PW"}}, "data: password: ********"),
        (200, {ERROR.format("PW") + "{{": 1}, ERROR.format("********")),
        (500, API_KEY, "********"),
    ],
)
def test_secrets_in_errors_are_masked(serve: Serve, status: int, body: Any, quoted: str) -> None:
    with pytest.raises((errors.StatusError, errors.UnexpectedResponse)) as error:
        serve(reply(body, status), api_retries=0).client.get("x")
    assert quoted in str(error.value.as_result())
    assert API_KEY not in repr(error.value.as_result()) and "PW" not in repr(error.value.as_result())
    assert error.value.__cause__ is None


# Clocks and deadlines


@pytest.mark.parametrize("status", [200, 404])
def test_service_now_follows_the_date_header(serve: Serve, status: int) -> None:
    served = serve(reply({}, status, Date="Sat, 21 Nov 2026 11:30:00 GMT"))
    assert (served.client.service_now(), served.client.knows_service_time) == (EPOCH, False)
    served.client.request("GET", ["projects"], accept={status})
    assert served.client.service_now() == EPOCH + timedelta(hours=3, minutes=30)
    assert served.client.knows_service_time
    served.clock.sleep(60)
    assert served.client.service_now() == EPOCH + timedelta(hours=3, minutes=31)


@pytest.mark.parametrize(
    "date",
    ["", "yesterday", "Sat, 21 Nov 2026 11:30:00 -0000", "Sat, 99 Nov 2026 11:30:00 GMT", "Mon, 21 Dec 99999999999999999999 23:59:59 GMT"],
)  # fmt: skip
def test_an_unreadable_date_header_is_ignored(serve: Serve, date: str) -> None:
    served = serve(reply({}, Date=date))
    served.client.get("projects")
    assert (served.client.service_now(), served.client.knows_service_time) == (EPOCH, False)


@pytest.mark.parametrize("remaining, timeout", [(3.0, 3.0), (30.0, 12.5), (None, 12.5)])
def test_a_deadline_and_api_timeout_bound_each_request(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, remaining: float | None, timeout: float
) -> None:
    timeouts: list[float] = []
    send = HTTPAdapter.send

    def sending(*args: Any, timeout: float, **kwargs: Any) -> Any:
        timeouts.append(timeout)
        return send(*args, timeout=10, **kwargs)

    monkeypatch.setattr(HTTPAdapter, "send", sending)
    served = serve(reply({}), api_timeout=12.5)
    (until(served, remaining) if remaining else served.client).get("projects")
    assert timeouts == [timeout]


@pytest.mark.parametrize(
    "retries, seconds, attempts, out_of_time",
    [(False, 30.0, 1, False), (True, 30.0, 3, True), (True, 300.0, 6, False), (True, 5.0, 1, True)],
)
def test_attempts_with_a_deadline(
    serve: Serve, retries: bool, seconds: float, attempts: int, out_of_time: bool
) -> None:
    """An error says whether there was no time for a retry."""
    served = serve(*[reply({}, 503, Retry_After="10")] * attempts)
    with pytest.raises(errors.StatusError) as error:
        until(served, seconds, retries=retries).get("projects")
    assert (error.value.attempts, served.clock.pauses) == (attempts, [10.0] * (attempts - 1))
    assert error.value.out_of_time is out_of_time


# Which requests are retried


@pytest.mark.parametrize(
    "method, name",
    [
        *product(("GET", "POST"), SENT),
        *product(("PUT", "DELETE", "PATCH"), ("hang up", "503 of Varnish", "429", "302")),
    ],
)
def test_what_is_retried(serve: Serve, monkeypatch: pytest.MonkeyPatch, method: str, name: str) -> None:
    """GET, PUT and DELETE after a transient error, POST and PATCH only if the service did not act. None follows redirects."""
    sent, transient, acted = SENT[name]
    attempts = 2 if transient and (method not in ("POST", "PATCH") or not acted) else 1
    served = serve(*[sent] * attempts, api_timeout=60, api_retries=1)
    if sent.hangs:
        time_out_when_hanging(monkeypatch, served.service)
    with pytest.raises(errors.RequestFailed) as raised:
        served.client.request(method, ["api_keys"], body={"key_name": "ci"})
    error, is_broken = raised.value, sent.hangs or sent in BROKEN.values()
    assert (error.attempts, error.transient, error.may_have_acted) == (attempts, transient, acted)
    assert error.details.get("status") == (None if is_broken else int(sent.raw.split()[1]))
    assert len(served.clock.pauses) == attempts - 1


@each_method
def test_a_retry_is_the_same_request(serve: Serve, method: str) -> None:
    served = serve(reply({}, 429), NOT_NOW, OK)
    response = METHODS[method](served.client)
    assert (response.json, response.attempts, len(served.clock.pauses)) == ({"done": True}, 3, 2)
    first, *others = ((sorted(request.headers.items()), request.json) for request in served.requests)
    assert others == [first, first]


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


@pytest.mark.parametrize("retry_locked, attempts", [(True, 2), (False, 1)])
@pytest.mark.parametrize("refusal, not_ready", [(reply({}, 423), False), (NOT_READY, True)])
def test_what_is_locked_or_not_ready_is_retried_unless_the_caller_waits(
    serve: Serve, refusal: Reply, not_ready: bool, retry_locked: bool, attempts: int
) -> None:
    served = serve(*[refusal] * attempts, api_retries=1)
    with pytest.raises(errors.StatusError) as error:
        served.client.request("POST", ["projects"], retry_locked=retry_locked)
    assert error.value.attempts == attempts
    assert (error.value.not_ready, error.value.transient, error.value.may_have_acted) == (not_ready, True, False)


@each_method
def test_a_service_that_comes_back_is_reached(serve: Serve, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    served = serve(OK)
    connect, refused = socket.socket.connect, [ConnectionRefusedError(111, "Connection refused"), socket.timeout()]
    unknown = socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    def connecting(*args: Any) -> None:
        if refused:
            raise refused.pop(0)
        connect(*args)

    monkeypatch.setattr(socket.socket, "connect", connecting)
    lookups = mock.Mock(wraps=socket.getaddrinfo, side_effect=[unknown, *[mock.DEFAULT] * 3])
    monkeypatch.setattr(socket, "getaddrinfo", lookups)
    assert METHODS[method](served.client).attempts == 4


@pytest.mark.parametrize(
    "headers, body", [({"Content_Length": "100"}, b'{"mess'), ({"Content_Encoding": "gzip"}, b"not gzip")]
)
def test_the_status_counts_if_the_body_of_an_error_cannot_be_read(serve: Serve, headers: Any, body: bytes) -> None:
    refused, denied, failed = (reply(body, status, **headers) for status in (429, 401, 500))
    assert serve(refused, OK).client.post("api_keys", body={"key_name": "x"}).attempts == 2
    assert isinstance(fails(serve(denied), "POST"), errors.Unauthorized)
    assert fails(serve(failed), "POST").details["status"] == 500


# Length of the pauses


@pytest.mark.parametrize("error", [reply({}, 503), HANG_UP], ids=["status", "hang up"])
def test_backoff_doubles_with_full_jitter_up_to_its_maximum(serve: Serve, full_jitter: Bounds, error: Reply) -> None:
    served = serve(*[error] * 8, OK, api_retries=8)
    served.client.get("projects")
    assert full_jitter == [(0, 0.5), (0, 1.0), (0, 2.0), (0, 4.0), (0, 8.0), (0, 16.0), (0, 20.0), (0, 20.0)]
    assert served.clock.pauses == [bound for _low, bound in full_jitter]


def test_backoff_at_a_rate_limit_is_longer_and_adds_to_retry_after(serve: Serve, full_jitter: Bounds) -> None:
    serve(*[reply({}, 429)] * 4, HANG_UP, OK).client.get("projects")
    assert full_jitter == [(3.75, 5.0), (7.5, 10.0), (15.0, 20.0), (22.5, 30.0), (0, 8.0)]
    served = serve(*[reply({}, 429, Retry_After="1")] * 4, OK)
    served.client.get("projects")
    assert served.clock.pauses == [1 + 2, 1 + 10, 1 + 20, 1 + 30]


@pytest.mark.parametrize(
    "retry_after, pause",
    [
        *(("0", 0), (" 7 ", 7), ("61", 60), ("9" * 400, 60)),
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
    serve: Serve, full_jitter: Bounds, method: str, status: int, retry_after: str, pause: float
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
    headers = served.requests[0].headers
    assert (response.json, response.attempts, headers["Accept-Encoding"]) == ({"done": True}, 1, "gzip")


def test_the_session_file_imports_without_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "requests", None)
    monkeypatch.delitem(sys.modules, session.__name__)
    monkeypatch.setattr(http, "session", session)
    without = importlib.import_module(session.__name__)
    assert "requests" in str(without.REQUESTS_IMPORT_ERROR).splitlines()[-1]
    assert without.Session is object
    assert session.REQUESTS_IMPORT_ERROR is None


def test_the_trace_has_a_line_for_each_attempt(serve: Serve) -> None:
    served = serve(reply({}, 429), HANG_UP, OK, OK, api_timeout=60)
    trace: list[str] = []
    client = Client(served.client.connection, served.clock.clock, trace=trace)
    other = "another-key-0123456789abcdef"
    query = {"limit": 5, "cursor": "c", "org_id": [other, "org\n1"], "search": ["a", "b"]}
    client.request("GET", ["keys", other, API_KEY], query=query)
    client.with_api_key(other).request("GET", ["keys", other, API_KEY], query=query)
    ids = [request.headers["X-Request-ID"] for request in served.requests]
    lines = [re.sub(r"\d+\.\d{3} s", "0 s", line).split(" ") for line in trace]
    assert [line[2] for line in lines] == ["429", "ConnectionError", "200", "200"]
    assert [line[-1] for line in lines] == ids
    assert API_KEY not in str(trace)
    shown = "/keys/********/********?limit=5&cursor=********&org_id=********&org_id=org%0A1&search=********"
    assert lines[-1][:2] == ["GET", shown]


def test_the_trace_has_the_duration_of_an_attempt(serve: Serve) -> None:
    served, trace = serve(OK), list[str]()
    times = iter([10.0, 12.5])
    clock = served.clock.clock._replace(monotonic=lambda: next(times))
    Client(served.client.connection, clock, trace=trace).get("x")
    assert trace == [f"GET /x 200 2.500 s {served.requests[0].headers['X-Request-ID']}"]
