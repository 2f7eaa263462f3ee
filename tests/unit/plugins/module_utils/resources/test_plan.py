# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a task asks for: which options and paths are refused, and what of them is sent."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import InvalidOption
from ansible_collections.clouddb.control.plugins.module_utils._resources.plan import (
    fill,
    parse_path,
    plan_from,
    project_of,
)
from ansible_collections.clouddb.control.tests.unit.support.api_request_task import DEFAULTS


def params(method: str, **options: Any) -> dict[str, Any]:
    body = {"branch": {"name": "x"}} if method in ("PATCH", "PUT") else None
    given = {**DEFAULTS, "method": method, "path": "projects/p/branches", "body": body, **options}
    if given["find"]:
        given["find"] = {"path": None, "list": None, "match": {"name": "x"}, "query": None, **given["find"]}
    return given


@pytest.mark.parametrize("method", ["POST", "PATCH", "DELETE"])
def test_only_statuses_that_tell_whether_the_service_has_acted(method: str) -> None:
    for status in (200, 299, 404, 423, 503):
        assert plan_from(params(method, status_code=[status]), False).accept == {status}
    for status in (300, 408, 500, 504):
        with pytest.raises(InvalidOption) as error:
            plan_from(params(method, status_code=[200, status]), False)
        assert error.value.details["option"] == "status_code"


def test_a_get_may_accept_every_status() -> None:
    assert plan_from(params("GET", status_code=[302, 500]), False).accept == {302, 500}


def test_without_statuses_every_success_is_accepted() -> None:
    assert set(plan_from(params("GET"), False).accept) == set(range(200, 300))


@pytest.mark.parametrize(
    "options",
    [{"find": {"path": "projects/None/branches"}}, {"find": {"query": {"search": None}}}, {"query": {"search": None}}],
)
def test_a_value_may_be_missing_in_check_mode_only(options: dict[str, Any]) -> None:
    plan_from(params("PATCH", **options), True)
    with pytest.raises(InvalidOption) as error:
        plan_from(params("PATCH", **options), False)
    [(option, value)] = options.items()
    assert error.value.details["option"] == (f"{option}.{next(iter(value))}" if option == "find" else option)


@pytest.mark.parametrize(
    "text, segments",
    [
        ("projects", ("projects",)),
        ("/projects/p/branches", ("projects", "p", "branches")),
        ("projects/p/branches/{id}", ("projects", "p", "branches", "{id}")),
        ("api/v", ("api", "v")),
        ("a b/ü/%2e%2e", ("a b", "ü", "%2e%2e")),
    ],
)
def test_splits_a_path_into_segments(text: str, segments: tuple[str, ...]) -> None:
    assert parse_path("path", text) == segments


@pytest.mark.parametrize(
    "text",
    [
        "FILE:///etc/passwd",
        "//elsewhere.example.com/projects",
        "/api/v2/projects",
        "projects?limit=1",
        "projects#top",
        "projects/../api_keys",
        "projects/.",
        "",
        "projects/ /branches",
        "projects/",
        "projects/None/branches",
    ],
)
def test_refuses_what_is_not_a_path(text: str) -> None:
    with pytest.raises(InvalidOption) as error:
        parse_path("find.path", text)
    assert error.value.details["option"] == "find.path"


@pytest.mark.parametrize("text", ["projects//branches", "projects/None/branches", "projects/p/"])
def test_accepts_missing_segments_in_check_mode(text: str) -> None:
    assert len(parse_path("path", text, allow_missing=True)) == 3


@pytest.mark.parametrize(
    "found, filled", [({"id": "br-1"}, "br-1"), ({"id": 7}, "7"), ({"id": "a/b", "name": "x"}, "a/b")]
)
def test_fills_a_placeholder(found: dict[str, Any], filled: str) -> None:
    assert fill(("projects", "p", "{id}"), found) == ("projects", "p", filled)


@pytest.mark.parametrize("found", [{}, {"id": None}, {"id": " "}, {"id": {}}, {"id": ".."}])
def test_refuses_a_field_that_cannot_be_a_segment(found: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption):
        fill(("projects", "{id}"), found)


@pytest.mark.parametrize(
    "segments, project_id",
    [
        (("projects", "p-1", "branches", "{id}"), "p-1"),
        (("projects",), None),
        (("projects", "{id}"), None),
        (("api_keys", "7"), None),
    ],
)
def test_knows_the_project_of_a_path(segments: tuple[str, ...], project_id: str | None) -> None:
    assert project_of(segments) == project_id
