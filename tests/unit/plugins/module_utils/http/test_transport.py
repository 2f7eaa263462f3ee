# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is sent again and when, over real sockets, on a clock whose pauses take no time."""

from __future__ import annotations

import gzip
import importlib.util
import random
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Callable

import pytest
from urllib3.exceptions import MaxRetryError, ProtocolError, ProxyError, SSLError

from ansible_collections.clouddb.control.plugins.module_utils._errors import (
    RequestFailed,
    ServiceUnreachable,
    StatusError,
    UnexpectedResponse,
)
from ansible_collections.clouddb.control.plugins.module_utils._http import body as bounded_answer
from ansible_collections.clouddb.control.plugins.module_utils._http import client as client_file
from ansible_collections.clouddb.control.plugins.module_utils._http import transport
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.tests.unit.support.scripted_client import API_KEY, Scripted, Serve
from ansible_collections.clouddb.control.tests.unit.support.scripted_service import HANG_UP, RESET, Reply, reply

METHODS: dict[str, Callable[[Client], Any]] = {
    "GET": lambda client: client.get("api_keys"),
    "POST": lambda client: client.post("api_keys", body={"key_name": "ci"}),
    "DELETE": lambda client: client.delete("api_keys", 7),
}
GOOD = reply({"good": True})
TRUNCATED = reply(b'{"good": ', Content_Length="100")
BROKEN_CHUNKS = Reply(b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"goo\r\n')
BAD_CHUNK = Reply(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n{}\r\n0\r\n\r\n")
NO_HTTP = Reply(b"SSH-2.0-OpenSSH_9.2\r\n")
BROKEN = {
    "hang up": HANG_UP,
    "reset": RESET,
    "truncated body": TRUNCATED,
    "truncated error": reply(b'{"mess', 500, Content_Length="100"),
    "chunks that end early": BROKEN_CHUNKS,
    "a chunk without a size": BAD_CHUNK,
    "no http": NO_HTTP,
}
each_broken = pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
each_method = pytest.mark.parametrize("method", METHODS)
idempotent = pytest.mark.parametrize("method", ["GET", "DELETE"])


@pytest.fixture
def full_jitter(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, float]]:
    """The bounds of each random pause, which then is as long as can be."""
    bounds: list[tuple[float, float]] = []

    def uniform(low: float, high: float) -> float:
        bounds.append((low, high))
        return high

    monkeypatch.setattr(random, "uniform", uniform)
    return bounds


@contextmanager
def nobody_listening() -> Iterator[str]:
    """A base URL whose port refuses connections."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{reserved.getsockname()[1]}"


def fails(served: Scripted, method: str) -> RequestFailed:
    with pytest.raises(RequestFailed) as error:
        METHODS[method](served.client)
    assert API_KEY not in repr(error.value.as_result())
    return error.value


# What is sent again


@idempotent
@pytest.mark.parametrize("status", [423, 429, 500, 502, 503, 504])
def test_reading_and_revoking_are_repeated_after_a_transient_status(serve: Serve, method: str, status: int) -> None:
    served = serve(reply({}, status), reply({}, status), GOOD)
    response = METHODS[method](served.client)
    assert (response.json, response.attempts, len(served.clock.pauses)) == ({"good": True}, 3, 2)


@idempotent
@each_broken
def test_reading_and_revoking_are_repeated_after_a_broken_answer(serve: Serve, method: str, broken: Reply) -> None:
    served = serve(broken, broken, GOOD)
    response = METHODS[method](served.client)
    assert (response.json, response.attempts, len(served.clock.pauses)) == ({"good": True}, 3, 2)


@pytest.mark.parametrize("status", [423, 429, 503])
def test_creating_is_repeated_after_a_refusal(serve: Serve, status: int) -> None:
    served = serve(reply({}, status), GOOD)
    assert METHODS["POST"](served.client).attempts == 2
    assert [request.json for request in served.requests] == [{"key_name": "ci"}] * 2


@pytest.mark.parametrize("status", [500, 502, 504])
def test_creating_is_not_repeated_when_the_service_may_have_acted(serve: Serve, status: int) -> None:
    served = serve(reply({"message": "oh"}, status))
    error = fails(served, "POST")
    assert (error.attempts, error.may_have_acted, error.transient) == (1, True, True)
    assert served.clock.pauses == []


@each_broken
def test_creating_is_not_repeated_after_a_broken_answer(serve: Serve, broken: Reply) -> None:
    served = serve(broken)
    error = fails(served, "POST")
    assert isinstance(error, ServiceUnreachable)
    assert (error.attempts, error.may_have_acted, error.transient) == (1, True, True)
    assert served.clock.pauses == []


@each_method
@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 409, 410, 422, 501, 505])
def test_a_status_that_will_not_change_is_final(serve: Serve, method: str, status: int) -> None:
    served = serve(reply({}, status))
    error = fails(served, method)
    assert (error.attempts, error.transient, len(served.requests)) == (1, False, 1)
    assert served.clock.pauses == []


@each_method
def test_a_connection_that_is_refused_is_tried_again(serve: Serve, method: str) -> None:
    with nobody_listening() as base_url:
        served = serve(base_url=base_url, api_retries=3)
        error = fails(served, method)
    assert isinstance(error, ServiceUnreachable)
    assert str(error).startswith(f"{base_url} did not answer {method} /api_keys")
    assert "no connection could be made (Connection refused) (tried 4 times)" in str(error)
    assert (error.attempts, error.may_have_acted, error.transient, len(served.clock.pauses)) == (4, False, True, 3)


@each_method
def test_a_service_that_comes_up_meanwhile_is_reached(
    serve: Serve, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = serve(GOOD)
    connect = socket.socket.connect
    faults = [ConnectionRefusedError(111, "Connection refused"), socket.timeout("timed out")]

    def connecting(*args: Any) -> None:
        if faults:
            raise faults.pop(0)
        connect(*args)

    monkeypatch.setattr(socket.socket, "connect", connecting)
    assert METHODS[method](served.client).attempts == 3


def test_a_connection_that_takes_too_long_was_never_made(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    def connecting(*args: Any) -> None:
        raise socket.timeout("timed out")

    monkeypatch.setattr(socket.socket, "connect", connecting)
    error = fails(serve(api_retries=1), "POST")
    assert "no connection within api_timeout (tried 2 times)" in str(error)
    assert (error.may_have_acted, error.transient) == (False, True)


def test_a_name_that_is_not_known_is_no_connection(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    def lookup(*args: Any, **kwargs: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    error = fails(serve(base_url="https://control.example.com", api_retries=1), "POST")
    assert "no connection could be made (Name or service not known) (tried 2 times)" in str(error)
    assert not error.may_have_acted


@pytest.mark.parametrize("method, attempts", [("GET", 2), ("DELETE", 2), ("POST", 1)])
def test_silence_ends_with_api_timeout(serve: Serve, method: str, attempts: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as never_accepts:
        base_url = f"http://127.0.0.1:{never_accepts.getsockname()[1]}"
        error = fails(serve(base_url=base_url, api_timeout=0.01, api_retries=1), method)
    path = "/api_keys/7" if method == "DELETE" else "/api_keys"
    assert str(error).startswith(f"{base_url} did not answer {method} {path}: no whole answer within api_timeout")
    assert (error.attempts, error.may_have_acted, error.transient) == (attempts, True, True)
    assert len(error.details.pop("request_id")) == 36
    assert error.details == {"method": method, "path": path, "attempts": attempts}


@pytest.mark.parametrize("slow_from", [0, 20, 200], ids=["status line", "headers", "body"])
@pytest.mark.parametrize("method, attempts", [("GET", 2), ("POST", 1)])
def test_an_answer_that_drips_in_ends_with_api_timeout(
    serve: Serve, method: str, attempts: int, slow_from: int
) -> None:
    raw = b"HTTP/1.1 200 OK\r\nX-Filler: %s\r\nContent-Length: 1000\r\n\r\n%s" % (b"x" * 100, b" " * 1000)
    served = serve(*[Reply(raw, slow_from=slow_from)] * attempts, api_timeout=0.1, api_retries=1)
    error = fails(served, method)
    assert "no whole answer within api_timeout" in str(error)
    assert (error.attempts, error.may_have_acted, error.transient) == (attempts, True, True)


def test_a_slow_answer_that_comes_in_time_is_taken(serve: Serve) -> None:
    slow = Reply(b'HTTP/1.1 200 OK\r\nContent-Length: 14\r\nConnection: close\r\n\r\n{"good": true}', slow_from=60)
    served = serve(slow, GOOD)
    assert [served.client.get("projects").attempts for _request in range(2)] == [1, 1]


@each_method
def test_an_answer_without_end_is_given_up(serve: Serve, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_answer, "MAX_RESPONSE_SIZE", 2**20)
    monkeypatch.setattr(client_file, "MAX_RESPONSE_SIZE", 2**20)
    served = serve(reply(b" " * (2**20 + 1)))
    error = fails(served, method)
    path = "/api_keys/7" if method == "DELETE" else "/api_keys"
    assert str(error) == f"the service's answer to {method} {path} is not understood: it is larger than 1 MiB"
    assert isinstance(error, UnexpectedResponse)
    assert error.details == {
        "method": method,
        "path": path,
        "attempts": 1,
        "request_id": served.requests[0].headers["X-Request-ID"],
    }
    assert (error.attempts, len(served.requests)) == (1, 1)


# How often


@each_method
@pytest.mark.parametrize("retries", [0, 1, 3])
def test_gives_up_after_api_retries_further_tries(serve: Serve, method: str, retries: int) -> None:
    served = serve(*[reply({"message": "later"}, 503)] * (retries + 1), api_retries=retries)
    error = fails(served, method)
    assert isinstance(error, StatusError)
    assert error.as_result()["failure"]["attempts"] == retries + 1
    assert len(served.clock.pauses) == retries
    assert ("tried" in str(error)) == (retries > 0)


@idempotent
@each_broken
def test_gives_up_after_broken_answers_too(serve: Serve, method: str, broken: Reply) -> None:
    error = fails(serve(*[broken] * 3, api_retries=2), method)
    assert (error.attempts, error.may_have_acted, error.transient) == (3, True, True)
    assert "(tried 3 times)" in str(error)
    assert not any(word in str(error) for word in ("object at 0x", "Max retries", "HTTPConnectionPool", "Traceback"))


def test_faults_of_different_kinds_count_together(serve: Serve) -> None:
    served = serve(HANG_UP, reply({}, 429), TRUNCATED, reply({}, 404))
    error = fails(served, "GET")
    assert (error.attempts, len(served.clock.pauses)) == (4, 3)


def test_the_next_request_has_all_its_tries_again(serve: Serve) -> None:
    served = serve(HANG_UP, GOOD, HANG_UP, GOOD, api_retries=1)
    assert [served.client.get("projects").attempts for _request in range(2)] == [2, 2]


@idempotent
def test_all_tries_of_a_request_have_one_id(serve: Serve, method: str) -> None:
    served = serve(HANG_UP, reply({}, 500), GOOD)
    METHODS[method](served.client)
    assert len({request.headers["X-Request-ID"] for request in served.requests}) == 1
    assert {request.headers["Authorization"] for request in served.requests} == {f"Bearer {API_KEY}"}


# How long the pauses are


@pytest.mark.parametrize("fault", [reply({}, 503), HANG_UP], ids=["status", "hang up"])
def test_pauses_double_with_full_jitter_up_to_their_bound(
    serve: Serve, full_jitter: list[tuple[float, float]], fault: Reply
) -> None:
    served = serve(*[fault] * 8, GOOD, api_retries=8)
    served.client.get("projects")
    assert full_jitter == [(0, 0.5), (0, 1.0), (0, 2.0), (0, 4.0), (0, 8.0), (0, 16.0), (0, 20.0), (0, 20.0)]
    assert served.clock.pauses == [bound for _low, bound in full_jitter]


def test_pauses_at_a_rate_limit_last_until_it_lets_requests_through(
    serve: Serve, full_jitter: list[tuple[float, float]]
) -> None:
    served = serve(*[reply({}, 429)] * 4, HANG_UP, GOOD)
    served.client.get("projects")
    assert full_jitter == [(3.75, 5.0), (7.5, 10.0), (15.0, 20.0), (22.5, 30.0), (0, 8.0)]


def test_who_is_refused_again_at_the_time_it_was_told_stays_away_longer(
    serve: Serve, full_jitter: list[tuple[float, float]]
) -> None:
    served = serve(*[reply({}, 429, Retry_After="1")] * 4, GOOD)
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
    ids=["none", "seconds", "spaces", "bound", "too long", "far too long", "date to come", "date past"],
)
def test_retry_after_is_honoured_and_clamped(serve: Serve, status: int, retry_after: str, pause: float) -> None:
    served = serve(reply({}, status, Retry_After=retry_after), GOOD)
    served.client.get("projects")
    assert served.clock.pauses == [pause]


def test_a_date_counts_from_now(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    # Sat, 21 Nov 2026 08:00:00 GMT
    monkeypatch.setattr("time.time", lambda: 1795248000.0)
    served = serve(reply({}, 503, Retry_After="Sat, 21 Nov 2026 08:00:42 GMT"), GOOD)
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
        "very long number",
        "half a date",
        "absurd year",
        "exponent",
        "nan",
        "not ascii",
    ],
)
def test_an_unreadable_retry_after_falls_back_to_the_growing_pauses(
    serve: Serve, full_jitter: list[tuple[float, float]], retry_after: str
) -> None:
    served = serve(reply({}, 503, Retry_After=retry_after), GOOD)
    served.client.get("projects")
    assert served.clock.pauses == [0.5]


def test_creating_honours_retry_after_too(serve: Serve) -> None:
    served = serve(reply({}, 429, Retry_After="9"), GOOD)
    METHODS["POST"](served.client)
    assert served.clock.pauses == [9]


# Bodies


@pytest.mark.parametrize(
    "raw",
    [
        b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\n{"good\r\n8\r\n": true}\r\n0\r\n\r\n',
        b'HTTP/1.0 200 OK\r\n\r\n{"good": true}',
        b'HTTP/1.1 200 OK\r\nContent-Encoding: identity\r\nContent-Length: 14\r\n\r\n{"good": true}',
    ],
    ids=["chunks", "until the connection ends", "not encoded"],
)
def test_reads_a_whole_body_however_it_comes(serve: Serve, raw: bytes) -> None:
    assert serve(Reply(raw)).client.get("projects").json == {"good": True}


def test_reads_a_compressed_body(serve: Serve) -> None:
    served = serve(reply(gzip.compress(b'{"good": true}'), Content_Encoding="gzip"))
    assert served.client.get("projects").json == {"good": True}
    assert served.requests[0].headers["Accept-Encoding"] == "gzip"


@pytest.mark.parametrize(
    "body, encoding, says",
    [
        (gzip.compress(b'{"good": true}')[:-9], "gzip", "it ends too early"),
        (b'{"good": true}', "gzip", "incorrect header check"),
        (b'{"good": true}', "br", "the answer is compressed with br, though only gzip was asked for"),
    ],
    ids=["half", "not compressed", "another encoding"],
)
def test_a_body_that_can_not_be_unpacked_is_a_broken_one(serve: Serve, body: bytes, encoding: str, says: str) -> None:
    broken = reply(body, Content_Encoding=encoding)
    assert serve(broken, GOOD).client.get("projects").attempts == 2
    error = fails(serve(broken), "POST")
    assert says in str(error)
    assert isinstance(error, ServiceUnreachable)


def test_a_few_bytes_that_unpack_to_too_many_are_given_up(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_answer, "MAX_RESPONSE_SIZE", 2**20)
    served = serve(reply(gzip.compress(b" " * (2**20 + 1)), Content_Encoding="gzip"))
    error = fails(served, "GET")
    assert isinstance(error, UnexpectedResponse)
    assert (error.attempts, len(served.requests)) == (1, 1)


def test_as_many_bytes_as_are_allowed_are_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_answer, "MAX_RESPONSE_SIZE", 1000)
    assert bounded_answer.unpacked(gzip.compress(b"x" * 1000), "gzip") == b"x" * 1000
    with pytest.raises(bounded_answer.ResponseTooLarge, match="more than 1000 bytes"):
        bounded_answer.unpacked(gzip.compress(b"x" * 1001), "gzip")


def test_without_requests_the_file_can_still_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "requests", None)
    spec = importlib.util.spec_from_file_location(f"{transport.__package__}.without_requests", transport.__file__)
    assert spec and spec.loader
    without = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(without)
    assert "requests" in str(without.REQUESTS_IMPORT_ERROR).splitlines()[-1]
    assert transport.REQUESTS_IMPORT_ERROR is None


def test_a_body_that_can_not_be_decoded_is_a_broken_one(serve: Serve) -> None:
    served = serve(reply({}, 503), reply(b"no gzip", Content_Encoding="gzip"), reply({"good": True}))
    assert served.client.get("projects").attempts == 3
    first, *others = (sorted(request.headers.items()) for request in served.requests)
    assert others == [first, first]


def test_the_tries_of_a_body_that_can_not_be_decoded_are_counted(serve: Serve) -> None:
    served = serve(reply({}, 503), reply(b"no gzip", Content_Encoding="gzip"), api_retries=1)
    with pytest.raises(ServiceUnreachable) as raised:
        served.client.get("projects")
    assert raised.value.attempts == 2


def test_a_post_whose_answer_can_not_be_decoded_is_not_sent_again(serve: Serve) -> None:
    served = serve(reply(b"no gzip", Content_Encoding="gzip"))
    with pytest.raises(ServiceUnreachable) as raised:
        served.client.post("api_keys", body={})
    assert raised.value.may_have_acted
    assert len(served.requests) == 1


# What libraries say


def wrapped(reason: Exception) -> MaxRetryError:
    return MaxRetryError(None, "/api_keys", reason)  # type: ignore[arg-type]


def test_a_tunnel_that_a_proxy_refuses_was_never_sent() -> None:
    refused = wrapped(ProxyError("Cannot connect to proxy.", OSError("Tunnel connection failed: 403 Forbidden")))
    assert transport.is_never_sent(refused)
    assert not transport.is_never_sent(wrapped(ProxyError("Cannot connect to proxy.", OSError("Connection reset"))))
    assert transport.describe_fault(refused) == "the connection broke (Tunnel connection failed: 403 Forbidden)"


def test_a_certificate_that_urllib3_itself_finds_wrong_needs_no_bundle() -> None:
    # urllib3 1 compares the names itself, by a class of its own.
    mismatch = type("CertificateError", (ValueError,), {})("hostname 'a' doesn't match 'b'")
    error = wrapped(SSLError(mismatch))
    assert transport.is_untrusted_certificate(error)
    assert transport.is_wrong_certificate(error)
    assert transport.describe_fault(error) == "its certificate is not trusted (hostname 'a' doesn't match 'b')"


def test_the_text_of_the_innermost_error_counts() -> None:
    broken = ProtocolError("Connection broken.", ConnectionResetError(104, "Connection reset by peer"))
    assert transport.describe_fault(wrapped(broken)) == "the connection broke (Connection reset by peer)"
    assert transport.describe_fault(wrapped(ProtocolError())) == "the connection broke (ProtocolError)"
    assert transport.describe_fault(KeyError("odd")) == "unexpected KeyError ('odd')"


def test_a_post_that_may_have_been_sent_is_given_up_whatever_the_error() -> None:
    # urllib3 itself takes only some errors for a reason not to send a POST again.
    broken = SSLError("EOF occurred in violation of protocol")
    retries = transport.FaultRetry.with_tries(3, lambda seconds: None)
    with pytest.raises(transport.TriedInVain) as given_up:
        retries.increment("POST", "/api_keys", error=broken)
    assert (given_up.value.attempts, given_up.value.reason) == (1, broken)
    assert retries.increment("GET", "/api_keys", error=broken).history
