# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""operation_info against the sandbox."""

from __future__ import annotations

from datetime import datetime, timedelta
from threading import Barrier, Lock
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import (
    InvalidOption,
    NotFound,
    StatusError,
    UnexpectedResponse,
)
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.modules import operation_info
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox

SHOP, BLOG = "wispy-lake-12345678", "red-moon-34567890"

# One operation a minute, back in time.
long_history = pytest.mark.parametrize(
    "seed", [{"projects": [{"id": SHOP, "compute": False, "generate_operations": 100}]}], ids=["100 operations"]
)


def operation(name: str, age: str, action: str, status: str, **fields: str) -> dict[str, Any]:
    return {"id": name, "age": age, "action": action, "status": status, **fields}


@pytest.fixture
def seed() -> dict[str, Any]:
    shop = [
        operation("shop-1", "4d", "create_timeline", "finished", branch_id="br-main"),
        operation("shop-2", "50h", "create_branch", "finished", branch_id="br-dev"),
        operation(
            "shop-3", "49h", "start_compute", "failed", branch_id="br-dev", endpoint_id="ep-dev", error="no capacity"
        ),
        operation("shop-4", "30m", "start_compute", "running", branch_id="br-main", endpoint_id="ep-main"),
    ]
    blog = [
        operation("blog-1", "51h", "create_timeline", "finished"),
        operation("blog-2", "20m", "apply_config", "failed"),
    ]
    return {
        "projects": [
            {"id": SHOP, "name": "shop", "age": "5d", "compute": False, "operations": shop},
            {"id": BLOG, "age": "4d", "compute": False, "operations": blog},
            {"id": "calm-hill-23456789", "age": "3d", "compute": False},
        ]
    }


def task(client: Client, check_mode: bool = False, **options: Any) -> dict[str, Any]:
    """The result of the module with these options."""
    names = (
        "project",
        "project_id",
        "operation_id",
        "status",
        "action",
        "branch_id",
        "endpoint_id",
        "created_after",
        "max_results",
        "query",
        "fields",
    )
    params = {**dict.fromkeys(names), "page_size": 100, "workers": 4, "summary_only": False, **options}
    return operation_info.run(params, client, check_mode)


def ids(result: dict[str, Any]) -> list[str]:
    return [operation["id"] for operation in result["operations"]]


def limits(sandbox: Sandbox) -> list[str]:
    """The limit of each request to an operation list."""
    return [
        entry["query"].partition("limit=")[2].partition("&")[0]
        for entry in sandbox.requests()
        if entry["path"].endswith("/operations")
    ]


@pytest.mark.parametrize("check_mode", [False, True], ids=["real", "check mode"])
def test_returns_a_projects_operations_as_the_service_sends_them(
    sandbox: Sandbox, client: Client, check_mode: bool
) -> None:
    operations = sandbox.api("GET", f"/projects/{SHOP}/operations")["operations"]
    assert task(client, check_mode, project_id=SHOP) == {
        "changed": False,
        "operations": operations,
        "summary": {
            "total": 4,
            "by_status": {"running": 1, "failed": 1, "finished": 2},
            "by_action": {"start_compute": 2, "create_branch": 1, "create_timeline": 1},
        },
        "warnings": [],
    }
    assert [operation["id"] for operation in operations] == ["shop-4", "shop-3", "shop-2", "shop-1"]
    assert operations[1]["error"] == "no capacity"


def test_keeps_unknown_fields_and_statuses(sandbox: Sandbox, client: Client) -> None:
    unknown = {"id": "o", "status": "dreaming", "action": "think", "mood": ["fine"], "created_at": None}
    sandbox.fault("status", status=200, body={"operations": [unknown]})
    result = task(client, project_id=SHOP)
    assert result["operations"] == [unknown]
    assert result["summary"] == {"total": 1, "by_status": {"dreaming": 1}, "by_action": {"think": 1}}


def test_a_project_without_operations_has_an_empty_list(client: Client) -> None:
    assert task(client, project_id="calm-hill-23456789")["summary"] == {"total": 0, "by_status": {}, "by_action": {}}


@pytest.mark.parametrize(
    "selected, lookup",
    [
        ({"project": "shop"}, ["GET /projects"]),
        ({"project": SHOP}, [f"GET /projects/{SHOP}"]),
        ({"project_id": SHOP}, []),
    ],
)
def test_a_project_is_selected_by_name_or_id(
    sandbox: Sandbox, client: Client, selected: dict[str, Any], lookup: list[str]
) -> None:
    assert len(ids(task(client, **selected, page_size=10))) == 4
    assert list(dict.fromkeys(sandbox.sent())) == [*lookup, f"GET /projects/{SHOP}/operations"]


def test_operation_id_requires_a_project(sandbox: Sandbox, client: Client) -> None:
    with pytest.raises(InvalidOption) as error:
        task(client, operation_id=["shop-1"])
    assert (error.value.details, sandbox.sent()) == ({"option": "project"}, [])


def test_without_project_id_all_projects_are_listed_newest_first(client: Client) -> None:
    assert ids(task(client)) == ["blog-2", "shop-4", "shop-3", "shop-2", "blog-1", "shop-1"]


FILTERS: list[tuple[dict[str, Any], list[str]]] = [
    ({"status": ["failed"]}, ["blog-2", "shop-3"]),
    ({"status": ["failed", "running"]}, ["blog-2", "shop-4", "shop-3"]),
    ({"status": ["dreaming"]}, []),
    ({"action": ["create_timeline"]}, ["blog-1", "shop-1"]),
    ({"action": ["create_timeline", "create_branch"]}, ["shop-2", "blog-1", "shop-1"]),
    ({"branch_id": "br-dev"}, ["shop-3", "shop-2"]),
    ({"endpoint_id": "ep-main"}, ["shop-4"]),
    ({"created_after": "90m"}, ["blog-2", "shop-4"]),
    ({"created_after": 5400}, ["blog-2", "shop-4"]),
    ({"created_after": "50.5h"}, ["blog-2", "shop-4", "shop-3", "shop-2"]),
    ({"max_results": 3}, ["blog-2", "shop-4", "shop-3"]),
    ({"max_results": 1, "status": ["finished"]}, ["shop-2"]),
    ({"status": ["failed"], "created_after": "1d"}, ["blog-2"]),
    ({"status": ["failed"], "action": ["start_compute"], "branch_id": "br-dev", "endpoint_id": "ep-dev"}, ["shop-3"]),
    ({"branch_id": "br-main", "endpoint_id": "ep-dev"}, []),
]


@pytest.mark.parametrize("options, expected", FILTERS)
def test_selects_in_all_projects(client: Client, options: dict[str, Any], expected: list[str]) -> None:
    result = task(client, **options)
    assert ids(result) == expected
    assert result["summary"]["total"] == len(expected)


@pytest.mark.parametrize("options, expected", [case for case in FILTERS if "max_results" not in case[0]])
def test_selects_in_one_project(client: Client, options: dict[str, Any], expected: list[str]) -> None:
    assert ids(task(client, project_id=SHOP, **options)) == [name for name in expected if name.startswith("shop")]


def test_created_after_accepts_a_timestamp_and_includes_it(sandbox: Sandbox, client: Client) -> None:
    created_at = sandbox.api("GET", f"/projects/{SHOP}/operations/shop-3")["operation"]["created_at"]
    moment = datetime.fromisoformat(created_at.replace("Z", "+00:00"))
    for exactly in (
        created_at,
        moment.isoformat().replace("+00:00", ""),
        (moment + timedelta(hours=2)).isoformat().replace("+00:00", "+02:00"),
    ):
        assert ids(task(client, project_id=SHOP, created_after=exactly)) == ["shop-4", "shop-3"]
    just_after = (moment + timedelta(microseconds=1)).isoformat()
    assert ids(task(client, project_id=SHOP, created_after=just_after)) == ["shop-4"]


def test_an_age_is_measured_by_the_clock_of_the_service(sandbox: Sandbox, client: Client) -> None:
    # The client's own clock differs: it is stopped at 2026-11-21.
    sandbox.advance(3600)
    assert ids(task(client, project_id=SHOP, created_after="80m")) == []
    assert ids(task(client, project_id=SHOP, created_after="100m")) == ["shop-4"]


def test_an_age_beyond_the_year_1_selects_everything(client: Client) -> None:
    assert len(ids(task(client, project_id=SHOP, created_after="500000w"))) == 4


@long_history
def test_reads_all_pages(sandbox: Sandbox, client: Client) -> None:
    sandbox.fault("page_limit", items=9, times=None)
    result = task(client, project_id=SHOP, page_size=1000)
    assert len(set(ids(result))) == 100
    assert set(limits(sandbox)) == {"1000"}
    created = [operation["created_at"] for operation in result["operations"]]
    assert created == sorted(created, reverse=True)


@long_history
@pytest.mark.parametrize(
    ("options", "number", "requests"),
    [
        ({"created_after": "905s"}, 15, 2),
        ({"created_after": "605s"}, 10, 2),
        ({"created_after": "305s"}, 5, 1),
        ({"max_results": 15}, 15, 2),
        ({"max_results": 10}, 10, 1),
        ({"max_results": 1}, 1, 1),
        ({"max_results": 3, "created_after": "1d"}, 3, 1),
        ({"max_results": 3, "action": ["create_branch"]}, 3, 2),
    ],
    ids=str,
)
def test_paging_stops_when_the_selection_is_complete(
    sandbox: Sandbox, client: Client, options: dict[str, Any], number: int, requests: int
) -> None:
    assert len(ids(task(client, project_id=SHOP, page_size=10, **options))) == number
    assert limits(sandbox) == ["10"] * requests


@long_history
def test_a_page_that_cannot_be_fetched_fails_the_task(sandbox: Sandbox, client: Client) -> None:
    sandbox.fault("status", path="*/operations", status=502, skip=3, times=None)
    with pytest.raises(StatusError) as error:
        task(client, project_id=SHOP, page_size=10)
    assert error.value.status == 502


def test_one_operation_is_fetched_by_its_id(sandbox: Sandbox, client: Client) -> None:
    result = task(client, project_id=SHOP, operation_id=["shop-3"])
    assert result["operations"] == [sandbox.api("GET", f"/projects/{SHOP}/operations/shop-3")["operation"]]
    assert result["summary"] == {"total": 1, "by_status": {"failed": 1}, "by_action": {"start_compute": 1}}
    assert sandbox.sent() == [f"GET /projects/{SHOP}/operations/shop-3"]


def test_several_operations_are_fetched_newest_first_without_unknown_ones(sandbox: Sandbox, client: Client) -> None:
    wanted = ["shop-1", "nothing", "shop-4", "blog-2"]
    result = task(client, project_id=SHOP, operation_id=wanted)
    assert ids(result) == ["shop-4", "shop-1"]
    assert result["summary"]["total"] == 2
    assert sorted(sandbox.sent()) == sorted(f"GET /projects/{SHOP}/operations/{name}" for name in wanted)


def test_an_empty_list_of_ids_selects_nothing(sandbox: Sandbox, client: Client) -> None:
    assert task(client, project_id=SHOP, operation_id=[])["operations"] == []
    assert sandbox.sent() == []


@pytest.mark.parametrize("project_id, operation_id", [(SHOP, "nothing"), (BLOG, "shop-3")])
def test_an_unknown_operation_is_an_empty_list(client: Client, project_id: str, operation_id: str) -> None:
    assert task(client, project_id=project_id, operation_id=[operation_id])["operations"] == []


def test_a_response_about_another_operation_is_an_error(sandbox: Sandbox, client: Client) -> None:
    sandbox.fault("status", status=200, body={"operation": {"id": "other", "status": "finished"}})
    with pytest.raises(UnexpectedResponse, match="another operation, other"):
        task(client, project_id=SHOP, operation_id=["shop-3"])


def test_an_unknown_project_fails(client: Client) -> None:
    with pytest.raises(NotFound):
        task(client, project_id="nowhere")


@pytest.mark.parametrize("created_at", [None, 7, "yesterday"])
def test_created_after_needs_readable_timestamps(sandbox: Sandbox, client: Client, created_at: Any) -> None:
    sandbox.fault(
        "status", status=200, body={"operations": [{"id": "o", "status": "running", "created_at": created_at}]}
    )
    with pytest.raises(UnexpectedResponse, match="created_at"):
        task(client, project_id=SHOP, created_after="1d")


def test_a_project_deleted_meanwhile_is_left_out_with_a_warning(sandbox: Sandbox, client: Client) -> None:
    sandbox.fault("status", path=f"/projects/{BLOG}/operations", status=404)
    result = task(client)
    assert ids(result) == ["shop-4", "shop-3", "shop-2", "shop-1"]
    [warning] = result["warnings"]
    assert BLOG in warning


def test_a_project_that_cannot_be_listed_fails_the_task(sandbox: Sandbox, client: Client) -> None:
    sandbox.fault("status", path=f"/projects/{BLOG}/operations", status=403)
    with pytest.raises(StatusError) as error:
        task(client)
    assert error.value.status == 403


def test_projects_that_the_service_leaves_out_are_named(sandbox: Sandbox, client: Client) -> None:
    sandbox.fault("unavailable_projects", ids=[BLOG], times=None)
    result = task(client)
    assert ids(result) == ["shop-4", "shop-3", "shop-2", "shop-1"]
    [warning] = result["warnings"]
    assert BLOG in warning


# Sizing the result


SCOPES: list[dict[str, Any]] = [
    {},
    {"project_id": SHOP},
    {"project_id": SHOP, "operation_id": ["shop-3", "shop-4", "x"]},
]


@pytest.mark.parametrize("scope", SCOPES, ids=["account", "project", "ids"])
@pytest.mark.parametrize("check_mode", [False, True], ids=["real", "check mode"])
def test_summary_only_has_the_summary_of_the_list_without_the_list(
    sandbox: Sandbox, client: Client, scope: dict[str, Any], check_mode: bool
) -> None:
    complete = task(client, **scope)
    requests = sandbox.sent()
    result = task(client, check_mode, **scope, summary_only=True)
    assert result == {field: value for field, value in complete.items() if field != "operations"}
    assert sorted(sandbox.sent()) == sorted(2 * requests)


@pytest.mark.parametrize("options", [case[0] for case in FILTERS if "max_results" not in case[0]])
@pytest.mark.parametrize("scope", SCOPES[:2])
def test_summary_only_counts_what_is_selected(client: Client, scope: dict[str, Any], options: dict[str, Any]) -> None:
    assert task(client, **scope, **options, summary_only=True)["summary"] == task(client, **scope, **options)["summary"]


@pytest.mark.parametrize("option, value", [("max_results", 5), ("fields", ["id"])])
def test_summary_only_excludes_options_for_the_list(sandbox: Sandbox, client: Client, option: str, value: Any) -> None:
    with pytest.raises(InvalidOption, match=f"^{option}: cannot be combined with summary_only"):
        task(client, summary_only=True, **{option: value})
    assert sandbox.sent() == []


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("fields", [["id"], ["status", "id"], ["created_at"], ["endpoint_id"]])
def test_fields_reduce_the_list_and_nothing_else(client: Client, scope: dict[str, Any], fields: list[str]) -> None:
    complete = task(client, **scope)
    result = task(client, **scope, fields=fields)
    assert result.pop("operations") == [
        {field: operation[field] for field in operation if field in fields} for operation in complete.pop("operations")
    ]
    assert result == complete


def test_fields_keep_the_newest_of_max_results(client: Client) -> None:
    assert task(client, fields=["id"], max_results=3)["operations"] == [
        {"id": "blog-2"},
        {"id": "shop-4"},
        {"id": "shop-3"},
    ]


def test_a_field_that_no_operation_has_is_a_warning(client: Client) -> None:
    [warning] = task(client, project_id=SHOP, fields=["id", "sattus"])["warnings"]
    assert warning.startswith(
        "fields: no item has 'sattus'. The fields are action, branch_id, created_at, endpoint_id, "
    )


def test_fields_that_only_some_operations_have_are_no_warning(client: Client) -> None:
    fields = ["id", "error", "endpoint_id"]
    assert task(client, project_id=SHOP, action=["create_timeline"], fields=fields)["warnings"] == []
    assert task(client, project_id="calm-hill-23456789", fields=["sattus"])["warnings"] == []


@pytest.mark.parametrize("summary_only", [False, True])
def test_query_selects_the_projects_on_the_service(client: Client, summary_only: bool) -> None:
    """Accounts of organizations need a parameter for each list of projects, also for those that a tool requests internally.

    https://github.com/alchemy-run/alchemy/issues/509
    https://github.com/neondatabase/neonctl/issues/382
    """
    assert task(client, query={"search": BLOG}, summary_only=summary_only)["summary"]["total"] == 2


def test_unknown_statuses_and_actions_are_a_warning(client: Client) -> None:
    of_status, of_action = task(client, status=["failed", "faild"], action=["create_brnach"])["warnings"]
    assert of_status.startswith("status: 'faild'")
    assert of_action.startswith("action: 'create_brnach'")


several_projects = pytest.mark.parametrize(
    "seed", [{"generate": {"projects": 12, "operations_per_project": 2}}], ids=["12 projects"]
)


@several_projects
def test_as_many_projects_as_workers_are_listed_in_parallel(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    barrier = Barrier(4)
    get = client.get

    def get_at_barrier(*segments: str | int, **kwargs: Any) -> Any:
        if segments[-1] == "operations" and not kwargs["query"].get("cursor"):
            barrier.wait(60)
        return get(*segments, **kwargs)

    monkeypatch.setattr(client, "get", get_at_barrier)
    assert len(ids(task(client, workers=4))) == 24


@several_projects
@pytest.mark.parametrize("workers", [1, 3])
def test_no_more_projects_than_workers_are_listed_in_parallel(
    client: Client, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    lock = Lock()
    running, maximum = 0, 0
    get = client.get

    def counting(*segments: str | int, **kwargs: Any) -> Any:
        nonlocal running, maximum
        with lock:
            running += 1
            maximum = max(maximum, running)
        try:
            return get(*segments, **kwargs)
        finally:
            with lock:
                running -= 1

    monkeypatch.setattr(client, "get", counting)
    assert len(ids(task(client, workers=workers))) == 24
    assert maximum <= workers
