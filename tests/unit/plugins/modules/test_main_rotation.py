# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A rotation for two hosts by the main() of the modules, against a real sandbox."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._rotation.confirmation import id_of_list
from ansible_collections.clouddb.control.plugins.modules import api_key_deployment, api_key_rotation
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import FakeClock
from ansible_collections.clouddb.control.tests.unit.support.module_main import Outcome, run_main
from ansible_collections.clouddb.control.tests.unit.support.return_values import undocumented_fields
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox

HOSTS = ("web1", "web2")


def deployed_by(plan: dict[str, Any]) -> dict[str, Any]:
    """What the role passes from the plan to each host."""
    return {name: plan[name] for name in ("hosts", "older_keys", "host_lists")}


class Rotation:
    """The steps of a run, with the variables that a role has."""

    def __init__(self, sandbox: Sandbox, folder: Path, run: str, check_mode: bool = False):
        self.sandbox = sandbox
        self.folder = folder
        self.run = {"run": run, "variables": {"api_key_rotation_keep": 0}}
        self.check_mode = check_mode
        self.key: dict[str, Any] = {}
        self.outcomes: list[Outcome] = []

    def deployment(self, host: str, step: str, **options: Any) -> Outcome:
        path = {"dest": str(self.folder / host), "record": str(self.folder / f".{host}.rotation")}
        common = {"base_url": self.sandbox.base_url, **self.run, "host": host, "step": step, **path}
        outcome = run_main(api_key_deployment, {**common, **self.key, **options}, check_mode=self.check_mode)
        assert undocumented_fields(api_key_deployment, outcome.result) == []
        self.outcomes.append(outcome)
        return outcome

    def confirmations(self, step: str, **options: Any) -> dict[str, list[Any]]:
        """What the hosts return, as the role passes it on."""
        results = [self.deployment(host, step, play_hosts_id=id_of_list(HOSTS), **options).success for host in HOSTS]
        lists = {text for result in results for text in result["host_lists"]}
        return {"confirmations": [result["confirmation"] for result in results], "host_lists": sorted(lists)}

    def rotation(self, step: str, confirmations: dict[str, list[Any]], **options: Any) -> Outcome:
        common = {"base_url": self.sandbox.base_url, "api_key": self.sandbox.api_key, **self.run, "step": step}
        outcome = run_main(
            api_key_rotation,
            {**common, "name": "deploy-{timestamp}", **confirmations, "play_hosts": list(HOSTS), **options},
            check_mode=self.check_mode,
        )
        assert undocumented_fields(api_key_rotation, outcome.result) == []
        self.outcomes.append(outcome)
        return outcome

    def create(self, plan: dict[str, Any]) -> None:
        created = self.sandbox.api("POST", "/api_keys", {"key_name": plan["name"]})
        self.key = {"key": created["key"], "key_id": created["id"]}

    def complete(self) -> dict[str, Any]:
        """The result of the last step of a complete rotation."""
        inspected = self.confirmations("inspect")
        plan = self.rotation("plan", inspected, max_age="0").success
        assert plan["reason"]
        self.create(plan)
        for host, found in zip(HOSTS, inspected["confirmations"]):
            deployed = self.deployment(host, "deploy", fingerprint=found["fingerprint"], **deployed_by(plan))
            assert deployed.success["changed"]
            assert set(HOSTS).isdisjoint(re.findall(r"\w+", deployed.printed)), "the names of all hosts"
        self.confirmations("confirm")
        return self.rotation("revoke", self.confirmations("commit"), hosts=plan["hosts"], **self.key).success


@pytest.fixture(autouse=True)
def instant(no_delays: FakeClock) -> None:
    """Pauses take no time."""


def test_two_rotations(sandbox: Sandbox, tmp_path: Path) -> None:
    first = Rotation(sandbox, tmp_path, "first")
    assert first.complete()["revoked"] == []
    sandbox.advance(1)
    second = Rotation(sandbox, tmp_path, "second")
    assert [key["id"] for key in second.complete()["revoked"]] == [first.key["key_id"]]

    assert {(tmp_path / host).read_text(encoding="utf-8") for host in HOSTS} == {second.key["key"]}
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}
    assert sandbox.accepts(second.key["key"]) and not sandbox.accepts(first.key["key"])
    # Only the step that deploys returns a secret: the previous one.
    shown = [outcome.result for outcome in second.outcomes if first.key["key"] in json.dumps(outcome.result)]
    assert [set(result) >= {"previous"} for result in shown] == [True, True]
    assert second.key["key"] not in "".join(outcome.printed for outcome in [*first.outcomes, *second.outcomes])


def test_check_mode(sandbox: Sandbox, tmp_path: Path) -> None:
    """Without the id of a new key, the inspection shows what would be revoked."""
    Rotation(sandbox, tmp_path, "first").complete()
    before = sandbox.api("GET", "/api_keys")
    second = Rotation(sandbox, tmp_path, "second", check_mode=True)
    inspected = second.confirmations("inspect")
    plan = second.rotation("plan", inspected, max_age="0").success
    assert (plan["check_mode"], plan["changed"], plan["revoke"]) == (True, False, True)
    revoked = second.rotation("revoke", inspected).success
    assert (revoked["changed"], [key["name"] for key in revoked["revoked"]]) == (True, [plan["api_key"]["name"]])
    assert [key["id"] for key in sandbox.api("GET", "/api_keys")] == [key["id"] for key in before]


@pytest.mark.parametrize(
    "options, problem",
    [
        ({"step": "roll_back"}, "roll_back but all of the following are missing: key_id, key"),
        ({"hosts": [" "]}, "hosts: must not be empty"),
        ({"max_age": "99999999d"}, "max_age: "),
        ({"key_id": "x"}, "key_id"),
    ],
)
def test_invalid_options_of_the_rotation_are_named(sandbox: Sandbox, options: dict[str, Any], problem: str) -> None:
    given = {"base_url": sandbox.base_url, "api_key": sandbox.api_key, "name": "deploy-{timestamp}", "run": "run"}
    outcome = run_main(api_key_rotation, {**given, "step": "plan", "confirmations": [], **options})
    assert outcome.failure["kind"] == "invalid_option"
    assert problem in outcome.result["msg"]


@pytest.mark.parametrize(
    "options, problem",
    [
        ({"step": "deploy"}, "key_id, key, fingerprint, hosts, older_keys"),
        ({"step": "commit"}, "key_id"),
        ({"step": "confirm"}, "confirm but all of the following are missing: key_id, key"),
        (
            {"step": "deploy", "key": "", "key_id": 1, "fingerprint": "f", "hosts": [], "older_keys": []},
            "key: must not be empty",
        ),
        ({"step": "inspect", "record": None}, "record: is required with dest. Set the path of a file for the record."),
        ({"step": "inspect", "attributes": "+i"}, "attributes: is not supported. Omit it."),
        ({"step": "inspect", "mode": "0240"}, "mode: "),
    ],
)
def test_invalid_options_are_named(sandbox: Sandbox, tmp_path: Path, options: dict[str, Any], problem: str) -> None:
    common = {"base_url": sandbox.base_url, "run": "run", "host": "web1"}
    given = {**common, "dest": str(tmp_path / "key"), "record": str(tmp_path / "record"), **options}
    # None stands for an omitted option. In check mode, no file shows that an option is invalid.
    present = {name: value for name, value in given.items() if value is not None}
    outcome = run_main(api_key_deployment, present, check_mode=True)
    assert outcome.failed and problem in outcome.result["msg"]
