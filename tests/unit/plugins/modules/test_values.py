# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The modules of resources take values as they were written, and refuse those that may mean something else."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import ClouddbError
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.module_utils._resources import declared
from ansible_collections.clouddb.control.plugins.module_utils._resources.kinds import BRANCH
from ansible_collections.clouddb.control.tests.unit.support.resource_task import SHOP, failing, task, writes
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox
from ansible_collections.clouddb.control.tests.unit.support.scripted_client import Serve
from ansible_collections.clouddb.control.tests.unit.support.scripted_service import reply

Options = dict[str, Any]
BRANCHES = f"/projects/{SHOP}/branches"
PREVIEW = {"module": "branch", "name": "preview"}
STORE = {"module": "project", "name": "store"}
COMPUTE = {"module": "compute"}
SHOP_ITSELF = {"module": "project", "name": "shop"}
DATABASE = {"module": "database", "name": "orders", "owner": "clouddb_owner"}
USER = {"module": "database_user", "name": "app"}


def refused(option: str) -> dict[str, str]:
    return {"kind": "invalid_option", "option": option}


class TestNumbers:
    @pytest.mark.parametrize("value", [0.5, "0.9s", "1.5", "0.0001d", "-2", "never", True])
    @pytest.mark.parametrize("resource, option", [(STORE, "history_retention"), (COMPUTE, "suspend_timeout")])
    def test_seconds_are_whole(
        self, sandbox: Sandbox, client: Client, resource: Options, option: str, value: Any
    ) -> None:
        """Half a second of history became none, which removes the history."""
        assert failing(client, **resource, **{option: value}) == refused(option)
        size = {"suspend_timeout": value, "min_cu": None, "max_cu": None}
        assert failing(client, **STORE, default_compute=size) == refused("default_compute")
        assert writes(sandbox) == []

    @pytest.mark.parametrize(("value", "seconds"), [("1.5m", 90), (0, 0), ("0", 0), ("2h", 7200), (60.0, 60)])
    def test_a_fraction_of_a_unit_can_be_whole_seconds(self, client: Client, value: Any, seconds: int) -> None:
        assert task(client, **STORE, history_retention=value)["project"]["history_retention_seconds"] == seconds


class TestNames:
    @pytest.mark.parametrize("name", ["none", "Null", "...", "a.", "false", "2026-01-02", "2026-01-02T03:04:05+02:00"])
    def test_what_only_looks_like_one_is_a_name(self, client: Client, name: str) -> None:
        assert task(client, "branch", name=name)["branch"]["name"] == name

    @pytest.mark.parametrize("name", ["pr-52 ", " pr-52", "pr-52\n", "pr-52\u00a0"])
    @pytest.mark.parametrize("resource", [PREVIEW, STORE, DATABASE, USER])
    def test_no_name_ends_in_white_space(self, sandbox: Sandbox, client: Client, resource: Options, name: str) -> None:
        """As in https://github.com/opendatahub-io/odh-dashboard/issues/1587"""
        named = {**resource, "name": name}
        for check_mode in (True, False):
            assert failing(client, check_mode=check_mode, **named) == refused("name")
        assert (task(client, **named, state="absent")["changed"], writes(sandbox)) == (False, [])

    def test_what_exists_under_such_a_name_can_be_named(self, sandbox: Sandbox, client: Client) -> None:
        sandbox.api("POST", BRANCHES, {"branch": {"name": "pr-52 "}})
        sandbox.advance(60)
        assert task(client, "database_user", branch="pr-52 ", name="app")["changed"] is True
        assert task(client, "branch", name="pr-52 ", new_name="pr-52")["branch"]["name"] == "pr-52"

    @pytest.mark.parametrize(
        ("options", "option"),
        [
            ({**PREVIEW, "new_name": "x "}, "new_name"),
            ({"module": "branch_restore", "name": "preview", "preserve_as": "x "}, "preserve_as"),
            ({**COMPUTE, "name": "x "}, "name"),
            *(({**STORE, option: "x "}, option) for option in ("branch_name", "database_name", "database_user")),
        ],
    )
    def test_other_new_names_do_not_either(self, client: Client, options: Options, option: str) -> None:
        assert failing(client, **options) == refused(option)


class TestTimes:
    def test_the_service_takes_whole_seconds(self) -> None:
        now = datetime(2026, 11, 28, 8, 0, 0, 5, tzinfo=timezone.utc)
        assert declared._time(BRANCH, "expires_at", timedelta(days=1), now) == "2026-11-29T08:00:00Z"

    @pytest.mark.parametrize("text", ["2026-11-28 01:00:00", "2026-12-10", "2026-12-10T08:00", "2026-12-10Z"])
    @pytest.mark.parametrize(
        "options, option",
        [(PREVIEW, "expires_at"), (PREVIEW, "from_timestamp"), ({**PREVIEW, "module": "branch_restore"}, "timestamp")],
    )
    def test_it_has_an_offset(self, sandbox: Sandbox, client: Client, options: Options, option: str, text: str) -> None:
        message = "has no offset from UTC. Write '2026-1[12]-[0-9T:-]+Z' for UTC"
        with pytest.raises(ClouddbError, match=message) as error:
            task(client, **{**options, option: text})
        assert (error.value.details, writes(sandbox)) == ({"option": option}, [])

    @pytest.mark.parametrize("offset", ["Z", "+01:00", "+0100", " +01", "-05:30", "z"])
    def test_one_with_an_offset_is_taken(self, client: Client, offset: str) -> None:
        day = (datetime.now(timezone.utc) + timedelta(days=7)).date()
        for time in ("08:00", "08:00:00", "08:00:00.5"):
            assert task(client, check_mode=True, **PREVIEW, expires_at=f"{day}T{time}{offset}")["changed"] is True


class TestProjects:
    def test_the_first_branch_has_the_names_that_are_given(self, sandbox: Sandbox, client: Client) -> None:
        wanted = {**STORE, "branch_name": "production", "database_name": "orders", "database_user": "app"}
        result = task(client, **wanted)
        created = result["project"]
        assert result["diff"]["after"]["branch"]["name"] == "production"
        [branch] = sandbox.api("GET", f"/projects/{created['id']}/branches")["branches"]
        [database] = sandbox.api("GET", f"/projects/{created['id']}/branches/{branch['id']}/databases")["databases"]
        assert (branch["name"], database["name"], database["owner_name"]) == ("production", "orders", "app")
        assert task(client, **{**wanted, "branch_name": "other"})["changed"] is False

    def test_its_default_compute_is_compared_by_what_is_given(self, sandbox: Sandbox, client: Client) -> None:
        wanted = {**STORE, "default_compute": {"min_cu": 0.25, "max_cu": 1.0, "suspend_timeout": None}}
        planned, created, again = (task(client, check_mode=mode, **wanted) for mode in (True, False, False))
        assert [each["changed"] for each in (planned, created, again)] == [True, True, False]
        size = {"min_cu": None, "max_cu": None, "suspend_timeout": "5m"}
        runs = [task(client, check_mode=mode, **STORE, default_compute=size) for mode in (True, False, False)]
        assert [each["changed"] for each in runs] == [True, True, False]
        assert sandbox.api("GET", f"/projects/{created['project']['id']}")["project"]["default_endpoint_settings"] == {
            "autoscaling_limit_min_cu": 0.25,
            "autoscaling_limit_max_cu": 1,
            "suspend_timeout_seconds": 300,
        }


class TestSecretSettings:
    """A mask in the response differed from each value, or equaled one that had changed."""

    FIRST = {"webhook_secret": "first-0123456789", "plain": 1}

    @pytest.mark.parametrize(("secret", "changed"), [("first-0123456789", False), ("other-0123456789", True)])
    def test_they_compare_by_their_values(self, sandbox: Sandbox, client: Client, secret: str, changed: bool) -> None:
        """The published document has no such setting, so that the sandbox keeps none."""
        shop = sandbox.api("GET", "/projects?search=shop")["projects"][0]
        stored = {**shop, "settings": self.FIRST}
        sandbox.fault("status", status=200, method="GET", path="/projects", body={"projects": [stored]}, times=None)
        settings = {**self.FIRST, "webhook_secret": secret}
        planned = task(client, check_mode=True, **SHOP_ITSELF, settings=settings)
        assert (planned["changed"], secret in str(planned)) == (changed, False)
        assert planned["project"]["settings"]["webhook_secret"] == "********"

    def test_an_error_has_none(self, sandbox: Sandbox, client: Client) -> None:
        sandbox.fault("status", status=422, method="PATCH", body={"message": "webhook first-0123456789 is bad"})
        with pytest.raises(ClouddbError) as error:
            task(client, **SHOP_ITSELF, settings=self.FIRST)
        assert "first-0123456789" not in str(error.value.as_result())


def test_the_diff_of_a_new_project_has_its_first_branch(client: Client) -> None:
    for check_mode in (True, False):
        empty = dict.fromkeys(("min_cu", "max_cu", "suspend_timeout"))
        first = {"branch_name": "production", "database_name": "orders"}
        created = task(client, check_mode=check_mode, **STORE, **first, default_compute=empty)
        branch = {"name": "production", "database_name": "orders"}
        assert created["diff"]["after"] == {"name": "store", "branch": branch}


def test_postgres_settings_are_texts(sandbox: Sandbox, client: Client) -> None:
    for mode in (True, False, False):
        changed = task(client, "compute", mode, pg_settings={"max_connections": 100, "work_mem": "8MB"})
    assert changed["compute"]["settings"]["pg_settings"] == {"max_connections": "100", "work_mem": "8MB"}
    assert (changed["changed"], len(writes(sandbox))) == (False, 1)
    for value in (True, 1.5, None, ["on"]):
        assert failing(client, **COMPUTE, pg_settings={"jit": value}) == refused("pg_settings")


@pytest.mark.parametrize(
    "options, field, parts",
    [
        (COMPUTE, "pg_settings", [{"work_mem": "8MB"}, {"jit": "off"}]),
        (SHOP_ITSELF, "settings", [{"quota": {"active_time_seconds": 1}}, {"quota": {"written_data_bytes": 2}}]),
    ],
)
def test_what_a_task_does_not_give_stays(
    sandbox: Sandbox, client: Client, options: Options, field: str, parts: list[dict[str, Any]]
) -> None:
    """As in https://github.com/neondatabase/neon/issues/7628, where the service drops the other settings"""
    for part in parts:
        planned, done = (task(client, check_mode=mode, **options, **{field: part}) for mode in (True, False))
        assert (planned["changed"], planned["diff"]) == (True, done["diff"])
        sandbox.advance(30)
    assert [task(client, **options, **{field: part})["changed"] for part in parts] == [False, False]


def test_only_the_part_is_sent_and_no_mask(serve: Serve) -> None:
    """As in https://github.com/kislerdm/terraform-provider-neon/issues/223, where a part is refused even unchanged"""
    parts = {"hook": {"secret": "first-0123456789", "url": "a", "retries": 3}, "maintenance_window": {"weekdays": [1]}}
    shop = {"id": SHOP, "name": "shop", "settings": parts}
    service = serve(*[reply({"project": shop})] * 2, reply({"message": "no"}, status=422))
    failing(service.client, module="project", project=None, name=None, id=SHOP, settings={"hook": {"url": "b"}})
    [body] = [each.json for each in service.requests if each.method == "PATCH"]
    assert body == {"project": {"settings": {"hook": {"url": "b", "retries": 3}}}}
