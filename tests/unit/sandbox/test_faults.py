# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each kind of fault: its effect for the client, and whether the request was processed; last, faults that follow the clock."""

from __future__ import annotations

import http.client
import json
import time
from contextlib import suppress
from urllib.parse import urlsplit

import pytest
import requests

from clouddb_sandbox.fault_injection import HTML_PAGE
from clouddb_sandbox.rules import ORG_ID_REQUIRED

PROJECT = "wispy-lake-12345678"
BRANCHES = f"projects/{PROJECT}/branches"
MAX_WAIT = 60  # seconds; enough for a busy machine


def key_names(service):
    return [key["name"] for key in service.keys()]


def send_and_disconnect(service, method, path, body=None):
    """Send a request, and close the connection as soon as the first fault delays it."""
    faults = len(service.ok("GET", "/_sandbox/faults")["faults"])
    connection = http.client.HTTPConnection(urlsplit(service.host_url).netloc, timeout=MAX_WAIT)
    headers = {**service.headers, "Content-Type": "application/json"}
    connection.request(method, f"/api/v2/{path}", json.dumps(body), headers)
    wait_until(lambda: len(service.ok("GET", "/_sandbox/faults")["faults"]) < faults)
    connection.close()


def wait_until(condition):
    deadline = time.monotonic() + MAX_WAIT
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


STATUSES = (400, 401, 403, 404, 418, 423, 429, 499, 500, 502, 503, 504, 599)
INJECTED = '{"message":"status %s, injected by a fault of the sandbox","code":"","request_id":"mine"}'
JSON, TEXT = {"Content-Type": "application/json"}, {"Content-Type": "text/plain; charset=utf-8"}


@pytest.mark.parametrize(
    ("kind", "fault", "status", "headers", "text"),
    [
        *(("status", {"status": each}, each, {"Retry-After": None, **JSON}, INJECTED % each) for each in STATUSES),
        *(
            ("status", {"status": 429, "retry_after": each}, 429, {"Retry-After": str(each)}, INJECTED % 429)
            for each in ("7", "Wed, 21 Oct 2099 07:28:00 GMT", "soon", 7)
        ),
        ("status", {"status": 503, "body": {"message": "m", "code": ""}}, 503, JSON, '{"message":"m","code":""}'),
        ("status", {"status": 503, "body": []}, 503, JSON, "[]"),
        *(("status", {"status": 503, "body": body}, 503, TEXT, body) for body in ("plain words", "")),
        ("status", {"status": 204}, 204, {}, ""),
        ("html", {}, 200, {"Content-Type": "text/html; charset=utf-8"}, HTML_PAGE),
        ("redirect", {"location": "http://127.0.0.1:9/else"}, 302, {"Location": "http://127.0.0.1:9/else"}, ""),
    ],
)
def test_a_response_is_sent_once_and_nothing_is_written(service, kind, fault, status, headers, text):
    service.fault(kind, method="POST", **fault)
    own = {"X-Request-ID": "mine"}
    response = service.request("POST", "api_keys", json={"key_name": "ci"}, headers=own)
    assert (response.status_code, response.text) == (status, text)
    assert {name: response.headers.get(name) for name in (*headers, *own)} == {**headers, **own}
    assert key_names(service) == ["sandbox"]
    service.create_key("ci")
    assert key_names(service) == ["sandbox", "ci"]


class TestResponseBodies:
    def test_malformed(self, service):
        """Half of the JSON with its own Content-Length. The request is processed."""
        service.fault("malformed")
        response = service.request("POST", "api_keys", json={"key_name": "ci"})
        assert response.status_code == 200
        assert int(response.headers["Content-Length"]) == len(response.content) > 0
        with pytest.raises(json.JSONDecodeError):
            json.loads(response.content)
        assert key_names(service) == ["sandbox", "ci"]

    def test_truncate(self, served):
        """Half of the body with its full Content-Length. The request is processed."""
        full_length = len(served.get("projects").content)
        served.fault("truncate")
        response = served.request("GET", "projects", stream=True)
        assert int(response.headers["Content-Length"]) == full_length
        received = b""
        # With urllib3 1, requests does not notice that the rest is missing.
        with suppress(requests.exceptions.ChunkedEncodingError):
            for chunk in response.iter_content(1):
                received += chunk
        assert len(received) == full_length // 2


class TestConnections:
    @pytest.fixture
    def service(self, served):
        return served

    def test_lost_response(self, service):
        service.fault("lost_answer", method="POST", path="/api_keys")
        with pytest.raises(requests.ConnectionError, match="without response"):
            service.create_key("ci")
        assert key_names(service) == ["sandbox", "ci"]

    def test_reset(self, service):
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
        path = f"projects/{PROJECT}/operations"
        requests_made = (("GET", "projects"), ("GET", path), ("PUT", path), ("GET", f"{path}/x"))
        assert self.statuses(service, *requests_made) == [200, 503, 405, 404]

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


def names(service, path=BRANCHES, field="branches", **params):
    params = {"sort_by": "created_at", "sort_order": "asc", **params}
    return [item["name"] for item in service.ok("GET", path, params=params)[field]]


def states(service):
    return {branch["name"]: branch["current_state"] for branch in service.ok("GET", BRANCHES)["branches"]}


def create(service, name):
    return service.request("POST", BRANCHES, json={"branch": {"name": name}})


class TestListLag:
    def test_list_is_the_old_one_for_a_while(self, service):
        """Other requests know of the change, such as that of a second creator."""
        service.fault("list_lag", seconds=10)
        names(service)  # not counted, because it changes nothing
        branch = create(service, "preview").json()["branch"]
        assert create(service, "preview").status_code == 409
        assert names(service) == names(service, limit=1) == ["main"]
        assert service.ok("GET", f"{BRANCHES}/{branch['id']}")["branch"] == branch
        service.advance(9)
        assert names(service) == ["main"]
        service.advance(1)
        assert names(service) == ["main", "preview"]

    def test_each_change_is_listed_when_its_time_is_over(self, service):
        service.fault("list_lag", seconds=10, times=None)
        key = service.create_key("a")
        service.advance(6)
        service.create_key("b")
        service.ok("DELETE", f"api_keys/{key['id']}")
        seen = []
        for seconds in (0, 4, 6):
            service.advance(seconds)
            seen.append([key["name"] for key in service.keys()])
        assert seen == [["sandbox"], ["sandbox", "a"], ["sandbox", "b"]]

    def test_change_of_an_object(self, service):
        """Its name in the path may contain an encoded slash."""
        path = f"{BRANCHES}/{service.default_branch()}/databases"
        service.create_database(service.default_branch(), "a/b")
        service.advance(5)
        service.fault("list_lag", seconds=10)
        service.ok("PATCH", f"{path}/a%2Fb", json={"database": {"name": "c"}})
        assert names(service, path, "databases") == ["clouddb", "a/b"]
        assert names(service) == ["main"]
        service.ok("DELETE", "/_sandbox/faults")
        assert names(service, path, "databases") == ["clouddb", "c"]


class TestLingeringDeletion:
    @pytest.mark.parametrize("status, again", [(200, 404), (202, 409)])
    def test_branch_is_listed_until_the_time_is_over(self, service, status, again):
        """Its name is in use, and it can neither be changed nor deleted again."""
        path = service.create_finished_branch(branch={"name": "preview"})
        service.fault("lingering_deletion", seconds=60, status=status, again=again)
        deleted = service.request("DELETE", path)
        assert (deleted.status_code, deleted.json()["branch"]["current_state"]) == (status, "deleting")
        service.advance(59)
        assert states(service) == {"main": "ready", "preview": "deleting"}
        assert service.ok("GET", path)["branch"] == deleted.json()["branch"]
        assert service.request("DELETE", path).status_code == again
        assert create(service, "preview").status_code == 409
        assert service.request("PATCH", path, json={"branch": {"name": "review"}}).status_code == 423
        service.advance(1)
        assert states(service) == {"main": "ready"}
        assert (service.get(path).status_code, service.request("DELETE", path).status_code) == (404, 204)
        create(service, "preview")
        service.advance(5)
        assert states(service) == {"main": "ready", "preview": "ready"}
        service.finished("DELETE", f"{BRANCHES}/{service.branches()[1]['id']}")

    def test_running_operations(self, service):
        path = service.create_finished_branch()
        service.fault("lingering_deletion", seconds=60)
        started = service.ok("DELETE", path)["operations"]
        assert [operation["action"] for operation in started] == ["suspend_compute", "delete_timeline"]
        service.advance(59)
        assert {service.operation(operation)["status"] for operation in started} == {"running"}
        service.advance(1)
        assert service.operation(started[1])["status"] == "finished"

    def test_no_operations(self, service):
        path = service.create_finished_branch()
        service.fault("lingering_deletion", seconds=60, operations="absent")
        assert service.ok("DELETE", path).keys() == {"branch"}
        service.advance(5)
        assert service.operations()[0]["status"] == "finished"
        assert service.ok("GET", path)["branch"]["current_state"] == "deleting"

    def test_other_objects(self, service):
        service.create_role()
        branch = service.create_finished_branch()
        compute = service.ok("GET", f"{branch}/endpoints")["endpoints"][0]["id"]
        paths = [f"{branch}/databases/clouddb", f"{branch}/roles/app", f"projects/{PROJECT}/endpoints/{compute}"]
        service.fault("lingering_deletion", seconds=60, operations="empty", times=None)
        for path in (*paths, f"projects/{PROJECT}"):
            service.finished("DELETE", path)
            assert service.get(path).status_code == 200
            assert service.request("DELETE", path).status_code == 404
        assert names(service, "projects", "projects") == ["shop"]
        service.advance(50)
        assert {service.get(path).status_code for path in paths} == {404}
        service.advance(5)
        assert names(service, "projects", "projects") == []

    def test_clearing_the_faults_does_not_end_it(self, service):
        path = service.create_finished_branch()
        service.fault("lingering_deletion", seconds=60, again=409)
        service.ok("DELETE", path)
        service.ok("DELETE", "/_sandbox/faults")
        assert service.request("DELETE", path).status_code == 409

    def test_refused_deletion_does_not_linger(self, service):
        path = f"{BRANCHES}/{service.default_branch()}"
        service.fault("lingering_deletion", seconds=60, times=None)
        assert [service.request("DELETE", path).status_code for _attempt in range(2)] == [422, 422]
        assert states(service) == {"main": "ready"}

    def test_deletion_survives_a_restart(self, serve):
        service = serve({"projects": [{"id": PROJECT}]})
        path = service.create_finished_branch()
        service.fault("lingering_deletion", seconds=60)
        service.ok("DELETE", path)
        service = serve()
        assert service.ok("GET", path)["branch"]["current_state"] == "deleting"
        service.advance(60)
        assert service.get(path).status_code == 404


def test_lagging_list_shows_a_lingering_object_longer(service):
    """And as it was before. A lost response changes neither."""
    path = service.create_finished_branch(branch={"name": "preview"})
    service.fault("list_lag", seconds=90)
    service.fault("lingering_deletion", seconds=60, status=202)
    service.fault("lost_answer", method="DELETE")
    with pytest.raises(OSError):
        service.request("DELETE", path)
    assert states(service) == {"main": "ready", "preview": "ready"}
    assert service.ok("GET", path)["branch"]["current_state"] == "deleting"
    assert service.request("DELETE", path).status_code == 404
    service.advance(60)
    assert (service.get(path).status_code, names(service)) == (404, ["main", "preview"])
    service.advance(30)
    assert names(service) == ["main"]


class TestOperations:
    @pytest.mark.parametrize(
        "operations, expected", [("absent", {}), ("null", {"operations": None}), ("empty", {"operations": []})]
    )
    def test_missing(self, service, operations, expected):
        """They run, and lock the branch."""
        path = f"{BRANCHES}/{service.default_branch()}/databases"
        service.fault("missing_operations", operations=operations)
        created = service.create_database(service.default_branch(), operations).json()
        assert created == {"database": created["database"], **expected}
        assert service.request("DELETE", f"{path}/{operations}").status_code == 423
        assert service.operations()[0]["action"] == "apply_config"
        service.advance(5)

    def test_late(self, service):
        """Earlier ones, and those of other projects, can be fetched."""
        (earlier,) = service.create_branch(endpoints=[])["operations"]
        other = service.ok("POST", "projects", json={"project": {}})["operations"][0]
        service.fault("late_operations", seconds=3)
        late = service.create_branch(endpoints=[])["operations"][0]
        path = f"projects/{PROJECT}/operations/{late['id']}"
        service.advance(2)
        assert service.get(path).status_code == 404
        assert [operation["id"] for operation in service.operations()] == [earlier["id"]]
        assert {service.operation(operation)["status"] for operation in (earlier, other)} == {"finished"}
        service.advance(1)
        assert service.ok("GET", path)["operation"]["status"] == "finished"
        assert [operation["id"] for operation in service.operations()] == [late["id"], earlier["id"]]


class TestNormalizedName:
    @pytest.mark.parametrize(
        "rule, stored",
        [
            ({"trim": True}, "CI Key"),
            ({"lower_case": True}, " ci key "),
            ({"trim": True, "lower_case": True, "max_length": 4}, "ci k"),
        ],
    )
    def test_stored_name(self, service, rule, stored):
        """With `echo`, the response to the creation still has the name that was sent."""
        for echo, response_name in ((False, stored), (True, " CI Key ")):
            service.fault("normalized_name", echo=echo, **rule)
            created = service.create_key(" CI Key ")
            assert created["name"] == response_name
            assert [key["name"] for key in service.keys() if key["id"] == created["id"]] == [stored]

    def test_names_of_other_objects(self, service):
        service.fault("normalized_name", trim=True, echo=True, times=2)
        assert create(service, "preview ").json()["branch"]["name"] == "preview "
        assert names(service) == ["main", "preview"]
        assert create(service, " preview").status_code == 409

    def test_invalid_body_is_refused_as_usual(self, service):
        service.fault("normalized_name", trim=True, times=2)
        for content in ("[", "[]"):
            response = service.request("POST", "api_keys", data=content, headers={"Content-Type": "application/json"})
            assert response.status_code == 400


def test_ignored_change(service):
    path = service.create_finished_branch(branch={"name": "preview"})
    before = service.ok("GET", path)["branch"]
    service.fault("ignored_change")
    ignored = service.ok("PATCH", path, json={"branch": {"name": "x"}})
    assert (ignored["branch"], ignored["operations"]) == (before, [])
    assert service.ok("GET", path)["branch"] == before
    service.ok("PATCH", path, json={"branch": {"name": "x"}})
    assert names(service) == ["main", "x"]


def test_require_org_id(serve):
    service = serve({"projects": [{"name": "shop", "org_id": "org-1"}, {"name": "wiki", "org_id": "org-2"}]})
    service.fault("require_org_id")
    for params in ({}, {"org_id": ""}, {"search": "shop"}):
        response = service.get("projects", **params)
        assert (response.status_code, response.json().items() >= {"message": ORG_ID_REQUIRED, "code": ""}.items()) == (
            400,
            True,
        )
    assert names(service, "projects", "projects", org_id="org-1") == ["shop"]
    assert service.ok("POST", "projects", json={"project": {}})
