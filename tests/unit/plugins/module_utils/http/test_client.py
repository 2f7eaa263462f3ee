# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The client: the requests that it sends, and the result or the error of each response."""

from __future__ import annotations

import gzip
import uuid
import zlib
from datetime import timedelta
from typing import Any
from urllib.parse import quote, unquote

import pytest
from requests.adapters import HTTPAdapter

from ansible_collections.clouddb.control.plugins.module_utils._clock import Deadline
from ansible_collections.clouddb.control.plugins.module_utils._http.errors import (
    NotFound,
    StatusError,
    UnexpectedResponse,
)
from ansible_collections.clouddb.control.plugins.module_utils._http.session import COLLECTION_VERSION
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import EPOCH
from ansible_collections.clouddb.control.tests.unit.support.scripted_client import API_KEY, METHODS, Serve, each_method
from ansible_collections.clouddb.control.tests.unit.support.scripted_service import (
    CUT_OFF,
    HANG_UP,
    NOT_NOW,
    Reply,
    reply,
)

# Requests


@each_method
def test_sends_the_documented_headers(serve: Serve, method: str) -> None:
    served = serve(reply({}), reply({}))
    for _request in range(2):
        METHODS[method](served.client)
    first, second = served.requests
    assert first.method == method
    assert first.headers.get_all("Authorization") == [f"Bearer {API_KEY}"]
    assert first.headers["Accept"] == "application/json"
    assert first.headers["User-Agent"] == f"clouddb.control/{COLLECTION_VERSION}"
    assert str(uuid.UUID(first.headers["X-Request-ID"])) == first.headers["X-Request-ID"]
    assert first.headers["X-Request-ID"] != second.headers["X-Request-ID"]
    assert first.headers["Content-Type"] == ("application/json" if method == "POST" else None)


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
    assert served.requests[0].query == [("cursor", value), ("limit", "3"), ("tag", "a"), ("tag", "b")]
    assert served.requests[0].path == "/api/v2/projects"


@each_method
@pytest.mark.parametrize("status", [302, 307, 308])
def test_redirects_are_not_followed(serve: Serve, method: str, status: int) -> None:
    elsewhere = serve()
    served = serve(reply({}, status, Location=f"{elsewhere.service.base_url}/projects"))
    with pytest.raises(StatusError) as error:
        METHODS[method](served.client)
    assert elsewhere.requests == []
    assert (len(served.requests), error.value.transient, error.value.may_have_acted) == (1, False, True)


# Errors


def failed(serve: Serve, response: Any, method: str = "GET", **options: Any) -> StatusError:
    with pytest.raises(StatusError) as error:
        METHODS[method](serve(response, **{"api_retries": 0, **options}).client)
    return error.value


@pytest.mark.parametrize(
    "status, kind",
    [(401, "unauthorized"), (404, "not_found"), *((status, "http_status") for status in (302, 400, 409, 423, 503))],
)
def test_an_error_status_raises_a_typed_error_with_details(serve: Serve, status: int, kind: str) -> None:
    body = {"message": "not today", "code": "NOT_TODAY", "request_id": "theirs-1"}
    error = failed(serve, reply(body, status))
    failure = error.as_result()["failure"]
    expected = {"kind": kind, "method": "GET", "path": "/api_keys", "attempts": 1, "status": status}
    # What is sent with a redirect is no reason.
    assert failure == {**expected, **(body if status >= 400 else {"request_id": failure["request_id"]})}


@pytest.mark.parametrize(
    "method, earlier, hides",
    [("GET", HANG_UP, False), ("DELETE", HANG_UP, True), ("DELETE", reply({}, 502), True), ("DELETE", CUT_OFF, True), ("DELETE", NOT_NOW, False)],
)  # fmt: skip
def test_an_accepted_status_may_hide_what_an_earlier_attempt_has_done(
    serve: Serve, method: str, earlier: Reply, hides: bool
) -> None:
    served = serve(earlier, reply({"message": "no"}, 404))
    if hides:
        with pytest.raises(NotFound) as error:
            served.client.request(method, ["api_keys", "7"], accept={200, 404})
        assert (error.value.attempts, error.value.may_have_acted) == (2, True)
    else:
        response = served.client.request(method, ["api_keys", "7"], accept={200, 404})
        assert (response.status, response.json, response.attempts) == (404, {"message": "no"}, 2)


@pytest.mark.parametrize(
    "body, problem",
    [
        (b" \r\n", "its body is empty"),
        (b"\n  <html>", "it is an HTML page, not JSON"),
        (b'{"projects": [', "its body is not valid JSON"),
        (b'{"name": "\xff"}', "its body is not valid JSON"),
        (b"[" * 100_000, "too many levels"),
        (b'{"{{ x }}": 1}', "cannot be the name of a field"),
    ],
)
def test_a_body_that_is_not_json_raises_unexpected_response(serve: Serve, body: bytes, problem: str) -> None:
    served = serve(reply(body))
    with pytest.raises(UnexpectedResponse) as error:
        served.client.post("api_keys", body={})
    assert problem in str(error.value)
    assert (error.value.attempts, error.value.transient, error.value.may_have_acted) == (1, False, True)
    assert error.value.details["request_id"] == served.requests[0].headers["X-Request-ID"]


def test_an_encoding_that_was_not_asked_for(serve: Serve) -> None:
    """As br and zstd in https://github.com/psf/requests/issues/4525, but no library decodes this one."""
    with pytest.raises(UnexpectedResponse) as error:
        serve(reply(b"\x1f\x9d\x90{", Content_Encoding="compress")).client.get("projects")
    assert "encoded with 'compress', which was not asked for. A proxy may ignore Accept-Encoding." in str(error.value)


@pytest.mark.parametrize("encoding", ["identity", "GZIP", "gzip, deflate"])
def test_an_encoding_that_is_known_is_not_blamed(serve: Serve, encoding: str) -> None:
    body: bytes = b"no JSON"
    for each in encoding.lower().split(", "):
        body = {"gzip": gzip.compress, "deflate": zlib.compress}.get(each, bytes)(body)
    with pytest.raises(UnexpectedResponse) as error:
        serve(reply(body, Content_Encoding=encoding)).client.get("projects")
    assert "its body is not valid JSON" in str(error.value)


# Secrets


ERROR = "cannot connect to postgres://u:{}@h/db"


def test_secrets_in_responses_are_masked_unless_asked_for(serve: Serve) -> None:
    shown = {"id": "a", "error": ERROR.format("********"), "password": "********", "echo": "********"}
    sent = {"id": "a", "error": ERROR.format("PW"), "password": "PW", "echo": API_KEY}
    client = serve(*[reply(sent)] * 3).client
    assert client.get("x").json == shown
    assert client.with_secrets().get("x").json == sent
    assert client.get("x").json == shown


@pytest.mark.parametrize(
    "status, body, quoted",
    [
        (400, {"message": ERROR.format("PW")}, ERROR.format("********")),
        (400, {"data": {"password": "PW"}}, "data: password: ********"),
        (200, {ERROR.format("PW") + "{{": 1}, ERROR.format("********")),
        *((401, {place: f"invalid key {API_KEY}!"}, "invalid key ********!") for place in ("message", "code")),
        (500, API_KEY, "********"),
    ],
)
def test_secrets_in_errors_are_masked(serve: Serve, status: int, body: Any, quoted: str) -> None:
    with pytest.raises((StatusError, UnexpectedResponse)) as error:
        serve(reply(body, status), api_retries=0).client.get("x")
    assert quoted in str(error.value.as_result())
    assert API_KEY not in repr(error.value.as_result()) and "PW" not in repr(error.value.as_result())
    assert error.value.__cause__ is None


# Clocks and deadlines


def record_timeouts(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Records the timeout of each request from now on."""
    recorded: list[Any] = []
    send = HTTPAdapter.send

    def sending(*args: Any, **kwargs: Any) -> Any:
        recorded.append(kwargs["timeout"])
        return send(*args, **{**kwargs, "timeout": 10})

    monkeypatch.setattr(HTTPAdapter, "send", sending)
    return recorded


@pytest.mark.parametrize("status", [200, 404])
def test_service_now_follows_the_date_header(serve: Serve, status: int) -> None:
    served = serve(reply({}, status, Date="Sat, 21 Nov 2026 11:30:00 GMT"))
    assert served.client.service_now() == EPOCH
    assert not served.client.knows_service_time
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
    assert served.client.service_now() == EPOCH
    assert not served.client.knows_service_time


@pytest.mark.parametrize("remaining, timeout", [(3.0, 3.0), (30.0, 12.5), (None, 12.5)])
def test_a_deadline_and_api_timeout_bound_each_request(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, remaining: float | None, timeout: float
) -> None:
    timeouts = record_timeouts(monkeypatch)
    served = serve(reply({}), api_timeout=12.5)
    client = served.client
    if remaining:
        client = client.with_deadline(Deadline.after(served.clock.clock, remaining))
    client.get("projects")
    assert timeouts == [timeout]


@pytest.mark.parametrize(
    "retries, seconds, attempts, pauses",
    [(False, 30.0, 1, []), (True, 30.0, 3, [10.0, 10.0]), (True, 300.0, 6, [10.0] * 5)],
)
def test_attempts_of_a_request_with_a_deadline(
    serve: Serve, retries: bool, seconds: float, attempts: int, pauses: list[float]
) -> None:
    served = serve(*[reply({}, 503, Retry_After="10")] * attempts)
    with pytest.raises(StatusError) as error:
        served.client.with_deadline(Deadline.after(served.clock.clock, seconds), retries=retries).get("projects")
    assert (error.value.attempts, served.clock.pauses) == (attempts, pauses)
