# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sweep of the module branch: which branches it deletes, in which order, and what it does when one cannot be deleted."""

from __future__ import annotations

from typing import Any, Callable

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import ClouddbError
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.module_utils._resources import sweep
from ansible_collections.clouddb.control.tests.unit.support.resource_task import SHOP, failing, task, writes
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox
from ansible_collections.clouddb.control.tests.unit.support.scripted_client import Serve
from ansible_collections.clouddb.control.tests.unit.support.scripted_service import reply

Ids = dict[str, str]
BRANCHES = f"/projects/{SHOP}/branches"
OLDEST_FIRST = "?sort_by=created_at&sort_order=asc"
ALL_OLD = {"module": "branch", "name_pattern": "pr-*", "state": "absent"}
ANY_AGE = {**ALL_OLD, "older_than": 0}


@pytest.fixture
def ids(sandbox: Sandbox) -> Ids:
    """The ids of three branches by name, the newest of which is the first to be deleted; they are 10 days old."""
    created = {name: create(sandbox, name) for name in ("pr-1", "pr-2", "pr-3")}
    sandbox.advance(10 * 86400)
    return created


def create(sandbox: Sandbox, name: str, **fields: Any) -> str:
    branch = sandbox.api("POST", BRANCHES, {"branch": {"name": name, **fields}, "endpoints": []})["branch"]
    sandbox.advance(60)
    return str(branch["id"])


def listed(sandbox: Sandbox) -> list[str]:
    return [branch["name"] for branch in sandbox.api("GET", BRANCHES + OLDEST_FIRST)["branches"]]


def names(result: dict[str, Any]) -> list[str]:
    return [branch["name"] for branch in result["branches"]]


def planned_and_done(client: Client, options: dict[str, Any]) -> list[dict[str, Any]]:
    return [task(client, check_mode=check_mode, **options) for check_mode in (True, False)]


def failed(client: Client, **options: Any) -> dict[str, Any]:
    """The result of a sweep that failed."""
    with pytest.raises(ClouddbError) as error:
        task(client, **options)
    return error.value.as_result()


@pytest.fixture
def after_first(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], None]:
    """Lets somebody else act once, when the first branch has been deleted."""

    def arrange(act: Callable[[], Any]) -> None:
        actions, run = [act], sweep.Engine.run

        def run_and_act(engine: sweep.Engine) -> dict[str, Any]:
            result = run(engine)
            while actions:
                actions.pop()()
            return result

        monkeypatch.setattr(sweep.Engine, "run", run_and_act)

    return arrange


class TestSelection:
    @pytest.fixture
    def branches(self, sandbox: Sandbox) -> Ids:
        """The ids of branches that are 10 days old, except for the one of today, and a child of one of them."""
        ids = {name: create(sandbox, name, protected=name == "pr-2") for name in ("pr-1", "pr-2", "pr-3", "x", "pr-4")}
        create(sandbox, "child", parent_id=ids["pr-4"])
        sandbox.advance(10 * 86400)
        return {**ids, "pr-5": create(sandbox, "pr-5")}

    def test_old_branches_that_match_are_deleted(self, sandbox: Sandbox, client: Client, branches: Any) -> None:
        planned = task(client, check_mode=True, **ALL_OLD)
        assert writes(sandbox) == []
        result = task(client, **ALL_OLD)
        assert sorted(names(result)) == ["pr-1", "pr-3"]
        assert (result["changed"], len(result["warnings"])) == (True, 1)
        assert [planned[name] == result[name] for name in ("branches", "warnings", "diff")] == [True] * 3
        assert listed(sandbox) == ["main", "pr-2", "x", "pr-4", "child", "pr-5"]
        assert task(client, **ALL_OLD)["changed"] is False

    @pytest.mark.parametrize("check_mode", [False, True])
    def test_a_pattern_that_matches_nothing_warns(self, client: Client, branches: Any, check_mode: bool) -> None:
        """As in https://github.com/sindresorhus/del/issues/70"""
        for pattern, warnings in (("pr-[0-9][0-9]", 1), ("pr-5", 0)):
            result = task(client, check_mode=check_mode, **{**ALL_OLD, "name_pattern": pattern})
            assert (result["changed"], len(result["warnings"])) == (False, warnings)

    def test_not_more_than_max_deletions_are_deleted(self, client: Client, branches: Ids) -> None:
        result = task(client, **ALL_OLD, max_deletions=1)
        assert [each["id"] for each in result["branches"]] == [branches["pr-3"]]
        assert len(result["warnings"]) == 2


def test_the_default_branch_stays_even_if_it_has_no_children(sandbox: Sandbox, client: Client) -> None:
    sandbox.advance(10 * 86400)
    assert task(client, **{**ALL_OLD, "name_pattern": "ma*"})["changed"] is False
    assert (writes(sandbox), listed(sandbox)) == ([], ["main"])


def test_the_root_branch_stays_even_if_another_is_the_default(sandbox: Sandbox, client: Client) -> None:
    task(client, "branch", name="copy", schema_only=True, default=True)
    task(client, "branch", name="other", schema_only=True)
    sandbox.advance(10 * 86400)
    assert names(task(client, **{**ALL_OLD, "name_pattern": "*"})) == ["other"]
    assert listed(sandbox) == ["main", "copy"]


@pytest.mark.parametrize("created_at", ["0001-01-01T00:00:00Z", "1970-01-01T00:00:00Z", None])
def test_a_branch_whose_age_is_not_known_stays(sandbox: Sandbox, client: Client, ids: Ids, created_at: Any) -> None:
    branch = {"id": ids["pr-1"], "name": "pr-1", "created_at": created_at}
    sandbox.fault("status", status=200, method="GET", path=BRANCHES, body={"branches": [branch]})
    assert (task(client, **ALL_OLD)["changed"], writes(sandbox)) == (False, [])


UNDATED = [
    {"project": {"id": SHOP}},
    {"branches": [{"id": "br-1", "parent_id": "br-0", "name": "pr-1", "created_at": "2026-11-01T08:00:00Z"}]},
    {"endpoints": []},
]


@pytest.mark.parametrize("check_mode", [False, True])
@pytest.mark.parametrize(
    "option, age, lists", [("older_than", "7d", 2), ("older_than", "30d", 2), ("unused_for", "1d", 3)]
)
def test_without_a_date_nothing_is_deleted(serve: Serve, option: str, age: str, lists: int, check_mode: bool) -> None:
    service = serve(*map(reply, UNDATED[:lists]))
    options = {**ALL_OLD, "project": SHOP, option: age}
    assert failing(service.client, check_mode=check_mode, **options) == {"kind": "unexpected_response"}


def test_any_age_requires_no_date(serve: Serve) -> None:
    service = serve(*map(reply, UNDATED[:2]))
    assert names(task(service.client, check_mode=True, **ANY_AGE, project=SHOP)) == ["pr-1"]


def test_a_deletion_that_takes_too_long_is_a_change(sandbox: Sandbox, client: Client) -> None:
    body = {"branch": {"name": "pr-1"}, "endpoints": [{"type": "read_write"}]}
    sandbox.api("POST", BRANCHES, body)
    sandbox.advance(8 * 86400)
    result = failed(client, **ALL_OLD, timeout=0)
    assert (result["changed"], result["branches"], len(result["pending_ids"])) == (True, [], 1)
    assert [each["id"] for each in result["operations"]] == result["pending_ids"]


def test_a_parent_that_is_newer_than_its_child_goes_after_it(sandbox: Sandbox, client: Client) -> None:
    """As after a restore, in https://github.com/neondatabase/website/pull/2311"""
    for name in ("pr-21", "pr-22"):
        create(sandbox, name)
    restore = {"module": "branch_restore", "name": "pr-22", "timestamp": "1s", "preserve_as": "pr-22-before"}
    task(client, **restore)
    sandbox.advance(60)
    planned, done = planned_and_done(client, ANY_AGE)
    assert names(planned) == names(done) == ["pr-22", "pr-21", "pr-22-before"]
    assert listed(sandbox) == ["main"]


def test_children_at_any_depth_go_first(sandbox: Sandbox, client: Client) -> None:
    parent = create(sandbox, "pr-a")
    for name in ("pr-b", "pr-c"):
        parent = create(sandbox, name, parent_id=parent)
    create(sandbox, "pr-d")
    planned, done = planned_and_done(client, {**ANY_AGE, "wait": False})
    assert names(planned) == names(done) == ["pr-d", "pr-c", "pr-b", "pr-a"]


def test_a_child_whose_deletion_lingers_is_waited_for_even_without_wait(sandbox: Sandbox, client: Client) -> None:
    create(sandbox, "pr-b", parent_id=create(sandbox, "pr-a"))
    sandbox.fault("lingering_deletion", seconds=20)
    assert names(task(client, **ANY_AGE, wait=False)) == ["pr-b", "pr-a"]


@pytest.mark.parametrize("check_mode", [True, False])
def test_the_parent_of_a_branch_in_deletion_stays(sandbox: Sandbox, client: Client, check_mode: bool) -> None:
    child = create(sandbox, "pr-b", parent_id=create(sandbox, "pr-a"))
    sandbox.fault("lingering_deletion", seconds=600)
    sandbox.api("DELETE", f"{BRANCHES}/{child}")
    result = task(client, check_mode=check_mode, **ANY_AGE)
    warning = "Not deleted, because other branches were created from: pr-a."
    assert (result["branches"], result["warnings"]) == ([], [warning])


@pytest.mark.parametrize(
    "changes", [{"name": "production"}, {"name": "pr-7"}, {"protected": True}, {"name": "pr-2", "protected": True}]
)
def test_a_branch_that_somebody_changes_meanwhile_stays(
    sandbox: Sandbox, client: Client, ids: Ids, after_first: Any, changes: dict[str, Any]
) -> None:
    after_first(lambda: sandbox.api("PATCH", f"{BRANCHES}/{ids['pr-2']}", {"branch": changes}))
    result = task(client, **ALL_OLD)
    assert names(result) == ["pr-3", "pr-1"]
    assert result["warnings"] == ["Not deleted, because they were changed since they were listed: pr-2."]
    assert listed(sandbox) == ["main", changes.get("name", "pr-2")]


def test_the_parent_of_a_branch_that_stays_is_kept(sandbox: Sandbox, client: Client, after_first: Any) -> None:
    child = create(sandbox, "pr-b", parent_id=create(sandbox, "pr-a"))
    create(sandbox, "pr-c")
    after_first(lambda: sandbox.api("PATCH", f"{BRANCHES}/{child}", {"branch": {"name": "kept"}}))
    result = failed(client, **ANY_AGE)
    assert [line.split()[0] for line in writes(sandbox)] == ["DELETE"]
    assert [each["name"] for each in result["failure"]["remaining"]] == ["pr-a"]


def test_a_branch_gone_meanwhile_is_no_change(sandbox: Sandbox, client: Client, ids: Ids, after_first: Any) -> None:
    after_first(lambda: sandbox.api("DELETE", f"{BRANCHES}/{ids['pr-2']}"))
    result = task(client, **ALL_OLD)
    assert (names(result), result["warnings"]) == (["pr-3", "pr-1"], [])


def test_the_operations_of_all_deletions_are_returned(sandbox: Sandbox, client: Client) -> None:
    for name in ("pr-1", "pr-2"):
        task(client, "branch", name=name)
    result = task(client, **ANY_AGE)
    assert {each["branch_id"] for each in result["operations"]} == {each["id"] for each in result["branches"]}


@pytest.mark.parametrize("status, refused", [(400, "pr-1"), (403, "pr-2"), (409, "pr-3"), (412, "pr-1"), (422, "pr-2")])
def test_a_refusal_does_not_stop_the_others(
    sandbox: Sandbox, client: Client, ids: Ids, status: int, refused: str
) -> None:
    body = {"message": "it is in use"}
    sandbox.fault("status", status=status, method="DELETE", path=f"{BRANCHES}/{ids[refused]}", body=body)
    result = failed(client, **ALL_OLD)
    assert (result["changed"], names(result)) == (True, [name for name in ("pr-3", "pr-2", "pr-1") if name != refused])
    [left] = result["failure"]["remaining"]
    assert (left["name"], left["id"], "it is in use" in left["reason"]) == (refused, ids[refused], True)
    assert result["failure"]["status"] == status
    assert result["msg"].startswith(f"2 branches were deleted, 1 was not. {refused}: DELETE {BRANCHES}/")


def test_the_failure_says_what_was_not_deleted_and_why(sandbox: Sandbox, client: Client, ids: Ids) -> None:
    for name in ("pr-1", "pr-2"):
        fault = {"method": "DELETE", "path": f"{BRANCHES}/{ids[name]}", "body": {"message": f"{name} is in use"}}
        sandbox.fault("status", status=422, **fault)
    result = failed(client, **ALL_OLD)
    assert [each["name"] for each in result["failure"]["remaining"]] == ["pr-2", "pr-1"]
    assert "1 branch was deleted, 2 were not. pr-2: " in result["msg"]
    assert "pr-1 is in use" in result["msg"]


def test_the_parent_of_a_branch_that_is_refused_is_not_tried(sandbox: Sandbox, client: Client) -> None:
    """Some services delete a branch along with its parent."""
    child = create(sandbox, "pr-b", parent_id=create(sandbox, "pr-a"))
    sandbox.fault("status", status=422, method="DELETE", path=f"{BRANCHES}/{child}", times=None)
    result = failed(client, **ANY_AGE)
    assert writes(sandbox) == [f"DELETE {BRANCHES}/{child}"]
    assert [each["name"] for each in result["failure"]["remaining"]] == ["pr-b", "pr-a"]
    assert result["failure"]["remaining"][1]["reason"] == "pr-b was created from it, and is left."


def test_a_branch_that_somebody_else_deletes_at_the_same_moment_is_no_change(sandbox: Sandbox, client: Client) -> None:
    """As in https://github.com/camgraphe/MaxVideoAi/pull/267"""
    branch = create(sandbox, "pr-1")
    sandbox.fault("status", status=404, method="GET", path=f"{BRANCHES}/{branch}", skip=1, times=None)
    sandbox.fault("status", status=200, method="GET", path=BRANCHES, skip=1, times=None, body={"branches": []})
    result = task(client, **ANY_AGE)
    assert (result["changed"], result["branches"], result["diff"]["before"], writes(sandbox)) == (False, [], {}, [])


def test_a_key_that_is_revoked_stops_the_sweep(sandbox: Sandbox, client: Client, ids: Ids) -> None:
    sandbox.fault("status", status=401, method="DELETE", path=f"{BRANCHES}/{ids['pr-2']}", times=None)
    result = failed(client, **ALL_OLD)
    assert (result["failure"]["kind"], names(result)) == ("unauthorized", ["pr-3"])
    assert result["failure"]["remaining"][1]["reason"] == "Its deletion was not tried."
    assert not any(ids["pr-1"] in line for line in writes(sandbox))


def test_the_end_of_the_time_stops_the_sweep(sandbox: Sandbox, client: Client, ids: Ids) -> None:
    sandbox.fault("lingering_deletion", seconds=600)
    result = failed(client, **ALL_OLD, timeout=30)
    assert (result["changed"], len(writes(sandbox)), len(result["failure"]["remaining"])) == (True, 1, 3)


@pytest.mark.parametrize("check_mode", [True, False])
@pytest.mark.parametrize("odd", [{"name": None}, {"name": 7}, {"id": None}, {"parent_id": ["x"]}])
def test_odd_branches_delete_nothing(sandbox: Sandbox, client: Client, ids: Ids, odd: Any, check_mode: bool) -> None:
    branches = sandbox.api("GET", BRANCHES + OLDEST_FIRST)["branches"]
    body = {"branches": [*branches[:-1], {**branches[-1], **odd}]}
    sandbox.fault("status", status=200, method="GET", path=BRANCHES, body=body, times=None)
    failure = failing(client, check_mode=check_mode, **{**ALL_OLD, "name_pattern": "*"})
    assert (failure["kind"], writes(sandbox)) == ("unexpected_response", [])


def test_branches_whose_parents_form_a_circle_stay(sandbox: Sandbox, client: Client, ids: Ids) -> None:
    branches = sandbox.api("GET", BRANCHES + OLDEST_FIRST)["branches"][1:]
    circle: dict[str, Any] = dict(zip(("pr-1", "pr-2"), (ids["pr-2"], ids["pr-1"])))
    body = {"branches": [{**each, "parent_id": circle.get(each["name"])} for each in branches]}
    sandbox.fault("status", status=200, method="GET", path=BRANCHES, body=body)
    assert names(task(client, **ALL_OLD)) == ["pr-3"]


def test_an_empty_parent_is_none(sandbox: Sandbox, client: Client, ids: Ids) -> None:
    branches = sandbox.api("GET", BRANCHES + OLDEST_FIRST)["branches"]
    branches = [{**each, "parent_id": empty} for each, empty in zip(branches, ({}, [], "", None))]
    sandbox.fault("status", status=200, method="GET", path=BRANCHES, body={"branches": branches})
    assert names(task(client, **ALL_OLD)) == ["pr-3", "pr-2", "pr-1"]


class TestKeep:
    @pytest.mark.parametrize(
        ("keep", "deleted"),
        [
            ([], ["pr-3", "pr-2", "pr-1"]),
            (["pr-2"], ["pr-3", "pr-1"]),
            (["pr-2\r", " pr-1"], ["pr-3"]),
            (["pr-[13]\r"], ["pr-2"]),
            (["other", "*"], []),
            (["pr", "PR-1"], ["pr-3", "pr-2", "pr-1"]),
        ],
    )
    def test_what_it_names_stays(self, client: Client, ids: Ids, keep: list[str], deleted: list[str]) -> None:
        planned, done = planned_and_done(client, {**ALL_OLD, "keep": keep})
        assert names(planned) == names(done) == deleted

    def test_the_parent_of_a_branch_that_it_names_stays(self, sandbox: Sandbox, client: Client) -> None:
        create(sandbox, "pr-b", parent_id=create(sandbox, "pr-a"))
        assert names(task(client, **ANY_AGE, keep=["pr-b"])) == []

    @pytest.mark.parametrize(
        "name, keep, deleted",
        [("pr-1 ", "pr-1", ["pr-3", "pr-2"]), ("pr-1 ", "pr-1 ", ["pr-3", "pr-2"]), ("pr-[2]", "pr-[2]", ["pr-3"])],
    )
    def test_a_name_with_white_space_or_brackets_stays(
        self, sandbox: Sandbox, client: Client, ids: Ids, name: str, keep: str, deleted: list[str]
    ) -> None:
        """As in https://github.com/squell/id3/issues/7"""
        sandbox.api("PATCH", f"{BRANCHES}/{ids['pr-1']}", {"branch": {"name": name}})
        assert names(task(client, check_mode=True, **ALL_OLD, keep=[keep])) == deleted

    @pytest.mark.parametrize(
        "keep",
        [
            *("pr-1", "", '["pr-1"]', {"pr-1": 1}, 7, True, [1.5], [None], [""], ["pr-1", " "], [["pr-1"]]),
            *([{"number": 1}], ["pr-[1"]),
        ],
    )
    def test_anything_but_texts_is_refused(self, sandbox: Sandbox, client: Client, keep: Any) -> None:
        for check_mode in (True, False):
            failure = failing(client, check_mode=check_mode, **ALL_OLD, keep=keep)
            assert failure == {"kind": "invalid_option", "option": "keep"}
        assert sandbox.sent() == []


class TestUnusedFor:
    """As in https://github.com/camgraphe/MaxVideoAi/pull/267"""

    def used(self, sandbox: Sandbox, ids: Ids, *used: tuple[str, Any]) -> None:
        """Let the service list computes of these branches, with the times of their last activity."""
        computes = [
            {"id": f"ep-{index}", "branch_id": ids.get(name, name), "last_active": at}
            for index, (name, at) in enumerate(used)
        ]
        path, body = f"/projects/{SHOP}/endpoints", {"endpoints": computes}
        sandbox.fault("status", status=200, method="GET", path=path, body=body, times=None)

    def test_the_last_activity_of_all_computes_counts(self, sandbox: Sandbox, client: Client, ids: Ids) -> None:
        old = sandbox.api("GET", BRANCHES + OLDEST_FIRST)["branches"][1]["created_at"]
        sandbox.advance(60)
        now = sandbox.api("GET", f"{BRANCHES}/{create(sandbox, 'now')}")["branch"]["created_at"]
        self.used(sandbox, ids, ("pr-1", old), ("pr-1", now), ("pr-2", old), ("pr-3", now))
        planned, done = planned_and_done(client, {**ALL_OLD, "unused_for": "2d"})
        assert names(planned) == names(done) == ["pr-2"]
        assert [each["path"] for each in sandbox.requests()].count(f"/api/v2/projects/{SHOP}/endpoints") == 2

    @pytest.mark.parametrize("unknown", [None, "", "0001-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "garbage", 7])
    def test_unknown_activity_counts_as_creation(
        self, sandbox: Sandbox, client: Client, ids: Ids, unknown: Any
    ) -> None:
        self.used(sandbox, ids, ("pr-1", unknown))
        ages = [names(task(client, check_mode=True, **ALL_OLD, unused_for=age)) for age in ("9d", "11d")]
        assert ages == [["pr-3", "pr-2", "pr-1"], []]

    def test_a_branch_whose_creation_is_not_known_stays(self, sandbox: Sandbox, client: Client, ids: Ids) -> None:
        [main, first, *others] = sandbox.api("GET", BRANCHES + OLDEST_FIRST)["branches"]
        self.used(sandbox, ids, *((name, first["created_at"]) for name in ids))
        branches = [main, {**first, "created_at": "0001-01-01T00:00:00Z"}, *others]
        sandbox.fault("status", status=200, method="GET", path=BRANCHES, body={"branches": branches})
        assert names(task(client, check_mode=True, **ALL_OLD, unused_for="2d")) == ["pr-3", "pr-2"]

    def test_older_than_counts_as_well(self, sandbox: Sandbox, client: Client, ids: Ids) -> None:
        create(sandbox, "pr-9")
        sandbox.advance(2 * 86400)
        options = {**ALL_OLD, "unused_for": "1d"}
        assert "pr-9" in names(task(client, check_mode=True, **options))
        assert "pr-9" not in names(task(client, check_mode=True, **options, older_than="7d"))

    def test_computes_that_cannot_be_listed_delete_nothing(self, sandbox: Sandbox, client: Client, ids: Any) -> None:
        sandbox.fault("status", status=403, method="GET", path=f"/projects/{SHOP}/endpoints", times=None)
        assert failing(client, **ALL_OLD, unused_for="2d")["status"] == 403
        assert writes(sandbox) == []


@pytest.mark.parametrize(
    "options, option",
    [
        *(({"name": "pr-1", "state": "absent", option: []}, option) for option in ("keep", "unused_for", "older_than")),
        ({"name_pattern": "pr-*"}, "name_pattern"),
        *(({"name_pattern": pattern, "state": "absent"}, "name_pattern") for pattern in ("pr-[^1]", "pr-[1")),
    ],
)
def test_only_a_pattern_deletes_several(client: Client, options: dict[str, Any], option: str) -> None:
    assert failing(client, module="branch", **options) == {"kind": "invalid_option", "option": option}
