# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a goal says of its resource, in messages and in diffs, what its requests show of it, and which of a list it is."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._lists import Listed
from ansible_collections.clouddb.control.plugins.module_utils._resources.goal import (
    DELETE,
    Find,
    Goal,
    ResourceRequest,
    deletion,
)
from ansible_collections.clouddb.control.plugins.module_utils._resources.kinds import BRANCH, COMPUTE, Kind
from ansible_collections.clouddb.control.plugins.module_utils._resources.lookup import select

LIST = ("projects", "p", "branches")


def goal(kind: Kind, **params: Any) -> Goal:
    return deletion(kind, Find(LIST, kind.plural, {}), params, wait=True)


def test_of_several_unfinished_operations_the_newest_decides() -> None:
    newest_first = [{"action": f"{verb}_compute", "status": "running"} for verb in ("start", "suspend")]
    for operations, state in ((newest_first, "active"), (newest_first[::-1], "idle")):
        assert goal(COMPUTE).expected({"current_state": "init"}, operations)["current_state"] == state
    ended = [{**newest_first[0], "status": "failed"}]
    assert goal(COMPUTE).expected({"current_state": "idle"}, ended)["current_state"] == "idle"


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"id": "ep-1", "branch": "dev", "type": "read_write"}, "there is no compute with the id ep-1"),
        ({"branch": "dev", "type": "read_only"}, "dev has no compute of type read_only"),
        ({"branch": None, "type": "read_write"}, "the default branch has no compute of type read_write"),
    ],
)
def test_what_is_missing_is_named_by_the_options_of_the_task(params: dict[str, Any], text: str) -> None:
    assert goal(COMPUTE, **params).missing.startswith(text)


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("parent_id", "parent: branch dev has another parent than main, and an existing branch keeps its parent."),
        ("init_source", "init_source: br-1 has init_source full, which cannot be changed. Set init_source to this"),
    ],
)
def test_an_unchangeable_field_has_the_words_of_its_kind(field: str, text: str) -> None:
    found = {"id": "br-1", "parent_id": "br-0", "init_source": "full"}
    assert str(goal(BRANCH, name="dev", parent="main").unchangeable(field, found)).startswith(text)


def test_the_diff_of_a_deletion_is_what_was_deleted() -> None:
    found = {"id": "br-1", "name": "dev"}
    assert goal(BRANCH).requests[DELETE].diff(found, None) == {"before": found, "after": {}}


def test_a_response_is_the_resource_itself_only_with_an_id() -> None:
    request = ResourceRequest("POST", ("api_keys",))
    assert [request.resource_in(json) for json in ({"id": 1}, {"key": "x"}, [])] == [{"id": 1}, None, None]


def test_one_that_is_being_deleted_counts_if_there_is_no_other() -> None:
    old, new = {"id": "br-1", "name": "dev", "current_state": "deleting"}, {"id": "br-2", "name": "dev"}
    for items, found in (([old, new], new), ([old], old)):
        assert select(Listed(items, [], [], {"dev"}), [{"name": "dev"}], goal(BRANCH)) == (found, [])
