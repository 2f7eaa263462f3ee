# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The checks that a response has the shape that api.md describes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._http.errors import UnexpectedResponse
from ansible_collections.clouddb.control.plugins.module_utils._http.response import Response
from ansible_collections.clouddb.control.plugins.module_utils._http.session import Request


def response(body: Any) -> Response:
    return Response(body, Request("GET", "/projects", "id-1"), 3)


JSON_TYPES: list[tuple[Any, str]] = [
    (None, "null"),
    (True, "a boolean"),
    (1, "an integer"),
    (1.5, "a number"),
    ("text", "a string"),
    ([], "an array"),
    ({}, "an object"),
]
CHECKS = {
    "a JSON object was expected": ("an object", lambda value: response(value).object()),
    "its field 'x' should be an object": ("an object", lambda value: response({"x": value}).object("x")),
    "the response should be an array": ("an array", lambda value: response(value).items(None)),
    "its field 'x' should be an array": ("an array", lambda value: response({"x": value}).items("x")),
    "an object was expected": ("an object", lambda value: response([{}, value]).items(None)),
    "the field 'n' should be an integer": ("an integer", lambda value: response([{"n": value}]).items(None, n=int)),
    "the field 's' should be a string": ("a string", lambda value: response(None).require({"s": value}, s=str)),
}


@pytest.mark.parametrize("value, named", JSON_TYPES)
@pytest.mark.parametrize("problem, check", CHECKS.items())
def test_other_types_are_refused(
    value: Any, named: str, problem: str, check: tuple[str, Callable[[Any], object]]
) -> None:
    accepted, call = check
    if named == accepted:
        call(value)
        return
    with pytest.raises(UnexpectedResponse) as error:
        call(value)
    assert f" is not what the API describes: {problem}, not {named}" in str(error.value)
    assert error.value.details == {"method": "GET", "path": "/projects", "attempts": 3, "request_id": "id-1"}


def test_missing_fields_are_refused() -> None:
    with pytest.raises(UnexpectedResponse):
        response({}).object("operation")
    with pytest.raises(UnexpectedResponse):
        response(None).require({"id": "o"}, id=str, status=str)


@pytest.mark.parametrize("field", ["id", "project_id", "branch_id", "endpoint_id"])
def test_every_id_is_checked(field: str) -> None:
    for accepted in ("br-1", 7, None, ""):
        assert response(None).require({field: accepted}) == {field: accepted}
    with pytest.raises(UnexpectedResponse):
        response(None).require({field: "{{ x }}"})


@pytest.mark.parametrize("value", [None, True, 7, {}, "a b\n", ".." * 50])
def test_values_that_are_no_ids(value: Any) -> None:
    with pytest.raises(UnexpectedResponse):
        response(None).require_id(value)
