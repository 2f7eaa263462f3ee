# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a task asks for: which options and paths are refused, and what of them is sent."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import InvalidOption
from ansible_collections.clouddb.control.plugins.module_utils._resources.goal import Goal, fill
from ansible_collections.clouddb.control.plugins.module_utils._resources.request import goal_from, parse_path
from ansible_collections.clouddb.control.plugins.modules import api_request
from ansible_collections.clouddb.control.tests.unit.support.module_main import defaults_of


def plan(method: str, check_mode: bool = False, **options: Any) -> Goal:
    body = {"branch": {"name": "x"}} if method != "GET" else None
    given = {**defaults_of(api_request), "method": method, "path": "projects/p/branches", "body": body, **options}
    if given["find"] is not None:
        given["find"] = {"path": None, "list": None, "match": {"name": "x"}, "query": None, **given["find"]}
    return goal_from(given, check_mode)


@pytest.mark.parametrize("method", ["POST", "PATCH", "DELETE"])
def test_only_statuses_that_tell_whether_the_service_has_acted(method: str) -> None:
    for status in (200, 299, 404, 423):
        assert plan(method, status_code=[status]).first_request.accept == {status}
    for status in (300, 408, 500, 503, 504):
        with pytest.raises(InvalidOption) as error:
            plan(method, status_code=[200, status])
        assert error.value.details["option"] == "status_code"


@pytest.mark.parametrize(
    ("option", "method", "options"),
    [
        ("path", "POST", {"path": "projects/{id}", "find": {"match": {"a": 1}}, "body": {"a": 1}}),
        ("path", "DELETE", {"path": "projects/{id}"}),
        ("path", "DELETE", {"find": {}}),
        ("find", "DELETE", {"path": "a/{id}/b", "find": {}}),
        ("find", "POST", {"find": {"match": None}}),
        ("find", "DELETE", {"find": {"match": {"settings": {"quota": None}}}}),
        ("find", "DELETE", {"find": {"match": {"name": ""}}}),
        ("find", "POST", {"find": {"match": {"a": 1}}, "body": {"branch": {"a": 2}}}),
        ("body", "POST", {"find": {}, "body": {"brnch": {"name": "x"}}}),
        ("body.branch", "POST", {"find": {"match": {"a": 1}}, "body": {"branch": {}, "a": 1}}),
        ("body", "POST", {"find": {}, "body": None}),
        ("body", "PATCH", {"find": {}, "body": {}}),
        ("body", "GET", {"body": {"a": 1}}),
        ("all_pages", "POST", {"all_pages": True}),
        ("query", "GET", {"query": {"a": {"b": 1}}}),
        ("find.path", "GET", {"find": {"path": "../x"}}),
        ("find.query", "GET", {"find": {"query": {"a": {"b": 1}}}}),
    ],
)
def test_invalid_options_are_named(option: str, method: str, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption) as error:
        plan(method, **{"find": None, **options})
    assert error.value.details["option"] == option


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"endpoints": [], "options": {}, "brnch": {}}, ["'brnch'", "Did you mean branch?"]),
        ({"name": "x"}, ["'name'", "wrapper."]),
    ],
)
def test_a_body_without_a_wrapper_that_fits_the_list(body: dict[str, Any], named: list[str]) -> None:
    with pytest.raises(InvalidOption) as error:
        plan("POST", find={"list": "branches"}, body=body)
    assert [text in str(error.value) for text in named] == [True, True]


@pytest.mark.parametrize(
    ("option", "options"),
    [
        ("find.path", {"find": {"path": "projects/None/branches"}}),
        ("find.query", {"find": {"path": "projects", "query": {"search": None}}}),
        ("query", {"query": {"search": None}}),
        ("path", {"path": "projects//branches"}),
        ("path", {"path": "projects/p/"}),
    ],
)
def test_a_value_may_be_missing_in_check_mode_only(option: str, options: dict[str, Any]) -> None:
    plan("PATCH", True, **options)
    with pytest.raises(InvalidOption) as error:
        plan("PATCH", **options)
    assert error.value.details["option"] == option


@pytest.mark.parametrize(
    "text",
    [
        "FILE:///etc/passwd",
        "//elsewhere.example.com/projects",
        "/api/v2/projects",
        "projects?limit=1",
        "projects#top",
        "projects/../api_keys",
        "",
        "projects/ /branches",
    ],
)
def test_refuses_what_is_not_a_path(text: str) -> None:
    with pytest.raises(InvalidOption) as error:
        parse_path("find.path", text)
    assert error.value.details["option"] == "find.path"


@pytest.mark.parametrize("found", [{}, {"id": None}, {"id": " "}, {"id": {}}, {"id": ".."}])
def test_refuses_a_field_that_cannot_be_a_segment(found: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption):
        fill(("projects", "{id}"), found)
