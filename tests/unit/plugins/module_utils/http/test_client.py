# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The client at the HTTP edge: what goes over the wire, and what comes of each response."""

from __future__ import annotations

import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any, Callable
from urllib.parse import quote, unquote

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
from ansible_collections.clouddb.control.plugins.module_utils._http import transport
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.module_utils._http.connection import Connection
from ansible_collections.clouddb.control.plugins.module_utils._version import COLLECTION_VERSION
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import EPOCH
from ansible_collections.clouddb.control.tests.unit.support.scripted_client import API_KEY, Serve
from ansible_collections.clouddb.control.tests.unit.support.scripted_service import CERTIFICATE, Reply, reply

METHODS: dict[str, Callable[[Client], Any]] = {
    "GET": lambda client: client.get("api_keys"),
    "POST": lambda client: client.post("api_keys", body={"key_name": "ci"}),
    "DELETE": lambda client: client.delete("api_keys", 7),
}
each_method = pytest.mark.parametrize("method", METHODS)


@each_method
def test_sends_the_headers_of_the_contract(serve: Serve, method: str) -> None:
    served = serve(reply({}))
    METHODS[method](served.client)
    [request] = served.requests
    assert request.method == method
    assert request.headers["Authorization"] == f"Bearer {API_KEY}"
    assert request.headers["Accept"] == "application/json"
    assert request.headers["User-Agent"] == f"clouddb.control/{COLLECTION_VERSION}"
    assert str(uuid.UUID(request.headers["X-Request-ID"])) == request.headers["X-Request-ID"]
    assert len(request.headers.get_all("Authorization", [])) == 1


def test_each_request_has_an_id_of_its_own(serve: Serve) -> None:
    served = serve(*[reply({})] * 3)
    answers = [served.client.get("projects") for _request in range(3)]
    sent = [request.headers["X-Request-ID"] for request in served.requests]
    assert len(set(sent)) == 3
    assert [response.request_id for response in answers] == sent


def test_sends_a_body_as_json(serve: Serve) -> None:
    served = serve(reply({}))
    served.client.post("api_keys", body={"key_name": 'Ключ "ci" & \n'})
    [request] = served.requests
    assert request.headers["Content-Type"] == "application/json"
    assert request.json == {"key_name": 'Ключ "ci" & \n'}


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_sends_no_body_where_there_is_none(serve: Serve, method: str) -> None:
    served = serve(reply({}))
    METHODS[method](served.client)
    assert served.requests[0].body == b""
    assert "Content-Type" not in served.requests[0].headers


def test_gives_back_what_the_service_sent(serve: Serve) -> None:
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
def test_a_segment_stays_one_segment(serve: Serve, segment: str) -> None:
    served = serve(reply({}))
    served.client.get("projects", segment, "operations")
    assert served.targets == [f"/projects/{quote(segment, safe='')}/operations"]
    assert [unquote(part) for part in served.requests[0].path.split("/")][4] == segment


@pytest.mark.parametrize("value", [*SPECIAL, "=&=", "%", '"', "\\", "\t\n", "a" * 3000], ids=lambda value: value[:20])
def test_a_query_value_arrives_as_it_is(serve: Serve, value: str) -> None:
    served = serve(reply({}))
    served.client.get("projects", query={"cursor": value, "limit": 3})
    assert served.requests[0].query == [("cursor", value), ("limit", "3")]
    assert served.requests[0].path == "/api/v2/projects"


def test_a_list_in_the_query_is_sent_value_by_value(serve: Serve) -> None:
    served = serve(reply({}))
    served.client.get("projects", query={"tag": ["a", "b"]})
    assert served.requests[0].query == [("tag", "a"), ("tag", "b")]


@each_method
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(serve: Serve, method: str, status: int) -> None:
    elsewhere = serve()
    served = serve(reply({}, status, Location=f"{elsewhere.service.base_url}/projects"))
    with pytest.raises(StatusError, match="redirects are not followed.*base_url") as error:
        METHODS[method](served.client)
    assert elsewhere.requests == []
    assert len(served.requests) == error.value.attempts == 1
    assert (error.value.transient, error.value.may_have_acted) == (False, False)


def test_a_netrc_entry_does_not_replace_the_key(serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password else\ndefault login somebody password else\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    served = serve(reply({}))
    served.client.get("projects")
    assert served.requests[0].headers.get_all("Authorization") == [f"Bearer {API_KEY}"]


def test_cookies_are_not_kept(serve: Serve) -> None:
    served = serve(reply({}, Set_Cookie="session=1; Path=/"), reply({}))
    served.client.get("projects")
    served.client.get("projects")
    assert "Cookie" not in served.requests[1].headers


def test_asks_with_another_key(serve: Serve) -> None:
    served = serve(reply({}), reply({}))
    served.client.with_api_key("another").get("projects")
    served.client.get("projects")
    assert [request.headers["Authorization"] for request in served.requests] == ["Bearer another", f"Bearer {API_KEY}"]


def test_a_proxy_of_the_environment_is_used_for_other_machines(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = serve(reply({}))
    monkeypatch.setenv("http_proxy", proxy.service.base_url.replace("/api/v2", ""))
    client = serve(base_url="http://control.example.com/api/v2").client
    client.get("projects")
    assert proxy.requests[0].target == "http://control.example.com/api/v2/projects"


def test_no_proxy_is_used_where_no_proxy_says_so(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    proxy, served = serve(), serve(reply({}))
    monkeypatch.setenv("http_proxy", proxy.service.base_url)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    served.client.get("projects")
    assert (len(served.requests), proxy.requests) == (1, [])


# Certificates


def handed_to_adapter(monkeypatch: pytest.MonkeyPatch, setting: str) -> list[Any]:
    """What each request from now on hands to the adapter as this setting."""
    handed: list[Any] = []
    send = HTTPAdapter.send

    def sending(*args: Any, **kwargs: Any) -> Any:
        handed.append(kwargs[setting])
        return send(*args, **{**kwargs, "timeout": 10})

    monkeypatch.setattr(HTTPAdapter, "send", sending)
    return handed


def test_a_certificate_that_nobody_vouches_for_is_refused_at_once(serve: Serve) -> None:
    served = serve(tls=True)
    with pytest.raises(ServiceUnreachable, match="certificate is not trusted .*; set ca_path") as error:
        served.client.post("api_keys", body={})
    assert (error.value.attempts, error.value.transient, error.value.may_have_acted) == (1, False, False)
    assert served.clock.pauses == []


def test_ca_path_vouches_for_it(serve: Serve) -> None:
    assert serve(reply({"ok": 1}), tls=True, ca_path=str(CERTIFICATE)).client.get("projects").json == {"ok": 1}


def test_a_certificate_of_another_host_is_refused_at_once(serve: Serve) -> None:
    served = serve(tls=True)
    base_url = served.service.base_url.replace("127.0.0.1", "localhost")
    client = serve(base_url=base_url, ca_path=str(CERTIFICATE)).client
    with pytest.raises(ServiceUnreachable, match="certificate is not trusted .*localhost") as error:
        client.get("projects")
    assert (error.value.attempts, error.value.transient) == (1, False)


@pytest.mark.parametrize("validate_certs", [True, False])
def test_warnings_of_certificates_stay_unless_they_are_not_wanted(
    monkeypatch: pytest.MonkeyPatch, validate_certs: bool
) -> None:
    silenced: list[bool] = []
    monkeypatch.setattr(transport, "silence_certificate_warnings", lambda: silenced.append(True))
    Client(Connection("https://control.example.com", API_KEY, validate_certs))
    assert bool(silenced) is not validate_certs


def test_validate_certs_false_takes_any_certificate(serve: Serve) -> None:
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
def test_the_environment_decides_only_what_the_options_leave_open(
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
    verified = handed_to_adapter(monkeypatch, "verify")
    serve(reply({}), **options).client.get("projects")
    assert verified == [str(bundle) if verify == "bundle of the environment" else verify]


def test_without_any_setting_certificates_are_checked(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    # An environment that vouches for the certificate makes the same request succeed, so it is the check that refuses.
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
    "status, error_class, kind, says",
    [
        (400, StatusError, "http_status", "400 Bad Request"),
        (401, Unauthorized, "unauthorized", "the key is not valid or was revoked"),
        (403, StatusError, "http_status", "403 Forbidden"),
        (404, NotFound, "not_found", "no such object, or this key may not reach it"),
        (409, StatusError, "http_status", "409 Conflict"),
        (422, StatusError, "http_status", "422 Unprocessable"),
        (423, StatusError, "http_status", "423 Locked"),
        (429, StatusError, "http_status", "429 Too Many Requests"),
        (500, StatusError, "http_status", "500 Internal Server Error"),
        (503, StatusError, "http_status", "503 Service Unavailable"),
        (599, StatusError, "http_status", "answered 599 to GET"),
    ],
)
def test_a_status_becomes_an_error_that_says_all_it_knows(
    serve: Serve, status: int, error_class: type, kind: str, says: str
) -> None:
    error = failed(serve, reply({"message": "no luck", "code": "NO_LUCK", "request_id": "theirs-1"}, status))
    assert isinstance(error, error_class)
    assert says in str(error)
    assert "no luck" in str(error)
    assert error.as_result() == {
        "msg": str(error),
        "failure": {
            "kind": kind,
            "method": "GET",
            "path": "/api_keys",
            "attempts": 1,
            "status": status,
            "message": "no luck",
            "code": "NO_LUCK",
            "request_id": "theirs-1",
        },
    }


NOT_FOUND = "there is no such object, or this key may not reach it"
REVOKED = "the key is not valid or was revoked: check api_key or CLOUDDB_API_KEY"
MOVED = "redirects are not followed, so that the key stays with base_url: set base_url to the service's own address"


@pytest.mark.parametrize(
    "response, message",
    [
        (reply({"message": "no luck"}, 401), f"401 Unauthorized to GET /api_keys: no luck; {REVOKED}"),
        (reply({"message": "no luck"}, 404), f"404 Not Found to GET /api_keys: no luck; {NOT_FOUND}"),
        (reply(b"", 404), f"404 Not Found to GET /api_keys; {NOT_FOUND}, or base_url is wrong"),
        (reply(b"", 300), f"300 Multiple Choices to GET /api_keys; {MOVED}"),
        (reply({"message": "over there"}, 302), f"302 Found to GET /api_keys: over there; {MOVED}"),
        (reply({"message": "no luck"}, 400), "400 Bad Request to GET /api_keys: no luck"),
        (reply(b"", 400), "400 Bad Request to GET /api_keys; the answer is not one of the control API: check base_url"),
        (reply(b"", 503), "503 Service Unavailable to GET /api_keys"),
    ],
    ids=["401", "404", "404 of something else", "300", "302", "400", "400 of something else", "503 of something else"],
)
def test_a_status_is_told_in_words(serve: Serve, response: Reply, message: str) -> None:
    assert str(failed(serve, response)) == f"the service answered {message}"


def test_without_an_id_of_the_service_the_error_has_the_id_that_was_sent(serve: Serve) -> None:
    served = serve(reply({"message": "no luck", "code": ""}, 400))
    with pytest.raises(StatusError) as error:
        served.client.get("projects")
    assert error.value.details["request_id"] == served.requests[0].headers["X-Request-ID"]
    assert "code" not in error.value.details


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>Bad gateway</html>",
        b"{",
        b"\xff\xfe\xfa",
        b"[" * 100_000,
        b"9" * 5000,
        b"null",
        b"[]",
        b'"text"',
        b"{}",
        b'{"message": {"text": "deep"}, "code": 7, "request_id": null}',
    ],
    ids=[
        "empty",
        "html",
        "cut",
        "not utf-8",
        "deep",
        "long number",
        "null",
        "array",
        "string",
        "no fields",
        "other types",
    ],
)
def test_any_error_body_is_taken(serve: Serve, body: bytes) -> None:
    error = failed(serve, reply(body, 400))
    assert set(error.details) == {"method", "path", "attempts", "request_id", "status"}
    assert (
        str(error)
        == "the service answered 400 Bad Request to GET /api_keys; the answer is not one of the control API: check base_url"
    )


def test_a_long_message_of_the_service_is_cut(serve: Serve) -> None:
    error = failed(serve, reply({"message": "x" * 100_000}, 400))
    assert len(error.details["message"]) == 500
    assert len(str(error)) < 1000


@pytest.mark.parametrize("place", ["message", "code", "request_id"])
def test_a_key_that_the_service_echoes_is_not_passed_on(serve: Serve, place: str) -> None:
    error = failed(serve, reply({place: f"bad key {API_KEY}!"}, 401))
    assert error.details[place] == "bad key ********!"
    assert API_KEY not in str(error.as_result())


def test_a_key_at_the_place_of_the_cut_is_not_passed_on_in_part(serve: Serve) -> None:
    error = failed(serve, reply({"message": "x" * 490 + API_KEY}, 400))
    assert API_KEY[:4] not in str(error.as_result())


@pytest.mark.parametrize(
    "body",
    [b"", API_KEY.encode(), b"<b>" + API_KEY.encode(), b'["' + API_KEY.encode() + b'"]'],
    ids=["empty", "text", "html", "array"],
)
@pytest.mark.parametrize("status", [200, 400, 500])
def test_no_error_holds_the_key_whatever_the_body(serve: Serve, status: int, body: bytes) -> None:
    with pytest.raises((StatusError, UnexpectedResponse)) as error:
        serve(reply(body, status), api_retries=0).client.get("projects").object()
    assert API_KEY not in repr(error.value.as_result())
    assert error.value.__cause__ is None


HTML = "it is an HTML page, not JSON; check base_url, and whether a proxy or a gateway answers in the service's place"


@pytest.mark.parametrize(
    "body, problem",
    [
        (b"", "its body is empty"),
        (b" \r\n", "its body is empty"),
        (b"<!DOCTYPE html><p>Log in", HTML),
        (b"\n  <html>", HTML),
        (b'{"projects": [', "its body is not valid JSON"),
        (b"[" * 100_000, "its body is not valid JSON"),
        (b'{"name": "\xff"}', "its body is not valid JSON"),
    ],
    ids=["empty", "blank", "html", "html after a blank line", "cut", "deep", "not utf-8"],
)
@each_method
def test_a_body_that_is_no_json_is_a_clear_error(serve: Serve, method: str, body: bytes, problem: str) -> None:
    served = serve(reply(body))
    with pytest.raises(UnexpectedResponse) as error:
        METHODS[method](served.client).object()
    assert (error.value.transient, error.value.may_have_acted) == (False, True)
    [request] = served.requests
    path = "/api_keys/7" if method == "DELETE" else "/api_keys"
    assert str(error.value) == f"the service's answer to {method} {path} is not understood: {problem}"
    assert error.value.details == {
        "method": method,
        "path": path,
        "attempts": 1,
        "request_id": request.headers["X-Request-ID"],
    }


@pytest.mark.parametrize("retry_after, seconds", [("7", 7.0), ("99999", 60.0), ("soon", None), (None, None)])
def test_an_error_tells_the_pause_that_the_service_asks_for(
    serve: Serve, retry_after: str | None, seconds: float | None
) -> None:
    headers = {"Retry_After": retry_after} if retry_after else {}
    assert failed(serve, reply({}, 429, **headers)).retry_after == seconds


# Clocks and deadlines


def test_goes_by_the_clock_of_the_service(serve: Serve) -> None:
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
def test_without_a_readable_date_the_local_clock_counts(serve: Serve, date: str | None) -> None:
    served = serve(reply({}) if date is None else reply({}, Date=date))
    served.client.get("projects")
    assert served.client.service_now() == EPOCH


def test_learns_the_time_from_errors_too(serve: Serve) -> None:
    served = serve(reply({}, 404, Date="Sat, 21 Nov 2026 07:00:00 GMT"))
    with pytest.raises(NotFound):
        served.client.get("projects", "gone")
    assert served.client.service_now() == EPOCH - timedelta(hours=1)


def test_api_timeout_is_that_of_connecting_and_of_reading(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    timeouts = handed_to_adapter(monkeypatch, "timeout")
    serve(reply({}), api_timeout=12.5).client.get("projects")
    assert [(timeout.connect_timeout, timeout.read_timeout, timeout.total) for timeout in timeouts] == [
        (12.5, 12.5, None)
    ]


@pytest.mark.parametrize(
    "left, total", [(3.0, 3.0), (0.0, 0.001), (-5.0, 0.001)], ids=["some time left", "none left", "too late"]
)
def test_a_poll_takes_no_longer_than_what_is_left(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, left: float, total: float
) -> None:
    timeouts = handed_to_adapter(monkeypatch, "timeout")
    served = serve(reply({}), api_timeout=12.5)
    served.client.until(Deadline.after(served.clock.clock, left)).get("projects")
    assert [timeout.total for timeout in timeouts] == [total]


def test_a_poll_is_tried_once(serve: Serve) -> None:
    served = serve(reply({}, 503))
    with pytest.raises(StatusError):
        served.client.until(Deadline.after(served.clock.clock, 30.0)).get("projects")
    assert served.clock.pauses == []


def test_the_key_does_not_show_in_the_description_of_a_connection() -> None:
    assert API_KEY not in repr(Connection("https://control.example.com", API_KEY))


def test_what_goes_to_this_machine_goes_past_every_proxy(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    proxy, served = serve(), serve(reply({}))
    for name in ("http_proxy", "all_proxy"):
        monkeypatch.setenv(name, proxy.service.base_url.replace("/api/v2", ""))
    served.client.get("projects")
    assert not proxy.requests
    assert len(served.requests) == 1


@pytest.mark.parametrize("variable", ["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"])
def test_a_bundle_that_is_not_there_is_told_at_once(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "/nowhere/ca.pem")
    with pytest.raises(ServiceUnreachable, match="/nowhere/ca.pem.*set ca_path") as raised:
        serve(tls=True).client.get("projects")
    assert not raised.value.transient
    assert not raised.value.may_have_acted


def test_a_bundle_without_certificates_is_told_at_once(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bundle = tmp_path / "ca.pem"
    bundle.touch()
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(bundle))
    with pytest.raises(ServiceUnreachable, match="its certificate is not trusted .*set ca_path") as raised:
        serve(tls=True).client.get("projects")
    assert (raised.value.attempts, raised.value.may_have_acted, raised.value.transient) == (1, False, False)


@pytest.mark.parametrize("location", ["http://[bad", "/caf\xe9"])
def test_a_redirect_to_nowhere_is_a_redirect(serve: Serve, location: str) -> None:
    with pytest.raises(StatusError, match="redirects are not followed"):
        serve(reply({}, 302, Location=location)).client.get("projects")


@pytest.mark.parametrize(
    "date",
    [
        "Mon, 21 Dec 99999999999999999999 23:59:59 GMT",
        "Fri, 31 Dec 2020 23:59:59 +99999999999999999999",
        "Fri, 31 Dec 9999 23:59:59 -1200",
    ],
)
def test_a_date_beyond_reason_tells_nothing_of_the_services_clock(serve: Serve, date: str) -> None:
    served = serve(reply({}, Date=date))
    served.client.get("projects")
    assert served.client.service_now() == EPOCH


def test_a_value_that_is_no_unicode_is_an_error_of_ours(serve: Serve) -> None:
    with pytest.raises(ClouddbError, match="not valid Unicode"):
        serve().client.get("projects", query={"search": "\ud800"})
