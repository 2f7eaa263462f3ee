# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The client: the requests that it sends, and the result or the error of each response."""

from __future__ import annotations

import uuid
from datetime import timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import pytest
from requests.adapters import HTTPAdapter

from ansible_collections.clouddb.control.plugins.module_utils._clock import Deadline
from ansible_collections.clouddb.control.plugins.module_utils._errors import (
    ClouddbError,
    NotFound,
    ServiceUnreachable,
    StatusError,
    Unauthorized,
    UnexpectedResponse,
)
from ansible_collections.clouddb.control.plugins.module_utils._http import session
from ansible_collections.clouddb.control.plugins.module_utils._http.client import MAX_WORKERS, Client
from ansible_collections.clouddb.control.plugins.module_utils._http.connection import Connection
from ansible_collections.clouddb.control.plugins.module_utils._version import COLLECTION_VERSION
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import EPOCH
from ansible_collections.clouddb.control.tests.unit.support.scripted_client import API_KEY, METHODS, Serve, each_method
from ansible_collections.clouddb.control.tests.unit.support.scripted_service import CERTIFICATE, HANG_UP, Reply, reply


@each_method
def test_sends_the_documented_headers(serve: Serve, method: str) -> None:
    served = serve(reply({}))
    METHODS[method](served.client)
    [request] = served.requests
    assert request.method == method
    assert request.headers["Authorization"] == f"Bearer {API_KEY}"
    assert request.headers["Accept"] == "application/json"
    assert request.headers["User-Agent"] == f"clouddb.control/{COLLECTION_VERSION}"
    assert str(uuid.UUID(request.headers["X-Request-ID"])) == request.headers["X-Request-ID"]
    assert len(request.headers.get_all("Authorization", [])) == 1


def test_each_request_has_its_own_id(serve: Serve) -> None:
    served = serve(*[reply({})] * 3)
    responses = [served.client.get("projects") for _request in range(3)]
    sent = [request.headers["X-Request-ID"] for request in served.requests]
    assert len(set(sent)) == 3
    assert [response.request_id for response in responses] == sent


def test_sends_a_body_as_json(serve: Serve) -> None:
    served = serve(reply({}))
    served.client.post("api_keys", body={"key_name": 'Ключ "ci" & \n'})
    [request] = served.requests
    assert request.headers["Content-Type"] == "application/json"
    assert request.json == {"key_name": 'Ключ "ci" & \n'}


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_sends_no_body_with_get_and_delete(serve: Serve, method: str) -> None:
    served = serve(reply({}))
    METHODS[method](served.client)
    assert served.requests[0].body == b""
    assert "Content-Type" not in served.requests[0].headers


def test_returns_the_json_of_the_response(serve: Serve) -> None:
    body = {"projects": [{"id": "p", "later": {"than": [1, None, True]}}]}
    assert serve(reply(body)).client.get("projects").json == body


SPECIAL = [
    "a/b",
    "a b",
    "a+b",
    "a:b",
    "a%2Fb",
    "a?b#c",
    "a&b=c",
    "é",
    "日本",
    "..;",
    "2026-11-21T08:00:00.123456+02:00",
]


@pytest.mark.parametrize("segment", SPECIAL)
def test_path_segments_are_encoded(serve: Serve, segment: str) -> None:
    served = serve(reply({}))
    served.client.get("projects", segment, "operations")
    assert served.targets == [f"/projects/{quote(segment, safe='')}/operations"]
    assert [unquote(part) for part in served.requests[0].path.split("/")][4] == segment


@pytest.mark.parametrize("value", [*SPECIAL, "=&=", "%", '"', "\\", "\t\n", "a" * 3000])
def test_query_values_are_encoded(serve: Serve, value: str) -> None:
    served = serve(reply({}))
    served.client.get("projects", query={"cursor": value, "limit": 3})
    assert served.requests[0].query == [("cursor", value), ("limit", "3")]
    assert served.requests[0].path == "/api/v2/projects"


def test_a_list_in_the_query_repeats_its_parameter(serve: Serve) -> None:
    served = serve(reply({}))
    served.client.get("projects", query={"tag": ["a", "b"]})
    assert served.requests[0].query == [("tag", "a"), ("tag", "b")]


@each_method
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(serve: Serve, method: str, status: int) -> None:
    elsewhere = serve()
    served = serve(reply({}, status, Location=f"{elsewhere.service.base_url}/projects"))
    with pytest.raises(StatusError, match="Redirects are not followed.*base_url") as error:
        METHODS[method](served.client)
    assert elsewhere.requests == []
    assert len(served.requests) == error.value.attempts == 1
    assert (error.value.transient, error.value.may_have_acted) == (False, True)


def test_a_netrc_entry_does_not_replace_the_key(serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password else\ndefault login somebody password else\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    served = serve(reply({}))
    served.client.get("projects")
    assert served.requests[0].headers.get_all("Authorization") == [f"Bearer {API_KEY}"]


def test_cookies_are_refused(serve: Serve) -> None:
    served = serve(reply({}, Set_Cookie="session=1; Path=/"), reply({}))
    served.client.get("projects")
    served.client.get("projects")
    assert "Cookie" not in served.requests[1].headers


def test_with_api_key_sends_the_other_key(serve: Serve) -> None:
    served = serve(reply({}), reply({}))
    served.client.with_api_key("another").get("projects")
    served.client.get("projects")
    assert [request.headers["Authorization"] for request in served.requests] == ["Bearer another", f"Bearer {API_KEY}"]


def test_proxies_of_the_environment_are_used(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = serve(reply({}))
    monkeypatch.setenv("http_proxy", proxy.service.base_url.replace("/api/v2", ""))
    client = serve(base_url="http://control.example.com/api/v2").client
    client.get("projects")
    assert proxy.requests[0].target == "http://control.example.com/api/v2/projects"


def test_no_proxy_bypasses_the_proxy(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    proxy, served = serve(), serve(reply({}))
    monkeypatch.setenv("http_proxy", proxy.service.base_url)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    served.client.get("projects")
    assert (len(served.requests), proxy.requests) == (1, [])


# Certificates


def record_setting(monkeypatch: pytest.MonkeyPatch, setting: str) -> list[Any]:
    """Records the value of this setting in each request from now on."""
    recorded: list[Any] = []
    send = HTTPAdapter.send

    def sending(*args: Any, **kwargs: Any) -> Any:
        recorded.append(kwargs[setting])
        return send(*args, **{**kwargs, "timeout": 10})

    monkeypatch.setattr(HTTPAdapter, "send", sending)
    return recorded


def test_an_untrusted_certificate_is_not_retried(serve: Serve) -> None:
    served = serve(tls=True)
    with pytest.raises(ServiceUnreachable, match=r"certificate of .* is not trusted: .*\. Set ca_path") as error:
        served.client.post("api_keys", body={})
    assert (error.value.attempts, error.value.transient, error.value.may_have_acted) == (1, False, False)
    assert served.clock.pauses == []


def test_ca_path_makes_a_certificate_trusted(serve: Serve) -> None:
    assert serve(reply({"ok": 1}), tls=True, ca_path=str(CERTIFICATE)).client.get("projects").json == {"ok": 1}


def test_a_certificate_of_another_host_is_not_retried(serve: Serve) -> None:
    served = serve(tls=True)
    base_url = served.service.base_url.replace("127.0.0.1", "localhost")
    client = serve(base_url=base_url, ca_path=str(CERTIFICATE)).client
    with pytest.raises(ServiceUnreachable, match="certificate of .* is not trusted: .*localhost") as error:
        client.get("projects")
    assert (error.value.attempts, error.value.transient) == (1, False)


@pytest.mark.parametrize("validate_certs", [True, False])
def test_certificate_warnings_are_disabled_without_validate_certs(
    monkeypatch: pytest.MonkeyPatch, validate_certs: bool
) -> None:
    silenced: list[bool] = []
    monkeypatch.setattr(session, "disable_warnings", lambda category: silenced.append(True))
    Client(Connection("https://control.example.com", API_KEY, validate_certs))
    assert bool(silenced) is not validate_certs


def test_validate_certs_false_accepts_any_certificate(serve: Serve) -> None:
    assert serve(reply({"ok": 1}), tls=True, validate_certs=False).client.get("projects").json == {"ok": 1}


@pytest.mark.parametrize("variable", ["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"])
@pytest.mark.parametrize(
    "options, verify",
    [
        ({}, "bundle of the environment"),
        ({"ca_path": str(CERTIFICATE)}, str(CERTIFICATE)),
        ({"validate_certs": False}, False),
    ],
    ids=["nothing set", "ca_path", "validate_certs false"],
)
def test_options_take_precedence_over_bundles_of_the_environment(
    serve: Serve,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    variable: str,
    options: dict[str, Any],
    verify: str | bool,
) -> None:
    bundle = tmp_path / "bundle.pem"
    bundle.write_bytes(CERTIFICATE.read_bytes())
    monkeypatch.setenv(variable, str(bundle))
    verified = record_setting(monkeypatch, "verify")
    serve(reply({}), **options).client.get("projects")
    assert verified == [str(bundle) if verify == "bundle of the environment" else verify]


def test_certificates_are_validated_by_default(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    # With a CA bundle in the environment the same request succeeds, so it is the validation that fails.
    with pytest.raises(ServiceUnreachable, match="not trusted"):
        serve(tls=True).client.get("projects")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(CERTIFICATE))
    assert serve(reply({"ok": 1}), tls=True).client.get("projects").json == {"ok": 1}


# Errors


def failed(serve: Serve, response: Any, method: str = "GET", **options: Any) -> StatusError:
    with pytest.raises(StatusError) as error:
        METHODS[method](serve(response, **{"api_retries": 0, **options}).client)
    return error.value


@pytest.mark.parametrize(
    "status, error_class, kind, part",
    [
        (400, StatusError, "http_status", "400 Bad Request"),
        (401, Unauthorized, "unauthorized", "Check api_key or CLOUDDB_API_KEY."),
        (403, StatusError, "http_status", "403 Forbidden"),
        (404, NotFound, "not_found", "404 Not Found"),
        (409, StatusError, "http_status", "409 Conflict"),
        (422, StatusError, "http_status", "422 Unprocessable"),
        (423, StatusError, "http_status", "423 Locked"),
        (429, StatusError, "http_status", "429 Too Many Requests"),
        (500, StatusError, "http_status", "500 Internal Server Error"),
        (503, StatusError, "http_status", "503 Service Unavailable"),
        (599, StatusError, "http_status", "returned 599: not today."),
    ],
)
def test_an_error_status_raises_a_typed_error_with_details(
    serve: Serve, status: int, error_class: type, kind: str, part: str
) -> None:
    error = failed(serve, reply({"message": "not today", "code": "NOT_TODAY", "request_id": "theirs-1"}, status))
    assert isinstance(error, error_class)
    assert part in str(error)
    assert "not today" in str(error)
    assert error.as_result() == {
        "msg": str(error),
        "failure": {
            "kind": kind,
            "method": "GET",
            "path": "/api_keys",
            "attempts": 1,
            "status": status,
            "message": "not today",
            "code": "NOT_TODAY",
            "request_id": "theirs-1",
        },
    }


CHECK_KEY = "Check api_key or CLOUDDB_API_KEY."
MOVED = (
    "Redirects are not followed, so that the key is sent to base_url only. Set base_url to the service's own address."
)


@pytest.mark.parametrize(
    "response, message",
    [
        (reply({"message": "not today"}, 401), f"401 Unauthorized: not today. {CHECK_KEY}"),
        (reply(b"", 401), f"401 Unauthorized. The API key is invalid or was revoked. {CHECK_KEY}"),
        (reply(b"", 300), f"300 Multiple Choices. {MOVED}"),
        (reply(b"", 302), f"302 Found. {MOVED}"),
        (reply({"message": "not today"}, 400), "400 Bad Request: not today."),
        (reply(b"", 400), "400 Bad Request. The response is not one of the control API. Check base_url."),
        (reply(b"", 503), "503 Service Unavailable."),
    ],
)
def test_messages_of_error_statuses(serve: Serve, response: Reply, message: str) -> None:
    assert str(failed(serve, response)) == f"GET /api_keys returned {message}"


@pytest.mark.parametrize(
    "path, segments, explanation, advice",
    [
        ("", ["projects"], "not today", "Check base_url, which should end with /api/v2, but is {base_url}."),
        ("", ["projects", "p", "operations"], "", "Check base_url, which should end with /api/v2, but is {base_url}."),
        ("/api/v1", ["api_keys"], "", "Check base_url, which should end with /api/v2, but is {base_url}."),
        ("/api/v2", ["projects"], "not today", "The service has no such path. Check base_url, which is {base_url}."),
        (
            "/api/v2",
            ["projects", "p"],
            "not today",
            "Check its id and base_url, and whether the API key may access it.",
        ),
        (
            "/api/v2",
            ["projects", "p"],
            "",
            "There is no such object, or the API key may not access it. Check its id and base_url.",
        ),
    ],
)
def test_404_says_what_to_check(serve: Serve, path: str, segments: list[str], explanation: str, advice: str) -> None:
    served = serve(reply({"message": explanation} if explanation else b"", 404))
    base_url = f"{urlsplit(served.client.connection.base_url)._replace(path=path).geturl()}"
    client = Client(served.client.connection._replace(base_url=base_url))
    with pytest.raises(NotFound) as error:
        client.get(*segments)
    said = f": {explanation}." if explanation else "."
    expected = f"GET /{'/'.join(segments)} returned 404 Not Found{said} {advice.format(base_url=base_url)}"
    assert str(error.value) == expected


def test_the_error_has_the_sent_request_id_if_the_service_sends_none(serve: Serve) -> None:
    served = serve(reply({"message": "not today", "code": ""}, 400))
    with pytest.raises(StatusError) as error:
        served.client.get("projects")
    assert error.value.details["request_id"] == served.requests[0].headers["X-Request-ID"]
    assert "code" not in error.value.details


ERROR = "cannot connect to postgres://u:{}@h/db"


def test_secrets_in_responses_are_masked_unless_asked_for(serve: Serve) -> None:
    shown = {"id": "a", "error": ERROR.format("********"), "password": "********", "echo": "********"}
    sent = {"id": "a", "error": ERROR.format("PW"), "password": "PW", "echo": API_KEY}
    client = serve(*[reply(sent)] * 3).client
    assert client.get("x").json == shown
    assert client.with_secrets().get("x").json == sent
    assert client.get("x").json == shown


def test_secret_fields_of_error_bodies_are_masked(serve: Serve) -> None:
    error = failed(serve, reply({"data": {"password": "PW"}}, 400))
    assert error.details["message"] == "data: password: ********"


def test_secrets_in_errors_are_masked(serve: Serve) -> None:
    for status, body in ((400, {"message": ERROR.format("PW")}), (200, {ERROR.format("PW") + "{{": 1})):
        with pytest.raises((StatusError, UnexpectedResponse)) as error:
            serve(reply(body, status)).client.get("x")
        assert ERROR.format("********") in str(error.value)


@pytest.mark.parametrize("place", ["message", "code", "request_id"])
def test_an_echoed_key_is_redacted(serve: Serve, place: str) -> None:
    error = failed(serve, reply({place: f"invalid key {API_KEY}!"}, 401))
    assert error.details[place] == "invalid key ********!"
    assert API_KEY not in str(error.as_result())


@pytest.mark.parametrize("body", [b"", API_KEY.encode(), b"<b>" + API_KEY.encode(), b'["' + API_KEY.encode() + b'"]'])
@pytest.mark.parametrize("status", [200, 400, 500])
def test_no_error_holds_the_key_whatever_the_body(serve: Serve, status: int, body: bytes) -> None:
    with pytest.raises((StatusError, UnexpectedResponse)) as error:
        serve(reply(body, status), api_retries=0).client.get("projects").object()
    assert API_KEY not in repr(error.value.as_result())
    assert error.value.__cause__ is None


HTML = "it is an HTML page, not JSON. Check base_url, and whether a proxy or a gateway responds in place of the service"


@pytest.mark.parametrize(
    "body, problem",
    [
        (b"", "its body is empty"),
        (b" \r\n", "its body is empty"),
        (b"<!DOCTYPE html><p>Log in", HTML),
        (b"\n  <html>", HTML),
        (b'{"projects": [', "its body is not valid JSON"),
        (b"[" * 100_000, "it has more than 50 levels of arrays and objects"),
        (b'{"name": "\xff"}', "its body is not valid JSON"),
    ],
)
@each_method
def test_a_body_that_is_not_json_raises_unexpected_response(
    serve: Serve, method: str, body: bytes, problem: str
) -> None:
    served = serve(reply(body))
    with pytest.raises(UnexpectedResponse) as error:
        METHODS[method](served.client).object()
    assert (error.value.transient, error.value.may_have_acted) == (False, True)
    [request] = served.requests
    path = "/api_keys/7" if method == "DELETE" else "/api_keys"
    assert str(error.value) == f"The response to {method} {path} is not what the API describes: {problem}."
    assert error.value.details == {
        "method": method,
        "path": path,
        "attempts": 1,
        "request_id": request.headers["X-Request-ID"],
    }


@pytest.mark.parametrize("retry_after, seconds", [("7", 7.0), ("99999", 60.0), ("soon", None), (None, None)])
def test_an_error_status_carries_retry_after(serve: Serve, retry_after: str | None, seconds: float | None) -> None:
    headers = {"Retry_After": retry_after} if retry_after else {}
    assert failed(serve, reply({}, 429, **headers)).retry_after == seconds


# Clocks and deadlines


@pytest.mark.parametrize(
    "method, earlier, hides",
    [
        ("GET", HANG_UP, False),
        ("GET", reply({}, 502), False),
        ("DELETE", HANG_UP, True),
        ("DELETE", reply({}, 502), True),
        ("DELETE", reply({}, 503), False),
    ],
)
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
    "response, may_be_empty, json",
    [
        (reply(b"", 204), False, None),
        (reply({"id": 7}, 204), True, None),
        (reply(b"", 200), True, None),
        (reply(b" ", 202), True, None),
        (reply({"id": 7}, 201), True, {"id": 7}),
        (reply({"id": 7}, 200), False, {"id": 7}),
    ],
)
def test_a_response_without_a_body(serve: Serve, response: Reply, may_be_empty: bool, json: Any) -> None:
    result = serve(response).client.request("POST", ["api_keys"], may_be_empty=may_be_empty)
    assert result.json == json
    assert result.status in (200, 201, 202, 204)


@pytest.mark.parametrize("status", [200, 201, 205])
def test_a_body_is_needed(serve: Serve, status: int) -> None:
    with pytest.raises(UnexpectedResponse, match="its body is empty"):
        serve(reply(b"", status)).client.request("POST", ["api_keys"])


@pytest.mark.parametrize("status", [200, 201, 299])
def test_the_status_is_that_of_the_response(serve: Serve, status: int) -> None:
    assert serve(reply({}, status)).client.get("projects").status == status


@pytest.mark.parametrize(
    "method, repeated", [("PUT", True), ("PATCH", False), ("POST", False), ("DELETE", True), ("GET", True)]
)
def test_requests_that_may_be_repeated(serve: Serve, method: str, repeated: bool) -> None:
    served = serve(reply({}, 500), *([reply({"done": True})] if repeated else []))
    if repeated:
        response = served.client.request(method, ["things", "7"])
        assert (response.json, response.attempts) == ({"done": True}, 2)
    else:
        with pytest.raises(StatusError) as error:
            served.client.request(method, ["things", "7"])
        assert (error.value.attempts, error.value.may_have_acted) == (1, True)


@pytest.mark.parametrize("retry_locked, attempts", [(True, 2), (False, 1)])
def test_a_locked_project_is_retried_unless_the_caller_waits(serve: Serve, retry_locked: bool, attempts: int) -> None:
    served = serve(reply({}, 423), *([reply({})] if retry_locked else []))
    if retry_locked:
        served.client.request("POST", ["projects"], retry_locked=True)
    else:
        with pytest.raises(StatusError):
            served.client.request("POST", ["projects"], retry_locked=False)
    assert len(served.requests) == attempts


def test_there_is_a_connection_for_each_worker() -> None:
    assert MAX_WORKERS == session.MAX_CONNECTIONS


def test_clients_with_another_key_have_the_same_clock(serve: Serve) -> None:
    client = serve().client
    assert client.with_api_key("another").clock is client.clock


@pytest.mark.parametrize("days, is_a_clock", [(3660, False), (3659, True), (-3660, False), (-3659, True)])
def test_a_date_of_another_decade_is_not_the_time(serve: Serve, days: int, is_a_clock: bool) -> None:
    date = EPOCH + timedelta(days=days)
    client = serve(reply({}, Date=format_datetime(date, usegmt=True))).client
    client.get("projects")
    assert client.service_now() == (date if is_a_clock else EPOCH)


def test_service_now_follows_the_date_header(serve: Serve) -> None:
    served = serve(reply({}, Date="Sat, 21 Nov 2026 11:30:00 GMT"))
    assert served.client.service_now() == EPOCH
    served.client.get("projects")
    assert served.client.service_now() == EPOCH + timedelta(hours=3, minutes=30)
    served.clock.sleep(60)
    assert served.client.service_now() == EPOCH + timedelta(hours=3, minutes=31)


@pytest.mark.parametrize(
    "date",
    [None, "", "yesterday", "Sat, 21 Nov 2026 11:30:00 -0000", "Sat, 99 Nov 2026 11:30:00 GMT", "2026-11-21T11:30:00Z"],
)
def test_an_unreadable_date_header_is_ignored(serve: Serve, date: str | None) -> None:
    served = serve(reply({}) if date is None else reply({}, Date=date))
    served.client.get("projects")
    assert served.client.service_now() == EPOCH


def test_service_now_follows_the_date_header_of_errors(serve: Serve) -> None:
    served = serve(reply({}, 404, Date="Sat, 21 Nov 2026 07:00:00 GMT"))
    with pytest.raises(NotFound):
        served.client.get("projects", "gone")
    assert served.client.service_now() == EPOCH - timedelta(hours=1)


def test_each_step_of_a_request_is_bounded_by_api_timeout(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    timeouts = record_setting(monkeypatch, "timeout")
    serve(reply({}), api_timeout=12.5).client.get("projects")
    assert timeouts == [12.5]


@pytest.mark.parametrize("remaining, timeout", [(3.0, 3.0), (30.0, 12.5)], ids=["deadline", "api_timeout"])
def test_a_deadline_bounds_each_request(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, remaining: float, timeout: float
) -> None:
    timeouts = record_setting(monkeypatch, "timeout")
    served = serve(reply({}), api_timeout=12.5)
    served.client.with_deadline(Deadline.after(served.clock.clock, remaining)).get("projects")
    assert timeouts == [timeout]


@pytest.mark.parametrize("remaining", [0.0, -5.0])
def test_nothing_is_sent_after_the_deadline(serve: Serve, remaining: float) -> None:
    served = serve()
    with pytest.raises(ServiceUnreachable, match="GET /projects was not sent: .* within the remaining 0 s") as error:
        served.client.with_deadline(Deadline.after(served.clock.clock, remaining)).get("projects")
    assert (error.value.transient, error.value.may_have_acted) == (True, False)
    assert served.requests == []


def test_a_deadline_does_not_change_the_original_client(serve: Serve) -> None:
    served = serve(reply({}, 503), reply({}))
    served.client.with_deadline(Deadline.after(served.clock.clock, 0.0))
    assert served.client.get("projects").attempts == 2


def test_a_request_with_a_deadline_is_attempted_once(serve: Serve) -> None:
    served = serve(reply({}, 503))
    with pytest.raises(StatusError):
        served.client.with_deadline(Deadline.after(served.clock.clock, 30.0)).get("projects")
    assert served.clock.pauses == []


def test_a_request_with_a_deadline_can_be_retried(serve: Serve) -> None:
    served = serve(reply({}, 503), reply({}, 503), reply({}))
    client = served.client.with_deadline(Deadline.after(served.clock.clock, 300.0), retries=True)
    assert client.get("projects").attempts == 3


def test_no_retry_begins_after_the_deadline(serve: Serve) -> None:
    served = serve(*[reply({}, 503, **{"Retry-After": "10"})] * 3)
    with pytest.raises(StatusError) as error:
        served.client.with_deadline(Deadline.after(served.clock.clock, 30.0), retries=True).get("projects")
    assert (error.value.attempts, served.clock.pauses) == (3, [10.0, 10.0])


def test_the_repr_of_a_connection_has_no_key() -> None:
    assert API_KEY not in repr(Connection("https://control.example.com", API_KEY))


def test_loopback_bypasses_proxies(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    proxy, served = serve(), serve(reply({}))
    for name in ("http_proxy", "all_proxy"):
        monkeypatch.setenv(name, proxy.service.base_url.replace("/api/v2", ""))
    served.client.get("projects")
    assert not proxy.requests
    assert len(served.requests) == 1


@pytest.mark.parametrize("variable", ["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"])
def test_a_missing_bundle_is_not_retried(serve: Serve, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, "/nowhere/ca.pem")
    with pytest.raises(ServiceUnreachable, match="/nowhere/ca.pem.*Set ca_path") as raised:
        serve(tls=True).client.get("projects")
    assert not raised.value.transient
    assert not raised.value.may_have_acted


def test_a_bundle_without_certificates_is_not_retried(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bundle = tmp_path / "ca.pem"
    bundle.touch()
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(bundle))
    with pytest.raises(ServiceUnreachable, match="certificate of .* is not trusted: .*Set ca_path") as raised:
        serve(tls=True).client.get("projects")
    assert (raised.value.attempts, raised.value.may_have_acted, raised.value.transient) == (1, False, False)


@pytest.mark.parametrize("location", ["http://[half", "/caf\xe9"])
def test_a_malformed_location_is_not_parsed(serve: Serve, location: str) -> None:
    with pytest.raises(StatusError, match="Redirects are not followed"):
        serve(reply({}, 302, Location=location)).client.get("projects")


@pytest.mark.parametrize(
    "date",
    [
        "Mon, 21 Dec 99999999999999999999 23:59:59 GMT",
        "Fri, 31 Dec 2020 23:59:59 +99999999999999999999",
        "Fri, 31 Dec 9999 23:59:59 -1200",
    ],
)
def test_an_absurd_date_header_is_ignored(serve: Serve, date: str) -> None:
    served = serve(reply({}, Date=date))
    served.client.get("projects")
    assert served.client.service_now() == EPOCH


def test_invalid_unicode_raises_an_error(serve: Serve) -> None:
    with pytest.raises(ClouddbError, match="not valid Unicode"):
        serve(api_retries=0).client.get("projects", query={"search": "\ud800"})
