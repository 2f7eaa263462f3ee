# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every endpoint answers as the OpenAPI document says, to good and to bad requests: schemathesis finds nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
import schemathesis
from hypothesis import assume, given, settings
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

from clouddb_sandbox.app import create_app
from clouddb_sandbox.settings import Settings

PROJECT = "wispy-lake-12345678"
DOCUMENT = create_app(Settings(Path(":memory:"), "k" * 64)).openapi()
# If it knew of the key, schemathesis would make up others.
OPERATIONS = [found.ok() for found in schemathesis.openapi.from_dict({**DOCUMENT, "security": []}).get_all_operations()]


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.label)
def test_answers_are_as_documented(serve, operation):
    # A clock that runs, or unfinished work would make most requests wait.
    service = serve({"projects": [{"id": PROJECT}], "api_keys": [{"name": "ci"}] * 20}, speed=10_000)
    there = {"project_id": PROJECT, "branch_id": service.default_branch()}
    present = {name: value for name, value in there.items() if f"{{{name}}}" in operation.path}
    cases = operation.as_strategy(GenerationMode.POSITIVE) | operation.as_strategy(GenerationMode.NEGATIVE)
    if present:
        cases |= operation.as_strategy(GenerationMode.POSITIVE, path_parameters=present)

    @settings(max_examples=max(55, settings().max_examples))
    @given(cases)
    def check(case):
        assume(case.path_parameters.get("key_id") != 1)  # the key that the test needs itself
        response = case.call(base_url=service.host_url, session=service.session)
        assert response.status_code != 401
        # Which cursors there are, and what makes a good timeline, is more than the document says.
        beyond = (
            [positive_data_acceptance] if "cursor" in case.query or operation.path.endswith("/operation_plans") else []
        )
        case.validate_response(response, excluded_checks=beyond)

    check()


def test_the_document_tells_of_the_key_and_of_no_status_that_never_comes():
    assert [
        DOCUMENT["components"]["securitySchemes"][name]["scheme"] for needed in DOCUMENT["security"] for name in needed
    ] == ["bearer"]
    statuses = {status for operation in OPERATIONS for status in operation.definition.raw["responses"]}
    assert "401" in statuses and "422" not in statuses
    assert not [name for name in DOCUMENT["components"]["schemas"] if "ValidationError" in name]
