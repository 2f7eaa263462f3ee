# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The object that a task is about: found in a list, shown by a response, and named if there are several."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._api_request.lookup import (
    AmbiguousMatch,
    IncompleteList,
    Lookup,
    NoMatch,
    check_unknown,
    find_again,
    is_fulfilled,
    look_up,
    no_match,
    object_in,
    single_object,
)
from ansible_collections.clouddb.control.plugins.module_utils._http.response import Response
from ansible_collections.clouddb.control.tests.unit.plugins.module_utils.api_request.plans import branch, plan
from ansible_collections.clouddb.control.tests.unit.support.in_one_test import in_one_test
from ansible_collections.clouddb.control.tests.unit.support.scripted_client import Serve, page
from ansible_collections.clouddb.control.tests.unit.support.scripted_service import reply


def test_the_list_is_requested_with_its_query(serve: Serve) -> None:
    served = serve(page("branches", [branch("other"), branch(size=3)]))
    assert look_up(served.client, plan("DELETE")) == Lookup(branch(size=3), [])
    [target] = served.targets
    assert target.startswith("/projects/p/branches?") and "limit=3" in target


@in_one_test("method, requests", [("PATCH", 2), ("PUT", 2), ("DELETE", 1), ("POST", 1)])
def test_a_changed_object_is_found_by_its_new_value(serve: Serve, method: str, requests: int) -> None:
    listed = page("branches", [branch("new")])
    served = serve(*[listed] * requests)
    found = look_up(served.client, plan(method, {"branch": {"name": "new"}})).found
    assert (found, len(served.targets)) == (branch("new") if requests == 2 else None, requests)


@in_one_test("method", ["PATCH", "PUT"])
def test_fields_that_the_list_lacks_are_fetched(serve: Serve, method: str) -> None:
    served = serve(page("branches", [branch()]), reply({"branch": branch(size=3)}))
    found = look_up(served.client, plan(method, {"branch": {"name": "preview", "size": 3}})).found
    assert (found, served.targets[1:]) == (branch(size=3), ["/projects/p/branches/br-1"])


@in_one_test(
    "body, response",
    [
        # The list has all fields of the body.
        ({"name": "preview"}, None),
        (branch(), None),
        # Another object, no object, and no GET for the path.
        ({"size": 3}, reply({"branch": branch(id="br-2", size=3)})),
        ({"size": 3}, reply({"size": 3})),
        ({"size": 3}, reply({}, 404)),
    ],
)
def test_fields_that_are_not_fetched(serve: Serve, body: dict[str, Any], response: Any) -> None:
    served = serve(page("branches", [branch()]), *([response] if response else []))
    assert look_up(served.client, plan("PATCH", {"branch": body})).found == branch()
    assert len(served.targets) == (2 if response else 1)


def test_the_object_is_found_again_by_its_id(serve: Serve) -> None:
    served = serve(page("branches", [branch("preview", id="br-2"), branch("new")]))
    assert find_again(served.client, plan("PATCH", {"branch": {"name": "new"}}), branch()) == branch("new")


def test_an_object_that_is_found_again_has_all_its_fields(serve: Serve) -> None:
    served = serve(page("branches", [branch()]), reply({"branch": branch(size=3)}))
    assert find_again(served.client, plan("PATCH", {"branch": {"size": 3}}), branch()) == branch(size=3)


def test_several_objects_of_one_id_are_refused(serve: Serve) -> None:
    served = serve(page("branches", [branch(), branch()]))
    with pytest.raises(AmbiguousMatch, match="^DELETE /projects/p/branches/{id} is about one object, but 2 match"):
        find_again(served.client, plan("DELETE"), branch())


@in_one_test("found", [None, {"name": "preview"}, {"id": None, "name": "preview"}])
def test_an_object_without_an_id_is_found_again_by_find(serve: Serve, found: dict[str, Any] | None) -> None:
    served = serve(page("branches", [branch()]))
    assert find_again(served.client, plan("DELETE"), found) == branch()


def test_an_incomplete_list(serve: Serve) -> None:
    served = serve(reply({"branches": [], "unavailable_project_ids": ["p-1", "p-2"]}))
    with pytest.raises(IncompleteList) as error:
        look_up(served.client, plan("DELETE"))
    assert str(error.value) == (
        "No object matches find, but the list /projects/p/branches is incomplete. "
        "The service could not include: p-1, p-2. Try again later."
    )


def test_no_object_matches() -> None:
    assert str(no_match(plan("PATCH"))) == (
        "No object matches find, so PATCH /projects/p/branches/{id} was not sent. Check find.match and find.path."
    )


PROBLEM = "No object of the list /projects/p/branches has the field naem or color of find.match"


def test_fields_that_no_object_has() -> None:
    unknown = Lookup(None, ["naem", "name", "color"])
    body = {"branch": {"name": "preview"}}
    with pytest.raises(NoMatch) as error:
        check_unknown(plan("POST", body), unknown)
    assert str(error.value) == (
        f"{PROBLEM}, and body does not set it, so each run would create an object. Check the field's name."
    )
    name = "DELETE /projects/p/branches/{id}"
    assert check_unknown(plan("DELETE", body), unknown) == [
        f"{PROBLEM}, so {name} was not sent. Check the field's name."
    ]
    assert check_unknown(plan("PATCH", body), unknown) == []
    assert check_unknown(plan("POST", body), Lookup(branch(), ["naem"])) == []
    assert check_unknown(plan("POST", body), Lookup(None, ["name"])) == []


def test_at_most_ten_objects_are_named() -> None:
    objects: list[dict[str, Any]] = [{"id": number, "name": "x"} for number in range(8)]
    objects += [{"name": "only a name"}, {"size": 3}]
    ten = "0, 1, 2, 3, 4, 5, 6, 7, only a name, ?"
    name = "DELETE /projects/p/branches/{id} is about one object, but"
    advice = "Add a field to find.match that only one has."
    for found, text in (
        (objects, f"{name} 10 match find: {ten}. {advice}"),
        ([*objects, branch()], f"{name} 11 match find: {ten} and 1 more. {advice}"),
        ([{"id": "i" * 101}, {"id": "i" * 100}], f"{name} 2 match find: {'i' * 99}…, {'i' * 100}. {advice}"),
    ):
        with pytest.raises(AmbiguousMatch) as error:
            single_object(found, plan("DELETE"))
        assert str(error.value) == text
    assert single_object([branch()], plan("DELETE")) == branch()
    assert single_object([], plan("DELETE")) is None


@in_one_test(
    "json, shown",
    [
        ({"branch": {"id": "br-1"}, "operations": []}, {"id": "br-1"}),
        ({"project": {"id": "p"}, "branch": {"id": "br-1"}}, {"id": "br-1"}),
        ({"branch": "br-1", "id": 7}, {"branch": "br-1", "id": 7}),
        ({"id": 7}, {"id": 7}),
        ({"endpoint": {"id": "ep-1"}}, None),
        ([{"id": 7}], None),
        (None, None),
    ],
)
def test_the_object_that_a_response_is_about(json: Any, shown: Any) -> None:
    response = Response(json, "GET", "/projects/p/branches/br-1", 1, "request-1", 200)
    assert object_in(response, plan("GET")) == shown


@in_one_test(
    "method, body, found, fulfilled",
    [
        ("DELETE", None, None, True),
        ("DELETE", None, branch(), False),
        ("POST", {"branch": {"size": 3}}, branch(), True),
        ("POST", {"branch": {}}, None, False),
        ("PATCH", {"branch": {"name": "preview"}}, branch(), True),
        ("PATCH", {"branch": {"name": "new"}}, branch(), False),
        ("PATCH", {"branch": {"name": "preview"}, "endpoint": {"size": 3}}, branch(), False),
        ("PATCH", {}, None, False),
        ("PUT", None, branch(), True),
    ],
)
def test_whether_nothing_has_to_be_sent(method: str, body: Any, found: Any, fulfilled: bool) -> None:
    assert is_fulfilled(plan(method, body), found) is fulfilled
    assert is_fulfilled(plan(method, body, None), found) is False
