# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Paths of requests: what is refused, what is a placeholder, and which project a path is about."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import InvalidOption
from ansible_collections.clouddb.control.plugins.module_utils._resources.plan import (
    fill,
    list_segments,
    parse_path,
    project_of,
)


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
        "projects\\api_keys",
        "projects\n",
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


def test_the_list_of_an_object_has_the_path_without_the_placeholder() -> None:
    assert list_segments(("projects", "p", "branches", "{id}")) == ("projects", "p", "branches")
    assert list_segments(("projects", "p", "branches")) == ("projects", "p", "branches")


@pytest.mark.parametrize(
    "found, filled", [({"id": "br-1"}, "br-1"), ({"id": 7}, "7"), ({"id": "a/b", "name": "x"}, "a/b")]
)
def test_fills_a_placeholder(found: dict[str, Any], filled: str) -> None:
    assert fill(("projects", "p", "{id}"), found) == ("projects", "p", filled)


@pytest.mark.parametrize("found", [{}, {"id": None}, {"id": " "}, {"id": True}, {"id": {}}, {"id": ".."}])
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
