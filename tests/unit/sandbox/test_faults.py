# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each kind of fault: its effect for the client, and whether the request was processed."""

from __future__ import annotations

import http.client
import json
import time
from contextlib import suppress
from urllib.parse import urlsplit

import pytest
import requests

PROJECT = "wispy-lake-12345678"
MAX_WAIT = 60  # seconds; enough for a busy machine


def key_names(service):
    return [key["name"] for key in service.keys()]


def send_and_disconnect(service, method, path, body=None):
    """Send a request, and close the connection as soon as the first fault delays it."""
    faults = len(service.ok("GET", "/_sandbox/faults")["faults"])
    connection = http.client.HTTPConnection(urlsplit(service.host_url).netloc, timeout=MAX_WAIT)
    headers = {**service.session.headers, "Content-Type": "application/json"}
    connection.request(method, f"/api/v2/{path}", json.dumps(body), headers)
    wait_until(lambda: len(service.ok("GET", "/_sandbox/faults")["faults"]) < faults)
    connection.close()


def wait_until(condition):
    deadline = time.monotonic() + MAX_WAIT
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


class TestStatus:
    def test_status_is_sent_and_nothing_is_written(self, service):
        for status in (400, 401, 403, 404, 418, 423, 429, 499, 500, 502, 503, 504, 599):
            service.fault("status", status=status, method="POST")
            response = service.request("POST", "api_keys", json={"key_name": "ci"})
            assert response.status_code == status
            assert response.json()["message"] == f"status {status}, injected by a fault of the sandbox"
            assert response.json()["request_id"] == response.headers["X-Request-ID"]
            assert "Retry-After" not in response.headers
            assert key_names(service) == ["sandbox"]
        service.create_key("ci")
        assert key_names(service) == ["sandbox", "ci"]

    def test_retry_after(self, service):
        for retry_after in ("7", "Wed, 21 Oct 2099 07:28:00 GMT", "soon", 7):
            service.fault("status", status=429, retry_after=retry_after)
            assert service.get("projects").headers["Retry-After"] == str(retry_after)

    def test_body(self, service):
        for body, content_type, text in (
            (
                {"message": "m", "code": "", "request_id": "r"},
                "application/json",
                '{"message":"m","code":"","request_id":"r"}',
            ),
            ([], "application/json", "[]"),
            ("plain words", "text/plain; charset=utf-8", "plain words"),
            ("", "text/plain; charset=utf-8", ""),
        ):
            service.fault("status", status=503, body=body)
            response = service.get("projects")
            assert (response.headers["Content-Type"], response.text) == (content_type, text)

    def test_no_content(self, service):
        service.fault("status", status=204)
        response = service.get("projects")
        assert (response.status_code, response.content) == (204, b"")


class TestResponseBodies:
    def test_html(self, service):
        service.fault("html")
        response = service.request("POST", "api_keys", json={"key_name": "ci"})
        assert response.status_code == 200
        assert response.headers["Content-Type"].startswith("text/html")
        assert "<html>" in response.text
        assert key_names(service) == ["sandbox"]

    def test_redirect(self, service):
        service.fault("redirect", location="http://127.0.0.1:9/elsewhere")
        response = service.request("POST", "api_keys", json={"key_name": "ci"})
        assert (response.status_code, response.headers["Location"]) == (302, "http://127.0.0.1:9/elsewhere")
        assert key_names(service) == ["sandbox"]

    def test_malformed(self, service):
        """Half of the JSON with its own Content-Length. The request is processed."""
        service.fault("malformed")
        response = service.request("POST", "api_keys", json={"key_name": "ci"})
        assert response.status_code == 200
        assert int(response.headers["Content-Length"]) == len(response.content) > 0
        with pytest.raises(json.JSONDecodeError):
            json.loads(response.content)
        assert key_names(service) == ["sandbox", "ci"]

    def test_truncate(self, service):
        """Half of the body with its full Content-Length. The request is processed."""
        full_length = len(service.get("projects").content)
        service.fault("truncate")
        response = service.request("GET", "projects", stream=True)
        assert int(response.headers["Content-Length"]) == full_length
        received = b""
        # With urllib3 1, requests does not notice that the rest is missing.
        with suppress(requests.exceptions.ChunkedEncodingError):
            for chunk in response.iter_content(1):
                received += chunk
        assert len(received) == full_length // 2


class TestConnections:
    def test_lost_response(self, service):
        """The request is processed, without a response."""
        service.fault("lost_answer", method="POST", path="/api_keys")
        with pytest.raises(requests.ConnectionError, match="without response"):
            service.create_key("ci")
        assert key_names(service) == ["sandbox", "ci"]

    def test_reset(self, service):
        """The connection is closed and the request is not processed."""
        service.fault("reset", method="POST")
        with pytest.raises(requests.ConnectionError):
            service.create_key("ci")
        assert key_names(service) == ["sandbox"]

    def test_stall(self, service):
        """The connection is closed after the delay, and the request is not processed."""
        service.fault("stall", seconds=0.2)
        started = time.monotonic()
        with pytest.raises(requests.ConnectionError):
            service.create_key("ci")
        assert time.monotonic() - started >= 0.2
        assert key_names(service) == ["sandbox"]

    def test_reset_after_the_client_disconnected(self, service):
        """The sandbox continues to respond to other requests."""
        service.fault("delay", seconds=0.2)
        service.fault("reset")
        send_and_disconnect(service, "GET", "projects")
        wait_until(lambda: [entry["status"] for entry in service.log()] == [None])
        assert service.get("projects").status_code == 200

    def test_delayed_request_is_processed_after_the_client_disconnected(self, service):
        service.fault("delay", method="POST", seconds=0.2)
        send_and_disconnect(service, "POST", "api_keys", {"key_name": "ci"})
        wait_until(lambda: key_names(service) == ["sandbox", "ci"])

    def test_delay(self, service):
        service.fault("delay", seconds=0.2)
        started = time.monotonic()
        assert service.get("projects").status_code == 200
        assert time.monotonic() - started >= 0.2


class TestLists:
    def test_page_limit(self, serve):
        service = serve({"generate": {"projects": 3, "operations_per_project": 5}})
        service.fault("page_limit", items=2, times=None)
        page = service.ok("GET", "projects", params={"limit": 400})
        assert len(page["projects"]) == 2
        assert len(service.operations(page["projects"][0]["id"], limit=1000)) == 2
        assert len(service.operations(page["projects"][0]["id"], limit=1)) == 1
        rest = service.ok("GET", "projects", params={"cursor": page["pagination"]["cursor"]})
        assert len(rest["projects"]) == 1
        service.request("DELETE", "/_sandbox/faults")
        assert len(service.operations(page["projects"][0]["id"], limit=1000)) == 5

    def test_unavailable_projects(self, serve):
        service = serve({"projects": [{"id": f"calm-sea-{number}"} for number in range(4)]})
        service.fault("unavailable_projects", ids=["calm-sea-1", "calm-sea-3"])
        page = service.ok("GET", "projects")
        assert [project["id"] for project in page["projects"]] == ["calm-sea-2", "calm-sea-0"]
        assert page["unavailable_project_ids"] == ["calm-sea-1", "calm-sea-3"]
        complete = service.ok("GET", "projects")
        assert len(complete["projects"]) == 4
        assert "unavailable_project_ids" not in complete


class TestFaultRules:
    def statuses(self, service, *requests_made):
        return [service.request(method, path).status_code for method, path in requests_made]

    def test_skip_and_times_count_matching_requests(self, service):
        service.fault("status", status=503, skip=2, times=2)
        assert self.statuses(service, *[("GET", "projects")] * 6) == [200, 200, 503, 503, 200, 200]

    def test_method_and_path_select_requests(self, service):
        service.fault("status", status=503, method="get", path="/projects/*/operations", times=None)
        assert self.statuses(
            service,
            ("GET", "projects"),
            ("GET", f"projects/{PROJECT}/operations"),
            ("PUT", f"projects/{PROJECT}/operations"),
            ("GET", f"projects/{PROJECT}/operations/x"),
        ) == [200, 503, 405, 404]

    @pytest.mark.parametrize("path", ["projects", "/api/v2/projects", "*projects"])
    def test_path_is_below_the_base_path_in_every_notation(self, service, path):
        service.fault("status", status=503, path=path, times=None)
        assert self.statuses(service, ("GET", "projects"), ("GET", "api_keys")) == [503, 200]

    def test_oldest_fault_applies_first(self, service):
        service.fault("status", status=500)
        service.fault("status", status=502)
        assert self.statuses(service, *[("GET", "projects")] * 3) == [500, 502, 200]

    def test_control_endpoints_have_no_faults(self, service):
        service.fault("reset", path="*", times=None)
        assert service.ok("GET", "/_sandbox/faults")["faults"]
        assert service.ok("GET", "/_sandbox/clock")

    def test_remaining_counts_are_listed(self, service):
        added = service.fault("status", status=429, retry_after="1", skip=1, times=3, path="/projects")
        for _request in range(2):
            service.get("projects")
        (remaining,) = service.ok("GET", "/_sandbox/faults")["faults"]
        assert remaining == {**added, "skip": 0, "times": 2}
        assert remaining["id"] == added["id"]

    def test_invalid_rule_gets_400(self, service):
        for rule, field in (
            ({}, "kind"),
            ({"kind": "nonsense"}, "kind"),
            ({"kind": "status"}, "status"),
            ({"kind": "status", "status": 503, "seconds": 1}, "seconds"),
            ({"kind": "stall", "seconds": -1}, "seconds"),
            ({"kind": "reset", "times": 0}, "times"),
            ({"kind": "reset", "method": "DELET"}, "method"),
            ({"kind": "list_lag", "seconds": 1e14}, "seconds"),
            ({"kind": "lingering_deletion", "seconds": 1, "again": 500}, "again"),
        ):
            response = service.request("POST", "/_sandbox/faults", json=rule)
            assert response.status_code == 400, rule
            assert field in response.json()["message"]
        assert service.ok("GET", "/_sandbox/faults") == {"faults": []}
