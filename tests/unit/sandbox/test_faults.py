# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each kind of fault, as a client meets it, and what the service has done then."""

from __future__ import annotations

import time

import pytest
import requests

PROJECT = "wispy-lake-12345678"


def names(service):
    return [key["name"] for key in service.keys()]


class TestStatus:
    def test_nothing_is_written(self, service):
        for status in (400, 401, 403, 404, 418, 423, 429, 499, 500, 502, 503, 504, 599):
            service.fault("status", status=status, method="POST")
            response = service.request("POST", "api_keys", json={"key_name": "ci"})
            assert response.status_code == status
            assert response.json()["message"] == f"status {status}, injected by a fault of the sandbox"
            assert response.json()["request_id"] == response.headers["X-Request-ID"]
            assert "Retry-After" not in response.headers
            assert names(service) == ["sandbox"]
        service.create_key("ci")
        assert names(service) == ["sandbox", "ci"]

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


class TestBodies:
    def test_html(self, service):
        service.fault("html")
        response = service.request("POST", "api_keys", json={"key_name": "ci"})
        assert response.status_code == 200
        assert response.headers["Content-Type"].startswith("text/html")
        assert "<html>" in response.text
        assert names(service) == ["sandbox"]

    def test_redirect(self, service):
        service.fault("redirect", location="http://127.0.0.1:9/elsewhere")
        response = service.request("POST", "api_keys", json={"key_name": "ci"})
        assert (response.status_code, response.headers["Location"]) == (302, "http://127.0.0.1:9/elsewhere")
        assert names(service) == ["sandbox"]

    def test_malformed(self, service):
        """Half of the JSON, correctly announced; the request is carried out."""
        service.fault("malformed")
        response = service.request("POST", "api_keys", json={"key_name": "ci"})
        assert response.status_code == 200
        assert int(response.headers["Content-Length"]) == len(response.content) > 0
        with pytest.raises(requests.JSONDecodeError):
            response.json()
        assert names(service) == ["sandbox", "ci"]

    def test_truncated(self, service):
        """Half of the body under its full length; the request is carried out."""
        whole = len(service.get("projects").content)
        service.fault("truncate")
        response = service.request("GET", "projects", stream=True)
        assert int(response.headers["Content-Length"]) == whole
        received = b""
        with pytest.raises(requests.exceptions.ChunkedEncodingError):
            for chunk in response.iter_content(1):
                received += chunk
        assert len(received) == whole // 2


class TestConnections:
    def test_lost_answer(self, service):
        """The request is carried out; not a byte comes back."""
        service.fault("lost_answer", method="POST", path="/api_keys")
        with pytest.raises(requests.ConnectionError, match="without response"):
            service.create_key("ci")
        assert names(service) == ["sandbox", "ci"]

    def test_lost_answer_of_work(self, service):
        service.fault("lost_answer", method="POST")
        with pytest.raises(requests.ConnectionError):
            service.create_branch(branch={"name": "preview"})
        assert [operation["action"] for operation in service.operations()] == ["start_compute", "create_branch"]

    def test_reset(self, service):
        """Cut before anything is done."""
        service.fault("reset", method="POST")
        with pytest.raises(requests.ConnectionError):
            service.create_key("ci")
        assert names(service) == ["sandbox"]

    def test_stall(self, service):
        """Silence, then cut; nothing is done."""
        service.fault("stall", seconds=0.2)
        started = time.monotonic()
        with pytest.raises(requests.ConnectionError):
            service.create_key("ci")
        assert time.monotonic() - started >= 0.2
        assert names(service) == ["sandbox"]

    def test_stall_beyond_the_clients_patience(self, service):
        service.fault("stall", seconds=60)
        with pytest.raises(requests.ReadTimeout):
            requests.get(f"{service.base_url}/projects", headers=service.session.headers, timeout=0.2)
        assert service.get("projects").status_code == 200

    def test_nobody_left_to_cut_off(self, service):
        """The client has gone before its connection is cut; the sandbox takes no harm."""
        service.fault("delay", seconds=0.2)
        service.fault("reset")
        with pytest.raises(requests.ReadTimeout):
            requests.get(f"{service.base_url}/projects", headers=service.session.headers, timeout=0.1)
        service.fault("delay", seconds=0.2)
        service.get("projects")
        assert [entry["status"] for entry in service.log()] == [None, 200]

    def test_what_was_sent_is_carried_out_after_the_delay_though_the_client_has_gone(self, service):
        service.fault("delay", seconds=0.2)
        with pytest.raises(requests.ReadTimeout):
            requests.post(
                f"{service.base_url}/api_keys", json={"key_name": "ci"}, headers=service.session.headers, timeout=0.1
            )
        service.fault("delay", seconds=0.4)
        service.get("projects")
        assert names(service) == ["sandbox", "ci"]

    def test_other_connections_stay(self, service):
        other = service.as_key("k" * 64)
        other.get("projects")
        service.fault("reset", method="DELETE")
        with pytest.raises(requests.ConnectionError):
            service.request("DELETE", "api_keys/1")
        assert other.get("projects").status_code == 200

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
        whole = service.ok("GET", "projects")
        assert len(whole["projects"]) == 4
        assert "unavailable_project_ids" not in whole


class TestRules:
    def statuses(self, service, *requests_made):
        return [service.request(method, path).status_code for method, path in requests_made]

    def test_times_and_skip(self, service):
        service.fault("status", status=503, skip=2, times=2)
        assert self.statuses(service, *[("GET", "projects")] * 6) == [200, 200, 503, 503, 200, 200]

    def test_until_cleared(self, service):
        service.fault("status", status=503, times=None)
        assert self.statuses(service, *[("GET", "projects")] * 3) == [503] * 3
        assert service.ok("DELETE", "/_sandbox/faults") == {"faults": []}
        assert self.statuses(service, ("GET", "projects")) == [200]

    def test_what_it_fits(self, service):
        service.fault("status", status=503, method="get", path="/projects/*/operations", times=None)
        assert self.statuses(
            service,
            ("GET", "projects"),
            ("GET", f"projects/{PROJECT}/operations"),
            ("PUT", f"projects/{PROJECT}/operations"),
            ("GET", f"projects/{PROJECT}/operations/x"),
        ) == [200, 503, 405, 404]

    def test_the_oldest_decides(self, service):
        service.fault("status", status=500)
        service.fault("status", status=502)
        assert self.statuses(service, *[("GET", "projects")] * 3) == [500, 502, 200]

    def test_a_delay_before_another_fault(self, service):
        service.fault("delay", seconds=0.1)
        service.fault("status", status=503)
        started = time.monotonic()
        assert self.statuses(service, ("GET", "projects")) == [503]
        assert time.monotonic() - started >= 0.1

    def test_unknown_paths_too(self, service):
        service.fault("status", status=503)
        assert self.statuses(service, ("GET", "nowhere")) == [503]

    def test_without_a_key_there_is_only_401(self, service):
        service.fault("status", status=503)
        assert service.as_key("wrong").get("projects").status_code == 401
        assert service.get("projects").status_code == 503

    def test_never_the_control_endpoints(self, service):
        service.fault("reset", path="*", times=None)
        assert service.ok("GET", "/_sandbox/faults")["faults"]
        assert service.ok("GET", "/_sandbox/clock")

    def test_what_remains(self, service):
        added = service.fault("status", status=429, retry_after="1", skip=1, times=3, path="/projects")
        for _request in range(2):
            service.get("projects")
        (left,) = service.ok("GET", "/_sandbox/faults")["faults"]
        assert left == {**added, "skip": 0, "times": 2}
        assert left["id"] == added["id"]

    def test_bad_rules(self, service):
        for rule, field in (
            ({}, "kind"),
            ({"kind": "nonsense"}, "kind"),
            ({"kind": "status"}, "status"),
            ({"kind": "status", "status": 42}, "status"),
            ({"kind": "status", "status": 503, "seconds": 1}, "seconds"),
            ({"kind": "stall", "seconds": -1}, "seconds"),
            ({"kind": "reset", "times": 0}, "times"),
            ({"kind": "reset", "skip": -1}, "skip"),
            ({"kind": "page_limit", "items": 0}, "items"),
            ({"kind": "unavailable_projects", "ids": []}, "ids"),
            ({"kind": "redirect"}, "location"),
        ):
            response = service.request("POST", "/_sandbox/faults", json=rule)
            assert response.status_code == 400, rule
            assert field in response.json()["message"]
        assert service.ok("GET", "/_sandbox/faults") == {"faults": []}
