# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The checks that a response has the shape that api.md describes."""

from __future__ import annotations

import re
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import UnexpectedResponse
from ansible_collections.clouddb.control.plugins.module_utils._http.response import Response


def response(body: Any) -> Response:
    return Response(body, "GET", "/projects", 3, "id-1")


def problem(error: pytest.ExceptionInfo[UnexpectedResponse]) -> str:
    """The problem that the error describes; checks that the error names the request."""
    introduction = "The response to GET /projects is not what the API describes: "
    assert str(error.value).startswith(introduction)
    assert error.value.details == {"method": "GET", "path": "/projects", "attempts": 3, "request_id": "id-1"}
    return str(error.value)[len(introduction) :].removesuffix(".")


JSON_TYPES: list[tuple[Any, str]] = [
    (None, "null"),
    (True, "a boolean"),
    (1, "an integer"),
    (1.5, "a number"),
    ("text", "a string"),
    ([], "an array"),
    ({}, "an object"),
]
each_type_except = {
    wanted: pytest.mark.parametrize(
        "value, named", [(value, name) for value, name in JSON_TYPES if name != wanted], ids=str
    )
    for wanted in ("an object", "an array", "a string", "an integer")
}


def test_object_returns_the_object() -> None:
    assert response({"id": 1, "more": []}).object() == {"id": 1, "more": []}
    assert response({"operation": {"id": "o"}}).object("operation") == {"id": "o"}


@each_type_except["an object"]
def test_object_rejects_other_types(value: Any, named: str) -> None:
    with pytest.raises(UnexpectedResponse) as error:
        response(value).object()
    assert problem(error) == f"a JSON object was expected, not {named}"
    with pytest.raises(UnexpectedResponse) as error:
        response({"operation": value}).object("operation")
    assert problem(error) == f"its field 'operation' should be an object, not {named}"


def test_object_rejects_a_missing_field() -> None:
    with pytest.raises(UnexpectedResponse, match="its field 'operation' should be an object, not null"):
        response({}).object("operation")


def test_items_keeps_all_fields() -> None:
    assert response([{"id": 1, "more": 2}]).items(None, id=int) == [{"id": 1, "more": 2}]
    assert response({"projects": []}).items("projects", id=str) == []


@each_type_except["an array"]
def test_items_rejects_other_types(value: Any, named: str) -> None:
    with pytest.raises(UnexpectedResponse) as error:
        response(value).items(None)
    assert problem(error) == f"the response should be an array, not {named}"
    with pytest.raises(UnexpectedResponse) as error:
        response({"projects": value}).items("projects")
    assert problem(error) == f"its field 'projects' should be an array, not {named}"


def test_items_rejects_an_array_instead_of_an_object() -> None:
    with pytest.raises(UnexpectedResponse, match=re.escape("a JSON object was expected, not an array")):
        response([{"id": "p"}]).items("projects")


@each_type_except["an object"]
def test_items_rejects_items_that_are_not_objects(value: Any, named: str) -> None:
    with pytest.raises(UnexpectedResponse) as error:
        response([{}, value]).items(None)
    assert problem(error) == f"an object was expected, not {named}"


@each_type_except["an integer"]
def test_items_rejects_fields_of_other_types(value: Any, named: str) -> None:
    with pytest.raises(UnexpectedResponse) as error:
        response([{"id": 1}, {"id": value}]).items(None, id=int)
    assert problem(error) == f"the field 'id' should be an integer, not {named}"


@each_type_except["a string"]
def test_require_rejects_fields_that_are_not_strings(value: Any, named: str) -> None:
    with pytest.raises(UnexpectedResponse) as error:
        response(None).require({"id": value}, id=str)
    assert problem(error) == f"the field 'id' should be a string, not {named}"


def test_require_rejects_a_missing_field() -> None:
    with pytest.raises(UnexpectedResponse, match="the field 'status' should be a string, not null"):
        response(None).require({"id": "o"}, id=str, status=str)


@pytest.mark.parametrize("field", ["id", "project_id", "branch_id", "endpoint_id"])
def test_every_id_is_checked(field: str) -> None:
    for accepted in ("br-1", 7, None, ""):
        assert response(None).require({field: accepted}) == {field: accepted}
    with pytest.raises(UnexpectedResponse) as error:
        response(None).require({field: "{{ x }}"})
    assert problem(error) == "an id was expected, not '{{ x }}'"


@pytest.mark.parametrize(
    "value, named",
    [
        (None, "null"),
        (True, "a boolean"),
        (7, "an integer"),
        ({}, "an object"),
        ("a b\n", r"'a b\n'"),
        (".." * 50, f"'{'.' * 100}'"),
        ("." * 101, f"'{'.' * 99}…'"),
    ],
)
def test_values_that_are_no_ids(value: Any, named: str) -> None:
    with pytest.raises(UnexpectedResponse) as error:
        response(None).require_id(value)
    assert problem(error) == f"an id was expected, not {named}"


def test_arrays_of_other_names_are_named() -> None:
    with pytest.raises(UnexpectedResponse) as error:
        response({"branches": [], "total": 3, "roles": []}).items("projects")
    assert problem(error) == ("its field 'projects' should be an array, not null. It has these arrays: branches, roles")


def test_require_accepts_a_boolean() -> None:
    assert response(None).require({"revoked": True}, revoked=bool) == {"revoked": True}
