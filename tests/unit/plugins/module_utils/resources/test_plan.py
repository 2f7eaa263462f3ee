# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a task asks for: which options are refused, and what of them is sent."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import InvalidOption
from ansible_collections.clouddb.control.plugins.module_utils._resources.plan import plan_from
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


@pytest.mark.parametrize("number", [float("nan"), {1, 2}])
def test_a_body_that_json_cannot_express(number: Any) -> None:
    with pytest.raises(InvalidOption) as error:
        plan_from(params("POST", body={"size": number}), False)
    assert error.value.details["option"] == "body"
