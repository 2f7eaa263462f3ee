# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""api_request against the sandbox, whose clock moves with the pauses of the task."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.module_utils._secrets import MASK
from ansible_collections.clouddb.control.plugins.modules import api_request
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import FakeClock
from ansible_collections.clouddb.control.tests.unit.support.module_main import Outcome, run_main
from ansible_collections.clouddb.control.tests.unit.support.resource_task import BLOG, BRANCHES, PREVIEW, SHOP
from ansible_collections.clouddb.control.tests.unit.support.resource_task import api_request_task as task
from ansible_collections.clouddb.control.tests.unit.support.resource_task import failing_api_request as failing
from ansible_collections.clouddb.control.tests.unit.support.return_values import undocumented_fields
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox

FINISHED = [("create_branch", "finished"), ("start_compute", "finished")]


def branches(sandbox: Sandbox) -> list[str]:
    listed = sandbox.api("GET", f"/{BRANCHES}?sort_by=created_at&sort_order=asc")["branches"]
    return [branch["name"] for branch in listed]


def test_creates_a_resource_and_waits_until_it_can_be_used(sandbox: Sandbox, client: Client) -> None:
    result = task(client, "POST", **PREVIEW)
    assert (result["changed"], result["status"], result["object"]["name"]) == (True, 201, "preview")
    assert [(each["action"], each["status"]) for each in result["operations"]] == FINISHED
    # https://github.com/ansible-collections/community.digitalocean/issues/116
    assert (result["json"]["branch"]["current_state"], result["object"]["current_state"]) == ("init", "ready")
    assert result["request"] == {"method": "POST", "path": f"/{BRANCHES}", "query": {}, "body": PREVIEW["body"]}
    again = task(client, "POST", **PREVIEW)
    assert (again["changed"], again["object"], again["request"]) == (False, result["object"], None)
    assert branches(sandbox) == ["main", "preview"]


def test_waits_for_what_an_interrupted_run_has_started(sandbox: Sandbox, client: Client) -> None:
    sandbox.api("POST", f"/{BRANCHES}", PREVIEW["body"])
    result = task(client, "POST", **PREVIEW)
    assert (result["changed"], [each["status"] for each in result["operations"]]) == (False, ["finished"] * 2)


def test_does_not_wait_if_wait_is_false(client: Client, clock: FakeClock) -> None:
    result = task(client, "POST", wait=False, **PREVIEW)
    assert {operation["status"] for operation in result["operations"]} <= {"scheduling", "running"}
    again = task(client, "POST", wait=False, **PREVIEW)
    assert (again["changed"], len(again["operations"]), clock.pauses) == (False, 2, [])


def test_a_lost_response_without_find_is_an_unknown_outcome(sandbox: Sandbox, client: Client) -> None:
    sandbox.fault("lost_answer", method="POST")
    result = failing(client, "POST", path=BRANCHES, body=PREVIEW["body"])
    assert result["failure"]["kind"] == "unknown_outcome"
    assert branches(sandbox) == ["main", "preview"]


def preview(**changes: Any) -> dict[str, Any]:
    """The options of a task that changes or deletes the branch preview."""
    return {"path": f"{BRANCHES}/{{id}}", "find": PREVIEW["find"], **({"body": {"branch": changes}} if changes else {})}


def test_renames_once(sandbox: Sandbox, client: Client) -> None:
    task(client, "POST", **PREVIEW)
    first, second = (task(client, "PATCH", **preview(name="review")) for _run in range(2))
    assert [first["diff"][side]["name"] for side in ("before", "after")] == ["preview", "review"]
    assert [(each["changed"], each["object"]["name"]) for each in (first, second)] == [
        (True, "review"),
        (False, "review"),
    ]
    assert second["request"] is None
    assert sum(line.startswith("PATCH") for line in sandbox.sent()) == 1


@pytest.mark.parametrize(("fault", "wait"), [("lost_answer", True), ("malformed", False)])
def test_a_change_without_a_response_is_not_repeated(sandbox: Sandbox, client: Client, fault: str, wait: bool) -> None:
    task(client, "POST", **PREVIEW)
    sandbox.fault(fault, method="PATCH")
    result = task(client, "PATCH", wait=wait, **preview(name="review"))
    assert (result["changed"], result["json"], result["object"]["name"]) == (True, None, "review")
    assert "was lost" in result["warnings"][0]
    assert sum(line.startswith("PATCH") for line in sandbox.sent()) == 1


BRANCHES_OF = {"path": "projects/{id}/branches", "find": {"path": "projects", "list": "projects"}}
OF_NONE = {"path": BRANCHES_OF["path"], "find": {**BRANCHES_OF["find"], "match": {"name": "shpo"}}}


@pytest.mark.parametrize("method, options", [("PATCH", preview(name="review")), ("GET", OF_NONE)])
def test_a_path_with_a_placeholder_needs_a_resource(client: Client, method: str, options: dict[str, Any]) -> None:
    assert failing(client, method, **options)["failure"]["kind"] == "no_match"
    checked = task(client, method, check_mode=True, **options)
    assert (checked["changed"], checked["json"]) == (method == "PATCH", None)
    assert "will fail" in checked["warnings"][0]


def test_a_field_of_match_that_no_resource_has_is_named(client: Client) -> None:
    """The task would report that the resource is gone."""
    find = {"list": "branches", "match": {"nmae": "preview"}}
    options = {"path": f"{BRANCHES}/{{id}}", "find": find}
    deleted, checked = (task(client, "DELETE", check_mode, **options) for check_mode in (False, True))
    for result in (deleted, checked, task(client, path=BRANCHES, find=find)):
        assert ["nmae" in each for each in result["warnings"]] == [True]
    assert "nmae" in failing(client, "PATCH", body={"branch": {"name": "x"}}, **options)["msg"]
    assert task(client, "DELETE", **preview())["warnings"] == []


@pytest.mark.parametrize(
    "method, options",
    [("GET", {"path": BRANCHES}), ("PATCH", preview(name="x")), ("DELETE", {"path": f"{BRANCHES}/{{id}}"})],
)
def test_several_matches_are_refused(sandbox: Sandbox, client: Client, method: str, options: dict[str, Any]) -> None:
    for name in ("one", "two"):
        sandbox.api("POST", f"/{BRANCHES}", {"branch": {"name": name}})
        sandbox.advance(60)
    result = failing(client, method, **{**options, "find": {"list": "branches", "match": {"default": False}}})
    assert (result["failure"]["kind"], branches(sandbox)) == ("ambiguous_match", ["main", "one", "two"])


def test_a_branch_is_deleted_once(sandbox: Sandbox, client: Client) -> None:
    task(client, "POST", **PREVIEW)
    first, second = task(client, "DELETE", **preview()), task(client, "DELETE", **preview())
    assert (first["changed"], first["object"], second["changed"]) == (True, None, False)
    assert [(item["action"], item["status"]) for item in first["operations"]] == [("suspend_compute", "finished")]
    assert branches(sandbox) == ["main"]


@pytest.mark.parametrize(("faults", "kind"), [([], "not_found"), (["reset"], "unknown_outcome")])
def test_what_is_still_there_was_not_deleted(sandbox: Sandbox, client: Client, faults: list[str], kind: str) -> None:
    """The path is wrong, or a gateway decodes the slash in a name."""
    task(client, "POST", **PREVIEW)
    for fault in faults:
        sandbox.fault(fault, method="DELETE")
    find = {**PREVIEW["find"], "path": BRANCHES}
    result = failing(client, "DELETE", path=f"projects/{SHOP}/branchs/{{id}}", find=find)
    assert (result["failure"]["kind"], branches(sandbox)) == (kind, ["main", "preview"])


def test_secrets_are_in_the_result_only_on_request(sandbox: Sandbox, client: Client) -> None:
    hidden = task(client, "POST", **PREVIEW)
    roles = f"{BRANCHES}/{hidden['object']['id']}/roles"
    path = f"{roles}/clouddb_owner/reveal_password"
    secret = sandbox.api("GET", f"/{path}")["password"]
    assert (secret in str(hidden), len(hidden["json"]["connection_uris"])) == (False, 1)
    assert secret not in str(task(client, path=path))
    assert task(client, expose_secrets=True, path=path)["json"] == {"password": secret}
    role = {"path": roles, "body": {"role": {"name": "app"}}, "find": {"list": "roles", "match": {"name": "app"}}}
    created = task(client, "POST", expose_secrets=True, **role)
    password = created["object"]["password"]
    assert sandbox.api("GET", f"/{roles}/app/reveal_password")["password"] == password
    assert password not in str(created["diff"])


def test_accepted_statuses_are_results(sandbox: Sandbox, client: Client) -> None:
    sandbox.fault("status", status=423, method="POST", body={"message": "no"})
    result = task(client, "POST", path=BRANCHES, body={"branch": {}}, status_code=[423])
    assert (result["changed"], result["status"], result["json"]) == (False, 423, {"message": "no"})


@pytest.mark.parametrize("all_pages", [False, True])
def test_a_list_that_may_be_missing(client: Client, all_pages: bool) -> None:
    result = task(client, path="projects/gone/branches", status_code=[200, 404], all_pages=all_pages)
    assert (result["changed"], result["status"]) == (False, 404)


@pytest.mark.parametrize("is_locked", [False, True])
def test_an_accepted_status_does_not_hide_a_deletion(sandbox: Sandbox, client: Client, is_locked: bool) -> None:
    """By an earlier attempt."""
    sandbox.fault("lost_answer", method="DELETE")
    if is_locked:
        sandbox.fault("status", status=503, method="DELETE", retry_after=7)
        sandbox.fault("status", status=423, method="DELETE")
    options: dict[str, Any] = {"path": f"projects/{BLOG}", "status_code": [200, 404]}
    results = [task(client, "DELETE", **options) for _run in range(2)]
    assert [(each["changed"], each["status"]) for each in results] == [(True, None), (False, 404)]


def test_a_success_that_is_not_accepted_fails(client: Client) -> None:
    assert failing(client, "POST", **PREVIEW, status_code=[200])["failure"]["status"] == 201


def test_check_mode_sends_only_gets(sandbox: Sandbox, client: Client) -> None:
    result = task(client, "POST", check_mode=True, **PREVIEW)
    assert (result["changed"], result["json"], result["object"]) == (True, None, {"id": None, "name": "preview"})
    assert result["diff"] == {"before": {}, "after": {"name": "preview"}}
    later = task(client, "POST", check_mode=True, path=f"{BRANCHES}//databases", body={"database": {"name": "app"}})
    assert later["changed"]
    assert {line.split()[0] for line in sandbox.sent()} == {"GET"}
    assert branches(sandbox) == ["main"]


def test_a_resource_that_may_be_missing_from_the_list_is_not_created(sandbox: Sandbox, client: Client) -> None:
    sandbox.fault("unavailable_projects", ids=[SHOP], times=None)
    create = {"path": "projects", "body": {"project": {"name": "shop"}}}
    for method, options in (("GET", {"path": "projects"}), ("POST", create), ("DELETE", {"path": "projects/{id}"})):
        result = failing(client, method, find={"list": "projects", "match": {"name": "shop"}}, **options)
        assert (result["failure"]["kind"], SHOP in result["msg"]) == ("incomplete_list", True)
    assert {line.split()[0] for line in sandbox.sent()} == {"GET"}


@pytest.mark.parametrize("all_pages", [False, True])
def test_reads_the_path_of_the_resource_that_was_found(client: Client, all_pages: bool) -> None:
    find = {**BRANCHES_OF["find"], "match": {"name": "shop"}}
    result = task(client, "GET", path=BRANCHES_OF["path"], find=find, all_pages=all_pages)
    assert [branch["name"] for branch in result["json"]["branches"]] == ["main"]
    assert (result["changed"], result["object"]["id"]) == (False, SHOP)


@pytest.mark.parametrize(
    "options",
    [
        {"path": f"{BRANCHES}//roles"},
        {"path": f"{BRANCHES}/None", "find": {"list": "roles", "match": {"name": ""}}},
        {"path": BRANCHES, "query": {"branch_id": None}},
        {"path": BRANCHES, "find": {"list": "branches", "match": {"name": "main"}, "query": {"branch_id": None}}},
    ],
)
def test_what_check_mode_did_not_create_is_not_read(sandbox: Sandbox, client: Client, options: dict[str, Any]) -> None:
    result = task(client, check_mode=True, **options)
    assert (result["changed"], result["json"], result["object"]) == (False, None, None)
    assert "was not sent" in result["warnings"][0]
    assert sandbox.sent() == []


def test_what_check_mode_did_not_create_may_be_missing(client: Client) -> None:
    result = task(client, check_mode=True, path=f"{BRANCHES}/main/roles/app/reveal_password")
    assert (result["json"], len(result["warnings"])) == (None, 1)


def test_nothing_is_looked_up_by_a_value_that_is_not_known(sandbox: Sandbox, client: Client) -> None:
    find = {"list": "branches", "match": {"parent_id": None}}
    assert task(client, "DELETE", True, path=f"{BRANCHES}/{{id}}", find=find)["changed"] is True
    assert sandbox.sent() == []


@pytest.mark.parametrize(
    "method, name, options, operations",
    [("POST", "other", PREVIEW, FINISHED), ("DELETE", "preview", preview(), [("suspend_compute", "finished")])],
)
def test_operations_before_a_request_are_left_out_if_its_response_is_lost(
    sandbox: Sandbox, client: Client, method: str, name: str, options: dict[str, Any], operations: list[Any]
) -> None:
    sandbox.api("POST", f"/{BRANCHES}", {"branch": {"name": name}})
    sandbox.advance(3600)
    sandbox.fault("lost_answer", method=method)
    result = task(client, method, **options)
    assert (result["changed"], result["json"]) == (True, None)
    assert sorted((each["action"], each["status"]) for each in result["operations"]) == operations


def queries(sandbox: Sandbox) -> list[str]:
    return [entry["query"] for entry in sandbox.requests() if entry["user_agent"].startswith("clouddb.control/")]


def test_a_resource_is_returned_with_its_status(sandbox: Sandbox, client: Client) -> None:
    result = task(client, path=f"projects/{SHOP}")
    project = sandbox.api("GET", f"/projects/{SHOP}")
    assert (result["changed"], result["status"], result["json"]) == (False, 200, project)
    assert result["object"] == project["project"]


@pytest.mark.parametrize("all_pages", [False, True])
def test_a_query_selects(sandbox: Sandbox, client: Client, all_pages: bool) -> None:
    sandbox.fault("page_limit", items=1, times=None)
    result = task(client, path="projects", query={"search": "o"}, all_pages=all_pages)
    names = [project["name"] for project in result["json"]["projects"]]
    assert (names, result["status"], result["warnings"]) == (["blog", "shop"] if all_pages else ["blog"], 200, [])
    limit = "&limit=400" if all_pages else ""
    assert all(query.startswith(f"search=o{limit}") for query in queries(sandbox))
    assert "cursor" not in queries(sandbox)[0]


def test_queries_of_the_request_and_of_find_are_combined(sandbox: Sandbox, client: Client) -> None:
    find = {"list": "projects", "match": {"name": "shop"}, "query": {"search": "sho"}}
    result = task(client, path="projects", query={"limit": 50}, find=find)
    assert [project["name"] for project in result["json"]["projects"]] == ["shop"]
    assert (result["object"]["id"], result["status"]) == (SHOP, 200)
    assert queries(sandbox)[0] == "limit=50&search=sho"


def test_a_response_that_is_a_list(sandbox: Sandbox, client: Client) -> None:
    keys = sandbox.api("GET", "/api_keys")
    for options in ({"all_pages": True}, {"find": {"match": {"name": keys[0]["name"]}}}, {}):
        found = task(client, path="api_keys", **options)["json"]
        assert [key["id"] for key in found] == [key["id"] for key in keys]


def test_the_only_array_of_a_response_is_its_list(sandbox: Sandbox, client: Client) -> None:
    pages = [{"items": [{"id": "b-1"}], "pagination": {"cursor": "2"}}, {"items": []}]
    for page in pages:
        sandbox.fault("status", status=200, method="GET", path=f"/projects/{SHOP}/branches", body=page)
    assert task(client, path=f"projects/{SHOP}/branches", all_pages=True)["json"] == {"items": [{"id": "b-1"}]}
    assert len(queries(sandbox)) == 2


def test_a_resource_that_another_page_has_is_not_missing(sandbox: Sandbox, client: Client) -> None:
    pages = [
        {"projects": [{"id": BLOG}], "unavailable_project_ids": [SHOP], "pagination": {"cursor": "2"}},
        {"projects": [{"id": SHOP}], "unavailable_project_ids": [BLOG], "pagination": {"cursor": "3"}},
        {"projects": []},
    ]
    for page in pages:
        sandbox.fault("status", status=200, method="GET", path="/projects", body=page)
    result = task(client, path="projects", all_pages=True)
    listed = {"projects": [{"id": BLOG}, {"id": SHOP}], "unavailable_project_ids": []}
    assert (result["json"], result["warnings"]) == (listed, [])


@pytest.mark.parametrize(
    ("body", "kind"),
    [({"name": "shop"}, "unexpected_response"), ({"operations": [], "branches": []}, "invalid_option")],
)
def test_all_pages_of_something_else(sandbox: Sandbox, client: Client, body: dict[str, Any], kind: str) -> None:
    sandbox.fault("status", status=200, method="GET", body=body)
    assert failing(client, path="projects", all_pages=True)["failure"]["kind"] == kind
    sandbox.fault("status", status=200, method="GET", body={**body, "projects": [{"id": SHOP}]})
    assert task(client, path="projects", all_pages=True)["json"] == {**body, "projects": [{"id": SHOP}]}


SECRET = "hunter2-hunter2-hunter2"


def run_module(sandbox: Sandbox, check_mode: bool = False, **options: Any) -> Outcome:
    connection = {"base_url": sandbox.base_url, "api_key": sandbox.api_key}
    outcome = run_main(api_request, {**connection, "path": BRANCHES, **options}, check_mode, diff=True)
    assert undocumented_fields(api_request, outcome.result) == []
    return outcome


@pytest.mark.parametrize("check_mode", [False, True])
def test_secrets_of_the_body_are_not_printed(sandbox: Sandbox, check_mode: bool) -> None:
    body = {"project": {"name": "x", "password": SECRET, "custom": f"{SECRET}2", "pin": "a"}}
    options = {"method": "POST", "path": "projects", "body": body, "secret_fields": ["custom"], "wait": False}
    outcome = run_module(sandbox, check_mode, **options)
    assert (outcome.success["changed"], SECRET in outcome.printed) == (True, False)
    assert outcome.result["invocation"]["module_args"]["body"]["project"]["name"] == "x"


def test_a_name_that_is_also_a_password_stays_readable(sandbox: Sandbox) -> None:
    """The next task asks for the role by this name. Other values may contain the password by chance."""
    [branch] = sandbox.api("GET", f"/{BRANCHES}")["branches"]
    name = {"name": "analytics1"}
    options = {"path": f"{BRANCHES}/{branch['id']}/roles", "find": {"list": "roles", "match": name}, "wait": False}
    body = {"role": {**name, "password": "analytics1"}}
    outcome = run_module(sandbox, method="POST", body=body, **options)
    assert (outcome.success["object"]["name"], outcome.success["object"]["password"]) == ("analytics1", MASK)
    assert outcome.success["request"]["body"] == {"role": {**name, "password": MASK}}
    assert outcome.result["invocation"]["module_args"]["find"]["match"] == name


def test_secrets_of_the_response_are_not_in_its_message(sandbox: Sandbox) -> None:
    error = f"cannot set {SECRET}"
    sandbox.fault("status", status=400, method="POST", body={"password": SECRET, "message": error})
    outcome = run_module(sandbox, method="POST", body={"branch": {}}, status_code=[400])
    assert outcome.success["json"] == {"password": MASK, "message": f"cannot set {MASK}"}


@pytest.mark.parametrize("secret", [SECRET, "hunter"])
def test_an_error_of_the_service_that_quotes_a_secret_is_censored(sandbox: Sandbox, secret: str) -> None:
    sandbox.fault("status", status=400, method="POST", body={"message": f"the password '{secret}' is too weak"})
    outcome = run_module(sandbox, method="POST", body={"role": {"password": secret}})
    assert (outcome.failure["status"], secret in outcome.printed) == (400, False)


def test_secrets_in_the_lookup_and_in_the_query_are_not_printed(sandbox: Sandbox) -> None:
    find = {"list": "branches", "match": {"password": f"{SECRET}1", "pin": "1234"}, "query": {"token": f"{SECRET}2"}}
    query = {"api_key": f"{SECRET}3", "page": "7"}
    outcome = run_module(sandbox, find=find, query=query, secret_fields=["pin"])
    assert (outcome.success["object"], SECRET in outcome.printed) == (None, False)
    shown = outcome.result["invocation"]["module_args"]
    assert (shown["find"]["list"], shown["query"]["page"]) == ("branches", "7")
    assert shown["find"]["match"]["pin"] == MASK


@pytest.mark.parametrize("field", ["branchs", None])
def test_an_unknown_list_is_named_with_the_existing_ones(sandbox: Sandbox, field: str | None) -> None:
    outcome = run_module(sandbox, find={"list": field, "match": {"name": "main"}})
    assert outcome.failure == {"kind": "invalid_option", "option": "find.list"}
    assert "branches" in outcome.result["msg"]
