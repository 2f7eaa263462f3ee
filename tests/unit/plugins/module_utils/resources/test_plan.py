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


@pytest.mark.parametrize("method", ["POST", "PATCH", "PUT", "DELETE"])
@pytest.mark.parametrize(
    "status, accepted",
    [
        (200, True),
        (299, True),
        (300, False),
        (303, False),
        (404, True),
        (408, False),
        (409, True),
        (423, True),
        (429, True),
        (451, True),
        (500, False),
        (502, False),
        (503, True),
        (504, False),
    ],
)
def test_statuses_that_tell_whether_the_service_has_acted(method: str, status: int, accepted: bool) -> None:
    if accepted:
        assert plan_from(params(method, status_code=[200, status]), False).accept == {200, status}
    else:
        with pytest.raises(InvalidOption, match=f"^status_code: {status} does not tell whether .* a {method} request"):
            plan_from(params(method, status_code=[200, status]), False)


def test_a_get_may_accept_every_status() -> None:
    assert plan_from(params("GET", status_code=[302, 500]), False).accept == {302, 500}


def test_without_statuses_every_success_is_accepted() -> None:
    assert set(plan_from(params("GET"), False).accept) == set(range(200, 300))


@pytest.mark.parametrize("wait", [True, False])
@pytest.mark.parametrize("all_pages", [True, False])
def test_flags(wait: bool, all_pages: bool) -> None:
    plan = plan_from(params("GET", wait=wait, all_pages=all_pages), False)
    assert (plan.wait, plan.all_pages) == (wait, all_pages)


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


@pytest.mark.parametrize("number", [float("nan"), float("inf"), {1, 2}])
def test_a_body_that_json_cannot_express(number: Any) -> None:
    with pytest.raises(InvalidOption, match="^body: contains a value that JSON cannot express, such as NaN. Change it"):
        plan_from(params("POST", body={"size": number}), False)
