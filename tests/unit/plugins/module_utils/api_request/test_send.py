# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests that are sent once, and the outcome when a response is lost, refused or says too little."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._api_request.lookup import NoMatch
from ansible_collections.clouddb.control.plugins.module_utils._api_request.outcome import Outcome
from ansible_collections.clouddb.control.plugins.module_utils._api_request.plan import Find
from ansible_collections.clouddb.control.plugins.module_utils._api_request.send import (
    LOOKBACK,
    UnknownOutcome,
    _project_id,
    carry_out,
    started_operations,
    unfinished_about,
)
from ansible_collections.clouddb.control.plugins.module_utils._errors import NotFound, StatusError, UnexpectedResponse
from ansible_collections.clouddb.control.plugins.module_utils._http.response import Response
from ansible_collections.clouddb.control.tests.unit.plugins.module_utils.api_request.plans import (
    BRANCH,
    BRANCHES,
    branch,
    plan,
)
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import EPOCH
from ansible_collections.clouddb.control.tests.unit.support.in_one_test import in_one_test
from ansible_collections.clouddb.control.tests.unit.support.scripted_client import Scripted, Serve, page
from ansible_collections.clouddb.control.tests.unit.support.scripted_service import HANG_UP, Reply, reply

CREATE = {"branch": {"name": "preview"}}
LOST = "The response to {} was lost. The service has carried out the request{}."


def operation(operation_id: str, minutes: float = 0, **fields: Any) -> dict[str, Any]:
    """An operation that was created this many minutes after the clock's start."""
    created_at = (EPOCH + timedelta(minutes=minutes)).isoformat()
    return {"id": operation_id, "project_id": "p", "status": "running", "created_at": created_at, **fields}


def operations(*listed: dict[str, Any]) -> Reply:
    return reply({"operations": list(listed)})


def listed(*branches: dict[str, Any]) -> Reply:
    return page("branches", list(branches))


def ids(outcome: Outcome) -> list[str]:
    return [operation["id"] for operation in outcome.operations]


# What is sent


def test_without_find_the_request_is_sent_once(serve: Serve) -> None:
    served = serve(reply({"branch": branch(), "operations": [operation("op-1")]}, 201))
    outcome = carry_out(served.client, plan("POST", CREATE, None, BRANCHES))
    assert (outcome.changed, outcome.status, outcome.object, ids(outcome)) == (True, 201, branch(), ["op-1"])
    assert [(request.method, request.json) for request in served.requests] == [("POST", CREATE)]


@in_one_test("status", [200, 204])
def test_a_response_may_be_empty(serve: Serve, status: int) -> None:
    outcome = carry_out(serve(reply(b"", status)).client, plan("PATCH", {}, None, BRANCHES))
    assert (outcome.changed, outcome.json, outcome.status) == (True, None, status)


def test_a_locked_project_is_left_to_the_caller(serve: Serve) -> None:
    served = serve(reply({}, 423))
    with pytest.raises(StatusError) as error:
        carry_out(served.client, plan("POST", CREATE, None, BRANCHES))
    assert (error.value.status, error.value.attempts) == (423, 1)


@in_one_test("method", ["PATCH", "PUT"])
def test_a_change_needs_an_object(serve: Serve, method: str) -> None:
    with pytest.raises(NoMatch, match=f"^No object matches find, so {method} /projects/p/branches/{{id}} was not sent"):
        carry_out(serve(listed()).client, plan(method, {}))


def test_an_accepted_refusal_keeps_its_operations(serve: Serve) -> None:
    served = serve(listed(branch()), reply({"operations": [operation("op-1")]}, 409))
    outcome = carry_out(served.client, plan("DELETE", accept=(409,)))
    assert (outcome.changed, outcome.status, ids(outcome)) == (False, 409, ["op-1"])
    assert (outcome.object, outcome.before) == (branch(), branch())


# Responses that say too little


def test_a_response_about_the_object_is_enough(serve: Serve) -> None:
    """The object may no longer be one that find matches."""
    served = serve(listed(branch()), reply({"branch": branch("new")}))
    outcome = carry_out(served.client, plan("PATCH", {"branch": {"name": "new"}}))
    assert (outcome.changed, outcome.object, outcome.before) == (True, branch("new"), branch())
    assert len(served.requests) == 2


@in_one_test("response", [reply({}), reply({"branch": branch("new", id="br-2")}), reply({"branch": {"name": "new"}})])
def test_after_another_response_the_object_is_looked_up_by_its_id(serve: Serve, response: Reply) -> None:
    started = operations(operation("op-2", 5), operation("op-1", -5))
    served = serve(listed(branch()), response, listed(branch("renamed by another client")), started)
    outcome = carry_out(served.client, plan("PATCH", {"branch": {"name": "new"}}, wait=True))
    assert (outcome.changed, outcome.object) == (True, branch("renamed by another client"))
    assert (ids(outcome), outcome.warnings) == (["op-2"], [])


@in_one_test("response, problem", [(reply(b""), "its body is empty"), (reply({}), "it does not show what was done")])
def test_a_response_that_shows_nothing(serve: Serve, response: Reply, problem: str) -> None:
    # The lookups after it do not show the object either.
    served = serve(listed(), response, *[listed()] * 5)
    with pytest.raises(UnknownOutcome) as error:
        carry_out(served.client, plan("POST", CREATE, segments=BRANCHES))
    assert str(error.value) == (
        f"The response to POST /projects/p/branches is not what the API describes: {problem}, and no object matches find. "
        "The service may have carried out the request. So far, it was not. It is safe to run the task again."
    )


@in_one_test("method", ["POST", "PATCH", "DELETE"])
def test_operations_of_a_project_that_the_path_does_not_name(serve: Serve, method: str) -> None:
    is_there = page("projects", [{"id": "p", "name": "shop"}])
    is_not_there = page("projects", [])
    before, after = {
        "POST": (is_not_there, is_there),
        "PATCH": (is_there, is_there),
        "DELETE": (is_there, is_not_there),
    }[method]
    served = serve(before, reply({}), after, operations(operation("op-1")))
    segments = ("projects",) if method == "POST" else ("projects", "{id}")
    outcome = carry_out(
        served.client,
        plan(
            method,
            {"project": {"name": "new"}},
            Find(("projects",), "projects", {"name": "shop"}, {}),
            segments,
            wait=True,
        ),
    )
    assert (ids(outcome), outcome.warnings) == (["op-1"], [])
    assert served.requests[-1].path == "/api/v2/projects/p/operations"


def test_a_deletion_that_shows_the_object_has_no_further_operations(serve: Serve) -> None:
    served = serve(listed(branch()), reply({"branch": branch()}), listed())
    outcome = carry_out(served.client, plan("DELETE", wait=True))
    assert (outcome.changed, outcome.operations, len(served.requests)) == (True, [], 3)


@in_one_test("response, problem", [(reply(b""), "its body is empty"), (reply({}), "it does not show what was done")])
def test_an_object_that_is_still_there_is_not_deleted(serve: Serve, response: Reply, problem: str) -> None:
    # It is found by its id, whatever its name is by now.
    served = serve(listed(branch()), response, *[listed(branch("renamed"))] * 5)
    with pytest.raises(UnknownOutcome) as error:
        carry_out(served.client, plan("DELETE"))
    assert f"not what the API describes: {problem}, and the object is still there." in str(error.value)


@in_one_test(
    "response, lookups", [(reply({"operations": [operation("op-1")]}), 0), (reply(b"", 204), 0), (reply({}), 2)]
)
def test_a_deletion_is_looked_up_unless_its_response_shows_it(serve: Serve, response: Reply, lookups: int) -> None:
    served = serve(listed(branch()), response, *[listed(), operations(operation("op-1"))][:lookups])
    outcome = carry_out(served.client, plan("DELETE", wait=True))
    assert (outcome.changed, outcome.object, outcome.before) == (True, None, branch())
    assert ids(outcome) == ([] if response == reply(b"", 204) else ["op-1"])
    assert len(served.requests) == 2 + lookups


@in_one_test("field", ["id", "project_id", "status"])
def test_operations_without_what_a_wait_needs(field: str) -> None:
    complete = operation("op-1")
    response = Response({"operations": [complete]}, "POST", "/", 1, "request-1", 201)
    assert started_operations(response) == [complete]
    lacking = {name: value for name, value in complete.items() if name != field}
    with pytest.raises(UnexpectedResponse, match=f"the field '{field}' should be a string, not null"):
        started_operations(response._replace(json={"operations": [lacking]}))


@in_one_test("json", [None, [], {}, {"operations": None}, {"operations": []}])
def test_responses_without_operations(json: Any) -> None:
    assert started_operations(Response(json, "POST", "/", 1, "request-1", 201)) == []


# Refusals


def test_a_conflict_about_another_object_is_an_error(serve: Serve) -> None:
    with pytest.raises(StatusError, match="409 Conflict"):
        carry_out(serve(listed(), reply({}, 409), listed()).client, plan("POST", CREATE, segments=BRANCHES))


def test_a_conflict_of_another_method_is_an_error(serve: Serve) -> None:
    served = serve(listed(branch()), reply({}, 409))
    with pytest.raises(StatusError, match="409 Conflict"):
        carry_out(served.client, plan("DELETE"))
    assert len(served.requests) == 2


def test_an_object_that_another_client_has_deleted(serve: Serve) -> None:
    served = serve(listed(branch()), reply({}, 404), listed())
    assert carry_out(served.client, plan("DELETE")) == Outcome(False)


def test_an_object_that_another_client_has_renamed_is_not_deleted(serve: Serve) -> None:
    served = serve(listed(branch()), reply({}, 404), listed(branch("renamed")))
    with pytest.raises(NotFound):
        carry_out(served.client, plan("DELETE"))


def test_without_find_nobody_knows_whether_an_object_was_deleted(serve: Serve) -> None:
    with pytest.raises(NotFound):
        carry_out(serve(reply({}, 404)).client, plan("DELETE", find=None, segments=(*BRANCHES, "br-1")))


# Lost responses


def after_lost_deletion(serve: Serve, *rest: Reply) -> Scripted:
    """An earlier attempt has deleted the branch, minutes after an operation of somebody else."""
    return serve(
        listed(branch()), HANG_UP, *rest, operations(operation("op-2", 5), operation("op-1", -5)), api_retries=1
    )


def test_an_attempt_that_was_lost_has_deleted_the_object(serve: Serve) -> None:
    served = after_lost_deletion(serve, reply({}, 404), listed())
    outcome = carry_out(served.client, plan("DELETE"))
    warning = LOST.format("DELETE /projects/p/branches/{id}", ", as its list shows")
    assert (outcome.changed, outcome.before, ids(outcome), outcome.warnings) == (True, branch(), ["op-2"], [warning])


def test_a_second_attempt_has_no_operations(serve: Serve) -> None:
    served = after_lost_deletion(serve, reply(b"", 200))
    outcome = carry_out(served.client, plan("DELETE"))
    assert (outcome.changed, outcome.before, ids(outcome)) == (True, branch(), ["op-2"])


def test_an_earlier_run_of_the_task_has_deleted_the_object(serve: Serve) -> None:
    served = serve(listed(branch()), reply({}, 404), listed(), operations(operation("op-2", 5), operation("op-1", -5)))
    outcome = carry_out(served.client, plan("DELETE"), acted_since=EPOCH + timedelta(minutes=1))
    assert (outcome.changed, ids(outcome)) == (True, ["op-2"])


def test_an_earlier_attempt_of_the_task_has_created_the_object(serve: Serve) -> None:
    served = serve(listed(branch()), operations(operation("op-2", 5), operation("op-1", -5)))
    outcome = carry_out(served.client, plan("POST", CREATE, segments=BRANCHES), acted_since=EPOCH)
    assert (outcome.changed, outcome.object, outcome.before, ids(outcome)) == (True, branch(), None, ["op-2"])


def test_without_find_a_lost_deletion_is_known_by_its_404(serve: Serve) -> None:
    served = serve(HANG_UP, reply({}, 404), operations())
    outcome = carry_out(served.client, plan("DELETE", find=None, segments=(*BRANCHES, "br-1")))
    assert (outcome.changed, outcome.warnings) == (True, [LOST.format("DELETE /projects/p/branches/br-1", "")])


def test_operations_of_a_deleted_project_are_gone(serve: Serve) -> None:
    served = serve(HANG_UP, reply({}, 404), reply({}, 404))
    outcome = carry_out(served.client, plan("DELETE", find=None, segments=("projects", "p")))
    assert (outcome.changed, outcome.operations) == (True, [])


def test_operations_that_cannot_be_listed_are_a_warning(serve: Serve) -> None:
    served = serve(listed(), reply(b"", 202), listed(branch()), reply({}, 403))
    outcome = carry_out(served.client, plan("POST", CREATE, segments=BRANCHES, wait=True))
    assert (outcome.changed, outcome.object, outcome.operations) == (True, branch(), [])
    [warning] = outcome.warnings
    assert warning.startswith(
        "POST /projects/p/branches was carried out, but the task did not wait for its operations, because they could not be "
        "listed: GET /projects/p/operations returned 403 Forbidden."
    )


def test_without_wait_no_operations_are_listed(serve: Serve) -> None:
    served = serve(listed(), reply(b"", 202), listed(branch()))
    outcome = carry_out(served.client, plan("POST", CREATE, segments=BRANCHES))
    assert (outcome.changed, outcome.operations, outcome.warnings) == (True, [], [])


def test_operations_of_the_same_second_are_those_of_the_request(serve: Serve) -> None:
    """The service's timestamps may be in whole seconds."""
    second = EPOCH.isoformat()
    started = operations(operation("op-1", created_at=second))
    served = serve(listed(branch()), started)
    create = plan("POST", CREATE, segments=BRANCHES)
    outcome = carry_out(served.client, create, acted_since=EPOCH + timedelta(milliseconds=900))
    assert ids(outcome) == ["op-1"]


def test_an_object_without_a_project_has_no_operations(serve: Serve) -> None:
    found = {"id": 7, "name": "preview"}
    served = serve(page("things", []), HANG_UP, page("things", [found]))
    things = plan("POST", CREATE, Find(("things",), "things", {"name": "preview"}, {}), ("things",))
    outcome = carry_out(served.client, things)
    assert (outcome.changed, outcome.object, outcome.operations) == (True, found, [])


def test_an_object_that_was_created_is_looked_up_until_it_is_listed(serve: Serve) -> None:
    served = serve(listed(), HANG_UP, listed(), listed(), listed(branch()), operations())
    outcome = carry_out(served.client, plan("POST", CREATE, segments=BRANCHES))
    assert (outcome.changed, outcome.object, served.clock.pauses) == (True, branch(), [0.5, 1.0])


def test_a_changed_object_is_looked_up_by_its_id(serve: Serve) -> None:
    changed = branch("new", id="br-1")
    other = branch("new", id="br-2")
    served = serve(listed(branch()), HANG_UP, listed(other, changed), operations())
    outcome = carry_out(served.client, plan("PATCH", {"branch": {"name": "new"}}))
    assert (outcome.changed, outcome.object, outcome.before) == (True, changed, branch())


CHECK = "Check whether it was, before you run the task again."


@in_one_test(
    "method, advice",
    [("PATCH", CHECK), ("POST", f"{CHECK} With find, the task looks this up by itself.")],
)
def test_without_find_the_outcome_is_unknown(serve: Serve, method: str, advice: str) -> None:
    with pytest.raises(UnknownOutcome) as error:
        carry_out(serve(reply({}, 500)).client, plan(method, CREATE, None, BRANCHES))
    assert str(error.value) == (
        f"{method} /projects/p/branches returned 500 Internal Server Error. "
        f"The service may have carried out the request. {advice}"
    )
    assert error.value.details["status"] == 500


def test_an_object_that_find_does_not_match_may_be_the_new_one(serve: Serve) -> None:
    served = serve(listed(), reply({"branch": branch("renamed")}, 201), *[listed()] * 5)
    with pytest.raises(UnknownOutcome) as error:
        carry_out(served.client, plan("POST", CREATE, segments=BRANCHES))
    assert str(error.value).endswith(
        "it shows an object that find does not match: br-1. The service may have carried out the request. "
        "Check it and find.match before you run the task again, which may create another object."
    )


def test_an_outcome_that_cannot_be_looked_up(serve: Serve) -> None:
    served = serve(listed(), reply({}, 500), reply({"message": "no"}, 403))
    with pytest.raises(UnknownOutcome) as error:
        carry_out(served.client, plan("POST", CREATE, segments=BRANCHES))
    assert str(error.value).endswith(
        "The service may have carried out the request. This could not be looked up: "
        "GET /projects/p/branches returned 403 Forbidden: no. It is safe to run the task again."
    )


# Operations to wait for


def test_only_operations_of_the_last_day_are_those_of_an_earlier_run() -> None:
    assert LOOKBACK == 24 * 60 * 60


FOUND = branch(branch_id="br-9")
LISTED = [
    operation("of-the-branch", branch_id="br-1"),
    operation("of-its-endpoint", endpoint_id="br-1"),
    operation("of-what-it-belongs-to", branch_id="br-9"),
    operation("of-another-branch", branch_id="br-2", endpoint_id="ep-2"),
    operation("of-the-project"),
]


@in_one_test(
    "found, segments, expected",
    [
        (FOUND, BRANCH, ["of-the-branch", "of-its-endpoint", "of-what-it-belongs-to"]),
        (branch(), BRANCH, ["of-the-branch", "of-its-endpoint"]),
        ({"id": "p"}, ("projects", "{id}"), [operation["id"] for operation in LISTED]),
        ({"name": "preview"}, BRANCH, []),
    ],
)
def test_unfinished_operations_about_an_object(
    serve: Serve, found: dict[str, Any], segments: tuple[str, ...], expected: list[str]
) -> None:
    about = unfinished_about(serve(operations(*LISTED)).client, plan("PATCH", wait=True, segments=segments), found)
    assert sorted(operation["id"] for operation in about) == sorted(expected)


@in_one_test("found, wait, requests", [(None, True, 0), (FOUND, False, 0), (FOUND, True, 1)])
def test_when_there_is_nothing_to_wait_for(
    serve: Serve, found: dict[str, Any] | None, wait: bool, requests: int
) -> None:
    served = serve(*[reply({}, 404)] * requests)
    assert unfinished_about(served.client, plan("PATCH", wait=wait), found) == []
    assert len(served.requests) == requests


@in_one_test(
    "segments, found, project_id",
    [
        (BRANCH, None, "p"),
        (BRANCH, {"id": "br-1", "project_id": "q"}, "p"),
        (("things", "{id}"), {"id": "x", "project_id": "q"}, "q"),
        (("projects", "{id}"), {"id": "q"}, "q"),
        (("things", "{id}"), {"id": "x"}, None),
        (("things", "{id}"), {"id": "x", "project_id": "../q"}, None),
        (("things", "{id}"), None, None),
    ],
)
def test_the_project_of_an_object(
    segments: tuple[str, ...], found: dict[str, Any] | None, project_id: str | None
) -> None:
    assert _project_id(plan("PATCH", segments=segments), found) == project_id
