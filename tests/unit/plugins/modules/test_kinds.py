# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rows of the table of resources have only what the sandbox serves. tests/openapi compares them with the published document."""

from __future__ import annotations

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._resources import kinds
from ansible_collections.clouddb.control.plugins.module_utils._resources.kinds import BRANCH, DATABASE, Action, Kind
from ansible_collections.clouddb.control.tests.unit.support.openapi_rows import ROWS, Described, problems
from clouddb_sandbox.app import openapi_document
from clouddb_sandbox.paths import BASE_PATH

LIST, ITEM = "/projects/{}/branches", "/projects/{}/branches/{}"


@pytest.fixture(scope="module")
def document() -> Described:
    return Described(openapi_document(), BASE_PATH)


@pytest.mark.parametrize("name", ROWS)
def test_a_row_is_what_the_sandbox_serves(document: Described, name: str) -> None:
    assert problems(getattr(kinds, name), document) == []


@pytest.mark.parametrize(
    ("row", "found"),
    [
        (
            BRANCH._replace(changeable={"description": "description"}),
            [f"{request} has no description" for request in (f"GET {ITEM}", f"POST {LIST}", f"PATCH {ITEM}")],
        ),
        (BRANCH._replace(initial={"at": "parent_time"}), [f"POST {LIST} has no parent_time"]),
        (BRANCH._replace(beside_wrapper={"compute": {True: {"computes": []}}}), [f"POST {LIST} has no computes"]),
        (BRANCH._replace(actions={"reset": Action("reset")}), [f"there is no POST {ITEM}/reset"]),
        (BRANCH._replace(actions={"restored": Action("restore")}), [f"POST {ITEM}/restore requires source_branch_id"]),
        (DATABASE._replace(changeable={}), [f"POST {ITEM}/databases requires owner_name"]),
    ],
)
def test_a_row_with_an_error_is_noticed(document: Described, row: Kind, found: list[str]) -> None:
    assert problems(row, document) == found
